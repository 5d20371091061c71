"""A session told: as one JSON object, and as text. Pure functions of the fold, so the same events give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from handlers import parked
from handlers.cli.live import describe
from handlers.cli.main import one_line, visible
from handlers.reasons import SCORE_NOTE, cap_told
from handlers.report import turn_report
from streams.contract import Fact, GateResult
from streams.events import TextErased, ToolInvoked
from streams.session import Parked, Round, SessionState, Turn


def session_object(state: SessionState) -> dict[str, Any]:
    """`{session, n, time, hash, turns: [{question, lang, asked_at, open, ...report}], self_evaluation, channels, events}`.

    `channels` is the history: which event gave each channel a value, and who wrote it. `text` says how text can be read:
    `open`, `sealed` (the key is here), `hidden` (it is not), `erased` (`erasure`: time, who, why).
    """
    return {
        "session": state.session,
        "n": state.head.n,
        "time": state.head.time,
        "hash": state.head.hash,
        "origin": state.origin.model_dump(mode="json") if state.origin else None,
        "text": _text(state),
        "erasure": _erasure(state),
        "turns": [_turn_object(state, turn) for turn in state.turns],
        "self_evaluation": state.self_evaluation,
        "channels": [
            {"channel": c.channel, "n": c.n, "time": c.time, "actor": c.actor, "who": c.who or None}
            for c in state.channels
        ],
        "events": [
            {
                "n": e.n,
                "seq": e.seq,
                "time": e.time,
                "type": e.type,
                "actor": e.actor,
                "turn": e.turn,
                "round": e.round,
                "attempt": e.attempt,
                "id": e.id,
                "cause": e.cause,
                "hash": e.hash,
                "told": describe(e),
            }
            for e in state.events
        ],
    }


def _text(state: SessionState) -> str:
    if state.erased:
        return "erased"
    return "hidden" if state.hidden else "sealed" if state.head.sealed else "open"


def _erasure(state: SessionState) -> dict[str, Any] | None:
    erased = next((event for event in state.events if isinstance(event.data, TextErased)), None)
    return None if erased is None else {"time": erased.time, **erased.data.model_dump(mode="json")}


def _turn_object(state: SessionState, turn: Turn) -> dict[str, Any]:
    head = {
        "question": turn.question.question,
        "lang": turn.question.lang,
        "asked_at": turn.asked.time,
        "open": turn.open,
        "invocations": [_invocation(i) for rnd in turn.rounds for i in rnd.invocations],
    }
    report = turn_report(state, turn)
    del report["session"], report["self_evaluation"]
    return {**head, **report, "parked": [parked_object(entry) for entry in parked.entries(state, turn.number)]}


def parked_object(entry: Parked) -> dict[str, Any]:
    """`{event_id, session, turn, n, time, consumer, parked_event_id, error, deliveries, open, resolution}`.

    `event_id` is the entry's own, which `parked retry` and `parked dismiss` take; `parked_event_id` the event that could
    not be handled; `resolution` null or `{action, who, why, new_turn, n, time}`.
    """
    data, closed = entry.data, entry.resolution
    return {
        "event_id": entry.event.id,
        "session": entry.event.session,
        "turn": entry.event.turn,
        "n": entry.event.n,
        "time": entry.event.time,
        "consumer": data.consumer,
        "parked_event_id": data.event_id,
        "error": data.error,
        "deliveries": data.deliveries,
        "open": entry.open,
        "resolution": None
        if closed is None
        else {
            **closed.data.model_dump(mode="json", include={"action", "who", "why", "new_turn"}),
            "n": closed.n,
            "time": closed.time,
        },
    }


def _invocation(call: ToolInvoked) -> dict[str, Any]:
    details = call.retrieval_details
    return {
        "invocation_id": call.invocation_id,
        "tool_name": call.tool_name,
        "arguments": call.arguments,
        "status": call.status,
        "evidence_kind": call.evidence_kind,
        "error": call.error,
        "matched": details.matched if details else None,
        "returned": details.returned if details else None,
        "evidence_refs": [
            r.model_dump(mode="json", exclude_none=True) for r in (details.evidence_refs if details else None) or ()
        ],
    }


def session_text(state: SessionState) -> str:
    """The session in words, for a terminal: nothing in it is obeyed as a control character."""
    return "\n".join(_session(state))


def _session(state: SessionState) -> Iterator[str]:
    yield f"session {state.session}, {state.head.n} events, as of {state.head.time}"
    if state.origin:
        yield f"forked from {state.origin.origin_session} at event {state.origin.origin_n}: {one_line(state.origin.why)}"
    erasure = _erasure(state)
    if erasure is not None:
        yield one_line(f"text erased at {erasure['time']} by {erasure['who']}: {erasure['why']}")
    elif state.hidden:
        yield "its text is sealed, and the key is not here"
    for turn in state.turns:
        yield ""
        yield f"turn {turn.number}  {turn.asked.time}  {one_line(turn.question.question)}"
        for rnd in turn.rounds:
            yield from _round(rnd)
        for entry in parked.entries(state, turn.number):
            yield f"  parked: {describe(entry.event)}"
            yield f"    {one_line(parked.told(entry))}"
        if turn.answer is not None:
            yield ""
            yield visible(turn.answer.text)
            for citation in turn.answer.citations:
                yield f"    {one_line(citation.claim_id)} <- {one_line(citation.source_invocation_id)} {one_line(citation.raw_path)}: {one_line(citation.excerpt)}"
        else:
            yield "  (no answer yet)"
    yield ""
    yield "events"
    for event in state.events:
        yield f"  {event.n:>3}  {event.time}  {event.type:<17} {describe(event)}"


def _round(rnd: Round) -> Iterator[str]:
    yield f"  round {rnd.number}" + (f"  plan: {one_line(rnd.plan.note)}" if rnd.plan and rnd.plan.note else "")
    for call in rnd.invocations:
        details = call.retrieval_details
        shown = (
            f"{details.returned} of {details.matched} lines" if details and details.matched is not None else call.status
        )
        yield f"    {one_line(call.invocation_id):<10} {one_line(call.tool_name)} {one_line(json.dumps(call.arguments, ensure_ascii=False, default=str))}  {call.status}, {shown}"
    for attempt in rnd.attempts:
        yield f"    attempt {attempt.number}: {attempt.draft.parse_status}"
        if attempt.gate is not None:
            yield from _gate(attempt.gate.result)
        if attempt.evaluation is not None:
            yield f"      loop: {attempt.evaluation.decision}, coverage {attempt.evaluation.report.coverage:.2f}"
    if rnd.verification is not None:
        e = rnd.verification.evaluation
        note = f" ({SCORE_NOTE})" if e.effective_verdict != e.derived_verdict else ""
        yield f"    verdict {e.effective_verdict} (derived {e.derived_verdict}, model {e.model_verdict or 'none'}), score {e.groundedness_score:g}{note}"
        for cap in e.caps:
            yield f"      capped at {cap.cap} by {cap.source}: {one_line(cap_told(cap.model_dump()))}"
        for fact in e.facts_checked:
            yield _fact(fact)
    if rnd.routed is not None:
        yield f"    route {rnd.routed.route}: {one_line(rnd.routed.reason)}"


def _gate(result: GateResult) -> Iterator[str]:
    yield f"      gate {result.status}, severity {result.severity}"
    for binding in result.checked_bindings:
        where = f"{one_line(binding.source_invocation_id or '-')} {one_line(binding.raw_path or '-')}"
        found = (
            f"{binding.tier}: {one_line(binding.text or '')[:120]}" if binding.text else ", ".join(binding.failed_rules)
        )
        yield f"        {binding.status:<7} {binding.claim_id}[{binding.index}] -> {where}  {found}"
    for failure in result.failures:
        yield f"        {failure.rule}: {one_line(failure.message)}"


def _fact(fact: Fact) -> str:
    mark = "critical" if fact.is_critical else "minor"
    return f"      {fact.verification:<16} {mark:<8} [{fact.claim_id or '-'}] {one_line(fact.fact)[:160]}"
