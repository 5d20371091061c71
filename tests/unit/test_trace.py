"""The tool trace summary: bounded, stable, honest about calls that found nothing."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.trace import has_hit, summarise
from streams.contract import EvidenceRef, RetrievalDetails
from streams.events import ToolInvoked
from tests.pool_case import POOL_LINE, call


def nothing(**changes: object) -> RetrievalDetails:
    refs = (EvidenceRef(raw_path="summary", text='hits=0 window=10:00..10:45 status=ok query="OOMKilled"'),)
    return RetrievalDetails(**{"evidence_refs": refs, "matched": 0, "returned": 0, **changes})


@pytest.mark.scenario("TRC-1")
def test_an_item_says_what_was_asked_and_found() -> None:
    details = RetrievalDetails(
        evidence_refs=(EvidenceRef(raw_path="lines[0]", text=POOL_LINE),),
        matched=516,
        returned=1,
        truncated=True,
        query_samples=("timeout",),
        source_documents=("payment-service.ndjson",),
    )
    (item,) = summarise([[call("101", retrieval_details=details)]])
    assert item.model_dump(mode="json", exclude_none=True) == {
        "trace_ref": "trace-101",
        "tool_name": "query_logs",
        "success": True,
        "input_summary": '{"service": "payment-service"}',
        "output_summary": f"516 matched, 1 returned, cut; lines[0]: {POOL_LINE}",
        "evidence_level": "direct",
        "source_invocation_ids": ["101"],
        "query_samples": ["timeout"],
        "source_documents": ["payment-service.ndjson"],
    }


@pytest.mark.scenario("TRC-1")
def test_knowledge_with_a_hit_is_indirect() -> None:
    (item,) = summarise([[call("k1", "lookup_knowledge", evidence_kind="knowledge")]])
    assert (item.success, item.evidence_level) == (True, "indirect")


@pytest.mark.scenario("TRC-3")
def test_helpers_are_left_out() -> None:
    assert summarise([[call("1", "current_time", evidence_kind="helper")]]) == ()


@pytest.mark.scenario("TRC-4")
@pytest.mark.parametrize(
    "changes",
    [
        {"status": "error", "error": "connection refused", "retrieval_details": None},
        {"status": "no_data", "retrieval_details": None},
        {"retrieval_details": nothing()},
        {"retrieval_details": nothing(matched=None)},
        {"retrieval_details": RetrievalDetails(evidence_refs=(EvidenceRef(raw_path="lines[0]", text="x"),), matched=0)},
        {"retrieval_details": RetrievalDetails(evidence_refs=())},
    ],
)
def test_a_call_that_failed_or_found_nothing_stays_and_is_unsuccessful(changes: dict) -> None:
    (item,) = summarise([[call("101", **changes)]])
    assert (item.success, item.evidence_level) == (False, "none")
    assert item.output_summary.startswith("failed" if changes.get("status") == "error" else "no hit")


def test_a_successful_call_of_old_data_counts_as_a_hit() -> None:
    assert has_hit(call("101", retrieval_details=None))
    assert has_hit(call("101", retrieval_details=RetrievalDetails()))


def test_a_count_of_hits_counts_more_than_the_refs_that_are_shown() -> None:
    assert has_hit(call("101", retrieval_details=nothing(matched=3)))


@pytest.mark.scenario("TRC-5")
def test_calls_of_one_topic_merge_and_keep_the_first_hit_and_all_counts() -> None:
    calls = [
        call("1", topic="payment-service", status="error", error="502", retrieval_details=None),
        call("2", topic="payment-service", retrieval_details=nothing()),
        call("3", topic="payment-service"),
        call("4", topic="payment-service", text="later"),
    ]
    (item,) = summarise([calls])
    assert item.trace_ref == "trace-1"
    assert item.source_invocation_ids == ("1", "2", "3", "4")
    assert (item.repeated_count, item.failed_count, item.no_hit_count) == (4, 1, 1)
    assert (item.success, item.evidence_level) == (True, "direct")
    assert POOL_LINE in item.output_summary
    assert "later" not in item.output_summary


@pytest.mark.scenario("TRC-5")
def test_calls_merge_only_within_tool_round_and_known_topic() -> None:
    apart = [
        [[call("1"), call("2")]],
        [[call("1", topic="a"), call("2", topic="b")]],
        [[call("1", topic="a"), call("2", "query_metrics", topic="a")]],
        [[call("1", topic="a"), call("2", topic="a", evidence_kind="knowledge")]],
        [[call("1", topic="a")], [call("2", topic="a")]],
    ]
    for rounds in apart:
        assert [item.trace_ref for item in summarise(rounds)] == ["trace-1", "trace-2"]


@pytest.mark.scenario("TRC-2")
def test_a_second_round_leaves_the_first_rounds_items_as_they_were() -> None:
    first = [call("1", topic="a"), call("2"), call("3", topic="a")]
    assert summarise([first, [call("4", topic="a")]])[:2] == summarise([first])


@pytest.mark.scenario("TRC-6", "INP-3")
@pytest.mark.parametrize("filling", ["x", "连", "\n", "\x1b", '"', "\U0001f525"])
def test_five_megabytes_stay_within_the_bound(filling: str) -> None:
    big = filling * (5_000_000 // len(filling.encode()))
    details = RetrievalDetails(
        evidence_refs=(EvidenceRef(raw_path="lines[0]", text=big),),
        matched=1,
        returned=1,
        query_samples=(big, big),
        source_documents=tuple(f"{i}{big[:500]}" for i in range(20)),
    )
    (item,) = summarise([[call("101", retrieval_details=details, arguments={"q": big})]])
    assert len(orjson.dumps(item.model_dump(mode="json"))) <= 2048
    assert item.output_summary.startswith("1 matched")


@pytest.mark.scenario("TRC-5", "TRC-6")
def test_many_merged_calls_keep_every_id_and_the_bound() -> None:
    calls = [call(f"call_{k:032x}", topic="a") for k in range(200)]
    items = summarise([calls])
    assert [i for item in items for i in item.source_invocation_ids] == [c.invocation_id for c in calls]
    assert all(len(orjson.dumps(item.model_dump(mode="json"))) <= 2048 for item in items)
    assert len({item.trace_ref for item in items}) == len(items) < 50


CALLS = st.builds(
    call,
    st.uuids().map(str),
    st.sampled_from(["query_logs", "query_metrics"]),
    topic=st.sampled_from([None, "a", "b"]),
    status=st.sampled_from(["success", "no_data", "error"]),
    evidence_kind=st.sampled_from(["incident", "knowledge", "helper"]),
)


@pytest.mark.scenario("TRC-2", "INP-5")
@given(st.lists(st.lists(CALLS, max_size=6), max_size=3))
def test_the_same_events_give_the_same_items_and_no_call_is_lost(rounds: list[list[ToolInvoked]]) -> None:
    items = summarise(rounds)
    again = [[ToolInvoked.model_validate_json(c.model_dump_json()) for c in calls] for calls in rounds]
    assert summarise(again) == items
    kept = [c.invocation_id for calls in rounds for c in calls if c.evidence_kind != "helper"]
    assert sorted(i for item in items for i in item.source_invocation_ids) == sorted(kept)
