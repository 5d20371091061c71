"""Chat transcripts: OpenAI chat messages and Responses items, and what other frameworks write in their place.

Read are lists of messages, alone or under `messages`, `input` and `output`, `items`, or `choices`: chat messages with
`tool_calls` (or the old `function_call`) and `tool` replies; Responses and Agents SDK items (`function_call`,
`function_call_output`, `message`); content blocks `tool_use` and `tool_result`; LangChain and LangGraph dumps
(`type` human, ai, tool). System and developer messages, reasoning and pictures are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from handlers.case import BadCase, Case
from handlers.strict_json import kind_name
from handlers.transcripts.items import Called, Item, Returned, Said, arguments_of, case_of
from handlers.transcripts.outputs import text_of

_LISTS = ("messages", "input", "output", "items", "new_items", "choices")
_INSIDE = ("values", "state", "request", "response", "body", "data", "result")
_USERS = frozenset({"user", "human"})
_ASSISTANTS = frozenset({"assistant", "ai", "AIMessageChunk", "model"})
_TOOLS = frozenset({"tool", "function", "ipython"})
_SILENT = frozenset({"system", "developer", "remove", "critic", "reasoning"})
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "tool_call", "function_call", "tool-call"})
_RESULT_BLOCKS = frozenset({"tool_result", "function_call_output", "tool-result"})
_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text", "refusal"})
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens"})
_CLASSES = {"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool", "FunctionMessage": "tool"}


def read_chat(raw: Any) -> Case:
    """The case of one transcript; BadCase says which message is wrong, and why."""
    return case_of(tuple(items(raw)))


def items(raw: Any) -> Iterator[Item]:
    """The items of a transcript in their order."""
    lists = list(_lists(raw, ""))
    if not lists:
        raise BadCase("file", "expected chat messages: a list of them, or an object with `messages`")
    for path, messages in lists:
        if isinstance(messages, str):
            yield Said("user" if path.endswith("input") else "assistant", messages, path)
            continue
        for k, message in enumerate(messages):
            where = f"{path or 'messages'}[{k}]"
            if not isinstance(message, dict):
                raise BadCase(where, f"expected a message object, found {kind_name(message)}")
            yield from _item(_plain(message), where)


def is_message(raw: Any) -> bool:
    """Whether a JSON value is one message rather than a transcript of its own."""
    return isinstance(raw, dict) and "messages" not in raw and bool({"role", "type", "lc"} & raw.keys())


def _lists(raw: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(raw, list):
        yield path, raw
    elif isinstance(raw, dict):
        here = [
            key
            for key in _LISTS
            if isinstance(raw.get(key), list) or (key in {"input", "output"} and isinstance(raw.get(key), str))
        ]
        for key in here:
            yield f"{path}.{key}" if path else key, raw[key]
        for key in _INSIDE:
            if isinstance(raw.get(key), dict):
                yield from _lists(raw[key], f"{path}.{key}" if path else key)


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what frameworks wrap it in."""
    if message.get("lc") and isinstance(message.get("kwargs"), dict):
        name = str((message.get("id") or [""])[-1]).removesuffix("Chunk")
        return {"type": _CLASSES.get(name, "system"), **message["kwargs"]}
    if isinstance(message.get("data"), dict) and message.get("type") in {*_USERS, *_ASSISTANTS, *_TOOLS, *_SILENT}:
        return {**message["data"], "type": message["type"]}
    if isinstance(message.get("raw_item"), dict):
        output = message.get("output")
        return message["raw_item"] if output is None else {"output": output, **message["raw_item"]}
    if isinstance(message.get("message"), dict) and "role" not in message:
        return {"finish_reason": message.get("finish_reason"), **message["message"]}
    return message


def _item(message: dict[str, Any], where: str) -> Iterator[Item]:
    kind = message.get("type")
    role = message.get("role") or (kind if kind in _USERS | _ASSISTANTS | _TOOLS | _SILENT else None)
    if role is None and kind in _CALL_BLOCKS | _RESULT_BLOCKS:
        yield _block(message, where)
    elif role is None and isinstance(kind, str):
        # Items of other kinds (reasoning, web searches, hand-offs) say nothing that could be judged or quoted.
        return
    elif role in _TOOLS:
        yield _reply(message, where)
    elif role in _USERS | _ASSISTANTS:
        yield from _message(message, role in _USERS, where)
    elif role not in _SILENT:
        raise BadCase(f"{where}.role", f"{str(role)[:40]!r} is no role of a message")


def _message(message: dict[str, Any], by_user: bool, where: str) -> Iterator[Item]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts, calls, replies = [], [], []
    for k, block in enumerate(blocks):
        place = f"{where}.content[{k}]"
        if isinstance(block, dict) and block.get("type") in _RESULT_BLOCKS:
            replies.append(_block(block, place))
        elif isinstance(block, dict) and block.get("type") in _CALL_BLOCKS:
            calls.append(_block(block, place))
        elif isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and (block.get("type") in _TEXT_BLOCKS or "type" not in block):
            texts.append(str(block.get("text") or block.get("refusal") or ""))
        elif isinstance(block, dict) and block.get("type") == "json":
            texts.append(json.dumps(block.get("json"), ensure_ascii=False))
        elif block is not None and not isinstance(block, dict):
            raise BadCase(place, f"expected text or a content part, found {kind_name(block)}")
    yield from replies
    text = "\n".join(one for one in texts if one)
    if by_user:
        if text.strip():
            yield Said("user", text, where)
        return
    calls += _calls(message, where, {call.call_id for call in calls if isinstance(call, Called)})
    refused = message.get("refusal")
    if text.strip() or refused:
        yield Said(
            "assistant", text if text.strip() else str(refused), where, _finish(message, bool(refused), bool(calls))
        )
    yield from calls


def _finish(message: dict[str, Any], refused: bool, calling: bool) -> str:
    metadata = message.get("response_metadata")
    said = message.get("finish_reason") or message.get("stop_reason")
    said = said or (
        metadata.get("finish_reason") or metadata.get("stop_reason") if isinstance(metadata, dict) else None
    )
    if refused or said == "refusal":
        return "refusal"
    if said in _LENGTH or (message.get("status") == "incomplete"):
        return "length"
    return "content_filter" if said == "content_filter" else "tool_calls" if calling else "stop"


def _calls(message: dict[str, Any], where: str, seen: set[str]) -> Iterator[Called]:
    extra = message.get("additional_kwargs")
    given = message.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, dict) else None) or []
    if not isinstance(given, list):
        raise BadCase(f"{where}.tool_calls", f"expected a list, found {kind_name(given)}")
    for k, call in enumerate([*given, *(message.get("invalid_tool_calls") or [])]):
        place = f"{where}.tool_calls[{k}]"
        if not isinstance(call, dict):
            raise BadCase(place, f"expected a tool call, found {kind_name(call)}")
        made = _called(call, place)
        if made.call_id not in seen:
            yield made
    old = message.get("function_call")
    if isinstance(old, dict):
        yield _called({"id": old.get("name"), **old}, f"{where}.function_call")


def _called(call: dict[str, Any], where: str) -> Called:
    held = call.get("function") if isinstance(call.get("function"), dict) else call.get("custom")
    inner: dict[str, Any] = held if isinstance(held, dict) else call
    name = inner.get("name") or call.get("toolName")
    if not isinstance(name, str) or not name:
        raise BadCase(where, "the tool call names no tool")
    given = next((inner[key] for key in ("arguments", "args", "input") if inner.get(key) is not None), None)
    arguments, text = arguments_of(given)
    # Responses items have an id of their own beside the call's.
    call_id = call.get("call_id") or call.get("id") or call.get("toolCallId") or call.get("tool_call_id") or name
    return Called(str(call_id), name, arguments, where, text)


def _reply(message: dict[str, Any], where: str) -> Returned:
    name = message.get("name")
    call_id = message.get("tool_call_id") or message.get("call_id") or name
    if not call_id:
        raise BadCase(where, "the tool reply has neither tool_call_id nor name")
    failed = True if message.get("status") == "error" or message.get("is_error") is True else None
    return Returned(str(call_id), name if isinstance(name, str) else None, message.get("content"), where, failed)


def _block(block: dict[str, Any], where: str) -> Called | Returned:
    if block.get("type") in _CALL_BLOCKS:
        return _called(block, where)
    call_id = block.get("tool_use_id") or block.get("call_id") or block.get("toolCallId")
    if not call_id:
        raise BadCase(where, "the tool result names no call")
    content = next((block[key] for key in ("content", "output", "result") if key in block), None)
    failed = True if block.get("is_error") is True or block.get("isError") is True else None
    if isinstance(content, dict) and content.get("type") == "text":
        content = text_of(content)
    name = block.get("name") or block.get("toolName")
    return Returned(str(call_id), name if isinstance(name, str) else None, content, where, failed)
