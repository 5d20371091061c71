"""What changed in a session between two moments: events, evidence, facts, verdicts, channels. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streams.session import Attempt, SessionState

KINDS = ("evidence", "rules", "facts", "verdicts", "channels", "answers")


def difference(before: SessionState, after: SessionState) -> dict[str, Any]:
    """`{session, from, to, events, evidence, rules, facts, verdicts, channels, answers}`, in the order that was asked
    for; `events` are those between the two, gone again where the second moment is the earlier one."""
    old, new = _seen(before), _seen(after)
    earlier, later = sorted((before, after), key=lambda state: state.head.n)
    return {
        "session": after.session,
        "from": {"n": before.head.n, "time": before.head.time},
        "to": {"n": after.head.n, "time": after.head.time},
        "events": [
            {"n": e.n, "time": e.time, "type": e.type, "actor": e.actor} for e in later.events[earlier.head.n :]
        ],
        **{kind: _changes(old[kind], new[kind]) for kind in KINDS},
    }


def _seen(state: SessionState) -> dict[str, dict[str, Any]]:
    evidence, rules, facts, verdicts, answers = {}, {}, {}, {}, {}
    for turn in state.turns:
        for rnd in turn.rounds:
            place = f"turn {turn.number} round {rnd.number}"
            for call in rnd.invocations:
                refs = call.retrieval_details.evidence_refs if call.retrieval_details else None
                evidence[call.invocation_id] = {"tool": call.tool_name, "status": call.status, "refs": len(refs or ())}
            for attempt in rnd.attempts:
                for rule, claim, result in _results(attempt):
                    rules[f"{place} attempt {attempt.number}: {claim or 'answer'}: {rule}"] = result
            if rnd.verification is not None:
                e = rnd.verification.evaluation
                verdicts[place] = {"verdict": e.effective_verdict, "score": e.groundedness_score}
                for fact in e.facts_checked:
                    facts[f"{place}: {fact.claim_id or '-'}: {fact.fact}"] = fact.verification
        if turn.answer is not None:
            answers[f"turn {turn.number}"] = {"kind": turn.answer.kind, "reason": turn.answer.fallback_reason}
    latest: dict[str, Any] = {
        entry.channel: {"event": entry.n, "by": entry.actor, **({"who": entry.who} if entry.who else {})}
        for entry in state.channels
    }
    return {
        "evidence": evidence,
        "rules": rules,
        "facts": facts,
        "verdicts": verdicts,
        "channels": latest,
        "answers": answers,
    }


def _results(attempt: Attempt) -> Iterator[tuple[str, str | None, str]]:
    """Each rule that did not simply pass: (rule, claim, `failed`, `not run` or `warned`)."""
    if attempt.gate is None:
        return
    gate = attempt.gate.result
    for notices, result in ((gate.warnings, "warned"), (gate.errors, "not run"), (gate.failures, "failed")):
        yield from ((notice.rule, notice.claim_id, result) for notice in notices)


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    keys = [*old, *(key for key in new if key not in old)]
    return [{"what": key, "from": old.get(key), "to": new.get(key)} for key in keys if old.get(key) != new.get(key)]


def told(changed: dict[str, Any]) -> Iterator[str]:
    """The same in words."""
    back = changed["from"]["n"] > changed["to"]["n"]
    yield f"{changed['session']}: event {changed['from']['n']} {'back ' if back else ''}to {changed['to']['n']}"
    for event in changed["events"]:
        yield f"  {'-' if back else '+'} {event['n']:>3}  {event['time']}  {event['type']} by {event['actor']}"
    for kind in KINDS:
        for change in changed[kind]:
            yield f"  {kind}: {change['what']}: {_value(change['from'])} -> {_value(change['to'])}"
    if changed["from"]["n"] == changed["to"]["n"]:
        yield "  nothing changed"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
