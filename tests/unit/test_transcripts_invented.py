"""What a prose answer invents is told to its reader by name; verdicts are those of the rules that the gate has anyway."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.reasons import reasons
from handlers.transcripts.openai import read_chat
from tests.transcripts import LOGS, METRIC, report

PODS = "NAME   READY  STATUS   RESTARTS  AGE\nweb-7   1/1   Running   3    2d\nweb-8   1/1   Running   0   2d"
LIMITS = json.dumps(
    {"pod": "web-7", "restarts": 3, "lastState": {"reason": "OOMKilled"}, "limits": {"memory": "512Mi"}}
)
QUESTION = "Why does payment-service time out?"


def judged(output: str, said: str, question: str = QUESTION) -> dict[str, Any]:
    used = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "tool_calls": [used]},
        {"role": "tool", "tool_call_id": "c1", "content": output},
        {"role": "assistant", "content": said},
    ]
    return report(read_chat(messages))


def told(found: dict[str, Any]) -> str:
    return "\n".join(reasons(found))


@pytest.mark.parametrize(
    ("output", "said", "named"),
    [
        (METRIC, "The pool had 50 connections.", '"50"'),
        (METRIC, "payments-pool has 50 active connections of at most 20.", '"50"'),
        (PODS, "pod web-7 restarted 12 times.", '"12 times"'),
        (PODS, "web-7 重启了 12 次。", '"12 次"'),
        (LOGS, "payment-service requests timed out after 5 s.", '"5 s"'),
        (LIMITS, "web-7 was OOMKilled. The limit of web-7 is 256Mi.", '"256Mi"'),
        (METRIC, "payments-pool has 20 active connections. The CPU of payment-service was at 97 %.", '"97 %"'),
    ],
)
def test_an_invented_number_is_named_and_the_verdict_stays_capped(output: str, said: str, named: str) -> None:
    found = judged(output, said)
    assert (
        f"claim.no_binding: the claim says that it is supported and binds no line: it counts as a hypothesis; no evidence of this session has {named}"
        in told(found)
    )
    assert found["effective_verdict"] == "LOW_CONFID"
    assert {"claim.number_absent", "claim.identifier_absent"}.isdisjoint(found["gatekeeper_result"]["failed_rules"])


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("output", "said", "named"),
    [
        (PODS, "web-9 restarted 3 times.", "web-9"),
        (LOGS, "payment-service raised ORA-12519 on ledger-db.", "ORA-12519"),
        (LOGS, "The last deployment of payment-service was v2.4.1.", "v2.4.1"),
        (LOGS, "payment-service threw com.example.LedgerLockException.", "LedgerLockException"),
        (METRIC, "payments-pool has 20 active connections, all of them from 10.0.3.7.", "10.0.3.7"),
    ],
)
def test_an_invented_identifier_rejects_and_is_named(output: str, said: str, named: str) -> None:
    found = judged(output, said)
    assert found["effective_verdict"] == "REJECT"
    assert "answer.identifier_absent" in found["gatekeeper_result"]["failed_rules"]
    assert named in told(found)
    assert named not in found["response"]["text"]


@pytest.mark.parametrize(
    ("output", "said", "question"),
    [
        (METRIC, "payments-pool has 20 active connections of at most 20.", QUESTION),
        (METRIC, "All 20 connections of payments-pool are active.", QUESTION),
        (PODS, "web-7 is Running and restarted 3 times.", "Is web-7 healthy?"),
        (PODS, "web-7 重启了 3 次。", "web-7 重启了几次？"),
        (LOGS, "payment-service requests timed out after 30 s on HikariPool-1.", QUESTION),
        (LIMITS, "web-7 was OOMKilled; its limit is 512Mi.", "Why did web-7 restart?"),
    ],
)
def test_an_honest_answer_hears_nothing_of_it(output: str, said: str, question: str) -> None:
    found = judged(output, said, question)
    assert found["gatekeeper_result"]["status"] == "pass"
    assert "no evidence of this session" not in told(found)
