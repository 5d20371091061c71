"""The Evaluator: scores an attempt by rule, and decides whether the answer is mended or goes on."""

from __future__ import annotations

from typing import Final

from handlers import flow, repair, rules
from handlers.gating import contract_of
from streams.envelope import Draft, Event
from streams.events import AnswerEvaluated, GateJudged, RulesScored
from streams.session import SessionState

ROLE: Final = "evaluator"


def decide(state: SessionState, trigger: Event, _given: flow.Given) -> list[Draft]:
    """The `rule_evaluation` channel, and the report of an attempt that the repair loop evaluates."""
    assert isinstance(trigger.data, GateJudged)
    turn = state.turn(trigger.turn)
    rnd = turn.round(trigger.round)
    attempt = rnd.attempts[-1]
    gate = trigger.data.result
    contract = contract_of(attempt.draft)
    planned = rnd.plan.planned_tools if rnd.plan is not None else None
    scored = RulesScored(evaluation=rules.evaluate(contract, gate, planned, state.invocations))
    at = (ROLE, trigger.turn, trigger.round, trigger.attempt, trigger.id)
    drafts = [Draft(scored, *at)]
    options = turn.question.options
    if flow.evaluable(attempt, options) and contract is not None:
        given = repair.EvaluationInput(
            question=turn.question.question,
            lang=turn.question.lang,
            contract=contract,
            gate=gate,
            invocations=state.invocations,
            attempt=attempt.number,
            max_attempts=options.max_attempts,
            on_exhausted=options.on_exhausted,
            final_answer=attempt.draft.final_answer,
        )
        report = repair.report(given)
        drafts.append(Draft(AnswerEvaluated(report=report, decision=repair.decide(given, report)), *at))
    return drafts
