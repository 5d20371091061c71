"""Chat transcripts: OpenAI chat messages and Responses items, and what other frameworks write in their place.

Read are lists of messages, alone or under `messages`, `input` and `output`, `items`, `contents`, or `choices` and
`candidates`: chat messages with `tool_calls` (or the old `function_call`) and `tool` replies; Responses and Agents SDK
items; messages of content blocks or of parts (Anthropic, Bedrock, Gemini, AI SDK, see `blocks`); LangChain and LangGraph
dumps (`type` human, ai, tool); Pydantic AI and AutoGen (`dialects`); smolagents runs; HolmesGPT results; streamed chunks
of one reply. System and developer messages, reasoning and pictures are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handlers.case import BadCase, Case
from handlers.strict_json import kind_name
from handlers.transcripts import dialects, holmes, smolagents
from handlers.transcripts.blocks import SILENT, called, is_result, is_tool, kind_of, quotable, read_block, text_in
from handlers.transcripts.chunks import is_chunk, put_together
from handlers.transcripts.items import Called, Item, Returned, Said, Unread, case_of

_LISTS = (
    "messages",
    "conversation_history",
    "input",
    "contents",
    "output",
    "items",
    "new_items",
    "choices",
    "candidates",
)
_TRANSCRIPTS = ("messages", "conversation_history", "contents")
_INSIDE = ("values", "state", "request", "response", "body", "data", "result", "output")
_USERS = frozenset({"user", "human"})
_ASSISTANTS = frozenset({"assistant", "ai", "AIMessageChunk", "model"})
_TOOLS = frozenset({"tool", "function", "ipython"})
_QUIET = frozenset({"system", "developer", "remove", "critic", "reasoning", "data"})
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})
_FILTERED = frozenset({"content_filter", "content-filter", "content_filtered", "guardrail_intervened", "safety"})
_CLASSES = {"HumanMessage": "human", "AIMessage": "ai", "ToolMessage": "tool", "FunctionMessage": "tool"}
_REASONS = ("finish_reason", "stop_reason", "finishReason", "stopReason")


def read_chat(raw: Any) -> Case:
    """The case of one transcript; BadCase says which message is wrong, and why."""
    return case_of(tuple(items(raw)))


def items(raw: Any, at: str = "") -> Iterator[Item]:
    """The items of a transcript in their order. `at`: where it stands, if not at the top of a file."""
    if smolagents.is_run(raw):
        yield from smolagents.items(raw)
        return
    lists = list(_lists(raw, at))
    if holmes.is_result(raw):
        yield from holmes.items(raw, _all(lists))
        return
    if not lists:
        expected = "expected chat messages: a list of them, or an object with `messages`"
        raise BadCase("file", f"{expected}; found {_found(raw)}")
    yield from _all(lists)


def _found(raw: Any) -> str:
    if not isinstance(raw, dict) or not raw:
        return kind_name(raw) if not isinstance(raw, dict) else "an empty object"
    return f"an object with {', '.join(f'`{str(key)[:40]}`' for key in list(raw)[:6])}"


def _all(lists: list[tuple[str, Any]]) -> Iterator[Item]:
    for path, messages in lists:
        if isinstance(messages, str):
            yield Said("user" if path.endswith("input") else "assistant", messages, path)
            continue
        for k, message in put_together(messages):
            where = f"{path or 'messages'}[{k}]"
            if not isinstance(message, dict):
                raise BadCase(where, f"expected a message object, found {kind_name(message)}")
            yield from _item(_plain(message), where)


def is_message(raw: Any) -> bool:
    """Whether a JSON value is one message rather than a transcript of its own."""
    return (
        isinstance(raw, dict) and "messages" not in raw and (bool({"role", "type", "lc"} & raw.keys()) or is_chunk(raw))
    )


def is_transcript(raw: Any) -> bool:
    """Whether an item of a list is a transcript of its own rather than a message."""
    if isinstance(raw, list):
        return bool(raw) and all(isinstance(message, dict) for message in raw)
    held = isinstance(raw, dict) and any(isinstance(raw.get(key), list) for key in _TRANSCRIPTS)
    return held and not is_message(raw)


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
        # Bedrock: `{"output": {"message": {...}}, "stopReason": ...}`
        if isinstance(raw.get("message"), dict) and not here:
            yield f"{path}.message" if path else "message", [raw["message"]]
        for key in _INSIDE:
            inside = raw.get(key)
            if isinstance(inside, dict) or (
                isinstance(inside, list) and inside and key not in here and is_chunk(inside[0])
            ):
                yield from _lists(inside, f"{path}.{key}" if path else key)


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what frameworks wrap it in."""
    told = dialects.plain(message)
    if told is not None:
        return told
    if message.get("lc") and isinstance(message.get("kwargs"), dict):
        name = str((message.get("id") or [""])[-1]).removesuffix("Chunk")
        return {"type": _CLASSES.get(name, "system"), **message["kwargs"]}
    if isinstance(message.get("data"), dict) and message.get("type") in {*_USERS, *_ASSISTANTS, *_TOOLS, *_QUIET}:
        return {**message["data"], "type": message["type"]}
    if isinstance(message.get("raw_item"), dict):
        output = message.get("output")
        return message["raw_item"] if output is None else {"output": output, **message["raw_item"]}
    if isinstance(message.get("message"), dict) and "role" not in message:
        return {"finish_reason": message.get("finish_reason"), **message["message"]}
    if isinstance(message.get("content"), dict) and isinstance(message["content"].get("parts"), list):
        # Gemini: a candidate, or an event of its development kit.
        role = message["content"].get("role") or ("user" if message.get("author") == "user" else "model")
        return {**message, **message["content"], "role": role}
    if "role" not in message and "type" not in message and isinstance(message.get("parts"), list):
        return {"role": "user", **message}
    return message


def _item(message: dict[str, Any], where: str) -> Iterator[Item]:
    kind = message.get("type")
    role = message.get("role") or (kind if kind in _USERS | _ASSISTANTS | _TOOLS | _QUIET else None)
    if role is None and isinstance(kind, str):
        text = text_in(message)
        if text is not None:
            yield Said("user" if kind == "input_text" else "assistant", text, where)
        elif kind_of(message) not in SILENT:
            yield from read_block(message, where)
    elif role in _TOOLS and not _has_results(message):
        yield from _reply(message, where)
    elif role in _USERS | _ASSISTANTS | _TOOLS:
        yield from _message(message, role not in _ASSISTANTS, where)
    elif role is None:
        expected = "expected `role`: user, assistant, tool or system"
        raise BadCase(where, f"the message says not whose it is: {expected}; found {_found(message)}")
    elif role not in _QUIET:
        raise BadCase(f"{where}.role", f"{str(role)[:40]!r} is no role of a message")


def _blocks(message: dict[str, Any]) -> tuple[str, list[Any]]:
    """Where the blocks of a message stand, and the blocks."""
    content = message.get("content")
    given = message.get("parts")
    if isinstance(given, list):
        # A message for a screen repeats the text of its parts as `content`.
        return "parts", given if any(isinstance(b, dict) and text_in(b) for b in given) else [*given, content]
    return "content", content if isinstance(content, list) else [content]


def _has_results(message: dict[str, Any]) -> bool:
    return any(is_result(block) for block in _blocks(message)[1])


def _message(message: dict[str, Any], by_user: bool, where: str) -> Iterator[Item]:
    key, blocks = _blocks(message)
    texts: list[str] = []
    spoken_before = False
    tools: list[Item] = []
    for k, block in enumerate(blocks):
        place = f"{where}.{key}[{k}]"
        if block is None:
            continue
        text = block if isinstance(block, str) else text_in(block) if isinstance(block, dict) else None
        if text is not None:
            texts = [text] if spoken_before and text.strip() else [*texts, text]
            spoken_before = spoken_before and not text.strip()
        elif isinstance(block, dict):
            tools += read_block(block, place)
            # Where one message is a whole turn, its answer is what was said after the last tool.
            spoken_before = spoken_before or is_tool(block)
        else:
            raise BadCase(place, f"expected text or a content part, found {kind_name(block)}")
    text = "\n".join(one for one in texts if one)
    if by_user:
        yield from tools
        # What stands beside a tool's result was written by the agent, and is no question.
        if text.strip() and not any(isinstance(item, Returned) for item in tools):
            yield Said("user", text, where)
        return
    known = {item.call_id for item in tools if isinstance(item, Called)}
    # Content blocks and `tool_calls` are the same calls twice.
    tools += [item for item in _calls(message, where) if item.call_id not in known or (not item.call_id and not known)]
    tools += _more_results(message, where, known)
    done = {item.call_id for item in tools if isinstance(item, Returned)}
    still_open = [item for item in tools if isinstance(item, Called) and item.call_id not in done]
    yield from (item for item in tools if item not in still_open)
    refused = message.get("refusal")
    if text.strip() or refused or not any(isinstance(item, (Called, Returned)) for item in tools):
        said = text if text.strip() else str(refused or _spoken(message))
        yield Said("assistant", said, where, _finish(message, bool(refused), bool(still_open)))
    yield from still_open


def _spoken(message: dict[str, Any]) -> str:
    """What an answer in sound says, as its vendor wrote it down."""
    audio = message.get("audio")
    return str(audio.get("transcript") or "") if isinstance(audio, dict) else ""


def _more_results(message: dict[str, Any], where: str, known: set[str]) -> list[Item]:
    """`toolInvocations` of a message for a screen; its parts may repeat them."""
    given = message.get("toolInvocations")
    found: list[Item] = []
    for k, call in enumerate(given if isinstance(given, list) else []):
        if isinstance(call, dict) and str(call.get("toolCallId", "")) not in known:
            found += read_block({"type": "tool-invocation", "toolInvocation": call}, f"{where}.toolInvocations[{k}]")
    return found


def _finish(message: dict[str, Any], refused: bool, calling: bool) -> str:
    metadata = message.get("response_metadata")
    held = (message, metadata if isinstance(metadata, dict) else {})
    said = str(next((one[key] for one in held for key in _REASONS if one.get(key)), "")).lower()
    if refused or said == "refusal":
        return "refusal"
    if said in _LENGTH or (message.get("status") == "incomplete"):
        return "length"
    return "content_filter" if said in _FILTERED else "tool_calls" if calling else "stop"


def _calls(message: dict[str, Any], where: str) -> Iterator[Called]:
    extra = message.get("additional_kwargs")
    given = message.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, dict) else None) or []
    if not isinstance(given, list):
        raise BadCase(f"{where}.tool_calls", f"expected a list, found {kind_name(given)}")
    for k, call in enumerate([*given, *(message.get("invalid_tool_calls") or [])]):
        place = f"{where}.tool_calls[{k}]"
        if not isinstance(call, dict):
            raise BadCase(place, f"expected a tool call, found {kind_name(call)}")
        yield called(call, place)
    old = message.get("function_call")
    if isinstance(old, dict):
        yield called(old, f"{where}.function_call")


def _reply(message: dict[str, Any], where: str) -> Iterator[Item]:
    several = message.get("tool_responses")
    if isinstance(several, list) and several and all(isinstance(one, dict) for one in several):
        for k, one in enumerate(several):
            yield from _reply(one, f"{where}.tool_responses[{k}]")
        return
    name = message.get("name") or message.get("tool_name") or message.get("toolName")
    call_id = message.get("tool_call_id") or message.get("call_id") or message.get("toolCallId") or ""
    failed = True if message.get("status") == "error" or message.get("is_error") is True else None
    content, left_out = quotable(message.get("content"))
    if left_out:
        yield Unread("a picture or a file in the tool's output cannot be quoted and was left out", where)
    if not left_out or content:
        yield Returned(str(call_id), name if isinstance(name, str) else None, content, where, failed)
