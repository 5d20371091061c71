"""Parked entries and what an operator does about them: the question asked anew, or the entry only closed. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from handlers import flow, intake
from streams.envelope import Draft
from streams.events import ParkedResolved
from streams.log import EventLog, WrongExpectedVersion
from streams.sealing import NoKey
from streams.session import Parked, SessionState, fold

ROLE: Final = "operator"

Decide = Callable[[SessionState], list[Draft]]


class NotRetried(ValueError):
    """A parked turn whose question cannot be asked anew now."""

    def __init__(self, session: str, turn: int, why: str) -> None:
        super().__init__(f"turn {turn} of session {session} {why}")
        self.session = session
        self.turn = turn
        self.why = why


def entries(state: SessionState, turn: int | None = None) -> tuple[Parked, ...]:
    """The session's entries, or those of one turn."""
    return tuple(entry for entry in state.parked if turn is None or entry.event.turn == turn)


def asked_again(state: SessionState, turn: int) -> int | None:
    """The turn that asks the question of parked `turn` anew; None if nobody retried it."""
    ids = {entry.event.id for entry in entries(state, turn)}
    for again in state.turns:
        if again.asked.cause in ids:
            return again.number
    closed = (entry.resolution.data for entry in entries(state, turn) if entry.resolution is not None)
    return next((data.new_turn for data in closed if isinstance(data, ParkedResolved) and data.new_turn), None)


def retry(state: SessionState, turn: int, who: str, why: str = "") -> list[Draft]:
    """The question of parked `turn` as a new turn with the same options and sources, and each of its open entries
    closed; [] where none is open. A retry that was cut behind its question is only brought to its end.

    Raises NotRetried, TurnIsOpen (ruling 16), SessionErased.
    """
    left = [entry for entry in entries(state, turn) if entry.open]
    if not left:
        return []
    again, drafts = asked_again(state, turn), list[Draft]()
    if again is None:
        _check(state, turn)
        # The question stands before its resolution: an operator who is cut between them has nothing lost.
        drafts = [replace(d, cause=left[0].event.id) for d in intake.decide(state, state.turn(turn).question)]
        again = len(state.turns) + len(drafts)
    return [
        *drafts,
        *(
            _closed(
                entry, ParkedResolved(who=who, why=why, parked_event=entry.event.id, action="retry", new_turn=again)
            )
            for entry in left
        ),
    ]


def dismiss(state: SessionState, event_id: str, who: str, why: str = "") -> list[Draft]:
    """The entry closed; [] where it is closed already. One whose question was asked anew is recorded as retried."""
    entry = next(entry for entry in state.parked if entry.event.id == event_id)
    if not entry.open:
        return []
    again = next((turn.number for turn in state.turns if turn.asked.cause == event_id), None)
    action = "dismiss" if again is None else "retry"
    return [_closed(entry, ParkedResolved(who=who, why=why, parked_event=event_id, action=action, new_turn=again))]


async def resolve(log: EventLog, session: str, decide: Decide, now: datetime) -> tuple[SessionState, bool]:
    """The session after what `decide` wants of it, and whether that was anything; on a conflict it decides anew.

    Raises what `decide` raises, SessionErased, and NoKey where the session's text cannot be read here.
    """
    while True:
        state = fold(session, await log.read(session))
        if state.erased:
            raise intake.SessionErased(session)
        if state.hidden:
            raise NoKey(session)
        drafts = decide(state)
        if not drafts:
            return state, False
        try:
            return fold(session, [*state.events, *await log.append(session, drafts, state.head, now)]), True
        except WrongExpectedVersion:
            continue


def told(entry: Parked) -> str:
    """In words, what became of an entry."""
    event = entry.resolution
    if event is None:
        return "open"
    assert isinstance(event.data, ParkedResolved)
    return f"{resolution_told(event.data)}, at {event.time}"


def resolution_told(data: ParkedResolved) -> str:
    """In words, who closed an entry, and how and why."""
    how = "dismissed" if data.action == "dismiss" else "asked anew"
    turn = f" as turn {data.new_turn}" if data.new_turn else ""
    return f"{how}{turn} by {data.who}" + (f": {data.why}" if data.why else "")


def _check(state: SessionState, number: int) -> None:
    turn = state.turn(number)
    if state.copying:
        raise NotRetried(state.session, number, "is a copy that is not whole yet: wait until the fork is there")
    if turn.open:
        raise NotRetried(state.session, number, "is still open: wait for its answer, or let `verdictlog up` end it")
    if flow.external(turn):
        raise NotRetried(
            state.session,
            number,
            "was worked on by a foreign agent: let it ask again in this session, then dismiss the entry",
        )


def _closed(entry: Parked, resolved: ParkedResolved) -> Draft:
    return Draft(resolved, ROLE, entry.event.turn, cause=entry.event.id)
