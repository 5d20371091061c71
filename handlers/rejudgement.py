"""What judging a turn again would change: verdict from, to, because. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from handlers import flow
from streams.contract import Fact, Label
from streams.events import AgentReplied
from streams.session import Attempt, Turn

LABELS: tuple[Label, ...] = ("direct_evidence", "indirect_support", "no_evidence", "contradicted")


def compared(old: Turn, new: Turn) -> dict[str, Any]:
    """`{turn, question, from, to, changed, because}`; `from` and `to`: `{verdict, score, route, ended, verifier}`.

    `because` has one sentence for each failed rule, cap and label that differ. Who judged (`verifier`, a model's name)
    is no change by itself.
    """
    before, after = _outcome(old), _outcome(new)
    because = [*_because(old, new)]
    same = all(before[key] == after[key] for key in before if key != "verifier")
    return {
        "turn": old.number,
        "question": old.question.question,
        "from": before,
        "to": after,
        "changed": not same or bool(because),
        "because": because,
    }


def _outcome(turn: Turn) -> dict[str, Any]:
    rnd = turn.rounds[-1] if turn.rounds else None
    judged = rnd.verification.evaluation if rnd is not None and rnd.verification is not None else None
    asked = [e.data.model for r in turn.rounds for e in r.replies_of("verifier") if isinstance(e.data, AgentReplied)]
    return {
        "verdict": judged.effective_verdict if judged is not None else None,
        "score": judged.groundedness_score if judged is not None else None,
        "route": [r.routed.route for r in turn.rounds if r.routed is not None],
        "ended": turn.answer.fallback_reason if turn.answer is not None else None,
        "verifier": asked[-1] if asked else None,
    }


def _because(old: Turn, new: Turn) -> Iterator[str]:
    before, after = _rules(old), _rules(new)
    yield from (f"{rule} fails now" for rule in sorted(after - before))
    yield from (f"{rule} does not fail any more" for rule in sorted(before - after))
    before, after = _caps(old), _caps(new)
    yield from (f"capped now: {cap}" for cap in sorted(after - before))
    yield from (f"not capped any more: {cap}" for cap in sorted(before - after))
    was, now = _labels(old, new)
    for fact in [*was, *(fact for fact in now if fact not in was)]:
        if was.get(fact) != now.get(fact):
            yield f"{fact}: {was.get(fact) or 'no fact'} -> {now.get(fact) or 'no fact'}"
    was, now = _loops(old), _loops(new)
    for place in [*was, *(place for place in now if place not in was)]:
        if was.get(place) != now.get(place):
            yield f"{place}: {was.get(place) or 'not evaluated'} -> {now.get(place) or 'not evaluated'}"


def _last(turn: Turn) -> Attempt | None:
    attempts = flow.answered_round(turn, len(turn.rounds)).attempts if turn.rounds else ()
    return attempts[-1] if attempts else None


def _rules(turn: Turn) -> set[str]:
    last = _last(turn)
    return set(last.gate.result.failed_rules) if last is not None and last.gate is not None else set()


def _caps(turn: Turn) -> set[str]:
    rnd = turn.rounds[-1] if turn.rounds else None
    caps = rnd.verification.evaluation.caps if rnd is not None and rnd.verification is not None else ()
    return {f"{cap.cap} ({cap.source})" for cap in caps}


def _labels(old: Turn, new: Turn) -> tuple[dict[str, str], dict[str, str]]:
    """Labels of either side. A Verifier that is asked anew words its facts anew: what one side alone has is compared
    by the worst label of its claim."""
    before, after = _facts(old), _facts(new)
    shared = {(fact.claim_id, fact.fact) for fact in before} & {(fact.claim_id, fact.fact) for fact in after}
    return _by_place(before, shared), _by_place(after, shared)


def _by_place(facts: Iterable[Fact], shared: set[tuple[str | None, str]]) -> dict[str, str]:
    worst: dict[str, Fact] = {}
    for fact in facts:
        whole = fact.claim_id is None or (fact.claim_id, fact.fact) in shared
        place = f"{fact.claim_id or '-'}: {fact.fact}" if whole else f"{fact.claim_id}"
        held = worst.get(place)
        if held is None or _weight(fact) > _weight(held):
            worst[place] = fact
    return {place: f"{'critical ' if fact.is_critical else ''}{fact.verification}" for place, fact in worst.items()}


def _weight(fact: Fact) -> tuple[bool, int]:
    return fact.is_critical, LABELS.index(fact.verification)


def _facts(turn: Turn) -> tuple[Fact, ...]:
    rnd = turn.rounds[-1] if turn.rounds else None
    return rnd.verification.evaluation.facts_checked if rnd is not None and rnd.verification is not None else ()


def _loops(turn: Turn) -> dict[str, str]:
    return {
        f"round {rnd.number} attempt {attempt.number}": attempt.evaluation.decision
        for rnd in turn.rounds
        for attempt in rnd.attempts
        if attempt.evaluation is not None
    }


def told(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The table in words: a line for each turn, and below it why."""
    for row in rows:
        place = f"{row['session']} turn {row['turn']}"
        if row["skipped"]:
            yield f"{place}  not judged again: {row['skipped']}"
            continue
        mark = "CHANGES" if row["changed"] else "same"
        yield f"{place}  {mark:<7}  {_value(row['from'])} -> {_value(row['to'])}"
        yield from (f"    {why}" for why in row["because"])
        if row.get("branch"):
            yield f"    branch: {row['branch']}"


def _value(outcome: dict[str, Any]) -> str:
    score = "" if outcome["score"] is None else f" {outcome['score']:.2f}"
    route = outcome["route"][-1] if outcome["route"] else "no route"
    return f"{outcome['verdict'] or 'no verdict'}{score} ({outcome['ended'] or route})"
