"""Traces as SDKs, collectors and viewers write them: the same spans, the same case."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from handlers.case import BadCase, Case
from handlers.cli.casefile import read_cases
from handlers.transcripts.otel import read_traces
from tests.transcripts import ANSWER, LOGS, METRIC, QUESTION, report
from tests.unit.test_transcripts_otel import event, export, present, span

Span = dict[str, Any]


def spans() -> list[Span]:
    found: list[Span] = present()["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return found


def texts(one: Span) -> dict[str, str]:
    return {a["key"]: a["value"]["stringValue"] for a in one["attributes"]}


def iso(nanos: str) -> str:
    return datetime.fromtimestamp(int(nanos) / 1e9, UTC).isoformat().replace("+00:00", "Z")


def printed() -> list[Span]:
    """As Python's SDK prints a span, and as Phoenix gives it."""
    return [
        {
            "name": one["name"],
            "context": {"trace_id": "0xab01", "span_id": f"0x{one['spanId']}"},
            "parent_id": None,
            "start_time": iso(one["startTimeUnixNano"]),
            "end_time": iso(one["endTimeUnixNano"]),
            "status": {"status_code": "UNSET"},
            "attributes": texts(one),
            "events": [],
        }
        for one in spans()
    ]


def jaeger() -> dict[str, Any]:
    found = [
        {
            "traceID": "ab01",
            "spanID": one["spanId"],
            "operationName": one["name"],
            "references": [],
            "startTime": int(one["startTimeUnixNano"]) // 1_000,
            "duration": 500_000,
            "tags": [{"key": key, "type": "string", "value": held} for key, held in texts(one).items()],
        }
        for one in spans()
    ]
    return {"data": [{"traceID": "ab01", "spans": found, "processes": {}}]}


def in_bytes() -> dict[str, Any]:
    def encoded(attribute: dict[str, Any]) -> dict[str, Any]:
        held = base64.b64encode(attribute["value"]["stringValue"].encode()).decode()
        return {"key": attribute["key"], "value": {"bytesValue": held}}

    return export(*({**one, "attributes": list(map(encoded, one["attributes"]))} for one in spans()))


def lists_in_values() -> dict[str, Any]:
    return export(*({**one, "attributes": {"kvlistValue": {"values": one["attributes"]}}} for one in spans()))


EXPORTS: dict[str, Callable[[], Any]] = {
    "Phoenix": lambda: {"data": printed(), "next_cursor": None},
    "a list of spans": spans,
    "a list of exports": lambda: [present()],
    "Jaeger": jaeger,
    "Tempo": lambda: {"batches": present()["resourceSpans"]},
    "Tempo, wrapped": lambda: {"trace": present()},
    "bytes": in_bytes,
    "attributes in a list value": lists_in_values,
    "backwards": lambda: export(*reversed(spans())),
    "without ids": lambda: export(*({k: v for k, v in one.items() if not k.endswith("Id")} for one in spans())),
    "each its own parent": lambda: export(*({**one, "parentSpanId": one["spanId"]} for one in spans())),
}


def read(raw: Any) -> Case:
    (case,) = read_traces([raw])
    return case


@pytest.mark.parametrize("name", EXPORTS)
def test_every_way_to_write_spans_is_the_same_case(name: str) -> None:
    assert read(EXPORTS[name]()).script == read(present()).script


@pytest.mark.parametrize(("indent", "between"), [(None, "\n"), (4, "\n"), (2, "\r\n")])
def test_spans_printed_one_after_the_other_are_one_trace(indent: int | None, between: str) -> None:
    raw = between.join(json.dumps(one, indent=indent) for one in printed()).encode()
    (line,), single = read_cases(raw, "otel")
    assert single
    assert line.case is not None
    assert line.case.script == read(present()).script


def test_a_span_that_was_sent_twice_is_one_span() -> None:
    (case,) = read_traces([present(), present()])
    assert case.script == read(present()).script


def test_messages_that_were_cut_off_are_told_and_never_judged_as_a_text() -> None:
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}])
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
    cut = {"gen_ai.input.messages": asked, "gen_ai.output.messages": said[:60]}
    with pytest.raises(BadCase, match=r"gen_ai\.output\.messages: the JSON in it does not parse: it was cut off"):
        read(export(span(1, "chat", cut)))
    whole = {"gen_ai.input.messages": asked, "gen_ai.output.messages": said}
    case = read(export(span(1, "chat", {**cut, "gen_ai.input.messages": asked[:60]}), span(2, "chat", whole)))
    assert case.script["rounds"][0]["executor"] == [ANSWER]
    assert [notice for notice in case.notices if "cut off" in notice]


def langfuse() -> dict[str, Any]:
    asked = [{"role": "user", "content": QUESTION}]

    def observed(number: int, kind: str, given: Any, told: Any, **more: Any) -> dict[str, Any]:
        return {
            "id": f"o{number}",
            "traceId": "T",
            "type": kind,
            "startTime": f"2026-03-17T10:00:0{number}.000Z",
            "endTime": f"2026-03-17T10:00:0{number}.500Z",
            "parentObservationId": None,
            "input": given,
            "output": told,
            **more,
        }

    function = {"name": "query_metrics", "arguments": '{"query": "pool"}'}
    calling = {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": function}]}
    return {
        "id": "T",
        "name": "sre",
        "input": {"messages": asked},
        "output": ANSWER,
        "observations": [
            observed(1, "GENERATION", asked, calling),
            observed(2, "TOOL", {"query": "pool"}, METRIC, name="query_metrics"),
            observed(3, "TOOL", '{"query": "logs"}', LOGS, name="query_logs"),
            observed(4, "GENERATION", {"messages": asked}, {"role": "assistant", "content": ANSWER}),
        ],
    }


@pytest.mark.parametrize(
    "wrap",
    [
        lambda trace: trace,
        lambda trace: {"trace": {**trace, "observations": None}, "observations": trace["observations"]},
        lambda trace: {"data": trace["observations"], "meta": {}},
        lambda trace: trace["observations"],
    ],
)
def test_observations_of_langfuse_are_spans(wrap: Callable[[Any], Any]) -> None:
    case = read(wrap(langfuse()))
    found = case.script["rounds"][0]["invocations"]
    assert (case.question, case.script["rounds"][0]["executor"]) == (QUESTION, [ANSWER])
    assert [call["tool_name"] for call in found] == ["query_metrics", "query_logs"]
    assert found[0]["retrieval_details"]["evidence_refs"] == [{"raw_path": "lines[0]", "text": METRIC}]
    assert report(case)["gatekeeper_result"]["checked_bindings"]


def langsmith() -> dict[str, Any]:
    def lc(kind: str, **held: Any) -> dict[str, Any]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": held}

    def run(number: int, kind: str, given: Any, told: Any, name: str = "step", **more: Any) -> dict[str, Any]:
        times = {"start_time": f"2026-03-17T10:00:0{number}.000000", "end_time": f"2026-03-17T10:00:0{number}.500000"}
        held = {"id": f"r{number}", "trace_id": "r0", "parent_run_id": "r0" if number else None, "name": name, **times}
        return {**held, "run_type": kind, "inputs": given, "outputs": told, "error": None, **more}

    asked = lc("HumanMessage", content=QUESTION)
    calling = lc("AIMessage", content="", tool_calls=[{"name": "query_metrics", "args": {"query": "pool"}, "id": "t1"}])
    said = lc("AIMessage", content=ANSWER)
    found = lc("ToolMessage", content=METRIC, tool_call_id="t1")
    generations = [{"generations": [[{"text": "", "message": one}]]} for one in (calling, said)]
    steps = [
        run(1, "llm", {"messages": [[asked]]}, generations[0]),
        run(2, "tool", {"query": "pool"}, {"output": {"type": "tool", "content": METRIC}}, "query_metrics"),
        run(3, "tool", {"query": "logs"}, {"output": LOGS}, "query_logs"),
        run(4, "llm", {"messages": [[asked, calling, found]]}, generations[1]),
    ]
    return run(0, "chain", {"question": QUESTION}, {"output": ANSWER}, "sre", child_runs=steps)


@pytest.mark.parametrize("flat", [False, True])
def test_runs_of_langsmith_are_spans(flat: bool) -> None:
    root = langsmith()
    raw = [{**root, "child_runs": []}, *root["child_runs"]] if flat else root
    case = read(raw)
    found = case.script["rounds"][0]["invocations"]
    assert (case.question, case.script["rounds"][0]["executor"]) == (QUESTION, [ANSWER])
    assert [(call["tool_name"], call["status"]) for call in found] == [
        ("query_metrics", "success"),
        ("query_logs", "success"),
    ]
    assert found[0]["retrieval_details"]["evidence_refs"] == [{"raw_path": "lines[0]", "text": METRIC}]


def test_a_failed_observation_is_an_error() -> None:
    trace = langfuse()
    trace["observations"][1] |= {"level": "ERROR", "statusMessage": "pods is forbidden", "output": None}
    (call, _) = read(trace).script["rounds"][0]["invocations"]
    assert (call["status"], call["error"]) == ("error", "pods is forbidden")


@pytest.mark.parametrize("raw", [{"resourceMetrics": []}, [], 5, "x", {}])
def test_what_is_no_trace_is_told_with_what_was_found(raw: Any) -> None:
    with pytest.raises(BadCase, match=r"expected OTLP JSON .* found"):
        read(raw)


def test_values_of_no_kind_and_times_of_no_sense_do_no_harm() -> None:
    odd = [
        {
            **one,
            "attributes": [*one["attributes"], {"key": "x", "value": None}, None, 5],
            "events": [event("x", {}), None],
        }
        for one in spans()
    ]
    times: tuple[Any, ...] = ("soon", None, "9" * 40, 1e300, [], "2026-99-99T00:00:00Z")
    for time in times:
        case = read(export(*({**one, "startTimeUnixNano": time, "endTimeUnixNano": time} for one in odd)))
        assert case.question == QUESTION
