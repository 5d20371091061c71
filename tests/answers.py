"""Answers about payment-service's pool, gated, evaluated, judged and routed by the real pure roles, without a log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from handlers import flow, guards, repair, templates
from handlers.executor import answer_of
from handlers.gatekeeper import GateInput
from handlers.gatekeeper import judge as gate
from handlers.gating import contract_of, prose_of
from handlers.judgement import JudgementInput, judge
from handlers.replies import parse_answer, parse_verdict
from handlers.trace import summarise
from streams.contract import Contract, EvidenceRef, GateResult, RetrievalDetails, Verification
from streams.envelope import Draft, stamp
from streams.events import (
    AnswerDrafted,
    AnswerEvaluated,
    FactsVerified,
    GateJudged,
    Payload,
    QuestionAsked,
    ToolInvoked,
    TurnOptions,
)
from streams.session import SessionState, Turn, evolve, initial

BEGAN = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)
TIMEOUT = "ledger-db call: time-out after 3s"
RETRIES = "retry policy of the ledger client: at most 2 retries"
POOL = "HikariPool-1 active=20 max=20 waiting=37"

NO_LOOP = TurnOptions(max_attempts=0)


def call(invocation_id: str, *texts: str, tool: str = "query_logs", **changes: Any) -> ToolInvoked:
    """A successful call whose records are `lines[0]`, `lines[1]`, ..."""
    refs = tuple(EvidenceRef(raw_path=f"lines[{i}]", text=text) for i, text in enumerate(texts))
    details = RetrievalDetails(evidence_refs=refs, matched=len(refs), returned=len(refs))
    given = {"arguments": {"q": "ledger"}, "retrieval_details": details, **changes}
    return ToolInvoked(invocation_id=invocation_id, tool_name=tool, **given)


CALLS = (call("101", TIMEOUT, RETRIES, POOL),)


def claim(claim_id: str, text: str, quote: str | None, path: str = "lines[0]", **changes: Any) -> dict[str, Any]:
    """A claim bound to call 101; `quote` None: without a binding."""
    bound = {"tool_name": "query_logs", "source_invocation_id": "101", "raw_path": path, "evidence_excerpt": quote}
    given = {
        "claim_id": claim_id,
        "claim_type": "observation",
        "claim_text": text,
        "support_level": "direct",
        "evidence_bindings": [bound] if quote is not None else [],
    }
    return given | changes


def answer(*claims: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"answer_version": "executor_evidence_v2", "claims": list(claims)} | changes


def fact(text: str, label: str = "direct_evidence", claim_id: str | None = None, **changes: Any) -> dict[str, Any]:
    given = {
        "fact": text,
        "is_critical": True,
        "verification": label,
        "detail": "",
        "evidence_refs": ["trace-101"],
        **changes,
    }
    return given | ({"claim_id": claim_id} if claim_id is not None else {})


def gated(question: str, draft: AnswerDrafted, calls: Sequence[ToolInvoked]) -> GateResult:
    contract = contract_of(draft)
    given = GateInput(
        question=question,
        parse_status=draft.parse_status,
        contract=contract,
        prose=prose_of(draft, contract),
        invocations=tuple(calls),
    )
    return gate(given)


def evaluation_of(
    question: str, said: dict[str, Any], calls: Sequence[ToolInvoked] = CALLS, lang: str = "en"
) -> repair.EvaluationInput:
    """An attempt as the Evaluator sees it, behind the real parser and gate."""
    draft = answer_of(parse_answer(json.dumps(said)), None)
    contract = contract_of(draft)
    assert contract is not None, draft.parse_error
    return repair.EvaluationInput(
        question=question,
        lang=lang,
        contract=contract,
        gate=gated(question, draft, calls),
        invocations=tuple(calls),
        attempt=0,
        max_attempts=2,
        on_exhausted="cap",
        final_answer=draft.final_answer,
    )


def evaluated(
    question: str, said: dict[str, Any], calls: Sequence[ToolInvoked] = CALLS, lang: str = "en"
) -> tuple[Verification, str]:
    """The report of an attempt, and the decision that follows."""
    given = evaluation_of(question, said, calls, lang)
    found = repair.report(given)
    return found, repair.decide(given, found)


def turn_of(
    question: str,
    said: dict[str, Any] | str | None,
    facts: Iterable[dict[str, Any]] | None,
    calls: Sequence[ToolInvoked] = CALLS,
    lang: str = "en",
    options: TurnOptions = NO_LOOP,
    verdict: str = "PASS",
) -> Turn:
    """A turn of one round with one attempt: drafted, gated, evaluated if the options ask for it, judged on `facts`.

    `said` None: no answer was drafted. `facts` None: no judgement was made.
    """
    state = initial("e2603-answers")
    state = _with(state, QuestionAsked(question=question, lang=lang, options=options), "intake", 0)
    for place, invocation in enumerate(calls):
        state = _with(state, invocation, "executor", 1, ordinal=place)
    if said is not None:
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        draft = answer_of(parse_answer(text), None, text)
        state = _with(state, draft, "executor", 1)
        state = _with(state, GateJudged(result=gated(question, draft, calls)), "gatekeeper", 1)
        contract = contract_of(draft)
        attempt = state.turn(1).round(1).attempts[-1]
        if contract is not None and flow.evaluable(attempt, options):
            given = evaluation_of(question, contract.model_dump(mode="json"), calls, lang)
            found = repair.report(given)
            decision = repair.decide(given, found)
            state = _with(state, AnswerEvaluated(report=found, decision=decision), "evaluator", 1)
            if decision == "repair":
                state = _with(state, AnswerEvaluated(report=found, decision="exhausted"), "executor", 1, ordinal=9)
        if facts is not None:
            state = _with(state, _judged(state, contract, list(facts), verdict), "verifier", 1)
    return state.turn(1)


def _judged(state: SessionState, contract: Contract | None, facts: list[dict[str, Any]], verdict: str) -> FactsVerified:
    turn = state.turn(1)
    rnd = turn.round(1)
    attempt = rnd.attempts[-1]
    assert attempt.gate is not None
    ended = flow.loop_end(rnd, turn.question.options)
    extra = guards.extra_facts(contract, turn.question.question) if contract is not None else ()
    rests_on = JudgementInput(
        question=turn.question.question,
        lang=turn.question.lang,
        contract=contract,
        parse_status=attempt.draft.parse_status,
        final_answer=attempt.draft.final_answer,
        structured=attempt.draft.structured,
        gate=attempt.gate.result,
        trace=summarise([rnd.invocations]),
        missing_claims=attempt.evaluations[-1].report.missing_claims if ended else (),
        extra_facts=tuple(e.text for e in extra if e.status == "extra"),
        repair_reason=ended,
    )
    reply = json.dumps({"verdict": verdict, "facts_checked": facts, "rationale": "checked"})
    return FactsVerified(input={}, evaluation=judge(rests_on, parse_verdict(reply)))


def _with(state: SessionState, payload: Payload, actor: str, rnd: int, ordinal: int = 0) -> SessionState:
    draft = Draft(payload, actor, turn=1, round=rnd, cause=state.head.hash[:8], ordinal=ordinal)
    return evolve(state, stamp(state.session, state.head, draft, BEGAN))


def respond(turn: Turn, route: Any, reason: Any = None) -> templates.Response:
    return templates.respond(turn, 1, route, reason)
