"""The time a question names brings the records of that time to the front."""

from __future__ import annotations

import pytest

from handlers.agents.asked_time import span_of, within
from handlers.agents.offline_evidence import ranked
from streams.contract import EvidenceRef, RetrievalDetails
from streams.events import ToolInvoked


@pytest.mark.parametrize(
    ("question", "span"),
    [
        ("Why did payment-service restart at 10:42?", (627, 647)),
        ("What happened between 10:48 and 10:40?", (640, 648)),
        ("10:42 左右 payment-service 为什么重启？", (627, 647)),
        ("What happened at 2026-03-17T10:42:30Z?", (627, 647)),
        ("Why does payment-service time out?", None),
        ("Why is 10.42.0.9:5432 refused?", None),
        ("Is ledger-db:10:42:17:99 there?", None),
    ],
)
def test_a_time_is_a_span_that_begins_before_it(question: str, span: tuple[int, int] | None) -> None:
    assert span_of(question) == span


@pytest.mark.parametrize(
    ("record", "there"),
    [
        ("2026-03-17T10:41:58Z ERROR pool exhausted", True),
        ("2026-03-17 10:59:58,120 ERROR pool exhausted", False),
        ('{"ts": "2026-03-17T10:44:00+08:00", "msg": "x"}', True),
        ("1:M 17 Mar 2026 10:42:15.001 # the save failed", True),
        ("pool exhausted", False),
    ],
)
def test_a_record_is_of_the_time_its_stamp_says(record: str, there: bool) -> None:
    assert within(record, (627, 647)) is there


def test_midnight_is_no_wall() -> None:
    span = span_of("What happened at 00:05?")
    assert span is not None
    assert within("2026-03-17T23:55:00Z ERROR pool exhausted", span)


def call(*records: tuple[str, str, str]) -> ToolInvoked:
    refs = tuple(EvidenceRef(raw_path=path, text=text, source=source) for path, text, source in records)
    details = RetrievalDetails(evidence_refs=refs, matched=len(refs), returned=len(refs), truncated=False)
    return ToolInvoked(invocation_id="inv-1", tool_name="query_logs", status="success", retrieval_details=details)


def test_of_like_records_that_of_the_asked_time_comes_first() -> None:
    calls = [
        call(
            ("a.log:lines[1]", "2026-03-17T09:00:00Z ERROR disk of ledger-db detached", "a.log"),
            ("a.log:lines[2]", "2026-03-17T10:41:00Z ERROR node of ledger-db drained", "a.log"),
        )
    ]
    assert next(one.ref.raw_path for one in ranked("What happened at 10:42?", calls)) == "a.log:lines[2]"
    assert next(one.ref.raw_path for one in ranked("What happened at 09:01?", calls)) == "a.log:lines[1]"


def test_the_lines_of_a_file_of_that_name_come_before_another_service_s() -> None:
    calls = [
        call(
            ("billing.log:lines[1]", "2026-03-17T10:41:00Z ERROR invoice run failed", "billing.log"),
            ("ledger-db.log:lines[1]", "2026-03-17T10:41:00Z ERROR checkpoint run failed", "ledger-db.log"),
        )
    ]
    assert ranked("What is wrong with ledger-db?", calls)[0].ref.raw_path == "ledger-db.log:lines[1]"
    assert ranked("What is wrong with billing?", calls)[0].ref.raw_path == "billing.log:lines[1]"
