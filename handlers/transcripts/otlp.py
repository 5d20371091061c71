"""Spans as plain values: in the order of their start, attributes as a dict, events beside them (see `exports`)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from handlers.transcripts.exports import KIND, held_in, listed


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event of a span, or a log record that names its span."""

    name: str
    attributes: dict[str, Any]
    body: Any = None
    time: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """One span. Times are nanoseconds since 1970; `failed` its status."""

    trace_id: str
    span_id: str
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    failed: bool = False
    status: str = ""
    events: tuple[SpanEvent, ...] = field(default=())
    parent_id: str = ""


def spans(raw: Any) -> list[Span]:
    """Every span of an export (`resourceSpans`, or `resourceLogs` with the events of spans), by start.

    BadCase for a value that is no export.
    """
    given, records = held_in(raw)
    logs: dict[str, list[SpanEvent]] = {}
    for record in records:
        logs.setdefault(str(record.get("spanId", "")), []).append(_event(record))
    read = [_span(span, logs.get(str(span.get("spanId", "")), [])) for span in given]
    return sorted(read, key=lambda span: (span.start, span.end))


def _span(span: dict[str, Any], logged: list[SpanEvent]) -> Span:
    status = span.get("status") if isinstance(span.get("status"), dict) else {}
    assert isinstance(status, dict)
    context = span["context"] if isinstance(span.get("context"), dict) else {}
    held = {**attributes(span.get("tags")), **attributes(span.get("attributes"))}
    if span.get("span_kind") and KIND not in held:
        held[KIND] = span["span_kind"]
    events = [_event(event) for event in listed(span, "events") if isinstance(event, dict)]
    start = _when(_first(span, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"))
    lasted = _nanos(span["duration"]) * 1_000 if "duration" in span and "operationName" in span else 0
    code = _first(status, "code", "status_code") or span.get("status_code")
    return Span(
        trace_id=_id(_first(span, "traceId", "trace_id", "traceID") or context.get("trace_id")),
        span_id=_id(_first(span, "spanId", "span_id", "spanID") or context.get("span_id")),
        name=str(_first(span, "name", "operationName") or ""),
        start=start,
        end=_when(_first(span, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")) or start + lasted,
        attributes=held,
        failed=code in {2, "2", "STATUS_CODE_ERROR", "ERROR"} or held.get("error") is True,
        status=str(_first(status, "message", "description") or span.get("status_message") or ""),
        events=tuple(sorted([*events, *logged], key=lambda event: event.time)),
        parent_id=_id(_first(span, "parentSpanId", "parent_span_id", "parent_id") or _referred(span)),
    )


def _first(held: dict[str, Any], *keys: str) -> Any:
    return next((held[key] for key in keys if held.get(key) not in (None, "")), None)


def _id(given: Any) -> str:
    return str(given or "").removeprefix("0x")


def _referred(span: dict[str, Any]) -> Any:
    # Jaeger: `references` with `CHILD_OF`.
    found = [one for one in listed(span, "references") if isinstance(one, dict)]
    return found[0].get("spanID") if found else None


def _event(event: dict[str, Any]) -> SpanEvent:
    held = attributes(event.get("attributes"))
    name = event.get("name") or event.get("eventName") or held.get("event.name") or ""
    time = _first(event, "timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "timestamp")
    body = event.get("body")
    return SpanEvent(str(name), held, value(body) if isinstance(body, dict) else body, _when(time))


def attributes(given: Any) -> dict[str, Any]:
    """Attributes as OTLP writes them (`[{"key", "value"}]`), as a list in an AnyValue, or already as an object."""
    while isinstance(given, dict) and len(given) == 1 and {"kvlistValue", "values"} & given.keys():
        given = next(iter(given.values()))
    if isinstance(given, dict):
        return {key: value(item) if isinstance(item, dict) else item for key, item in given.items()}
    pairs = given if isinstance(given, list) else []
    return {str(pair.get("key")): value(pair.get("value")) for pair in pairs if isinstance(pair, dict)}


def value(given: Any) -> Any:
    """An AnyValue as a plain value; what is none stays as it is."""
    if not isinstance(given, dict):
        return given
    for key, read in _KINDS.items():
        if key in given and len(given) == 1:
            try:
                return read(given[key])
            except (TypeError, ValueError):
                return given[key]
    return given


def json_of(held: Any) -> Any:
    """A value that may have been written as JSON text, read; what is no JSON stays as it is."""
    if not isinstance(held, str):
        return held
    try:
        return json.loads(held)
    except (ValueError, RecursionError):
        return held


def place(span: Span, name: str) -> str:
    """Where an attribute stands, for errors."""
    return f"span {span.span_id or span.name} {name}"


def _items(given: Any) -> list[Any]:
    return [value(item) for item in (given.get("values") or [] if isinstance(given, dict) else [])]


def _pairs(given: Any) -> dict[str, Any]:
    return attributes(given.get("values") or [] if isinstance(given, dict) else [])


def _text(given: Any) -> str:
    """Bytes, which are written in base64, as the text that they are."""
    try:
        return base64.b64decode(given, validate=True).decode()
    except (ValueError, TypeError):
        return str(given)


def _when(given: Any) -> int:
    """Nanoseconds since 1970 of a number of nanoseconds (Jaeger: of microseconds), or of an ISO time."""
    if isinstance(given, str) and "T" in given:
        try:
            read = datetime.fromisoformat(given)
            return int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1_000_000) * 1_000
        except (ValueError, OverflowError):
            return 0
    nanos = _nanos(given)
    return nanos * 1_000 if 10**14 < nanos < 10**17 else nanos


def _nanos(given: Any) -> int:
    try:
        return int(given or 0)
    except (TypeError, ValueError, OverflowError):
        return 0


_KINDS: dict[str, Callable[[Any], Any]] = {
    "stringValue": str,
    "intValue": _nanos,
    "doubleValue": float,
    "boolValue": bool,
    "bytesValue": _text,
    "arrayValue": _items,
    "kvlistValue": _pairs,
}
