"""OTLP JSON as plain values: spans in the order of their start, attributes as a dict, events beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from handlers.case import BadCase


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
    if not isinstance(raw, dict) or not ({"resourceSpans", "resource_spans", "resourceLogs", "spans"} & raw.keys()):
        raise BadCase("file", "expected OTLP JSON: an object with `resourceSpans`")
    logs: dict[str, list[SpanEvent]] = {}
    for record in _inside(raw, "Logs", "logRecords"):
        logs.setdefault(str(record.get("spanId", "")), []).append(_event(record))
    given = [*_inside(raw, "Spans", "spans"), *(s for s in _list(raw, "spans") if isinstance(s, dict))]
    read = [_span(span, logs.get(str(span.get("spanId", "")), [])) for span in given]
    return sorted(read, key=lambda span: (span.start, span.end))


def _inside(raw: dict[str, Any], what: str, leaf: str) -> Iterator[dict[str, Any]]:
    for resource in _list(raw, f"resource{what}"):
        for scope in _list(resource, f"scope{what}") or _list(resource, "instrumentationLibrarySpans"):
            yield from (item for item in _list(scope, leaf) if isinstance(item, dict))


def _list(value: Any, key: str) -> list[Any]:
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
    held = (value.get(key) or value.get(snake) or []) if isinstance(value, dict) else []
    return held if isinstance(held, list) else []


def _span(span: dict[str, Any], logged: list[SpanEvent]) -> Span:
    status = span.get("status") if isinstance(span.get("status"), dict) else {}
    assert isinstance(status, dict)
    events = [_event(event) for event in _list(span, "events") if isinstance(event, dict)]
    return Span(
        trace_id=str(span.get("traceId") or span.get("trace_id") or ""),
        span_id=str(span.get("spanId") or span.get("span_id") or ""),
        name=str(span.get("name", "")),
        start=_nanos(span.get("startTimeUnixNano") or span.get("start_time_unix_nano")),
        end=_nanos(span.get("endTimeUnixNano") or span.get("end_time_unix_nano")),
        attributes=attributes(span.get("attributes")),
        failed=status.get("code") in {2, "2", "STATUS_CODE_ERROR", "ERROR"},
        status=str(status.get("message", "")),
        events=tuple(sorted([*events, *logged], key=lambda event: event.time)),
        parent_id=str(span.get("parentSpanId") or span.get("parent_span_id") or ""),
    )


def _event(event: dict[str, Any]) -> SpanEvent:
    held = attributes(event.get("attributes"))
    name = event.get("name") or event.get("eventName") or held.get("event.name") or ""
    time = event.get("timeUnixNano") or event.get("time_unix_nano") or event.get("observedTimeUnixNano")
    body = event.get("body")
    return SpanEvent(str(name), held, value(body) if isinstance(body, dict) else body, _nanos(time))


def attributes(given: Any) -> dict[str, Any]:
    """Attributes as OTLP writes them (`[{"key", "value"}]`), or already as an object."""
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


def _nanos(given: Any) -> int:
    try:
        return int(given or 0)
    except (TypeError, ValueError):
        return 0


_KINDS: dict[str, Callable[[Any], Any]] = {
    "stringValue": str,
    "intValue": _nanos,
    "doubleValue": float,
    "boolValue": bool,
    "bytesValue": str,
    "arrayValue": _items,
    "kvlistValue": _pairs,
}
