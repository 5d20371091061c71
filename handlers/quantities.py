"""Numbers with their units in a text, compared by value and dimension: 三次 = 3 times, 30 秒 = 30s = 30000ms.

What `identifiers.scan` masks (versions, IPs, ids, time stamps, dates, ordinals, list markers) is never a number.
The word for one is an article in both languages and counts only where it clearly counts (`only once`, 仅一次); words
for about (十几, 二十多, dozens) give no number at all.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

from handlers.identifiers import MASK, scan
from handlers.units import SUFFIXES, UNITS

Reading = tuple[Decimal, str | None]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it stands in a text. `value` is in the canonical `unit`: `s`, `B`, `bit`, `%`, or None for plain
    numbers and counts. `digits` is the number as written, before the unit. `others` are further honest readings
    (`512M` is a count or bytes). Offsets are offsets in `fold(text)`."""

    value: Decimal
    unit: str | None
    text: str
    start: int
    end: int
    digits: Decimal
    others: tuple[Reading, ...] = ()

    @property
    def readings(self) -> tuple[Reading, ...]:
        return ((self.value, self.unit), *self.others)


def same(one: Quantity, other: Quantity) -> bool:
    """True if both can be the same amount. 61 % is 0.61; 0 s is not 0."""
    return not amounts(one).isdisjoint(amounts(other))


def amounts(quantity: Quantity) -> frozenset[Reading]:
    """What a quantity can be: its readings, and of a percentage under 100 its share."""
    if quantity.unit == "%" and 0 < quantity.value < 100:
        return frozenset((*quantity.readings, (quantity.value / 100, None)))
    return frozenset(quantity.readings)


_SPACED = frozenset(["s", "h", "B", "x"]) | {u for u in UNITS if len(u) > 1}
_latin = sorted((u for u in UNITS if u.isascii() and u != "%"), key=len, reverse=True)
_han = sorted((u for u in UNITS if not u.isascii() and "s" not in u), key=len, reverse=True)
_MICRO = "µs|μs"
_UNIT = (
    rf"(?:(?P<tight>{'|'.join(_latin)}|{_MICRO}|[kKmMgG])(?![A-Za-z0-9_])"
    rf"|[ -]?(?P<percent>%|per cent(?![a-z]))"
    rf"|[ -](?P<spaced>(?!min\s?[:=]?\s?\d)(?:{'|'.join(u for u in _latin if u in _SPACED)}|{_MICRO}))(?![A-Za-z0-9_]|=)"
    rf"|\s?(?P<han>{'|'.join(_han)}))"
)
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_])(?P<sign>(?<![A-Za-z0-9_)\]%])[-+])?"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][-+]?\d{1,2}(?![A-Za-z0-9_]))?|\.\d+)"
    rf"(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,2}}(?![⁰¹²³⁴⁵⁶⁷⁸⁹]))?(?:{_UNIT})?(?P<about>\s?[多余来几](?=[次个条台秒分小天毫项行倍万千]))?",
    re.ASCII,
)
_SPAN = re.compile(r"(?<![A-Za-z0-9_])((?:\d+(?:\.\d+)?(?:h|m|s|ms|us|µs|ns|d)){2,})(?![A-Za-z0-9_])", re.ASCII)
_SPAN_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns|d)", re.ASCII)
_RANGE = re.compile(r"(?:\s?(?:-|~|～|to|到|至)\s?)", re.ASCII)
_POWER_DIGITS = 12
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
]
_ONES += ["seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {w: i for i, w in enumerate(_ONES)} | {w: 20 + 10 * i for i, w in enumerate(_TENS)}
_small = "|".join(_ONES[1:10])
_ENGLISH = re.compile(
    rf"(?<![A-Za-z0-9_-])(?P<word>(?:{'|'.join(_TENS)})(?:[ -](?:{_small}))?|{'|'.join(sorted(_ONES, key=len, reverse=True))}"
    rf"|a(?=\s(?:hundred|thousand|million)\b)|twice(?!\s+(?:as|the)\b)|thrice|once|half(?:\s+an)?(?=\s+hour))"
    rf"(?:[\s-](?P<times>hundred|thousand|million)(?!s))?(?:[\s-]?(?:{_UNIT}))?(?![A-Za-z0-9_])",
    re.ASCII | re.IGNORECASE,
)
_COUNTED_ONE = re.compile(
    r"(?:only|just|exactly|at most|at least|no more than|(?<![A-Za-z])\w+ed)\s+$|(?:仅|只|只有|共|最多|至多|至少|了)\s*$",
    re.IGNORECASE,
)
_HAN_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}
_CHINESE = re.compile(
    rf"(?P<percent>百分之)?(?<![零〇一二两三四五六七八九十百千万亿])(?P<word>[零〇一二两三四五六七八九十百千万亿半]{{1,12}})(?![零〇一二两三四五六七八九十百千万亿])(?P<about>[多余来几])?\s?(?P<unit>{'|'.join(_han)})?"
)
_KEY = re.compile(r"([A-Za-z_][\w.]*)[\"']?\s*[:=]\s*[\"']?$", re.ASCII)
_KEY_UNIT = re.compile(
    r"(?:_|(?<=[a-z])(?=[A-Z]))(ms|millis|milliseconds|us|micros|ns|s|sec|secs|seconds|minutes|hours|bytes|kb|mb|mib|percent|pct)$",
    re.IGNORECASE | re.ASCII,
)
_KEY_NAMES = {"millis": "ms", "micros": "us", "mib": "MiB", "pct": "percent"}
_SERIES = re.compile(
    r"(?<![A-Za-z0-9_:])[a-z][a-z0-9_:]{0,80}_(seconds|milliseconds|ms|bytes|percent)(_[a-z0-9_]{1,80})?(?![A-Za-z0-9_])"
)


@lru_cache(maxsize=2048)
def quantities(text: str) -> tuple[Quantity, ...]:
    """The quantities of `text` as a reader takes them, in order."""
    return _read(text, loose=False)


@lru_cache(maxsize=2048)
def readings_of_line(text: str) -> tuple[Quantity, ...]:
    """Every quantity that `text`, as evidence, can be said to state: also the words for one, both parts of `5s 30ms`,
    a port, and a plain number whose key or series name has the unit (`duration_ms=30`, `..._seconds{...} last=8.4`)."""
    return _read(text, loose=True)


def _read(text: str, *, loose: bool) -> tuple[Quantity, ...]:
    scanned = scan(text)
    found: list[Quantity] = []
    left = list(scanned.masked)

    def take(quantity: Quantity) -> None:
        found.append(quantity)
        left[quantity.start : quantity.end] = MASK * (quantity.end - quantity.start)

    for m in _SPAN.finditer(scanned.masked):
        total = sum((Decimal(n) * _seconds(u) for n, u in _SPAN_PART.findall(m[1])), Decimal(0))
        take(Quantity(total, "s", m[1], m.start(1), m.end(1), total))
    for m in _NUMBER.finditer("".join(left)):
        quantity = _digits(m)
        if quantity is not None:
            take(quantity)
    for m in _ENGLISH.finditer("".join(left)):
        quantity = _english(m, loose)
        if quantity is not None:
            take(quantity)
    for m in _CHINESE.finditer("".join(left)):
        quantity = _chinese(m, loose)
        if quantity is not None:
            take(quantity)
    found.sort(key=lambda q: q.start)
    found = _ranges(found, scanned.masked)
    joined = _joined(found, scanned.masked)
    if loose:
        series = _series_units(scanned.folded)
        return tuple(
            _with_key_units(q, scanned.folded, series) for q in dict.fromkeys([*joined, *found, *_ports(text)])
        )
    return tuple(joined)


def _seconds(unit: str) -> Decimal:
    return Decimal(60) if unit == "m" else Decimal(UNITS["us" if unit == "µs" else unit][0])


def _made(digits: Decimal, units: tuple[tuple[str, str | None], ...], text: str, start: int) -> Quantity:
    readings = [(digits * Decimal(scale), unit) for scale, unit in units] or [(digits, None)]
    value, unit = readings[0]
    return Quantity(value, unit, text.rstrip(), start, start + len(text.rstrip()), digits, tuple(readings[1:]))


def _unit_of(m: re.Match[str]) -> tuple[tuple[str, str | None], ...]:
    groups = m.groupdict()
    if groups.get("percent"):
        return (UNITS["%"],)
    name = groups.get("tight") or groups.get("spaced") or groups.get("han") or groups.get("unit")
    if not name:
        return ()
    known = UNITS.get(name) or UNITS.get(name.lower())
    if name in SUFFIXES:
        return SUFFIXES[name]
    return (known,) if known else ()


def _digits(m: re.Match[str]) -> Quantity | None:
    text = m.string
    after = text[m.end() : m.end() + 1]
    before = text[max(0, m.start() - 2) : m.start()]
    number = m["number"]
    if m["about"] or (after.isascii() and (after.isalnum() or after == "_")):
        return None
    if re.search(r"[A-Za-z0-9_]\+$|[A-Za-z]-$|\d\.$", before, re.ASCII):
        return None
    if re.match(r"\s?[多余来几](?:[次个条台秒分小天毫项行倍万千]|%)", text[m.end() : m.end() + 3]):
        return None
    value = Decimal(number.replace(",", ""))
    if m["power"]:
        if len(number) > _POWER_DIGITS:
            return None
        value **= int(m["power"].translate(_SUPER))
    if m["sign"] == "-":
        value = -value
    units = _unit_of(m)
    whole = m.group()
    if units and units[0][1] is None and units[0][0] in {"1e3", "1e4", "1e6", "1e8", "1e9"}:
        return _with_counted_unit(value, units, whole, m.start(), text)
    return _made(value, units, whole, m.start())


def _with_counted_unit(
    value: Decimal, units: tuple[tuple[str, str | None], ...], whole: str, start: int, text: str
) -> Quantity:
    """`3 万毫秒`, `2 million bytes`: a multiplier may stand before the unit."""
    tail = re.match(rf"(?:{_UNIT})", text[start + len(whole) : start + len(whole) + 16], re.ASCII)
    if tail is None or units[0] not in UNITS.values() or len(units) > 1:
        return _made(value, units, whole, start)
    inner = _unit_of(tail)
    scale = Decimal(units[0][0])
    scaled = tuple((str(scale * Decimal(s)), u) for s, u in inner)
    return _made(value, scaled, whole + tail.group(), start)


def _english(m: re.Match[str], loose: bool) -> Quantity | None:
    word = m["word"].lower()
    before = m.string[max(0, m.start() - 24) : m.start()]
    if word in {"one", "once"} and not m["times"] and not loose and not _COUNTED_ONE.search(before):
        return None
    if word in {"once", "twice", "thrice"}:
        value = Decimal({"once": 1, "twice": 2, "thrice": 3}[word])
        return _made(value, (), m["word"], m.start())
    if word.startswith("half"):
        return _made(Decimal("0.5"), _unit_of(m), m.group(), m.start())
    value = Decimal(1) if word == "a" else Decimal(sum(_WORDS[w] for w in re.split(r"[ -]", word)))
    if m["times"]:
        value *= {"hundred": 100, "thousand": 1000, "million": 1_000_000}[m["times"].lower()]
    return _made(value, _unit_of(m), m.group(), m.start())


def _chinese(m: re.Match[str], loose: bool) -> Quantity | None:
    before = m.string[max(0, m.start() - 4) : m.start()]
    if m["about"] or re.search(r"[第几数多每]$", before):
        return None
    word = m["word"]
    if m["percent"]:
        value = _han_value(word)
        return None if value is None else _made(value, (UNITS["%"],), m.group(), m.start())
    if m["unit"] is None:
        return None
    if word == "半":
        return _made(Decimal("0.5"), _unit_of(m), m.group(), m.start()) if "小时" in m["unit"] else None
    value = _han_value(word)
    if value is None:
        return None
    one = value == 1 and UNITS[m["unit"]][1] is None
    if one and not loose and not _COUNTED_ONE.search(before):
        return None
    return _made(value, _unit_of(m), m.group(), m.start())


def _han_value(word: str) -> Decimal | None:
    """二十 is 20, 一百零五 is 105, 三万 is 30000; None for 二三十 (about) and for what is no number."""
    total, section, digit = 0, 0, None
    for char in word:
        if char in _HAN_DIGITS:
            if digit not in {None, 0}:
                return None
            digit = _HAN_DIGITS[char]
        elif char in _HAN_TENS:
            section += (1 if digit in {None, 0} else digit or 1) * _HAN_TENS[char]
            digit = None
        elif char in "万亿":
            section = section + (digit or 0)
            if section == 0:
                return None
            total = (total + section) * (10_000 if char == "万" else 100_000_000)
            section, digit = 0, None
        else:
            return None
    return Decimal(total + section + (digit or 0))


def _ranges(found: list[Quantity], text: str) -> list[Quantity]:
    """`3-5 秒`: the first number has the second one's unit."""
    out = list(found)
    for i, (one, two) in enumerate(pairwise(found)):
        between = text[one.end : two.start]
        joined = _RANGE.fullmatch(between) or (not between and two.value < 0)
        if joined and one.unit is None and not one.others and two.unit is not None and two.digits:
            scale = two.value / two.digits
            out[i] = Quantity(one.digits * scale, two.unit, one.text, one.start, one.end, one.digits)
    return out


def _joined(found: list[Quantity], text: str) -> list[Quantity]:
    """`5 minutes 30 seconds`, 1 小时 30 分: one amount."""
    out: list[Quantity] = []
    for quantity in found:
        last = out[-1] if out else None
        if (
            last is not None
            and last.unit == quantity.unit == "s"
            and last.digits
            and quantity.digits
            and re.fullmatch(r"\s*(?:and\s+|零)?", text[last.end : quantity.start])
            and last.value / last.digits > quantity.value / quantity.digits
            and 0 < quantity.value < last.value / last.digits
        ):
            whole = last.value + quantity.value
            out[-1] = Quantity(whole, "s", text[last.start : quantity.end], last.start, quantity.end, whole)
            continue
        out.append(quantity)
    return out


def _ports(text: str) -> list[Quantity]:
    found: list[Quantity] = []
    for identifier in scan(text).identifiers:
        port = re.search(r":(\d{1,5})$", identifier.text) if identifier.kind in {"host", "ip"} else None
        if port:
            value = Decimal(port[1])
            found.append(Quantity(value, None, port[1], identifier.start + port.start(1), identifier.end, value))
    return found


def _series_units(folded: str) -> list[tuple[int, tuple[str, ...]]]:
    """For each line that has any: where it ends, and the units in its series' names (`..._seconds{...}`)."""
    ends: list[tuple[int, tuple[str, ...]]] = []
    at = 0
    for line in folded.split("\n"):
        at += len(line) + 1
        names = [m[1] for m in _SERIES.finditer(line) if not re.search(r"_(?:count|bucket)\b", m[2] or "")]
        ends.append((at, tuple(dict.fromkeys(names))))
    return ends


def _with_key_units(quantity: Quantity, folded: str, series: list[tuple[int, tuple[str, ...]]]) -> Quantity:
    if quantity.unit is not None or quantity.others:
        return quantity
    key = _KEY.search(folded[max(0, quantity.start - 80) : quantity.start])
    named = _KEY_UNIT.search(key[1]) if key else None
    names = (named[1].lower(),) if named else series[bisect_right(series, quantity.start, key=itemgetter(0))][1]
    units = tuple(UNITS[_KEY_NAMES.get(n, n)] for n in names)
    return replace(quantity, others=tuple((quantity.digits * Decimal(scale), unit) for scale, unit in units))
