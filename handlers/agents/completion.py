"""One chat completion as servers really send it, read into one shape. Pure.

Servers that call themselves compatible deviate: content as parts or null, arguments as an object, no finish reason,
an error in a 200 body. What can be read without guessing is read; the rest is a `BadCompletion` that says why.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from handlers.fence import one_line
from handlers.strict_json import kind_name
from streams.contract import Usage


class BadCompletion(ValueError):
    """A body that is no chat completion."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class RawCall:
    """A tool call as it came: arguments are text, an object, or null."""

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Completion:
    """The first choice. `replaced` counts characters that no text can hold: NUL and halves of surrogate pairs."""

    text: str
    finish_reason: str
    calls: tuple[RawCall, ...] = ()
    model: str = ""
    usage: Usage | None = None
    replaced: int = 0


def read_completion(body: bytes, content_type: str = "application/json") -> Completion:
    """The completion in a response body. Raises BadCompletion."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        start = one_line(body[:80].decode("utf-8", "replace"))
        raise BadCompletion(f"the server answered {content_type or 'no content type'}, not JSON: {start!r}") from None
    if not isinstance(raw, dict):
        raise BadCompletion(f"the server answered {kind_name(raw)}, not an object")
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BadCompletion(_error_in(raw) or "the reply has no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BadCompletion("the reply's first choice has no message")
    return _completion(raw, choice, message)


def _error_in(raw: dict[str, Any]) -> str | None:
    error = raw.get("error")
    told = error.get("message") if isinstance(error, dict) else error
    return f"the server answered an error: {one_line(str(told), 200)}" if told else None


def _completion(raw: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> Completion:
    finish = choice.get("finish_reason")
    text = _text(message.get("content"))
    refusal = _text(message.get("refusal"))
    if refusal:
        text, finish = refusal, "refusal"
    calls = _calls(message)
    if finish == "function_call":
        finish = "tool_calls"
    text, replaced = _holdable(text)
    return Completion(
        text=text,
        finish_reason=finish if isinstance(finish, str) and finish else "tool_calls" if calls else "stop",
        calls=calls,
        model=raw["model"] if isinstance(raw.get("model"), str) else "",
        usage=_usage(raw.get("usage")),
        replaced=replaced,
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _calls(message: dict[str, Any]) -> tuple[RawCall, ...]:
    found = message.get("tool_calls")
    functions = [call.get("function") for call in found if isinstance(call, dict)] if isinstance(found, list) else []
    if not functions and message.get("function_call"):
        functions = [message["function_call"]]
    return tuple(
        RawCall(function["name"], function.get("arguments"))
        for function in functions
        if isinstance(function, dict) and isinstance(function.get("name"), str)
    )


def _usage(raw: Any) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    given, made = raw.get("prompt_tokens"), raw.get("completion_tokens")
    return Usage(
        input_tokens=given if isinstance(given, int) else 0, output_tokens=made if isinstance(made, int) else 0
    )


def _holdable(text: str) -> tuple[str, int]:
    if text.isascii() and "\0" not in text:
        return text, 0
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
    return joined, joined.count("\ufffd") - text.count("\ufffd")
