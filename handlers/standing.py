"""How a foreign agent's turn stands: answered, waiting for a mended answer or for more evidence, or still at work."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from handlers import flow
from handlers.report import exit_code, turn_report
from streams.envelope import Event, iso
from streams.events import AnswerEvaluated, AnswerGiven, RoundRouted
from streams.session import SessionState, Turn


def standing(state: SessionState, now: datetime) -> dict[str, Any]:
    """The last turn of `state`, as the reply to `await`. Always `state`, `turn` and `n` (the session's last event).

    - `answered`: `response`, `effective_verdict`, `groundedness_score`, `route`, `failed_rules`, `exit_code`
    - `repair`: `round`, `attempt` (of the answer that may come), `repair_request`, `missing_claims`, `until`
    - `extra_round`: `round`, `retry_context`, `until`
    - `open`: nothing more
    """
    turn = state.turns[-1]
    said: dict[str, Any] = {"state": "open", "turn": turn.number, "n": state.head.n}
    if turn.answer is not None:
        report = turn_report(state, turn)
        gate = report["gatekeeper_result"] or {}
        kept = ("response", "effective_verdict", "groundedness_score", "route")
        answered = next(
            e.n for e in reversed(state.events) if e.turn == turn.number and isinstance(e.data, AnswerGiven)
        )
        return {
            **said,
            "state": "answered",
            "n": answered,
            **{key: report[key] for key in kept},
            "failed_rules": gate.get("failed_rules", []),
            "exit_code": exit_code(turn),
        }
    wait_s = turn.question.options.external_repair_wait_s
    if not flow.external(turn) or wait_s <= 0 or turn.failed is not None or turn.cancelled is not None:
        return said
    return {**said, **_wanted(state, turn, wait_s, now)}


def _wanted(state: SessionState, turn: Turn, wait_s: float, now: datetime) -> dict[str, Any]:
    rnd = turn.round(flow.current_round(turn))
    asked = _last(state, turn)
    if asked is None:
        return {}
    until = datetime.fromisoformat(asked.time) + timedelta(seconds=wait_s)
    if now >= until:
        return {}
    if isinstance(asked.data, AnswerEvaluated):
        return {
            "state": "repair",
            "round": rnd.number,
            "attempt": asked.attempt + 1,
            "repair_request": asked.data.report.repair_request,
            "missing_claims": list(asked.data.report.missing_claims),
            "until": iso(until),
        }
    return {
        "state": "extra_round",
        "round": rnd.number,
        "retry_context": flow.retry_context(turn),
        "until": iso(until),
    }


def _last(state: SessionState, turn: Turn) -> Event | None:
    """The event that asks the agent for something, if nothing has come since that answers it."""
    mine = [e for e in state.events if e.turn == turn.number]
    for event in reversed(mine):
        if event.type in {"answer-drafted", "plan-made"}:
            return None
        if isinstance(event.data, AnswerEvaluated):
            return event if event.data.decision == "repair" else None
        if isinstance(event.data, RoundRouted):
            return event if event.data.route == "extra_round" else None
    return None
