"""`query_metrics` over files: OpenMetrics and Prometheus text, answers of the Prometheus HTTP API, other JSON.

Raw paths: `result[0]`, `alerts[0]`, `data[0]` as the API counts them; a series of a text file counts as a result;
other JSON by its own path; with several files `<file>:` goes before. The text of a ref is one rendered line.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from handlers.evidence import prometheus_json, records
from handlers.evidence.arguments import SERIES_ARGUMENTS, BadArgument, count_of, text_of, time_of, words_of
from handlers.evidence.json_records import Flat, rendered
from handlers.evidence.logs import failed, iso
from handlers.evidence.metric_texts import parse
from handlers.evidence.no_hit import no_hit, outside
from handlers.evidence.protocol import ToolResult, ToolSpec
from handlers.evidence.series import Series, clock
from handlers.evidence.sources import Kept, SourceFile, expand, whole
from streams.contract import RetrievalDetails

LIMIT = 25
MAX_LIMIT = 200
SHOWN_LABELS = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records: `metric` is a name, a part of one, or a regular expression; `terms` any of these words."""

    metric: re.Pattern[str] | None
    labels: dict[str, re.Pattern[str]]
    terms: tuple[str, ...]
    since: float | None
    until: float | None
    file: str | None
    limit: int


@dataclass(slots=True)
class _Loaded:
    entries: list[tuple[SourceFile, Series | Flat]] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    files: int = 0


def _answer(path: Path) -> tuple[prometheus_json.Answer, str | None]:
    raw, note = whole(path)
    return parse(records.decode(raw)), note


_ANSWERS = Kept(_answer)


class MetricFiles:
    """The tool. Raises BadSource on bad paths when it is made."""

    def __init__(self, paths: Sequence[str], now: Callable[[], datetime], name: str = "query_metrics") -> None:
        self._files = expand(paths)
        self._now = now
        names = [file.name or file.path.name for file in self._files]
        self.spec = ToolSpec(
            name=name,
            description=(
                f"Reads metrics from files ({', '.join(names[:20])}). Gives one line for each series: last, min, max, "
                "avg, number of points, window, step, gaps. No data, NaN and zero are told apart."
            ),
            parameters={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **SERIES_ARGUMENTS,
                    "file": {"type": "string", "description": "only this file", "enum": names[:100]},
                    "limit": {"type": "integer", "description": f"series to show, 1 to {MAX_LIMIT} ({LIMIT})"},
                },
            },
        )

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            wanted = self._read(arguments)
        except BadArgument as error:
            return failed(str(error))
        return await asyncio.to_thread(self._query, wanted, dict(arguments))

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return records.find(output, raw_path)

    def _read(self, arguments: Mapping[str, Any]) -> Wanted:
        now = self._now().astimezone(UTC)
        metric = text_of(arguments, "metric")
        labels = arguments.get("labels") or {}
        if not isinstance(labels, Mapping):
            raise BadArgument("labels: must be an object of label and value")
        file = text_of(arguments, "file")
        if file and not any(file in {one.name, one.path.name} for one in self._files):
            raise BadArgument(f"file: {file!r} is none of the files of this tool")
        return Wanted(
            metric=_pattern("metric", metric) if metric else None,
            labels={str(key): _pattern(str(key), str(value)) for key, value in labels.items()},
            terms=tuple(term.casefold() for term in words_of(arguments, "terms")),
            since=time_of(arguments, "since", now),
            until=time_of(arguments, "until", now),
            file=file,
            limit=count_of(arguments, "limit", LIMIT, MAX_LIMIT),
        )

    def _query(self, wanted: Wanted, arguments: dict[str, Any]) -> ToolResult:
        loaded = self._load(wanted)
        if loaded.errors and len(loaded.errors) == loaded.files:
            lines = [f"{name}: {why}" for name, why in loaded.errors.items()]
            return failed(next(iter(loaded.errors.values())) if len(lines) == 1 else "\n".join(lines))
        notes = [f"{name} holds an error, which is no evidence: {why}" for name, why in loaded.errors.items()]
        notes += loaded.notes
        hits = [(file, kept) for file, entry in loaded.entries if (kept := _matching(entry, wanted)) is not None]
        if not hits:
            return _nothing(loaded, wanted, arguments, notes)
        output = records.pack((_path(file, entry), rendered(entry)) for file, entry in hits)
        ranked = sorted(range(len(hits)), key=lambda at: (-interest(hits[at][1], wanted.terms), at))
        chosen = (hits[at] for at in sorted(ranked[: wanted.limit]))
        shown = (
            records.shown(_path(file, entry), rendered(entry), wanted.terms, str(file.path)) for file, entry in chosen
        )
        refs = records.within_room(shown, notes)
        if len(refs) < len(hits):
            notes.insert(0, reduced([entry for _, entry in hits], len(refs)))
        times = [at for _, entry in hits if isinstance(entry, Series) for at, _ in entry.points if at is not None]
        return ToolResult(
            status="success",
            retrieval_details=RetrievalDetails(
                evidence_refs=tuple(refs),
                matched=len(hits),
                returned=len(refs),
                truncated=len(refs) < len(hits) or bool(notes),
                order="all" if len(refs) == len(hits) else "most changed first, then as in the file",
                first_time=clock(min(times)) if times else None,
                last_time=clock(max(times)) if times else None,
                dropped_reason="; ".join(dict.fromkeys(notes)) or None,
                query_samples=wanted.terms or None,
            ),
            output=output,
            output_format=records.FORMAT,
        )

    def _load(self, wanted: Wanted) -> _Loaded:
        loaded = _Loaded()
        for file in self._files:
            name = file.name or file.path.name
            if wanted.file and wanted.file not in {file.name, file.path.name}:
                continue
            loaded.files += 1
            try:
                answer, note = _ANSWERS.of(file.path)
            except OSError as error:
                loaded.errors[name] = error.strerror or str(error)
                continue
            loaded.notes += [note] if note else []
            if answer.error is not None:
                loaded.errors[name] = answer.error
            elif answer.empty:
                loaded.notes.append(f"{name} holds an empty result: no data, which is not zero")
            loaded.notes += [f"{name}: {text}" for text in answer.notes]
            loaded.entries += [(file, entry) for entry in answer.records]
        return loaded


def _pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise BadArgument(f"{name}: {text!r} is no regular expression ({error})") from error


def _matching(entry: Series | Flat, wanted: Wanted) -> Series | Flat | None:
    text = entry.key() if isinstance(entry, Series) else entry.text
    name = entry.name if isinstance(entry, Series) else entry.text
    if wanted.metric and not wanted.metric.search(name):
        return None
    if wanted.labels:
        labels = entry.labels if isinstance(entry, Series) else {}
        if not all(label in labels and want.fullmatch(labels[label]) for label, want in wanted.labels.items()):
            return None
    folded = text.casefold()
    if wanted.terms and not any(term in folded for term in wanted.terms):
        return None
    return entry.within(wanted.since, wanted.until) if isinstance(entry, Series) else entry


def interest(entry: Series | Flat, terms: tuple[str, ...]) -> float:
    """What is shown first where not all is: named by the query, alerting, changed; a flat zero last."""
    text = (entry.key() if isinstance(entry, Series) else entry.text).casefold()
    named = sum(term in text for term in terms)
    if isinstance(entry, Flat):
        return 2.0 * named + (1.5 if entry.path.startswith("alerts") else 0.3)
    values = entry.finite()
    if not values:
        return 2.0 * named + 0.1
    spread = max(values) - min(values)
    changed = spread / max(abs(max(values)), abs(min(values)), 1e-9)
    alert = 1.0 if entry.name == "ALERTS" else 0.0
    return 2.0 * named + alert + min(1.0, changed) + (0.2 if values[-1] else 0.0)


def reduced(entries: Sequence[Series | Flat], shown: int) -> str:
    """What was left out of how much, and by which labels it can be narrowed."""
    series = [entry for entry in entries if isinstance(entry, Series)]
    values: dict[str, set[str]] = {}
    for entry in series:
        for label, value in entry.labels.items():
            values.setdefault(label, set()).add(value)
    most = sorted(values.items(), key=lambda item: -len(item[1]))[:SHOWN_LABELS]
    labels = ", ".join(f"{label} ({len(found)} values)" for label, found in most)
    metrics = len({entry.name for entry in series})
    text = f"{len(entries) - shown} of {len(entries)} records not shown ({metrics} metrics"
    return f"{text}; labels: {labels}); narrow by metric, labels or terms" if labels else f"{text}); narrow by terms"


def _path(file: SourceFile, entry: Series | Flat) -> str:
    return f"{file.prefix()}{records.clean_path(entry.path)}"


def _nothing(loaded: _Loaded, wanted: Wanted, arguments: dict[str, Any], notes: list[str]) -> ToolResult:
    asked = [iso(wanted.since) if wanted.since else "", iso(wanted.until) if wanted.until else ""]
    times = [at for _, entry in loaded.entries if isinstance(entry, Series) for at, _ in entry.points if at is not None]
    read = f"{clock(min(times))}..{clock(max(times))}" if times else "all"
    window = "..".join(asked) if any(asked) else read
    if times:
        notes = notes + outside(wanted.since, wanted.until, min(times), max(times), read)
    searched = (f"files={loaded.files - len(loaded.errors)}", f"series_scanned={len(loaded.entries)}")
    return no_hit(window, searched, arguments, notes, truncated=bool(notes), terms=wanted.terms)
