"""One diagnosis of payment-service as several frameworks would record it: three tool calls and an answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from handlers.case import Case
from handlers.report import turn_report
from tests.play import play_case

QUESTION = "Why does payment-service time out?"
METRIC = 'hikaricp_connections_active{pool="payments-pool"} last=20 max=20'
LOGS = (
    "2026-03-17T10:20:01Z ERROR payment-service HikariPool-1 - Connection is not available, request timed out after 30000ms.\n"
    "2026-03-17T10:20:04Z WARN payment-service Apparent connection leak detected for RefundJob"
)
ANSWER = (
    "**Findings**\n"
    "- payments-pool has 20 active connections of at most 20.\n"
    "- payment-service logs `Connection is not available, request timed out after 30000ms`.\n"
    "- No ORA-00060 was found.\n\n"
    "RefundJob may leak connections. You should restart payment-service."
)
INVENTED = "The pool ledger-db-main of payment-service has 55 connections, and ORA-12519 was raised on db-node-7."
ARGUMENTS = (
    ("query_metrics", {"query": "hikaricp_connections_active"}),
    ("query_logs", {"query": "payment-service", "minutes": 30}),
    ("query_logs", {"query": "ORA-00060"}),
)


def contract(excerpt: str = METRIC) -> dict[str, Any]:
    """The findings as our contract, bound to calls of the transcript; `excerpt` is the first one's quotation."""
    told = "payment-service: Connection is not available, request timed out after 30000ms."
    return {
        "answer_version": "executor_evidence_v2",
        "claims": [
            _claim("c1", "payments-pool has 20 active connections of at most 20.", "query_metrics", "call_1", excerpt),
            _claim("c2", told, "query_logs", "call_2", LOGS.partition("\n")[0]),
        ],
    }


def _claim(claim_id: str, text: str, tool: str, call: str, excerpt: str) -> dict[str, Any]:
    binding = {"tool_name": tool, "source_invocation_id": call, "raw_path": "lines[0]", "evidence_excerpt": excerpt}
    return {
        "claim_id": claim_id,
        "claim_type": "observation",
        "claim_text": text,
        "support_level": "direct",
        "evidence_bindings": [binding],
    }


def chat(answer: str = ANSWER) -> list[dict[str, Any]]:
    """Chat messages: parallel calls, arguments as a string and as an object; replies as text, parts and nothing."""
    (first, a), (second, b), (third, c) = ARGUMENTS
    return [
        {"role": "system", "content": "You are an SRE."},
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": first, "arguments": json.dumps(a)}},
                {"id": "call_2", "type": "function", "function": {"name": second, "arguments": b}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": LOGS}]},
        {"role": "tool", "tool_call_id": "call_1", "content": METRIC},
        {
            "role": "assistant",
            "content": "Let me look for lock errors.",
            "tool_calls": [
                {"id": "call_3", "type": "function", "function": {"name": third, "arguments": json.dumps(c)}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_3", "content": ""},
        {"role": "assistant", "content": answer},
    ]


def langgraph(answer: str = ANSWER) -> dict[str, Any]:
    """A LangGraph state as it is dumped: LangChain messages with `type`, calls with `args`."""
    (first, a), (second, b), (third, c) = ARGUMENTS
    call = {"type": "tool_call"}
    return {
        "values": {
            "messages": [
                {"type": "system", "content": "You are an SRE.", "id": "m0"},
                {"type": "human", "content": QUESTION, "id": "m1", "additional_kwargs": {}},
                {
                    "type": "ai",
                    "content": "",
                    "tool_calls": [
                        {**call, "name": first, "args": a, "id": "call_1"},
                        {**call, "name": second, "args": b, "id": "call_2"},
                        {**call, "name": third, "args": c, "id": "call_3"},
                    ],
                    "invalid_tool_calls": [],
                },
                {"type": "tool", "content": METRIC, "name": first, "tool_call_id": "call_1", "status": "success"},
                {"type": "tool", "content": LOGS, "name": second, "tool_call_id": "call_2", "status": "success"},
                {"type": "tool", "content": "[]", "name": third, "tool_call_id": "call_3", "status": "success"},
                {"type": "ai", "content": answer, "tool_calls": [], "response_metadata": {"finish_reason": "stop"}},
            ]
        },
        "next": [],
    }


def agents_sdk(answer: str = ANSWER) -> list[dict[str, Any]]:
    """The input list of an OpenAI Agents SDK run: Responses items."""
    items: list[dict[str, Any]] = [
        {"role": "user", "content": QUESTION},
        {"type": "reasoning", "id": "rs_1", "summary": []},
    ]
    for k, (name, arguments) in enumerate(ARGUMENTS, 1):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{k}",
                "call_id": f"call_{k}",
                "name": name,
                "arguments": json.dumps(arguments),
            }
        )
    for k, output in enumerate((METRIC, LOGS, "no results found"), 1):
        items.append({"type": "function_call_output", "call_id": f"call_{k}", "output": output})
    said = [{"type": "output_text", "text": answer, "annotations": []}]
    return [*items, {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": said}]


def blocks(answer: str = ANSWER) -> dict[str, Any]:
    """Messages of content blocks: tool_use and tool_result."""
    uses = [
        {"type": "tool_use", "id": f"call_{k}", "name": name, "input": arguments}
        for k, (name, arguments) in enumerate(ARGUMENTS, 1)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "call_1", "content": METRIC},
        {"type": "tool_result", "tool_use_id": "call_2", "content": [{"type": "text", "text": LOGS}]},
        {"type": "tool_result", "tool_use_id": "call_3"},
    ]
    return {
        "system": "You are an SRE.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [{"type": "text", "text": answer}], "stop_reason": "end_turn"},
        ],
    }


def report(case: Case) -> dict[str, Any]:
    """What a case comes to when all roles have worked on it."""
    state = asyncio.run(play_case(case))
    return turn_report(state, state.turns[-1])


def verdict(case: Case) -> tuple[str, str, list[str]]:
    """Effective verdict, kind of response, and the sources of the caps."""
    told = report(case)
    caps = (told["verifier_evaluation"] or {}).get("caps", [])
    return told["effective_verdict"], told["response"]["kind"], sorted({cap["source"] for cap in caps})
