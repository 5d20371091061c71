"""Numbers that look random and are the same on every machine.

Built on `Random.random()` alone: it is the one method whose sequence Python promises to keep for a given seed,
and the recorded answers quote values that were drawn here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator


class Chance:
    """A seeded source; each stream of records has its own, so that one never shifts another."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed).random  # noqa: S311 - no secret depends on it

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._draw()

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int((high - low + 1) * self._draw())

    def happens(self, probability: float) -> bool:
        return self._draw() < probability

    def hex(self, digits: int) -> str:
        return "".join("0123456789abcdef"[self.whole(0, 15)] for _ in range(digits))

    def arrivals(self, per_second: float, end: float) -> Iterator[float]:
        """Arrival times of a Poisson stream, in seconds, to the millisecond, below `end`."""
        moment = 0.0
        while True:
            moment += -math.log(1.0 - self._draw()) / per_second
            if moment >= end:
                return
            yield round(moment, 3)
