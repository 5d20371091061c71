"""GenAI spans in OTLP JSON: the conversation is put together from its spans, in the present and earlier conventions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.case import BadCase
from handlers.cli.casefile import read_cases
from handlers.transcripts.otel import read_traces
from handlers.transcripts.otlp import value
from tests.transcripts import ANSWER, ARGUMENTS, INVENTED, LOGS, METRIC, QUESTION, contract, report, verdict

OUTPUTS = (METRIC, LOGS, "")


def any_value(plain: Any) -> dict[str, Any]:
    if isinstance(plain, dict):
        return {"kvlistValue": {"values": attributes(plain)}}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [any_value(item) for item in plain]}}
    if isinstance(plain, int):
        return {"intValue": str(plain)}
    return {"stringValue": plain}


def attributes(plain: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(item)} for key, item in plain.items()]


def span(number: int, name: str, held: dict[str, Any], trace: str = "t1", **more: Any) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": f"s{number}",
        "name": name,
        "startTimeUnixNano": str(1_773_742_800_000_000_000 + number * 10**9),
        "endTimeUnixNano": str(1_773_742_800_500_000_000 + number * 10**9),
        "attributes": attributes(held),
        **more,
    }


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "agent"}, "spans": list(spans)}]}
        ]
    }


def call_parts() -> list[dict[str, Any]]:
    return [
        {"type": "tool_call", "id": f"call_{k}", "name": n, "arguments": a} for k, (n, a) in enumerate(ARGUMENTS, 1)
    ]


def history() -> list[dict[str, Any]]:
    replies = [{"type": "tool_call_response", "id": f"call_{k}", "response": out} for k, out in enumerate(OUTPUTS, 1)]
    return [
        {"role": "system", "parts": [{"type": "text", "content": "You are an SRE."}]},
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, *call_parts()]},
        {"role": "tool", "parts": replies},
    ]


def present(answer: str = ANSWER, as_text: bool = True) -> dict[str, Any]:
    """Two model calls around three tool spans, messages with parts."""
    write: Any = json.dumps if as_text else (lambda held: held)
    chat = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}
    said = [{"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}]
    asked = [{"role": "assistant", "parts": call_parts(), "finish_reason": "tool_call"}]
    first = {**chat, "gen_ai.input.messages": write(history()[:2]), "gen_ai.output.messages": write(asked)}
    last = {**chat, "gen_ai.input.messages": write(history()), "gen_ai.output.messages": write(said)}
    return export(
        span(9, "chat gpt", last),
        *tool_spans(),
        span(1, "chat gpt", first),
        span(20, "GET /health", {"http.route": "/"}),
    )


def tool_spans() -> list[dict[str, Any]]:
    return [
        span(
            k + 1,
            f"execute_tool {name}",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": f"call_{k}",
                "gen_ai.tool.call.arguments": json.dumps(arguments),
                "gen_ai.tool.call.result": output,
            },
        )
        for k, ((name, arguments), output) in enumerate(zip(ARGUMENTS, OUTPUTS, strict=True), 1)
    ]


def spans_only(answer: str = ANSWER) -> dict[str, Any]:
    """Tool results stand on tool spans alone; the model call tells question and answer."""
    held = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.input.messages": json.dumps(history()[1:2]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]),
    }
    root = span(0, "invoke_agent sre", held)
    root["endTimeUnixNano"] = str(1_773_742_890_000_000_000)
    return export(root, *tool_spans())


def event(name: str, held: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "timeUnixNano": "1", "attributes": attributes(held)}


def by_events(answer: str = ANSWER) -> dict[str, Any]:
    """The earlier convention: one event a message."""
    calls = [
        {"id": f"call_{k}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for k, (n, a) in enumerate(ARGUMENTS, 1)
    ]
    events = [
        event("gen_ai.system.message", {"content": "You are an SRE."}),
        event("gen_ai.user.message", {"content": QUESTION}),
        event("gen_ai.assistant.message", {"tool_calls": json.dumps(calls)}),
        *(event("gen_ai.tool.message", {"id": f"call_{k}", "content": out}) for k, out in enumerate(OUTPUTS, 1)),
        event("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps({"content": answer})}),
    ]
    return export(span(1, "chat gpt", {"gen_ai.system": "openai"}, events=events))


def by_prompt_events(answer: str = ANSWER) -> dict[str, Any]:
    """The first convention: all messages in one attribute of an event."""
    messages = [
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": f"call_{k}", "function": {"name": n, "arguments": a}} for k, (n, a) in enumerate(ARGUMENTS, 1)
            ],
        },
        *({"role": "tool", "tool_call_id": f"call_{k}", "content": out} for k, out in enumerate(OUTPUTS, 1)),
    ]
    events = [
        event("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(messages)}),
        event(
            "gen_ai.content.completion", {"gen_ai.completion": json.dumps([{"role": "assistant", "content": answer}])}
        ),
    ]
    return export(span(1, "chat gpt", {}, events=events))


def indexed(answer: str = ANSWER) -> dict[str, Any]:
    """Messages in numbered attributes."""
    held: dict[str, Any] = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": QUESTION,
        "gen_ai.prompt.1.role": "assistant",
    }
    for k, (name, arguments) in enumerate(ARGUMENTS):
        place = f"gen_ai.prompt.1.tool_calls.{k}"
        held |= {f"{place}.id": f"call_{k + 1}", f"{place}.name": name, f"{place}.arguments": json.dumps(arguments)}
    for k, output in enumerate(OUTPUTS):
        place = f"gen_ai.prompt.{k + 2}"
        held |= {f"{place}.role": "tool", f"{place}.tool_call_id": f"call_{k + 1}", f"{place}.content": output}
    held |= {
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": answer,
        "gen_ai.completion.0.finish_reason": "stop",
    }
    return export(span(1, "openai.chat", held))


SHAPES = [
    present,
    lambda answer=ANSWER: present(answer, as_text=False),
    spans_only,
    by_events,
    by_prompt_events,
    indexed,
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_convention_gives_the_same_case(shape: Any) -> None:
    (case,) = read_traces([shape()])
    (rnd,) = case.script["rounds"]
    calls = {call["invocation_id"]: call for call in rnd["invocations"]}
    assert (case.question, case.lang, rnd["executor"]) == (QUESTION, "en", [ANSWER])
    assert list(calls) == ["call_1", "call_2", "call_3"]
    assert calls["call_2"]["arguments"] == {"query": "payment-service", "minutes": 30}
    assert [call["status"] for call in calls.values()] == ["success", "success", "no_data"]
    assert calls["call_1"]["retrieval_details"]["evidence_refs"] == [{"raw_path": "lines[0]", "text": METRIC}]


@pytest.mark.parametrize("shape", SHAPES)
def test_verdicts_of_traces(shape: Any) -> None:
    assert verdict(read_traces([shape()])[0]) == ("LOW_CONFID", "disclaimer", ["found"])
    assert verdict(read_traces([shape(INVENTED)])[0])[:2] == ("REJECT", "degraded")
    assert verdict(read_traces([shape(json.dumps(contract()))])[0]) == ("PASS", "answer", [])


def test_a_failed_tool_span_is_an_error_with_its_own_words() -> None:
    raised = [event("exception", {"exception.message": "connection refused: metrics.example:9090"})]
    failed = span(
        2, "execute_tool query_metrics", {"gen_ai.tool.name": "query_metrics"}, status={"code": 2}, events=raised
    )
    root = spans_only("query_metrics failed.")["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    (case,) = read_traces([export(root, failed)])
    (call,) = case.script["rounds"][0]["invocations"]
    assert (call["status"], call["error"]) == ("error", "connection refused: metrics.example:9090")


def test_a_history_that_was_cut_keeps_the_earlier_results_as_evidence() -> None:
    cut = [history()[1], {"role": "user", "parts": [{"type": "text", "content": "(history cut) " + QUESTION}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    middle = {"gen_ai.input.messages": json.dumps(history()), "gen_ai.output.messages": "[]"}
    last = {"gen_ai.input.messages": json.dumps(cut), "gen_ai.output.messages": json.dumps(said)}
    (case,) = read_traces([export(span(1, "chat", middle), span(2, "chat", last))])
    assert [c["invocation_id"] for c in case.script["rounds"][0]["invocations"]] == ["call_1", "call_2", "call_3"]
    assert report(case)["gatekeeper_result"]["status"] == "pass"


def test_each_conversation_is_a_case_of_its_own() -> None:
    first = present()
    second = json.loads(json.dumps(present(INVENTED)).replace('"t1"', '"t2"'))
    raw = "\n".join(json.dumps(one) for one in (first, second)).encode()
    lines, single = read_cases(raw, "otel")
    assert not single
    assert [verdict(line.case)[0] for line in lines if line.case is not None] == ["LOW_CONFID", "REJECT"]


def test_one_trace_over_several_lines_is_one_case() -> None:
    spans = present()["resourceSpans"][0]["scopeSpans"][0]["spans"]
    lines, single = read_cases("\n".join(json.dumps(export(one)) for one in spans).encode(), "otel")
    assert (single, len(lines)) == (True, 1)
    assert lines[0].case is not None
    assert lines[0].case.script == read_traces([present()])[0].script


@pytest.mark.parametrize(
    "raw",
    [
        {},
        [],
        "x",
        {"resourceSpans": []},
        export(span(1, "GET /", {})),
        export(
            span(
                1,
                "c",
                {
                    "gen_ai.output.messages": json.dumps(
                        [{"role": "assistant", "parts": [{"type": "text", "content": "Hello."}]}]
                    )
                },
            )
        ),
    ],
)
def test_a_file_without_a_conversation_says_so(raw: Any) -> None:
    with pytest.raises(BadCase) as bad:
        read_traces([raw])
    assert bad.value.where in {"file", "resourceSpans"}
    assert "\n" not in bad.value.why


def test_values_that_are_none_of_otlp_do_no_harm() -> None:
    assert value({"intValue": "x"}) == 0
    assert value({"doubleValue": "x"}) == "x"
    assert value({"arrayValue": None}) == []
    assert value({"kvlistValue": {"values": [3]}}) == {}
    assert value({"unknown": 1}) == {"unknown": 1}
