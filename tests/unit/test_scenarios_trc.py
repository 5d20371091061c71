"""The tool trace summary through the real roles: TRC, rulings 7, 19 and 20."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.ledger_case import RETRIES, TIMEOUT, call, case, checked, good, later, rnd, unfounded
from tests.play import judged

KEYS = {
    "trace_ref",
    "tool_name",
    "success",
    "input_summary",
    "output_summary",
    "evidence_level",
    "source_invocation_ids",
}


def summary(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    report = judged(case(rnd(good(), checked(), calls=[call(), *calls])))
    items: list[dict[str, Any]] = report["verifier_evaluation"]["tool_trace_summary"]
    assert all(set(item) >= KEYS for item in items)
    assert all(len(json.dumps(item, ensure_ascii=False).encode()) <= 2048 for item in items)
    return items


def empty(invocation_id: str, **changes: Any) -> dict[str, Any]:
    refs = [{"raw_path": "summary", "text": "hits=0 window=30m status=ok query=ORA-00060"}]
    details = {"evidence_refs": refs, "matched": 0, "returned": 0}
    return call(invocation_id, **{"retrieval_details": details, **changes})


@pytest.mark.scenario("TRC-1")
def test_an_item_says_what_was_asked_found_and_known() -> None:
    known = {
        "query_samples": ["retries"],
        "retrieval_layers": ["keyword"],
        "relevance_levels": ["high"],
        "source_documents": ["runbook.md"],
    }
    book = call("102", RETRIES, tool="lookup_knowledge")
    book["retrieval_details"].update(known)
    first, second = summary(book)
    assert (first["trace_ref"], first["tool_name"], first["success"]) == ("trace-101", "query_logs", True)
    assert (first["evidence_level"], first["source_invocation_ids"]) == ("direct", ["101"])
    assert "ledger" in first["input_summary"]
    assert TIMEOUT in first["output_summary"]
    assert (second["success"], second["evidence_level"]) == (True, "indirect")
    assert {key: second[key] for key in known} == known


@pytest.mark.scenario("TRC-2")
def test_every_ref_is_the_same_again_and_keeps_its_name_in_a_second_round() -> None:
    first = rnd(good(), unfounded(), calls=[call(), empty("102")])
    again = later(rnd(good(), checked()))
    reports = [judged(case(first, again)) for _ in range(2)]
    refs = [[i["trace_ref"] for i in r["verifier_evaluation"]["tool_trace_summary"]] for r in reports]
    assert refs == [["trace-101", "trace-102", "trace-201"]] * 2
    assert [i["trace_ref"] for i in summary(empty("102"))] == refs[0][:2]


@pytest.mark.scenario("TRC-3")
@pytest.mark.parametrize("tool", ["current_time", "format_time"])
def test_helpers_are_left_out(tool: str) -> None:
    assert [i["trace_ref"] for i in summary(call("102", "x", tool=tool))] == ["trace-101"]
    assert len(summary(call("102", "x", tool="anything", evidence_kind="helper"))) == 1
    assert len(summary(call("102", "x", tool=tool, evidence_kind="incident"))) == 2, "what the file says counts"


@pytest.mark.scenario("TRC-4")
@pytest.mark.parametrize(
    "broken",
    [
        empty("102"),
        empty("102", status="no_data"),
        call("102", RETRIES, status="error"),
        call("102", status="error", error="refused", retrieval_details={"evidence_refs": []}),
        {"invocation_id": "102", "tool_name": "query_logs", "status": "error", "error": "timed out"},
        {"invocation_id": 102, "tool_name": "query_logs", "status": "no_data"},
        call("102", retrieval_details={"evidence_refs": [], "matched": 0}),
        call("102", "x", tool="lookup_knowledge", status="error"),
    ],
)
def test_a_call_that_failed_or_found_nothing_stays_unsuccessful_with_level_none(broken: dict[str, Any]) -> None:
    item = summary(broken)[1]
    assert (item["trace_ref"], item["success"], item["evidence_level"]) == ("trace-102", False, "none")
    assert item["source_invocation_ids"] == ["102"]


@pytest.mark.scenario("TRC-5", "TRC-1")
def test_calls_of_one_tool_topic_and_round_merge_and_keep_counts_ids_and_the_first_hit() -> None:
    calls = [
        call("102", status="error", error="refused", topic="db"),
        empty("103", topic="db"),
        call("104", "the first hit", topic="db"),
        call("105", "another hit", topic="db"),
        call("106", RETRIES, topic="cache"),
        call("107", RETRIES, tool="query_metrics", topic="db"),
    ]
    items = summary(*calls)
    assert [i["trace_ref"] for i in items] == ["trace-101", "trace-102", "trace-106", "trace-107"]
    merged = items[1]
    assert merged["source_invocation_ids"] == ["102", "103", "104", "105"]
    assert (merged["repeated_count"], merged["failed_count"], merged["no_hit_count"]) == (4, 1, 1)
    assert (merged["success"], merged["evidence_level"]) == (True, "direct")
    assert "the first hit" in merged["output_summary"]


@pytest.mark.scenario("TRC-5")
def test_without_a_topic_nothing_merges_nor_across_rounds() -> None:
    """Ruling 20: the topic is the tool's own key, never a guess from text."""
    assert len(summary(call("102"), call("103"))) == 3
    first = rnd(good(), unfounded(), calls=[call(topic="db")])
    report = judged(case(first, rnd(good(), checked(), calls=[call("201", topic="db")])))
    refs = [i["trace_ref"] for i in report["verifier_evaluation"]["tool_trace_summary"]]
    assert refs == ["trace-101", "trace-201"]


@pytest.mark.scenario("TRC-6")
def test_a_large_output_stays_within_the_bound_and_is_not_passed_on() -> None:
    large = call("102", "y" * 200_000, *(["z" * 900] * 40), output="secret " * 100_000, arguments={"q": "q" * 50_000})
    item = summary(large)[1]
    assert item["success"]
    assert "secret" not in json.dumps(item)


@pytest.mark.scenario("TRC-1", "TRC-5")
def test_a_fact_of_a_merged_item_keeps_every_invocation() -> None:
    calls = [call(topic="db"), empty("102", topic="db")]
    report = judged(case(rnd(good(), checked(), calls=calls)))
    facts = report["verifier_evaluation"]["facts_checked"]
    assert [f["evidence_refs"][0]["source_invocation_ids"] for f in facts] == [["101", "102"]] * 2
    assert report["effective_verdict"] == "PASS"
