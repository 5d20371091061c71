"""The tool calls of a reply, in whatever dress: as calls, as text, with arguments as text or as an object. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

import jiter

from handlers.agents.completion import Completion, RawCall
from streams.contract import ToolCall
from streams.events import PlannedStep

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```[a-zA-Z_]*\s*\n(.*?)```", re.DOTALL)
_MARKED = re.compile(r"\A\s*\[TOOL_CALLS\]\s*", re.IGNORECASE)


def calls_of(completion: Completion, tools: Collection[str]) -> tuple[tuple[RawCall, ...], str]:
    """The calls that were asked for, and the text that is left: calls written as text count as calls."""
    if completion.calls or not tools:
        return completion.calls, completion.text
    text = completion.text
    for pattern in (_TAGGED, _FENCED):
        blocks = pattern.findall(text)
        written = [call for block in blocks for call in _written(block, tools)]
        if written:
            return tuple(written), pattern.sub("", text).strip()
    written = _written(_MARKED.sub("", text), tools)
    return (tuple(written), "") if written else ((), text)


def _written(text: str, tools: Collection[str]) -> list[RawCall]:
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


def planned(steps: Sequence[PlannedStep], tools: Collection[str]) -> tuple[RawCall, ...]:
    """The plan's calls of tools that there are, for an Executor that makes none of its own."""
    return tuple(RawCall(step.tool_name, step.arguments) for step in steps if step.tool_name in tools)


def once(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The calls without twins. Calls of one reply run side by side, so the bench cannot see that one is another's."""
    unique: dict[str, ToolCall] = {}
    for call in calls:
        unique.setdefault(json.dumps([call.name, call.arguments, call.arguments_text], sort_keys=True), call)
    return tuple(unique.values())


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
