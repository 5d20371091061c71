"""VictoriaLogs' HTTP API: LogsQL, an object a line, a limit always sent: without one it gives everything."""

from __future__ import annotations

import json
import re
from typing import Any

from handlers.evidence import log_lines
from handlers.evidence.backend import Backend, BackendFailed
from handlers.evidence.log_search import Query
from handlers.evidence.log_servers import Line, Page
from handlers.evidence.logs import iso

SERVICE_FIELDS = ("service.name", "service_name", "service", "app", "job", "kubernetes.container_name", "_msg")
_INNER = frozenset({"_stream_id", "_stream"})


class VictoriaLogs:
    """The dialect of one server."""

    language = "LogsQL"

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def expression(self, query: Query, own: str | None) -> str:
        if own is not None:
            return own
        parts = []
        if query.service:
            pattern = _quoted(f"(?i){re.escape(query.service)}")
            parts.append(f"({' or '.join(f'{_quoted(name)}:~{pattern}' for name in SERVICE_FIELDS)})")
        if query.terms:
            parts.append(f"_msg:~{_quoted('(?i)' + '|'.join(re.escape(term) for term in query.terms))}")
        return " ".join(parts) or "*"

    async def count(self, expression: str, since: float, until: float) -> int | None:
        rows, _ = await self._asked(f"{expression} | stats count() as matched", since, until, 1)
        try:
            return int(rows[0]["matched"])
        except (IndexError, KeyError, ValueError):
            return None

    async def read(self, expression: str, since: float, until: float, limit: int, forward: bool) -> Page:
        order = "" if forward else " desc"
        rows, cut = await self._asked(f"{expression} | sort by (_time{order})", since, until, limit)
        lines = [Line(_time(row, since), _text(row), str(row.get("_stream", ""))) for row in rows]
        return Page([line for line in lines if since <= line.at <= until], cut)

    async def _asked(self, query: str, since: float, until: float, limit: int) -> tuple[list[dict[str, Any]], bool]:
        form = {"query": query, "start": iso(since), "end": iso(until), "limit": str(limit)}
        answer = await self._backend.lines("/select/logsql/query", form)
        if answer.status >= 300 or "html" in answer.content_type:
            raise self._backend.failure(answer)
        lines = answer.text.split("\n")
        if answer.cut:
            lines.pop()
        rows = []
        for line in lines:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise BackendFailed(f"{self._backend.address} answered with a line that is no object: {line[:200]}")
            rows.append(row)
        return rows, answer.cut


def _time(row: dict[str, Any], otherwise: float) -> float:
    at = log_lines.epoch(str(row.get("_time", "")))
    return otherwise if at is None else at


def _text(row: dict[str, Any]) -> str:
    """The message alone where nothing else came with it; else all fields, the server's own left out."""
    kept = {name: value for name, value in row.items() if name not in _INNER}
    if set(kept) <= {"_time", "_msg"}:
        return str(row.get("_msg", ""))
    return json.dumps(kept, ensure_ascii=False)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
