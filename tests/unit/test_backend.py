"""How a backend is reached: credentials never in an event, bounds before memory, no redirect, faults in words."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from handlers.cli.ask import ask, named_sources
from handlers.cli.ask import without_secrets as out_of_the_sources
from handlers.evidence.access import Access, kind_of, without_secrets
from handlers.evidence.backend import Backend
from handlers.evidence.files import tools_for
from handlers.evidence.prometheus import SERIES, PrometheusMetrics
from handlers.evidence.protocol import BadSource, ToolResult
from handlers.settings import Settings
from streams.events import Sources
from tests.stub_backend import Asked, Says, StubBackend

NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)
AT = NOW.timestamp()


def vector(*samples: tuple[dict[str, str], str]) -> Says:
    result = [{"metric": metric, "value": [AT, value]} for metric, value in samples]
    return Says({"status": "success", "data": {"resultType": "vector", "result": result}})


def called(answer: Callable[[Asked], Says], access: Access | None = None, **arguments: Any) -> tuple[ToolResult, Asked]:
    with StubBackend(answer) as stub:
        tool = PrometheusMetrics(Backend("prometheus", stub.url, access or Access()), lambda: NOW)
        result = asyncio.run(tool.invoke(arguments or {"query": "up"}))
        return result, stub.asked[-1]


def error(result: ToolResult) -> str:
    assert result.status == "error"
    assert result.retrieval_details is not None
    assert [ref.text for ref in result.retrieval_details.evidence_refs or ()] == [result.error]
    return result.error or ""


@pytest.mark.parametrize(
    ("access", "headers"),
    [
        (Access(token=SecretStr("t0k")), {"authorization": "Bearer t0k"}),
        (
            Access(username="ledger", password=SecretStr("pw")),
            {"authorization": "Basic " + base64.b64encode(b"ledger:pw").decode()},
        ),
        (Access(tenant="team-pay"), {"x-scope-orgid": "team-pay"}),
    ],
)
def test_credentials_and_tenant_go_in_headers(access: Access, headers: dict[str, str]) -> None:
    result, request = called(lambda _: vector(({"__name__": "up"}, "1")), access)
    assert result.status == "success"
    assert headers.items() <= request.headers.items()


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (Says({"status": "error", "errorType": "bad_data", "error": "parse error: x"}, 400), "bad_data: parse error: x"),
        (Says({"status": "error", "errorType": "422", "error": "cannot parse"}, 422), "HTTP 422: 422: cannot parse"),
        (Says(b"upstream busy", 503, "text/plain"), "HTTP 503: overloaded or not ready; ask again later, or for less: upstream"),
        (Says(b"", 401, "text/plain"), "HTTP 401: not let in; set VERDICTLOG_PROMETHEUS_TOKEN"),
        (Says(b"<html>login</html>", 200, "text/html"), "a web page, not an API's answer"),
        (Says(b"{cut", 200), "HTTP 200: {cut"),
        (Says(b"", 302, headers={"location": "http://elsewhere/"}), "redirects to http://elsewhere/, which is not followed"),
    ],
)  # fmt: skip
def test_a_fault_of_the_server_is_an_error_in_words(says: Says, told: str) -> None:
    result, _ = called(lambda _: says)
    assert told in error(result)


def test_a_server_that_is_not_there_hangs_or_talks_too_long_is_an_error() -> None:
    tool = PrometheusMetrics(Backend("prometheus", "http://127.0.0.1:9", Access()), lambda: NOW)
    assert "http://127.0.0.1:9 cannot be reached" in error(asyncio.run(tool.invoke({"query": "up"})))
    slow, _ = called(lambda _: Says(delay_s=4.0), Access(timeout_s=2.0))
    assert "did not answer within 2 s" in error(slow)
    long, _ = called(lambda _: Says(b" " * 300_000), Access(max_bytes=100_000))
    assert "the answer is longer than 100000 bytes; ask for less" in error(long)


def test_warnings_of_the_server_are_handed_on() -> None:
    body = {"status": "success", "warnings": ["partial"], "data": {"resultType": "vector", "result": []}}
    result, _ = called(lambda _: Says(body))
    assert result.retrieval_details is not None
    assert "warnings: partial" in (result.retrieval_details.dropped_reason or "")


def test_many_series_are_capped_with_their_labels_counted_and_advice() -> None:
    many = vector(*(({"__name__": "up", "pod": f"payment-{k}", "zone": "a"}, str(k)) for k in range(90)))
    result, _ = called(lambda _: many, query="up")
    details = result.retrieval_details
    assert details is not None
    assert (details.matched, details.returned, details.truncated) == (90, SERIES, True)
    assert "70 of 90 records not shown (1 metrics; labels: pod (90 values), zone (1 values))" in (
        details.dropped_reason or ""
    )
    assert "topk(20, ...)" in (details.dropped_reason or "")


def test_of_thousands_of_series_only_the_shown_ones_are_read() -> None:
    names = [{"__name__": "up", "pod": f"payment-{k}"} for k in range(1_000)]

    def answer(request: Asked) -> Says:
        if request.path.endswith("/series"):
            return Says({"status": "success", "data": names})
        if request.path.endswith("/metadata"):
            return Says({"status": "success", "data": {"up": [{"type": "gauge"}]}})
        if request.one("query").startswith("count_over_time"):
            return vector(({}, "2"))
        metric = {"__name__": "up", "pod": request.one("query").split('pod="')[1].split('"')[0]}
        values = [[AT - 30, "1"], [AT - 15, "1"]]
        return Says(
            {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": metric, "values": values}]}}
        )

    with StubBackend(answer) as stub:
        tool = PrometheusMetrics(Backend("prometheus", stub.url, Access()), lambda: NOW)
        result = asyncio.run(tool.invoke({"metric": "up"}))
        assert len(stub.asked) < 30
    assert result.error is None
    assert result.retrieval_details is not None
    assert (result.retrieval_details.matched, result.retrieval_details.returned) == (1_000, SERIES)
    paths = [ref.raw_path for ref in result.retrieval_details.evidence_refs or ()]
    assert paths == [f"result[{k}]" for k in range(SERIES)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "up", "metric": "up"},
        {"metric": "up", "labels": {"a-b": "x"}},
        {"metric": "up", "labels": "x"},
        {"query": "up", "step": "soon"},
        {"query": "up", "since": "yesterday"},
        {"query": "up", "since": "5m", "until": "10m"},
        {"query": "x" * 9_000},
    ],
)
def test_arguments_that_mean_nothing_are_told_and_nothing_is_asked(arguments: dict[str, Any]) -> None:
    with StubBackend(lambda _: Says()) as stub:
        tool = PrometheusMetrics(Backend("prometheus", stub.url, Access()), lambda: NOW)
        result = asyncio.run(tool.invoke(arguments))
        assert error(result)
        assert not stub.asked


def test_a_label_value_cannot_leave_its_quotes() -> None:
    _, request = called(lambda _: Says({"status": "success", "data": []}), metric='a"} or x{', labels={"pod": 'b"\n\\'})
    assert request.form["match[]"] == ['{__name__=~"(?i:.*(?:a\\"} or x{).*)",pod=~"(?i:b\\"\\n\\\\)"}']


def test_user_and_password_of_an_address_never_reach_the_sources() -> None:
    given = named_sources((), ("http://ledger:p%40ss@metrics:9090/prom",), (), ())
    sources, settings = out_of_the_sources(given, Settings(_env_file=None))
    assert sources.metrics == ("http://metrics:9090/prom",)
    assert "p@ss" not in sources.model_dump_json() + repr(settings)
    assert settings.prometheus.username == "ledger"
    assert settings.prometheus.password is not None
    assert settings.prometheus.password.get_secret_value() == "p@ss"


def test_settings_of_a_backend_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERDICTLOG_PROMETHEUS_TOKEN", "t0k")
    monkeypatch.setenv("VERDICTLOG_LOKI_TENANT", "team-pay")
    monkeypatch.setenv("VERDICTLOG_VICTORIALOGS_MAX_BYTES", "1000")
    settings = Settings(_env_file=None)
    assert settings.prometheus.token is not None
    assert settings.prometheus.token.get_secret_value() == "t0k"
    assert (settings.loki.tenant, settings.victorialogs.max_bytes) == ("team-pay", 1000)
    assert "t0k" not in repr(settings)


@pytest.mark.parametrize(
    "source", ["http://", "ftp://metrics/x", "http://u:secret1@metrics:9090/?token=secret1", "http://metrics:port/"]
)
def test_an_address_that_cannot_serve_is_refused_without_giving_a_secret_away(source: str) -> None:
    with pytest.raises(BadSource) as refused:
        kind_of(without_secrets(source)[0])
    assert "secret1" not in str(refused.value)


def test_an_address_of_the_wrong_sort_and_a_certificate_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="loki"):
        tools_for(Sources(logs=("http://metrics:9090",)), lambda: NOW)
    with pytest.raises(BadSource, match="no address for query_metrics"):
        tools_for(Sources(metrics=("loki+http://logs:3100",)), lambda: NOW)
    (tmp_path / "ca.pem").write_text("nothing", encoding="utf-8")
    with pytest.raises(BadSource, match="certificate"):
        Backend("prometheus", "https://metrics", Access(ca_file=tmp_path / "ca.pem"))


def test_the_command_refuses_a_bad_address_in_one_line() -> None:
    result = CliRunner().invoke(ask, ["Why?", "--metrics", "http://me:secret1@metrics:9090/?x=1"])
    assert isinstance(result.exception, BadSource)
    assert "secret1" not in str(result.exception)
