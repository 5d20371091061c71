"""The Gatekeeper's table, rule by rule: what fires, how badly, in which order, and where it stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handlers.gatekeeper import GateInput, evidence_texts, judge
from streams.contract import (
    Action,
    Binding,
    Claim,
    Contract,
    EvidenceRef,
    GateResult,
    Notice,
    RetrievalDetails,
)
from streams.events import ToolInvoked
from tests.bench.gate_mutations import FAULTS, run, valid_case

GAUGE = 'hikaricp_connections_active{pool="payments-pool"} last=20 max=20'
REFUSED = 'Error from server (Forbidden): pods is forbidden: User "viewer" cannot list pods of ledger-db'
QUESTION = "is payment-service out of connections?"
UNSET: Any = object()


def call(invocation_id: str = "101", *refs: tuple[str, str], **fields: Any) -> ToolInvoked:
    given = {
        "invocation_id": invocation_id,
        "tool_name": "query_metrics",
        "retrieval_details": RetrievalDetails(evidence_refs=tuple(EvidenceRef(raw_path=p, text=t) for p, t in refs)),
    }
    return ToolInvoked(**{**given, **fields})


METRICS = call("101", ("result[0]", GAUGE))


def bind(**changed: Any) -> Binding:
    given = {
        "tool_name": "query_metrics",
        "source_invocation_id": "101",
        "raw_path": "result[0]",
        "evidence_excerpt": "last=20 max=20",
    }
    return Binding(**{**given, **changed})


def claim(*bindings: Binding, **changed: Any) -> Claim:
    given = {
        "claim_id": "c1",
        "claim_type": "observation",
        "claim_text": "the pool of payment-service is full",
        "support_level": "direct",
        "evidence_bindings": bindings,
    }
    return Claim(**{**given, **changed})


def answer(*claims: Claim, prose: str | None = None, **parts: Any) -> Contract:
    return Contract(answer_version="executor_evidence_v2", claims=claims, user_facing_answer=prose, **parts)


def judged(
    *claims: Claim, calls: tuple[ToolInvoked, ...] = (METRICS,), contract: Contract | None = UNSET, **more: Any
) -> GateResult:
    contract = answer(*claims) if contract is UNSET else contract
    prose = (contract.user_facing_answer,) if contract and contract.user_facing_answer else ()
    given = GateInput(question=QUESTION, parse_status="valid", contract=contract, prose=prose, invocations=calls)
    return judge(replace(given, **more))


def rules(binding: Binding, *, calls: tuple[ToolInvoked, ...] = (METRICS,), **more: Any) -> tuple[str, ...]:
    return judged(claim(binding), calls=calls, **more).checked_bindings[0].failed_rules


@pytest.mark.scenario("GAT-1", "GAT-10")
def test_a_precise_binding_passes_and_keeps_where_it_stands() -> None:
    result = judged(claim(bind()))
    (bound,) = result.checked_bindings
    assert (result.status, result.severity, result.failed_rules, result.warnings, result.errors) == (
        "pass",
        "none",
        (),
        (),
        (),
    )
    assert (bound.status, bound.severity, bound.tier, bound.text, bound.lines) == (
        "pass",
        "none",
        "exact",
        "last=20 max=20",
        GAUGE,
    )
    assert GAUGE[bound.start : bound.end] == bound.text
    assert bound.ref_sha256 is not None
    assert len(bound.ref_sha256) == 64
    assert result.confirmed_claims == ("c1",)


@pytest.mark.scenario("GAT-2", "GAT-14")
def test_a_missing_raw_path_is_low_and_never_invented() -> None:
    result = judged(claim(bind(raw_path=None)))
    (bound,) = result.checked_bindings
    assert (result.status, result.severity, bound.failed_rules) == (
        "fail",
        "low_confid",
        ("evidence.raw_path_missing",),
    )
    assert (bound.raw_path, bound.text, bound.lines) == (None, None, None)


@pytest.mark.scenario("GAT-3")
@pytest.mark.parametrize("details", [None, RetrievalDetails(evidence_refs=None)])
def test_old_data_without_refs_is_low(details: RetrievalDetails | None) -> None:
    result = judged(claim(bind()), calls=(call(retrieval_details=details),))
    assert (result.status, result.severity) == ("fail", "low_confid")
    assert result.checked_bindings[0].failed_rules == ("evidence.refs_missing",)


def test_both_missing_parts_are_named() -> None:
    assert rules(bind(raw_path=None), calls=(call(retrieval_details=None),)) == (
        "evidence.raw_path_missing",
        "evidence.refs_missing",
    )


@pytest.mark.scenario("GAT-4")
def test_an_unknown_raw_path_is_rejected_also_in_an_empty_list() -> None:
    for calls in ((METRICS,), (call(),)):
        result = judged(claim(bind(raw_path="result[7]")), calls=calls)
        assert (result.severity, result.checked_bindings[0].failed_rules) == ("reject", ("evidence.raw_path",))


def test_a_record_of_the_full_output_that_was_not_shown_can_be_bound() -> None:
    resolved = {("101", "result[7]"): "hikaricp_connections_pending last=43 max=43"}
    bound = bind(raw_path="result[7]", evidence_excerpt="last=43 max=43")
    result = judged(claim(bound, claim_text="43 are pending"), resolved=resolved)
    assert (result.severity, result.checked_bindings[0].lines) == (
        "none",
        "hikaricp_connections_pending last=43 max=43",
    )


@pytest.mark.scenario("GAT-5")
def test_an_excerpt_that_is_not_there_is_rejected_with_its_nearest_miss() -> None:
    result = judged(claim(bind(evidence_excerpt="last=20 max=21")))
    (bound,) = result.checked_bindings
    assert (result.severity, bound.failed_rules) == ("reject", ("evidence.excerpt_mismatch",))
    assert bound.nearest_miss is not None
    assert "last=20 max=20" in result.failures[0].message


@pytest.mark.scenario("GAT-6")
def test_an_unknown_id_is_rejected_and_nothing_else_is_said() -> None:
    bound = bind(source_invocation_id="999", tool_name="other", raw_path=None)
    assert rules(bound) == ("evidence.invocation_id",)


@pytest.mark.scenario("GAT-6")
def test_an_id_of_another_session_is_rejected_and_the_sessions_own_wins() -> None:
    bound = bind(source_invocation_id="102")
    assert rules(bound, foreign_ids=frozenset({"102"})) == ("evidence.session_scope",)
    assert rules(bind(), foreign_ids=frozenset({"101"})) == ()


@pytest.mark.scenario("GAT-7")
def test_a_tool_name_that_differs_is_rejected_and_a_missing_one_is_low() -> None:
    assert rules(bind(tool_name="query_logs")) == ("evidence.tool_name",)
    assert rules(bind(tool_name="Query_Metrics")) == ("evidence.tool_name",)
    assert judged(claim(bind(tool_name=None))).severity == "low_confid"
    assert rules(bind(tool_name=" ")) == ("evidence.tool_name_missing",)


@pytest.mark.scenario("GAT-11")
def test_the_worst_binding_counts_and_each_result_is_kept() -> None:
    result = judged(claim(bind(), bind(raw_path=None), bind(source_invocation_id="9")))
    assert [b.severity for b in result.checked_bindings] == ["none", "low_confid", "reject"]
    assert [b.index for b in result.checked_bindings] == [0, 1, 2]
    assert (result.severity, result.failed_rules) == ("reject", ("evidence.invocation_id", "evidence.raw_path_missing"))


@pytest.mark.scenario("GAT-13")
def test_the_only_call_of_a_tool_fills_in_a_missing_id_with_a_warning() -> None:
    result = judged(claim(bind(source_invocation_id=None)))
    assert (result.status, result.checked_bindings[0].source_invocation_id) == ("pass", "101")
    assert [(w.rule, w.claim_id) for w in result.warnings] == [("evidence.backfilled_invocation_id", "c1")]
    assert result.checked_bindings[0].warnings == ("evidence.backfilled_invocation_id",)


@pytest.mark.scenario("GAT-13")
def test_an_id_is_not_filled_in_when_several_calls_fit_or_none() -> None:
    twice = (METRICS, call("102", ("result[0]", GAUGE)))
    assert rules(bind(source_invocation_id=None), calls=twice) == ("evidence.invocation_id_missing",)
    assert rules(bind(source_invocation_id="", tool_name="query_logs")) == ("evidence.invocation_id_missing",)
    assert rules(bind(source_invocation_id=None, tool_name=None)) == ("evidence.invocation_id_missing",)


def test_of_an_id_recorded_twice_the_first_counts() -> None:
    later = call("101", ("result[0]", "last=21 max=21"))
    assert judged(claim(bind()), calls=(METRICS, later)).status == "pass"
    assert judged(claim(bind()), calls=(later, METRICS)).status == "fail"


def test_any_text_under_a_repeated_path_may_hold_the_excerpt() -> None:
    calls = (call("101", ("result[0]", "nothing of the kind"), ("result[0]", GAUGE)),)
    assert judged(claim(bind()), calls=calls).status == "pass"


@pytest.mark.scenario("EXE-6")
def test_one_plural_id_is_read_as_the_singular_with_a_warning() -> None:
    result = judged(claim(bind(source_invocation_id=None, source_invocation_ids=("101",))))
    assert (result.status, [w.rule for w in result.warnings]) == ("pass", ["contract.plural_id"])


@pytest.mark.scenario("EXE-6")
def test_a_v1_binding_is_not_precise_and_each_of_its_ids_must_exist() -> None:
    v1 = bind(source_invocation_id=None, raw_path=None, source_type="tool_trace", source_id="trace-101")
    assert rules(v1.model_copy(update={"source_invocation_ids": ("101",)})) == ("evidence.raw_path_missing",)
    assert rules(v1.model_copy(update={"source_invocation_ids": ("101", "999")})) == ("evidence.invocation_id",)
    calls = (METRICS, call("102", ("result[0]", GAUGE)))
    assert rules(v1.model_copy(update={"source_invocation_ids": ("101", "102")}), calls=calls) == (
        "evidence.raw_path_missing",
    )
    assert rules(v1, calls=calls) == ("evidence.invocation_id_missing",)


def test_a_source_id_never_supplies_the_invocation_id() -> None:
    calls = (METRICS, call("102", ("result[0]", GAUGE)))
    bound = bind(source_invocation_id=None, source_type="tool_trace", source_id="101")
    assert rules(bound, calls=calls) == ("evidence.invocation_id_missing",)


def test_a_missing_or_blank_excerpt_is_rejected_and_ends_the_excerpt_rules() -> None:
    for excerpt in (None, "", " \t\u200b"):
        assert rules(bind(evidence_excerpt=excerpt)) == ("evidence.excerpt_missing",)


def test_a_trivial_excerpt_is_low_only_if_it_is_there() -> None:
    calls = (call("101", ("result[0]", "ERROR payments-pool is full of waiting threads")),)
    assert rules(bind(evidence_excerpt="ERROR"), calls=calls) == ("evidence.excerpt_trivial",)
    assert rules(bind(evidence_excerpt="WARN"), calls=calls) == ("evidence.excerpt_mismatch",)


def test_too_large_is_said_and_never_cut() -> None:
    assert rules(bind(evidence_excerpt="x" * 2001)) == ("evidence.too_large",)
    big = (call("101", ("result[0]", GAUGE + "\n" + "x" * 262_144)),)
    assert rules(bind(), calls=big) == ("evidence.too_large",)


def test_a_failed_call_supports_only_an_observation_of_that_failure() -> None:
    failed = (call("101", ("error", REFUSED), status="error", error=REFUSED, arguments={"pod": "ledger-db"}),)
    bound = bind(raw_path="error", evidence_excerpt="pods is forbidden: User")
    about = "listing the pods of ledger-db was forbidden"
    for text, kind, allowed in (
        (about, "observation", True),
        ("查询 ledger-db 的权限被拒绝", "observation", True),
        (about, "negative_observation", False),
        (about, "root_cause", False),
        (about, "other", False),
        ("the pool is full", "observation", False),
        ("listing failed 3 times", "observation", False),
        ("access to orders-db was refused", "observation", False),
        ("access from payment-service was refused", "observation", True),
    ):
        result = judged(claim(bound, claim_text=text, claim_type=kind), calls=failed)
        assert ("evidence.failed_invocation" not in result.failed_rules) is allowed, text


def test_no_data_is_no_failure() -> None:
    nothing = (call("101", ("summary", "hits=0 window=1h status=ok query=x"), status="no_data"),)
    bound = bind(raw_path="summary", evidence_excerpt="hits=0 window=1h")
    assert (
        judged(claim(bound, claim_type="negative_observation", claim_text="nothing was found"), calls=nothing).status
        == "pass"
    )


def test_the_error_text_of_a_call_without_refs_is_quotable_as_error() -> None:
    text = "listing the pods of ledger-db was forbidden"
    for details in (None, RetrievalDetails(evidence_refs=()), RetrievalDetails(evidence_refs=None)):
        failed = (call("101", status="error", error=REFUSED, retrieval_details=details),)
        bound = bind(raw_path="error", evidence_excerpt="pods is forbidden: User")
        assert judged(claim(bound, claim_text=text), calls=failed).status == "pass"
    assert rules(bind(raw_path="error"), calls=(call("101", retrieval_details=None),)) == ("evidence.refs_missing",)
    assert rules(bind(raw_path="error"), calls=(call("101", ("a", "b"), error="boom"),)) == ("evidence.raw_path",)


def test_the_rules_after_a_lost_path_still_run() -> None:
    failed = (call("101", status="error", error="boom", retrieval_details=None),)
    assert rules(bind(), calls=failed) == ("evidence.failed_invocation", "evidence.refs_missing")


def test_all_that_apply_fire_and_stand_sorted() -> None:
    helper = (call("101", ("summary", "hits=0 x"), status="error", evidence_kind="helper"),)
    bound = bind(tool_name="query_logs", raw_path="summary", evidence_excerpt="hits=1")
    assert rules(bound, calls=helper) == (
        "evidence.excerpt_mismatch",
        "evidence.failed_invocation",
        "evidence.helper_invocation",
        "evidence.summary_scope",
        "evidence.tool_name",
    )


def test_a_summary_supports_only_a_negative_observation() -> None:
    calls = (call("101", ("summary", "hits=0 window=1h status=ok query=E11000"), arguments={"q": "E11000"}),)
    bound = bind(raw_path="summary", evidence_excerpt="hits=0 window=1h")
    text = "no E11000 was found"
    assert judged(claim(bound, claim_type="negative_observation", claim_text=text), calls=calls).status == "pass"
    assert rules(bound, calls=calls) == ("evidence.summary_scope",)
    action = Action(action_text="go on", evidence_bindings=(bound,))
    result = judged(contract=answer(recommended_actions=(action,)), calls=calls)
    assert "evidence.summary_scope" in result.failed_rules


def test_an_echoed_query_is_no_evidence_even_when_it_is_quoted() -> None:
    calls = (call("101", ("summary", "hits=0 window=1h status=ok query=E11000 in orders-pool")),)
    bound = bind(raw_path="summary", evidence_excerpt="query=E11000 in orders-pool")
    named = claim(bound, claim_type="negative_observation", claim_text="nothing else, E11000 is in orders-pool")
    assert judged(named, calls=calls).failed_rules == ("claim.identifier_absent",)
    assert judged(named, calls=calls).severity == "reject"


@pytest.mark.scenario("EXE-8")
def test_knowledge_alone_confirms_nothing() -> None:
    knowledge = call(
        "102", ("lines[1]", "a leak fills the pool"), tool_name="lookup_knowledge", evidence_kind="knowledge"
    )
    known = bind(
        source_invocation_id="102",
        tool_name="lookup_knowledge",
        raw_path="lines[1]",
        evidence_excerpt="a leak fills the pool",
    )
    alone = judged(claim(known), calls=(METRICS, knowledge))
    assert (alone.severity, alone.failed_rules) == ("low_confid", ("claim.knowledge_only", "claim.none_confirmed"))
    assert (alone.confirmed_claims, alone.claim_rules) == ((), {"c1": ("claim.knowledge_only",)})
    assert alone.checked_bindings[0].status == "pass"
    both = judged(claim(known, bind()), calls=(METRICS, knowledge))
    assert (both.status, both.confirmed_claims) == ("pass", ("c1",))
    beside = judged(claim(known), claim(bind(), claim_id="c2"), calls=(METRICS, knowledge))
    assert (beside.failed_rules, beside.confirmed_claims) == (("claim.knowledge_only",), ("c2",))
    failing = judged(claim(known, bind(raw_path=None)), calls=(METRICS, knowledge))
    assert "claim.knowledge_only" in failing.failed_rules


@pytest.mark.scenario("EXE-4")
def test_a_claim_without_binding_or_support_is_not_confirmed() -> None:
    unbound = judged(claim(), claim(bind(), claim_id="c2"))
    assert (unbound.failed_rules, unbound.confirmed_claims) == (("claim.no_binding",), ("c2",))
    hypothesis = judged(claim(support_level="none"), claim(bind(), claim_id="c2"))
    assert (hypothesis.failed_rules, hypothesis.confirmed_claims) == ((), ("c2",))


@pytest.mark.scenario("EXE-4")
def test_the_bindings_of_a_hypothesis_are_checked_but_its_text_is_not() -> None:
    result = judged(
        claim(bind(source_invocation_id="9"), support_level="none", claim_text="77 of ORA-1"),
        claim(bind(), claim_id="c2"),
    )
    assert (result.severity, result.failed_rules) == ("reject", ("evidence.invocation_id",))


@pytest.mark.scenario("EXE-3")
def test_malformed_output_has_no_confirmed_claim_and_its_prose_is_read_only_if_it_is_prose() -> None:
    for status in ("malformed", "truncated"):
        plain = judged(contract=None, parse_status=status)
        assert (plain.severity, plain.failed_rules, plain.errors) == ("low_confid", ("claim.none_confirmed",), ())
        prose = judged(contract=None, parse_status=status, prose=("ORA-00060 did it.",))
        assert (prose.severity, prose.failed_rules) == ("reject", ("answer.identifier_absent", "claim.none_confirmed"))


def test_a_contract_of_an_unusable_answer_is_not_read() -> None:
    assert judged(claim(bind()), parse_status="malformed").checked_bindings == ()
    assert judged(claim(bind()), parse_status="repaired_wrapper").status == "pass"


@pytest.mark.scenario("VER-5")
def test_without_evidence_text_the_guard_of_the_answer_is_not_run() -> None:
    result = judged(contract=answer(prose="ORA-00060 did it."), calls=(call(retrieval_details=None),))
    assert (result.severity, result.failed_rules) == ("low_confid", ("claim.none_confirmed",))
    assert [(e.rule, e.claim_id) for e in result.errors] == [("answer.identifier_absent", None)]


@pytest.mark.scenario("VER-5")
def test_the_reject_tier_of_a_claim_is_not_run_without_evidence_text() -> None:
    result = judged(claim(bind(), claim_text="ORA-00060 occurred"), calls=(call(retrieval_details=None),))
    assert (result.severity, result.failed_rules) == (
        "low_confid",
        ("claim.identifier_absent", "evidence.refs_missing"),
    )
    assert [(e.rule, e.claim_id) for e in result.errors] == [("claim.identifier_absent", "c1")]


@pytest.mark.scenario("VER-5")
def test_arguments_helpers_and_echoes_are_no_evidence_text() -> None:
    calls = (
        call("1", ("lines[1]", "a line"), ("summary", "hits=1 query=ECHO-1"), arguments={"q": "ARG-1"}),
        call("2", ("lines[1]", "HELP-1"), evidence_kind="helper"),
        call("3", error="boom", status="error", retrieval_details=None),
        call("4", ("lines[1]", "KNOWN-1"), evidence_kind="knowledge"),
    )
    assert evidence_texts(calls) == ("a line", "hits=1 ", "boom", "KNOWN-1")


@pytest.mark.scenario("VER-5")
def test_prose_that_repeats_a_denial_passes_and_affirming_it_is_rejected() -> None:
    calls = (
        METRICS,
        call(
            "103",
            ("summary", "hits=0 window=1h status=ok query=E11000"),
            tool_name="query_logs",
            arguments={"q": ["E11000"]},
        ),
    )
    denial = claim(
        bind(
            source_invocation_id="103", tool_name="query_logs", raw_path="summary", evidence_excerpt="hits=0 window=1h"
        ),
        claim_type="negative_observation",
        claim_text="no E11000 was found",
    )
    assert judged(contract=answer(denial, prose="没有发现 E11000。"), calls=calls).status == "pass"
    affirmed = judged(contract=answer(denial, prose="出现了 E11000。"), calls=calls)
    assert (affirmed.severity, affirmed.failed_rules) == ("reject", ("answer.identifier_absent",))


def test_an_actions_bindings_are_checked_under_its_own_name() -> None:
    actions = (Action(action_text="a"), Action(action_text="b", evidence_bindings=(bind(raw_path=None),)))
    result = judged(contract=answer(claim(bind()), recommended_actions=actions))
    assert [(b.claim_id, b.severity) for b in result.checked_bindings] == [("c1", "none"), ("action-1", "low_confid")]
    assert [f.claim_id for f in result.failures] == ["action-1"]


def test_the_parsers_notices_are_carried_and_change_nothing() -> None:
    notice = Notice(rule="contract.unknown_key", message="x")
    result = judged(claim(bind()), notices=(notice,))
    assert (result.status, result.warnings) == ("pass", (notice,))


def test_claims_that_share_an_id_are_each_checked() -> None:
    result = judged(claim(bind()), claim(bind(raw_path=None)))
    assert [b.severity for b in result.checked_bindings] == ["none", "low_confid"]
    assert result.confirmed_claims == ("c1",)


def test_a_cause_that_no_line_shows_is_a_failure_under_direct_and_a_warning_under_indirect() -> None:
    text = "payments-pool is full because of leaked sockets"
    direct = judged(claim(bind(), claim_text=text))
    assert (direct.failed_rules, direct.warnings) == (("claim.causal_unsupported",), ())
    indirect = judged(claim(bind(), claim_text=text, support_level="indirect"))
    assert (indirect.status, [w.rule for w in indirect.warnings]) == ("pass", ["claim.causal_unsupported"])
    assert direct.claim_rules == indirect.claim_rules == {"c1": ("claim.causal_unsupported",)}


def test_each_failure_is_a_sentence_with_its_claim() -> None:
    result = judged(claim(bind(raw_path="result[9]"), claim_text="41 of orders-pool"), claim(claim_id="c2"))
    assert {f.rule for f in result.failures} == set(result.failed_rules)
    assert all(f.claim_id in {"c1", "c2"} and len(f.message) > 20 for f in result.failures)
    assert result.claim_rules == {"c1": ("claim.number_absent", "claim.identifier_absent"), "c2": ("claim.no_binding",)}


@pytest.mark.scenario("GAT-6")
def test_no_text_of_another_session_is_shown() -> None:
    result = judged(
        claim(bind(source_invocation_id="77")), foreign_ids=frozenset({"77"}), resolved={("77", "result[0]"): "SECRET"}
    )
    assert "SECRET" not in result.model_dump_json()


def test_single_faults_are_told_exactly_and_valid_answers_pass() -> None:
    figures = run(4)
    assert figures["wrong"] == []
    assert (figures["score"], figures["false_alarms"]) == (1.0, 0)
    assert figures["kinds"] >= 25


def test_the_mutations_do_change_the_answer_or_its_session() -> None:
    for seed in (0, 1):
        case = valid_case(seed)
        assert all(fault.apply(case) != case for fault in FAULTS.values())


@pytest.mark.parametrize(
    "changed",
    [
        {"source_invocation_id": "999"},
        {"raw_path": "result[9]"},
        {"evidence_excerpt": "last=20 max=21"},
        {"tool_name": "query_logs"},
    ],
)
def test_a_failed_binding_keeps_what_it_named_and_shows_no_source_text(changed: dict[str, str]) -> None:
    given = bind(**changed)
    (bound,) = judged(claim(given)).checked_bindings
    assert (bound.status, bound.source_invocation_id, bound.raw_path, bound.tool_name) == (
        "fail",
        given.source_invocation_id,
        given.raw_path,
        given.tool_name,
    )
    if "tool_name" not in changed:
        assert (bound.text, bound.lines, bound.start) == (None, None, None)


def test_the_singular_id_wins_over_plural_ones_which_must_exist_all_the_same() -> None:
    calls = (call("102", ("result[0]", "nothing here")), METRICS)
    both = bind(source_invocation_id="102", source_invocation_ids=("101",))
    assert rules(both, calls=calls) == ("evidence.excerpt_mismatch",)
    assert rules(bind(source_invocation_ids=("101", "999"))) == ("evidence.invocation_id",)


@pytest.mark.scenario("EXE-6")
def test_of_several_plural_ids_the_call_that_fits_is_the_one_checked() -> None:
    calls = (call("102", ("result[0]", "nothing here")), METRICS)
    result = judged(claim(bind(source_invocation_id=None, source_invocation_ids=("102", "101"))), calls=calls)
    assert (result.status, result.checked_bindings[0].source_invocation_id, result.warnings) == ("pass", "101", ())


def test_only_the_quoted_line_of_a_longer_record_is_verified_evidence() -> None:
    calls = (call("101", ("result[0]", f"{GAUGE}\nORA-00060 deadlock, 41 waiting")),)
    result = judged(claim(bind(), claim_text="41 are waiting after ORA-00060"), calls=calls)
    assert result.failed_rules == ("claim.identifier_absent", "claim.number_absent")
    assert result.severity == "low_confid"


def test_a_failed_bindings_line_is_no_verified_evidence() -> None:
    other = call("102", ("result[0]", "orders-pool last=41"))
    bad = bind(source_invocation_id="102", tool_name="query_logs", evidence_excerpt="orders-pool last=41")
    result = judged(claim(bind(), bad, claim_text="41 in orders-pool"), calls=(METRICS, other))
    assert result.failed_rules == ("claim.identifier_absent", "claim.number_absent", "evidence.tool_name")


def test_every_absent_number_and_identifier_has_its_sentence_and_found_ones_hide_none() -> None:
    result = judged(claim(bind(), claim_text="payments-pool 20, orders-pool 41, ledger-pool 43 s"))
    named = [f.message for f in result.failures]
    assert [("41" in m, "43 s" in m, "orders-pool" in m, "ledger-pool" in m) for m in named] == [
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, False),
        (False, False, False, True),
    ]


def test_of_two_texts_under_one_path_the_better_reading_counts() -> None:
    calls = (call("101", ("result[0]", "a pool ERROR"), ("result[0]", "the pool is in ERROR state")),)
    assert rules(bind(evidence_excerpt="ERROR state"), calls=calls) == ()
    calls = (call("101", ("result[0]", "x" * 300_000), ("result[0]", "some other text")),)
    assert rules(bind(), calls=calls) == ("evidence.too_large",)


def test_a_record_not_shown_is_evidence_text_of_the_session_unless_a_helper_gave_it() -> None:
    resolved = {("101", "result[7]"): "ORA-00060 deadlock"}
    prose = answer(claim(bind()), prose="ORA-00060 occurred.")
    assert judged(contract=prose, resolved=resolved).status == "pass"
    assert judged(contract=prose, resolved={("999", "result[7]"): "ORA-00060"}).severity == "reject"
    helper = call("105", ("lines[1]", "now"), tool_name="current_time", evidence_kind="helper")
    assert judged(contract=prose, resolved={("105", "x"): "ORA-00060"}, calls=(METRICS, helper)).severity == "reject"


def test_the_name_of_a_called_tool_is_no_invented_identifier() -> None:
    assert judged(claim(bind(), claim_text="query_metrics shows that the pool is full")).status == "pass"
    assert judged(claim(bind(), claim_text="query_traces shows that the pool is full")).severity == "reject"


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    "asked",
    [
        {"arguments": {"filter": {"terms": ["E11000", 5, None]}}},
        {"query_samples": ("E11000",)},
        {"echo": "E11000"},
        {"question": "any E11000?"},
    ],
)
def test_a_denial_may_name_what_the_bound_search_or_the_question_asked_for(asked: dict[str, Any]) -> None:
    refs = (EvidenceRef(raw_path="summary", text=f"hits=0 window=1h status=ok query={asked.get('echo', '')}"),)
    details = RetrievalDetails(evidence_refs=refs, query_samples=asked.get("query_samples"))
    search = call("103", retrieval_details=details, arguments=asked.get("arguments", {}))
    bound = bind(source_invocation_id="103", raw_path="summary", evidence_excerpt="hits=0 window=1h")
    denial = claim(bound, claim_type="negative_observation", claim_text="no E11000 was found")
    question = asked.get("question", QUESTION)
    assert (
        judged(contract=answer(denial, prose="No E11000 was found."), calls=(search,), question=question).status
        == "pass"
    )
    other = judged(
        contract=answer(denial, prose="No E11000 was found."),
        calls=(
            call(
                "103",
                retrieval_details=RetrievalDetails(
                    evidence_refs=(EvidenceRef(raw_path="summary", text="hits=0 window=1h status=ok query="),)
                ),
            ),
        ),
    )
    assert other.failed_rules == ("answer.identifier_absent", "claim.identifier_absent")


@pytest.mark.parametrize("where", ["arguments", "error", "refs"])
def test_a_failure_may_be_described_by_its_arguments_error_or_partial_output(where: str) -> None:
    refs = (("lines[1]", "partial output of E11000"),) if where == "refs" else (("lines[1]", "partial output"),)
    arguments = {"terms": ["E11000"]} if where == "arguments" else {}
    failed = call("101", *refs, status="error", arguments=arguments, error="E11000" if where == "error" else "boom")
    bound = bind(raw_path="lines[1]", evidence_excerpt="partial output")
    about = claim(bound, claim_text="the search for E11000 failed")
    assert "evidence.failed_invocation" not in judged(about, calls=(failed,)).failed_rules
    elsewhere = claim(bound, claim_text="the search for E11001 failed")
    assert "evidence.failed_invocation" in judged(elsewhere, calls=(failed,)).failed_rules


def test_sentences_say_where_and_are_short() -> None:
    calls = (call("101", *((f"result[{i}]", GAUGE) for i in range(9))),)
    (failure,) = judged(claim(bind(raw_path="r" * 500)), calls=calls).failures
    assert "result[0], result[1], result[2], ..." in failure.message
    assert len(failure.message) < 300
    long = judged(claim(bind(evidence_excerpt=GAUGE[:-1] + "9")))
    assert long.failures[0].message.startswith(
        'the excerpt is not in record "result[0]" of 101; the nearest text there is "'
    )
    warned = judged(claim(bind(evidence_excerpt="LAST=20 MAX=20"))).warnings
    assert [(w.rule, "capital letters" in w.message) for w in warned] == [("evidence.excerpt_case", True)]


def test_parts_of_different_lines_joined_by_an_ellipsis_are_low() -> None:
    calls = (call("101", ("result[0]", "payments-pool has no connection\nledger-db statement took 9096 ms")),)
    bound = bind(evidence_excerpt="payments-pool has no connection ... statement took 9096 ms")
    assert rules(bound, calls=calls) == ("evidence.excerpt_stitched",)
    assert judged(claim(bound), calls=calls).severity == "low_confid"


def test_a_text_that_holds_a_trivial_excerpt_is_worth_more_than_one_without_it() -> None:
    calls = (call("101", ("result[0]", "x" * 300_000), ("result[0]", "an ERROR of the pool")),)
    assert rules(bind(evidence_excerpt="ERROR"), calls=calls) == ("evidence.excerpt_trivial",)


def test_only_an_answer_without_contract_may_deny_what_no_claim_denies() -> None:
    question = "any E11000?"
    with_claim = judged(
        contract=answer(claim(bind(), claim_text="the pool is full"), prose="No E11000 was found."), question=question
    )
    assert with_claim.failed_rules == ("answer.identifier_absent",)
    malformed = judged(contract=None, parse_status="malformed", prose=("No E11000 was found.",), question=question)
    assert malformed.failed_rules == ("claim.none_confirmed",)


@pytest.mark.scenario("GAT-6")
def test_results_and_warnings_name_their_call_and_claim() -> None:
    (foreign,) = judged(claim(bind(source_invocation_id="77")), foreign_ids=frozenset({"77"})).checked_bindings
    assert foreign.source_invocation_id == "77"
    text = "payments-pool is full because of leaked sockets"
    (warning,) = judged(claim(bind(), claim_text=text, support_level="indirect")).warnings
    assert (warning.rule, warning.claim_id) == ("claim.causal_unsupported", "c1")
