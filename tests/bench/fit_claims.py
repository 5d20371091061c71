"""Fits the weights of `handlers/agents/lexical_support.py` on the tuning half and prints them.

Run: `python -m tests.bench.fit_claims`. Newton's method on a logistic loss, classes and groups weighted alike.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from handlers.agents import lexical_support
from tests.bench.claim_sets import Row, summedits, wice

PENALTY = 1.0


def fit(rows: list[Row]) -> NDArray[np.float64]:
    x = np.array([lexical_support.features(row.claim, row.evidence) for row in rows])
    y = np.array([float(row.supported) for row in rows])
    sizes = Counter((row.group, row.supported) for row in rows)
    weight = np.array([len(rows) / len(sizes) / sizes[row.group, row.supported] for row in rows])
    ridge = PENALTY * np.diag([1e-6, *[1.0] * (x.shape[1] - 1)])
    found = np.zeros(x.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (weight * (chance - y)) + ridge @ found
        bend = (x * (weight * chance * (1 - chance))[:, None]).T @ x + ridge
        step = np.linalg.solve(bend, slope)
        found = found - step
        if np.abs(step).max() < 1e-9:
            break
    return found


def main() -> None:
    for name, rows in (("DOCUMENT", summedits()), ("EXCERPTS", wice())):
        part = [row for row in rows or () if row.tuning]
        values = ", ".join(f"{value:.3f}" for value in fit(part))
        print(f"{name} = ({values})  # {len(part)} rows")


if __name__ == "__main__":
    main()
