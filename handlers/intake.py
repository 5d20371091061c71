"""Intake: what comes from outside, checked before it becomes an event."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from handlers import flow
from handlers.case import kind_of
from handlers.executor import answer_of
from handlers.question import is_chinese
from handlers.redaction import Known, Redact, Redactions, unnumbered
from handlers.replies import parse_answer
from handlers.requests import (
    AnswerRequest,
    AskRequest,
    CancelRequest,
    ChannelRequest,
    Refused,
    Request,
    ToolRequest,
)
from handlers.transcripts.outputs import read_output
from handlers.transcripts.prose import read_prose
from streams.contract import RetrievalDetails
from streams.envelope import Draft, Event
from streams.events import ChannelWritten, QuestionAsked, ToolInvoked, TurnCancelled, TurnFailed, TurnOptions
from streams.log import EventLog, WrongExpectedVersion
from streams.sealing import digest
from streams.session import OUR_CHANNELS, SessionState, Turn, fold

ROLE: Final = "intake"
LOOK_ALIKE = str.maketrans("10", "lo", "_.-")  # what is left out or alike to the eye in a channel's name
OF_NOBODY = frozenset({"id", "lang", "status", "evidence_kind", "on_exhausted", "channel"})  # no text of anybody's
RESERVED = tuple(name.translate(LOOK_ALIKE) for name in (*OUR_CHANNELS, "self_evaluation"))


class TurnIsOpen(Exception):
    """Another question is being answered in this session (ruling 16)."""

    def __init__(self, session: str, turn: Turn) -> None:
        super().__init__(
            f"session {session}: turn {turn.number} is still open with another question "
            f"({turn.question.question[:120]!r}): wait for its answer, cancel it, or ask in a new session"
        )
        self.session = session
        self.turn = turn


class SessionErased(ValueError):
    """The session's text was erased: it stays as it is."""

    def __init__(self, session: str) -> None:
        super().__init__(f"the text of session {session} was erased, nothing is added to it: ask in a new session")
        self.session = session


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a foreign question leaves to the server: who verifies, and the turn's bounds."""

    agents: str = "offline"
    deadline_s: float = 300.0
    options: TurnOptions = field(default_factory=TurnOptions)


def decide(state: SessionState, question: QuestionAsked) -> list[Draft]:
    """The turn that `question` opens; nothing if the same question is being answered already.

    Raises TurnIsOpen, SessionErased.
    """
    if state.erased:
        raise SessionErased(state.session)
    turn = state.open_turn
    if turn is not None:
        if unnumbered(turn.question.question) == unnumbered(question.question):
            return []
        raise TurnIsOpen(state.session, turn)
    return [Draft(question, ROLE, turn=len(state.turns) + 1)]


async def ask(
    log: EventLog, session: str, question: QuestionAsked, now: datetime, redactions: Redactions | None = None
) -> SessionState:
    """Append the question, or join the open turn that has it; the state afterwards, its last turn the one asked."""
    while True:
        state = fold(session, await log.read(session))
        if redactions is not None:
            text, _ = redactions.redactor(state)(question.question)
            question = question.model_copy(update={"question": text})
        drafts = decide(state, question)
        if not drafts:
            return state
        try:
            return fold(session, [*state.events, *await log.append(session, drafts, state.head, now)])
        except WrongExpectedVersion:
            continue


async def accept(
    log: EventLog, session: str, request: Request, now: datetime, redactions: Redactions | None, defaults: Defaults
) -> Event:
    """Append what `request` asks for, or find it where it stands already; the event. Raises Refused, and appends
    nothing, for a request that the session cannot take as it is. `redactions` None: secrets are recorded."""
    # A digest of a short secret would give it away to who tries them all.
    told = request if redactions is None else redacted(request, Redact(Known()))[0]
    while True:
        state = fold(session, await log.read(session))
        if state.erased:
            raise Refused("session", str(SessionErased(session)))
        sealed = log.key_after(session, state.head)
        key = key_of(told, sealed.key if sealed else None)
        held = already(state, request.TYPE, key)
        if held is not None:
            return held
        clean = (request, dict[str, int]()) if redactions is None else redacted(request, redactions.redactor(state))
        decided = receive(state, *clean, key, defaults)
        if isinstance(decided, Event):
            return decided
        try:
            return (await log.append(session, decided, state.head, now))[0]
        except WrongExpectedVersion:
            continue


def key_of(request: Request, secret: bytes | None = None) -> str:
    """What makes two requests the same: the client's `id` and the content, stored as the event's cause.

    `secret`: the key of a sealed session, without which nobody can tell what the content was.
    """
    body = request.model_dump(mode="json", exclude={"id"}, exclude_unset=True)
    content = digest(secret, json.dumps(body, sort_keys=True, ensure_ascii=True).encode())[:24]
    return f"request:{request.id or ''}:{content}"


def already(state: SessionState, kind: str, key: str) -> Event | None:
    """The event that this very request became. Refused if its `id` stands for another one.

    Without an `id` a repeated request is the same within its turn, and a channel's value as long as it is the latest:
    who writes A, B and A again means the last one. A question joins, see `receive`.
    """
    name = key.rpartition(":")[0]
    for event in reversed(state.events):
        if event.actor != ROLE or not event.cause.startswith("request:"):
            continue
        if event.cause == key and event.type == kind:
            if name != "request:" or (event.turn == len(state.turns) and _still_holds(state, event)):
                return event
        elif name != "request:" and event.cause.rpartition(":")[0] == name:
            raise Refused("id", f"{name.removeprefix('request:')[:60]!r} was used for another request, event {event.n}")
    return None


def _still_holds(state: SessionState, event: Event) -> bool:
    if isinstance(event.data, ChannelWritten):
        return next(entry.n for entry in reversed(state.channels) if entry.channel == event.data.channel) == event.n
    return event.type != AskRequest.TYPE


def receive(
    state: SessionState, request: Request, redactions: dict[str, int] | None, key: str, defaults: Defaults
) -> list[Draft] | Event:
    """The events that a request becomes, its own first; the event, where it joins one. Refused says what is wrong."""
    match request:
        case AskRequest():
            return _asked(state, request, key, defaults)
        case ToolRequest():
            return _tool(state, request, redactions, key)
        case AnswerRequest():
            return _answer(state, request, key)
        case CancelRequest():
            turn = _open(state)
            if turn.cancelled is not None:
                raise Refused("turn", f"turn {turn.number} is cancelled already")
            cancelled = TurnCancelled(who=request.who, why=request.why)
            return [Draft(cancelled, ROLE, turn.number, flow.current_round(turn), cause=key)]
        case ChannelRequest():
            if request.channel.translate(LOOK_ALIKE).startswith(RESERVED):
                ours = ", ".join(OUR_CHANNELS)
                raise Refused(
                    "channel",
                    f"{request.channel} could be taken for one that Verdictlog alone writes ({ours}): choose another name",
                )
            if not state.turns:
                raise Refused("session", f"{state.session} has no turn that a channel could be about")
            written = ChannelWritten(channel=request.channel, value=request.value, who=request.who)
            again = sum(event.cause == key for event in state.events)
            return [Draft(written, ROLE, len(state.turns), cause=key, ordinal=again)]
        case _:
            raise Refused("subject", f"{request.TYPE} is no event")


def _asked(state: SessionState, request: AskRequest, key: str, defaults: Defaults) -> list[Draft] | Event:
    given = {
        "max_attempts": request.max_attempts,
        "on_exhausted": request.on_exhausted,
        "external_repair_wait_s": request.repair_wait_s,
    }
    asked = QuestionAsked(
        question=request.question,
        lang=request.lang or ("zh-CN" if is_chinese(request.question) else "en"),
        options=defaults.options.model_copy(update={k: v for k, v in given.items() if v is not None}),
        deadline_s=request.deadline_s or defaults.deadline_s,
        owner="external",
        agents=defaults.agents,
    )
    try:
        drafts = decide(state, asked)
    except TurnIsOpen as error:
        raise Refused("question", str(error)) from error
    if drafts:
        return [Draft(asked, ROLE, len(state.turns) + 1, cause=key)]
    _open(state)
    return state.turns[-1].asked


def _tool(state: SessionState, request: ToolRequest, redactions: dict[str, int] | None, key: str) -> list[Draft]:
    turn = _open(state)
    number, attempt = _place(turn)
    if any(call.invocation_id == request.invocation_id for call in state.invocations):
        raise Refused("invocation_id", f"{request.invocation_id[:80]!r} stands for another call in this session")
    invoked = ToolInvoked(
        invocation_id=request.invocation_id,
        tool_name=request.tool_name,
        arguments=request.arguments,
        evidence_kind=request.evidence_kind or kind_of(request.tool_name),
        topic=request.topic,
        latency_ms=request.latency_ms,
        redactions=redactions or None,
        **_result(request),
    )
    return [Draft(invoked, ROLE, turn.number, number, attempt, cause=key)]


def _result(request: ToolRequest) -> dict[str, Any]:
    given = request.retrieval_details
    if given is not None:
        details = RetrievalDetails(
            evidence_refs=given.refs(),
            matched=len(given.evidence_refs) if given.matched is None else given.matched,
            returned=len(given.evidence_refs) if given.returned is None else given.returned,
            truncated=given.truncated or False,
        )
        status = request.status or ("error" if request.error else "success" if given.evidence_refs else "no_data")
        return {"status": status, "retrieval_details": details, "error": request.error}
    if request.output is None and request.error is None and request.status in {None, "success"}:
        raise Refused("output", "give the tool's output, its retrieval_details, or its error")
    failed = True if request.error or request.status == "error" else None
    read = read_output(request.output if request.output is not None else request.error, request.arguments, failed)
    return {
        "status": request.status or read.status,
        "retrieval_details": read.details,
        "error": request.error or read.error,
    }


def _answer(state: SessionState, request: AnswerRequest, key: str) -> list[Draft]:
    turn = _open(state)
    number, attempt = _place(turn)
    raw = request.answer if isinstance(request.answer, str) else json.dumps(request.answer, ensure_ascii=False)
    parsed = read_prose(parse_answer(raw, request.finish_reason), turn.question.question, state.invocations)
    if parsed.status == "empty":
        raise Refused("answer", "it is empty")
    at = (ROLE, turn.number, number, attempt, key)
    drafts = [Draft(answer_of(parsed, None, raw), *at)]
    if parsed.status in flow.ENDS_TURN:
        failed = TurnFailed(reason="agent_failed", detail=f"the foreign agent's answer was {parsed.status}")
        drafts.append(Draft(failed, *at))
    return drafts


def _open(state: SessionState) -> Turn:
    turn = state.open_turn
    if turn is None:
        raise Refused("session", f"{state.session} has no open question: request question-asked first")
    if not flow.external(turn):
        raise Refused("session", f"turn {turn.number} is worked on by Verdictlog's own agents")
    return turn


def _place(turn: Turn) -> tuple[int, int]:
    """The round and attempt that what comes now belongs to; Refused where the turn waits for nothing from outside."""
    number = flow.current_round(turn)
    rnd = turn.round(number)
    before = turn.round(number - 1).routed if number > 1 else None
    if turn.failed is not None or turn.cancelled is not None or (before and before.route != "extra_round"):
        raise Refused("turn", f"turn {turn.number} is ending")
    if rnd.plan is not None and rnd.plan.borrowed:
        raise Refused("turn", f"round {number} came too late: it borrowed the first round's answer")
    waits = turn.question.options.external_repair_wait_s > 0
    if not rnd.attempts and (number == 1 or waits):
        return number, 0
    if not rnd.attempts:
        raise Refused("turn", "a second round was not arranged: ask with repair_wait_s")
    last = rnd.attempts[-1]
    if waits and last.evaluation is not None and last.evaluation.decision == "repair":
        return number, last.number + 1
    raise Refused("turn", f"attempt {last.number} of round {number} is being judged: nothing more is taken for it")


def redacted(request: Request, redact: Redact) -> tuple[Request, dict[str, int]]:
    """The request with secrets replaced in every text that others may read, and how many of each kind. Refused where
    a text that is bounded grows too long by it."""
    counts: Counter[str] = Counter()
    plain = request.model_dump(mode="json", exclude_unset=True)
    refs = (plain.get("retrieval_details") or {}).get("evidence_refs", [])
    texts, found = redact.texts([ref["text"] for ref in refs])
    counts.update(found)
    for ref, text in zip(refs, texts, strict=True):
        ref["text"] = text
    for name in plain.keys() - OF_NOBODY:
        plain[name], found = redact.value(plain[name])
        counts.update(found)
    try:
        return type(request).model_validate(plain), dict(counts)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Refused(".".join(map(str, first["loc"])), f"{first['msg']} once its secrets are replaced") from error
