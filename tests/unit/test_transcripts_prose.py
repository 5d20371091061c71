"""An answer in prose: cut into statements by rule, bound only to what the session's records really say (ruling 25)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.excerpts import match
from handlers.replies import parse_answer
from handlers.transcripts.cuts import MAX_CHARS, MAX_STATEMENTS, own_words, quoted, statements
from handlers.transcripts.outputs import read_output
from handlers.transcripts.prose import MAX_CLAIMS, contract_of, read_prose
from streams.contract import Claim, Contract
from streams.events import ToolInvoked
from tests.transcripts import ANSWER, ARGUMENTS, LOGS, METRIC, QUESTION


def invoked(invocation_id: str, tool: str, output: Any, arguments: dict[str, Any], **more: Any) -> ToolInvoked:
    read = read_output(output, arguments)
    return ToolInvoked(
        invocation_id=invocation_id,
        tool_name=tool,
        arguments=arguments,
        status=read.status,
        retrieval_details=read.details,
        error=read.error,
        **more,
    )


CALLS = tuple(
    invoked(str(k), name, output, arguments)
    for k, ((name, arguments), output) in enumerate(zip(ARGUMENTS, (METRIC, LOGS, ""), strict=True), 1)
)


def only(answer: str, calls: tuple[ToolInvoked, ...] = CALLS, question: str = QUESTION) -> Claim:
    (claim,) = contract_of(answer, question, calls).claims
    return claim


def bound(claim: Claim) -> list[tuple[str | None, str | None]]:
    return [(b.source_invocation_id, b.raw_path) for b in claim.evidence_bindings]


def kinds(answer: str) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in statements(answer)]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("## Findings\n\nAll good.", []),
        ("**payments-pool** has 20 connections.", [("claim", "payments-pool has 20 connections.")]),
        (
            "1. payments-pool has 20 connections.\n2. Restart payment-service.",
            [("claim", "payments-pool has 20 connections."), ("action", "Restart payment-service.")],
        ),
        ("RefundJob may leak connections.", [("hypothesis", "RefundJob may leak connections.")]),
        ("RefundJob 可能泄漏连接。", [("hypothesis", "RefundJob 可能泄漏连接。")]),
        ("建议重启 payment-service。", [("action", "建议重启 payment-service。")]),
        ("Does payments-pool have 20 connections?", []),
        ("It times out because the pool leaks.", [("claim", "It times out because the pool leaks.")]),
        ("No errors were found.", [("claim", "No errors were found.")]),
        ("The log says `pool full. retry; later`.", [("claim", "The log says `pool full. retry; later`.")]),
    ],
)
def test_an_answer_is_cut_by_rule(answer: str, found: list[tuple[str, str]]) -> None:
    assert kinds(answer) == found


def test_a_fenced_block_is_quoted_by_the_sentence_before_it() -> None:
    (said,) = statements(
        "payment-service logs a leak at 10:20:\n```\nApparent connection leak detected for RefundJob\n```\n"
    )
    assert said.quotes == ("Apparent connection leak detected for RefundJob",)


def test_one_word_in_code_marks_quotes_nothing() -> None:
    assert quoted("`payments-pool` and `last=20` and `connection refused`") == ("last=20", "connection refused")
    assert own_words("It says `is not available` for `payments-pool`") == "It says   for `payments-pool`"


def test_a_quotation_is_bound_where_it_stands() -> None:
    claim = only("The log says `Connection is not available, request timed out after 30000ms`.")
    assert bound(claim) == [("2", "lines[0]")]
    assert claim.claim_type == "observation"
    assert claim.evidence_bindings[0].evidence_excerpt == "Connection is not available, request timed out after 30000ms"
    assert (claim.evidence_bindings[0].model_extra or {})["found_by"] == "matcher"


def test_a_sentence_is_bound_to_the_record_that_holds_all_its_numbers_and_identifiers() -> None:
    assert bound(only("payments-pool has 20 active connections of at most 20.")) == [("1", "lines[0]")]
    assert bound(only("Requests timed out after 30 s on HikariPool-1.")) == [("2", "lines[0]")]
    assert bound(only("payments-pool 有 20 个活跃连接。", question="payment-service 为什么超时？")) == [
        ("1", "lines[0]")
    ]
    # A bare number in words of another language could be any number.
    assert bound(only("连接池有 20 个活跃连接。", question="payment-service 为什么超时？")) == []


@pytest.mark.parametrize(
    "answer",
    [
        "payments-pool has 21 active connections of at most 20.",
        "orders-pool has 20 active connections of at most 20.",
        "The log says `Connection is not available, request timed out after 3000ms`.",
        "HikariPool-1 of ledger-db timed out after 30000 ms.",
    ],
)
def test_what_no_record_holds_gets_no_binding(answer: str) -> None:
    assert bound(only(answer)) == []


def test_a_denial_is_bound_to_the_empty_search_that_asked_for_it() -> None:
    claim = only("No ORA-00060 was found.")
    assert (claim.claim_type, bound(claim)) == ("negative_observation", [("3", "summary")])
    assert claim.evidence_bindings[0].evidence_excerpt == "hits=0 status=ok"
    assert bound(only("No ORA-12519 was found.")) == []


def test_helpers_and_failed_calls_bear_no_evidence() -> None:
    helper = invoked("h", "current_time", METRIC, {}, evidence_kind="helper")
    failed = invoked("f", "query_metrics", f"Error from server: {METRIC}", {})
    assert failed.status == "error"
    assert bound(only("payments-pool has 20 active connections of at most 20.", (helper, failed))) == []


def test_a_cause_is_claimed_as_indirect() -> None:
    claim = only("payment-service times out because payments-pool is at 20 of 20.")
    assert (claim.claim_type, claim.support_level) == ("root_cause", "indirect")


def test_only_a_whole_answer_in_prose_is_read_so() -> None:
    prose = read_prose(parse_answer(ANSWER), QUESTION, CALLS)
    assert (prose.status, prose.found, prose.final_answer) == ("valid", True, ANSWER)
    for text, reason in (
        ("{}", "stop"),
        (ANSWER, "length"),
        (ANSWER, "content_filter"),
        (ANSWER, "whatever"),
        ("", "stop"),
    ):
        parsed = parse_answer(text, reason)
        assert read_prose(parsed, QUESTION, CALLS) is parsed


WORDS = st.sampled_from(
    [
        "payments-pool",
        "payment-service",
        "RefundJob",
        "20",
        "21",
        "30000ms",
        "ORA-00060",
        "timed",
        "out",
        "no",
        "leak",
        "`last=20 max=20`",
        "`last=2 max=20`",
        "because",
        ".",
        "\n",
        "可能",
        "没有",
    ]
)


@settings(max_examples=150)
@given(st.lists(WORDS, min_size=1, max_size=14).map(" ".join))
def test_every_found_binding_quotes_a_record_of_the_session(answer: str) -> None:
    texts = {(c.invocation_id, r.raw_path): r.text for c in CALLS for r in (c.retrieval_details.evidence_refs or ())}  # type: ignore[union-attr]
    made: Contract = contract_of(answer, QUESTION, CALLS)
    for claim in made.claims:
        for binding in claim.evidence_bindings:
            text = texts[binding.source_invocation_id or "", binding.raw_path or ""]
            assert match(binding.evidence_excerpt, text).rule is None


@pytest.mark.parametrize("piece", ["-", "| -", "`", '"a', "“a", "「a", "*", "#", "_", "```\n", " ", "\n", "not ", "a"])
def test_a_hostile_answer_costs_no_more_than_its_length(piece: str) -> None:
    began = time.perf_counter()
    statements(piece * (20_000 // len(piece)) + "x")
    assert time.perf_counter() - began < 3.0


def test_output_nested_beyond_reason_is_shown_by_its_lines() -> None:
    for body in ("[" * 100_000 + "]" * 100_000, '{"a":' * 900 + "1" + "}" * 900):
        refs = read_output(body, {}).details.evidence_refs or ()
        assert [ref.raw_path for ref in refs] == ["lines[0]"]


def test_what_is_longer_than_a_sentence_can_be_is_no_claim() -> None:
    endless = "payments-pool has 20 active connections " * (MAX_CHARS // 30)
    assert statements(endless) == ()
    assert kinds(f"{endless}.\npayments-pool has 20 connections.") == [("claim", "payments-pool has 20 connections.")]


def test_no_more_claims_are_made_than_are_judged() -> None:
    answer = "\n".join(f"- payments-pool had {k} connections." for k in range(MAX_STATEMENTS + 10))
    assert len(statements(answer)) == MAX_STATEMENTS
    made = contract_of(answer, QUESTION, CALLS)
    assert len(made.claims) == MAX_CLAIMS
    assert made.user_facing_answer == answer
