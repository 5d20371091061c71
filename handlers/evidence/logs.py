"""`query_logs` over files: ndjson, logfmt, plain text; gzip, CRLF, colours, broken bytes, a last line cut in the middle.

Raw paths are `lines[12]` where the tool has one file and `<file>:lines[12]` where it has several; lines count from
1; a stack trace belongs to the record of its first line: `lines[12-18]`. The text of a ref is the raw line.
Not the newest records are shown: the first, the last, the rare and the loudest (incident-agents: newest 100 of
2,080 lines covered 2 of 45 minutes and missed the cause).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from handlers.evidence import log_lines, records
from handlers.evidence.arguments import BadArgument, count_of, text_of, time_of, words_of
from handlers.evidence.log_search import Found, Kind, Query, search
from handlers.evidence.no_hit import no_hit, outside
from handlers.evidence.protocol import ToolResult, ToolSpec
from handlers.evidence.sources import expand
from streams.contract import EvidenceRef, RetrievalDetails

LIMIT = 60
MAX_LIMIT = 300
SHOWN_KINDS = 8


PARAMETERS: dict[str, Any] = {
    "terms": {
        "type": "array",
        "items": {"type": "string"},
        "description": "words or phrases; a line matches if it holds any of them, in any case",
    },
    "service": {"type": "string", "description": "only lines or files that name this service"},
    "level": {"type": "string", "enum": list(log_lines.LEVEL_NAMES), "description": "least severity"},
    "since": {"type": "string", "description": "ISO 8601 time, or a span before now such as 15m"},
    "until": {"type": "string", "description": "ISO 8601 time, or a span before now"},
    "limit": {"type": "integer", "description": f"lines to show, 1 to {MAX_LIMIT} ({LIMIT})"},
}


class LogFiles:
    """The tool. Raises BadSource on bad paths when it is made."""

    def __init__(self, paths: Sequence[str], now: Callable[[], datetime], name: str = "query_logs") -> None:
        self._files = expand(paths)
        self._now = now
        names = ", ".join(file.name or file.path.name for file in self._files[:20])
        self.spec = ToolSpec(
            name=name,
            description=(
                f"Searches log files ({names}). Gives matching lines unchanged: the first, the last, the rare and the "
                "most severe ones, with how many matched, how often each kind of line occurs, and what was left out."
            ),
            parameters={
                "type": "object",
                "additionalProperties": False,
                "properties": PARAMETERS,
            },
        )

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            query, limit = read_query(arguments, self._now())
        except BadArgument as error:
            return failed(str(error))
        return await asyncio.to_thread(self._search, query, limit, dict(arguments))

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return records.find(output, raw_path)

    def _search(self, query: Query, limit: int, arguments: dict[str, Any]) -> ToolResult:
        found = search(self._files, query)
        if len(found.failed) == len(self._files):
            return failed("; ".join(f"{name}: {why}" for name, why in found.failed.items()))
        notes = [f"{name} could not be read: {why}" for name, why in found.failed.items()] + found.notes
        if not found.records:
            return nothing(found, query, arguments, notes, files=len(self._files) - len(found.failed))
        return result_of(found, query, limit, notes, len(found.records))


def read_query(arguments: Mapping[str, Any], at: datetime) -> tuple[Query, int]:
    """What a call asks for, and how many lines it wants shown. Raises BadArgument."""
    now = at.astimezone(UTC)
    level = text_of(arguments, "level")
    number = log_lines.level_number(level) if level else None
    if level and number is None:
        raise BadArgument(f"level: {level!r} is none of {', '.join(log_lines.LEVEL_NAMES)}")
    query = Query(
        terms=words_of(arguments, "terms"),
        service=text_of(arguments, "service"),
        level=number,
        since=time_of(arguments, "since", now),
        until=time_of(arguments, "until", now),
        year=now.year,
    )
    return query, count_of(arguments, "limit", LIMIT, MAX_LIMIT)


def result_of(found: Found, query: Query, limit: int, notes: list[str], matched: int) -> ToolResult:
    """The records found as a result; `matched` counts those too that were not read."""
    output = b"".join(_packed(found.records))
    chosen, order = choose(found, limit)
    refs: list[EvidenceRef] = []
    room = records.MAX_REFS_BYTES
    for index in chosen:
        path, raw = found.records[index]
        ref, note = records.shown(path, records.decode(raw), query.terms, str(found.source_of(index).path))
        if records.weight(ref) > room:
            notes.append(f"{path} and others were left out: the lines shown are bounded in size")
            order = "first+last+rare"
            continue
        room -= records.weight(ref)
        notes += [note] if note else []
        refs.append(ref)
    returned = len(refs)
    if returned < matched:
        notes.insert(0, f"{matched - returned} of {matched} matching records not shown; kinds are in templates[n]")
        order = "first+last+rare"
        rows = list(kind_rows(found))
        output += records.pack(rows)
        refs += [EvidenceRef(raw_path=path, text=text) for path, text in rows[:SHOWN_KINDS]]
    return ToolResult(
        status="success",
        retrieval_details=RetrievalDetails(
            evidence_refs=tuple(refs),
            matched=matched,
            returned=returned,
            truncated=returned < matched or bool(notes),
            order=order,
            first_time=found.first[1] if found.first else None,
            last_time=found.last[1] if found.last else None,
            dropped_reason="; ".join(dict.fromkeys(notes)) or None,
            query_samples=query.terms or None,
        ),
        output=output,
        output_format=records.FORMAT,
        topic=query.service,
    )


def choose(found: Found, limit: int) -> tuple[list[int], str]:
    """Which records are shown, in the order of the files, and the name of that choice.

    From each kind the first, the last and one in between, severe and rare kinds before common ones; then the
    matches' ends; then more of the severe kinds, spread evenly.
    """
    total = len(found.records)
    if total <= limit:
        return list(range(total)), "all"
    kinds = sorted(found.kinds.values(), key=lambda kind: (-kind.level, len(kind.members)))
    rare = [kind for kind in kinds if len(kind.members) <= max(2, total // 500)]
    picked: dict[int, None] = dict.fromkeys((0, total - 1))
    for group in (kinds[: limit // 3], rare, kinds):
        for kind in group:
            picked.update(dict.fromkeys((kind.members[0], kind.members[-1])))
            if len(picked) >= limit:
                return sorted(list(picked)[:limit]), "first+last+rare"
    for parts in (2, 4, 8, 16, 32, 64):
        for kind in kinds:
            step = len(kind.members) / parts
            picked.update(dict.fromkeys(kind.members[int(step * part)] for part in range(1, parts)))
            if len(picked) >= limit:
                return sorted(list(picked)[:limit]), "first+last+rare"
    return sorted(picked), "first+last+rare"


def kind_rows(found: Found) -> Iterable[tuple[str, str]]:
    """`templates[n]`: how often a kind of line occurs, from where to where, and its first line; the rarest severe first."""
    kinds = sorted(found.kinds.values(), key=lambda kind: (-kind.level, -len(kind.members)))
    for at, kind in enumerate(kinds[:1000]):
        yield f"templates[{at}]", _row(found, kind)


def _row(found: Found, kind: Kind) -> str:
    ends = [found.records[kind.members[0]], found.records[kind.members[-1]]]
    times = [log_lines.stamp(raw) for _, raw in ends]
    window = "..".join(records.decode(text) for text in times if text)
    level = log_lines.LEVEL_NAMES[kind.level] if kind.level >= 0 else "none"
    example = records.decode(ends[0][1].split(b"\n", 1)[0])
    cut = " (cut)" if len(example) > 400 else ""
    return (
        f"count={len(kind.members)} of={len(found.records)} level={level} first={ends[0][0]} last={ends[1][0]}"
        f"{f' window={window}' if window else ''} example: {example[:400]}{cut}"
    )


def _packed(pairs: Iterable[tuple[str, bytes]]) -> Iterable[bytes]:
    for path, raw in pairs:
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            yield records.pack_one(path, records.decode(raw))
            continue
        yield b"%s\t%s\n" % (path.encode("utf-8", "surrogatepass"), raw.replace(b"\n", b"\n\t"))


def nothing(
    found: Found, query: Query, arguments: dict[str, Any], notes: list[str], files: int | None = None
) -> ToolResult:
    """No hit is a finding: one ref `summary` says what was searched, the echoed query last (ruling 7)."""
    scanned = [entry[1] for entry in (found.scanned_first, found.scanned_last) if entry]
    asked = [iso(query.since) if query.since else "", iso(query.until) if query.until else ""]
    window = "..".join(asked) if any(asked) else "..".join(scanned)
    if found.scanned_first and found.scanned_last:
        notes = notes + outside(
            query.since, query.until, found.scanned_first[0], found.scanned_last[0], "..".join(scanned)
        )
    searched = () if files is None else (f"files={files}", f"lines_scanned={found.lines}")
    return no_hit(
        window or "all", searched, arguments, notes, truncated=bool(notes), terms=query.terms, topic=query.service
    )


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def failed(why: str) -> ToolResult:
    """A call that failed: its error text is the one thing that can be quoted, as `error` (ruling 7)."""
    return ToolResult(
        status="error",
        error=why,
        retrieval_details=RetrievalDetails(evidence_refs=(EvidenceRef(raw_path="error", text=why),), matched=None),
        output=records.pack_one("error", why),
        output_format=records.FORMAT,
    )
