"""`query_metrics` over the HTTP API of Prometheus, which VictoriaMetrics, Mimir and Thanos speak as well.

A selector (`metric`, `labels`, `terms`) is read as raw samples where there are few enough, so that gaps show, which
a range query hides behind its look-back of five minutes; its lines are those that the same samples in a file give.
An expression (`query`) is evaluated by the server; its text names each line, because a result has no name of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from handlers.evidence import prometheus_json, promql, records
from handlers.evidence.arguments import SERIES_ARGUMENTS, BadArgument, count_of, text_of, time_of, words_of
from handlers.evidence.backend import Answer, Backend, BackendFailed
from handlers.evidence.json_records import Flat, rendered
from handlers.evidence.logs import failed, iso
from handlers.evidence.metrics import interest, reduced
from handlers.evidence.no_hit import no_hit
from handlers.evidence.protocol import ToolResult, ToolSpec
from handlers.evidence.series import Series, clock, number
from streams.contract import RetrievalDetails

POINTS = 300
SERIES = 20
FETCHED = 200  # series whose samples are read to choose the ones that changed most
AT_ONCE = 8  # requests
WINDOW_S = 3600.0
MAX_QUERY = 8_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One call's arguments. `step` in seconds is the least that is used; times in seconds since 1970."""

    query: str | None
    selector: str
    terms: tuple[str, ...]
    since: float
    until: float
    ranged: bool
    step: float
    limit: int
    raised: bool


class PrometheusMetrics:
    """The tool over one server."""

    def __init__(self, backend: Backend, now: Callable[[], datetime], name: str = "query_metrics") -> None:
        self._backend = backend
        self._now = now
        self.spec = ToolSpec(
            name=name,
            description=(
                f"Reads metrics from {backend.address} (Prometheus API): by `metric`, `labels` and `terms`, or by a PromQL "
                "`query`. Gives one line for each series: last, min, max, avg, number of points, window, step, gaps. No "
                f"data, NaN and zero are told apart. At most {SERIES} series: aggregate, or use topk(). Without `since` "
                "a query is evaluated at one moment, a metric read over the last hour."
            ),
            parameters={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "query": {"type": "string", "description": "PromQL; then metric, labels and terms are left out"},
                    **SERIES_ARGUMENTS,
                    "step": {
                        "type": "string",
                        "description": f"as 30s or 5m; raised so that points stay below {POINTS}",
                    },
                    "limit": {"type": "integer", "description": f"series to show, 1 to {SERIES} ({SERIES})"},
                },
            },
        )

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            asked = self._read(arguments)
            if asked.query is not None:
                return await self._evaluate(asked, dict(arguments))
            return await self._select(asked, dict(arguments))
        except (BadArgument, BackendFailed) as error:
            return failed(str(error))

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return records.find(output, raw_path)

    def _read(self, arguments: Mapping[str, Any]) -> Asked:
        now = self._now().astimezone(UTC)
        query, metric = text_of(arguments, "query"), text_of(arguments, "metric")
        labels = arguments.get("labels") or {}
        if not isinstance(labels, Mapping):
            raise BadArgument("labels: must be an object of label and value")
        terms = words_of(arguments, "terms")
        if query and (metric or labels):
            raise BadArgument("query: give either a query, or metric and labels; not both")
        if query and len(query) > MAX_QUERY:
            raise BadArgument(f"query: at most {MAX_QUERY} characters")
        since, until = time_of(arguments, "since", now), time_of(arguments, "until", now)
        end = now.timestamp() if until is None else until
        start = end - WINDOW_S if since is None else since
        if start > end:
            raise BadArgument("since: is after until")
        wanted = promql.step_of(text_of(arguments, "step"))
        step = max(wanted or 0.0, promql.least_step((end - start) / (POINTS - 1)))
        return Asked(
            query=query or None,
            selector=promql.selector(metric, labels),
            terms=terms,
            since=start,
            until=end,
            ranged=since is not None,
            step=step,
            limit=count_of(arguments, "limit", SERIES, SERIES),
            raised=wanted is not None and step > wanted,
        )

    async def _evaluate(self, asked: Asked, arguments: dict[str, Any]) -> ToolResult:
        assert asked.query is not None
        form = {"query": asked.query}
        if asked.ranged and asked.until > asked.since:
            form |= {"start": iso(asked.since), "end": iso(asked.until), "step": number(asked.step)}
            answer = await self._asked("/api/v1/query_range", form)
        else:
            answer = await self._asked("/api/v1/query", {**form, "time": iso(asked.until)})
        found = _named([_ordered(entry) for entry in answer.records], asked.query)
        folded = [term.casefold() for term in asked.terms]
        kept = [entry for entry in found if not folded or any(term in rendered(entry).casefold() for term in folded)]
        notes = list(answer.notes)
        if asked.raised:
            notes.append(f"the step was raised to {number(asked.step)}s: at most {POINTS} points a series")
        return _result(kept, len(kept), asked, arguments, notes)

    async def _select(self, asked: Asked, arguments: dict[str, Any]) -> ToolResult:
        every = await self._series(asked)
        folded = [term.casefold() for term in asked.terms]
        wanted = [one for one in every if not folded or any(term in one.key().casefold() for term in folded)]
        if not wanted:
            return _nothing(asked, arguments, len(every), [])
        notes: list[str] = []
        chosen = wanted
        if len(wanted) > FETCHED:
            chosen = sorted(wanted, key=lambda one: (-interest(one, tuple(folded)), one.key()))[: asked.limit]
        raw = await self._few_enough(chosen[0], asked)
        if not raw:
            notes.append(
                f"one sample each {number(asked.step)}s is read, the last before it: what lies between is not shown"
            )
        if len(chosen) < len(every):
            parts = await self._each(chosen[:FETCHED], asked, raw)
            found = [replace(one, path=f"result[{at}]") for at, one in enumerate(itertools.chain.from_iterable(parts))]
        else:
            found = await self._samples(asked.selector, asked, raw)
        kinds = await self._kinds({one.name for one in found})
        found = [replace(one, kind=kinds.get(one.name, one.kind)) for one in found]
        if not found:
            return _nothing(
                asked, arguments, len(every), [f"{len(wanted)} series exist, none has a sample in the window"]
            )
        return _result(found, max(len(wanted), len(found)), asked, arguments, notes, wanted)

    async def _series(self, asked: Asked) -> list[Series]:
        form = {"match[]": asked.selector, "start": iso(asked.since), "end": iso(asked.until)}
        answer = await self._asked("/api/v1/series", form)
        return [_ordered(entry) for entry in answer.records if isinstance(entry, Series)]

    async def _few_enough(self, one: Series, asked: Asked) -> bool:
        """Whether raw samples of such a series stay within the bound, judged by how many one has."""
        form = {
            "query": f"count_over_time({promql.exact(one)}{promql.span(asked.since, asked.until)})",
            "time": iso(asked.until),
        }
        answer = await self._asked("/api/v1/query", form)
        counts = [entry.points[0][1] for entry in answer.records if isinstance(entry, Series) and entry.points]
        return not counts or max(counts) <= POINTS

    async def _samples(self, selector: str, asked: Asked, raw: bool) -> list[Series]:
        if raw:
            answer = await self._asked(
                "/api/v1/query",
                {"query": f"{selector}{promql.span(asked.since, asked.until)}", "time": iso(asked.until)},
            )
        else:
            # The last sample of each step and none older: what a plain range query would repeat over a gap.
            span = f"[{math.ceil(asked.step)}s]"
            form = {"query": f"last_over_time({selector}{span})", "step": number(asked.step)}
            answer = await self._asked(
                "/api/v1/query_range", {**form, "start": iso(asked.since), "end": iso(asked.until)}
            )
        found = [_ordered(entry) for entry in answer.records if isinstance(entry, Series)]
        return [kept for one in found if (kept := one.within(asked.since, asked.until)) is not None]

    async def _each(self, chosen: Sequence[Series], asked: Asked, raw: bool) -> list[list[Series]]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(series: Series) -> list[Series]:
            async with gate:
                return await self._samples(promql.exact(series), asked, raw)

        return await asyncio.gather(*(one(series) for series in chosen))

    async def _kinds(self, names: set[str]) -> dict[str, str]:
        """Types of a few metrics, where the server knows them: without, counters are told by their names."""
        if not 0 < len(names) <= 5:
            return {}
        kinds: dict[str, str] = {}
        for name in sorted(names):
            try:
                answer = await self._backend.get("/api/v1/metadata", {"metric": name})
                known = json.loads(answer.text)["data"].get(name) or ()
                if known and known[0]["type"] not in {"", "unknown"}:
                    kinds[name] = str(known[0]["type"])
            except (BackendFailed, ValueError, KeyError, AttributeError, TypeError):
                return kinds
        return kinds

    async def _asked(self, path: str, form: Mapping[str, str]) -> prometheus_json.Answer:
        answer = await self._backend.post(path, form)
        body = _json(answer)
        read = prometheus_json.read(body) if body is not None else None
        if answer.status >= 300 or read is None or read.error is not None:
            raise self._backend.failure(answer, read.error if read is not None else None)
        return read


def _json(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except ValueError:
        return None


def _ordered(entry: Series | Flat) -> Any:
    return replace(entry, labels=dict(sorted(entry.labels.items()))) if isinstance(entry, Series) else entry


def _named(entries: Sequence[Series | Flat], query: str) -> list[Series | Flat]:
    """Results of an expression under its text; of a plain selector under their own names."""
    if promql.is_selector(query):
        return list(entries)
    text = " ".join(query.split())
    several = len({entry.name for entry in entries if isinstance(entry, Series)}) > 1
    named: list[Series | Flat] = []
    for entry in entries:
        if isinstance(entry, Flat):
            named.append(Flat(entry.path, f"{text} = {entry.text}"))
            continue
        own = {"__name__": entry.name} if several and entry.name else {}
        named.append(replace(entry, name=text, labels={**own, **entry.labels}, kind="gauge"))
    return named


def _result(
    found: Sequence[Series | Flat],
    matched: int,
    asked: Asked,
    arguments: dict[str, Any],
    notes: list[str],
    every: Sequence[Series | Flat] = (),
) -> ToolResult:
    if not found:
        return _nothing(asked, arguments, 0, notes)
    folded = tuple(term.casefold() for term in asked.terms)
    ranked = sorted(range(len(found)), key=lambda at: (-interest(found[at], folded), at))
    chosen = (found[at] for at in sorted(ranked[: asked.limit]))
    refs = records.within_room((records.shown(entry.path, rendered(entry), folded) for entry in chosen), notes)
    if len(refs) < matched:
        advice = "aggregate with sum by (...), or ask for the largest with topk(20, ...)"
        notes.insert(0, f"{reduced(every or found, len(refs))}; {advice}")
    times = [at for entry in found if isinstance(entry, Series) for at, _ in entry.points if at is not None]
    return ToolResult(
        status="success",
        retrieval_details=RetrievalDetails(
            evidence_refs=tuple(refs),
            matched=matched,
            returned=len(refs),
            truncated=len(refs) < matched or bool(notes),
            order="all" if len(refs) == matched else "most changed first, then as the server has them",
            first_time=clock(min(times)) if times else None,
            last_time=clock(max(times)) if times else None,
            dropped_reason="; ".join(dict.fromkeys(notes)) or None,
            query_samples=asked.terms or ((asked.query,) if asked.query else None),
        ),
        output=records.pack((entry.path, rendered(entry)) for entry in found),
        output_format=records.FORMAT,
    )


def _nothing(asked: Asked, arguments: dict[str, Any], scanned: int, notes: list[str]) -> ToolResult:
    """No data is a finding, and not zero (ruling 7)."""
    window = f"{iso(asked.since)}..{iso(asked.until)}" if asked.query is None or asked.ranged else iso(asked.until)
    told = ("the server has no data for this, which is not zero", *notes)
    searched = (f"series_scanned={scanned}",)
    return no_hit(window, searched, arguments, told, truncated=bool(notes), terms=asked.terms)
