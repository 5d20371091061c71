"""query_metrics over files: one quotable line a series; no data, NaN, infinity and zero told apart."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handlers.evidence.metric_texts import parse
from handlers.evidence.metrics import MetricFiles
from handlers.evidence.protocol import ToolResult
from handlers.evidence.series import Series, number
from streams.contract import EvidenceRef, RetrievalDetails

NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)
TEN = 1_773_741_600  # 2026-03-17T10:00:00Z


def tool_of(*paths: Path) -> MetricFiles:
    return MetricFiles([str(path) for path in paths], lambda: NOW)


def query(*paths: Path, **arguments: Any) -> ToolResult:
    return asyncio.run(tool_of(*paths).invoke(arguments))


def details(result: ToolResult) -> RetrievalDetails:
    assert result.retrieval_details is not None
    return result.retrieval_details


def refs(result: ToolResult) -> tuple[EvidenceRef, ...]:
    return details(result).evidence_refs or ()


def texts(result: ToolResult) -> list[str]:
    return [ref.text for ref in refs(result)]


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def api(kind: str, result: list[Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def instant(value: str, **labels: str) -> dict[str, Any]:
    return {"metric": {"__name__": "hikaricp_connections_pending", **labels}, "value": [TEN + 0.901, value]}


def exposition(values: list[float], step: int = 15, skip: tuple[int, ...] = ()) -> str:
    lines = ["# HELP hikaricp_connections_active Active", "# TYPE hikaricp_connections_active gauge"]
    lines += [
        f'hikaricp_connections_active{{pool="payments-pool"}} {value} {TEN + step * at}'
        for at, value in enumerate(values)
        if at not in skip
    ]
    return "\n".join([*lines, "# EOF", ""])


def test_a_range_is_one_line_with_window_step_and_gap(tmp_path: Path) -> None:
    skipped = tuple(range(72, 84))
    text = exposition([4.0] * 36 + [20.0] * 144 + [20.0], skip=skipped)
    (line,) = texts(query(written(tmp_path / "m.om", text)))
    assert line == (
        'hikaricp_connections_active{pool="payments-pool"} last=20 min=4 max=20 avg=16.5917 n=169 '
        "2026-03-17T10:00Z..10:45Z step=15s gap=10:18..10:21 first=4 max_at=2026-03-17T10:09Z"
    )


def test_an_instant_value_is_one_line_with_its_time(tmp_path: Path) -> None:
    result = query(written(tmp_path / "m.json", api("vector", [instant("37", pool="payments")])))
    assert texts(result) == ['hikaricp_connections_pending{pool="payments"} value=37 at=2026-03-17T10:00:00.901Z']
    assert refs(result)[0].raw_path == "result[0]"


@pytest.mark.parametrize(("raw", "said"), [("NaN", "value=NaN"), ("+Inf", "value=+Inf"), ("-Inf", "value=-Inf")])
def test_what_is_no_number_is_said_to_be_none(tmp_path: Path, raw: str, said: str) -> None:
    (line,) = texts(query(written(tmp_path / "m.json", api("vector", [instant(raw)]))))
    assert said in line
    assert line.endswith("(no finite number: nothing was measured)")


def test_nan_within_a_range_is_counted_and_never_averaged(tmp_path: Path) -> None:
    values = [[TEN, "1"], [TEN + 15, "NaN"], [TEN + 30, "3"]]
    (line,) = texts(
        query(written(tmp_path / "m.json", api("matrix", [{"metric": {"__name__": "x"}, "values": values}])))
    )
    assert line.startswith("x last=3 min=1 max=3 avg=2 n=3 nan=1 ")


def test_an_empty_result_is_no_data_and_not_zero(tmp_path: Path) -> None:
    result = query(written(tmp_path / "m.json", api("vector", [])), metric="up")
    assert result.status == "no_data"
    (ref,) = refs(result)
    assert ref.raw_path == "summary"
    assert ref.text.startswith("hits=0 window=all status=ok files=1 series_scanned=0 query=")
    assert "no data, which is not zero" in (details(result).dropped_reason or "")


def test_no_hit_in_a_window_that_was_not_covered_says_so(tmp_path: Path) -> None:
    file = written(tmp_path / "m.om", exposition([1.0, 2.0, 3.0]))
    before = details(query(file, metric="active", until="2026-03-17T09:00:00Z"))
    assert "all that was read is of 2026-03-17T10:00Z..2026-03-17T10:00:30Z" in (before.dropped_reason or "")
    assert before.truncated is True
    covered = details(query(file, metric="nothing_like_it", since="2026-03-17T09:00:00Z"))
    assert (covered.dropped_reason, covered.truncated) == (None, False)


def test_an_error_body_is_an_error_with_its_own_text(tmp_path: Path) -> None:
    body = {"status": "error", "errorType": "bad_data", "error": "parse error: unclosed left parenthesis"}
    result = query(written(tmp_path / "m.json", body))
    assert result.status == "error"
    assert [(ref.raw_path, ref.text) for ref in refs(result)] == [
        ("error", "bad_data: parse error: unclosed left parenthesis")
    ]


def test_an_error_among_answers_is_told_and_is_no_evidence(tmp_path: Path) -> None:
    good = written(tmp_path / "a.json", api("vector", [instant("37")]))
    bad = written(tmp_path / "b.json", {"status": "error", "errorType": "422", "error": "too many points"})
    result = query(good, bad)
    assert result.status == "success"
    assert [ref.raw_path for ref in refs(result)] == ["a.json:result[0]"]
    assert "b.json holds an error, which is no evidence: 422: too many points" in (details(result).dropped_reason or "")


def test_a_body_that_is_a_failed_command_is_an_error(tmp_path: Path) -> None:
    text = (
        "Command `kubectl top pods` failed with return code 1\nstdout:\n\nstderr:\nerror: Metrics API not available\n"
    )
    assert query(written(tmp_path / "m.txt", text)).status == "error"


def test_labels_of_any_script_are_kept_and_escaped(tmp_path: Path) -> None:
    result = query(written(tmp_path / "m.json", api("vector", [instant("1", msg='café "x" \n 支付')])))
    assert 'msg="café \\"x\\" \\n 支付"' in texts(result)[0]


def test_counters_have_increase_and_rate_over_resets(tmp_path: Path) -> None:
    text = "# TYPE http_requests counter\n" + "".join(
        f'http_requests_total{{status="500"}} {value} {TEN + 10 * at}\n' for at, value in enumerate([0, 30, 60, 5, 35])
    )
    (line,) = texts(query(written(tmp_path / "m.om", text)))
    assert line.endswith("increase=95 rate=2.375/s resets=1")


def test_prometheus_text_counts_milliseconds_and_open_metrics_seconds(tmp_path: Path) -> None:
    text = f"up 1 {TEN * 1000}\nup 1 {TEN * 1000 + 15000}\n"
    assert "2026-03-17T10:00Z..10:00:15Z step=15s" in texts(query(written(tmp_path / "m.prom", text)))[0]


def test_a_window_keeps_only_its_points_and_a_series_without_any_is_no_hit(tmp_path: Path) -> None:
    path = written(tmp_path / "m.om", exposition([4, 4, 20, 20]))
    (line,) = texts(query(path, since="2026-03-17T10:00:30Z"))
    assert "last=20 min=20 max=20 avg=20 n=2" in line
    assert query(path, since="2026-03-17T10:30:00Z").status == "no_data"


def test_alerts_and_series_lists_are_lines_too(tmp_path: Path) -> None:
    alert = {
        "labels": {"alertname": "PoolFull", "pool": "p"},
        "annotations": {"summary": "pending 37"},
        "state": "firing",
    }
    result = query(written(tmp_path / "a.json", {"status": "success", "data": {"alerts": [alert]}}))
    assert texts(result) == ['ALERT PoolFull{pool="p"} state="firing" summary="pending 37"']
    series = query(written(tmp_path / "s.json", {"status": "success", "data": [{"__name__": "up", "job": "j"}]}))
    assert texts(series) == ['up{job="j"} (this series exists; no value was asked for)']


def test_many_series_are_reduced_and_the_labels_to_narrow_by_are_named(tmp_path: Path) -> None:
    many = [instant("0", pool=f"p{at}", job="j") for at in range(300)] + [instant("37", pool="payments", job="j")]
    result = query(written(tmp_path / "m.json", api("vector", many)), limit=10)
    found = details(result)
    assert (found.matched, found.returned, found.truncated) == (301, 10, True)
    assert "291 of 301 records not shown (1 metrics; labels: pool (301 values), job (1 values))" in (
        found.dropped_reason or ""
    )
    assert "result[300]" in {ref.raw_path for ref in refs(result)}, "the one that is not zero is shown first"


def test_metric_labels_and_terms_narrow(tmp_path: Path) -> None:
    body = api(
        "vector", [instant("1", pool="a"), instant("2", pool="b"), {"metric": {"__name__": "up"}, "value": [TEN, "1"]}]
    )
    path = written(tmp_path / "m.json", body)
    assert len(texts(query(path, metric="connections_pend"))) == 2
    assert len(texts(query(path, metric="^up$"))) == 1
    assert [ref.raw_path for ref in refs(query(path, labels={"pool": "b|c"}))] == ["result[1]"]
    assert [ref.raw_path for ref in refs(query(path, terms=["UP"]))] == ["result[2]"]


@pytest.mark.parametrize("arguments", [{"metric": "("}, {"labels": ["a"]}, {"file": "other.json"}])
def test_a_bad_argument_is_a_result_that_says_which(tmp_path: Path, arguments: dict[str, Any]) -> None:
    result = query(written(tmp_path / "m.json", api("vector", [instant("1")])), **arguments)
    assert result.status == "error"
    assert next(iter(arguments)) in (result.error or "")


def test_series_in_other_json_are_found_by_their_shape(tmp_path: Path) -> None:
    stamps = [f"2026-03-17T10:0{at}:00Z" for at in range(5)]
    column = {
        "metric_name": "DatabaseConnections", "dimensions": [{"Name": "Instance", "Value": "ledger-db"}], "unit": "Count",
        "timestamps": stamps, "values": [312, 341, 400, None, 494],
    }  # fmt: skip
    rows = [{"Timestamp": stamp, "Average": 1.5 + at, "Unit": "Percent"} for at, stamp in enumerate(stamps)]
    body = {
        "period": 60,
        "results": [column],
        "Datapoints": rows,
        "top": [{"wait": "ClientRead", "load": 5.8, "note": None}],
    }
    found = {ref.raw_path: ref.text for ref in refs(query(written(tmp_path / "m.json", body)))}
    assert found["results[0]"].startswith(
        'DatabaseConnections{Instance="ledger-db",unit="Count"} last=494 min=312 max=494 avg=386.75 n=5 nan=1 '
    )
    assert found["Datapoints.Average"].startswith('Datapoints.Average{Unit="Percent"} last=5.5 min=1.5')
    assert found["top[0]"] == 'top[0] wait="ClientRead" load=5.8 note=null'
    assert found["$"] == "period=60"


def test_text_of_no_known_form_is_quotable_line_by_line(tmp_path: Path) -> None:
    result = query(written(tmp_path / "m.txt", "pool  active\npayments  20\n"))
    assert [(ref.raw_path, ref.text) for ref in refs(result)] == [
        ("lines[1]", "pool  active"),
        ("lines[2]", "payments  20"),
    ]


def test_every_record_is_found_in_the_full_output_also_those_not_shown(tmp_path: Path) -> None:
    tool = tool_of(written(tmp_path / "m.json", api("vector", [instant(str(at), pool=f"p{at}") for at in range(50)])))
    result = asyncio.run(tool.invoke({"limit": 3}))
    assert all(tool.resolve(result.output or b"", ref.raw_path) == ref.text for ref in refs(result))
    assert 'pool="p17"' in (tool.resolve(result.output or b"", "result[17]") or "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(20.0, "20"), (0.1 + 0.2, "0.3"), (58843218739.0, "58843218739"), (15.533333333333335, "15.5333333"), (-0.0, "0"), (1e300, "1e+300")],
)  # fmt: skip
def test_numbers_have_nine_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_series_without_points_says_only_its_name() -> None:
    assert Series("data[0]", "up", {"job": "j"}).render() == 'up{job="j"}'


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000])
def test_a_file_nested_too_deep_is_read_by_its_lines(text: str) -> None:
    answer = parse(text)
    assert answer.error is None
    assert [record.text[:3] for record in answer.records] == [text[:3]]
