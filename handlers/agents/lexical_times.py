"""Clock times that a claim states, against those of its lines: 14:34 where every line says 12:34 is another event."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handlers.anchors import fold

DAY_S = 86_400
_CLOCK = re.compile(
    r"(?<![\d:.])(?:\d{4}-\d\d-\d\d[T ])?(\d{1,2}):([0-5]\d)(?::([0-5]\d)(?:[.,]\d+)?)?\s?(am|pm)?(Z|UTC|GMT|[+-]\d\d:?\d\d)?(?![\d:])",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day: seconds since midnight, of which zone (seconds east of UTC, None: not said), to the second or minute."""

    text: str
    at_s: int
    zone_s: int | None
    to_s: int

    def is_same(self, other: Clock) -> bool:
        """Equal as instants of a day where both name a zone, else as written; to the coarser of both."""
        mine, its = self.at_s, other.at_s
        if self.zone_s is not None and other.zone_s is not None:
            mine, its = (mine - self.zone_s) % DAY_S, (its - other.zone_s) % DAY_S
        grain = max(self.to_s, other.to_s)
        return mine // grain == its // grain


def absent_times(text: str, lines: Sequence[str]) -> tuple[str, ...]:
    """The clock times of `text` that no line has; none where no line has any, for then it cannot be told."""
    there = [clock for line in lines for clock in _clocks(line)]
    if not there:
        return ()
    return tuple(c.text for c in _clocks(text) if not any(c.is_same(other) for other in there))


def _clocks(text: str) -> Iterator[Clock]:
    for m in _CLOCK.finditer(fold(text)):
        hour, minute, second = int(m[1]), int(m[2]), int(m[3] or 0)
        if m[4]:
            hour = hour % 12 + (12 if m[4].lower() == "pm" else 0)
        if hour < 24:
            yield Clock(m[0].strip(), hour * 3600 + minute * 60 + second, _zone(m[5]), 1 if m[3] else 60)


def _zone(text: str | None) -> int | None:
    if text is None:
        return None
    if text[0] not in "+-":
        return 0
    digits = text[1:].replace(":", "")
    east = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return east if text[0] == "+" else -east
