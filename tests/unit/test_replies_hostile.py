"""Replies that no honest model gives: never a PASS, never a crash, always a typed reason."""

from __future__ import annotations

import pytest

from tests.bench.hostile_replies import ANSWERS, VERDICT, VERDICTS, answered, fault, fuzz, verified


@pytest.mark.scenario("EXE-3")
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_hostile_answer_is_no_structure_and_never_passes(kind: str) -> None:
    reply, finish_reason, status = ANSWERS[kind]
    assert fault(answered(reply, finish_reason), status) is None


@pytest.mark.scenario("OUT-2")
@pytest.mark.parametrize("kind", VERDICTS)
def test_a_hostile_judgement_never_passes(kind: str) -> None:
    reply, finish_reason, status = VERDICTS[kind]
    assert fault(verified(reply, finish_reason), status) is None


def test_the_good_judgement_between_them_does_pass() -> None:
    assert verified(VERDICT, "stop").evaluation.effective_verdict == "PASS"


def test_mutated_replies_pass_only_where_they_say_so_in_strict_json() -> None:
    found = fuzz(1500)
    assert found["wrong"] == 0, found["examples"]
    assert found["passed"] > 0
    assert found["valid"] < found["rounds"]
