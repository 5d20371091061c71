"""A session as of a moment, from the fold of its events: the reference that the projection is held against."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from streams.envelope import Event, iso
from streams.session import SessionState, fold


class BadMoment(ValueError):
    """Neither a number nor a time."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is no moment: give a number, or a time such as 2026-11-30T10:42:00Z (UTC if no offset)"
        )
        self.text = text


class NoSuchMoment(LookupError):
    """The session has no event with that number."""

    def __init__(self, session: str, n: int, last: int) -> None:
        super().__init__(f"session {session} has {last} events, there is no event {n}")
        self.session = session
        self.n = n
        self.last = last


@dataclass(frozen=True, slots=True)
class Moment:
    """One of: `n`, the session's own event number; `seq`, a position of the log; `time`, UTC as events write it."""

    n: int | None = None
    seq: int | None = None
    time: str | None = None


def parse_time(text: str) -> str:
    """A time as events write it (UTC, milliseconds, `Z`); BadMoment for anything else.

    An offset is understood, without one it is UTC; a bare date is its first moment, as it is in SQL.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        return iso(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        raise BadMoment(text) from error


def parse_moment(text: str) -> Moment:
    """What `--as-of` of a session means: digits are the session's own `n`, anything else a time."""
    return Moment(n=int(text)) if re.fullmatch(r"\d{1,18}", text.strip()) else Moment(time=parse_time(text))


def parse_position(text: str) -> Moment:
    """What `--as-of` of SQL means: digits are a position of the log, anything else a time."""
    return Moment(seq=int(text)) if re.fullmatch(r"\d{1,18}", text.strip()) else Moment(time=parse_time(text))


def upto(events: Sequence[Event], moment: Moment) -> list[Event]:
    """The session's events up to and with `moment`; NoSuchMoment for an `n` it does not have. `n` 0 is before all."""
    if moment.n is not None:
        if moment.n > len(events):
            raise NoSuchMoment(events[0].session if events else "", moment.n, len(events))
        return list(events[: moment.n])
    if moment.seq is not None:
        return [event for event in events if event.seq <= moment.seq]
    return [event for event in events if event.time <= (moment.time or "")]


def state_at(session: str, events: Sequence[Event], moment: Moment | None = None) -> SessionState:
    """The fold of the session's events up to `moment`, of all of them without one."""
    return fold(session, events if moment is None else upto(events, moment))


@dataclass(frozen=True, slots=True)
class Summary:
    """A session in one row: the columns of `diagnosis_session`; times are UTC as events write them."""

    session: str
    started_at: str
    asked_at: str
    ended_at: str | None
    question: str
    lang: str
    turns: int
    rounds: int
    effective_verdict: str | None
    groundedness_score: float | None
    route: str | None
    kind: str | None
    fallback_reason: str | None
    self_evaluation: dict[str, Any] | None
    n: int
    seq: int
    changed_at: str


def summary(state: SessionState) -> Summary | None:
    """The row that the projection has for this state; None before the first question: an auditor's own events, such
    as anchors, are no diagnosis."""
    if not state.turns:
        return None
    turn = state.turns[-1]
    routed = [rnd.routed for rnd in turn.rounds if rnd.routed]
    final = routed[-1] if routed else None
    judged = final if turn.judged else None
    answer = turn.answer
    ended = [e.time for e in state.events if e.type == "answer-given" and e.turn == turn.number]
    return Summary(
        session=state.session,
        started_at=state.events[0].time,
        asked_at=turn.asked.time,
        ended_at=ended[-1] if ended else None,
        question=turn.question.question,
        lang=turn.question.lang,
        turns=len(state.turns),
        rounds=len(turn.rounds),
        effective_verdict=judged.effective_verdict if judged else None,
        groundedness_score=judged.score if judged else None,
        route=final.route if final else None,
        kind=answer.kind if answer else None,
        fallback_reason=answer.fallback_reason if answer else None,
        self_evaluation=state.self_evaluation,
        n=state.head.n,
        seq=state.head.seq,
        changed_at=state.head.time,
    )
