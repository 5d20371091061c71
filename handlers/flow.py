"""The order of a turn, as conditions over its state: which role is due, and when a loop has ended. Pure.

Steps that a role decides on are values: events to append (`Draft`s), or a thing that the loop must do first
(`Ask` an agent, `Invoke` tools, `LookUp` in the store) before the role decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from handlers.agents.protocol import ExecutorBrief, PlanBrief, VerifierBrief
from handlers.evidence.protocol import ToolSpec
from streams.contract import ToolCall
from streams.envelope import Draft, Event
from streams.events import AgentReplied, AgentRole, AnswerDrafted, TurnOptions
from streams.session import Attempt, Round, SessionState, Turn

AskKind = Literal["first", "reask", "repair"]
USABLE = frozenset({"valid", "repaired_wrapper"})
ENDS_TURN = frozenset({"empty", "refused"})
TOOL_BUDGET = 24


@dataclass(frozen=True, slots=True)
class Ask:
    """Get one reply from an agent and append it as `agent-replied`, before anything reads it."""

    role: AgentRole
    brief: PlanBrief | ExecutorBrief | VerifierBrief
    kind: AskKind
    round: int
    attempt: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Invoke:
    """Run tool calls of a reply (`reply`, by event id) and append a `tool-invoked` for each."""

    reply: Event
    calls: tuple[tuple[int, ToolCall], ...]
    round: int


@dataclass(frozen=True, slots=True)
class LookUp:
    """Find ids in other sessions, and records of full outputs that the agent was not shown."""

    ids: frozenset[str]
    records: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a LookUp gave."""

    foreign_ids: frozenset[str] = frozenset()
    resolved: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """What an Ask came to when there was no reply: the script ran out, or the agent failed."""

    role: AgentRole
    why: Literal["exhausted", "exhausted_round", "failed"]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """What the loop found out for a role before it decides."""

    tools: tuple[ToolSpec, ...] = ()
    found: Found | None = None
    missing: Missing | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave a foreign agent its time (seconds from the trigger's); append `then` if nothing has come by its end."""

    trigger: Event
    seconds: float
    then: list[Draft]

    def left(self, now: datetime) -> float:
        """Seconds left, never below zero. A clock that stands before the trigger counts as standing at it."""
        ends = datetime.fromisoformat(self.trigger.time) + timedelta(seconds=self.seconds)
        return min(max((ends - now).total_seconds(), 0.0), self.seconds)


Step = list[Draft] | Ask | Invoke | LookUp | Wait


Decide = Callable[[SessionState, Event, Given], Step]


@dataclass(frozen=True, slots=True)
class Role:
    """A role by name, the event types it reacts to, and how it decides.

    `as_of_trigger`: it is shown the state as of its trigger, so that half of a decision that a crash cut is
    made again word for word. Roles with an agent see the newest state: their progress stands in the log.
    """

    name: str
    triggers: frozenset[str]
    decide: Decide
    as_of_trigger: bool


def usable(draft: AnswerDrafted) -> bool:
    """Whether the answer may be used as structure (ruling 8)."""
    return draft.parse_status in USABLE


def external(turn: Turn) -> bool:
    """Whether a foreign agent plans, gathers and answers; gatekeeper, evaluator, verifier and router do their part."""
    return turn.question.owner == "external"


def evaluable(attempt: Attempt, options: TurnOptions) -> bool:
    """Whether the repair loop evaluates this attempt (ruling 11, EXE-3)."""
    return usable(attempt.draft) and attempt.number < options.max_attempts


def loop_end(rnd: Round, options: TurnOptions) -> Literal["exhausted", "not_repairable"] | None:
    """Why the round's repair loop ended by itself without acceptance; None where it did not (REP-6, ruling 11)."""
    if not rnd.attempts or options.max_attempts == 0:
        return None
    last = rnd.attempts[-1]
    if not usable(last.draft):
        return None
    if last.evaluation is None:
        return "exhausted" if last.number >= options.max_attempts else None
    if last.evaluation.decision == "exhausted":
        return "exhausted"
    return "not_repairable" if last.evaluation.decision == "not_repairable" else None


def gate_done(rnd: Round, options: TurnOptions) -> bool:
    """Whether the last attempt has been gated, scored and, where the loop does so, evaluated to an end."""
    if not rnd.attempts:
        return False
    last = rnd.attempts[-1]
    if last.gate is None or last.rules is None:
        return False
    if not evaluable(last, options):
        return True
    return last.evaluation is not None and last.evaluation.decision != "repair"


def ended_by_fallback(rnd: Round, options: TurnOptions) -> bool:
    """Whether policy `fallback` ends the turn here, without a judgement (REP-10, ruling 15)."""
    return options.on_exhausted == "fallback" and gate_done(rnd, options) and loop_end(rnd, options) is not None


def verifier_due(rnd: Round, options: TurnOptions) -> bool:
    """Whether the round waits for the Verifier."""
    return rnd.verification is None and gate_done(rnd, options) and not ended_by_fallback(rnd, options)


def current_round(turn: Turn) -> int:
    """The round that is not yet routed: the one that an end without judgement belongs to."""
    for rnd in turn.rounds:
        if rnd.routed is None:
            return rnd.number
    return len(turn.rounds) + 1


def judged_round(turn: Turn) -> Round | None:
    """The last round that has a judgement."""
    judged = [rnd for rnd in turn.rounds if rnd.verification is not None]
    return judged[-1] if judged else None


def answered_round(turn: Turn, number: int) -> Round:
    """The round whose answer counts for round `number`: itself, or the first where it borrowed (ruling 21)."""
    rnd = turn.round(number)
    return turn.round(1) if rnd.plan is not None and rnd.plan.borrowed else rnd


def replies(events: tuple[Event, ...]) -> tuple[AgentReplied, ...]:
    """The payloads of agent-replied events."""
    return tuple(e.data for e in events if isinstance(e.data, AgentReplied))


def retry_context(turn: Turn) -> dict[str, Any] | None:
    """What the second round is told of the first: gaps, failed rules, what was tried (ruling 13). None in round 1."""
    first = turn.round(1)
    if first.routed is None or first.routed.route != "extra_round" or first.verification is None:
        return None
    evaluation = first.verification.evaluation
    return {
        "critical_gaps": [
            f.fact for f in evaluation.facts_checked if f.is_critical and f.verification == "no_evidence"
        ],
        "failed_rules": list(evaluation.gatekeeper_result.failed_rules),
        "verdict": evaluation.effective_verdict,
        "score": evaluation.groundedness_score,
        "caps": [cap.reason for cap in evaluation.caps],
        "tried": [
            {"invocation_id": i.invocation_id, "tool_name": i.tool_name, "arguments": i.arguments, "status": i.status}
            for i in first.invocations
        ],
    }
