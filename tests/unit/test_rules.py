"""Rule scoring: ruling 17, part by part."""

from __future__ import annotations

import pytest

from handlers.rules import evaluate
from streams.contract import Action, Binding, BindingResult, Claim, Contract, EvidenceRef, GateResult, RetrievalDetails
from streams.events import ToolInvoked


def call(invocation_id: str, tool: str = "query_logs", *paths: str, **more: object) -> ToolInvoked:
    refs = tuple(EvidenceRef(raw_path=path, text="max=20") for path in paths)
    details = {"retrieval_details": RetrievalDetails(evidence_refs=refs)}
    return ToolInvoked(invocation_id=invocation_id, tool_name=tool, **(details | more))  # type: ignore[arg-type]


def contract(*claims: tuple[str, int], actions: int = 0) -> Contract:
    bound = Binding(tool_name="query_logs", source_invocation_id="101", raw_path="lines[0]", evidence_excerpt="max=20")
    return Contract(
        answer_version="executor_evidence_v2",
        claims=tuple(
            Claim(claim_id=name, claim_text="max is 20", support_level="direct", evidence_bindings=(bound,) * count)
            for name, count in claims
        ),
        recommended_actions=(Action(evidence_bindings=(Binding(evidence_excerpt="max=20"),) * actions),)
        if actions
        else (),
    )


def gate(confirmed: tuple[str, ...], passing: tuple[str, ...]) -> GateResult:
    return GateResult(
        status="pass",
        severity="none",
        confirmed_claims=confirmed,
        checked_bindings=tuple(
            BindingResult(claim_id=name, index=0, status="pass" if name in passing else "fail", severity="none")
            for name in confirmed
        ),
    )


def test_every_part_is_weighted_and_stored_with_its_inputs() -> None:
    calls = (call("101", "query_logs", "lines[0]"), call("102", "query_metrics"))
    found = evaluate(contract(("c1", 1), ("c2", 1), actions=2), gate(("c1", "c2"), ("c1",)), None, calls)
    assert (found.coverage, found.precision, found.diversity, found.yield_) == (0.5, 0.5, 0.5, 0.5)
    assert found.score == 0.5
    assert found.weights == {"coverage": 0.4, "precision": 0.2, "diversity": 0.2, "yield": 0.2}
    assert found.inputs["claims_with_passing_binding"] == ["c1"]
    assert found.inputs["evidence_calls_with_hit"] == 1
    assert found.reason is None


def test_a_perfect_answer_scores_one() -> None:
    found = evaluate(contract(("c1", 1)), gate(("c1",), ("c1",)), None, (call("101", "query_logs", "lines[0]"),))
    assert found.score == 1.0


@pytest.mark.parametrize(("ids", "precision"), [(("101",), 1.0), (("101", "102"), 0.0), ((), 0.0)])
def test_one_plural_id_is_precise_like_the_singular(ids: tuple[str, ...], precision: float) -> None:
    bound = Binding(tool_name="query_logs", source_invocation_ids=ids, raw_path="lines[0]", evidence_excerpt="max=20")
    said = Claim(claim_id="c1", claim_text="max is 20", support_level="direct", evidence_bindings=(bound,))
    given = Contract(answer_version="executor_evidence_v1", claims=(said,))
    assert (
        evaluate(given, gate(("c1",), ("c1",)), None, (call("101", "query_logs", "lines[0]"),)).precision == precision
    )


@pytest.mark.parametrize("given", [None, contract()])
def test_without_claims_the_score_is_zero_with_a_reason(given: Contract | None) -> None:
    found = evaluate(given, gate((), ()), None, (call("101", "query_logs", "lines[0]"),))
    assert found.score == 0.0
    assert found.reason == "no_claims"
    assert found.yield_ == 1.0


def test_diversity_is_taken_over_the_planned_tools() -> None:
    calls = (call("101", "query_logs", "lines[0]"), call("102", "query_state", "lines[0]"))
    planned = ("query_logs", "query_metrics", "lookup_knowledge")
    found = evaluate(contract(("c1", 1)), gate(("c1",), ("c1",)), planned, calls)
    assert found.diversity == 0.3333
    assert found.inputs["tools_with_hit"] == ["query_logs"]


def test_helpers_count_neither_as_calls_nor_as_planned_tools() -> None:
    calls = (call("101", "query_logs", "lines[0]"), call("1", "current_time", "now", evidence_kind="helper"))
    found = evaluate(contract(("c1", 1)), gate(("c1",), ("c1",)), ("query_logs", "current_time"), calls)
    assert (found.diversity, found.yield_) == (1.0, 1.0)


def test_a_plan_without_tools_gives_no_diversity() -> None:
    found = evaluate(contract(("c1", 1)), gate(("c1",), ("c1",)), (), (call("101", "query_logs", "lines[0]"),))
    assert found.diversity == 0.0


@pytest.mark.parametrize(
    ("given", "hit"),
    [
        (call("1", "query_logs", "lines[0]"), True),
        (call("1", "query_logs", "summary"), False),
        (call("1", "query_logs", "error", status="error"), False),
        (call("1", "query_logs", status="no_data"), False),
    ],
)
def test_an_empty_search_and_a_failed_call_yield_nothing(given: ToolInvoked, hit: bool) -> None:
    assert evaluate(None, gate((), ()), None, (given,)).yield_ == float(hit)
