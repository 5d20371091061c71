"""A recorded session, played again in memory: replies and tool results as recorded, everything else by today's rules.

Nothing is written to the session's own log; blobs that it names are read there.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from handlers import flow
from handlers.agents.protocol import AgentReply, Agents, ExecutorBrief, PlanBrief, SourceExhausted, VerifierBrief
from handlers.evidence import records
from handlers.evidence.bench import RecordedBench, ToolBench
from handlers.executor import answer_of
from handlers.fork import copies
from handlers.react import Bench, Reactor
from handlers.replies import parse_answer
from handlers.roles import ROLES
from handlers.transcripts.prose import read_prose
from streams.envelope import Draft, Event
from streams.events import (
    AgentReplied,
    AnswerDrafted,
    AnswerEvaluated,
    QuestionAsked,
    RoundRouted,
    ToolInvoked,
    TurnFailed,
)
from streams.log import EventLog
from streams.memory import MemoryLog
from streams.sealing import NoKey
from streams.session import SessionState, Turn, fold

SCOPE_RULE = "evidence.session_scope"


@dataclass(frozen=True, slots=True)
class Changes:
    """What is other than it was recorded: options of the turn by name, and who judges anew (none: as recorded)."""

    options: dict[str, Any] = field(default_factory=dict)
    verifier: Agents | None = None


def playable(turn: Turn) -> bool:
    """Whether rules ended the turn. An open, cancelled or failed one has no judgement that could be another."""
    return not turn.open and turn.judged


async def replay(state: SessionState, log: EventLog, changes: Changes, offline: Callable[[], Agents]) -> SessionState:
    """The session as today's rules would have it, up to its last turn that has ended, under the same ids.

    Turns that no rule ended are taken over as they stand. `log` holds the blobs that the session names; `offline`
    judges a round for which no reply of a Verifier was recorded.
    """
    memory = MemoryLog()
    played = SessionState(state.session)
    for turn in state.turns:
        if turn.open:
            break
        now = _standing(turn)
        mine = [event for event in state.events if event.turn == turn.number]
        if not playable(turn):
            played = await _append(memory, played, copies(mine, state.session), now())
            continue
        asked = turn.question.model_copy(
            update={"options": turn.question.options.model_copy(update={**changes.options, **NO_WAIT})}
        )
        opening = Draft(asked, turn.asked.actor, turn.number, cause=turn.asked.cause)
        played = await _append(memory, played, [opening], now())
        agents = RecordedAgents(turn, changes.verifier, offline)
        reactor = Reactor(memory, _Recorded(state, log, agents), now)
        played = await _play(reactor, memory, played, mine)
    return played


NO_WAIT = {"external_repair_wait_s": 0.0}  # a foreign agent's next answer is there already, or never comes


def _standing(turn: Turn) -> Callable[[], datetime]:
    # The clock stands: no deadline passes while a recording plays.
    began = datetime.fromisoformat(turn.asked.time)
    return lambda: began


async def _append(memory: MemoryLog, state: SessionState, drafts: list[Draft], now: datetime) -> SessionState:
    return fold(state.session, [*state.events, *await memory.append(state.session, drafts, state.head, now)])


async def _play(reactor: Reactor, memory: MemoryLog, state: SessionState, recorded: list[Event]) -> SessionState:
    done = state.head.n - 1
    while done < state.head.n:
        event = state.events[done]
        done += 1
        handed = _handed(state.turn(event.turn), event, recorded)
        if handed:
            state = await _append(memory, state, handed, datetime.fromisoformat(event.time))
        for role in ROLES.values():
            if event.type in role.triggers and role.name != "deadline":
                await reactor.react(role, event)
        state = fold(state.session, await memory.read(state.session))
    return state


def _handed(turn: Turn, event: Event, recorded: list[Event]) -> list[Draft]:
    """What a foreign agent gave after `event`: calls, and an answer that is read by today's rules."""
    data = event.data
    if not flow.external(turn):
        return []
    if isinstance(data, QuestionAsked):
        place = (1, 0)
    elif isinstance(data, AnswerEvaluated) and data.decision == "repair":
        place = (event.round, event.attempt + 1)
    elif isinstance(data, RoundRouted) and data.route == "extra_round":
        place = (event.round + 1, 0)
    else:
        return []
    drafts = []
    calls: list[ToolInvoked] = []
    for given in recorded:
        if (given.round, given.attempt) > place or not isinstance(given.data, ToolInvoked | AnswerDrafted):
            continue
        calls += [given.data] if isinstance(given.data, ToolInvoked) else []
        if (given.round, given.attempt) == place:
            at = (given.actor, given.turn, given.round, given.attempt, given.cause)
            drafts += [Draft(payload, *at) for payload in _read_again(given.data, turn, tuple(calls))]
    return drafts


def _read_again(
    given: ToolInvoked | AnswerDrafted, turn: Turn, calls: tuple[ToolInvoked, ...]
) -> list[ToolInvoked | AnswerDrafted | TurnFailed]:
    if isinstance(given, ToolInvoked):
        return [given]
    finish = "length" if given.parse_status == "truncated" else "stop"
    parsed = read_prose(parse_answer(given.raw_text, finish), turn.question.question, calls)
    failed = TurnFailed(reason="agent_failed", detail=f"the foreign agent's answer was {parsed.status}")
    return [answer_of(parsed, None, given.raw_text), *([failed] if parsed.status in flow.ENDS_TURN else [])]


class RecordedAgents:
    """Replies of a recorded turn, each once, in their order. With `verifier` the judgement is asked anew."""

    kind = "recorded"

    def __init__(self, turn: Turn, verifier: Agents | None, offline: Callable[[], Agents]) -> None:
        self._replies: dict[tuple[str, int, int], deque[AgentReplied]] = defaultdict(deque)
        for rnd in turn.rounds:
            for event in rnd.replies:
                assert isinstance(event.data, AgentReplied)
                attempt = event.attempt if event.data.role == "executor" else 0
                self._replies[event.data.role, rnd.number, attempt].append(event.data)
        self._made = {rnd.number for rnd in turn.rounds if rnd.plan is not None and not rnd.plan.borrowed}
        self._heard = {rnd.number for rnd in turn.rounds if rnd.replies_of("verifier")}
        self._verifier = verifier
        self._offline = offline

    async def plan(self, brief: PlanBrief) -> AgentReply:
        if brief.round not in self._made:
            raise SourceExhausted(whole_round=True)
        return self._next("planner", brief.round)

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        return self._next("executor", brief.round, brief.attempt)

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        if self._verifier is not None:
            return await self._verifier.verify(brief)
        if brief.round not in self._heard:
            return await self._offline().verify(brief)
        return self._next("verifier", brief.round)

    def _next(self, role: str, number: int, attempt: int = 0) -> AgentReply:
        queue = self._replies[role, number, attempt]
        if not queue:
            raise SourceExhausted
        told = queue.popleft()
        return AgentReply(
            told.text,
            told.finish_reason,
            told.tool_calls,
            told.model,
            told.prompt_sha256,
            told.usage,
            told.latency_ms,
            told.details,
        )


class _Recorded:
    """The workshop of a replay: no tool runs, nothing outside the recording is looked at."""

    def __init__(self, state: SessionState, log: EventLog, agents: Agents) -> None:
        self._agents = agents
        self._log = log
        self._calls = {call.invocation_id: call for call in state.invocations}
        gates = (a.gate.result for t in state.turns for r in t.rounds for a in r.attempts if a.gate is not None)
        # Which ids stood in other sessions is told by what the gate found then: the log has grown since.
        self._foreign = frozenset(
            checked.source_invocation_id
            for result in gates
            for checked in result.checked_bindings
            if SCOPE_RULE in checked.failed_rules and checked.source_invocation_id is not None
        )

    async def agents(self, question: QuestionAsked) -> Agents:  # noqa: ARG002
        return self._agents

    async def bench(self, question: QuestionAsked) -> Bench:  # noqa: ARG002
        return RecordedBench(self._calls, ToolBench({}, self._log, None))

    async def look_up(self, state: SessionState, wanted: flow.LookUp) -> flow.Found:  # noqa: ARG002
        resolved: dict[tuple[str, str], str] = {}
        for invocation_id, raw_path in sorted(wanted.records):
            text = await self._record(self._calls[invocation_id], raw_path)
            if text is not None:
                resolved[invocation_id, raw_path] = text
        return flow.Found(wanted.ids & self._foreign, resolved)

    async def _record(self, call: ToolInvoked, raw_path: str) -> str | None:
        if call.output_blob is None or call.output_format != records.FORMAT:
            return None
        try:
            return records.find(await self._log.get_blob(call.output_blob), raw_path)
        except NoKey:
            return None  # the output was sealed with the key of a fork's origin, and that was erased
