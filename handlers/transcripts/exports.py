"""What tools export of traces, as lists of spans and of log records: OTLP JSON, and what others write in its place.

Read are OTLP exports (`resourceSpans`, `resourceLogs`; Tempo's `batches` and `trace`), lists of spans as SDKs print them
and Phoenix gives them (`context`, `parent_id`, ISO times), Jaeger's `data` (`operationName`, `tags`), Langfuse's
`observations`, and LangSmith's runs (`run_type`, `child_runs`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from handlers.case import BadCase
from handlers.strict_json import kind_name

KIND = "openinference.span.kind"
_WRAPPERS = ("trace", "data", "traces", "result")
_OTLP = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "batches", "spans")


def held_in(raw: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The spans and the log records of an export as they are written. BadCase for a value that is none: what was found."""
    raw = _with_observations(raw)
    if not _is_export(raw):
        expected = "expected OTLP JSON (an object with `resourceSpans`), or the spans of Phoenix, Jaeger or Langfuse"
        raise BadCase("file", f"{expected}; found {_found(raw)}")
    return list(_spans(raw)), list(_inside(raw, "Logs", "logRecords"))


def _with_observations(raw: Any) -> Any:
    """A bare list of Langfuse's observations, as its API gives them, put where a trace has it; and LangSmith's runs."""
    runs = raw if isinstance(raw, list) else raw.get("runs", [raw]) if isinstance(raw, dict) else []
    if isinstance(runs, list) and any(isinstance(run, dict) and "run_type" in run for run in runs):
        return {"observations": [_of_run(run) for run in _flat(runs)]}
    inside = raw.get("data") if isinstance(raw, dict) else raw
    if isinstance(inside, list) and any(isinstance(one, dict) and "parentObservationId" in one for one in inside):
        return {"observations": inside}
    return raw


def _found(raw: Any) -> str:
    if isinstance(raw, dict):
        return f"an object with {', '.join(f'`{str(key)[:40]}`' for key in list(raw)[:6]) or 'nothing in it'}"
    return kind_name(raw)


def _is_export(raw: Any) -> bool:
    if isinstance(raw, list):
        return any(map(_is_export, raw))
    if not isinstance(raw, dict):
        return False
    held = bool(set(_OTLP) & raw.keys()) or isinstance(raw.get("observations"), list) or is_span(raw)
    return held or any(isinstance(raw.get(key), dict | list) and _is_export(raw[key]) for key in _WRAPPERS)


def is_span(raw: Any) -> bool:
    """Whether a JSON value is one span."""
    if not isinstance(raw, dict):
        return False
    context = raw.get("context") if isinstance(raw.get("context"), dict) else raw
    return isinstance(context, dict) and bool({"span_id", "spanId", "spanID"} & context.keys())


def _spans(raw: Any) -> Iterator[dict[str, Any]]:
    if isinstance(raw, list):
        for item in raw:
            yield from _spans(item)
    elif is_span(raw):
        yield raw
    elif isinstance(raw, dict):
        yield from _inside(raw, "Spans", "spans")
        for span in listed(raw, "spans"):
            yield from _spans(span)
        if isinstance(raw.get("observations"), list):
            yield from _observed(raw)
            return
        for key in _WRAPPERS:
            yield from _spans(raw.get(key))


def _inside(raw: Any, what: str, leaf: str) -> Iterator[dict[str, Any]]:
    if isinstance(raw, list):
        for item in raw:
            yield from _inside(item, what, leaf)
        return
    batches = listed(raw, "batches") if what == "Spans" else []
    for resource in listed(raw, f"resource{what}") or batches:
        for scope in listed(resource, f"scope{what}") or listed(resource, "instrumentationLibrarySpans"):
            yield from (item for item in listed(scope, leaf) if isinstance(item, dict))


def listed(value: Any, key: str) -> list[Any]:
    """The list under a key that may be written `resourceSpans` or `resource_spans`; empty where there is none."""
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
    held = (value.get(key) or value.get(snake) or []) if isinstance(value, dict) else []
    return held if isinstance(held, list) else []


def _observed(raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Langfuse's observations as spans; the trace around them is the run of the agent."""
    trace = raw["trace"] if isinstance(raw.get("trace"), dict) else raw
    observed = [one for one in raw["observations"] if isinstance(one, dict)]
    trace_id = str(trace.get("id") or next((one["traceId"] for one in observed if one.get("traceId")), "trace"))
    starts = [str(one["startTime"]) for one in observed if one.get("startTime")]
    ends = [str(one["endTime"]) for one in observed if one.get("endTime")]
    if trace.get("input") is not None and trace.get("output") is not None:
        whole = {"id": trace_id, "name": trace.get("name"), "type": "AGENT", "startTime": min(starts, default="")}
        yield _as_span({**whole, "endTime": max(ends, default=""), **_told(trace)}, trace_id)
    for one in observed:
        parent = one.get("parentObservationId") or one.get("parent_observation_id") or trace_id
        yield _as_span({**one, "parentObservationId": parent}, trace_id)


def _flat(runs: list[Any]) -> Iterator[dict[str, Any]]:
    waiting = [run for run in reversed(runs) if isinstance(run, dict)]
    while waiting:
        run = waiting.pop()
        yield run
        waiting += [child for child in reversed(listed(run, "child_runs")) if isinstance(child, dict)]


def _of_run(run: dict[str, Any]) -> dict[str, Any]:
    """A run of LangSmith as an observation: a model's messages as a list, a tool's output as it is."""
    kind = {"llm": "GENERATION"}.get(str(run.get("run_type")), str(run.get("run_type")).upper())
    given, told = run.get("inputs"), run.get("outputs")
    if kind == "GENERATION":
        given, told = _messages(given), _messages(told)
    elif kind == "TOOL" and isinstance(told, dict) and len(told) == 1:
        (told,) = told.values()
        told = told["content"] if isinstance(told, dict) and "content" in told else told
    return {
        "id": run.get("id"),
        "traceId": run.get("trace_id"),
        "type": kind,
        "name": run.get("name"),
        "startTime": run.get("start_time"),
        "endTime": run.get("end_time"),
        "parentObservationId": run.get("parent_run_id"),
        "input": given,
        "output": told,
        "level": "ERROR" if run.get("error") else None,
        "statusMessage": run.get("error"),
    }


def _messages(held: Any) -> Any:
    for key in ("messages", "generations", "choices", "output", "message"):
        if isinstance(held, dict) and key in held:
            held = held[key]
    while isinstance(held, list) and len(held) == 1 and isinstance(held[0], list):
        held = held[0]
    wrapped = isinstance(held, list) and bool(held) and all(isinstance(one, dict) and "message" in one for one in held)
    return [one["message"] for one in held] if wrapped else held


def _told(trace: dict[str, Any]) -> dict[str, Any]:
    return {key: trace[key] for key in ("input", "output")}


def _as_span(one: dict[str, Any], trace_id: str) -> dict[str, Any]:
    kind = str(one.get("type") or "SPAN").upper()
    given, told = _read(one.get("input")), _read(one.get("output"))
    if kind == "GENERATION":
        messages = given.get("messages", given) if isinstance(given, dict) else given
        attributes = {"gen_ai.input.messages": messages, "gen_ai.output.messages": told}
    else:
        attributes = {
            KIND: "CHAIN" if kind == "SPAN" else kind,
            "input.value": _text(given),
            "output.value": _text(told),
        }
    return {
        "traceId": str(one.get("traceId") or trace_id),
        "spanId": str(one.get("id") or ""),
        "parentSpanId": one.get("parentObservationId"),
        "name": one.get("name") or kind.lower(),
        "startTime": one.get("startTime"),
        "endTime": one.get("endTime"),
        "attributes": {key: held for key, held in attributes.items() if held is not None},
        "status": {"code": 2 if one.get("level") == "ERROR" else 0, "message": one.get("statusMessage") or ""},
    }


def _read(held: Any) -> Any:
    # A download has objects written as text.
    if isinstance(held, str) and held[:1] in {"{", "["}:
        try:
            return json.loads(held)
        except (ValueError, RecursionError):
            return held
    return held


def _text(held: Any) -> Any:
    return held if held is None or isinstance(held, str) else json.dumps(held, ensure_ascii=False)
