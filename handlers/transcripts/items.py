"""A transcript's items, whatever its format: what was said, what was called, what came back; and the case they make."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from handlers.case import BadCase, Case, read_case
from handlers.question import is_chinese
from handlers.replies import parse_answer
from handlers.transcripts.outputs import read_output


@dataclass(frozen=True, slots=True)
class Said:
    """A text by the user or the assistant. `where` is its place in the file, for errors."""

    role: Literal["user", "assistant"]
    text: str
    where: str
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that the assistant asked for. `arguments` None: they did not parse, `arguments_text` has them."""

    call_id: str
    name: str
    arguments: Mapping[str, Any] | None
    where: str
    arguments_text: str = ""


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool's reply: text, JSON or content parts. `failed`: what the transcript says of it, None where nothing."""

    call_id: str
    name: str | None
    content: Any
    where: str
    failed: bool | None = None


Item = Said | Called | Returned


def arguments_of(given: Any) -> tuple[dict[str, Any] | None, str]:
    """Arguments as an object, from an object or from JSON text; None and the text where it is neither."""
    if given is None or given == "":
        return {}, ""
    if isinstance(given, dict):
        return given, ""
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    try:
        value = json.loads(text)
    except ValueError:
        return None, text
    return (value, "") if isinstance(value, dict) else (None, text)


def case_of(items: Sequence[Item]) -> Case:
    """The last assistant text is the answer, the last user text before it the question; every tool reply before the
    answer, of earlier questions too, is evidence of the session. BadCase where one of the two is missing."""
    answered = [k for k, item in enumerate(items) if isinstance(item, Said) and item.role == "assistant"]
    if not answered:
        raise BadCase("messages", "there is no assistant message with a text: nothing to judge")
    at = answered[-1]
    open_calls = [item for item in items[at + 1 :] if isinstance(item, Called)]
    if open_calls:
        raise BadCase(open_calls[-1].where, "the transcript ends with a tool call: there is no answer behind it")
    answer = items[at]
    asked = [item for item in items[:at] if isinstance(item, Said) and item.role == "user" and item.text.strip()]
    if not asked:
        raise BadCase("messages", "there is no user message before the answer: no question to judge it by")
    assert isinstance(answer, Said)
    question = asked[-1].text.strip()
    case = read_case(
        {
            "question": question,
            "lang": "zh-CN" if is_chinese(question) else "en",
            "rounds": [
                {
                    "tool_invocations": invocations(items[:at]),
                    "executor_output": answer.text,
                    "executor_finish_reason": answer.finish_reason,
                }
            ],
        }
    )
    return replace(case, found_bindings=parse_answer(answer.text, answer.finish_reason).is_prose)


def invocations(items: Sequence[Item]) -> list[dict[str, Any]]:
    """The tool calls with their replies, in the order of the calls; ids that stand twice get a number behind them."""
    waiting: dict[str, list[int]] = {}
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    for item in items:
        if isinstance(item, Called):
            waiting.setdefault(item.call_id, []).append(len(found))
            found.append(_call(item, taken))
        elif isinstance(item, Returned):
            places = waiting.get(item.call_id)
            if places:
                _answer(found[places.pop(0)], item)
            else:
                made = _call(Called(item.call_id, item.name or "tool", {}, item.where), taken)
                _answer(made, item)
                found.append(made)
    return found


def _call(item: Called, taken: set[str]) -> dict[str, Any]:
    name, k = item.call_id, 2
    while name in taken:
        name, k = f"{item.call_id}-{k}", k + 1
    taken.add(name)
    arguments = item.arguments if item.arguments is not None else {"text": item.arguments_text}
    # Until its reply is seen a call has returned nothing: there is nothing that could be quoted from it.
    return {"invocation_id": name, "tool_name": item.name, "arguments": dict(arguments), "status": "error"}


def _answer(call: dict[str, Any], item: Returned) -> None:
    output = read_output(item.content, call["arguments"], item.failed)
    call["status"] = output.status
    call["retrieval_details"] = output.details.model_dump(mode="json", exclude_none=True)
    if output.error:
        call["error"] = output.error
