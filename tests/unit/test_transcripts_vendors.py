"""Tool calls and results under other vendors' names: each is read, or named where it cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.case import BadCase, Case
from handlers.transcripts.openai import read_chat
from tests.transcripts import LOGS, METRIC, QUESTION, report

SAID = "payments-pool has 20 active connections of at most 20."
ASKED = {"role": "user", "content": QUESTION}
ANSWERED = {"role": "assistant", "content": SAID}


def calls(case: Case) -> list[dict[str, Any]]:
    return list(case.script["rounds"][0]["invocations"])


def texts(case: Case) -> list[str]:
    found = [(call.get("retrieval_details") or {}).get("evidence_refs") or [] for call in calls(case)]
    return [ref["text"] for refs in found for ref in refs]


def bedrock() -> dict[str, Any]:
    used = {"toolUse": {"toolUseId": "t1", "name": "query_metrics", "input": {"query": "pool"}}}
    back = {"toolResult": {"toolUseId": "t1", "content": [{"text": METRIC}], "status": "success"}}
    return {
        "messages": [
            {"role": "user", "content": [{"text": QUESTION}]},
            {"role": "assistant", "content": [{"text": "I look."}, used]},
            {"role": "user", "content": [back, {"cachePoint": {"type": "default"}}]},
        ],
        "output": {"message": {"role": "assistant", "content": [{"text": SAID}]}},
        "stopReason": "end_turn",
    }


def gemini() -> dict[str, Any]:
    used = {"functionCall": {"name": "query_metrics", "args": {"query": "pool"}}, "thoughtSignature": "x"}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": QUESTION}]},
            {"role": "model", "parts": [{"text": "hm", "thought": True}, used]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "query_metrics", "response": {"result": METRIC}}}],
            },
        ],
        "candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "STOP"}],
    }


def ui_4() -> list[dict[str, Any]]:
    used = {
        "toolCallId": "t1",
        "toolName": "query_metrics",
        "args": {"query": "pool"},
        "state": "result",
        "result": METRIC,
    }
    parts = [
        {"type": "step-start"},
        {"type": "tool-invocation", "toolInvocation": used},
        {"type": "text", "text": SAID},
    ]
    return [ASKED, {"role": "assistant", "content": SAID, "parts": parts, "toolInvocations": [used]}]


def ui_4_without_parts() -> list[dict[str, Any]]:
    return [ASKED, {k: v for k, v in ui_4()[1].items() if k != "parts"}]


def ui_5() -> list[dict[str, Any]]:
    used = {"type": "tool-query_metrics", "toolCallId": "t1", "state": "output-available", "input": {"query": "pool"}}
    parts = [
        {"type": "text", "text": "I look at RefundJob."},
        {**used, "output": METRIC},
        {"type": "text", "text": SAID},
    ]
    return [{"role": "user", "parts": [{"type": "text", "text": QUESTION}]}, {"role": "assistant", "parts": parts}]


def ui_5_dynamic() -> list[dict[str, Any]]:
    asked, said = ui_5()
    used = {**said["parts"][1], "type": "dynamic-tool", "toolName": "query_metrics"}
    return [asked, {**said, "parts": [used, said["parts"][2]]}]


def core(**result: Any) -> list[dict[str, Any]]:
    used = {"type": "tool-call", "toolCallId": "t1", "toolName": "query_metrics", "input": {"query": "pool"}}
    back = {"type": "tool-result", "toolCallId": "t1", "toolName": "query_metrics", **(result or {"result": METRIC})}
    return [ASKED, {"role": "assistant", "content": [used]}, {"role": "tool", "content": [back]}, ANSWERED]


def core_5() -> list[dict[str, Any]]:
    return core(output={"type": "text", "value": METRIC})


def core_5_parts() -> list[dict[str, Any]]:
    return core(output={"type": "content", "value": [{"type": "text", "text": METRIC}]})


def mcp_item() -> list[dict[str, Any]]:
    used = {
        "type": "mcp_call",
        "id": "t1",
        "server_label": "prom",
        "name": "query_metrics",
        "arguments": '{"query":"pool"}',
    }
    return [ASKED, {"type": "mcp_list_tools", "tools": []}, {**used, "output": METRIC, "error": None}, ANSWERED]


def mcp_blocks() -> list[dict[str, Any]]:
    used = {
        "type": "mcp_tool_use",
        "id": "t1",
        "name": "query_metrics",
        "server_name": "prom",
        "input": {"query": "pool"},
    }
    back = {
        "type": "mcp_tool_result",
        "tool_use_id": "t1",
        "is_error": False,
        "content": [{"type": "text", "text": METRIC}],
    }
    said = [{"type": "text", "text": "I look."}, used, back, {"type": "text", "text": SAID}]
    return [ASKED, {"role": "assistant", "content": said}]


def holmes() -> dict[str, Any]:
    used = {"tool_call_id": "t1", "tool_name": "query_metrics", "description": "pool"}
    done = {**used, "result": {"status": "success", "data": METRIC, "error": None, "params": {"query": "pool"}}}
    return {"ask": QUESTION, "analysis": SAID, "tool_calls": [done]}


def holmes_with_history() -> dict[str, Any]:
    function = {"name": "query_metrics", "arguments": '{"query":"pool"}'}
    history = [
        ASKED,
        {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "t1", "name": "query_metrics", "content": METRIC},
        ANSWERED,
    ]
    return {**{k: v for k, v in holmes().items() if k != "ask"}, "conversation_history": history}


SHAPES = [bedrock, gemini, ui_4, ui_4_without_parts, ui_5, ui_5_dynamic, core, core_5, core_5_parts]
SHAPES += [mcp_item, mcp_blocks, holmes, holmes_with_history]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_vendors_tool_result_is_evidence_and_the_last_text_the_answer(shape: Any) -> None:
    case = read_chat(shape())
    (call,) = calls(case)
    assert (case.question, case.script["rounds"][0]["executor"], case.notices) == (QUESTION, [SAID], ())
    assert (call["tool_name"], call["arguments"], call["status"]) == ("query_metrics", {"query": "pool"}, "success")
    assert call["invocation_id"] == ("query_metrics" if shape is gemini else "t1")
    assert texts(case) == [METRIC]
    assert report(case)["effective_verdict"] == "LOW_CONFID"


@pytest.mark.parametrize(
    ("items", "lines"),
    [
        (
            [{"type": "code_interpreter_call", "id": "c", "code": "x", "outputs": [{"type": "logs", "logs": LOGS}]}],
            LOGS,
        ),
        ([{"type": "file_search_call", "id": "f", "queries": ["q"], "results": [{"text": LOGS}]}], LOGS),
        (
            [
                {"type": "shell_call", "call_id": "s", "action": {"commands": ["cat log"]}},
                {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": LOGS, "stderr": ""}]},
            ],
            LOGS,
        ),
        (
            [
                {"type": "custom_tool_call", "call_id": "s", "name": "run", "input": "cat log"},
                {"type": "custom_tool_call_output", "call_id": "s", "output": LOGS},
            ],
            LOGS,
        ),
    ],
)
def test_items_of_tools_that_the_vendor_runs_are_read_line_by_line(items: list[Any], lines: str) -> None:
    case = read_chat([ASKED, *items, ANSWERED])
    assert len(calls(case)) == 1
    assert texts(case) == lines.split("\n")


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "web_search_result", "url": "https://x.example", "title": LOGS, "encrypted_content": "zzz"}],
        {"type": "code_execution_result", "stdout": LOGS, "stderr": "", "return_code": 0},
        {"type": "web_fetch_result", "content": {"type": "document", "source": {"type": "text", "data": LOGS}}},
    ],
)
def test_results_of_server_tools_are_read_and_what_was_encrypted_is_left_out(content: Any) -> None:
    used = {"type": "server_tool_use", "id": "s", "name": "look", "input": {}}
    back = {"type": "look_tool_result", "tool_use_id": "s", "content": content}
    case = read_chat([ASKED, {"role": "assistant", "content": [used, back, {"type": "text", "text": SAID}]}])
    assert "RefundJob" in "".join(texts(case))
    assert "zzz" not in "".join(texts(case))


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ({"type": "quantum_probe", "payload": "x"}, "messages[1]: quantum_probe is not known"),
        (
            {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "x"}},
            "messages[1]: web_search_call",
        ),
        (
            {
                "type": "computer_call_output",
                "call_id": "w",
                "output": {"type": "computer_screenshot", "image_url": "x"},
            },
            "messages[1]: the tool's output is a picture",
        ),
    ],
)
def test_what_cannot_be_quoted_is_named_and_is_no_empty_search(item: dict[str, Any], named: str) -> None:
    case = read_chat([ASKED, item, ANSWERED])
    assert [notice for notice in case.notices if notice.startswith(named)]
    assert all(call["status"] == "error" and "retrieval_details" not in call for call in calls(case))


def test_a_kind_that_nobody_knows_but_is_a_result_by_its_name_is_read() -> None:
    used = {"type": "satellite_call", "call_id": "s", "input": {}}
    back = {"type": "satellite_call_output", "call_id": "s", "output": METRIC}
    case = read_chat([ASKED, used, back, ANSWERED])
    assert ([call["tool_name"] for call in calls(case)], texts(case)) == (["satellite"], [METRIC])
    with pytest.raises(BadCase, match="names no call"):
        read_chat([ASKED, {"type": "satellite_call_output", "output": METRIC}, ANSWERED])


@pytest.mark.parametrize(
    "messages",
    [
        core(output={"type": "error-text", "value": "pods is forbidden"}),
        core(result="pods is forbidden", isError=True),
        [
            ASKED,
            {
                "type": "mcp_call",
                "id": "t1",
                "name": "kubectl",
                "arguments": "{}",
                "output": None,
                "error": "pods is forbidden",
            },
            ANSWERED,
        ],
        {
            "ask": QUESTION,
            "analysis": SAID,
            "tool_calls": [
                {"tool_name": "kubectl", "result": {"status": "error", "error": "pods is forbidden", "data": None}}
            ],
        },
        [
            ASKED,
            {
                "role": "assistant",
                "parts": [
                    {
                        "type": "tool-kubectl",
                        "toolCallId": "t1",
                        "state": "output-error",
                        "errorText": "pods is forbidden",
                    }
                ],
            },
            ANSWERED,
        ],
    ],
)
def test_a_failed_call_is_an_error_in_every_vendors_words(messages: Any) -> None:
    (call,) = calls(read_chat(messages))
    assert (call["status"], call["error"]) == ("error", "pods is forbidden")


def test_calls_without_ids_are_paired_by_name_and_order() -> None:
    used = [{"function": {"name": "get_logs", "arguments": {"pod": pod}}} for pod in ("a", "b")]
    back = [{"role": "tool", "tool_name": "get_logs", "content": text} for text in (LOGS, METRIC)]
    case = read_chat([ASKED, {"role": "assistant", "content": "", "tool_calls": used}, *back, ANSWERED])
    assert [(c["invocation_id"], c["arguments"]["pod"]) for c in calls(case)] == [
        ("get_logs", "a"),
        ("get_logs-2", "b"),
    ]
    assert texts(case) == [*LOGS.split("\n"), METRIC]


def test_the_last_assistant_message_is_the_answer_also_where_it_is_empty() -> None:
    case = read_chat([*core(), {"role": "user", "content": "And payments-pool?"}, {"role": "assistant", "content": ""}])
    told = report(case)
    assert (case.question, case.script["rounds"][0]["executor"]) == ("And payments-pool?", [""])
    assert (told["response"]["fallback_reason"], told["effective_verdict"]) == ("agent_failed", None)


def test_a_question_without_a_reply_is_told_and_no_earlier_answer_is_judged() -> None:
    with pytest.raises(BadCase) as bad:
        read_chat([*core(), {"role": "user", "content": "And payments-pool?"}])
    assert (bad.value.where, bad.value.why.partition(":")[0]) == ("messages[4]", "the last user message has no reply")


def test_what_stands_beside_a_tool_result_is_no_question() -> None:
    reminder = {"type": "text", "text": "<system-reminder>Is the todo list up to date?</system-reminder>"}
    used = {"type": "tool_use", "id": "t1", "name": "query_metrics", "input": {}}
    back = {"type": "tool_result", "tool_use_id": "t1", "content": METRIC}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": f"<system-reminder>x\ny</system-reminder>{QUESTION}"}]},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [back, {"type": "text", "text": "Is orders-db full?"}, reminder]},
        {"role": "user", "content": [reminder]},
        ANSWERED,
        {"role": "user", "content": [reminder]},
    ]
    assert read_chat(messages).question == QUESTION


def test_a_history_of_holmes_with_other_output_keeps_both() -> None:
    raw = holmes_with_history()
    raw["tool_calls"][0]["result"]["data"] = {"pool": "payments-pool", "active": 20}
    assert json.loads(texts(read_chat(raw))[1]) == {"pool": "payments-pool", "active": 20}
