"""Clock times that a claim states, against those of its lines: 14:34 where every line says 12:34 is another event."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from handlers.anchors import fold

DAY_S = 86_400
_CLOCK = re.compile(
    r"(?:(?<=/\d{4}:)|(?<![\d:.]))(?:\d{4}-\d\d-\d\d[T ])?(\d{1,2}):([0-5]\d)(?::([0-5]\d)(?:[.,]\d+)?)?\s?(am|pm)?(Z|UTC|GMT|[+-]\d\d:?\d\d)?(?!\d|:[0-9A-Za-z])",
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
    """The clock times and dates of `text` that no line has; none where no line has any, for then it cannot be told."""
    there = [clock for line in lines for clock in _clocks(line)]
    mine = list(_clocks(text))
    given = [c for c in mine if any(c.is_same(other) for other in there)]
    # `07:30 (2026-03-03T07:30:00+08:00)`: the zone is said once.
    absent = [c.text for c in mine if there and c not in given and not any(_as_written(c, other) for other in given)]
    return (*absent, *_absent_dates(text, lines))


def _absent_dates(text: str, lines: Sequence[str]) -> Iterator[str]:
    """A date one day off may be that of another zone, unless the time of day is written as in the line."""
    given = [day for line in lines for day in _days(line)]
    written = any(_as_written(c, other) for c in _clocks(text) for line in lines for other in _clocks(line))
    for day in _days(text) if given else ():
        if not any(day.is_near(other, 0 if written else 1) for other in given):
            yield day.text


def _as_written(one: Clock, other: Clock) -> bool:
    grain = max(one.to_s, other.to_s)
    return one.at_s // grain == other.at_s // grain


@dataclass(frozen=True, slots=True)
class Day:
    """A date as written; `year` None: not said. Where day and month may be either, both are in `readings`."""

    text: str
    year: int | None
    readings: tuple[tuple[int, int], ...]

    def is_near(self, other: Day, days: int) -> bool:
        year = self.year or other.year or 2000
        if self.year and other.year and abs(self.year - other.year) > 1:
            return False
        mine = [_ordinal(self.year or year, *reading) for reading in self.readings]
        its = [_ordinal(other.year or year, *reading) for reading in other.readings]
        return any(abs(a - b) <= days for a in mine for b in its)


def _ordinal(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal()
    except ValueError:
        return -1000


_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_NUMERIC_DAY = re.compile(
    r"(?<![\d./-])(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?![\d-])|(?:(\d{4})\s?年\s?)?(?<!\d)(\d{1,2})\s?月\s?(\d{1,2})\s?日",
    re.ASCII,
)
_SLASHED_DAY = re.compile(r"(?<![\d./-])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])", re.ASCII)
_NAMED_DAY = re.compile(
    rf"(?<![A-Za-z])(?:{_MONTH}\s{{1,2}}(\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.])(?:,?\s(\d{{4}})(?!\d))?"
    rf"|(?<![\d:.])(\d{{1,2}})(?:st|nd|rd|th)?[ /-]{_MONTH}(?:[ ,/-]{{1,2}}(\d{{4}})(?!\d))?)(?![A-Za-z])",
    re.IGNORECASE | re.ASCII,
)


def without_dates(text: str) -> str:
    """`text`, of the same length, with blanks for its dates."""
    for pattern in (_NUMERIC_DAY, _SLASHED_DAY, _NAMED_DAY):
        text = pattern.sub(lambda m: " " * len(m[0]), text)
    return text


def _days(text: str) -> Iterator[Day]:
    folded = fold(text)
    for m in _NUMERIC_DAY.finditer(folded):
        year, month, day = (m[1], m[2], m[3]) if m[1] else (m[4], m[5], m[6])
        yield from _day(m[0], year, (int(month), int(day)))
    for m in _SLASHED_DAY.finditer(folded):
        yield from _day(m[0], m[3], (int(m[1]), int(m[2])), (int(m[2]), int(m[1])))
    for m in _NAMED_DAY.finditer(folded):
        name, day, year = (m[1], m[2], m[3]) if m[1] else (m[5], m[4], m[6])
        if name != "may":  # a verb
            yield from _day(m[0], year, (_MONTHS.index(name.lower()) + 1, int(day)))


def _day(text: str, year: str | None, *readings: tuple[int, int]) -> Iterator[Day]:
    valid = tuple((month, day) for month, day in readings if 1 <= month <= 12 and 1 <= day <= 31)
    if valid:
        yield Day(text.strip(), int(year) if year else None, valid)


def shares_time(text: str, line: str) -> bool:
    """Whether both give the same time of day to the second."""
    there = [clock for clock in _clocks(line) if clock.to_s == 1]
    return any(mine.to_s == 1 and mine.is_same(other) for mine in _clocks(text) for other in there)


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
