"""The one loop: load the session, let a role decide, do what it needs first, append, and on conflict decide anew."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from handlers import deadline, flow
from handlers.agents.protocol import (
    AgentFailed,
    AgentReply,
    Agents,
    ExecutorBrief,
    PlanBrief,
    SourceExhausted,
    VerifierBrief,
)
from handlers.dispatch import Again
from handlers.evidence.protocol import ToolSpec
from handlers.redaction import masked
from streams.contract import ToolCall
from streams.envelope import Draft, Event
from streams.events import AgentReplied, HandlerParked, QuestionAsked, ToolInvoked, TurnFailed
from streams.log import EventLog, WrongExpectedVersion
from streams.sealing import NoKey
from streams.session import BrokenChain, SessionState, evolve, fold, initial

CACHED_SESSIONS = 4096
HEAVY_REFS = 1_000  # of a session: reading more than these takes long enough for a server to be missed
CLAIM_REFS = 10  # refs that take as long to read as a claim takes to judge
COPY_PAUSE_S = 0.2
COPY_PATIENCE_S = 600.0  # a fork that is not whole by then was given up


class Bench(Protocol):
    """The tools of one turn: their specs, and one call turned into what is recorded of it."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def invoke(self, call: ToolCall, state: SessionState) -> ToolInvoked: ...


class Workshop(Protocol):
    """What a turn works with, made from its question alone, so that any process can go on with it."""

    async def agents(self, question: QuestionAsked) -> Agents: ...

    async def bench(self, question: QuestionAsked) -> Bench: ...

    async def look_up(self, state: SessionState, wanted: flow.LookUp) -> flow.Found: ...


class Reactor:
    """Runs roles on events. Holds a bounded cache of folded sessions; a stale entry is harmless, because the
    expected position of an append refuses what was decided on it."""

    def __init__(self, log: EventLog, workshop: Workshop, now: Callable[[], datetime]) -> None:
        self.watchers: dict[str, Callable[[Event], None]] = {}
        self._log = log
        self._workshop = workshop
        self._now = now
        self._states: OrderedDict[str, SessionState] = OrderedDict()
        self._heavy = asyncio.Lock()

    def known(self, session: str, n: int, seq: int) -> Event | None:
        """Event `n` of a session where this process has it already: it need not be decoded again."""
        state = self._states.get(session)
        if state is None or not 0 < n <= len(state.events) or state.events[n - 1].seq != seq:
            return None
        return state.events[n - 1]

    async def load(self, trigger: Event) -> SessionState:
        """The session's state, at least up to `trigger`."""
        state = self._states.get(trigger.session)
        if state is None and trigger.n == 1:
            state = initial(trigger.session)
        if state is not None and state.head.n == trigger.n - 1:
            try:
                state = evolve(state, trigger)
            except BrokenChain:
                state = None
        if state is None or state.head.n < trigger.n:
            state = fold(trigger.session, await self._log.read(trigger.session, at_least=trigger.seq))
        self._remember(state)
        return state

    async def react(self, role: flow.Role, trigger: Event) -> None:
        """Let `role` do all that `trigger` asks of it. Safe to repeat at any point. Raises Again for a foreign agent
        that still has time, and for a fork that is still being copied; NoKey where what it should judge is sealed."""
        given = flow.Given()
        in_hand: dict[tuple[str, int, int, int], Draft] = {}
        while True:
            state = await self.load(trigger)
            if state.copying:
                state = await self._whole(state, trigger)
            if not _wanted(role, state, trigger):
                return
            if state.hidden:
                # Known from its trigger alone it may not show that its text was erased since.
                state = fold(trigger.session, await self._log.read(trigger.session, at_least=trigger.seq))
                self._remember(state)
                if not _wanted(role, state, trigger):
                    return
                raise NoKey(state.session)
            if role.name in {"planner", "executor"} and not given.tools:
                bench = await self._workshop.bench(state.turn(trigger.turn).question)
                given = replace(given, tools=bench.specs)
            step = await self._decided(role, state.as_of(trigger.n) if role.as_of_trigger else state, trigger, given)
            if isinstance(step, flow.LookUp):
                given = replace(given, found=await self._workshop.look_up(state, step))
                continue
            if isinstance(step, flow.Ask):
                outcome = await self._ask(step, state, trigger, in_hand)
                if isinstance(outcome, flow.Missing):
                    given = replace(given, missing=outcome)
                    continue
                drafts = [outcome]
            elif isinstance(step, flow.Invoke):
                drafts = await self._invoke(step, state, trigger)
            elif isinstance(step, flow.Wait):
                left_s = step.left(self._now())
                if left_s > 0:
                    raise Again(left_s)
                step = drafts = step.then
            else:
                drafts = step
            # What follows from the trigger stands behind it.
            drafts = [draft for draft in drafts if not state.has(draft.id(trigger.session), trigger.n)]
            if not drafts:
                return
            if await self._append(state, drafts) and isinstance(step, list):
                return

    async def _decided(self, role: flow.Role, state: SessionState, trigger: Event, given: flow.Given) -> flow.Step:
        """What the role decides; where there is much to read in a thread, one at a time, so that the connection stays
        alive and the deadline can end the turn."""
        if _refs(state) + CLAIM_REFS * _claims(state) <= HEAVY_REFS:
            return role.decide(state, trigger, given)
        async with self._heavy:
            return await asyncio.to_thread(role.decide, state, trigger, given)

    async def _whole(self, state: SessionState, trigger: Event) -> SessionState:
        """A fork with all its copied events, which this process may not have seen yet."""
        for event in await self._log.read(state.session, at_least=trigger.seq):
            state = evolve(state, event)
        self._remember(state)
        if state.copying:
            age = self._now() - datetime.fromisoformat(state.events[0].time)
            if age.total_seconds() < COPY_PATIENCE_S:
                raise Again(COPY_PAUSE_S)
        return state

    async def append(self, session: str, drafts: list[Draft], expected: SessionState) -> SessionState:
        """Append what was decided on `expected`; raise WrongExpectedVersion if the session has moved on."""
        events = await self._log.append(session, drafts, expected.head, self._now())
        state = expected
        watcher = self.watchers.get(session)
        for event in events:
            state = evolve(state, event)
            if watcher is not None:
                watcher(event)
        self._remember(state)
        return state

    async def park(self, trigger: Event, consumer: str, error: str, deliveries: int, router: flow.Role) -> None:
        """Give up on `trigger`: record why, and end its turn at once, whichever role it was (ruling 15)."""
        error = masked(error)
        parked = HandlerParked(
            consumer=consumer, event_id=trigger.id, event_seq=trigger.seq, error=error[:2000], deliveries=deliveries
        )
        while True:
            state = await self.load(trigger)
            turn = state.turn(trigger.turn)
            at = (consumer, trigger.turn, flow.current_round(turn), trigger.attempt, trigger.id)
            drafts = [Draft(parked, *at)]
            if turn.open and turn.failed is None:
                drafts.append(Draft(TurnFailed(reason="parked", detail=f"{consumer}: {error[:300]}"), *at))
            drafts = [draft for draft in drafts if not state.has(draft.id(trigger.session), trigger.n)]
            if drafts and not await self._append(state, drafts):
                continue
            break
        state = await self.load(trigger)
        failed = [e for e in state.events if e.turn == trigger.turn and isinstance(e.data, TurnFailed)]
        if failed and state.turn(trigger.turn).open:
            await self.react(router, failed[-1])

    async def _append(self, state: SessionState, drafts: list[Draft]) -> bool:
        try:
            await self.append(state.session, drafts, state)
        except WrongExpectedVersion:
            # Read, and not only forgotten: by its first event alone `load` would take it for a new one, again and again.
            self._states.pop(state.session, None)
            self._remember(fold(state.session, await self._log.read(state.session)))
            return False
        return True

    async def _ask(
        self, step: flow.Ask, state: SessionState, trigger: Event, in_hand: dict[tuple[str, int, int, int], Draft]
    ) -> Draft | flow.Missing:
        key = (step.role, step.round, step.attempt, step.ordinal)
        if key in in_hand:
            return in_hand[key]
        turn = state.turn(trigger.turn)
        agents = await self._workshop.agents(turn.question)
        left_s = max(deadline.remaining(turn.asked, self._now()), 0.001)
        try:
            reply = await _reply(agents, replace(step.brief, deadline_s=left_s))
        except SourceExhausted as end:
            return flow.Missing(step.role, "exhausted_round" if end.whole_round else "exhausted")
        except AgentFailed as failure:
            return flow.Missing(step.role, "failed", failure.reason)
        replied = AgentReplied(
            role=step.role,
            ordinal=step.ordinal,
            kind=step.kind,
            text=reply.text,
            tool_calls=_unique(reply.tool_calls, state),
            finish_reason=reply.finish_reason,
            model=reply.model,
            prompt_sha256=reply.prompt_sha256,
            usage=reply.usage,
            latency_ms=reply.latency_ms,
            details=reply.details,
        )
        in_hand[key] = Draft(replied, step.role, trigger.turn, step.round, step.attempt, trigger.id, step.ordinal)
        return in_hand[key]

    async def _invoke(self, step: flow.Invoke, state: SessionState, trigger: Event) -> list[Draft]:
        bench = await self._workshop.bench(state.turn(trigger.turn).question)
        results = await asyncio.gather(*(bench.invoke(call, state) for _, call in step.calls))
        return [
            Draft(result, "executor", trigger.turn, step.round, step.reply.attempt, step.reply.id, index)
            for (index, _), result in zip(step.calls, results, strict=True)
        ]

    def _remember(self, state: SessionState) -> None:
        held = self._states.get(state.session)
        if held is None or held.head.n <= state.head.n:
            self._states[state.session] = state
        self._states.move_to_end(state.session)
        while len(self._states) > CACHED_SESSIONS:
            self._states.popitem(last=False)


def _refs(state: SessionState) -> int:
    details = (call.retrieval_details for call in state.invocations)
    return sum(len(one.evidence_refs or ()) for one in details if one is not None)


def _claims(state: SessionState) -> int:
    drafts = (a.draft.structured for rnd in state.turns[-1].rounds for a in rnd.attempts[-1:]) if state.turns else ()
    return sum(len(one.get("claims") or ()) for one in drafts if one is not None)


def _wanted(role: flow.Role, state: SessionState, trigger: Event) -> bool:
    if state.copying or state.erased or not 0 < trigger.turn <= len(state.turns):
        return False
    turn = state.turn(trigger.turn)
    if not turn.open:
        return False
    ended = turn.failed is not None or turn.cancelled is not None
    return not ended or (role.name == "router" and trigger.type in {"turn-failed", "turn-cancelled"})


async def _reply(agents: Agents, brief: PlanBrief | ExecutorBrief | VerifierBrief) -> AgentReply:
    if isinstance(brief, PlanBrief):
        return await agents.plan(brief)
    if isinstance(brief, ExecutorBrief):
        return await agents.execute(brief)
    assert isinstance(brief, VerifierBrief)
    return await agents.verify(brief)


def _unique(calls: tuple[ToolCall, ...], state: SessionState) -> tuple[ToolCall, ...]:
    # Some servers number their calls from zero in every reply; the log's key is session and id.
    taken = {i.invocation_id for i in state.invocations}
    out = []
    for call in calls:
        name, k = call.call_id, 2
        while name in taken:
            name, k = f"{call.call_id}-{k}", k + 1
        taken.add(name)
        out.append(call if name == call.call_id else call.model_copy(update={"call_id": name}))
    return tuple(out)
