"""The Router: lets an answer out, marks it, asks for one more round, or withholds it; ends every turn with a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from handlers import flow, templates
from streams.contract import Verdict
from streams.envelope import Draft, Event
from streams.events import AnswerGiven, FallbackReason, RoundRouted, Route
from streams.session import SessionState, Turn

ROLE: Final = "router"
EXTRA_ROUND_BELOW = 0.5  # ROU-2, ROU-3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a round ends."""

    round: int
    route: Route
    verdict: Verdict | None
    score: float | None
    fallback_reason: FallbackReason | None
    reason: str


def decide(state: SessionState, trigger: Event, _given: flow.Given) -> list[Draft]:
    """The round's route, and the answer unless the route asks for one more round."""
    turn = state.turn(trigger.turn)
    outcome = outcome_of(turn, trigger)
    if outcome is None or turn.answer is not None:
        return []
    at = (ROLE, trigger.turn, outcome.round, trigger.attempt, trigger.id)
    routed = RoundRouted(
        effective_verdict=outcome.verdict, score=outcome.score, route=outcome.route, reason=outcome.reason
    )
    drafts = [Draft(routed, *at)]
    if outcome.route != "extra_round":
        response = templates.respond(turn, outcome.round, outcome.route, outcome.fallback_reason)
        drafts.append(Draft(AnswerGiven(**response), *at))
    return drafts


def outcome_of(turn: Turn, trigger: Event) -> Outcome | None:
    """How the round of `trigger` ends; None while it goes on."""
    if trigger.type in {"turn-failed", "turn-cancelled"}:
        number = flow.current_round(turn)
        return Outcome(number, "degraded", None, None, _failure(turn), f"ended without judgement: {_failure(turn)}")
    rnd = turn.round(trigger.round)
    if rnd.routed is not None:
        return None
    options = turn.question.options
    if trigger.type == "facts-verified":
        return _judged(turn, trigger.round)
    if flow.ended_by_fallback(rnd, options):
        why = f"policy fallback: the repair loop ended {flow.loop_end(rnd, options)}"
        return Outcome(trigger.round, "degraded", None, None, "evidence_insufficient", why)
    return None


def _failure(turn: Turn) -> FallbackReason:
    if turn.cancelled is not None:
        return "cancelled"
    assert turn.failed is not None
    return turn.failed.reason


def _judged(turn: Turn, number: int) -> Outcome | None:
    rnd = turn.round(number)
    if rnd.verification is None:
        return None
    evaluation = rnd.verification.evaluation
    verdict, score = evaluation.effective_verdict, evaluation.groundedness_score
    insufficient = flow.loop_end(flow.answered_round(turn, number), turn.question.options) is not None
    reason: FallbackReason | None = "evidence_insufficient" if insufficient else None
    if verdict == "PASS":
        return Outcome(number, "answer", verdict, score, None, "all critical facts are grounded")
    if verdict == "REJECT":
        return Outcome(number, "degraded", verdict, score, reason or "rejected", "rejected")
    if score >= EXTRA_ROUND_BELOW:
        return Outcome(number, "disclaimer", verdict, score, reason, f"marked: score {score:g}")
    if number < turn.question.options.max_rounds:
        return Outcome(number, "extra_round", verdict, score, None, f"score {score:g} is below {EXTRA_ROUND_BELOW:g}")
    return Outcome(number, "disclaimer", verdict, score, reason, "marked: the last round has ended")
