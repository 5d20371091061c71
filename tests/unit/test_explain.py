"""`explain`, and the few lines of `ask` and `judge`: why a claim stands or falls, in words that say what to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handlers.explain import explain, told
from handlers.reasons import SCORE_NOTE, cap_lifted, cap_told, reasons, score_told
from handlers.report import turn_report
from handlers.verdicts import BORROWED
from streams.session import SessionState
from tests.cases import example, long_case, tampered
from tests.play import play


def played(case: dict[str, Any]) -> SessionState:
    return asyncio.run(play(case))


def explained(case: dict[str, Any]) -> tuple[dict[str, Any], str]:
    state = played(case)
    found = explain(state, state.turns[-1])
    return found, "\n".join(told(found))


def report(case: dict[str, Any]) -> dict[str, Any]:
    state = played(case)
    return turn_report(state, state.turns[-1])


def one_digit_off() -> dict[str, Any]:
    case = example()
    rnd = case["rounds"][0]
    rnd["executor_output"] = tampered(rnd["executor_output"])
    return case


def labelled(label: str, verdict: str) -> dict[str, Any]:
    case = example()
    judged = case["rounds"][0]["verifier_output"]
    judged["facts_checked"][0]["verification"] = label
    judged["verdict"] = verdict
    return case


def test_a_claim_that_stands_is_shown_with_its_line_and_the_excerpt_marked_in_it() -> None:
    case = example()
    case["rounds"][0]["tool_invocations"][0]["retrieval_details"]["evidence_refs"][0]["text"] += " avg=19.2"
    found, text = explained(case)
    [claim] = found["claims"]
    [binding] = claim["bindings"]
    excerpt = case["rounds"][0]["executor_output"]["claims"][0]["evidence_bindings"][0]["evidence_excerpt"]
    assert (found["verdict"], found["for_pass"], found["caps"], claim["for_pass"]) == ("PASS", [], [], [])
    assert (binding["status"], binding["source_invocation_id"], binding["tier"]) == ("pass", "101", "exact")
    assert binding["line"] == f"»{excerpt}« avg=19.2"
    assert claim["confirmed"]
    assert [fact["verification"] for fact in claim["facts"]] == ["direct_evidence"]
    assert f"      »{excerpt}« avg=19.2" in text
    assert f"  fact, direct_evidence, critical: {claim['facts'][0]['fact']}" in text
    assert "score 1.00\n" in text
    assert "For PASS" not in text


def test_a_quotation_that_differs_is_shown_beside_what_stands_there() -> None:
    found, text = explained(one_digit_off())
    [claim] = found["claims"]
    assert claim["bindings"][0]["status"] == "fail"
    assert claim["bindings"][0]["nearest_miss"]["difference"] == "digit"
    assert 'nearest (digit differs): hikaricp_connections_active{pool="payments-pool"} last=20 max=20' in text
    failed = {rule["rule"] for rule in claim["rules"] if rule["result"] == "failed"}
    assert failed == {"evidence.excerpt_mismatch", "claim.number_absent", "claim.identifier_absent"}
    for rule in failed:
        assert f"  failed {rule}: " in text
        assert f"  - c1: {rule}: " in text
    assert f"REJECT, score 1.00 ({SCORE_NOTE})" in text
    assert "  from the facts PASS, from the model PASS" in text
    assert "  capped at REJECT by gate: " in text


def test_what_pass_would_need_is_said_in_words() -> None:
    found, text = explained(one_digit_off())
    assert "an attempt must be accepted: each fault above mended before the attempts run out" in found["for_pass"]
    assert "capped at LOW_CONFID by repair: the attempts to mend the answer ran out" in text
    assert "exhausted" not in text


@pytest.mark.parametrize(
    ("label", "verdict", "says"),
    [
        ("contradicted", "REJECT", "the evidence contradicts “{fact}”: leave it out, or say what the lines show"),
        ("no_evidence", "LOW_CONFID", "a line must show “{fact}”: none does"),
    ],
)
def test_a_fact_that_lowers_the_verdict_is_named(label: str, verdict: str, says: str) -> None:
    found, text = explained(labelled(label, verdict))
    [claim] = found["claims"]
    wanted = says.format(fact=claim["facts"][0]["fact"])
    assert found["verdict"] == verdict
    assert wanted in claim["for_pass"]
    assert f"  - c1: {wanted}" in text


def test_only_the_claim_that_was_asked_for_is_explained_and_an_unknown_one_is_told() -> None:
    state = played(example())
    assert [claim["claim_id"] for claim in explain(state, state.turns[-1], "c1")["claims"]] == ["c1"]
    with pytest.raises(KeyError):
        explain(state, state.turns[-1], "c9")


def test_every_cap_that_the_runtime_sets_has_its_words() -> None:
    statuses = ("malformed", "truncated", "refused", "empty")
    caps = [
        {"source": "repair", "cap": "LOW_CONFID", "reason": "exhausted"},
        {"source": "repair", "cap": "LOW_CONFID", "reason": "not_repairable"},
        *({"source": "parse", "cap": "LOW_CONFID", "reason": f"executor_output_{status}"} for status in statuses),
        {"source": "parse", "cap": "LOW_CONFID", "reason": "verifier_malformed"},
        {"source": "found", "cap": "LOW_CONFID", "reason": "found_bindings"},
        {"source": "model", "cap": "REJECT", "reason": "the model's own verdict is worse than PASS"},
        BORROWED.model_dump(),
    ]
    for cap in caps:
        assert " " in cap_told(cap)
        assert "must" in cap_lifted(cap)
        assert "_" not in cap_told(cap) + cap_lifted(cap).replace("LOW_CONFID", "")


def test_one_wrong_digit_is_one_reason_with_the_quotation_first() -> None:
    lines = list(reasons(report(one_digit_off())))
    assert len([line for line in lines if line.startswith("[c1]")]) == 1
    assert lines[0].startswith("[c1] evidence.excerpt_mismatch: the excerpt is not in record")
    assert lines[0].endswith("(with it: claim.number_absent, claim.identifier_absent)")
    assert lines[1] == "LOW_CONFID at best: the attempts to mend the answer ran out, and the last one was not accepted"


def test_what_the_evidence_contradicts_is_named_to_people_and_not_in_the_response() -> None:
    found = report(labelled("contradicted", "REJECT"))
    checked = found["verifier_evaluation"]["facts_checked"][0]
    fact = checked["fact"]
    assert checked["detail"]
    assert list(reasons(found)) == [f"[c1] the evidence contradicts: {fact} ({checked['detail']})"]
    assert fact not in found["response"]["text"]


def test_a_fact_that_is_supported_only_indirectly_is_a_reason_for_low_confid() -> None:
    found = report(labelled("indirect_support", "LOW_CONFID"))
    fact = found["verifier_evaluation"]["facts_checked"][0]["fact"]
    assert next(reasons(found)).startswith(f"[c1] the lines support it only indirectly: {fact}")


def test_a_score_says_that_caps_never_change_it_only_where_one_lowered_the_verdict() -> None:
    assert score_told(report(example())) == "1.00"
    assert list(reasons(report(example()))) == []
    assert score_told(report(one_digit_off())) == f"1.00 ({SCORE_NOTE})"
    assert score_told(report(labelled("contradicted", "REJECT"))) == "0.00"


def test_an_unreadable_answer_is_told_in_words() -> None:
    case = example()
    case["rounds"][0]["executor_output"] = ["no JSON at all", "none again"]
    found, text = explained(case)
    assert "the answer must be readable: it was malformed" in found["for_pass"]
    assert found["claims"] == []
    assert "None" not in text


def test_every_kind_of_turn_can_be_explained() -> None:
    found, text = explained(long_case())
    assert found["turn"] == 1
    assert text.startswith(f"{found['session']}, turn 1: {found['verdict']}")
