"""Traces: calls without ids, which of several answers is judged, and the conventions of other tracers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.transcripts.otel import read_traces
from tests.transcripts import ARGUMENTS, INVENTED, LOGS, METRIC, QUESTION, report
from tests.unit.test_transcripts_otel import event, export, span

SAID = (
    "payments-pool has 20 active connections of at most 20.\n"
    "payment-service logs `Connection is not available, request timed out after 30000ms`."
)
ASKED = {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}


def answer(text: str = SAID) -> str:
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}])


def chat(number: int, heard: Any, said: str = SAID, **more: Any) -> dict[str, Any]:
    held = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(heard)}
    return span(number, "chat gpt", held | {"gen_ai.output.messages": answer(said)}, **more)


def ids(traces: Any) -> list[str]:
    (case,) = read_traces([traces])
    return [call["invocation_id"] for call in case.script["rounds"][0]["invocations"]]


def told(traces: Any) -> tuple[str, list[str]]:
    """The answer, and what the tools returned."""
    (case,) = read_traces([traces])
    (rnd,) = case.script["rounds"]
    refs = [(call.get("retrieval_details") or {}).get("evidence_refs") or [] for call in rnd["invocations"]]
    return rnd["executor"][0], [ref["text"] for found in refs for ref in found]


def parallel(*results: str) -> list[dict[str, Any]]:
    """A history in which one tool was called twice at once, without ids."""
    called = [{"type": "tool_call", "name": "get_logs", "arguments": {"pod": str(k)}} for k, _ in enumerate(results)]
    returned = [{"type": "tool_call_response", "name": "get_logs", "response": text} for text in results]
    return [ASKED, {"role": "assistant", "parts": called}, {"role": "tool", "parts": returned}]


def test_parallel_calls_without_ids_are_paired_by_order_and_none_is_dropped() -> None:
    heard = parallel(METRIC, LOGS)
    traces = export(chat(1, heard[:1], "I look."), chat(2, heard))
    (case,) = read_traces([traces])
    calls = case.script["rounds"][0]["invocations"]
    assert [(c["invocation_id"], c["arguments"]) for c in calls] == [
        ("get_logs", {"pod": "0"}),
        ("get_logs-2", {"pod": "1"}),
    ]
    assert told(traces) == (SAID, [METRIC, *LOGS.split("\n")])
    assert report(case)["effective_verdict"] == "LOW_CONFID"


def test_what_several_spans_repeat_stands_once_also_without_ids() -> None:
    heard = parallel(METRIC, METRIC, LOGS)
    ran = [
        span(
            k + 2,
            "execute_tool get_logs",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_logs",
                "gen_ai.tool.call.arguments": json.dumps({"pod": str(k)}),
                "gen_ai.tool.call.result": text,
            },
        )
        for k, text in enumerate((METRIC, METRIC, LOGS))
    ]
    assert ids(export(*ran, chat(7, heard), chat(9, heard))) == ["get_logs", "get_logs-2", "get_logs-3"]


def test_a_result_that_differs_is_kept_also_under_an_id_that_is_known() -> None:
    def back(text: str) -> list[dict[str, Any]]:
        used = {"type": "tool_call", "id": "1", "name": "get_logs", "arguments": {}}
        done = {"type": "tool_call_response", "id": "1", "response": text}
        return [ASKED, {"role": "assistant", "parts": [used]}, {"role": "tool", "parts": [done]}]

    assert told(export(chat(1, back(LOGS), "I look on."), chat(2, back(METRIC))))[1] == [METRIC, *LOGS.split("\n")]
    assert ids(export(chat(1, back('{"a": 1}'), "x"), chat(2, back('{"a":1}')))) == ["1"]


TITLE = [{"role": "user", "parts": [{"type": "text", "content": "Name this chat in five words."}]}]


def tool(number: int, **more: Any) -> dict[str, Any]:
    held = {"gen_ai.tool.name": "get_logs", "gen_ai.tool.call.result": f"{METRIC}\n{LOGS}"}
    return span(number, "execute_tool get_logs", held, **more)


def root() -> dict[str, Any]:
    held = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps([ASKED])}
    return span(0, "invoke_agent sre", held | {"gen_ai.output.messages": answer()})


@pytest.mark.parametrize(
    "spans",
    [
        [chat(5, parallel(METRIC, LOGS)), chat(8, TITLE, INVENTED)],
        [root(), tool(1, parentSpanId="s0"), chat(8, TITLE, INVENTED)],
        [root(), tool(1, parentSpanId="s0"), chat(8, TITLE, INVENTED, parentSpanId="s0")],
        [tool(1, parentSpanId="a"), chat(5, [ASKED], parentSpanId="a"), chat(8, TITLE, INVENTED, parentSpanId="b")],
    ],
)
def test_a_helpers_call_after_the_answer_is_not_what_is_judged(spans: list[dict[str, Any]]) -> None:
    (case,) = read_traces([export(*spans)])
    assert (case.question, told(export(*spans))[0]) == (QUESTION, SAID)
    assert report(case)["effective_verdict"] == "LOW_CONFID"


def test_an_agent_without_tools_is_not_judged_for_the_agent_beside_it() -> None:
    held = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps(TITLE)}
    named = span(8, "invoke_agent titles", held | {"gen_ai.output.messages": answer(INVENTED)})
    assert told(export(root(), tool(1, parentSpanId="s0"), named))[0] == SAID


def test_the_last_turn_of_a_conversation_is_judged() -> None:
    later = [*parallel(METRIC, LOGS), {"role": "assistant", "parts": [{"type": "text", "content": "Full."}]}]
    later.append({"role": "user", "parts": [{"type": "text", "content": "How many connections has payments-pool?"}]})
    (case,) = read_traces([export(chat(1, parallel(METRIC, LOGS), "Full."), chat(5, later))])
    assert case.question == "How many connections has payments-pool?"


def openinference() -> dict[str, Any]:
    (name, arguments), _, _ = ARGUMENTS
    seen = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "You are an SRE.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.contents.0.message_content.text": QUESTION,
        "llm.input_messages.2.message.role": "assistant",
        "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": name,
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": json.dumps(arguments),
        "llm.input_messages.3.message.role": "tool",
        "llm.input_messages.3.message.tool_call_id": "c1",
        "llm.input_messages.3.message.content": METRIC,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": SAID,
    }
    ran = {
        "openinference.span.kind": "TOOL",
        "tool.name": name,
        "input.value": json.dumps(arguments),
        "output.value": METRIC,
    }
    found = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "payment-service",
        "retrieval.documents.0.document.content": LOGS.split("\n")[0],
        "retrieval.documents.1.document.content": LOGS.split("\n")[1],
    }
    agent = {"openinference.span.kind": "AGENT", "input.value": QUESTION, "output.value": json.dumps({"output": SAID})}
    above = {"parentSpanId": "s1"}
    return export(
        span(1, "agent", agent, endTimeUnixNano="1773742890000000000"),
        span(2, "query_metrics", ran, **above),
        span(3, "retrieve", found, **above),
        span(4, "llm", seen, **above),
    )


def ai_sdk() -> dict[str, Any]:
    (name, arguments), _, _ = ARGUMENTS
    parts = [{"type": "tool-call", "toolCallId": "c1", "toolName": name, "input": arguments}]
    output = {"type": "text", "value": METRIC}
    seen = [
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "assistant", "content": parts},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": name, "output": output}]},
    ]
    run = {"ai.operationId": "ai.streamText", "ai.prompt": json.dumps({"prompt": QUESTION}), "ai.response.text": SAID}
    step = {
        "ai.operationId": "ai.streamText.doStream",
        "ai.prompt.messages": json.dumps(seen),
        "ai.response.text": SAID,
    }
    first = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": name,
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": json.dumps(arguments),
        "ai.toolCall.result": json.dumps(METRIC),
    }
    second = {**first, "ai.toolCall.name": "query_logs", "ai.toolCall.id": "c2", "ai.toolCall.result": json.dumps(LOGS)}
    above = {"parentSpanId": "s1"}
    return export(
        span(1, "ai.streamText", run, endTimeUnixNano="1773742890000000000"),
        span(2, "ai.toolCall", first, **above),
        span(3, "ai.toolCall", second, **above),
        span(4, "ai.streamText.doStream", step, **above),
    )


@pytest.mark.parametrize("shape", [openinference, ai_sdk])
def test_spans_of_other_tracers_are_read(shape: Any) -> None:
    (case,) = read_traces([shape()])
    (rnd,) = case.script["rounds"]
    by_name = {call["tool_name"]: call for call in rnd["invocations"]}
    assert (case.question, rnd["executor"]) == (QUESTION, [SAID])
    assert len(rnd["invocations"]) == 2
    assert by_name["query_metrics"]["arguments"] == ARGUMENTS[0][1]
    assert sorted(told(shape())[1]) == sorted([METRIC, *LOGS.split("\n")])
    assert report(case)["effective_verdict"] == "LOW_CONFID"


def test_a_tool_span_of_another_tracer_that_failed_says_why() -> None:
    raised = [event("exception", {"exception.message": "pods is forbidden"})]
    failed = {"status": {"code": 2}, "events": raised, "parentSpanId": "s1"}
    ran = {"openinference.span.kind": "TOOL", "tool.name": "kubectl", "input.value": "{}"}
    sdk = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "kubectl",
        "ai.toolCall.id": "c9",
        "ai.toolCall.args": "{}",
    }
    for held in (ran, sdk):
        (case,) = read_traces([export(chat(1, [ASKED]), span(2, "kubectl", held, **failed))])
        (call,) = case.script["rounds"][0]["invocations"]
        assert (call["tool_name"], call["status"], call["error"]) == ("kubectl", "error", "pods is forbidden")


def test_a_conversation_that_cannot_be_read_is_named_beside_those_that_can() -> None:
    broken = [{"role": "tool", "parts": [{"type": "tool_call_response", "response": METRIC}]}]
    good, bad = chat(1, parallel(METRIC, LOGS)), chat(2, [ASKED, *broken], trace="t2")
    (case,) = read_traces([export(good, bad)])
    (notice,) = case.notices
    assert notice.startswith("left out: t2: span s2 gen_ai.input.messages[1]")
