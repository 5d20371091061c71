"""GenAI spans as cases: the conversation of the last model call that answered, with every tool result of its trace.

Read are the attributes `gen_ai.input.messages` and `gen_ai.output.messages` (messages with parts, as JSON text or
structured, on spans or on `gen_ai.client.inference.operation.details` events), `execute_tool` spans
(`gen_ai.tool.call.id`, `.arguments`, `.result`), the events of earlier conventions (`gen_ai.user.message`,
`gen_ai.choice`, `gen_ai.content.prompt` with `gen_ai.prompt`, ...) and indexed attributes (`gen_ai.prompt.0.content`).
Model calls repeat their history: a tool result is taken once, by its call id, as the model was shown it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from handlers.case import BadCase, Case
from handlers.transcripts import openai
from handlers.transcripts.items import Called, Item, Returned, Said, arguments_of, case_of
from handlers.transcripts.otlp import Span, SpanEvent, spans

_EVENT = re.compile(r"^gen_ai\.(system|user|assistant|tool)\.message$")
_INDEXED = re.compile(r"^gen_ai\.(prompt|completion)\.(\d+)\.(.+)$")
_LENGTH = frozenset({"length", "max_tokens"})


def read_traces(exports: Sequence[Any]) -> list[Case]:
    """One case for each conversation (`gen_ai.conversation.id`, else the trace) that has an answer, in their order.

    BadCase if none has: it says what was looked for.
    """
    groups: dict[str, list[Span]] = {}
    for span in sorted((span for raw in exports for span in spans(raw)), key=lambda span: span.start):
        groups.setdefault(span.trace_id, []).append(span)
    talks: dict[str, list[Span]] = {}
    for trace, held in groups.items():
        ids = [s.attributes["gen_ai.conversation.id"] for s in held if s.attributes.get("gen_ai.conversation.id")]
        talks.setdefault(str(ids[0]) if ids else trace, []).extend(held)
    cases, faults = [], []
    for name, held in talks.items():
        try:
            cases.append(case_of(conversation(held)))
        except BadCase as error:
            faults.append(f"{name or 'trace'}: {error.where}: {error.why}")
    if not cases:
        looked = "no span has gen_ai messages with a question and an answer"
        raise BadCase("resourceSpans", f"{looked} ({'; '.join(faults[:3]) or 'there is no span'})")
    return cases


def conversation(held: Sequence[Span]) -> tuple[Item, ...]:
    """The items of the last model call that answered, by its end; before them what other spans know of tools."""
    talks = [(span, tuple(_input(span)), tuple(_output(span))) for span in held]
    answered = [(span, before, after) for span, before, after in talks if any(_speaks(item) for item in after)]
    tools = [item for span in held for item in _executed(span)]
    if not answered:
        return tuple(item for _, before, after in talks for item in (*before, *after))
    last, before, after = max(answered, key=lambda one: (one[0].end, len(one[1])))
    items: list[Item] = list(before)
    if not any(isinstance(item, Said) and item.role == "user" for item in items):
        others = [i for _, seen, _ in talks for i in seen if isinstance(i, Said) and i.role == "user"]
        items = [*others[-1:], *items]
    shown = {item.call_id for item in items if isinstance(item, Returned)}
    for span, seen, said in talks:
        # What an earlier model call was shown stays evidence, also if the last one's history was cut.
        if span is not last:
            more = [i for i in (*seen, *said) if isinstance(i, (Called, Returned))]
            items += [i for i in _pairs(more) if i.call_id not in shown]
            shown |= {i.call_id for i in more if isinstance(i, Returned)}
    items += [item for item in tools if item.call_id not in shown]
    asked = {item.call_id for item in items if isinstance(item, Returned)}
    answer = [item for item in after if _speaks(item)][-1:]
    return (*(i for i in _once(items) if not isinstance(i, Called) or i.call_id in asked), *answer)


def _speaks(item: Item) -> bool:
    return isinstance(item, Said) and item.role == "assistant"


def _pairs(items: Sequence[Called | Returned]) -> list[Called | Returned]:
    returned = {item.call_id for item in items if isinstance(item, Returned)}
    return [item for item in items if item.call_id in returned]


def _once(items: Sequence[Item]) -> Iterator[Item]:
    """Each call and each result once, a call before its result."""
    calls = {item.call_id: item for item in reversed(items) if isinstance(item, Called)}
    returned = {item.call_id for item in items if isinstance(item, Returned)}
    done: set[str] = set()
    for item in items:
        if isinstance(item, Said):
            yield item
        elif item.call_id in done or (isinstance(item, Called) and item.call_id in returned):
            continue
        else:
            done.add(item.call_id)
            if isinstance(item, Returned) and item.call_id in calls:
                yield calls[item.call_id]
            yield item


def _input(span: Span) -> Iterator[Item]:
    attributes = span.attributes
    for place, held in _told(span, "gen_ai.input.messages"):
        yield from _messages(held, place)
    for event in span.events:
        yield from _old_event(event)
    for place, held in _told(span, "gen_ai.prompt"):
        yield from _messages(held, place)
    yield from _indexed(span, "prompt")
    if attributes.get("gen_ai.operation.name") == "invoke_agent" and isinstance(attributes.get("input.value"), str):
        yield Said("user", attributes["input.value"], _where(span, "input.value"))


def _output(span: Span) -> Iterator[Item]:
    for name in ("gen_ai.output.messages", "gen_ai.completion"):
        for place, held in _told(span, name):
            yield from _messages(held, place, "assistant")
    for event in span.events:
        if event.name == "gen_ai.choice":
            yield from _choice(_fields(event))
    yield from _indexed(span, "completion")


def _told(span: Span, name: str) -> Iterator[tuple[str, Any]]:
    """An attribute of the span or of one of its events, JSON text read."""
    for attributes in (span.attributes, *(event.attributes for event in span.events)):
        if attributes.get(name) not in (None, ""):
            yield _where(span, name), _json(attributes[name])


def _json(held: Any) -> Any:
    if not isinstance(held, str):
        return held
    try:
        return json.loads(held)
    except ValueError:
        return held


def _where(span: Span, name: str) -> str:
    return f"span {span.span_id or span.name} {name}"


def _messages(held: Any, where: str, role: str = "user") -> Iterator[Item]:
    if isinstance(held, str):
        yield Said("assistant" if role == "assistant" else "user", held, where)
        return
    for k, message in enumerate(held if isinstance(held, list) else [held]):
        place = f"{where}[{k}]"
        if isinstance(message, str):
            yield Said("assistant" if role == "assistant" else "user", message, place)
        elif isinstance(message, dict) and isinstance(message.get("parts"), list):
            yield from _parts({"role": role, **message}, place)
        elif isinstance(message, dict):
            yield from openai.items([{"role": role, **message}])


def _parts(message: dict[str, Any], where: str) -> Iterator[Item]:
    """A message of the present convention: `{"role", "parts": [{"type": "text", "content"}, ...], "finish_reason"}`."""
    texts, calls = [], []
    for k, part in enumerate(message["parts"]):
        place = f"{where}.parts[{k}]"
        kind = part.get("type") if isinstance(part, dict) else "text"
        if kind == "text":
            texts.append(str((part.get("content") or part.get("text") or "") if isinstance(part, dict) else part))
        elif kind == "tool_call":
            arguments, text = arguments_of(part.get("arguments"))
            name = str(part.get("name") or "tool")
            calls.append(Called(str(part.get("id") or name), name, arguments, place, text))
        elif kind == "tool_call_response":
            content = next((part[key] for key in ("response", "result", "content") if key in part), None)
            yield Returned(str(part.get("id") or part.get("name") or place), part.get("name"), content, place)
    text = "\n".join(one for one in texts if one.strip())
    if text and message["role"] in {"user", "assistant"}:
        reason = str(message.get("finish_reason") or "stop")
        reason = "length" if reason in _LENGTH else reason if reason == "content_filter" else "stop"
        yield Said("user" if message["role"] == "user" else "assistant", text, where, reason)
    yield from calls


def _old_event(event: SpanEvent) -> Iterator[Item]:
    named = _EVENT.match(event.name)
    if named is not None and named[1] != "system":
        fields = _fields(event)
        message = {**fields, "role": named[1]}
        if named[1] == "tool":
            message["tool_call_id"] = fields.get("tool_call_id") or fields.get("id") or fields.get("name")
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
            fields[key] = _json(fields[key])
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
            message[name] = _json(held) if name == "content" and str(held).startswith("[{") else held
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
    call_id = str(attributes.get("gen_ai.tool.call.id") or span.span_id)
    where = _where(span, "gen_ai.tool.call.result")
    arguments, text = arguments_of(_json(attributes.get("gen_ai.tool.call.arguments")))
    yield Called(call_id, tool, arguments, where, text)
    raised = [str(e.attributes.get("exception.message", "")) for e in span.events if e.name == "exception"]
    failed = span.failed or bool(attributes.get("error.type"))
    result = attributes.get("gen_ai.tool.call.result")
    if result is None and not failed:
        return
    content = result if result is not None else "\n".join(raised) or span.status or str(attributes.get("error.type"))
    yield Returned(call_id, tool, content, where, True if failed else None)
