"""What a turn came to, as one JSON object: the output of `judge --json` and `ask --json` (spec/case-format.md)."""

from __future__ import annotations

from typing import Any

from handlers import flow
from streams.contract import Frozen
from streams.session import SessionState, Turn

EXIT_CODES = {"PASS": 0, "LOW_CONFID": 10, "REJECT": 20}


def turn_report(state: SessionState, turn: Turn) -> dict[str, Any]:
    """The turn's rounds, gate result, judgement, routes and response. Values never made are null (ruling 15)."""
    ended = bool(turn.judged and turn.rounds and turn.rounds[-1].verification is not None)
    rnd = turn.rounds[-1] if turn.rounds else None
    attempts = flow.answered_round(turn, rnd.number).attempts if rnd is not None else ()
    last = attempts[-1] if attempts else None
    evaluation = rnd.verification.evaluation if ended and rnd is not None and rnd.verification is not None else None
    routes = [r.routed.route for r in turn.rounds if r.routed is not None]
    return {
        "session": state.session,
        "turn": turn.number,
        "rounds": len(turn.rounds),
        "attempts": [len(r.attempts) for r in turn.rounds],
        "gatekeeper_result": _json(last.gate.result) if last is not None and last.gate is not None else None,
        "verifier_evaluation": _json(evaluation),
        "rule_evaluation": _json(last.rules.evaluation) if last is not None and last.rules is not None else None,
        "effective_verdict": evaluation.effective_verdict if evaluation is not None else None,
        "groundedness_score": evaluation.groundedness_score if evaluation is not None else None,
        "route": routes,
        "evaluations": [
            {"round": r.number, "attempt": a.number, **_json(a.evaluation.report), "decision": a.evaluation.decision}
            for r in turn.rounds
            for a in r.attempts
            if a.evaluation is not None
        ],
        "response": _response(turn),
        "self_evaluation": state.self_evaluation,
    }


def _json(value: Frozen | None) -> Any:
    return None if value is None else value.model_dump(mode="json")


def _response(turn: Turn) -> dict[str, Any] | None:
    if turn.answer is None:
        return None
    return {
        "kind": turn.answer.kind,
        "text": turn.answer.text,
        "citations": [c.model_dump(mode="json") for c in turn.answer.citations],
        "gaps": list(turn.answer.gaps),
        "missing_claims": list(turn.answer.missing_claims),
        "fallback_reason": turn.answer.fallback_reason,
    }


def exit_code(turn: Turn) -> int:
    """0 PASS, 10 LOW_CONFID, 20 REJECT or ended by policy `fallback`, 1 without judgement (design section 8)."""
    if not turn.judged or not turn.rounds:
        return 1
    rnd = turn.rounds[-1]
    if rnd.verification is None:
        return 20 if flow.ended_by_fallback(rnd, turn.question.options) else 1
    return EXIT_CODES[rnd.verification.evaluation.effective_verdict]
