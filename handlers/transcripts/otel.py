"""GenAI spans as cases: the conversation whose answer is judged (see `spans`), with every tool result of its trace.

Read are the attributes `gen_ai.input.messages` and `gen_ai.output.messages` (messages with parts, as JSON text or
structured, on spans or on `gen_ai.client.inference.operation.details` events), `execute_tool` spans
(`gen_ai.tool.call.id`, `.arguments`, `.result`), the events of earlier conventions (`gen_ai.user.message`,
`gen_ai.choice`, `gen_ai.content.prompt` with `gen_ai.prompt`, ...) and indexed attributes (`gen_ai.prompt.0.content`).
Spans of OpenInference and of the AI SDK have readers of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from handlers.case import BadCase, Case
from handlers.transcripts import ai_sdk, openai, openinference
from handlers.transcripts.items import Called, Item, Returned, Said, Unread, arguments_of, case_of
from handlers.transcripts.otlp import Span, SpanEvent, json_of, place, spans
from handlers.transcripts.spans import Talk, conversation

_EVENT = re.compile(r"^gen_ai\.(system|user|assistant|tool)\.message$")
_INDEXED = re.compile(r"^gen_ai\.(prompt|completion)\.(\d+)\.(.+)$")
# Messages as JSON text that `json_of` could not read.
_CUT = re.compile(r'\s*\[\s*\{\s*"(?:role|parts|content|type)"')
_AGENTS = frozenset({"invoke_agent", "invoke_workflow"})


def read_traces(exports: Sequence[Any]) -> list[Case]:
    """One case for each conversation (`gen_ai.conversation.id`, else the trace) that has an answer, in their order.

    BadCase if none has: it says what was looked for.
    """
    groups: dict[str, list[Span]] = {}
    for span in sorted(once(span for raw in exports for span in spans(raw)), key=lambda span: span.start):
        groups.setdefault(span.trace_id, []).append(span)
    talks: dict[str, list[Span]] = {}
    for trace, held in groups.items():
        ids = [s.attributes["gen_ai.conversation.id"] for s in held if s.attributes.get("gen_ai.conversation.id")]
        talks.setdefault(str(ids[0]) if ids else trace, []).extend(held)
    cases, faults, unread = [], [], list[str]()
    for name, held in talks.items():
        items: tuple[Item, ...] = ()
        try:
            items = conversation([talk_of(span) for span in held])
            cases.append(case_of(items))
        except BadCase as error:
            left_out = [f"{item.where}: {item.what}" for item in items if isinstance(item, Unread)]
            faults.append("; ".join([f"{name or 'trace'}: {error.where}: {error.why}", *left_out[:2]]))
            # A trace without an answer is none of a conversation; one that could not be read is worth a word.
            unread += [f"left out: {faults[-1]}"] if error.where != "messages" else []
    if not cases:
        looked = "no span has gen_ai messages with a question and an answer"
        raise BadCase("resourceSpans", f"{looked} ({'; '.join(faults[:3]) or 'there is no span'})")
    return [replace(cases[0], notices=(*cases[0].notices, *unread)), *cases[1:]]


def once(found: Iterable[Span]) -> list[Span]:
    """The spans, each once: an exporter that tried again has sent it twice."""
    spans: dict[tuple[str, str] | int, Span] = {}
    for k, span in enumerate(found):
        spans[(span.trace_id, span.span_id) if span.span_id else k] = span
    return list(spans.values())


def talk_of(span: Span) -> Talk:
    """A span as a part of a conversation, in the conventions of whoever wrote it."""
    attributes = span.attributes
    agent = attributes.get("gen_ai.operation.name") in _AGENTS or openinference.is_agent(span) or ai_sdk.is_agent(span)
    return Talk(
        span,
        heard=(*_input(span), *openinference.heard(span), *ai_sdk.heard(span)),
        said=(*_output(span), *openinference.said(span), *ai_sdk.said(span)),
        ran=(*_executed(span), *openinference.ran(span), *ai_sdk.ran(span)),
        agent=agent,
    )


def _input(span: Span) -> Iterator[Item]:
    attributes = span.attributes
    for at, held in _told(span, "gen_ai.input.messages"):
        yield from _messages(held, at)
    for event in span.events:
        yield from _old_event(event)
    for at, held in _told(span, "gen_ai.prompt"):
        yield from _messages(held, at)
    yield from _indexed(span, "prompt")
    if attributes.get("gen_ai.operation.name") == "invoke_agent" and isinstance(attributes.get("input.value"), str):
        yield Said("user", attributes["input.value"], place(span, "input.value"))


def _output(span: Span) -> Iterator[Item]:
    for name in ("gen_ai.output.messages", "gen_ai.completion"):
        for at, held in _told(span, name):
            yield from _messages(held, at, "assistant")
    for event in span.events:
        if event.name == "gen_ai.choice":
            yield from _choice(_fields(event))
    yield from _indexed(span, "completion")


def _told(span: Span, name: str) -> Iterator[tuple[str, Any]]:
    """An attribute of the span or of one of its events, JSON text read."""
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        if attributes.get(name) not in (None, ""):
            yield place(span, name), json_of(attributes[name])


def _messages(held: Any, where: str, role: str = "user") -> Iterator[Item]:
    if isinstance(held, str) and _CUT.match(held):
        yield Unread(
            "the JSON in it does not parse: it was cut off, maybe by a limit on the length of attributes", where
        )
        return
    if isinstance(held, str):
        yield Said("assistant" if role == "assistant" else "user", held, where)
        return
    for k, message in enumerate(held if isinstance(held, list) else [held]):
        at = f"{where}[{k}]"
        if isinstance(message, str):
            yield Said("assistant" if role == "assistant" else "user", message, at)
        elif isinstance(message, dict):
            yield from openai.items([{"role": role, **message}], at)


def _old_event(event: SpanEvent) -> Iterator[Item]:
    named = _EVENT.match(event.name)
    if named is not None and named[1] != "system":
        fields = _fields(event)
        message = {**fields, "role": named[1]}
        if named[1] == "tool":
            message["tool_call_id"] = fields.get("tool_call_id") or fields.get("id")
        yield from openai.items([message])


def _choice(fields: dict[str, Any]) -> Iterator[Item]:
    held = fields.get("message")
    message = held if isinstance(held, dict) else {"content": held} if isinstance(held, str) else fields
    yield from openai.items([{"finish_reason": fields.get("finish_reason"), **message, "role": "assistant"}])


def _fields(event: SpanEvent) -> dict[str, Any]:
    """An event's body and attributes; lists and objects that were written as JSON text are read."""
    body = event.body if isinstance(event.body, dict) else {"content": event.body} if event.body else {}
    fields = {**event.attributes, **body}
    for key in ("tool_calls", "message"):
        if isinstance(fields.get(key), str):
            fields[key] = json_of(fields[key])
    return fields


def _indexed(span: Span, which: str) -> Iterator[Item]:
    """`gen_ai.prompt.0.role`, `gen_ai.completion.0.tool_calls.0.name`, ... put together into messages."""
    found: dict[int, dict[str, Any]] = {}
    for key, held in span.attributes.items():
        match = _INDEXED.match(key)
        if match is None or match[1] != which:
            continue
        message = found.setdefault(int(match[2]), {})
        name, _, rest = match[3].partition(".")
        if name == "tool_calls" and rest:
            number, _, field = rest.partition(".")
            message.setdefault("calls", {}).setdefault(number, {})[field] = held
        else:
            message[name] = json_of(held) if name == "content" and str(held).startswith("[{") else held
    role = "assistant" if which == "completion" else "user"
    for _, message in sorted(found.items()):
        calls = [call for _, call in sorted(message.pop("calls", {}).items())]
        yield from openai.items([{"role": role, **message, **({"tool_calls": calls} if calls else {})}])


def _executed(span: Span) -> Iterator[Called | Returned]:
    attributes = span.attributes
    name = attributes.get("gen_ai.tool.name")
    if attributes.get("gen_ai.operation.name") != "execute_tool" and not span.name.startswith("execute_tool"):
        return
    tool = str(name or span.name.removeprefix("execute_tool").strip() or "tool")
    call_id = str(attributes.get("gen_ai.tool.call.id") or "")
    where = place(span, "gen_ai.tool.call.result")
    arguments, text = arguments_of(json_of(attributes.get("gen_ai.tool.call.arguments")))
    yield Called(call_id, tool, arguments, where, text)
    raised = [str(e.attributes.get("exception.message", "")) for e in span.events if e.name == "exception"]
    failed = span.failed or bool(attributes.get("error.type"))
    result = attributes.get("gen_ai.tool.call.result")
    if result is None and not failed:
        return
    content = result if result is not None else "\n".join(raised) or span.status or str(attributes.get("error.type"))
    yield Returned(call_id, tool, content, where, True if failed else None)
