"""The deadline of a turn: whatever happens, a question is answered before its time is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from handlers import flow
from streams.envelope import Draft, Event
from streams.events import QuestionAsked, TurnFailed
from streams.session import SessionState

ROLE: Final = "deadline"


def ends_at(trigger: Event) -> datetime:
    """When the turn that `trigger` opened must have ended, in UTC."""
    assert isinstance(trigger.data, QuestionAsked)
    return datetime.fromisoformat(trigger.time) + timedelta(seconds=trigger.data.deadline_s)


def remaining(trigger: Event, now: datetime) -> float:
    """Seconds left, never below zero. A clock that stands before the question counts as standing at it."""
    assert isinstance(trigger.data, QuestionAsked)
    left = (ends_at(trigger) - now.astimezone(UTC)).total_seconds()
    return min(max(left, 0.0), trigger.data.deadline_s)


def decide(state: SessionState, trigger: Event, _given: flow.Given) -> list[Draft]:
    """End the turn: the time is over and nobody answered."""
    turn = state.turn(trigger.turn)
    if not turn.open or turn.failed or turn.cancelled:
        return []
    assert isinstance(trigger.data, QuestionAsked)
    failed = TurnFailed(reason="deadline", detail=f"no answer within {trigger.data.deadline_s:g} s")
    return [Draft(failed, ROLE, trigger.turn, flow.current_round(turn), cause=trigger.id)]
