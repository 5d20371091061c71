"""Chat transcripts of several frameworks: read into the same case, judged with the same verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from handlers.case import BadCase
from handlers.cli.casefile import read_cases
from handlers.transcripts.openai import read_chat
from tests.transcripts import (
    ANSWER,
    INVENTED,
    LOGS,
    METRIC,
    QUESTION,
    agents_sdk,
    blocks,
    chat,
    contract,
    langgraph,
    report,
    verdict,
)

FRAMEWORKS: list[Callable[[str], Any]] = [chat, langgraph, agents_sdk, blocks]


@pytest.mark.parametrize("shape", FRAMEWORKS)
def test_every_shape_gives_question_calls_and_answer(shape: Callable[[str], Any]) -> None:
    case = read_chat(shape(ANSWER))
    (rnd,) = case.script["rounds"]
    calls = {call["invocation_id"]: call for call in rnd["invocations"]}
    assert (case.question, case.lang, rnd["executor"]) == (QUESTION, "en", [ANSWER])
    assert list(calls) == ["call_1", "call_2", "call_3"]
    assert calls["call_2"]["arguments"] == {"query": "payment-service", "minutes": 30}
    assert [calls[k]["status"] for k in calls] == ["success", "success", "no_data"]
    refs = {
        k: {r["raw_path"]: r["text"] for r in call["retrieval_details"]["evidence_refs"]} for k, call in calls.items()
    }
    assert refs["call_1"] == {"lines[0]": METRIC}
    assert refs["call_2"] == dict(zip(("lines[0]", "lines[1]"), LOGS.split("\n"), strict=True))
    assert refs["call_3"]["summary"].startswith("hits=0 status=ok")


@pytest.mark.parametrize("shape", FRAMEWORKS)
def test_a_grounded_answer_in_prose_is_capped_because_its_bindings_were_found(shape: Callable[[str], Any]) -> None:
    told = report(read_chat(shape(ANSWER)))
    bound = [
        (b["claim_id"], b["source_invocation_id"], b["raw_path"]) for b in told["gatekeeper_result"]["checked_bindings"]
    ]
    assert bound == [("p1", "call_1", "lines[0]"), ("p2", "call_2", "lines[0]"), ("p3", "call_3", "summary")]
    assert told["gatekeeper_result"]["status"] == "pass"
    assert (told["effective_verdict"], told["groundedness_score"]) == ("LOW_CONFID", 1.0)
    assert [cap["source"] for cap in told["verifier_evaluation"]["caps"]] == ["found"]


@pytest.mark.parametrize("shape", FRAMEWORKS)
def test_an_invented_answer_is_rejected(shape: Callable[[str], Any]) -> None:
    assert verdict(read_chat(shape(INVENTED)))[:2] == ("REJECT", "degraded")


@pytest.mark.parametrize("shape", FRAMEWORKS)
def test_an_answer_that_is_the_contract_is_judged_as_such(shape: Callable[[str], Any]) -> None:
    case = read_chat(shape(json.dumps(contract())))
    assert not case.found_bindings
    assert verdict(case) == ("PASS", "answer", [])


def test_a_miscopied_quotation_of_a_contract_is_rejected_and_never_completed() -> None:
    case = read_chat(chat(json.dumps(contract(excerpt=METRIC.replace("last=20", "last=2")))))
    told = report(case)
    assert told["effective_verdict"] == "REJECT"
    assert "evidence.excerpt_mismatch" in told["gatekeeper_result"]["failed_rules"]


def test_a_contract_without_bindings_gets_none() -> None:
    bare = contract()
    for claim in bare["claims"]:
        claim["evidence_bindings"] = []
    told = report(read_chat(chat(json.dumps(bare))))
    assert told["gatekeeper_result"]["checked_bindings"] == []
    assert "claim.no_binding" in told["gatekeeper_result"]["failed_rules"]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda messages: messages,
        lambda messages: {"messages": messages},
        lambda messages: {
            "request": {"messages": messages[:-1]},
            "response": {"choices": [{"message": messages[-1], "finish_reason": "stop"}]},
        },
        lambda messages: {
            "messages": messages[:-1],
            "choices": [{"index": 0, "message": messages[-1], "finish_reason": "stop"}],
        },
    ],
)
def test_messages_are_found_where_they_stand(wrap: Callable[[Any], Any]) -> None:
    assert read_chat(wrap(chat())).script == read_chat(chat()).script


def test_a_responses_object_with_its_input() -> None:
    items = agents_sdk()
    raw = {"object": "response", "input": items[:-1], "output": items[-1:], "status": "completed"}
    assert read_chat(raw).script == read_chat(items).script
    raw = {"object": "response", "input": QUESTION, "output": items[1:]}
    assert read_chat(raw).script == read_chat(items).script


def test_langchain_constructors_and_message_dicts() -> None:
    dumped = langgraph()["values"]["messages"]
    names = {"system": "SystemMessage", "human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    built = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", names[m["type"]]],
            "kwargs": {k: v for k, v in m.items() if k != "type"},
        }
        for m in dumped
    ]
    dicts = [{"type": m["type"], "data": {k: v for k, v in m.items() if k != "type"}} for m in dumped]
    assert read_chat(built).script == read_chat(dicts).script == read_chat(langgraph()).script


def test_the_old_function_call() -> None:
    case = read_chat(
        [
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "query_metrics", "arguments": '{"query":"up"}'},
            },
            {"role": "function", "name": "query_metrics", "content": METRIC},
            {"role": "assistant", "content": ANSWER},
        ]
    )
    (call,) = case.script["rounds"][0]["invocations"]
    assert (call["invocation_id"], call["tool_name"], call["arguments"]) == (
        "query_metrics",
        "query_metrics",
        {"query": "up"},
    )


def test_earlier_turns_are_evidence_and_the_last_question_is_judged() -> None:
    messages = [
        *chat(),
        {"role": "user", "content": "连接池 payments-pool 满了吗？"},
        {"role": "assistant", "content": "payments-pool 有 20 个活跃连接，上限 20。"},
    ]
    case = read_chat(messages)
    told = report(case)
    assert (case.question, case.lang) == ("连接池 payments-pool 满了吗？", "zh-CN")
    assert told["gatekeeper_result"]["checked_bindings"][0]["source_invocation_id"] == "call_1"
    assert told["effective_verdict"] == "LOW_CONFID"


def test_an_id_that_is_used_again_is_another_invocation() -> None:
    again = [*chat(), *chat()]
    ids = [call["invocation_id"] for call in read_chat(again).script["rounds"][0]["invocations"]]
    assert ids == ["call_1", "call_2", "call_3", "call_1-2", "call_2-2", "call_3-2"]


def test_failed_replies_are_errors_and_a_call_without_reply_returned_nothing() -> None:
    messages = langgraph()["values"]["messages"]
    messages[3] = {**messages[3], "status": "error", "content": "connection refused: metrics.example:9090"}
    messages[4] = {**messages[4], "content": "Error from server (Forbidden): pods is forbidden"}
    del messages[5]
    calls = read_chat(messages).script["rounds"][0]["invocations"]
    assert [call["status"] for call in calls] == ["error", "error", "error"]
    assert calls[0]["error"] == "connection refused: metrics.example:9090"
    assert "retrieval_details" not in calls[2]


def test_a_json_reply_is_quotable_as_it_was_written_and_by_its_objects() -> None:
    messages = chat("payments-pool has 20 active connections.")
    messages[4]["content"] = '{"pools":[{"name":"orders-pool","active":3},{"name":"payments-pool","active":20}]}'
    case = read_chat(messages)
    refs = {
        r["raw_path"]: r["text"]
        for r in case.script["rounds"][0]["invocations"][0]["retrieval_details"]["evidence_refs"]
    }
    assert refs["lines[0]"] == messages[4]["content"]
    assert refs["pools[1]"] == 'pools[1] name="payments-pool" active=20'
    assert report(case)["effective_verdict"] == "LOW_CONFID"


def test_a_cut_or_refused_answer_is_that() -> None:
    cut = chat()
    cut[-1] = {**cut[-1], "finish_reason": "length"}
    assert report(read_chat(cut))["verifier_evaluation"]["executor_output_parse_status"] == "truncated"
    refused = chat()
    refused[-1] = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    assert report(read_chat(refused))["response"]["fallback_reason"] == "agent_failed"


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ({}, "file"),
        ("hello", "file"),
        ([], "messages"),
        ([{"role": "user", "content": QUESTION}], "messages"),
        ([{"role": "assistant", "content": ANSWER}], "messages"),
        ([*chat()[:-1]], "messages[5].tool_calls[0]"),
        (["hello"], "messages[0]"),
        ([{"role": "narrator", "content": "x"}], "messages[0].role"),
        ([{"role": "assistant", "tool_calls": [{"id": "1"}]}], "messages[0].tool_calls[0]"),
        ([{"role": "assistant", "tool_calls": "none"}], "messages[0].tool_calls"),
        ([{"role": "tool", "content": "x"}], "messages[0]"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]"),
    ],
)
def test_a_transcript_that_cannot_be_judged_says_where(raw: Any, where: str) -> None:
    with pytest.raises(BadCase) as bad:
        read_chat(raw)
    assert bad.value.where == where


def test_a_file_with_a_message_a_line_is_one_transcript() -> None:
    lines, single = read_cases("\n".join(json.dumps(m) for m in chat()).encode(), "openai")
    assert single
    assert lines[0].case is not None
    assert lines[0].case.script == read_chat(chat()).script
    lines, single = read_cases("\n".join(json.dumps(m) for m in agents_sdk()).encode(), "openai")
    assert (single, len(lines)) == (True, 1)


def test_a_file_with_a_transcript_a_line_has_one_case_each_and_a_bad_line_in_its_place() -> None:
    raw = b"\n".join([json.dumps(chat()).encode(), b'{"messages": []}', json.dumps(langgraph()).encode()])
    lines, single = read_cases(raw, "openai")
    assert not single
    assert [line.case is not None for line in lines] == [True, False, True]
    assert lines[1].error is not None
    assert (lines[1].number, lines[1].error.where) == (2, "messages")


def test_half_a_character_is_replaced_and_told_and_the_rest_is_read() -> None:
    messages = chat()
    messages[4]["content"] = METRIC + " <1> <2> \U0001f600 \\ud83d"
    text = json.dumps(messages).replace("<1>", "\\ud83d").replace("<2>", "\\udc00x")
    lines, single = read_cases(text.encode(), "openai")
    assert single
    assert lines[0].case is not None
    refs = lines[0].case.script["rounds"][0]["invocations"][0]["retrieval_details"]["evidence_refs"]
    assert refs[0]["text"] == METRIC + " \ufffd \ufffdx \U0001f600 \\ud83d"
    assert lines[0].case.notices == ("2 characters that are half of a pair, or no UTF-8, were read as U+FFFD",)
    lines, _ = read_cases(json.dumps(chat()).encode().replace(b"SRE", b"S\xffE"), "openai")
    assert lines[0].case is not None
    assert lines[0].case.notices[0].startswith("1 char")
    lines, _ = read_cases(json.dumps(chat()).encode(), "openai")
    assert lines[0].case is not None
    assert lines[0].case.notices == ()
