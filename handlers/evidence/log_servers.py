"""`query_logs` over servers: what matches is counted, at most so many lines are read, and of these the same are shown
as of a file: the first, the last, the rare and the loudest.

Raw paths are `lines[n]`, counted from 1 in the order of time among the lines that were read. A line without a time of
its own is shown behind the server's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from handlers.evidence import log_lines, records
from handlers.evidence.arguments import BadArgument, text_of
from handlers.evidence.backend import Backend, BackendFailed
from handlers.evidence.log_search import Found, Kind, Query
from handlers.evidence.logs import PARAMETERS, failed, iso, nothing, read_query, result_of
from handlers.evidence.protocol import ToolResult, ToolSpec
from handlers.evidence.sources import SourceFile
from streams.contract import RetrievalDetails

READ = 5_000  # lines; also what Loki allows unless it is set otherwise
WINDOW_S = 3600.0
MAX_QUERY = 8_000


@dataclass(frozen=True, slots=True)
class Line:
    """One entry: seconds since 1970, its text, and the stream or fields it came with, for people."""

    at: float
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of one request; `cut` if the answer was too long to be read to its end."""

    lines: Sequence[Line]
    cut: bool = False


class Dialect(Protocol):
    """How a kind of server is asked. All raise BackendFailed in the server's own words."""

    language: str

    async def expression(self, query: Query, own: str | None) -> str:
        """The query in the server's language for `query`, or `own`, which was given in it."""
        ...

    async def count(self, expression: str, since: float, until: float) -> int | None:
        """How many lines match; None where the server cannot say."""
        ...

    async def read(self, expression: str, since: float, until: float, limit: int, forward: bool) -> Page: ...


class ServerLogs:
    """The tool over one server."""

    def __init__(self, backend: Backend, dialect: Dialect, now: Callable[[], datetime], name: str) -> None:
        self._dialect = dialect
        self._now = now
        self.spec = ToolSpec(
            name=name,
            description=(
                f"Searches logs on {backend.address} ({dialect.language}). Gives matching lines unchanged: the first, the "
                "last, the rare and the most severe ones, with how many matched, how often each kind of line occurs, and "
                "what was left out. Without `since`, the last hour."
            ),
            parameters={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **PARAMETERS,
                    "query": {
                        "type": "string",
                        "description": f"a log query in {dialect.language}; then terms and service are left out",
                    },
                },
            },
        )

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:
        now = self._now().astimezone(UTC)
        try:
            query, limit = read_query(arguments, now)
            own = text_of(arguments, "query")
            if own and (query.terms or query.service):
                raise BadArgument("query: give either a query, or terms and service; not both")
            if own and len(own) > MAX_QUERY:
                raise BadArgument(f"query: at most {MAX_QUERY} characters")
            until = now.timestamp() if query.until is None else query.until
            since = until - WINDOW_S if query.since is None else query.since
            if since > until:
                raise BadArgument("since: is after until")
            return await self._search(replace(query, since=since, until=until), own, limit, dict(arguments))
        except (BadArgument, BackendFailed) as error:
            return failed(str(error))

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return records.find(output, raw_path)

    async def _search(self, query: Query, own: str | None, limit: int, arguments: dict[str, Any]) -> ToolResult:
        assert query.since is not None
        assert query.until is not None
        expression = await self._dialect.expression(query, own)
        window = (query.since, query.until)
        total = await self._dialect.count(expression, *window)
        notes: list[str] = []
        if total is not None and total <= READ:
            page = await self._dialect.read(expression, *window, READ, True)
            lines, cut = list(page.lines), page.cut
        else:
            # The newest alone would hide how it began.
            first = await self._dialect.read(expression, *window, READ // 2, True)
            last = await self._dialect.read(expression, *window, READ // 2, False)
            lines, cut = _joined(first.lines, last.lines), first.cut or last.cut
            of = "an unknown number" if total is None else str(total)
            notes.append(f"of {of} matching lines the first and the last {READ // 2} were read; narrow the query")
        if cut:
            notes.append("an answer was too long to be read to its end")
        found = _found(sorted(lines, key=lambda line: line.at), query)
        left_out = len(lines) - len(found.records)
        if not found.records:
            return nothing(found, query, arguments, notes)
        # A level is told from the lines themselves, so it is known only of those that were read.
        matched = len(found.records) if query.level is not None else max(total or 0, len(lines)) - left_out
        result = result_of(found, query, limit, notes, matched)
        assert result.retrieval_details is not None
        return replace(result, retrieval_details=_sampled(result.retrieval_details, expression))


def _sampled(details: RetrievalDetails, expression: str) -> RetrievalDetails:
    return details.model_copy(update={"query_samples": (*(details.query_samples or ()), expression)})


def _joined(first: Sequence[Line], last: Sequence[Line]) -> list[Line]:
    """Both ends, a line that belongs to both only once; equal lines of one end are lines of their own."""
    ends_at = max((line.at for line in first), default=float("-inf"))
    known = set(first)
    return [*first, *(line for line in last if line.at > ends_at or (line.at == ends_at and line not in known))]


def _found(lines: Sequence[Line], query: Query) -> Found:
    found = Found(lines=len(lines))
    for number, line in enumerate(lines, 1):
        raw = line.text.encode("utf-8", "surrogatepass")
        rank = log_lines.level(raw)
        if query.level is not None and rank < query.level:
            continue
        if log_lines.stamp(raw) is None:
            raw = f"{iso(line.at)} ".encode() + raw
        kind = found.kinds.setdefault(log_lines.template(raw), Kind(rank))
        kind.members.append(len(found.records))
        found.records.append((f"lines[{number}]", raw))
        found.sources.append(SourceFile(Path(line.source), ""))
        found.size += len(raw)
        stamped = (line.at, iso(line.at))
        found.first = found.first or stamped
        found.last = stamped
    return found
