"""Intake: what comes from outside, checked before it becomes an event."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from streams.envelope import Draft
from streams.events import QuestionAsked
from streams.log import EventLog, WrongExpectedVersion
from streams.session import SessionState, Turn, fold

ROLE: Final = "intake"


class TurnIsOpen(Exception):
    """Another question is being answered in this session (ruling 16)."""

    def __init__(self, session: str, turn: Turn) -> None:
        super().__init__(
            f"session {session}: turn {turn.number} is still open with another question "
            f"({turn.question.question[:120]!r}): wait for its answer, cancel it, or ask in a new session"
        )
        self.session = session
        self.turn = turn


def decide(state: SessionState, question: QuestionAsked) -> list[Draft]:
    """The turn that `question` opens; nothing if the same question is being answered already."""
    turn = state.open_turn
    if turn is not None:
        if turn.question.question == question.question:
            return []
        raise TurnIsOpen(state.session, turn)
    return [Draft(question, ROLE, turn=len(state.turns) + 1)]


async def ask(log: EventLog, session: str, question: QuestionAsked, now: datetime) -> SessionState:
    """Append the question, or join the open turn that has it; the state afterwards, its last turn the one asked."""
    while True:
        state = fold(session, await log.read(session))
        drafts = decide(state, question)
        if not drafts:
            return state
        try:
            return fold(session, [*state.events, *await log.append(session, drafts, state.head, now)])
        except WrongExpectedVersion:
            continue
