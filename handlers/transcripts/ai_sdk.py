"""Spans of the AI SDK: `ai.prompt`, `ai.prompt.messages`, `ai.response.text` and `.toolCalls`, `ai.toolCall`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handlers.transcripts import openai
from handlers.transcripts.items import Called, Item, Returned, Said, arguments_of
from handlers.transcripts.otlp import Span, json_of, place

_RUNS = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})


def is_agent(span: Span) -> bool:
    """Whether a span stands for a whole run with all its steps."""
    return _operation(span) in _RUNS


def heard(span: Span) -> Iterator[Item]:
    """What the model was told: the messages of a step, or the prompt of a run."""
    held = json_of(span.attributes.get("ai.prompt.messages"))
    if isinstance(held, list):
        yield from openai.items(held, place(span, "ai.prompt.messages"))
        return
    given = json_of(span.attributes.get("ai.prompt"))
    where = place(span, "ai.prompt")
    if isinstance(given, dict) and isinstance(given.get("messages"), list):
        yield from openai.items(given["messages"], where)
    elif isinstance(given, dict) and isinstance(given.get("prompt"), str):
        yield Said("user", given["prompt"], where)
    elif isinstance(given, dict) and isinstance(given.get("prompt"), list):
        yield from openai.items(given["prompt"], where)


def said(span: Span) -> Iterator[Item]:
    """What the model said and called."""
    attributes = span.attributes
    text, calls = attributes.get("ai.response.text"), json_of(attributes.get("ai.response.toolCalls"))
    if text in (None, "") and not isinstance(calls, list):
        return
    parts: list[Any] = [{"type": "text", "text": str(text or "")}] if text else []
    parts += (
        [{**call, "type": "tool-call"} for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    )
    message = {"role": "assistant", "content": parts, "finish_reason": attributes.get("ai.response.finishReason")}
    yield from openai.items([message], place(span, "ai.response.text"))


def ran(span: Span) -> Iterator[Item]:
    """The call and the result of a span that ran a tool."""
    attributes = span.attributes
    if _operation(span) != "ai.toolCall":
        return
    where = place(span, "ai.toolCall.result")
    name, call_id = str(attributes.get("ai.toolCall.name") or "tool"), str(attributes.get("ai.toolCall.id") or "")
    arguments, text = arguments_of(json_of(attributes.get("ai.toolCall.args")))
    yield Called(call_id, name, arguments, where, text)
    result = attributes.get("ai.toolCall.result")
    raised = [str(e.attributes.get("exception.message", "")) for e in span.events if e.name == "exception"]
    if result is not None or span.failed:
        held = json_of(result)
        # A text is written as a JSON text.
        content = held if isinstance(held, str) else result
        failed = span.failed
        yield Returned(
            call_id, name, content if result is not None else "\n".join(raised) or span.status, where, failed or None
        )


def _operation(span: Span) -> str:
    return str(span.attributes.get("ai.operationId") or span.name).split(" ")[0]
