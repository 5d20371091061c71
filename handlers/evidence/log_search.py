"""One pass over log files: which records match, how many there are of each kind, and when.

A record is a line, or a line with the stack trace that follows it. Everything is done on bytes: 24 MB take about
a second on one core, whatever the query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from handlers.evidence import log_lines
from handlers.evidence.bodies import object_end
from handlers.evidence.records import decode
from handlers.evidence.sources import Damaged, SourceFile, blocks

MAX_RECORD_LINES = 200
MAX_OUTPUT = 64 << 20
MAX_LINE = 1 << 20  # bytes of one line that are looked at; a line of 60 MB took 20 s for each query
SAMPLE = 500  # every so many records are looked at for the window of what was scanned, and each file's ends
HEADINGS = frozenset({b"stdout:", b"stderr:"})  # of recorded commands: they say nothing themselves


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for. `terms`: any of them, case-blind; `since` and `until` in seconds since 1970."""

    terms: tuple[str, ...] = ()
    service: str | None = None
    level: int | None = None
    since: float | None = None
    until: float | None = None
    year: int = 1970

    def needles(self) -> tuple[bytes, ...]:
        """The terms as bytes, also as JSON would write them."""
        both = [form for term in self.terms for form in (term, json.dumps(term)[1:-1])]
        return tuple(dict.fromkeys(form.lower().encode("utf-8", "replace") for form in both if form))


@dataclass(slots=True)
class Kind:
    """Records that differ only in numbers and hexadecimal letters. Members are indices into `Found.records`."""

    level: int
    members: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    """What a pass found. `records` are (raw_path, raw bytes) in the order of files and lines."""

    records: list[tuple[str, bytes]] = field(default_factory=list)
    sources: list[SourceFile] = field(default_factory=list)
    kinds: dict[bytes, Kind] = field(default_factory=dict)
    lines: int = 0
    size: int = 0
    first: tuple[float, str] | None = None
    last: tuple[float, str] | None = None
    scanned_first: tuple[float, str] | None = None
    scanned_last: tuple[float, str] | None = None
    undated: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def source_of(self, index: int) -> SourceFile:
        return self.sources[index]


def search(files: Sequence[SourceFile], query: Query) -> Found:
    """All matching records. A file that cannot be read is noted in `failed`, its cause in words."""
    found = Found()
    for file in files:
        try:
            _search_file(file, query, found)
        except Damaged as error:
            found.notes.append(str(error))
        except OSError as error:
            found.failed[file.name or file.path.name] = error.strerror or str(error)
    if found.undated:
        found.notes.append(
            f"{found.undated} records without a time stamp were left out, because a window was asked for"
        )
    return found


def _search_file(file: SourceFile, query: Query, found: Found) -> None:
    needles = query.needles()
    service = query.service.lower().encode("utf-8", "replace") if query.service else None
    if service and service in file.path.name.lower().encode("utf-8", "replace"):
        service = None
    window = query.since is not None or query.until is not None
    prefix = file.prefix()
    span = _Span(query.year)
    scanned = _Span(query.year)
    levels: dict[bytes, int] = {}
    record = b""
    for at, (number, count, record) in enumerate(_records(file, found)):
        if at % SAMPLE == 0:
            scanned.see(log_lines.stamp(record))
        if needles or service:
            folded = log_lines.plain(record).lower()
            if needles and not any(needle in folded for needle in needles):
                continue
            if service and service not in folded:
                continue
        kind = log_lines.template(record)
        rank = levels.get(kind)
        if rank is None:
            rank = levels[kind] = log_lines.level(record)
        if query.level is not None and rank < query.level:
            continue
        when = log_lines.stamp(record)
        if window and not _inside(when, query, found):
            continue
        span.see(when)
        if found.size > MAX_OUTPUT:
            continue
        place = f"{prefix}lines[{number}]" if count == 1 else f"{prefix}lines[{number}-{number + count - 1}]"
        known = found.kinds.get(kind)
        if known is None:
            known = found.kinds[kind] = Kind(rank)
        known.members.append(len(found.records))
        found.records.append((place, record))
        found.sources.append(file)
        found.size += len(record)
    scanned.see(log_lines.stamp(record))
    if found.size > MAX_OUTPUT:
        found.notes.append(
            f"more than {MAX_OUTPUT} bytes match: {file.path.name} was kept up to there; narrow the query"
        )
    found.first, found.last = span.widen(found.first, found.last)
    found.scanned_first, found.scanned_last = scanned.widen(found.scanned_first, found.scanned_last)


def _records(file: SourceFile, found: Found) -> Iterator[tuple[int, int, bytes]]:
    """(number of the first line from 1, how many lines, raw bytes without the line's end) for each record."""
    number, pretty = 1, False
    for block in blocks(file.path):
        lines = whole = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        found.lines += len(lines)
        if len(block) > MAX_LINE and any(len(line) > MAX_LINE for line in lines):
            lines = _bounded(lines, number, file, found)
        if number == 1:
            pretty = lines[0].strip() in {b"{", b"["}
        if pretty:
            yield from _objects(lines, number)
        elif log_lines.has_stacks(block if lines is whole else b"\n".join(lines)):
            yield from _joined(lines, number)
        else:
            for at, line in enumerate(lines, number):
                text = line.removesuffix(b"\r")
                if text and text not in HEADINGS and not text.isspace():
                    yield at, 1, text
        number += len(lines)


def _bounded(lines: list[bytes], number: int, file: SourceFile, found: Found) -> list[bytes]:
    """The lines, each up to its bound; what was cut is noted."""
    for at, line in enumerate(lines):
        if len(line) > MAX_LINE:
            found.notes.append(
                f"{file.prefix()}lines[{number + at}] has {len(line)} bytes: only its first {MAX_LINE} were read"
            )
    return [line[:MAX_LINE] for line in lines]


def _objects(lines: list[bytes], number: int) -> Iterator[tuple[int, int, bytes]]:
    """Records of a JSON document written over many lines: an innermost object, or a line with a value of its own."""
    at = 0
    while at < len(lines):
        end = object_end(lines, at, b"{", b"[", b"}")
        if re.search(rb"\w", lines[at]) or end > at:
            yield number + at, end - at + 1, b"\n".join(line.removesuffix(b"\r") for line in lines[at : end + 1])
        at = end + 1


def _joined(lines: list[bytes], number: int) -> Iterator[tuple[int, int, bytes]]:
    """Records of several lines: a head, and the frames, causes and traceback lines that follow."""
    at = 0
    while at < len(lines):
        head = lines[at].removesuffix(b"\r")
        if not head.strip() or head in HEADINGS:
            at += 1
            continue
        end, traceback = at + 1, log_lines.opens_traceback(head)
        while end < len(lines) and end - at < MAX_RECORD_LINES:
            line = lines[end]
            if log_lines.opens_traceback(line) and not log_lines.stamp(line):
                traceback = True
            elif not log_lines.continues(line):
                if traceback and line.strip() and not log_lines.stamp(line):
                    end += 1  # the exception itself closes a Python traceback
                break
            end += 1
        yield number + at, end - at, b"\n".join(line.removesuffix(b"\r") for line in lines[at:end])
        at = end


def _inside(text: bytes | None, query: Query, found: Found) -> bool:
    when = log_lines.epoch(text, query.year) if text else None
    if when is None:
        found.undated += 1
        return False
    return (query.since is None or when >= query.since) and (query.until is None or when <= query.until)


class _Span:
    """Earliest and latest stamp of one file; stamps of one format compare as text, so few need to be parsed."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._low: dict[int, bytes] = {}
        self._high: dict[int, bytes] = {}

    def see(self, text: bytes | None) -> None:
        if text is None:
            return
        form = len(text)
        if form not in self._low:
            self._low[form] = self._high[form] = text
        elif text < self._low[form]:
            self._low[form] = text
        elif text > self._high[form]:
            self._high[form] = text

    def widen(
        self, first: tuple[float, str] | None, last: tuple[float, str] | None
    ) -> tuple[tuple[float, str] | None, tuple[float, str] | None]:
        for text in [*self._low.values(), *self._high.values()]:
            when = log_lines.epoch(text, self._year)
            if when is None:
                continue
            shown = (when, decode(text))
            first = shown if first is None or when < first[0] else first
            last = shown if last is None or when > last[0] else last
        return first, last
