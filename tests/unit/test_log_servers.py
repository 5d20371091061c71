"""query_logs over Loki and VictoriaLogs, by the documented shapes of their APIs: bounded, counted, chosen as of a file."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handlers.evidence.access import Access
from handlers.evidence.files import tools_for
from handlers.evidence.logs import LogFiles
from handlers.evidence.protocol import ToolResult
from streams.events import Sources
from tests.stub_backend import Asked, Says, StubBackend

NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)
TEN = 1_773_741_600  # 2026-03-17T10:00:00Z
WINDOW = {"since": "2026-03-17T10:00:00Z", "until": "2026-03-17T10:45:00Z"}
LINES = [
    f"2026-03-17T10:{k // 60:02d}:{k % 60:02d}Z {level} payment-service {text}"
    for k, (level, text) in enumerate(
        [("INFO", f"POST /v1/payments 200 {k}ms") for k in range(200)]
        + [("ERROR", "HikariPool-1 - Connection is not available, request timed out after 30001ms")]
        + [("INFO", f"POST /v1/payments 200 {k}ms") for k in range(200)]
    )
]


def matching(query: str, lines: list[str]) -> list[tuple[int, str]]:
    """What a server finds, by the last regular expression of the query."""
    patterns = re.findall(r'~ ?"((?:[^"\\]|\\.)*)"', query)
    wanted = [json.loads(f'"{pattern}"') for pattern in patterns]
    held = [text for text in wanted if text != ".+" and not text.startswith("(?i).*")]
    numbered = [(TEN + k, line) for k, line in enumerate(lines)]
    return [(at, line) for at, line in numbered if all(re.search(text, line) for text in held[-1:])]


def loki(lines: list[str]) -> Callable[[Asked], Says]:
    def answer(request: Asked) -> Says:
        if request.path == "/loki/api/v1/labels":
            return Says({"status": "success", "data": ["pod", "app"]})
        if request.path.startswith("/loki/api/v1/label/"):
            return Says({"status": "success", "data": ["payment-service", "ledger-db"]})
        found = matching(request.one("query"), lines)
        if request.path == "/loki/api/v1/query":
            value = [{"metric": {}, "value": [TEN, str(len(found))]}] if found else []
            return Says({"status": "success", "data": {"resultType": "vector", "result": value}})
        limit = int(request.one("limit"))
        ordered = found[:limit] if request.one("direction") == "FORWARD" else found[::-1][:limit]
        values = [[f"{at}000000000", line] for at, line in ordered]
        result = [{"stream": {"app": "payment-service"}, "values": values}] if values else []
        return Says({"status": "success", "data": {"resultType": "streams", "result": result, "stats": {}}})

    return answer


def victorialogs(lines: list[str]) -> Callable[[Asked], Says]:
    def answer(request: Asked) -> Says:
        query = request.one("query")
        found = matching(query, lines)
        if "| stats count()" in query:
            return Says(
                json.dumps({"matched": str(len(found))}).encode() + b"\n", content_type="application/stream+json"
            )
        limit = int(request.one("limit"))
        ordered = found[::-1][:limit] if "desc" in query else found[:limit]
        rows = [
            {
                "_time": datetime.fromtimestamp(at, UTC).isoformat(),
                "_stream_id": "0",
                "_stream": '{app="x"}',
                "_msg": line,
            }
            for at, line in ordered
        ]
        body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        return Says(body, content_type="application/stream+json")

    return answer


SERVERS = {"loki": ("loki+", loki), "victorialogs": ("vlogs+", victorialogs)}


@pytest.fixture(params=list(SERVERS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def called(
    kind: str, answer: Callable[[Asked], Says], access: Access | None = None, **arguments: Any
) -> tuple[ToolResult, list[Asked]]:
    with StubBackend(answer) as stub:
        sources = Sources(logs=(f"{SERVERS[kind][0]}{stub.url}",))
        tool = tools_for(sources, lambda: NOW, {kind: access or Access()})["query_logs"]
        result = asyncio.run(tool.invoke(arguments))
        if result.output is not None:
            for ref in (result.retrieval_details and result.retrieval_details.evidence_refs) or ():
                assert tool.resolve(result.output, ref.raw_path) == ref.text
        return result, stub.asked


def texts(result: ToolResult) -> list[str]:
    assert result.retrieval_details is not None
    return [
        ref.text for ref in result.retrieval_details.evidence_refs or () if not ref.raw_path.startswith("templates")
    ]


@pytest.mark.parametrize("arguments", [{}, {"terms": ["connection is not"]}, {"terms": ["payments"], "limit": 12}, {"level": "error"}])  # fmt: skip
def test_the_same_lines_are_shown_as_of_a_file(kind: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("\n".join(LINES), encoding="utf-8")
    file = asyncio.run(LogFiles([str(tmp_path)], lambda: NOW).invoke({**arguments, **WINDOW}))
    result, _ = called(kind, SERVERS[kind][1](LINES), **arguments, **WINDOW)
    assert result.status == "success"
    assert texts(result) == texts(file)
    assert result.retrieval_details is not None
    assert file.retrieval_details is not None
    assert result.retrieval_details.matched == file.retrieval_details.matched
    assert result.retrieval_details.returned == file.retrieval_details.returned
    assert result.retrieval_details.truncated == file.retrieval_details.truncated


def test_a_limit_and_the_window_are_always_sent(kind: str) -> None:
    _, asked = called(kind, SERVERS[kind][1](LINES), **WINDOW)
    reads = [request for request in asked if "limit" in request.form]
    assert reads
    for request in reads:
        assert int(request.one("limit")) <= 5_000
        assert request.one("start").startswith(("2026-03-17T10:00:00", f"{TEN}"))


def test_of_too_many_lines_both_ends_are_read_and_all_are_counted(kind: str) -> None:
    lines = [f"INFO payment-service POST {k}" for k in range(12_000)]
    result, asked = called(kind, SERVERS[kind][1](lines), since="2026-03-17T10:00:00Z", until="2026-03-17T14:00:00Z")
    details = result.retrieval_details
    assert details is not None
    assert details.matched == 12_000
    assert details.truncated is True
    assert "of 12000 matching lines the first and the last 2500 were read; narrow the query" in (
        details.dropped_reason or ""
    )
    assert texts(result)[0].endswith("POST 0")
    assert texts(result)[-1].endswith("POST 11999")
    assert len([request for request in asked if request.form.get("limit") == ["2500"]]) == 2


def test_a_line_without_a_time_of_its_own_is_shown_behind_the_servers(kind: str) -> None:
    result, _ = called(kind, SERVERS[kind][1](["connection refused by ledger-db"]), **WINDOW)
    assert texts(result) == ["2026-03-17T10:00:00Z connection refused by ledger-db"]


def test_nothing_found_is_no_data_with_what_was_searched(kind: str) -> None:
    result, _ = called(kind, SERVERS[kind][1](LINES), terms=["disk full"], **WINDOW)
    assert result.status == "no_data"
    (text,) = texts(result)
    assert text.startswith("hits=0 window=2026-03-17T10:00:00Z..2026-03-17T10:45:00Z status=ok query=")


def test_terms_are_texts_and_not_patterns(kind: str) -> None:
    lines = ['GET /a.b?x="1"', "GET /aXb"]
    result, _ = called(kind, SERVERS[kind][1](lines), terms=['a.b?x="1"'], **WINDOW)
    assert texts(result) == ['2026-03-17T10:00:00Z GET /a.b?x="1"']


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (Says(b"parse error at line 1, col 9: syntax error", 400, "text/plain"), "HTTP 400: parse error at line 1"),
        (Says(b"too many outstanding requests", 429, "text/plain"), "HTTP 429: too many requests"),
        (Says(b"<html></html>", 200, "text/html"), "a web page, not an API's answer"),
        (Says(b"no org id", 401, "text/plain"), "HTTP 401: not let in; set VERDICTLOG_"),
    ],
)
def test_what_the_server_refuses_is_an_error_in_its_own_words(kind: str, says: Says, told: str) -> None:
    result, _ = called(kind, lambda _: says, query="{", **WINDOW)
    assert result.status == "error"
    assert told in (result.error or "")


@pytest.mark.parametrize(
    "arguments",
    [{"query": "x", "terms": ["y"]}, {"since": "5m", "until": "10m"}, {"level": "loud"}, {"query": "x" * 9_000}],
)
def test_arguments_that_mean_nothing_are_told_and_nothing_is_asked(kind: str, arguments: dict[str, Any]) -> None:
    result, asked = called(kind, SERVERS[kind][1](LINES), **arguments)
    assert result.status == "error"
    assert not asked


def test_tenants_go_in_each_servers_own_headers() -> None:
    _, asked = called("loki", loki(LINES), Access(tenant="team-pay"), **WINDOW)
    assert {request.headers["x-scope-orgid"] for request in asked} == {"team-pay"}
    _, asked = called("victorialogs", victorialogs(LINES), Access(tenant="12:34"), **WINDOW)
    assert {(request.headers["accountid"], request.headers["projectid"]) for request in asked} == {("12", "34")}


def test_a_service_is_looked_for_in_the_label_that_holds_it() -> None:
    _, asked = called("loki", loki(LINES), service="Payment", terms=["timed out"], **WINDOW)
    assert asked[-1].one("query") == '{app=~"(?i).*Payment.*"} |~ "(?i)timed\\\\ out"'
    _, asked = called("loki", loki(LINES), service="nobody", **WINDOW)
    assert asked[-1].one("query") == '{app=~".+"} |~ "(?i)nobody"'


def test_a_query_of_loki_that_gives_no_lines_is_told() -> None:
    def answer(request: Asked) -> Says:
        if request.path.endswith("/query_range"):
            return Says({"status": "success", "data": {"resultType": "matrix", "result": []}})
        return Says(b"cannot count", 400, "text/plain")

    result, _ = called("loki", answer, query='rate({app="x"}[1m])', **WINDOW)
    assert "gives matrix, not lines" in (result.error or "")


def test_fields_beside_the_message_are_shown_and_a_long_answer_is_cut_at_a_line() -> None:
    row = {"_time": "2026-03-17T10:00:00Z", "_stream": "{}", "_msg": "timed out", "pod": "payment-service-7"}
    body = b"".join(json.dumps({**row, "n": k}).encode() + b"\n" for k in range(3_000))

    def answer(request: Asked) -> Says:
        counting = "stats count()" in request.one("query")
        return Says(b'{"matched":"3000"}\n' if counting else body, content_type="application/stream+json")

    result, _ = called("victorialogs", answer, Access(max_bytes=50_000), **WINDOW)
    assert json.loads(texts(result)[0]) == {
        "_time": "2026-03-17T10:00:00Z",
        "_msg": "timed out",
        "pod": "payment-service-7",
        "n": 0,
    }
    details = result.retrieval_details
    assert details is not None
    assert details.matched == 3_000
    assert "an answer was too long to be read to its end" in (details.dropped_reason or "")


def test_a_line_that_is_no_object_is_an_error() -> None:
    result, _ = called("victorialogs", lambda _: Says(b"[1]\n"), **WINDOW)
    assert "answered with a line that is no object" in (result.error or "")
