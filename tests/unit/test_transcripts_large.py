"""Large outputs and failed accesses in prose: what is long is bound by a part, what is left out is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.transcripts import outputs
from handlers.transcripts.openai import read_chat
from handlers.transcripts.outputs import read_output
from tests.transcripts import report

QUESTION = "Why does payment-service time out?"


def judged(output: Any, said: str, tool: str = "get_logs", question: str = QUESTION) -> dict[str, Any]:
    used = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    messages = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "tool_calls": [used]},
        {"role": "tool", "tool_call_id": "c1", "content": output},
        {"role": "assistant", "content": said},
    ]
    return report(read_chat(messages))


def bindings(told: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(b["raw_path"], b["status"], b["severity"]) for b in told["gatekeeper_result"]["checked_bindings"]]


def test_the_last_of_3003_objects_in_one_line_is_evidence() -> None:
    rows = [{"pool": f"pool-{k}", "active": k % 7} for k in range(3_000)]
    rows += [{"pool": "payments-pool", "active": 20, "waiting": k} for k in (31, 32, 33)]
    asked = "How many active connections has payments-pool?"
    told = judged(json.dumps(rows), "payments-pool has 20 active connections and 33 waiting.", question=asked)
    assert bindings(told) == [("[3002]", "pass", "none")]
    assert (told["effective_verdict"], told["groundedness_score"]) == ("LOW_CONFID", 1.0)


def test_a_line_longer_than_an_excerpt_is_bound_by_the_part_that_says_it() -> None:
    line = "request handled " * 120 + "payments-pool has 20 active connections of at most 20 " + "request handled " * 90
    assert len(line) > 3_300
    for said in (
        "payments-pool has 20 active connections.",
        "It logs `payments-pool has 20 active connections of at most 20`.",
    ):
        told = judged(line, said)
        assert bindings(told) == [("lines[0]", "pass", "none")]
        assert told["effective_verdict"] == "LOW_CONFID"
    assert bindings(judged(line, "payments-pool has 21 active connections.")) == []


def test_a_line_longer_than_can_be_checked_is_shown_in_pieces() -> None:
    line = "x" * 199_990 + " payments-pool has 20 active connections of at most 20 " + "y" * 150_000
    told = judged(line, "payments-pool has 20 active connections.")
    assert bindings(told) == [("lines[0][100000:202000]", "pass", "none")]
    details = read_output(line, {}).details
    assert (details.matched, details.returned, details.truncated) == (4, 4, False)


def test_what_is_left_out_is_the_middle_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MAX_REFS", 10)
    details = read_output("\n".join(f"line {k}" for k in range(25)), {}).details
    texts = [ref.text for ref in details.evidence_refs or ()]
    assert (texts[0], texts[4], texts[5], texts[-1]) == ("line 0", "line 4", "line 20", "line 24")
    assert (details.matched, details.returned, details.truncated) == (25, 10, True)
    assert details.dropped_reason == "15 records between the first and the last are left out"


FORBIDDEN = (
    'Error from server (Forbidden): pods "orders-api" is forbidden: User "system:serviceaccount:agent" cannot get '
    'resource "pods" in API group "" in the namespace "shop"'
)


@pytest.mark.parametrize(
    "said",
    [
        "Access to pods was forbidden for user system:serviceaccount:agent.",
        'The access failed: `pods "orders-api" is forbidden`.',
        "kubectl_get was refused with Forbidden for orders-api.",
    ],
)
def test_a_report_of_a_failed_access_is_bound_to_its_error_text(said: str) -> None:
    told = judged(FORBIDDEN, said, tool="kubectl_get", question="Why does orders-api fail?")
    assert bindings(told) == [("error", "pass", "none")]
    assert told["effective_verdict"] == "LOW_CONFID"


@pytest.mark.parametrize(
    "said", ["orders-api is not running.", "Access to pods was forbidden for user system:serviceaccount:payments."]
)
def test_an_error_text_supports_nothing_else(said: str) -> None:
    told = judged(FORBIDDEN, said, tool="kubectl_get", question="Why does orders-api fail?")
    assert bindings(told) == []
    assert told["effective_verdict"] in {"REJECT", "LOW_CONFID"}
    assert told["groundedness_score"] == 0.0
