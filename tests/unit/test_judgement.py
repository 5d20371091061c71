"""The judgement: what the runtime makes of the model's facts, and what it adds itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers import gatekeeper
from handlers.judgement import JudgementInput, judge, verifier_input
from handlers.replies import ParsedVerdict, parse_verdict
from streams.contract import VERDICT_ORDER, BindingResult, Fact, GateResult, Notice, VerifierEvaluation
from tests.pool_case import (
    CLAIMS,
    FACTS,
    POOL_LINE,
    POOL_METRIC,
    QUESTION,
    call,
    claim,
    contract,
    fact,
    gate,
    rests_on,
    text,
    trace,
    verdict,
)

MALFORMED = ParsedVerdict("malformed", "verdict: Field required")


def judged(
    facts: Any = FACTS, said: str = "PASS", rests: JudgementInput | None = None, **reply: Any
) -> VerifierEvaluation:
    parsed = parse_verdict(text(verdict(facts, said, **reply)))
    assert parsed.status == "valid", parsed.error
    return judge(rests or rests_on(), parsed)


def added_by(evaluation: VerifierEvaluation) -> list[str | None]:
    return [note.added_by for note in evaluation.fact_notes]


def by_runtime(evaluation: VerifierEvaluation, *labels: str) -> list[Fact]:
    """The facts that the runtime added, of these labels or of any."""
    noted = zip(evaluation.facts_checked, added_by(evaluation), strict=True)
    return [fact for fact, by in noted if by == "runtime" and (not labels or fact.verification in labels)]


def one_claim(kind: str = "observation", **gate_changes: Any) -> JudgementInput:
    passed = gate().checked_bindings[:1]
    given = {"checked_bindings": passed, "confirmed_claims": ("c1",), **gate_changes}
    return rests_on(text(contract([{**CLAIMS[0], "claim_type": kind}])), gate=gate(**given))


@pytest.mark.scenario("VER-1", "OUT-1", "SEV-6")
def test_supported_claims_pass_and_the_evaluation_holds_all_it_rests_on() -> None:
    evaluation = judged(groundedness_score=0.2, critical_fact_count=9)
    assert (evaluation.verdict, evaluation.effective_verdict, evaluation.derived_verdict) == ("PASS",) * 3
    assert evaluation.model_verdict == "PASS"
    assert (evaluation.groundedness_score, evaluation.critical_fact_count) == (1.0, 2)
    assert (evaluation.model_score, evaluation.model_critical_fact_count) == (0.2, 9)
    assert (evaluation.caps, evaluation.reasons, evaluation.rationale) == ((), (), "两条都有原文")
    assert evaluation.traceability_version == "trace_summary_v1"
    assert evaluation.tool_trace_summary == trace()
    assert evaluation.gatekeeper_result == gate()
    assert evaluation.executor_output_parse_status == "valid"
    assert evaluation.executor_structured_output == contract()
    assert evaluation.executor_final_answer == "payment-service 的连接池已耗尽。"


@pytest.mark.scenario("VER-7")
def test_a_worse_model_verdict_counts_and_is_recorded() -> None:
    evaluation = judged(said="REJECT")
    assert (evaluation.derived_verdict, evaluation.effective_verdict) == ("PASS", "REJECT")
    assert [(cap.source, cap.cap) for cap in evaluation.caps] == [("model", "REJECT")]
    assert any(r.startswith("verdict_mismatch") for r in evaluation.reasons)
    assert evaluation.groundedness_score == 1.0


@pytest.mark.scenario("VER-7", "VER-4")
def test_a_better_model_verdict_does_not_count_and_is_recorded() -> None:
    evaluation = judged([fact(claim_id="c1", label="contradicted"), FACTS[1]])
    assert (evaluation.derived_verdict, evaluation.effective_verdict) == ("REJECT", "REJECT")
    assert (evaluation.groundedness_score, evaluation.caps) == (0.0, ())
    assert any(r.startswith("verdict_mismatch") for r in evaluation.reasons)


@pytest.mark.scenario("GAT-8", "GAT-9")
@pytest.mark.parametrize(("severity", "counts"), [("reject", "REJECT"), ("low_confid", "LOW_CONFID")])
def test_the_gate_bounds_a_model_that_says_pass(severity: str, counts: str) -> None:
    evaluation = judged(rests=rests_on(gate=gate(status="fail", severity=severity)))
    assert (evaluation.derived_verdict, evaluation.model_verdict, evaluation.effective_verdict) == (
        "PASS",
        "PASS",
        counts,
    )
    assert [cap.source for cap in evaluation.caps] == ["gate"]
    assert evaluation.groundedness_score == 1.0


@pytest.mark.scenario("VER-6")
def test_without_a_critical_fact_the_score_is_0_and_the_reason_is_recorded() -> None:
    evaluation = judged([fact(is_critical=False)], rests=rests_on(text(contract([])), gate=gate(confirmed_claims=())))
    assert (evaluation.effective_verdict, evaluation.groundedness_score) == ("LOW_CONFID", 0.0)
    assert "no_critical_facts" in evaluation.reasons


# Claims and their facts


@pytest.mark.scenario("VER-8")
@pytest.mark.parametrize(
    "said",
    [
        fact("something else", claim_id="c1", evidence_refs=[]),
        fact(f"  {CLAIMS[0]['claim_text']}。", evidence_refs=[]),
        fact("the pool waits", evidence_refs=["trace-101"]),
        fact("the pool waits", claim_id="c9", evidence_refs=["trace-101"]),
    ],
)
def test_a_fact_belongs_to_a_claim_by_id_else_text_else_invocation(said: dict) -> None:
    evaluation = judged([said], rests=one_claim())
    (settled,) = evaluation.facts_checked
    assert settled.claim_id == "c1"
    assert [r.trace_ref for r in settled.evidence_refs] == ["trace-101"]
    assert evaluation.effective_verdict == "PASS"


@pytest.mark.scenario("VER-8")
@pytest.mark.parametrize("facts", [[FACTS[0]], [FACTS[0], {**FACTS[1], "is_critical": False}]])
def test_a_claim_without_a_critical_fact_gets_one_that_says_no_evidence(facts: list[dict]) -> None:
    evaluation = judged(facts)
    added = evaluation.facts_checked[-1]
    assert (added.claim_id, added.verification, added.is_critical) == ("c2", "no_evidence", True)
    assert (added.fact, added_by(evaluation)[-1]) == (CLAIMS[1]["claim_text"], "runtime")
    assert (evaluation.effective_verdict, evaluation.groundedness_score) == ("LOW_CONFID", 0.5)
    assert evaluation.critical_fact_count == 2
    assert any("claim_passed_over" in r for r in evaluation.reasons)


@pytest.mark.scenario("VER-8")
def test_one_fact_stands_for_one_claim_only() -> None:
    both = [claim("c1", "连接等待超时"), claim("c2", "连接池已满")]
    passed = tuple(b.model_copy(update={"source_invocation_id": "101"}) for b in gate().checked_bindings)
    rests = rests_on(text(contract(both)), gate=gate(checked_bindings=passed))
    assert judged([fact("连接池已满了")], rests=rests).facts_checked[-1].claim_id == "c1"
    assert judged([fact("它等待连接"), fact("池子满")], rests=rests).effective_verdict == "PASS"


@pytest.mark.scenario("VER-8")
def test_claims_with_the_same_id_each_want_a_fact() -> None:
    rests = rests_on(text(contract([CLAIMS[0], {**CLAIMS[1], "claim_id": "c1"}])), gate=gate(confirmed_claims=("c1",)))
    assert judged([FACTS[0]], rests=rests).effective_verdict == "LOW_CONFID"
    assert judged([FACTS[0], {**FACTS[1], "claim_id": "c1"}], rests=rests).effective_verdict == "PASS"


def test_a_claim_that_is_not_confirmed_wants_no_fact_but_a_critical_one_counts() -> None:
    rests = rests_on(gate=gate(confirmed_claims=("c1",)))
    assert judged([FACTS[0]], rests=rests).effective_verdict == "PASS"
    unproven = fact("未确认", "no_evidence", claim_id="c2", evidence_refs=[])
    assert judged([FACTS[0], unproven], rests=rests).effective_verdict == "LOW_CONFID"


def test_a_fact_about_an_action_keeps_its_refs_and_is_about_no_claim() -> None:
    bound = BindingResult(claim_id="action-0", index=0, status="pass", severity="none", source_invocation_id="102")
    rests = one_claim(checked_bindings=(gate().checked_bindings[0], bound))
    said = fact("重启不是必要的", claim_id="action-0", evidence_refs=[])
    settled = judged([FACTS[0], said], rests=rests).facts_checked[1]
    assert settled.claim_id is None
    assert [r.trace_ref for r in settled.evidence_refs] == ["trace-102"]


# Refs


@pytest.mark.scenario("AUD-1")
def test_a_facts_refs_keep_the_trace_items_invocations() -> None:
    settled = judged([fact(evidence_refs=["trace-102", {"trace_ref": "trace-101"}], claim_id="c1")]).facts_checked[0]
    assert [(r.trace_ref, r.source_invocation_ids) for r in settled.evidence_refs] == [
        ("trace-101", ("101",)),
        ("trace-102", ("102",)),
    ]


@pytest.mark.scenario("AUD-2")
@pytest.mark.parametrize("refs", [["trace-999"], [], [{"trace_ref": "101"}]])
@pytest.mark.parametrize("label", ["direct_evidence", "indirect_support"])
def test_a_supporting_fact_without_any_ref_counts_as_no_evidence(label: str, refs: list) -> None:
    said = fact("nobody claimed this", label, evidence_refs=refs)
    evaluation = judged([*FACTS, said])
    settled = evaluation.facts_checked[2]
    assert (settled.verification, settled.evidence_refs) == ("no_evidence", ())
    assert evaluation.effective_verdict == "LOW_CONFID"
    assert any("counts as no_evidence" in r for r in evaluation.fact_notes[2].recorded)
    assert any("ref_dropped" in r for r in evaluation.reasons) is bool(refs)


@pytest.mark.scenario("AUD-2")
@pytest.mark.parametrize("said", [fact("x", "contradicted", evidence_refs=["trace-9"]), fact("x", fabricated=True)])
def test_a_contradicted_or_fabricated_fact_keeps_its_label_without_refs(said: dict) -> None:
    evaluation = judged([*FACTS, {**said, "evidence_refs": ["trace-9"]}])
    assert evaluation.facts_checked[2].verification == "contradicted"
    assert evaluation.effective_verdict == "REJECT"


@pytest.mark.scenario("AUD-2")
def test_a_fact_about_a_claim_first_gets_the_refs_of_its_verified_bindings() -> None:
    evaluation = judged([{**FACTS[0], "evidence_refs": ["trace-9"]}, {**FACTS[1], "evidence_refs": []}])
    assert [f.evidence_refs[0].trace_ref for f in evaluation.facts_checked] == ["trace-101", "trace-102"]
    assert evaluation.effective_verdict == "PASS"


@pytest.mark.scenario("AUD-2", "GAT-12")
def test_a_failed_binding_gives_no_ref_and_relabels_nothing() -> None:
    failed = gate().checked_bindings[0].model_copy(update={"status": "fail", "severity": "reject"})
    bound = gate(status="fail", severity="reject", checked_bindings=(failed, gate().checked_bindings[1]))
    rests = rests_on(gate=bound)
    assert judged(rests=rests).facts_checked[0].verification == "direct_evidence"
    without = judged([{**FACTS[0], "evidence_refs": []}, FACTS[1]], rests=rests)
    assert without.facts_checked[0].verification == "no_evidence"


# Labels


@pytest.mark.scenario("OUT-4")
@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("observation", "direct_evidence"),
        ("negative_observation", "direct_evidence"),
        ("root_cause", "indirect_support"),
        ("impact", "indirect_support"),
        ("other", "indirect_support"),
    ],
)
def test_direct_observation_reads_by_the_claims_type(kind: str, label: str) -> None:
    said = fact(label="direct_observation", claim_id="c1")
    settled = judged([said], rests=one_claim(kind)).facts_checked[0]
    assert (settled.verification, settled.derivability) == (label, "direct_observation")


@pytest.mark.scenario("OUT-4")
def test_direct_observation_about_no_claim_is_indirect() -> None:
    said = fact("x", "direct_observation")
    settled = judged([said], rests=rests_on("连接池已耗尽")).facts_checked[0]
    assert settled.verification == "indirect_support"


@pytest.mark.scenario("VER-5")
def test_a_fabricated_fact_is_always_critical_and_contradicted() -> None:
    evaluation = judged([*FACTS, fact("error 4711", is_critical=False, fabricated=True)])
    settled = evaluation.facts_checked[2]
    assert (settled.is_critical, settled.verification, settled.fabricated) == (True, "contradicted", True)
    assert (evaluation.effective_verdict, evaluation.groundedness_score) == ("REJECT", 0.0)


@pytest.mark.scenario("GAT-12", "EXE-8")
@pytest.mark.parametrize("rule", ["claim.knowledge_only", "claim.causal_unsupported"])
@pytest.mark.parametrize("label", ["direct_evidence", "direct_observation"])
def test_some_claim_rules_bound_the_facts_of_their_claim(rule: str, label: str) -> None:
    said = [fact(label=label, claim_id="c1"), FACTS[1]]
    evaluation = judged(said, rests=rests_on(gate=gate(claim_rules={"c1": (rule,)})))
    assert [f.verification for f in evaluation.facts_checked] == ["indirect_support", "direct_evidence"]
    assert evaluation.groundedness_score == 0.8


@pytest.mark.parametrize("label", ["no_evidence", "contradicted", "indirect_support"])
def test_a_bound_never_raises_a_label(label: str) -> None:
    rests = rests_on(gate=gate(claim_rules={"c1": ("claim.causal_unsupported",)}))
    assert judged([fact(label=label, claim_id="c1")], rests=rests).facts_checked[0].verification == label


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("rule", "severity", "contradicts"),
    [
        ("answer.identifier_absent", "reject", True),
        ("answer.identifier_absent", None, True),
        ("claim.identifier_absent", "reject", True),
        ("claim.identifier_absent", "low_confid", False),
        ("claim.number_absent", "low_confid", False),
    ],
)
@pytest.mark.parametrize("reply", [parse_verdict(text(verdict())), MALFORMED])
def test_an_identifier_in_no_evidence_adds_a_critical_contradicted_fact(
    rule: str, severity: str | None, contradicts: bool, reply: ParsedVerdict
) -> None:
    found = Notice(rule=rule, claim_id="c1", message="ledger-db-9 is in no evidence", severity=severity)
    bound = gate(status="fail", severity=severity or "reject", failed_rules=(rule,), failures=(found,))
    evaluation = judge(rests_on(gate=bound), reply)
    added = [f for f in evaluation.facts_checked if f.verification == "contradicted"]
    assert added == by_runtime(evaluation, "contradicted")
    assert len(added) == contradicts
    if contradicts:
        assert (evaluation.derived_verdict, evaluation.groundedness_score) == ("REJECT", 0.0)
        assert added[0].is_critical
        assert "ledger-db-9" in added[0].fact


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("named", "contradicted"),
    [
        ("ledger-db-7f9c4d-x2x1z 拒绝连接 30000ms", True),
        ("HikariPool-1 拒绝 ERR-4711 连接 30000ms", True),
        ("HikariPool-1 等待 30000ms", False),
    ],
)
def test_the_real_gates_finding_of_an_invented_identifier_contradicts(named: str, contradicted: bool) -> None:
    answer = rests_on(text(contract([claim("c1", named)], user_facing_answer="连接池已耗尽。")))
    result = gatekeeper.judge(
        gatekeeper.GateInput(QUESTION, "valid", answer.contract, ("连接池已耗尽。",), invocations=(call("101"),))
    )
    evaluation = judged([fact(named, claim_id="c1")], rests=replace(answer, gate=result))
    labels = [f.verification for f in by_runtime(evaluation)]
    assert labels == ["contradicted"] * contradicted
    assert evaluation.effective_verdict == ("REJECT" if contradicted else "PASS")


# What the Verifier has to label


@pytest.mark.scenario("EXE-5", "REP-10")
@pytest.mark.parametrize("kind", ["extra_facts", "missing_claims"])
@pytest.mark.parametrize(
    ("said", "gaps"),
    [
        ([], 1),
        ([fact("从 10:09 开始，共 516 次超时", evidence_refs=["trace-101"])], 0),
        ([fact("回答说：从 10:09 开始，共 516 次超时。", evidence_refs=["trace-101"])], 0),
        ([fact("从 10:09 开始，共 516 次超时", is_critical=False)], 1),
        ([fact("共 516 次超时")], 1),
    ],
)
def test_what_the_verifier_passes_over_is_a_critical_gap(kind: str, said: list[dict], gaps: int) -> None:
    evaluation = judged([*FACTS, *said], rests=rests_on(**{kind: ("从 10:09 开始，共 516 次超时",)}))
    added = by_runtime(evaluation)
    assert [(f.is_critical, f.verification) for f in added] == [(True, "no_evidence")] * gaps
    assert evaluation.effective_verdict == ("LOW_CONFID" if gaps else "PASS")


@pytest.mark.scenario("REP-10")
@pytest.mark.parametrize("named", ["c2", CLAIMS[1]["claim_text"]])
def test_a_missing_claim_of_the_answer_is_labelled_by_the_fact_about_it(named: str) -> None:
    rests = rests_on(missing_claims=(named,), repair_reason="exhausted")
    evaluation = judged([FACTS[0], {**FACTS[1], "fact": "the pool is at 20 of 20"}], rests=rests)
    assert added_by(evaluation) == [None, None]
    assert [(cap.source, cap.reason) for cap in evaluation.caps] == [("repair", "exhausted")]
    passed_over = judged([FACTS[0]], rests=rests)
    assert added_by(passed_over) == [None, "runtime"]


@pytest.mark.scenario("EXE-5")
def test_a_fact_about_an_extra_sentence_does_not_stand_for_a_claim() -> None:
    rests = rests_on(text(contract([CLAIMS[0]])), gate=gate(confirmed_claims=("c1",)), extra_facts=("共 516 次超时",))
    evaluation = judged([fact("共 516 次超时", evidence_refs=["trace-101"])], rests=rests)
    assert [f.claim_id for f in evaluation.facts_checked] == [None, "c1"]
    assert evaluation.effective_verdict == "LOW_CONFID"


# Malformed on either side


@pytest.mark.scenario("OUT-2")
def test_a_malformed_verifier_leaves_only_the_runtimes_facts() -> None:
    evaluation = judge(rests_on(extra_facts=("共 516 次超时",)), MALFORMED)
    assert set(added_by(evaluation)) == {"runtime"}
    assert len(evaluation.facts_checked) == 3
    assert (evaluation.model_verdict, evaluation.groundedness_score) == (None, 0.0)
    assert (evaluation.effective_verdict, evaluation.verifier_parse_status) == ("LOW_CONFID", "malformed")
    assert [(cap.source, cap.cap, cap.reason) for cap in evaluation.caps] == [
        ("parse", "LOW_CONFID", "verifier_malformed")
    ]
    assert "Field required" in evaluation.reasons[0]
    assert evaluation.rationale == "no usable reply of the Verifier: verdict: Field required"


@pytest.mark.scenario("EXE-3")
def test_a_malformed_answer_is_judged_from_its_prose_under_a_cap() -> None:
    rests = rests_on("<think>secret</think>payment-service 的连接池已耗尽")
    evaluation = judged([fact("连接池已耗尽")], rests=rests)
    assert evaluation.derived_verdict == "PASS"
    assert evaluation.effective_verdict == "LOW_CONFID"
    assert ("parse", "executor_output_malformed") in [(cap.source, cap.reason) for cap in evaluation.caps]
    assert evaluation.executor_output_parse_status == "malformed"
    assert evaluation.executor_structured_output is None
    assert evaluation.executor_final_answer == "payment-service 的连接池已耗尽"


def test_found_bindings_cap() -> None:
    evaluation = judged(rests=rests_on(found=True))
    assert [(cap.source, cap.cap) for cap in evaluation.caps] == [("found", "LOW_CONFID")]


# The input


@pytest.mark.scenario("INP-1", "GAT-12")
def test_the_input_is_explicit_blocks_with_each_claims_verified_records() -> None:
    failed = (
        gate()
        .checked_bindings[1]
        .model_copy(update={"status": "fail", "severity": "reject", "text": None, "lines": None})
    )
    rests = rests_on(gate=gate(checked_bindings=(gate().checked_bindings[0], failed)))
    blocks = verifier_input(rests)
    assert list(blocks) == [
        "original_query",
        "executor_final_answer",
        "executor_structured_output",
        "executor_output_parse_status",
        "gatekeeper_result",
        "claim_evidence",
        "tool_trace_summary",
    ]
    assert blocks["original_query"] == QUESTION
    assert blocks["executor_structured_output"] == contract()
    assert blocks["claim_evidence"] == [
        {
            "claim_id": "c1",
            "excerpts": [
                {
                    "trace_ref": "trace-101",
                    "source_invocation_id": "101",
                    "raw_path": "lines[0]",
                    "excerpt": POOL_LINE,
                    "lines": POOL_LINE,
                }
            ],
        },
        {"claim_id": "c2", "excerpts": []},
    ]
    assert POOL_METRIC not in text(blocks["claim_evidence"])


@pytest.mark.scenario("INP-2")
def test_retry_context_is_there_in_the_second_round_only() -> None:
    assert "retry_context" not in verifier_input(rests_on())
    assert verifier_input(rests_on(), {"critical_gaps": []})["retry_context"] == {"critical_gaps": []}


@pytest.mark.scenario("REP-10", "EXE-5")
def test_missing_claims_and_extra_facts_are_blocks_of_their_own() -> None:
    blocks = verifier_input(rests_on(missing_claims=("谁改了索引",), extra_facts=("共 516 次",)))
    assert (blocks["missing_claims"], blocks["extra_facts"]) == (["谁改了索引"], ["共 516 次"])


@pytest.mark.scenario("INP-3", "TRC-6")
def test_the_input_has_no_reasoning_and_at_most_two_kilobytes_of_lines() -> None:
    long = gate().checked_bindings[0].model_copy(update={"lines": "连" * 5000})
    rests = rests_on(
        text(contract(user_facing_answer="<think>secret</think>连接池已耗尽。")), gate=gate(checked_bindings=(long,))
    )
    blocks = verifier_input(rests)
    assert "secret" not in json.dumps(blocks)
    assert 2040 < len(blocks["claim_evidence"][0]["excerpts"][0]["lines"].encode()) <= 2048


@pytest.mark.scenario("INP-1")
def test_the_input_is_plain_json_and_says_nothing_of_what_there_is_not() -> None:
    blocks = verifier_input(rests_on())
    assert json.loads(json.dumps(blocks)) == blocks

    def values(of: Any) -> list[Any]:
        inner = of.values() if isinstance(of, dict) else of if isinstance(of, list) else ()
        return [of, *(leaf for value in inner for leaf in values(value))]

    assert None not in values([blocks["gatekeeper_result"], blocks["tool_trace_summary"]])


@pytest.mark.scenario("EXE-3", "INP-1")
def test_a_malformed_answer_is_shown_as_its_prose_without_structure_or_records() -> None:
    blocks = verifier_input(rests_on("payment-service 的连接池已耗尽"))
    assert (blocks["executor_structured_output"], blocks["claim_evidence"]) == (None, [])
    assert blocks["executor_final_answer"] == "payment-service 的连接池已耗尽"


@pytest.mark.scenario("GAT-12")
def test_a_failed_binding_hides_no_other_claims_records_and_a_claim_without_any_shows_none() -> None:
    failed = gate().checked_bindings[0].model_copy(update={"status": "fail", "severity": "reject"})
    rests = rests_on(gate=gate(checked_bindings=(failed, gate().checked_bindings[1])))
    shown = {block["claim_id"]: block["excerpts"] for block in verifier_input(rests)["claim_evidence"]}
    assert shown["c1"] == []
    assert [(found["trace_ref"], found["excerpt"]) for found in shown["c2"]] == [("trace-102", POOL_METRIC)]
    nothing = verifier_input(rests_on(gate=gate(checked_bindings=())))
    assert nothing["claim_evidence"] == [{"claim_id": "c1", "excerpts": []}, {"claim_id": "c2", "excerpts": []}]


@pytest.mark.parametrize(
    ("of_the_source", "lines"), [({"lines": None}, POOL_LINE), ({"lines": None, "text": None}, ""), ({}, POOL_LINE)]
)
def test_the_lines_shown_are_at_least_the_excerpt_and_never_the_models_words(of_the_source: dict, lines: str) -> None:
    bound = gate().checked_bindings[0].model_copy(update={**of_the_source, "source_invocation_id": None})
    (shown,) = verifier_input(one_claim(checked_bindings=(bound,)))["claim_evidence"][0]["excerpts"]
    assert (shown["lines"], shown["trace_ref"], shown["source_invocation_id"]) == (lines, None, None)


# Laws

LABELS = ["direct_evidence", "indirect_support", "no_evidence", "contradicted"]
SAID = st.builds(
    fact,
    st.sampled_from([CLAIMS[0]["claim_text"], CLAIMS[1]["claim_text"], "aside"]),
    st.sampled_from([*LABELS, "direct_observation"]),
    is_critical=st.booleans(),
    claim_id=st.sampled_from([None, "c1", "c2", "c9"]),
    evidence_refs=st.lists(st.sampled_from(["trace-101", "trace-102", "trace-9"]), max_size=2),
    fabricated=st.booleans(),
)


# Without the alias: what it reads as depends on the claim's type.
PLAIN = SAID.filter(lambda said: said["verification"] in LABELS)


@given(st.lists(PLAIN, min_size=1, max_size=5), st.sampled_from(VERDICT_ORDER), st.integers(0, 4), st.integers(1, 3))
def test_a_worse_label_never_makes_the_judgement_better(said: list[dict], model: str, k: int, steps: int) -> None:
    changed = said[k % len(said)]
    worse = LABELS[min(LABELS.index(changed["verification"]) + steps, len(LABELS) - 1)]
    before = judged(said, model)
    after = judged([{**f, "verification": worse} if f is changed else f for f in said], model)
    assert VERDICT_ORDER.index(after.effective_verdict) >= VERDICT_ORDER.index(before.effective_verdict)
    assert after.groundedness_score <= before.groundedness_score


@given(st.lists(SAID, max_size=5), st.sampled_from(VERDICT_ORDER))
def test_a_pass_always_rests_on_every_confirmed_claim_and_existing_refs(said: list[dict], model: str) -> None:
    evaluation = judged(said, model)
    known = {item.trace_ref for item in evaluation.tool_trace_summary}
    for settled in evaluation.facts_checked:
        assert {r.trace_ref for r in settled.evidence_refs} <= known
    critical = [f for f in evaluation.facts_checked if f.is_critical]
    assert {"c1", "c2"} <= {f.claim_id for f in critical}
    assert evaluation.critical_fact_count == len(critical)
    if evaluation.effective_verdict == "PASS":
        assert {f.verification for f in critical} <= {"direct_evidence", "indirect_support"}
        assert all(f.evidence_refs for f in critical)


@pytest.mark.scenario("SEV-6")
def test_an_evaluation_reads_back_from_the_log_unchanged() -> None:
    evaluation = judged([fact(claim_id="c1", label="direct_observation", evidence_refs=["trace-9"])])
    stored = evaluation.model_dump(mode="json", exclude_none=True)
    assert VerifierEvaluation.model_validate(stored) == evaluation


def test_no_gate_result_is_needed_to_be_clean() -> None:
    nothing = GateResult(status="fail", severity="low_confid", failed_rules=("claim.none_confirmed",))
    evaluation = judge(rests_on(text(contract([])), gate=nothing), parse_verdict(text(verdict([]))))
    assert (evaluation.effective_verdict, evaluation.groundedness_score) == ("LOW_CONFID", 0.0)
