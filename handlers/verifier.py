"""The Verifier: asks for one judgement of the facts, and records it with every bound the runtime puts on it."""

from __future__ import annotations

from typing import Final

from handlers import flow, guards
from handlers.agents.protocol import VerifierBrief
from handlers.gating import contract_of
from handlers.judgement import JudgementInput, judge, verifier_input
from handlers.replies import ParsedVerdict, parse_verdict
from handlers.trace import summarise
from handlers.verdicts import BORROWED, worst
from streams.contract import Contract, GateResult, TraceItem, VerifierEvaluation
from streams.envelope import Draft, Event
from streams.events import AgentReplied, FactsVerified, TurnFailed
from streams.session import Attempt, Round, SessionState, Turn

ROLE: Final = "verifier"


def decide(state: SessionState, trigger: Event, given: flow.Given) -> flow.Step:
    """The judgement of a round, once its repair loop has ended."""
    turn = state.turn(trigger.turn)
    rnd = turn.round(trigger.round)
    if rnd.plan is not None and rnd.plan.borrowed and rnd.verification is None:
        return _borrow(turn, trigger)
    if not flow.verifier_due(rnd, turn.question.options):
        return []
    attempt = rnd.attempts[-1]
    rests_on = _rests_on(turn, rnd, attempt)
    asked = verifier_input(rests_on, flow.retry_context(turn) if rnd.number > 1 else None)
    missing = given.missing
    replied = rnd.replies_of(ROLE)
    if missing is not None and missing.why == "failed":
        failed = TurnFailed(reason="agent_failed", detail=f"verifier: {missing.detail}")
        return [Draft(failed, ROLE, trigger.turn, trigger.round, attempt.number, trigger.id)]
    parsed = ParsedVerdict(status="malformed", error="no reply was given")
    if replied:
        last = replied[-1].data
        assert isinstance(last, AgentReplied)
        parsed = parse_verdict(last.text, last.finish_reason)
    if missing is None and (not replied or (parsed.status == "malformed" and len(replied) < 2)):
        brief = VerifierBrief(
            input=asked,
            lang=turn.question.lang,
            round=trigger.round,
            nonce=turn.asked.hash[:16],
            deadline_s=turn.question.deadline_s,
            reask=parsed.error if replied else None,
            replies=flow.replies(replied),
        )
        return flow.Ask(ROLE, brief, "reask" if replied else "first", trigger.round, attempt.number, len(replied))
    verified = FactsVerified(
        input=asked,
        reply_event=replied[-1].id if replied else None,
        evaluation=judge(rests_on, parsed),
    )
    return [Draft(verified, ROLE, trigger.turn, trigger.round, attempt.number, _cause(rnd, trigger))]


def _cause(rnd: Round, trigger: Event) -> str:
    # Two triggers may come to the same judgement (scored, evaluated): the draft's id must not depend on which.
    return rnd.attempts[-1].draft_event.id if rnd.attempts else trigger.id


def _rests_on(turn: Turn, rnd: Round, attempt: Attempt) -> JudgementInput:
    contract = contract_of(attempt.draft)
    ended = flow.loop_end(rnd, turn.question.options)
    return JudgementInput(
        question=turn.question.question,
        lang=turn.question.lang,
        contract=contract,
        parse_status=attempt.draft.parse_status,
        final_answer=attempt.draft.final_answer,
        structured=attempt.draft.structured,
        gate=_gate(attempt),
        trace=_trace(turn, rnd.number),
        missing_claims=_missing(rnd) if ended else (),
        extra_facts=_extra(contract, turn.question.question),
        repair_reason=ended,
        found=turn.question.options.found_bindings or attempt.draft.found,
    )


def _gate(attempt: Attempt) -> GateResult:
    assert attempt.gate is not None
    return attempt.gate.result


def _trace(turn: Turn, upto_round: int) -> tuple[TraceItem, ...]:
    earlier = [rnd.invocations for rnd in turn.rounds if rnd.number <= upto_round]
    return summarise(earlier)


def _missing(rnd: Round) -> tuple[str, ...]:
    reports = [e.report for a in rnd.attempts for e in a.evaluations]
    return reports[-1].missing_claims if reports else ()


def _extra(contract: Contract | None, question: str) -> tuple[str, ...]:
    if contract is None:
        return ()
    return tuple(found.text for found in guards.extra_facts(contract, question) if found.status == "extra")


def _borrow(turn: Turn, trigger: Event) -> list[Draft]:
    first = turn.round(1)
    assert first.verification is not None
    evaluation = first.verification.evaluation
    effective = worst(evaluation.effective_verdict, BORROWED.cap)
    borrowed: VerifierEvaluation = evaluation.model_copy(
        update={"caps": (*evaluation.caps, BORROWED), "effective_verdict": effective, "verdict": effective}
    )
    verified = FactsVerified(input={"borrowed_from_round": 1}, evaluation=borrowed)
    return [Draft(verified, ROLE, trigger.turn, trigger.round, 0, trigger.id)]
