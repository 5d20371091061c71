"""Plays a whole turn through the real roles and loop over the log in memory: a case in, its report out.

For behaviour whose proof needs no broker. Crashes, duplicates and races are played by `deliver`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from handlers.agents.offline import OfflineAgents
from handlers.agents.protocol import Agents
from handlers.case import Case, read_case
from handlers.evidence.files import tools_for
from handlers.intake import ask
from handlers.react import Reactor
from handlers.report import exit_code, turn_report
from handlers.roles import ROLES
from handlers.workshop import TurnWorkshop
from streams.events import QuestionAsked, Sources, TurnOptions
from streams.memory import MemoryLog
from streams.session import SessionState, fold

BEGAN = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)
SESSION = "e2603-payment"


class Clock:
    """A clock that moves a millisecond at each look."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


async def _nobody(ids: frozenset[str], session: str) -> frozenset[str]:
    return frozenset()


class Stage:
    """A log in memory with all roles; `owners` answers the look-up of foreign invocation ids."""

    def __init__(
        self,
        agents: Callable[[], Agents] = OfflineAgents,
        owners: Callable[[frozenset[str], str], Any] = _nobody,
    ) -> None:
        self.log = MemoryLog()
        self.clock = Clock()
        self.agents = agents
        self.owners = owners

    def reactor(self) -> Reactor:
        """A loop that remembers nothing: what a process is after a restart."""
        kinds = {"offline": self.agents, "scripted": self.agents, "openai": self.agents}
        workshop = TurnWorkshop(self.log, kinds, lambda sources: tools_for(sources, self.clock), self.owners)
        return Reactor(self.log, workshop, self.clock)

    async def ask(self, question: QuestionAsked, session: str = SESSION) -> SessionState:
        return await ask(self.log, session, question, self.clock())

    async def state(self, session: str = SESSION) -> SessionState:
        return fold(session, await self.log.read(session))

    async def run(self, session: str = SESSION, deliveries: int = 1) -> SessionState:
        """Deliver every event to every role it feeds, in order, each `deliveries` times, until nothing is new."""
        reactor, done = self.reactor(), 0
        while True:
            events = await self.log.read(session)
            if done == len(events):
                return fold(session, events)
            event = events[done]
            done += 1
            for role in ROLES.values():
                if event.type in role.triggers and role.name != "deadline":
                    for _ in range(deliveries):
                        await reactor.react(role, event)

    async def deliver(self, role: str, n: int, session: str = SESSION) -> None:
        """One delivery of event `n` to a role in a fresh process."""
        await self.reactor().react(ROLES[role], (await self.log.read(session))[n - 1])


async def question_of(stage: Stage, case: Case, sources: Sources | None = None) -> QuestionAsked:
    settings = case.settings
    return QuestionAsked(
        question=case.question,
        lang=case.lang,
        options=TurnOptions(
            max_attempts=2 if settings.max_attempts is None else settings.max_attempts,
            on_exhausted=settings.on_exhausted or "cap",
            found_bindings=case.found_bindings,
        ),
        deadline_s=settings.deadline_s or 300.0,
        agents=settings.agents or "offline",
        script=await stage.log.put_blob(orjson.dumps(case.script)),
        sources=sources or Sources(),
    )


async def play_case(case: Case, stage: Stage | None = None) -> SessionState:
    """The session after a case that was read from any format was judged."""
    stage = stage or Stage()
    await stage.ask(await question_of(stage, case))
    return await stage.run()


async def play(raw: dict[str, Any], stage: Stage | None = None, deliveries: int = 1) -> SessionState:
    """The session after `raw`, a case file's object, was judged."""
    stage = stage or Stage()
    await stage.ask(await question_of(stage, read_case(raw)))
    return await stage.run(deliveries=deliveries)


def judged(raw: dict[str, Any], stage: Stage | None = None) -> dict[str, Any]:
    """The report of `raw`, as `judge --json` prints it, with `exit_code` beside it."""
    state = asyncio.run(play(raw, stage))
    turn = state.turns[-1]
    return {**turn_report(state, turn), "exit_code": exit_code(turn)}
