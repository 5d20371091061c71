"""Bar J3: every verdict that can be, against a table written from the rules' prose, and monotone.

`reference` below is on purpose not built from the product's functions: plain ranks and fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

from handlers.judgement import judge
from handlers.replies import parse_verdict
from handlers.verdicts import BORROWED, caps_for, derive, effective, score
from streams.contract import Fact, GateResult
from tests.pool_case import contract, fact, rests_on, text, verdict

LABELS = ("direct_evidence", "indirect_support", "no_evidence", "contradicted")
SEVERITIES = ("none", "low_confid", "reject")
REPAIRS = (None, "exhausted")
PARSES = ("valid", "repaired_wrapper", "malformed", "truncated", "refused", "empty")
# null: the Verifier's reply was malformed for good.
MODELS = ("PASS", "LOW_CONFID", "REJECT", None)
ROUNDS = ("first", "second", "borrowed")
RANKS = ("PASS", "LOW_CONFID", "REJECT")


@dataclass(frozen=True)
class Point:
    """One cell of the table."""

    labels: tuple[str, ...]
    severity: str
    repair: str | None
    parse: str
    model: str | None
    round: str


@dataclass(frozen=True)
class Outcome:
    derived: int
    effective: int
    score: float


def reference(point: Point) -> Outcome:
    """The rules in prose. VER: contradicted rejects; any gap, or nothing direct, is low; else it passes."""
    n = {label: point.labels.count(label) for label in LABELS}
    if n["contradicted"]:
        derived = 2
    elif n["no_evidence"]:
        derived = 1
    elif n["direct_evidence"]:
        derived = 0
    else:
        derived = 1
    mean = Fraction(0)
    if point.labels and not n["contradicted"]:
        mean = (n["direct_evidence"] + n["indirect_support"] * Fraction(3, 5)) / len(point.labels)
    exact = Decimal(mean.numerator) / Decimal(mean.denominator)
    bounds = [derived, SEVERITIES.index(point.severity)]
    bounds += [1] * (point.repair is not None)
    bounds += [1] * (point.parse not in ("valid", "repaired_wrapper"))
    bounds += [1] if point.model is None else [RANKS.index(point.model)]
    bounds += [1] * (point.round == "borrowed")
    return Outcome(derived, max(bounds), float(exact.quantize(Decimal("0.0001"), ROUND_HALF_EVEN)))


def product_outcome(point: Point) -> Outcome:
    """What the algebra says."""
    facts = _facts(point.labels)
    derived = derive(facts)
    caps = caps_for(
        _gate(point.severity),
        point.repair,
        point.parse,
        "malformed" if point.model is None else "valid",
    )
    caps += (BORROWED,) * (point.round == "borrowed")
    return Outcome(RANKS.index(derived), RANKS.index(effective(derived, point.model, caps)), score(facts))


def judged_outcome(point: Point) -> Outcome:
    """What the whole judgement says, from the model's reply as text to the evaluation."""
    said = [fact(f"statement {k} about the pool", label) for k, label in enumerate(point.labels)]
    noise = [fact(f"aside {k}", label, is_critical=False) for k, label in enumerate(LABELS)]
    given = rests_on(
        text(contract([])), gate=_gate(point.severity), parse_status=point.parse, repair_reason=point.repair
    )
    evaluation = judge(given, parse_verdict(text(verdict([*said, *noise], point.model or "PASS"))))
    derived, counts = evaluation.derived_verdict, evaluation.effective_verdict
    return Outcome(RANKS.index(derived), RANKS.index(counts), evaluation.groundedness_score)


def multisets(most: int = 6) -> Iterator[tuple[str, ...]]:
    for size in range(most + 1):
        yield from combinations_with_replacement(LABELS, size)


def points(labels: Sequence[tuple[str, ...]]) -> Iterator[Point]:
    for cell in product(labels, SEVERITIES, REPAIRS, PARSES, MODELS, ROUNDS):
        yield Point(*cell)


def worse(point: Point) -> Iterator[Point]:
    """Every point that is one step worse in one input."""
    for k, label in enumerate(point.labels):
        if label != LABELS[-1]:
            step = LABELS[LABELS.index(label) + 1]
            yield _with(point, labels=(*point.labels[:k], step, *point.labels[k + 1 :]))
    if point.severity != SEVERITIES[-1]:
        yield _with(point, severity=SEVERITIES[SEVERITIES.index(point.severity) + 1])
    if point.repair is None:
        yield _with(point, repair="exhausted")
    if point.parse in PARSES[:2]:
        yield _with(point, parse="malformed")
    if point.model == "PASS":
        yield _with(point, model="LOW_CONFID")
        yield _with(point, model=None)
    if point.model == "LOW_CONFID":
        yield _with(point, model="REJECT")
    if point.round != "borrowed":
        yield _with(point, round="borrowed")


def run() -> dict[str, Any]:
    """Every point through the algebra, those of a valid reply in a first round through the whole judgement."""
    wrong: list[Point] = []
    cells = steps = judged = better = 0
    outcomes: dict[Point, Outcome] = {}
    for point in points(tuple(multisets())):
        cells += 1
        outcomes[point] = product_outcome(point)
        if outcomes[point] != reference(point):
            wrong.append(point)
        if point.model is not None and point.round == "first" and point.parse in ("valid", "malformed"):
            judged += 1
            if judged_outcome(point) != reference(point):
                wrong.append(point)
    for point, outcome in outcomes.items():
        for step in worse(point):
            steps += 1
            after = outcomes[_with(step, labels=tuple(sorted(step.labels, key=LABELS.index)))]
            better += after.effective < outcome.effective or after.derived < outcome.derived
    return {
        "bar": "J3",
        "cells": cells,
        "judged_whole": judged,
        "differ_from_reference": len(wrong),
        "steps": steps,
        "made_better_by_a_worse_input": better,
        "ok": not wrong and not better,
    }


def _facts(labels: Sequence[str]) -> list[Fact]:
    asides = [Fact(fact="aside", is_critical=False, verification=label) for label in LABELS]
    return [Fact(fact="x", is_critical=True, verification=label) for label in labels] + asides


def _gate(severity: str) -> GateResult:
    return GateResult(status="pass" if severity == "none" else "fail", severity=severity)


def _with(point: Point, **changes: Any) -> Point:
    return Point(**{**point.__dict__, **changes})
