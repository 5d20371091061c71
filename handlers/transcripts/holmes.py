"""A HolmesGPT result: its analysis, the conversation behind it, and its tool calls with what they returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from handlers.transcripts.blocks import spoken
from handlers.transcripts.items import Called, Item, Returned, Said, arguments_of
from handlers.transcripts.outputs import text_of

_ANSWERS = ("analysis", "result")
_QUESTIONS = ("ask", "question", "user_prompt")


def is_result(raw: Any) -> bool:
    """Whether a JSON value is a result with tool calls of its own beside an answer."""
    if not isinstance(raw, dict) or not isinstance(raw.get("tool_calls"), list):
        return False
    calls = raw["tool_calls"]
    named = all(isinstance(call, dict) and isinstance(call.get("tool_name"), str) for call in calls)
    return named and "role" not in raw and any(isinstance(raw.get(key), str) for key in _ANSWERS)


def items(raw: dict[str, Any], history: Iterable[Item]) -> Iterator[Item]:
    """The items of `raw`: its `history` first, then the tool calls that are not in it, then the analysis."""
    seen = list(history)
    question = next((raw[key] for key in _QUESTIONS if isinstance(raw.get(key), str) and raw[key].strip()), None)
    if question is not None and not any(isinstance(item, Said) and item.role == "user" for item in seen):
        yield Said("user", question, next(key for key in _QUESTIONS if raw.get(key) == question))
    answer_key = next(key for key in _ANSWERS if isinstance(raw.get(key), str))
    answer = raw[answer_key]
    if seen and isinstance(seen[-1], Said) and seen[-1].role == "assistant" and seen[-1].text.strip() == answer.strip():
        seen.pop()
    yield from seen
    shown = [(item.call_id, text_of(item.content)) for item in seen if isinstance(item, Returned)]
    for k, call in enumerate(raw["tool_calls"]):
        where = f"tool_calls[{k}]"
        made, reply = _exchange(call, where)
        # The conversation has the same output behind a line about the call.
        if any((not made.call_id or made.call_id == call_id) and reply.content in text for call_id, text in shown):
            continue
        yield made
        yield reply
    yield Said("assistant", answer, answer_key)


def _exchange(call: dict[str, Any], where: str) -> tuple[Called, Returned]:
    result = call.get("result")
    held = result if isinstance(result, dict) and ("data" in result or "error" in result) else {"data": result}
    given = held.get("params") or call.get("params") or call.get("arguments")
    arguments, text = arguments_of(given or ({"description": call["description"]} if call.get("description") else None))
    call_id, name = str(call.get("tool_call_id") or call.get("id") or ""), str(call["tool_name"])
    failed = held.get("status") == "error" or (held.get("status") is None and bool(held.get("error")))
    parts = (held.get("error"), held.get("data")) if failed else (held.get("data"),)
    content = "\n".join(
        text_of(part) if isinstance(part, str) else spoken(part) for part in parts if part not in (None, "")
    )
    return Called(call_id, name, arguments, where, text), Returned(
        call_id, name, content, where, True if failed else None
    )
