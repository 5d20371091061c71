"""`diff`: what changed from one moment of a session to another, in the order that was asked for."""

from __future__ import annotations

import asyncio
from typing import Any

from handlers.difference import KINDS, difference, told
from streams.session import SessionState
from tests.cases import example, long_case, tampered
from tests.play import play


def played(case: dict[str, Any]) -> SessionState:
    return asyncio.run(play(case))


def mended() -> SessionState:
    """A first answer with a wrong digit, a second without."""
    case = example()
    rnd = case["rounds"][0]
    rnd["repairs"] = [rnd["executor_output"]]
    rnd["executor_output"] = tampered(rnd["executor_output"])
    return played(case)


def place(state: SessionState, kind: str, which: int = 0) -> int:
    return [event.n for event in state.events if event.type == kind][which]


def test_what_the_gate_found_between_two_moments_is_told_rule_by_rule() -> None:
    state = mended()
    drafted = place(state, "answer-drafted")
    changed = difference(state.as_of(drafted), state.as_of(place(state, "gate-judged")))
    found = {change["what"]: (change["from"], change["to"]) for change in changed["rules"]}
    assert found["turn 1 round 1 attempt 0: c1: evidence.excerpt_mismatch"] == (None, "failed")
    assert found["turn 1 round 1 attempt 0: c1: claim.number_absent"] == (None, "failed")
    assert "  rules: turn 1 round 1 attempt 0: c1: evidence.excerpt_mismatch: none -> failed" in list(told(changed))


def test_evidence_facts_verdicts_and_answers_are_told() -> None:
    state = played(example())
    changed = difference(state.as_of(1), state)
    lines = list(told(changed))
    assert [e["n"] for e in changed["events"]] == list(range(2, state.head.n + 1))
    assert changed["evidence"] == [
        {"what": "101", "from": None, "to": {"tool": "query_metrics", "status": "success", "refs": 1}}
    ]
    assert "  verdicts: turn 1 round 1: none -> verdict PASS, score 1.0" in lines
    assert any(line.startswith("  facts: turn 1 round 1: c1: ") and line.endswith("direct_evidence") for line in lines)
    assert any(line.startswith("  answers: turn 1: none -> kind answer") for line in lines)
    assert changed["channels"]


def test_the_order_that_was_asked_for_is_kept() -> None:
    state = mended()
    forth = difference(state.as_of(3), state)
    back = difference(state, state.as_of(3))
    assert (back["from"], back["to"]) == (forth["to"], forth["from"])
    assert back["events"] == forth["events"]
    for kind in KINDS:
        swapped = [{"what": c["what"], "from": c["to"], "to": c["from"]} for c in forth[kind]]
        assert sorted(back[kind], key=lambda c: str(c["what"])) == sorted(swapped, key=lambda c: str(c["what"]))
    first, second, *_ = told(back)
    assert first == f"{state.session}: event {state.head.n} back to 3"
    assert second.startswith("  -   4  ")
    assert next(iter(told(forth))) == f"{state.session}: event 3 to {state.head.n}"


def test_between_a_moment_and_itself_nothing_changed() -> None:
    state = played(long_case())
    changed = difference(state, state)
    assert not any(changed[kind] for kind in (*KINDS, "events"))
    assert list(told(changed))[-1] == "  nothing changed"
