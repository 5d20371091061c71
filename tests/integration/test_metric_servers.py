"""`query_metrics` over real servers: the lines of the same samples in a file; errors, gaps and no data told apart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from handlers.demo.incident import Incident, generate
from handlers.evidence.access import Access
from handlers.evidence.backend import Backend
from handlers.evidence.files import tools_for
from handlers.evidence.metrics import MetricFiles
from handlers.evidence.prometheus import PrometheusMetrics
from handlers.evidence.protocol import ToolResult
from streams.events import QuestionAsked, Sources
from tests.integration import metric_servers
from tests.play import SESSION, Stage

NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)
SERVERS = ("prometheus", "victoria_metrics")
WINDOW = {"since": "2026-03-17T10:00:00Z", "until": "2026-03-17T10:45:00Z"}


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Incident:
    return generate(tmp_path_factory.mktemp("incident"))


@pytest.fixture(scope="module", params=SERVERS)
def url(request: pytest.FixtureRequest, incident: Incident, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    start = getattr(metric_servers, request.param)
    with start(tmp_path_factory.mktemp(request.param), incident.metrics) as address:
        yield address


def called(url: str, **arguments: Any) -> ToolResult:
    tool = PrometheusMetrics(Backend("prometheus", url, Access()), lambda: NOW)
    return asyncio.run(tool.invoke(arguments))


def lines(result: ToolResult) -> list[str]:
    assert result.retrieval_details is not None
    return [ref.text for ref in result.retrieval_details.evidence_refs or ()]


def note(result: ToolResult) -> str:
    assert result.retrieval_details is not None
    return result.retrieval_details.dropped_reason or ""


@pytest.mark.parametrize(
    "arguments",
    [
        {"metric": "hikaricp_connections_active", **WINDOW},
        {"metric": "HTTP_server_requests", "labels": {"status": "5.."}, **WINDOW},
        {"terms": ["payments-pool"], **WINDOW},
        WINDOW,
        {"metric": "ledger_db_cpu_ratio", "since": "2026-03-17T10:17:00Z", "until": "2026-03-17T10:22:00Z"},
    ],
)
def test_the_same_question_gives_the_lines_that_the_same_samples_in_a_file_give(
    url: str, incident: Incident, arguments: dict[str, Any]
) -> None:
    file = asyncio.run(MetricFiles([str(incident.metrics)], lambda: NOW).invoke(arguments))
    assert lines(file)
    assert sorted(lines(called(url, **arguments))) == sorted(lines(file))


def test_a_gap_in_the_samples_shows(url: str) -> None:
    (line,) = lines(called(url, metric="ledger_db_cpu_ratio", **WINDOW))
    assert " step=15s gap=10:18..10:21" in line


def test_a_long_window_is_read_in_steps_says_so_and_still_shows_the_gap(url: str) -> None:
    result = called(url, metric="ledger_db_cpu_ratio", since="2026-03-17T09:00:00Z", until="2026-03-17T11:00:00Z")
    (line,) = lines(result)
    assert " step=30s gap=10:18" in line
    assert "one sample each 30s is read" in note(result)
    assert int(line.split(" n=")[1].split()[0]) <= 300


def test_an_expression_names_its_line_and_its_step_is_raised_to_the_bound(url: str) -> None:
    query = "sum by (status) (rate(http_server_requests_total[5m]))"
    result = called(url, query=query, step="1s", **WINDOW)
    texts = lines(result)
    assert [text.split(" last=")[0] for text in texts] == [f'{query}{{status="{code}"}}' for code in (200, 500)]
    assert all(" n=271 2026-03-17T10:00Z..10:45Z step=10s" in text for text in texts)
    assert "the step was raised to 10s: at most 300 points a series" in note(result)


def test_without_a_window_an_expression_is_a_value_at_one_moment(url: str) -> None:
    (line,) = lines(called(url, query="max(hikaricp_connections_active)", until="2026-03-17T10:30:00Z"))
    assert line == "max(hikaricp_connections_active) value=20 at=2026-03-17T10:30Z"


def test_no_data_is_not_zero_and_not_an_error(url: str) -> None:
    for arguments in ({"query": "absent_metric", **WINDOW}, {"metric": "absent_metric", **WINDOW}):
        result = called(url, **arguments)
        assert result.status == "no_data"
        (line,) = lines(result)
        assert line.startswith("hits=0 window=2026-03-17T10:00:00Z..2026-03-17T10:45:00Z status=ok ")
        assert "which is not zero" in note(result)
    (zero,) = lines(called(url, metric="hikaricp_connections_leaked", labels={"pool": "payments-pool"}, **WINDOW))
    assert " last=0 min=0 max=0 " in zero


def test_a_value_that_is_no_number_is_said_to_be_none(url: str) -> None:
    (line,) = lines(called(url, query="max(hikaricp_connections_active) / 0", until="2026-03-17T10:30:00Z"))
    assert line.endswith("value=+Inf at=2026-03-17T10:30Z (no finite number: nothing was measured)")


def test_a_query_that_the_server_refuses_is_an_error_in_its_own_words(url: str) -> None:
    result = called(url, query="rate(")
    assert result.status == "error"
    assert result.error is not None
    assert ("bad_data" in result.error and "unclosed left parenthesis" in result.error) or "422" in result.error
    assert lines(result) == [result.error]


def test_every_shown_line_is_found_again_in_the_full_output(url: str) -> None:
    tool = PrometheusMetrics(Backend("prometheus", url, Access()), lambda: NOW)
    result = asyncio.run(tool.invoke(WINDOW))
    assert result.retrieval_details is not None
    assert result.output is not None
    for ref in result.retrieval_details.evidence_refs or ():
        assert tool.resolve(result.output, ref.raw_path) == ref.text


def test_a_turn_over_logs_in_files_and_metrics_on_a_server_ends_in_a_confirmed_answer(
    url: str, incident: Incident
) -> None:
    async def turn() -> Any:
        stage = Stage()
        sources = Sources(logs=(str(incident.logs),), metrics=(url,), runbooks=(str(incident.runbooks),))
        await stage.ask(QuestionAsked(question="Why does payment-service time out?", lang="en", sources=sources))
        return await stage.run()

    state = asyncio.run(turn())
    assert state.session == SESSION
    used = [i for i in state.invocations if i.tool_name == "query_metrics" and i.status == "success"]
    assert any("hikaricp_connections" in json.dumps(i.model_dump(mode="json")) for i in used)
    assert state.turns[-1].answer.kind == "answer"


def test_the_tool_has_the_files_name_where_there_are_no_files(incident: Incident) -> None:
    both = Sources(metrics=(str(incident.metrics), "http://metrics:9090", "https://other/prometheus"))
    assert [*tools_for(both, lambda: NOW)] == ["query_metrics", "query_metrics_2", "query_metrics_3", "current_time"]
    assert [*tools_for(Sources(metrics=("http://metrics:9090",)), lambda: NOW)] == ["query_metrics", "current_time"]
