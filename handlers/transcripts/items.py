"""A transcript's items, whatever its format: what was said, what was called, what came back; and the case they make."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from handlers.case import BadCase, Case, read_case
from handlers.question import is_chinese
from handlers.replies import parse_answer
from handlers.transcripts.endings import ends_a_run, handed_over, takes_notes
from handlers.transcripts.outputs import read_output, text_of

# What agents put into a user's message on their own account.
_ASIDE = re.compile(
    r"<(system-reminder|environment_details|environment_context|user_instructions)>.*?(?:</\1>|\Z)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Said:
    """A text by the user or the assistant, also an empty one. `where` is its place in the file, for errors."""

    role: Literal["user", "assistant"]
    text: str
    where: str
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that the assistant asked for; `call_id` is empty where the transcript gives none.
    `arguments` None: they did not parse, `arguments_text` has them."""

    call_id: str
    name: str
    arguments: Mapping[str, Any] | None
    where: str
    arguments_text: str = ""


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool's reply: text, JSON or content parts. `failed`: what the transcript says of it, None where nothing.
    `call_id` is empty where the transcript gives none."""

    call_id: str
    name: str | None
    content: Any
    where: str
    failed: bool | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be judged or quoted and was left out; `what` names it."""

    what: str
    where: str


Item = Said | Called | Returned | Unread


@dataclass(slots=True, eq=False)
class Exchange:
    """A call with its reply, either of them possibly missing."""

    called: Called | None
    returned: Returned | None = None

    @property
    def call_id(self) -> str:
        return (self.called.call_id if self.called else "") or (self.returned.call_id if self.returned else "")

    @property
    def name(self) -> str:
        return (self.called.name if self.called else "") or (self.returned.name or "" if self.returned else "")

    def items(self) -> Iterator[Item]:
        yield from (item for item in (self.called, self.returned) if item is not None)


def arguments_of(given: Any) -> tuple[dict[str, Any] | None, str]:
    """Arguments as an object, from an object or from JSON text; None and the text where it is neither."""
    if given is None or given == "":
        return {}, ""
    if isinstance(given, dict):
        return given, ""
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None, text
    return (value, "") if isinstance(value, dict) else (None, text)


def with_answer(items: Sequence[Item]) -> list[Item]:
    """The items; an answer that was handed to a tool made for it is said in its place, unless another came after it."""
    at = next((k for k in range(len(items) - 1, -1, -1) if isinstance(items[k], Called)), None)
    call = items[at] if at is not None else None
    if at is None or not isinstance(call, Called) or not ends_a_run(call.name):
        return list(items)
    behind = items[at + 1 :]
    text = handed_over(call.arguments, call.arguments_text)
    if not text.strip() or any(isinstance(i, Said) and i.role == "assistant" and i.text.strip() for i in behind):
        return list(items)
    echo = next((i for i in behind if isinstance(i, Returned) and _belongs(i, call)), None)
    replies = [i for i in behind if isinstance(i, Returned) and i is not echo]
    asked = [i for i in behind if isinstance(i, Said) and i.role == "user"]
    return [*items[:at], *replies, Said("assistant", text, call.where), *asked]


def case_of(items: Sequence[Item]) -> Case:
    """The last assistant message is the answer (an empty one too), the last user text before it the question; every
    tool reply before the answer, of earlier questions too, is evidence of the session.

    BadCase where one of the two is missing, or where a question or a call stands behind the last answer.
    """
    exchanges(items)  # a reply that nobody asked for is told first
    items = with_answer(items)
    answered = [k for k, item in enumerate(items) if isinstance(item, Said) and item.role == "assistant"]
    if not answered:
        raise BadCase("messages", "there is no assistant message with a text: nothing to judge")
    at = answered[-1]
    for item in items[at + 1 :]:
        if isinstance(item, (Called, Returned)):
            raise BadCase(item.where, "the transcript ends with a tool call: there is no answer behind it")
        if isinstance(item, Said) and asked_in(item.text):
            raise BadCase(
                item.where, "the last user message has no reply: there is no answer to it that could be judged"
            )
    answer = items[at]
    asked = [item for item in items[:at] if isinstance(item, Said) and item.role == "user" and asked_in(item.text)]
    if not asked:
        raise BadCase("messages", "there is no user message before the answer: no question to judge it by")
    assert isinstance(answer, Said)
    question = asked_in(asked[-1].text)
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
    told = dict.fromkeys(f"{item.where}: {item.what}" for item in items if isinstance(item, Unread))
    is_prose = parse_answer(answer.text, answer.finish_reason).is_prose
    return replace(case, found_bindings=is_prose, notices=tuple(told))


def asked_in(text: str) -> str:
    """What a user's text asks, without what the agent itself wrote into it."""
    return _ASIDE.sub("", text).strip()


def exchanges(items: Iterable[Item]) -> list[Exchange]:
    """The calls with their replies, in the order of the calls.

    A reply belongs to the first open call of its id. Where one of the two gives no id, to the first open call of its
    name, and without a name to the first open call. BadCase for a reply that says nothing and follows no call.
    """
    made: list[Exchange] = []
    waiting: list[Exchange] = []
    for item in items:
        if isinstance(item, Called):
            made.append(Exchange(item))
            waiting.append(made[-1])
        elif isinstance(item, Returned):
            found = next((one for one in waiting if _belongs(item, one.called)), None)
            if found is None and not item.call_id and not item.name:
                raise BadCase(item.where, "the tool reply has neither an id nor a name, and no call is open before it")
            if found is None:
                made.append(Exchange(None, item))
            else:
                found.returned = item
                waiting.remove(found)
    return made


def _belongs(reply: Returned, call: Called | None) -> bool:
    assert call is not None
    if reply.call_id and call.call_id:
        return reply.call_id == call.call_id
    return not reply.name or reply.name == call.name


def merged(sequences: Iterable[Sequence[Exchange]]) -> list[Exchange]:
    """Views of one conversation as one: what a later view repeats stands once, and a reply that differs from all known
    ones is kept, also under an id that is known."""
    known: list[Exchange] = []
    by_content: dict[str, list[Exchange]] = {}
    for view in sequences:
        taken: set[int] = set()
        for one in view:
            alike = by_content.setdefault(_content(one), [])
            same = next((other for other in alike if id(other) not in taken and _same(one, other)), None)
            if same is None:
                same = Exchange(one.called, one.returned)
                alike.append(same)
                known.append(same)
            elif same.called is None or not same.call_id:
                same.called = one.called or same.called
            taken.add(id(same))
    return known


def _content(one: Exchange) -> str:
    if one.returned is None:
        return "\0open"
    text = text_of(one.returned.content).strip()
    try:
        return json.dumps(json.loads(text), sort_keys=True) if text.startswith(("{", "[", '"')) else text
    except (ValueError, RecursionError):
        return text


def _same(one: Exchange, other: Exchange) -> bool:
    if one.call_id and other.call_id:
        return one.call_id == other.call_id
    named = not one.name or not other.name or one.name == other.name
    mine, theirs = (x.called.arguments if x.called else None for x in (one, other))
    return named and (not mine or not theirs or mine == theirs)


def invocations(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The tool calls with their replies, in the order of the calls, as a case file has them.

    An invocation is named by its call's id, else by its tool; a name that stands twice gets a number behind it.
    """
    taken: set[str] = set()
    found = []
    for one in exchanges(items):
        name = base = one.call_id or one.name or "tool"
        k = 2
        while name in taken:
            name, k = f"{base}-{k}", k + 1
        taken.add(name)
        called = one.called
        arguments = called.arguments if called and called.arguments is not None else None
        given = {"text": called.arguments_text} if called and arguments is None else dict(arguments or {})
        # A call without a reply has returned nothing: there is nothing that could be quoted from it.
        call = {"invocation_id": name, "tool_name": one.name or "tool", "arguments": given, "status": "error"}
        if takes_notes(one.name) or _echoes(one):
            call["evidence_kind"] = "helper"
        if one.returned is not None:
            _answer(call, one.returned)
        found.append(call)
    return found


def _echoes(one: Exchange) -> bool:
    """Whether a tool that takes the answer gave it back."""
    if one.called is None or one.returned is None or not ends_a_run(one.name):
        return False
    return text_of(one.returned.content).strip() in handed_over(one.called.arguments, one.called.arguments_text)


def _answer(call: dict[str, Any], item: Returned) -> None:
    output = read_output(item.content, call["arguments"], item.failed)
    call["status"] = output.status
    call["retrieval_details"] = output.details.model_dump(mode="json", exclude_none=True)
    if output.error:
        call["error"] = output.error
