"""The Executor without a model: tool calls, then quotes as observations; nothing is inferred."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handlers.agents.offline import OfflineAgents
from handlers.agents.offline_evidence import metric_weight, saturated
from handlers.agents.offline_quotes import EXCERPT_BYTES, excerpt_of, reading_form
from handlers.agents.protocol import ExecutorBrief, Repair
from handlers.evidence.protocol import ToolSpec
from handlers.guards import extra_facts
from handlers.replies import parse_answer, usable_user_answer
from streams.contract import Claim, Contract, EvidenceKind, EvidenceRef, InvocationStatus, RetrievalDetails
from streams.events import PlanMade, PlannedStep, ToolInvoked

QUESTION = "Why does payment-service time out?"
TIMEOUT = '{"ts": "2026-03-17T10:09:12Z", "level": "ERROR", "service": "payment-service", "msg": "payments-pool - Connection is not available, request timed out after 30000ms"}'
QUIET = '{"ts": "2026-03-17T09:00:01Z", "level": "INFO", "service": "payment-service", "msg": "POST /v1/payments 200 120ms"}'
ACTIVE = 'hikaricp_connections_active{pool="payments-pool"} last=20 min=4 max=20 avg=14.2 n=181 2026-03-17T10:00Z..10:45Z step=15s'
FLAT = 'hikaricp_connections_leaked{pool="payments-pool"} last=0 min=0 max=0 avg=0 n=181 2026-03-17T10:00Z..10:45Z step=15s'


def call(
    number: int,
    tool: str,
    *records: tuple[str, str],
    status: InvocationStatus = "success",
    kind: EvidenceKind = "incident",
    **arguments: Any,
) -> ToolInvoked:
    refs = tuple(EvidenceRef(raw_path=path, text=text) for path, text in records)
    details = RetrievalDetails(evidence_refs=refs, matched=len(refs), returned=len(refs), truncated=False)
    return ToolInvoked(
        invocation_id=f"inv-{number}",
        tool_name=tool,
        arguments=arguments,
        status=status,
        evidence_kind=kind,
        retrieval_details=details,
    )


def brief(
    *calls: ToolInvoked, question: str = QUESTION, lang: str = "en", narrow: bool = False, **changes: Any
) -> ExecutorBrief:
    given: dict[str, Any] = {
        "question": question, "lang": lang, "round": 1, "attempt": 0, "plan": PlanMade(narrow=narrow), "tools": (), "nonce": "n",
        "deadline_s": 300.0, "tool_budget": 24, "round_invocations": calls, "invocations": calls,
    }  # fmt: skip
    return ExecutorBrief(**{**given, **changes})


def answer(*calls: ToolInvoked, **changes: Any) -> Contract:
    reply = asyncio.run(OfflineAgents().execute(brief(*calls, **changes)))
    parsed = parse_answer(reply.text, reply.finish_reason)
    assert parsed.status == "valid", parsed.error
    assert parsed.contract is not None
    return parsed.contract


def quoted(claim: Claim) -> list[tuple[str | None, str | None]]:
    return [(one.source_invocation_id, one.raw_path) for one in claim.evidence_bindings]


LOGS = call(1, "query_logs", ("lines[1]", QUIET), ("lines[7]", TIMEOUT))
METRICS = call(2, "query_metrics", ("result[0]", ACTIVE), ("result[1]", FLAT))
RUNBOOK = call(
    3,
    "lookup_knowledge",
    ("old.md#top", "[OBSOLETE] RB-002 Network partition\nConnection timed out between zones."),
    (
        "leak.md#confirm",
        "RB-014 Connection leak | updated: 2025-11-02\n## Confirm\npayments-pool leaked 20 connections.",
    ),
    kind="knowledge",
)


def test_the_plan_s_calls_come_first_with_ids_new_in_the_session() -> None:
    plan = PlanMade(
        steps=(PlannedStep(tool_name="query_logs", arguments={"terms": ["a"]}), PlannedStep(tool_name="gone"))
    )
    earlier = call(1, "query_logs", ("lines[1]", QUIET))
    asked = brief(earlier, plan=plan, round_invocations=(), tools=(ToolSpec("query_logs", ""),))
    reply = asyncio.run(OfflineAgents().execute(asked))
    assert [(one.call_id, one.name, one.arguments) for one in reply.tool_calls] == [
        ("inv-2", "query_logs", {"terms": ["a"]})
    ]
    assert reply.text == ""


def test_no_more_calls_than_the_budget_has() -> None:
    plan = PlanMade(steps=tuple(PlannedStep(tool_name="query_logs", arguments={"limit": at}) for at in range(5)))
    asked = brief(plan=plan, tools=(ToolSpec("query_logs", ""),), tool_budget=2)
    assert len(asyncio.run(OfflineAgents().execute(asked)).tool_calls) == 2


def test_a_plan_without_calls_is_replaced_by_our_own() -> None:
    asked = brief(tools=(ToolSpec("query_logs", "", {"type": "object", "properties": {"terms": {}}}),))
    assert [one.name for one in asyncio.run(OfflineAgents().execute(asked)).tool_calls] == ["query_logs"] * 3


@pytest.mark.scenario("EXE-1")
@pytest.mark.scenario("EXE-2")
def test_claims_are_observations_with_the_line_word_for_word() -> None:
    contract = answer(LOGS, METRICS)
    first = contract.claims[0]
    assert (first.claim_type, first.support_level, quoted(first)) == ("observation", "direct", [("inv-1", "lines[7]")])
    assert first.evidence_bindings[0].evidence_excerpt == TIMEOUT
    assert "request timed out after 30000ms" in first.claim_text
    assert {claim.claim_type for claim in contract.claims} == {"observation"}


@pytest.mark.parametrize("lang", ["zh-CN", "en"])
def test_the_answer_is_in_the_session_s_language_says_that_no_model_was_used_and_states_nothing_more(lang: str) -> None:
    contract = answer(LOGS, METRICS, RUNBOOK, lang=lang)
    said = usable_user_answer(contract, lang)
    assert said is not None
    assert ("未使用语言模型" if lang == "zh-CN" else "No language model was used") in said
    assert [fact for fact in extra_facts(contract, QUESTION) if fact.status == "extra"] == []


@pytest.mark.scenario("EXE-8")
def test_runbooks_become_hypotheses_and_obsolete_ones_come_last_and_are_called_so() -> None:
    contract = answer(LOGS, RUNBOOK)
    assert [claim for claim in contract.claims if "leaked" in claim.claim_text] == []
    titles = [hypothesis.hypothesis_text for hypothesis in contract.hypotheses]
    assert "RB-014 Connection leak" in titles[0]
    assert "RB-002 Network partition" in titles[1]
    assert "obsolete" in titles[1]


@pytest.mark.scenario("EXE-8")
def test_with_runbooks_alone_nothing_is_claimed() -> None:
    contract = answer(RUNBOOK, question="The Watchdog alert is firing. What is wrong?")
    assert contract.claims == ()
    assert contract.hypotheses
    assert contract.missing_info


@pytest.mark.scenario("EXE-7")
def test_a_narrow_question_gets_two_claims_at_most_and_a_look_at_each_kind_of_evidence() -> None:
    many = call(
        1,
        "query_logs",
        *((f"lines[{at}]", f"ERROR {word} failed in the pool") for at, word in enumerate("abcdefgh", 1)),
    )
    contract = answer(many, METRICS, question="is payments-pool leaking connections?", narrow=True)
    assert len(contract.claims) == 2
    assert {binding.tool_name for claim in contract.claims for binding in claim.evidence_bindings} == {
        "query_logs",
        "query_metrics",
    }


def test_a_flat_zero_is_quoted_where_it_is_what_was_asked() -> None:
    contract = answer(METRICS, question="payments-pool 连接是否泄漏？", narrow=True, lang="zh-CN")
    assert ("inv-2", "result[1]") in [spot for claim in contract.claims for spot in quoted(claim)]


def test_a_search_for_a_text_without_a_hit_is_a_negative_observation() -> None:
    summary = "hits=0 window=all status=ok files=1 lines_scanned=12 query={}"
    none = call(1, "query_logs", ("summary", summary), status="no_data", terms=["ORA-00060"])
    running = call(2, "query_state", ("lines[1]", "payment-service 1/1 Running"))
    (claim,) = answer(none, running, question='show logs that contain "ORA-00060"').claims
    assert (claim.claim_type, quoted(claim)) == ("negative_observation", [("inv-1", "summary")])
    assert "ORA-00060" in claim.claim_text
    assert claim.evidence_bindings[0].evidence_excerpt == "hits=0 window=all status=ok files=1 lines_scanned=12"


def test_a_failed_access_is_claimed_only_where_there_is_nothing_else() -> None:
    refused = call(1, "query_state", ("error", "Error from server (Forbidden): secrets is forbidden"), status="error")
    (claim,) = answer(refused, question="list all secrets").claims
    assert quoted(claim) == [("inv-1", "error")]
    assert "access failed" in claim.claim_text
    both = answer(refused, LOGS)
    assert all(binding.raw_path != "error" for claim in both.claims for binding in claim.evidence_bindings)
    assert "one access failed, and the data it should have given is missing" in both.missing_info


def test_of_a_healthy_service_is_said_what_was_seen() -> None:
    state = call(
        1, "query_state", ("lines[1]", "Status:  Running"), ("lines[2]", "Ready: True"), ("lines[3]", "Restart Count:  0"),
        ("lines[4]", "Tolerations: node.kubernetes.io/unreachable:NoExecute op=Exists for 300s"),
        ("lines[5]", "RollingUpdateStrategy:  25% max unavailable, 25% max surge"),
    )  # fmt: skip
    contract = answer(state, question="why is payment-service unhealthy?")
    assert contract.diagnosis_summary.endswith(
        "the evidence shows nothing wrong; these are the lines closest to the question."
    )
    assert {path for claim in contract.claims for _, path in quoted(claim)} == {"lines[1]", "lines[2]", "lines[3]"}


def test_without_any_evidence_nothing_is_claimed() -> None:
    contract = answer()
    assert contract.claims == ()
    assert contract.missing_info


def test_the_same_line_from_two_searches_is_claimed_once() -> None:
    again = call(2, "query_logs", ("lines[7]", TIMEOUT))
    contract = answer(LOGS, again)
    assert sum("timed out" in claim.claim_text for claim in contract.claims) == 1


def test_a_repair_drops_the_claims_it_names_and_keeps_the_rest() -> None:
    other = call(3, "query_logs", ("lines[9]", "WARN circuit-breaker ledger OPEN after timeout"))
    first = asyncio.run(OfflineAgents().execute(brief(LOGS, METRICS, other)))
    before = parse_answer(first.text).contract
    assert before is not None
    named = before.claims[0]
    repair = Repair(f"- {named.claim_id}[0]: evidence.excerpt_mismatch", first.text)
    after = answer(LOGS, METRICS, other, attempt=1, repair=repair)
    assert quoted(named)[0] not in [spot for claim in after.claims for spot in quoted(claim)]
    kept = {claim.claim_id: quoted(claim) for claim in after.claims}
    for claim in before.claims[1:]:
        assert kept[claim.claim_id] == quoted(claim)


def test_a_repair_takes_up_the_record_that_the_request_names() -> None:
    state = call(4, "query_state", ("lines[2]", "Status: Pending, failed"), ("lines[8]", "Labels: app=payment-service"))
    first = asyncio.run(OfflineAgents().execute(brief(LOGS, state)))
    repair = Repair(
        "- This part is not answered. Evidence that fits: inv-4 lines[8]: “Labels: app=payment-service”.", first.text
    )
    after = answer(LOGS, state, attempt=1, repair=repair)
    assert ("inv-4", "lines[8]") in [spot for claim in after.claims for spot in quoted(claim)]
    assert ("inv-1", "lines[7]") in [spot for claim in after.claims for spot in quoted(claim)]


def test_a_record_that_names_what_was_asked_about_stands_beside_those_that_do_not() -> None:
    state = call(
        1,
        "query_state",
        ("lines[1]", "Warning FailedScheduling 0/1 nodes are available: node(s) didn't match selector"),
        ("lines[2]", "payment-import 0/1 Pending"),
        ("lines[3]", "Annotations: <none>"),
    )
    contract = answer(state, question="What is the issue with payment-import")
    assert [quoted(claim)[0][1] for claim in contract.claims] == ["lines[1]", "lines[2]"]


def test_a_repair_of_an_answer_that_cannot_be_read_starts_anew() -> None:
    contract = answer(LOGS, attempt=1, repair=Repair("- c1", "no json"))
    assert contract.claims


def test_a_reask_gives_a_valid_answer() -> None:
    assert answer(LOGS, reask="claims[0]: missing").claims


def test_the_same_brief_gives_the_same_reply() -> None:
    one, other = (asyncio.run(OfflineAgents().execute(brief(LOGS, METRICS, RUNBOOK))) for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("heavier", "lighter"),
    [
        (ACTIVE, FLAT),
        ('ALERT PoolFull{pool="p"} state="firing"', 'ALERT PoolFull{pool="p"} state="inactive"'),
        ("x value=37", "x value=0"),
        ("x last=9 min=1 max=9 avg=5 n=3", "x last=1 min=1 max=9 avg=5 n=3"),
        ("x value=1", "x value=NaN (no finite number: nothing was measured)"),
    ],
)
def test_metrics_weigh_by_alert_change_and_being_at_their_top(heavier: str, lighter: str) -> None:
    assert metric_weight(heavier) > metric_weight(lighter)


@pytest.mark.parametrize(
    ("text", "full"), [("Pool exhausted (100/100)", 1.0), ("pod 1/1 Running", 0.0), ("15/100 in use", 0.0)]
)
def test_a_count_at_its_limit_is_seen_and_replicas_are_none(text: str, full: float) -> None:
    assert saturated(text) == full


def test_an_excerpt_of_a_long_line_is_cut_where_there_is_white_space() -> None:
    line = (
        " ".join(f"word{at}" for at in range(900)) + " request timed out " + " ".join(f"tail{at}" for at in range(900))
    )
    excerpt = excerpt_of(line)
    assert len(excerpt.encode()) <= EXCERPT_BYTES
    assert "timed out" in excerpt
    assert f" {excerpt} " in line


def test_a_json_line_is_read_out_by_its_message_and_telling_fields() -> None:
    line = json.dumps(
        {
            "ts": "2026-03-17T10:09:12Z",
            "level": "ERROR",
            "service": "payment-service",
            "message": "timed out",
            "wait_ms": 30000,
            "trace_id": "ab12",
        }
    )
    assert reading_form(line) == "payment-service ERROR timed out (wait_ms=30000)"
