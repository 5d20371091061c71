"""The verdict algebra: from labels to a verdict, and how bounds lower it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.verdicts import caps_for, derive, effective, score, worst
from streams.contract import VERDICT_ORDER, Cap, Fact, GateResult, Notice
from tests.bench.verdict_algebra import LABELS, judged_outcome, multisets, points, product_outcome, reference, worse

DIRECT, INDIRECT, GAP, FALSE = LABELS


def facts(*labels: str, critical: bool = True) -> list[Fact]:
    return [Fact(fact="the pool is full", is_critical=critical, verification=label) for label in labels]


@pytest.mark.scenario("VER-1", "VER-2", "VER-3", "VER-4", "VER-6", "OUT-5")
@pytest.mark.parametrize(
    ("labels", "verdict", "number"),
    [
        ([DIRECT], "PASS", 1.0),
        ([DIRECT, INDIRECT], "PASS", 0.8),
        ([DIRECT, INDIRECT, INDIRECT], "PASS", 0.7333),
        ([INDIRECT], "LOW_CONFID", 0.6),
        ([INDIRECT, INDIRECT], "LOW_CONFID", 0.6),
        ([DIRECT] * 9 + [GAP], "LOW_CONFID", 0.9),
        ([DIRECT, DIRECT, GAP], "LOW_CONFID", 0.6667),
        ([GAP], "LOW_CONFID", 0.0),
        ([DIRECT] * 9 + [FALSE], "REJECT", 0.0),
        ([GAP, FALSE], "REJECT", 0.0),
        ([], "LOW_CONFID", 0.0),
    ],
)
def test_labels_give_the_verdict_and_the_score(labels: list[str], verdict: str, number: float) -> None:
    assert derive(facts(*labels)) == verdict
    assert score(facts(*labels)) == number


@pytest.mark.scenario("VER-1", "VER-6")
@given(st.lists(st.sampled_from(LABELS)), st.lists(st.sampled_from(LABELS)))
def test_facts_that_are_not_critical_change_nothing(critical: list[str], asides: list[str]) -> None:
    judged = facts(*critical) + facts(*asides, critical=False)
    assert derive(judged) == derive(facts(*critical))
    assert score(judged) == score(facts(*critical))


@pytest.mark.scenario("OUT-5")
@given(st.lists(st.sampled_from(LABELS), max_size=500))
def test_the_score_is_a_number_from_0_to_1_with_four_decimals(labels: list[str]) -> None:
    number = score(facts(*labels))
    assert 0.0 <= number <= 1.0
    assert number == round(number, 4)


def gate(severity: str, **changes: object) -> GateResult:
    return GateResult(status="pass" if severity == "none" else "fail", severity=severity, **changes)


@pytest.mark.scenario("GAT-8", "GAT-9", "EXE-3", "REP-10", "OUT-2")
@pytest.mark.parametrize(
    ("given_caps", "source", "bound", "reason"),
    [
        (
            (gate("reject", failed_rules=("evidence.raw_path",)), None, "valid", "valid"),
            "gate",
            "REJECT",
            "evidence.raw_path",
        ),
        (
            (gate("low_confid", failed_rules=("claim.no_binding",)), None, "valid", "valid"),
            "gate",
            "LOW_CONFID",
            "claim.no_binding",
        ),
        ((gate("none"), "exhausted", "valid", "valid"), "repair", "LOW_CONFID", "exhausted"),
        ((gate("none"), "not_repairable", "valid", "valid"), "repair", "LOW_CONFID", "not_repairable"),
        ((gate("none"), None, "truncated", "valid"), "parse", "LOW_CONFID", "executor_output_truncated"),
        ((gate("none"), None, "valid", "malformed"), "parse", "LOW_CONFID", "verifier_malformed"),
        ((gate("none"), None, "valid", "valid", True), "found", "LOW_CONFID", "found_bindings"),
    ],
)
def test_each_bound_is_one_cap_with_its_reason(given_caps: tuple, source: str, bound: str, reason: str) -> None:
    (cap,) = caps_for(*given_caps)
    assert (cap.source, cap.cap) == (source, bound)
    assert cap.reason == reason
    assert effective("PASS", "PASS", [cap]) == bound


def test_without_a_bound_there_is_no_cap_and_a_repaired_wrapper_is_none() -> None:
    assert caps_for(gate("none"), None, "repaired_wrapper", "valid") == ()
    assert effective("PASS", "PASS", ()) == "PASS"


def test_a_rule_that_could_not_run_is_named_in_the_gates_cap() -> None:
    not_run = gate("low_confid", errors=(Notice(rule="answer.identifier_absent", message="no evidence text"),))
    assert caps_for(not_run, None, "valid", "valid")[0].reason == "answer.identifier_absent not run"


def test_the_gates_cap_names_every_broken_rule_and_its_severity_where_no_rule_is_named() -> None:
    not_run = Notice(rule="answer.identifier_absent", message="no evidence text")
    both = gate("reject", failed_rules=("evidence.raw_path", "claim.no_binding"), errors=(not_run,))
    (cap,) = caps_for(both, None, "valid", "valid")
    assert cap.reason == "evidence.raw_path, claim.no_binding, answer.identifier_absent not run"
    assert caps_for(gate("low_confid"), None, "valid", "valid")[0].reason == "severity low_confid"


def test_the_worst_of_nothing_is_a_pass() -> None:
    assert worst() == "PASS"


@pytest.mark.scenario("VER-7")
@given(
    st.sampled_from(VERDICT_ORDER),
    st.none() | st.sampled_from(VERDICT_ORDER),
    st.lists(st.sampled_from(VERDICT_ORDER)),
)
def test_what_counts_is_the_worst_and_never_better_than_any_input(derived: str, model: str | None, caps: list) -> None:
    given_caps = [Cap(source="gate", cap=cap, reason="x") for cap in caps]
    counts = VERDICT_ORDER.index(effective(derived, model, given_caps))
    inputs = [derived, *([model] if model else []), *caps]
    assert counts == max(VERDICT_ORDER.index(v) for v in inputs)
    assert worst(*inputs) == VERDICT_ORDER[counts]


def test_the_algebra_equals_the_reference_table_and_is_monotone() -> None:
    for point in points(tuple(multisets(2))):
        outcome = product_outcome(point)
        assert outcome == reference(point), point
        for step in worse(point):
            after = product_outcome(step)
            assert after.effective >= outcome.effective
            assert after.derived >= outcome.derived
            assert after.score <= outcome.score


def test_the_whole_judgement_equals_the_reference_table() -> None:
    for point in points(tuple(multisets(1))):
        if point.model is not None and point.round == "first" and point.parse == "valid":
            assert judged_outcome(point) == reference(point), point
