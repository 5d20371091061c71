"""The unit that stands beside a number: in its key (`duration_ms=30`, `took(ms): 30`, `max.poll.interval.ms (300000)`),
in its series (`..._seconds{...} last=8.4`), or in the record (`Average=30 Unit=Bytes`).

A key has a unit only as a whole piece of its name: `retries`, `items` and `params` have none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter

from handlers.amounts import Quantity
from handlers.units import UNITS, Unit

_LONG_WORDS = (
    "nanoseconds nanos microseconds micros milliseconds millis seconds minutes hours days bytes kilobytes megabytes "
    "gigabytes terabytes percent"
)
_LONG = frozenset(_LONG_WORDS.split())
_SHORT_WORDS = "ns us µs usec ms msec sec secs s mins hrs kb mb gb tb kib mib gib tib pct"
_SHORT = frozenset(_SHORT_WORDS.split())
_UNCLEAR_WORDS = "min minute m hr hour h day d second"
_UNCLEAR = frozenset(_UNCLEAR_WORDS.split())
_OF_TIME_WORDS = (
    "timeout interval duration delay ttl age uptime window period wait elapsed lag time retention expiry latency "
    "lease grace backoff sleep after took every keepalive runtime"
)
_OF_TIME = frozenset(_OF_TIME_WORDS.split())
_SPELLED = {"millis": "ms", "micros": "us", "nanos": "ns", "pct": "percent", "m": "min"}
_COUNTS = frozenset({"count", "bucket", "num", "number"})
_PIECE = re.compile(r"[_.\-]+|(?<=[a-z0-9])(?=[A-Z])")
_KEY = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]*)[\"']?\s*(?P<mark>[:=]\s*|[(\[|]\s*|\s)[\"']?$", re.ASCII)
_BRACKETED = re.compile(r"[(\[]\s*([A-Za-zµ%]{1,12})\s*[)\]][\"']?\s*[:=|]?\s*[\"']?$")
_SERIES = re.compile(
    r"(?<![A-Za-z0-9_:])[a-z][a-z0-9_:]{0,80}_(seconds|milliseconds|ms|bytes|percent)(_[a-z0-9_]{1,80})?"
    r"(?![A-Za-z0-9_]|[\"']?\s*[:=])"
)
_RECORD = re.compile(r"(?<![A-Za-z])units?[\"']?\s*[:=]\s*[\"']?([A-Za-z%]+)(?![A-Za-z/])", re.IGNORECASE)
_KEY_CHARS = 80


@lru_cache(maxsize=4096)
def unit_of_key(key: str) -> str | None:
    """The name in UNITS of the unit that `key` ends with or names; `min`, `m`, `d` only of a key about time."""
    pieces = [piece.lower() for piece in _PIECE.split(key) if piece]
    if not pieces or pieces[-1] in _COUNTS:
        return None
    last = pieces[-1]
    if last in _SHORT and (len(last) > 1 or key.endswith(last)):
        return None if len(pieces) == 1 and len(last) == 1 else _SPELLED.get(last, last)
    if last in _UNCLEAR and not _OF_TIME.isdisjoint(pieces):
        return _SPELLED.get(last, last)
    for before, piece in zip(["", *pieces], pieces, strict=False):
        if piece in _LONG and before != "per":
            return _SPELLED.get(piece, piece)
    return None


@dataclass(frozen=True, slots=True)
class KeyUnits:
    """The units beside the numbers of one folded text. `series` and `records` hold, for each line that may have any,
    where it ends and its units."""

    folded: str
    series: tuple[tuple[int, tuple[str, ...]], ...]
    records: tuple[tuple[int, tuple[str, ...]], ...]

    def given_to(self, quantity: Quantity) -> Quantity:
        """`quantity` with the readings that its key, record or series allows beside the plain one."""
        if quantity.unit is not None or quantity.others:
            return quantity
        units = tuple(UNITS[name] for name in self._names(quantity.start))
        return replace(quantity, others=tuple((quantity.digits * Decimal(scale), unit) for scale, unit in units))

    def _names(self, start: int) -> tuple[str, ...]:
        before = self.folded[max(0, start - _KEY_CHARS) : start]
        bracketed = _BRACKETED.search(before)
        if bracketed and (name := _known(bracketed[1])):
            return (name,)
        key = _KEY.search(before)
        named = unit_of_key(key[1]) if key else None
        if key and named and (key["mark"][0] in ":=" or len(_PIECE.split(key[1])) > 1):
            return (named,)
        return _at(self.records, start) or _at(self.series, start)


def key_units(folded: str) -> KeyUnits:
    """Reads the lines of `folded` for series and for `Unit=`, which may stand in another line if all say the same."""
    series: list[tuple[int, tuple[str, ...]]] = []
    records: list[tuple[int, tuple[str, ...]]] = []
    at = 0
    said = {name for m in _RECORD.finditer(folded) if (name := _known(m[1]))}
    for line in folded.split("\n"):
        at += len(line) + 1
        names = [m[1] for m in _SERIES.finditer(line) if not re.search(r"_(?:count|bucket)\b", m[2] or "")]
        series.append((at, tuple(dict.fromkeys(names))))
        own = {name for m in _RECORD.finditer(line) if (name := _known(m[1]))} if said else said
        records.append((at, tuple(sorted(own or (said if len(said) == 1 else ())))))
    return KeyUnits(folded, tuple(series), tuple(records))


def _known(name: str) -> str | None:
    """The name of a measure in UNITS, whatever its case; None for counts and what is no unit."""
    spelled = name if name in UNITS else _SPELLED.get(name.lower(), name.lower())
    unit: Unit | None = UNITS.get(spelled)
    return spelled if unit is not None and unit[1] is not None else None


def _at(lines: tuple[tuple[int, tuple[str, ...]], ...], start: int) -> tuple[str, ...]:
    return lines[bisect_right(lines, start, key=itemgetter(0))][1]
