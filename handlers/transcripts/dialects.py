"""Messages of frameworks with words of their own, as chat messages: Pydantic AI, AutoGen.

Pydantic AI: `kind` request and response, parts with `part_kind`. AutoGen: `type` names the class (`TextMessage`,
`ToolCallRequestEvent`, `ToolCallExecutionEvent`, and of its core `UserMessage`, `FunctionExecutionResultMessage`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PART_KINDS = {
    "tool-call": "tool_call",
    "builtin-tool-call": "tool_call",
    "tool-return": "tool_result",
    "builtin-tool-return": "tool_result",
    "text": "text",
    "user-prompt": "text",
    "thinking": "thinking",
    "file": "file",
}
_TALK = frozenset(
    {
        "TextMessage",
        "StopMessage",
        "HandoffMessage",
        "StructuredMessage",
        "ToolCallSummaryMessage",
        "MultiModalMessage",
        "UserMessage",
        "AssistantMessage",
    }
)
_CALLS, _RESULTS = "ToolCallRequestEvent", frozenset({"ToolCallExecutionEvent", "FunctionExecutionResultMessage"})
_EVENTS = frozenset(
    {
        "SystemMessage",
        "ThoughtEvent",
        "MemoryQueryEvent",
        "UserInputRequestedEvent",
        "ModelClientStreamingChunkEvent",
        "SelectSpeakerEvent",
        "SelectorEvent",
        "CodeGenerationEvent",
    }
)
_PEOPLE = frozenset({"user", "user_proxy", "human", "admin"})
_SILENCE: dict[str, Any] = {"role": "system", "content": ""}
# What tells a team of agents to stop is no part of an answer.
_STOP = re.compile(r"\s*\bTERMINATE\b[\s.]*$")


def plain(message: dict[str, Any]) -> dict[str, Any] | None:
    """The message as a chat message; None where it is none of these, `{"role": "system"}` where it says nothing."""
    if message.get("kind") in {"request", "response"} and isinstance(message.get("parts"), list):
        return _pydantic_ai(message)
    kind = message.get("type")
    return _autogen(message, kind) if isinstance(kind, str) and "role" not in message else None


def _pydantic_ai(message: dict[str, Any]) -> dict[str, Any]:
    blocks = [block for part in message["parts"] if isinstance(part, dict) for block in _blocks(part)]
    role = "user" if message["kind"] == "request" else "assistant"
    return {"role": role, "content": blocks, "finish_reason": message.get("finish_reason")} if blocks else _SILENCE


def _blocks(part: dict[str, Any]) -> Iterator[Any]:
    kind = part.get("part_kind")
    content = part.get("content")
    if kind == "retry-prompt" and part.get("tool_name"):
        yield {**_result(part, content), "is_error": True}
    elif kind in {"system-prompt", "retry-prompt"}:
        return
    elif kind == "user-prompt" and isinstance(content, list):
        yield from (item if isinstance(item, str) else {"type": "file"} for item in content)
    elif _PART_KINDS.get(str(kind)) == "tool_call":
        yield {"type": "tool_call", "id": part.get("tool_call_id"), "name": part.get("tool_name"), **_args(part)}
    elif _PART_KINDS.get(str(kind)) == "tool_result":
        yield _result(part, content)
    else:
        yield {"type": _PART_KINDS.get(str(kind), kind), "text": content}


def _args(part: dict[str, Any]) -> dict[str, Any]:
    return {"arguments": part["args"]} if part.get("args") is not None else {}


def _result(part: dict[str, Any], content: Any) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": part.get("tool_call_id"),
        "name": part.get("tool_name"),
        "content": content,
    }


def _autogen(message: dict[str, Any], kind: str) -> dict[str, Any] | None:
    content = message.get("content")
    if kind in _EVENTS:
        return _SILENCE
    if kind == "CodeExecutionEvent" and isinstance(message.get("result"), dict):
        ran = message["result"]
        failed = ran.get("exit_code") not in (0, None)
        done = {"type": "tool_result", "name": "code_execution", "content": ran.get("output"), "is_error": failed}
        return {"role": "assistant", "content": [{"type": "tool_call", "name": "code_execution"}, done]}
    if kind in _RESULTS and isinstance(content, list):
        found = [{**item, "type": "tool_result"} for item in content if isinstance(item, dict)]
        return {"role": "user", "content": found}
    if kind == _CALLS or (kind == "AssistantMessage" and isinstance(content, list)):
        calls = [{**item, "type": "tool_call"} for item in content or () if isinstance(item, dict)]
        return {"role": "assistant", "content": calls}
    if kind not in _TALK or "source" not in message:
        return None
    by_user = kind == "UserMessage" or str(message["source"]).lower() in _PEOPLE
    given = "\n".join(part for part in content if isinstance(part, str)) if isinstance(content, list) else content
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False) if given is not None else ""
    left = _STOP.sub("", text)
    return _SILENCE if text and not left.strip() else {"role": "user" if by_user else "assistant", "content": left}
