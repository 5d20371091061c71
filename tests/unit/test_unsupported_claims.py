"""Confirmed claims that nothing confirms: each must stay short of PASS although the Verifier's model calls it direct."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import example
from tests.play import judged

Case = dict[str, Any]
RUNBOOK = "Restart the payments-pool pods: in past cases the pool leaked connections."


def claim_of(case: Case) -> dict[str, Any]:
    claim: dict[str, Any] = case["rounds"][0]["executor_output"]["claims"][0]
    return claim


def says(case: Case, text: str) -> None:
    """The claim, the answer and the Verifier's direct fact all say `text`."""
    output = case["rounds"][0]["executor_output"]
    claim_of(case)["claim_text"] = output["diagnosis_summary"] = output["user_facing_answer"] = text
    case["rounds"][0]["verifier_output"]["facts_checked"][0]["fact"] = text


def knowledge(case: Case, tool: str) -> None:
    call = case["rounds"][0]["tool_invocations"][0]
    call.update(tool_name=tool, evidence_kind="knowledge")
    call["retrieval_details"]["evidence_refs"][0]["text"] = RUNBOOK
    claim_of(case)["evidence_bindings"][0].update(tool_name=tool, evidence_excerpt=RUNBOOK)


def runbook_advice_as_fact(case: Case) -> None:
    knowledge(case, "lookup_knowledge")
    says(case, "The payments-pool leaked connections.")


def past_case_as_fact(case: Case) -> None:
    knowledge(case, "search_past_cases")
    says(case, "As in past cases, the payments-pool leaked connections.")


def summary_broader_than_claims(case: Case) -> None:
    output = case["rounds"][0]["executor_output"]
    output["diagnosis_summary"] += " 37 requests are waiting."


def answer_broader_than_claims(case: Case) -> None:
    output = case["rounds"][0]["executor_output"]
    output["user_facing_answer"] += " Another 37 requests failed within 30 seconds."


def cause_read_into_a_symptom(case: Case) -> None:
    claim_of(case)["claim_type"] = "root_cause"
    says(case, "payments-pool has 20 active connections because the ledger database is slow.")


def an_invented_error_code(case: Case) -> None:
    output = case["rounds"][0]["executor_output"]
    output["user_facing_answer"] += " The database reports ORA-00060."


@pytest.mark.parametrize(
    ("spoil", "rules"),
    [
        (runbook_advice_as_fact, {"claim.knowledge_only", "claim.none_confirmed"}),
        (past_case_as_fact, {"claim.knowledge_only", "claim.none_confirmed"}),
        (summary_broader_than_claims, set()),
        (answer_broader_than_claims, set()),
        (cause_read_into_a_symptom, {"claim.causal_unsupported"}),
        (an_invented_error_code, {"answer.identifier_absent"}),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_what_the_evidence_does_not_show_never_passes(
    spoil: Callable[[Case], None], rules: set[str], lang: str
) -> None:
    case = {**example(), "lang": lang}
    assert judged(case)["effective_verdict"] == "PASS"
    spoil(case)
    report = judged(case)
    assert report["effective_verdict"] in {"LOW_CONFID", "REJECT"}
    assert report["verifier_evaluation"]["model_verdict"] == "PASS"
    assert rules <= set(report["gatekeeper_result"]["failed_rules"])


@pytest.mark.parametrize("spoil", [summary_broader_than_claims, answer_broader_than_claims])
def test_what_prose_adds_is_a_critical_fact_without_evidence(spoil: Callable[[Case], None]) -> None:
    case = example()
    spoil(case)
    judgement = judged(case)["verifier_evaluation"]
    noted = zip(judgement["facts_checked"], judgement["fact_notes"], strict=True)
    added = [fact for fact, note in noted if note["added_by"] == "runtime"]
    assert added
    assert all(fact["is_critical"] and fact["verification"] == "no_evidence" for fact in added)
    assert any("37" in fact["fact"] for fact in added)
