"""OpenInference spans: `llm.input_messages.0.message.role`, ..., tool and retriever spans, `input.value` and `output.value`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from handlers.transcripts import openai
from handlers.transcripts.exports import KIND
from handlers.transcripts.items import Called, Item, Returned, Said, arguments_of
from handlers.transcripts.otlp import Span, json_of, place

_MESSAGE = re.compile(r"^llm\.(input|output)_messages\.(\d+)\.message\.(.+)$")
_CALL = re.compile(r"^tool_calls\.(\d+)\.tool_call\.(?:function\.)?(\w+)$")
_CONTENT = re.compile(r"^contents\.(\d+)\.message_content\.(\w+)$")
_DOCUMENT = re.compile(r"^retrieval\.documents\.(\d+)\.document\.content$")
_TOLD = ("output", "answer", "response", "content", "text", "result")
_ASKED = ("input", "question", "query", "prompt", "content", "text")


def is_agent(span: Span) -> bool:
    """Whether a span stands for a whole run: an agent, or the chain around it."""
    return _kind(span) in {"AGENT", "CHAIN"}


def heard(span: Span) -> Iterator[Item]:
    """What the model, or the agent, was told."""
    yield from _messages(span, "input")
    yield from _whole(span, "input.value", "user", _ASKED)


def said(span: Span) -> Iterator[Item]:
    """What the model, or the agent, said."""
    yield from _messages(span, "output")
    yield from _whole(span, "output.value", "assistant", _TOLD)


def ran(span: Span) -> Iterator[Item]:
    """The call and the result of a span that ran a tool, or looked up documents."""
    kind, attributes = _kind(span), span.attributes
    if kind not in {"TOOL", "RETRIEVER"}:
        return
    name = str(attributes.get("tool.name") or attributes.get("tool_call.function.name") or span.name or "tool")
    call_id = str(attributes.get("tool_call.id") or attributes.get("tool.call.id") or attributes.get("tool.id") or "")
    given = attributes.get(
        "input.value", attributes.get("tool_call.function.arguments", attributes.get("tool.parameters"))
    )
    where = place(span, "output.value")
    yield Called(call_id, name, *_arguments(given, where))
    documents = [(int(m[1]), held) for key, held in attributes.items() if (m := _DOCUMENT.match(key))]
    result: Any = "\n".join(str(held) for _, held in sorted(documents)) if documents else attributes.get("output.value")
    raised = [str(e.attributes.get("exception.message", "")) for e in span.events if e.name == "exception"]
    if result is not None or span.failed:
        content = _unwrapped(result) if result is not None else "\n".join(raised) or span.status
        yield Returned(call_id, name, content, where, True if span.failed else None)


def _arguments(given: Any, where: str) -> tuple[dict[str, Any] | None, str, str]:
    arguments, text = arguments_of(json_of(given))
    return arguments, where, text


def _kind(span: Span) -> str:
    return str(span.attributes.get(KIND, "")).upper()


def _unwrapped(result: Any) -> Any:
    # LangChain's tracer writes the whole tool message.
    held = json_of(result)
    if isinstance(held, dict) and isinstance(held.get("output"), dict) and "content" in held["output"]:
        return held["output"]["content"]
    if isinstance(held, dict) and held.get("type") == "tool" and "content" in held:
        return held["content"]
    return result


def _messages(span: Span, which: str) -> Iterator[Item]:
    found: dict[int, dict[str, Any]] = {}
    for key, held in span.attributes.items():
        match = _MESSAGE.match(key)
        if match is None or match[1] != which:
            continue
        message = found.setdefault(int(match[2]), {})
        call, content = _CALL.match(match[3]), _CONTENT.match(match[3])
        if call is not None:
            message.setdefault("calls", {}).setdefault(int(call[1]), {})[call[2]] = held
        elif content is not None:
            message.setdefault("contents", {}).setdefault(int(content[1]), {})[content[2]] = held
        elif match[3] in {"role", "content", "tool_call_id", "name", "function_call_name"}:
            message[match[3]] = held
    for number, message in sorted(found.items()):
        calls = [call for _, call in sorted(message.pop("calls", {}).items())]
        parts = [part for _, part in sorted(message.pop("contents", {}).items())]
        plain = {"role": "assistant" if which == "output" else "user", **message}
        plain |= {"content": parts} if parts and not plain.get("content") else {}
        plain |= {"tool_calls": calls} if calls else {}
        yield from openai.items([plain], place(span, f"llm.{which}_messages.{number}"))


def _whole(span: Span, name: str, role: str, keys: tuple[str, ...]) -> Iterator[Item]:
    """The input or output of an agent as one text, or as the messages that it holds."""
    if not is_agent(span) or span.attributes.get(name) in (None, ""):
        return
    held = json_of(span.attributes[name])
    if isinstance(held, dict):
        if isinstance(held.get("messages"), list):
            items = list(openai.items({"messages": held["messages"]}, place(span, name)))
            # A state holds the whole conversation: what it was told is no answer.
            yield from items if role == "user" else (i for i in items if not isinstance(i, Said) or i.role == role)
            return
        held = next((held[key] for key in keys if isinstance(held.get(key), str)), None)
    if isinstance(held, str) and held.strip():
        yield Said("user" if role == "user" else "assistant", held, place(span, name))
