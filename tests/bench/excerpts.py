"""Bars J1 and S5: the excerpt matcher on generated cases beside plainer ways to compare, and its time on 64 KiB refs."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from rapidfuzz import fuzz

from handlers.excerpts import match
from tests.bench.cases_excerpts import CLIPPED, SEED, Case, cases
from tests.bench.excerpt_texts import log_of
from tests.bench.honest_excerpts import HONEST
from tests.bench.tampered_excerpts import NEVER, TAMPERED

_TIMED = 2000
_REFS = 8
_REF_CHARS = 64 * 1024


def _accepts(case: Case) -> bool:
    """Accepted = severity none, with or without a warning."""
    found = match(case.excerpt, case.ref)
    return found.rule is None and not found.trivial


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


MATCHERS: dict[str, Callable[[Case], bool]] = {
    "verdictlog": _accepts,
    "in": lambda case: case.excerpt in case.ref,
    "casefold+spaces": lambda case: _folded(case.excerpt) in _folded(case.ref),
    "partial_ratio>=90": lambda case: fuzz.partial_ratio(case.excerpt, case.ref) >= 90,
    "partial_ratio>=95": lambda case: fuzz.partial_ratio(case.excerpt, case.ref) >= 95,
}


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def timings() -> dict[str, float]:
    """Milliseconds a check on 64 KiB refs whose normalised forms are remembered, and of a first touch. CPU time.

    One excerpt in five is tampered with, so that the search for the nearest miss is in the figures.
    """
    rng = random.Random(SEED)
    refs = [log_of(_REF_CHARS, SEED + n) for n in range(_REFS)]
    first: list[float] = []
    for ref in refs:
        began = time.process_time_ns()
        match(ref.splitlines()[40], ref)
        first.append((time.process_time_ns() - began) / 1e6)
    spent: list[float] = []
    failing: list[float] = []
    for n in range(_TIMED):
        ref = rng.choice(refs)
        line = rng.choice(ref.splitlines()[:-1])
        excerpt = " ".join(line.split(" ")[rng.randint(0, 4) :])
        if n % 5 == 0:
            excerpt = excerpt.replace("0", "7").replace("1", "4")
        began = time.process_time_ns()
        found = match(excerpt, ref)
        took = (time.process_time_ns() - began) / 1e6
        spent.append(took)
        if found.rule:
            failing.append(took)
    return {
        "p50_ms": round(_percentile(spent, 0.5), 4),
        "p99_ms": round(_percentile(spent, 0.99), 4),
        "failing_p50_ms": round(_percentile(failing, 0.5), 4),
        "failing_p99_ms": round(_percentile(failing, 0.99), 4),
        "first_touch_max_ms": round(max(first), 4),
    }


def run() -> dict[str, Any]:
    """Shares of accepted cases by class and matcher, the bars of J1 and whether they hold, and the timings of S5."""
    drawn = list(cases())
    accepted: dict[str, dict[str, float]] = {}
    for kind in (*HONEST, *TAMPERED, CLIPPED):
        of_kind = [case for case in drawn if case.kind == kind]
        accepted[kind] = {name: sum(map(accepts, of_kind)) / len(of_kind) for name, accepts in MATCHERS.items()}
    clipped = [match(case.excerpt, case.ref) for case in drawn if case.kind == CLIPPED]
    warned = sum("evidence.negation_clipped" in found.warnings for found in clipped) / len(clipped)
    total = {
        name: {
            "honest_accepted": sum(accepted[kind][name] for kind in HONEST) / len(HONEST),
            "tampered_refused": 1 - sum(accepted[kind][name] for kind in TAMPERED) / len(TAMPERED),
        }
        for name in MATCHERS
    }
    ours, times = total["verdictlog"], timings()
    return {
        "cases": len(drawn),
        "accepted": accepted,
        "total": total,
        "clipped_negation_warned": warned,
        "timings": times,
        "bars": {
            "J1 honest accepted >= 99 %": ours["honest_accepted"] >= 0.99,
            "J1 tampered refused >= 99.5 %": ours["tampered_refused"] >= 0.995,
            "J1 none accepted of the grave classes": all(accepted[kind]["verdictlog"] == 0 for kind in NEVER),
            "J1 clipped negation always warned": warned == 1,
            "S5 p50 < 0.2 ms, p99 < 5 ms": times["p50_ms"] < 0.2 and times["p99_ms"] < 5,
        },
    }


def main() -> None:
    figures = run()
    if "--json" in sys.argv:
        print(json.dumps(figures, ensure_ascii=False, indent=1))
        return
    names = list(MATCHERS)
    print(f"{figures['cases']} cases, accepted %".ljust(28), *(name.rjust(18) for name in names))
    for kind, by in figures["accepted"].items():
        mark = "tampered: " if kind in TAMPERED else ""
        print((mark + kind).ljust(28), *(f"{100 * by[name]:18.1f}" for name in names))
    for label in ("honest_accepted", "tampered_refused"):
        print(label.ljust(28), *(f"{100 * figures['total'][name][label]:18.1f}" for name in names))
    print("clipped negation warned", f"{100 * figures['clipped_negation_warned']:.1f} %", figures["timings"])
    for bar, holds in figures["bars"].items():
        print("holds " if holds else "MISSED", bar)


if __name__ == "__main__":
    main()
