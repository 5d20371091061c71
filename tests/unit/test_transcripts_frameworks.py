"""Runs of agent frameworks as they are dumped: each is the same case, and what an agent says is no evidence for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.case import BadCase, Case
from handlers.cli.casefile import read_cases
from handlers.transcripts.openai import read_chat
from tests.transcripts import ANSWER, LOGS, METRIC, QUESTION, chat, report

SAID = "payments-pool has 20 active connections of at most 20."
ASKED = {"role": "user", "content": QUESTION}
ARGUMENTS = {"query": "pool"}


def invocations(case: Case) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = case.script["rounds"][0]["invocations"]
    return found


def answer(case: Case) -> str:
    return str(case.script["rounds"][0]["executor"][0])


def shown(case: Case) -> list[str]:
    refs = [(call.get("retrieval_details") or {}).get("evidence_refs", ()) for call in invocations(case)]
    return [ref["text"] for found in refs for ref in found]


def called(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def used(call_id: str = "t1", name: str = "query_metrics", arguments: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [called(call_id, name, arguments or ARGUMENTS)]}


def back(content: Any = METRIC, call_id: str = "t1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def pydantic_ai() -> list[dict[str, Any]]:
    call = {"tool_name": "query_metrics", "args": json.dumps(ARGUMENTS), "tool_call_id": "t1", "part_kind": "tool-call"}
    done = {"tool_name": "query_metrics", "content": METRIC, "tool_call_id": "t1", "part_kind": "tool-return"}
    asked = [
        {"content": "You are an SRE.", "part_kind": "system-prompt"},
        {"content": [QUESTION, {"url": "x", "kind": "image-url"}], "part_kind": "user-prompt"},
    ]
    thought = {"content": "ORA-12519?", "part_kind": "thinking"}
    return [
        {"parts": asked, "instructions": None, "kind": "request"},
        {"parts": [thought, call], "model_name": "m", "kind": "response"},
        {"parts": [done], "kind": "request"},
        {"parts": [{"content": SAID, "part_kind": "text"}], "kind": "response", "finish_reason": "stop"},
    ]


def pydantic_ai_output_tool() -> list[dict[str, Any]]:
    call = {"tool_name": "final_result", "args": {"answer": SAID}, "tool_call_id": "t2", "part_kind": "tool-call"}
    done = {**call, "content": "Final result processed.", "part_kind": "tool-return"}
    return [*pydantic_ai()[:3], {"parts": [call], "kind": "response"}, {"parts": [done], "kind": "request"}]


def autogen() -> dict[str, Any]:
    call = {"id": "t1", "name": "query_metrics", "arguments": json.dumps(ARGUMENTS)}
    done = {"call_id": "t1", "name": "query_metrics", "content": METRIC, "is_error": False}
    return {
        "messages": [
            {"source": "user", "content": QUESTION, "type": "TextMessage", "models_usage": None},
            {"source": "sre", "content": "hm", "type": "ThoughtEvent"},
            {"source": "sre", "content": [call], "type": "ToolCallRequestEvent"},
            {"source": "sre", "content": [done], "type": "ToolCallExecutionEvent"},
            {"source": "sre", "content": f"{SAID} TERMINATE", "type": "TextMessage"},
            {"source": "critic", "content": "TERMINATE", "type": "TextMessage"},
        ],
        "stop_reason": "Text 'TERMINATE' mentioned",
    }


def autogen_core() -> list[dict[str, Any]]:
    call = {"id": "t1", "name": "query_metrics", "arguments": json.dumps(ARGUMENTS)}
    return [
        {"content": "You are an SRE.", "type": "SystemMessage"},
        {"content": QUESTION, "source": "user", "type": "UserMessage"},
        {"content": [call], "thought": None, "source": "sre", "type": "AssistantMessage"},
        {
            "content": [{"content": METRIC, "call_id": "t1", "is_error": False}],
            "type": "FunctionExecutionResultMessage",
        },
        {"content": SAID, "thought": None, "source": "sre", "type": "AssistantMessage"},
    ]


def autogen_0_2() -> list[dict[str, Any]]:
    responses = [{"tool_call_id": "t1", "role": "tool", "content": METRIC}]
    return [
        {**ASKED, "name": "user_proxy"},
        used(),
        {"role": "tool", "content": METRIC, "tool_responses": responses},
        {"role": "assistant", "content": SAID, "name": "sre"},
    ]


def smolagents(steps_only: bool = False) -> Any:
    ended = {
        "step_number": 2,
        "tool_calls": [called("t2", "final_answer", {"answer": SAID})],
        "observations": SAID,
        "action_output": SAID,
        "is_final_answer": True,
        "error": None,
    }
    steps = [
        {"task": QUESTION, "task_images": None},
        {"step_number": 1, "tool_calls": [called("t1", "query_metrics", ARGUMENTS)], "observations": METRIC},
        ended,
    ]
    return steps if steps_only else {"output": SAID, "state": "success", "steps": steps}


def smolagents_steps() -> Any:
    return smolagents(steps_only=True)


def final_tool(name: str = "final_answer", **arguments: str) -> list[dict[str, Any]]:
    return [ASKED, used(), back(), used("t2", name, arguments or {"answer": SAID}), back(SAID, "t2")]


def streamed() -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}

    arguments = json.dumps(ARGUMENTS)
    pieces = [{"index": 0, "id": "t1", "function": {"name": "query_metrics", "arguments": arguments[:5]}}]
    rest = [{"index": 0, "function": {"arguments": arguments[5:]}}]
    return [
        ASKED,
        chunk({"role": "assistant", "tool_calls": pieces}),
        chunk({"tool_calls": rest}),
        chunk({}, "tool_calls"),
        back(),
        *(chunk({"content": piece}) for piece in (SAID[:10], SAID[10:])),
        chunk({}, "stop"),
    ]


RUNS = [pydantic_ai, pydantic_ai_output_tool, autogen, autogen_core, autogen_0_2, smolagents, smolagents_steps]
RUNS += [final_tool, streamed]


@pytest.mark.parametrize("run", RUNS)
def test_every_frameworks_run_is_the_same_case(run: Any) -> None:
    case = read_chat(run())
    (call,) = invocations(case)
    assert (case.question, answer(case), case.notices) == (QUESTION, SAID, ())
    assert (call["invocation_id"], call["tool_name"], call["arguments"]) == ("t1", "query_metrics", ARGUMENTS)
    assert (call["status"], call["evidence_kind"], shown(case)) == ("success", "incident", [METRIC])
    assert report(case)["gatekeeper_result"]["status"] == "pass"


@pytest.mark.parametrize("name", ["submit", "finish", "attempt_completion", "FinalAnswer", "mcp__sre__submit_answer"])
def test_an_answer_may_be_handed_to_a_tool_that_takes_it(name: str) -> None:
    assert answer(read_chat(final_tool(name, result=SAID, command="exit"))) == SAID
    assert answer(read_chat(final_tool(name)[:-1])) == SAID


def test_what_the_answer_tool_gives_back_supports_no_answer() -> None:
    invented = "payments-pool has 55 active connections."
    calls = [ASKED, used(), back(), used("t2", "final_answer", {"answer": invented}), back(invented, "t2")]
    for messages in (calls, [*calls, {"role": "assistant", "content": invented}]):
        told = report(read_chat(messages))
        assert told["gatekeeper_result"]["checked_bindings"] == []
        assert told["effective_verdict"] in {"LOW_CONFID", "REJECT"}


def test_a_tool_that_takes_notes_bears_no_evidence() -> None:
    thought = "payments-pool has 55 active connections."
    noted = [used("t2", "mcp__notes__sequentialthinking", {"thought": thought}), back(thought, "t2")]
    case = read_chat([ASKED, used(), back(), *noted, {"role": "assistant", "content": thought}])
    assert [call["evidence_kind"] for call in invocations(case)] == ["incident", "helper"]
    assert report(case)["gatekeeper_result"]["checked_bindings"] == []


def test_a_tool_that_answers_questions_is_evidence() -> None:
    case = read_chat(
        [ASKED, used("t1", "answer", {"question": "active?"}), back(), {"role": "assistant", "content": SAID}]
    )
    assert (invocations(case)[0]["evidence_kind"], shown(case)) == ("incident", [METRIC])


def test_the_last_value_of_a_code_step_is_the_answer_and_no_evidence() -> None:
    run = smolagents()
    code = called("t2", "python_interpreter", "final_answer(x)")
    logs = f"Execution logs:\n{LOGS}\nLast output from code snippet:\n{SAID}"
    run["steps"][2] |= {"tool_calls": [code], "observations": logs}
    case = read_chat(run)
    assert answer(case) == SAID
    assert shown(case) == [METRIC, "Execution logs:", *LOGS.split("\n")]


def test_a_failed_step_and_a_retry_are_errors() -> None:
    run = smolagents()
    run["steps"][1] |= {
        "observations": None,
        "error": {"type": "AgentToolExecutionError", "message": "pods is forbidden"},
    }
    messages = pydantic_ai()
    messages[2]["parts"][0] |= {"part_kind": "retry-prompt", "content": "pods is forbidden"}
    for raw in (run, messages):
        (call,) = invocations(read_chat(raw))
        assert (call["status"], call["error"]) == ("error", "pods is forbidden")


def test_an_answer_in_sound_is_judged_by_its_transcript() -> None:
    said = {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": SAID}}
    assert answer(read_chat([ASKED, used(), back(), said])) == SAID


def test_a_picture_among_a_tools_texts_is_left_out_and_told() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": METRIC}, picture]
    case = read_chat([ASKED, used(), back(parts), {"role": "assistant", "content": SAID}])
    assert shown(case) == [METRIC]
    assert case.notices == ("messages[2]: a picture or a file in the tool's output cannot be quoted and was left out",)
    alone = read_chat([ASKED, used(), back([picture]), {"role": "assistant", "content": SAID}])
    assert "retrieval_details" not in invocations(alone)[0]


def as_file(raw: Any, encoding: str = "utf-8") -> bytes:
    return json.dumps(raw, ensure_ascii=False).encode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_file_is_read_in_the_encoding_that_it_was_saved_in(encoding: str) -> None:
    (line,), single = read_cases(as_file(chat(f"{ANSWER} 完"), encoding), "openai")
    assert single
    assert line.case is not None
    assert answer(line.case).endswith("完")


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PK\x03\x04\x14", "a zip archive"),
        (b"PAR1\x15", "Parquet"),
        (b"\xff\xfe{", "UTF-16"),
    ],
)
def test_what_is_no_text_is_named(raw: bytes, named: str) -> None:
    for form in ("case", "openai", "otel"):
        with pytest.raises(BadCase, match=f"not JSON.*{named}"):
            read_cases(raw, form)


def test_a_list_of_transcripts_is_one_case_each_and_a_bad_one_is_told_in_its_place() -> None:
    for wrap in (lambda messages: messages, lambda messages: {"messages": messages}):
        lines, single = read_cases(as_file([wrap(chat()), wrap([ASKED]), wrap(chat())]), "openai")
        assert (single, [line.number for line in lines]) == (False, [1, 2, 3])
        assert [line.error is None for line in lines] == [True, False, True]
        (only,), single = read_cases(as_file([wrap(chat())]), "openai")
        assert (single, only.case is not None) == (True, True)


def test_a_line_that_is_no_json_among_messages_is_named_alone() -> None:
    lines = [json.dumps(message) for message in chat()]
    with pytest.raises(BadCase) as bad:
        read_cases("\n".join([*lines[:3], "{bad", *lines[3:]]).encode(), "openai")
    assert bad.value.where == "line 4"


@pytest.mark.parametrize("send", ["{}", "data: {}\n", "event: x\ndata: {}\n"])
def test_streamed_chunks_are_read_line_by_line_also_as_they_were_sent(send: str) -> None:
    lines = [send.replace("{}", json.dumps(message)) for message in streamed()]
    ended = ["data: [DONE]"] if "data" in send else []
    (line,), _ = read_cases("\n".join([*lines, *ended]).encode(), "openai")
    assert line.case is not None
    assert answer(line.case) == SAID


def test_not_a_number_in_what_others_wrote_is_no_reason_to_refuse_it() -> None:
    raw = b'{"temperature": NaN, "messages": ' + as_file(chat()) + b"}"
    (line,), _ = read_cases(raw, "openai")
    assert line.case is not None
    with pytest.raises(BadCase, match="not JSON"):
        read_cases(b'{"question": "why", "score": NaN}', "case")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ([{"content": "x"}], "expected `role`: user, assistant, tool or system; found an object with `content`"),
        ({"answer": "x", "score": 1}, "or an object with `messages`; found an object with `answer`, `score`"),
        ([ASKED, {"role": "wizard", "content": "x"}], "'wizard' is no role"),
    ],
)
def test_what_is_no_transcript_is_told_with_what_was_found(raw: Any, why: str) -> None:
    with pytest.raises(BadCase) as bad:
        read_chat(raw)
    assert why in bad.value.why
