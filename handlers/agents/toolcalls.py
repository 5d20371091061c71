"""The tool calls of a reply, in whatever dress: as calls, as text, with arguments as text or as an object. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

import jiter

from handlers.agents.completion import Completion, RawCall
from handlers.fence import without_nonce
from handlers.thinking import TAG
from streams.contract import ToolCall

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```[a-zA-Z_]*[ \t\r]*\n(.*?)```", re.DOTALL)
_MARKED = re.compile(r"\[TOOL_CALLS\](.*?)(?=\[TOOL_CALLS\]|\Z)", re.DOTALL)
_PYTHON = re.compile(r"<\|python_tag\|>(.*)\Z", re.DOTALL)
_NAMED = re.compile(r"<function=([\w.-]+)>((?:(?!<function=).)*?)</function>", re.DOTALL)
_AT_END = re.compile(r"(?:\A|(?<=\s))([\[{]\s*(?:\{\s*)?\"(?:name|function|type|tool_calls)\"\s*:.*)\Z", re.DOTALL)
_NAME_FIRST = re.compile(r"([\w.-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(\{.*\})", re.DOTALL)
_END_MARK = re.compile(r"(?:</s>|<\|\w{1,20}\|>)\s*\Z")
_DRESSES = (_TAGGED, _FENCED, _MARKED, _PYTHON, _NAMED, _AT_END)


def calls_of(completion: Completion, tools: Collection[str]) -> tuple[tuple[RawCall, ...], str]:
    """The calls that were asked for, and the text that is left: calls written as text count as calls.

    So they do in the marks of Qwen and Hermes, Mistral and Llama, in a fence, and as JSON that the text ends with.
    What a model thinks of calling is no call, nor is bare JSON that it goes on from, nor a mark that its answer quotes.
    """
    if completion.calls or not tools:
        return completion.calls, completion.text
    thought, said = _parted(_END_MARK.sub("", completion.text))
    fence = _FENCED.fullmatch(said.strip())
    whole = fence[1] if fence else said
    if _loaded(whole) is not None:
        alone = _written(whole, tools)
        return (tuple(alone), thought.strip()) if alone else ((), completion.text)
    for pattern in _DRESSES:
        written: list[RawCall] = []
        left, end = [], 0
        for block in pattern.finditer(said):
            calls = _named_call(block, tools) if pattern is _NAMED else _written(block[1], tools)
            if calls:
                written += calls
                left.append(said[end : block.start()])
                end = block.end()
        if written:
            return tuple(written), (thought + "".join([*left, said[end:]])).strip()
    return (), completion.text


def as_text(calls: Sequence[RawCall]) -> str:
    """Calls as text, for a reply that may make none and says nothing else."""
    return json.dumps(
        {"tool_calls": [{"name": call.name, "arguments": call.arguments} for call in calls]}, ensure_ascii=False
    )


def _parted(text: str) -> tuple[str, str]:
    """Thinking up to its last closing tag, and what is said behind it: nothing, if the thinking never ends."""
    last = next(reversed(list(TAG.finditer(text))), None)
    if last is None:
        return "", text
    at = last.end() if last[1] else len(text)
    return text[:at], text[at:]


def _named_call(block: re.Match[str], tools: Collection[str]) -> list[RawCall]:
    known = block[1] in tools and isinstance(_loaded(block[2]), dict)
    return [RawCall(block[1], block[2])] if known else []


def _written(text: str, tools: Collection[str]) -> list[RawCall]:
    first = _NAME_FIRST.fullmatch(text.strip())
    if first is not None:
        return _named_call(first, tools)
    raw = _loaded(text)
    if isinstance(raw, dict) and isinstance(raw.get("tool_calls"), list):
        raw = raw["tool_calls"]
    found = [_call(item) for item in (raw if isinstance(raw, list) else [raw])]
    # All or nothing, and only known tools: an answer that happens to have a `name` is no call.
    if any(call is None or call.name not in tools for call in found):
        return []
    return [call for call in found if call is not None]


def _call(item: Any) -> RawCall | None:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = item["function"]
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        return None
    for key in ("arguments", "parameters"):
        if key in item:
            return RawCall(item["name"], item[key])
    return None


def numbered(calls: tuple[RawCall, ...], taken: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls with ids of our own, 101 and up: servers repeat theirs, and a model has to copy them to cite."""
    out = []
    number = 101 + len(taken)
    for call in calls:
        while str(number) in taken:
            number += 1
        arguments = read_arguments(call.arguments)
        told = None if arguments is not None else _told(call.arguments)
        out.append(ToolCall(call_id=str(number), name=call.name, arguments=arguments, arguments_text=told))
        number += 1
    return tuple(out)


def once(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The calls without twins. Calls of one reply run side by side, so the bench cannot see that one is another's."""
    unique: dict[str, ToolCall] = {}
    for call in calls:
        unique.setdefault(json.dumps([call.name, call.arguments, call.arguments_text], sort_keys=True), call)
    return tuple(unique.values())


def kept(
    raw: tuple[RawCall, ...], taken: Collection[str], budget: int, nonce: str, details: dict[str, Any]
) -> tuple[ToolCall, ...]:
    """The calls that will be made; `details` tells what was left out of them."""
    calls = once(numbered(raw, taken))
    if len(calls) > budget:
        details["calls_dropped"] = len(calls) - budget
    cleaned = tuple(_cleaned(call, nonce) for call in calls[:budget])
    leaks = sum(found for _, found in cleaned)
    if leaks:
        details["nonce_removed"] = leaks
    return tuple(call for call, _ in cleaned)


def read_arguments(raw: Any) -> dict[str, Any] | None:
    """Arguments as an object, or None where they are none. Nothing is guessed: a cut or doubled key is malformed."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}
    if isinstance(raw, str):
        raw = _loaded(raw)
    if isinstance(raw, str):
        raw = _loaded(raw)
    return raw if isinstance(raw, dict) else None


def _told(raw: Any) -> str:
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)


def _loaded(text: str) -> Any:
    try:
        return jiter.from_json(text.strip().encode("utf-8", "replace"), catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError:
        return None


def _cleaned(call: ToolCall, nonce: str) -> tuple[ToolCall, int]:
    if call.arguments is None:
        told, found = without_nonce(call.arguments_text or "", nonce)
        return call.model_copy(update={"arguments_text": told}), found
    told, found = without_nonce(json.dumps(call.arguments, ensure_ascii=False), nonce)
    return (call.model_copy(update={"arguments": json.loads(told)}), found) if found else (call, 0)
