"""query_logs over files: every format and trap of the notes, and what a result says of itself."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handlers.evidence.arguments import unused
from handlers.evidence.log_search import MAX_LINE
from handlers.evidence.logs import LogFiles
from handlers.evidence.protocol import BadSource, ToolResult
from handlers.evidence.records import MAX_REF_CHARS
from streams.contract import EvidenceRef, RetrievalDetails

NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)


def search(*paths: Path, **arguments: Any) -> ToolResult:
    tool = LogFiles([str(path) for path in paths], lambda: NOW)
    return asyncio.run(tool.invoke(arguments))


def details(result: ToolResult) -> RetrievalDetails:
    assert result.retrieval_details is not None
    return result.retrieval_details


def refs(result: ToolResult) -> tuple[EvidenceRef, ...]:
    return details(result).evidence_refs or ()


def texts(result: ToolResult) -> list[str]:
    return [ref.text for ref in refs(result)]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def line(second: int, level: str = "INFO", message: str = "POST /v1/payments 200", **fields: Any) -> str:
    stamp = f"2026-03-17T10:{second // 60:02}:{second % 60:02}.000Z"
    return json.dumps({"ts": stamp, "level": level, "service": "payment-service", "msg": message, **fields})


def test_a_ref_is_the_raw_line_and_lines_count_from_one(tmp_path: Path) -> None:
    log = written(tmp_path / "a.ndjson", f"{line(1)}\n{line(2, 'ERROR', 'timed out')}\n")
    result = search(log, level="error")
    assert [(ref.raw_path, ref.text) for ref in refs(result)] == [("lines[2]", line(2, "ERROR", "timed out"))]


def test_with_several_files_the_path_names_the_file(tmp_path: Path) -> None:
    for folder in ("payment", "ledger"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "app.log", f"{folder} ERROR down\n")
    result = search(tmp_path)
    assert {ref.raw_path for ref in refs(result)} == {"payment/app.log:lines[1]", "ledger/app.log:lines[1]"}


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("crlf.log", b"first\r\nsecond ERROR pool\r\n", "second ERROR pool"),
        ("bom.log", b"\xef\xbb\xbfsecond ERROR pool\n", "second ERROR pool"),
        ("packed.log", gzip.compress(b"first\nsecond ERROR pool\n", mtime=0), "second ERROR pool"),
        ("cut.ndjson", b'{"level":"INFO"}\n{"level":"ERROR","msg":"pool wai', '{"level":"ERROR","msg":"pool wai'),
        ("ansi.log", b"\x1b[31mERR\x1b[0mOR po\x1b[1mol open\n", "\x1b[31mERR\x1b[0mOR po\x1b[1mol open"),
        ("bytes.log", b"caf\xe9 pool ERROR\n", "café pool ERROR"),
        ("logfmt.log", b'ts=2026-03-17T10:00:00Z level=error msg="pool full"\n', 'ts=2026-03-17T10:00:00Z level=error msg="pool full"'),
        ("wide.log", "ERROR pool\n".encode("utf-16"), "ERROR pool"),
    ],
)  # fmt: skip
def test_formats_are_read_as_they_are(tmp_path: Path, name: str, content: bytes, wanted: str) -> None:
    result = search(written(tmp_path / name, content), terms=["POOL"])
    assert texts(result) == [wanted]


def test_a_gzip_file_that_was_cut_is_read_up_to_there_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"{line(at % 600)} {at * 7919 % 10007}\n" for at in range(3000)).encode())
    result = search(written(tmp_path / "cut.log.gz", packed[: len(packed) // 2]))
    assert (details(result).matched or 0) > 100
    assert "cut off" in (details(result).dropped_reason or "")


def test_two_gzip_members_are_one_file(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two\n")
    assert texts(search(written(tmp_path / "two.gz", packed))) == ["one", "two"]


@pytest.mark.parametrize("content", ["", "\n\n", "stdout:\n\nstderr:\n"])
def test_an_empty_search_leaves_one_summary_with_the_query_last(tmp_path: Path, content: str) -> None:
    result = search(written(tmp_path / "empty.log", content), terms=["ERROR"])
    assert result.status == "no_data"
    (ref,) = refs(result)
    assert ref.raw_path == "summary"
    head, _, query = ref.text.partition("query=")
    assert head.startswith("hits=0 window=all status=ok files=1 lines_scanned=")
    assert json.loads(query) == {"terms": ["ERROR"]}


def test_a_summary_names_the_window_that_was_searched(tmp_path: Path) -> None:
    log = written(tmp_path / "a.log", "\n".join(line(second) for second in range(60)) + "\n")
    scanned = refs(search(log, terms=["nothing like it"]))[0].text
    assert "window=2026-03-17T10:00:00.000Z..2026-03-17T10:00:59.000Z status=ok files=1 lines_scanned=60" in scanned
    asked = refs(search(log, since="2026-03-17T10:30:00Z", until="5m"))[0].text
    assert "window=2026-03-17T10:30:00Z..2026-03-17T10:55:00Z" in asked


@pytest.mark.parametrize(
    ("window", "known"),
    [
        ({"since": "10m"}, False),
        ({"until": "2026-03-17T10:00:00Z"}, False),
        ({"since": "59m", "until": "now"}, True),
        ({"since": "1h ago"}, True),
        ({"since": "2026-03-17T10:00:00Z"}, True),
        ({}, True),
    ],
)
def test_no_hit_in_a_window_that_was_not_covered_says_so(tmp_path: Path, window: dict[str, str], known: bool) -> None:
    log = written(tmp_path / "a.ndjson", f"{line(30)}\n{line(90)}\n")
    found = details(search(log, terms=["timed out"], **window))
    told = found.dropped_reason or ""
    assert (found.matched, bool(found.truncated)) == (0, not known)
    assert ("2026-03-17T10:00:30.000Z..2026-03-17T10:01:30.000Z" in told) is not known


def test_an_argument_that_the_tool_does_not_have_is_told_of(tmp_path: Path) -> None:
    tool = LogFiles([str(written(tmp_path / "a.ndjson", line(1)))], lambda: NOW)
    told = unused({"terms": ["x"], "query": "x"}, tool.spec.parameters)
    assert told is not None and told.startswith("not used: query;") and "terms" in told
    assert unused({"terms": ["x"]}, tool.spec.parameters) is None
    assert unused({"query": "x"}, {"type": "object", "properties": {"terms": {}}}) is None


def test_a_stack_trace_is_one_record_with_its_head(tmp_path: Path) -> None:
    trace = (
        "2026-03-17 10:00:01 ERROR charge failed\njava.sql.SQLException: closed\n\tat com.acme.Pool.get(Pool.java:7)\n"
        "Caused by: java.io.IOException: reset\n\t... 3 more\n2026-03-17 10:00:02 INFO next\n"
    )
    result = search(written(tmp_path / "a.log", trace), terms=["IOException"])
    assert [ref.raw_path for ref in refs(result)] == ["lines[2-5]"]
    assert refs(result)[0].text.splitlines()[2] == "Caused by: java.io.IOException: reset"


def test_a_python_traceback_ends_with_its_exception(tmp_path: Path) -> None:
    text = 'ERROR worker died\nTraceback (most recent call last):\n  File "app.py", line 3, in run\n    pool.get()\nTimeoutError: no connection\nINFO next\n'
    result = search(written(tmp_path / "a.log", text), terms=["TimeoutError"])
    assert [ref.raw_path for ref in refs(result)] == ["lines[1-5]"]


def test_an_object_of_a_pretty_json_file_is_one_record(tmp_path: Path) -> None:
    body = json.dumps({"events": [{"date": "2026-03-17T10:00:00Z", "message": "too many clients"}]}, indent=2)
    result = search(written(tmp_path / "events.json", body), terms=["clients"])
    assert refs(result)[0].raw_path == "lines[3-6]"
    assert '"date"' in refs(result)[0].text


def test_the_first_the_last_the_rare_and_the_loudest_are_shown_not_the_newest(tmp_path: Path) -> None:
    lines = [line(at // 4, message=f"POST /v1/payments 200 {at % 97}ms") for at in range(10_000)]
    lines[123] = line(30, message="release ledger-service 4.12.0 rolled out")
    lines[777] = line(190, "ERROR", "request timed out after 30000ms")
    result = search(written(tmp_path / "a.ndjson", "\n".join(lines) + "\n"), limit=20)
    shown = [ref.raw_path for ref in refs(result) if ref.raw_path.startswith("lines")]
    assert {"lines[1]", "lines[10000]", "lines[124]", "lines[778]"} <= set(shown)
    found = details(result)
    assert (found.matched, found.returned, found.truncated, found.order) == (10_000, 20, True, "first+last+rare")
    assert "9980 of 10000 matching records not shown" in (found.dropped_reason or "")
    assert any(
        ref.raw_path == "templates[0]" and ref.text.startswith("count=1 of=10000 level=error") for ref in refs(result)
    )


def test_counts_tell_kinds_apart_blind_to_numbers_times_and_hex(tmp_path: Path) -> None:
    lines = [line(at, message=f"trace {at:032x} took {at * 3}ms") for at in range(300)] + [line(599, message="odd one")]
    result = search(written(tmp_path / "a.ndjson", "\n".join(lines)), limit=10)
    rows = {ref.text.split(" ", 1)[0] for ref in refs(result) if ref.raw_path.startswith("templates")}
    assert rows == {"count=300", "count=1"}


def test_a_line_too_long_to_show_is_shown_in_a_slice_that_has_its_own_path(tmp_path: Path) -> None:
    long = "x" * 90_000 + " needle " + "\x1b[0m" * 15_000
    log = written(tmp_path / "long.log", f"{long}\nshort\n")
    tool = LogFiles([str(log)], lambda: NOW)
    result = asyncio.run(tool.invoke({"terms": ["needle"]}))
    (ref,) = refs(result)
    assert len(ref.text) <= MAX_REF_CHARS
    assert "needle" in ref.text
    assert "has 150008 characters" in (details(result).dropped_reason or "")
    assert tool.resolve(result.output or b"", ref.raw_path) == ref.text
    assert tool.resolve(result.output or b"", "lines[1]") == long


def test_refs_stay_within_an_event_whatever_matched(tmp_path: Path) -> None:
    log = written(tmp_path / "big.log", "".join(f"ERROR {'é' * 9_000} {at}\n" for at in range(200)))
    result = search(log, limit=300)
    assert len(details(result).model_dump_json().encode()) < 200_000
    assert details(result).matched == 200
    assert details(result).truncated is True
    assert "bounded in size" in (details(result).dropped_reason or "")


def test_every_shown_record_and_every_other_is_found_in_the_full_output(tmp_path: Path) -> None:
    hostile = "lines[2]\tnot this one"
    log = written(tmp_path / "a.log", f"{hostile}\ntab\there\nERROR a\n\tat b.c(D.java:1)\n")
    tool = LogFiles([str(log)], lambda: NOW)
    result = asyncio.run(tool.invoke({}))
    output = result.output or b""
    for ref in refs(result):
        assert tool.resolve(output, ref.raw_path) == ref.text
    assert tool.resolve(output, "lines[1]") == hostile
    assert tool.resolve(output, "lines[2]") == "tab\there"
    assert tool.resolve(output, "lines[9]") is None


def test_24_mb_are_searched_and_one_needle_is_found(tmp_path: Path) -> None:
    filler = "".join(f"{line(at % 3600, trace=f'{at * 2654435761 % 2**64:016x}')}{' ' * 90}\n" for at in range(1000))
    log = written(tmp_path / "big.ndjson", filler * 100 + line(9, message="needle") + "\n" + filler)
    assert log.stat().st_size > 20_000_000
    result = search(log)
    assert "lines[100001]" in {ref.raw_path for ref in refs(result)}


def test_a_window_leaves_out_what_lies_outside_and_says_what_has_no_time(tmp_path: Path) -> None:
    log = written(tmp_path / "a.log", "\n".join([line(at) for at in (0, 60, 120)] + ["no stamp here"]) + "\n")
    result = search(log, since="2026-03-17T10:01:00Z", until="2026-03-17T10:01:30Z")
    assert [ref.raw_path for ref in refs(result)] == ["lines[2]"]
    assert "1 records without a time stamp" in (details(result).dropped_reason or "")


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-03-17T10:01:00Z", "2026-03-17 10:01:00,123", "2026/03/17 10:01:00", "17/Mar/2026:10:01:00 +0000",
        "Mar 17 10:01:00", '{"ts": 1773741660.5}', '{"time":1773741660500}', "2026-03-17T12:01:00+02:00",
    ],
)  # fmt: skip
def test_time_stamps_of_many_forms_are_compared(tmp_path: Path, stamp: str) -> None:
    log = written(tmp_path / "a.log", f"{stamp} hello\n")
    assert search(log, since="2026-03-17T10:00:30Z", until="2026-03-17T10:01:30Z").status == "success"
    assert search(log, since="2026-03-17T10:02:00Z").status == "no_data"


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ('{"level":"WARN","msg":"no error"}', False), ('{"level":50,"msg":"x"}', True), ("E0317 10:00:00.1 x.go:1] bad", True),
        ("[error] pool", True), ("level=info msg=ERROR_COUNT", False), ("java.net.ConnectException: refused", True),
        ("INFO: 0 errors", False), ("请求超时", True),
        ("1:M 17 Mar 2026 10:00:00.001 # the save failed", True), ("1:M 17 Mar 2026 10:00:00.001 * no save failed", False),
    ],
)  # fmt: skip
def test_the_level_is_the_line_s_own(tmp_path: Path, text: str, passes: bool) -> None:
    assert (search(written(tmp_path / "a.log", text + "\n"), level="error").status == "success") is passes


def test_the_service_is_the_grouping_key_and_may_stand_in_the_file_s_name(tmp_path: Path) -> None:
    written(tmp_path / "ledger-db.log", "duration: 8412 ms\n")
    written(tmp_path / "other.log", "payment-service up\nledger-db seen from here\n")
    result = search(tmp_path, service="ledger-db")
    assert result.topic == "ledger-db"
    assert {ref.text for ref in refs(result)} == {"duration: 8412 ms", "ledger-db seen from here"}


def test_one_unreadable_file_is_noted_and_all_of_them_are_an_error(tmp_path: Path) -> None:
    good, gone = written(tmp_path / "good.log", "ERROR a\n"), written(tmp_path / "gone.log", "ERROR b\n")
    tool = LogFiles([str(good), str(gone)], lambda: NOW)
    gone.unlink()
    first = asyncio.run(tool.invoke({}))
    assert first.status == "success"
    assert "gone.log could not be read" in (details(first).dropped_reason or "")
    good.unlink()
    second = asyncio.run(tool.invoke({}))
    assert second.status == "error"
    assert refs(second)[0].raw_path == "error"


@pytest.mark.parametrize(
    "arguments", [{"level": "loud"}, {"since": "yesterday"}, {"limit": "many"}, {"terms": {"a": 1}}]
)
def test_a_bad_argument_is_a_result_that_says_which(tmp_path: Path, arguments: dict[str, Any]) -> None:
    result = search(written(tmp_path / "a.log", "x y\n"), **arguments)
    assert result.status == "error"
    assert next(iter(arguments)) in (result.error or "")


def test_bad_paths_say_what_where_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    for path, what in (
        (tmp_path / "gone.log", "check the path"),
        (tmp_path / "none", "name another"),
        (tmp_path / "*.x", "pattern"),
    ):
        with pytest.raises(BadSource, match=what) as caught:
            LogFiles([str(path)], lambda: NOW)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


def test_a_giant_line_is_read_up_to_a_bound_and_the_cut_is_told(tmp_path: Path) -> None:
    giant = "ERROR start " + "x" * (3 * MAX_LINE) + " out of reach"
    path = written(tmp_path / "a.log", f"first\n{giant}\nERROR last\n")
    result = search(path, terms=["ERROR"])
    told = f"lines[2] has {len(giant)} bytes: only its first {MAX_LINE} were read"
    assert told in (details(result).dropped_reason or "")
    assert details(result).truncated
    assert [ref.raw_path.partition(":")[0] for ref in refs(result)] == ["lines[2]", "lines[3]"]
    missed = search(path, terms=["out of reach"])
    assert missed.status == "no_data"
    assert told in (details(missed).dropped_reason or "")
    assert "reach" not in texts(result)[0]


def test_a_line_of_the_bound_is_read_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log", "x" * (MAX_LINE - 6) + " reach\n")
    result = search(path, terms=["reach"])
    assert details(result).matched == 1
    assert "bytes: only its first" not in (details(result).dropped_reason or "")
