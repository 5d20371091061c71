"""What a fact rests on, through the real roles: AUD and ruling 6."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ledger_case import RETRIES, TEXTS, binding, call, case, checked, fact, good, rnd, verdict
from tests.play import judged

REF = {"trace_ref": "trace-101", "source_invocation_ids": ["101"]}


def facts_of(*said: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    report = judged(case(rnd(changes.pop("answered", good()), verdict("PASS", *said), **changes)))
    for found in report["verifier_evaluation"]["facts_checked"]:
        known = {
            i["trace_ref"]: i["source_invocation_ids"] for i in report["verifier_evaluation"]["tool_trace_summary"]
        }
        for ref in found["evidence_refs"]:
            assert ref["source_invocation_ids"] == known[ref["trace_ref"]], "AUD-1: it exists and keeps the ids"
    facts: list[dict[str, Any]] = report["verifier_evaluation"]["facts_checked"]
    return facts


@pytest.mark.scenario("AUD-1")
def test_each_fact_points_at_existing_items_and_keeps_their_invocations() -> None:
    calls = [call(topic="ledger"), call("102", topic="ledger"), call("103", topic="ledger")]
    found = facts_of(*checked()["facts_checked"], calls=calls)
    assert [f["evidence_refs"] for f in found] == [
        [{"trace_ref": "trace-101", "source_invocation_ids": ["101", "102", "103"]}]
    ] * 2


@pytest.mark.scenario("AUD-2")
@pytest.mark.parametrize(
    "refs", [["trace-999"], [], ["101"], [{"trace_ref": "trace-999", "source_invocation_ids": ["101"]}]]
)
@pytest.mark.parametrize(
    ("label", "counts"),
    [
        ("direct_evidence", "no_evidence"),
        ("indirect_support", "no_evidence"),
        ("no_evidence", "no_evidence"),
        ("contradicted", "contradicted"),
    ],
)
def test_an_invented_ref_is_dropped_and_only_supporting_labels_fall(label: str, counts: str, refs: list[Any]) -> None:
    loose = fact("the client is written in Java", label, evidence_refs=refs)
    report = judged(case(rnd(good(), {**checked(), "facts_checked": [*checked()["facts_checked"], loose]})))
    judgement = report["verifier_evaluation"]
    found = judgement["facts_checked"][2]
    assert (found["evidence_refs"], found["verification"]) == ([], counts)
    assert any("ref_dropped" in reason for reason in judgement["reasons"]) is bool(refs)
    assert report["effective_verdict"] == ("REJECT" if counts == "contradicted" else "LOW_CONFID")


@pytest.mark.scenario("AUD-2")
def test_a_fabricated_fact_keeps_its_label_without_refs() -> None:
    loose = fact("the client is written in Java", "direct_evidence", evidence_refs=["trace-999"], fabricated=True)
    assert facts_of(*checked()["facts_checked"], loose)[2]["verification"] == "contradicted"


@pytest.mark.scenario("AUD-2", "GAT-12")
@pytest.mark.parametrize("refs", [[], ["trace-999"], ["trace-101", "trace-999", "trace-101"]])
def test_a_fact_about_a_claim_first_gets_the_refs_of_its_verified_bindings(refs: list[str]) -> None:
    said = [fact(TEXTS["en"]["c1"], claim_id="c1", evidence_refs=refs), fact(TEXTS["en"]["c2"], evidence_refs=refs)]
    found = facts_of(*said)
    assert [(f["claim_id"], f["evidence_refs"], f["verification"]) for f in found] == [
        ("c1", [REF], "direct_evidence"),
        ("c2", [REF], "direct_evidence"),
    ]


@pytest.mark.scenario("AUD-2", "GAT-12")
def test_a_failed_binding_gives_no_ref() -> None:
    said = good()
    said["claims"][1]["evidence_bindings"] = [binding("at most 9 retries", "lines[0]", "102")]
    given = [fact(TEXTS["en"]["c1"], claim_id="c1"), fact(TEXTS["en"]["c2"], claim_id="c2", evidence_refs=[])]
    found = facts_of(*given, answered=said, calls=[call(), call("102", RETRIES)])
    assert (found[1]["evidence_refs"], found[1]["verification"]) == ([], "no_evidence")


@pytest.mark.scenario("AUD-1")
def test_a_helpers_trace_ref_does_not_exist() -> None:
    clock = call("102", "now", tool="current_time")
    loose = fact("it is late", evidence_refs=["trace-102"])
    assert facts_of(*checked()["facts_checked"], loose, calls=[call(), clock])[2]["verification"] == "no_evidence"


@pytest.mark.scenario("AUD-2")
def test_a_claim_id_that_is_no_claims_is_recorded_and_the_text_decides() -> None:
    said = [fact(TEXTS["en"]["c1"], claim_id="c9"), fact(TEXTS["en"]["c2"], claim_id="c2")]
    report = judged(case(rnd(good(), verdict("PASS", *said))))
    judgement = report["verifier_evaluation"]
    assert [f["claim_id"] for f in judgement["facts_checked"]] == ["c1", "c2"]
    assert any("c9" in reason for reason in judgement["reasons"])
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("AUD-1", "TRC-4")
def test_a_contradicted_fact_may_point_at_a_failed_call() -> None:
    broken = {"invocation_id": "102", "tool_name": "query_logs", "status": "error", "error": "refused"}
    loose = fact("the logs were read", "contradicted", evidence_refs=["trace-102"])
    found = facts_of(*checked()["facts_checked"], loose, calls=[call(), broken])
    assert found[2]["evidence_refs"] == [{"trace_ref": "trace-102", "source_invocation_ids": ["102"]}]
