"""Numbers with their units in a text, compared by value and dimension: 三次 = 3 times, 30 秒 = 30s = 30000ms.

What `identifiers.scan` masks (versions, IPs, ids, time stamps, dates, ordinals, list markers) is never a number of a
claim; which of those digits support one as evidence is told in `numbered`. Number words are in `number_words`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from handlers.amounts import Quantity, Reading, amounts, made, same
from handlers.identifiers import MASK, scan
from handlers.key_units import key_units
from handlers.number_words import chinese_words, english_words
from handlers.numbered import labelled, numbers_alone
from handlers.units import UNITS, WRITTEN, Unit, units_of

__all__ = ["Quantity", "Reading", "amounts", "quantities", "readings_of_line", "same"]

_COUNTED = "次个条台秒分小天毫项行倍万千"
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_])(?P<sign>(?<![A-Za-z0-9_)\]%])[-+])?"
    r"(?P<number>\d{1,3}(?:(?:,\d{3})+|(?:['’]\d{3})+)(?![\d])(?:\.\d+)?"
    r"|\d+(?:\.\d+)?(?:[eE][-+]?\d{1,2}(?![A-Za-z0-9_]))?|(?<!\.)\.\d+)"
    rf"(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,2}}(?![⁰¹²³⁴⁵⁶⁷⁸⁹]))?(?:{WRITTEN})?(?P<about>\s?[多余来几](?=[{_COUNTED}]))?",
    re.ASCII,
)
# Groups of three with spaces between are one number only before a unit: `200 150` are two.
_SPACED_GROUPS = re.compile(
    rf"(?<![A-Za-z0-9_.,:/-])(?P<number>[1-9]\d{{0,2}}(?: \d{{3}})+(?:\.\d+)?)(?:{WRITTEN})", re.ASCII
)
# `4098.8 (4122.6) -> 4079.8 (4105.0) MB`: the unit behind a change is that of all its numbers.
_CHANGE = re.compile(
    rf"(?<![A-Za-z0-9_.,:-])\d+(?:\.\d+)?(?:\s?\(\d+(?:\.\d+)?\))?\s?(?:->|→|=>)\s?\d+(?:\.\d+)?(?:\s?\(\d+(?:\.\d+)?\))?(?:{WRITTEN})"
)
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_SPAN = re.compile(r"(?<![A-Za-z0-9_])((?:\d+(?:\.\d+)?(?:h|m|s|ms|us|µs|ns|d)){2,})(?![A-Za-z0-9_])", re.ASCII)
_SPAN_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns|d)", re.ASCII)
_TIMES = re.compile(r"(?<![A-Za-z0-9_])[x×](?!(?:86|64|32)(?!\d))(\d{1,9})(?![A-Za-z0-9_]|[.,]\d)", re.ASCII)
_RANGE = re.compile(r"\s?(?:-|~|～|to|到|至|\.{2,3}|…)\s?", re.ASCII)
_LIST = re.compile(r"\s?(?:/|、|,? ?(?:and|or)|和|与|或|及)\s?", re.ASCII)
_COMMA = re.compile(r"\s?[,，]\s?")
_BARE_END = re.compile(
    r"\s*(?:$|[.;:!?)\]，。；：！？、）】」\"'’”\n(（|]|,(?!\d)|\s(?:and|or|with|but|in|on|at|for|from|to|by|before|after|when|while"
    r"|during|as|which|because|is|was|then)(?![A-Za-z]))",
    re.ASCII,
)
_COUNT_BEFORE = re.compile(
    r"(?<![A-Za-z])(?!(?:is|was|has|shows|takes|equals|lasts|exceeds|reaches|needs|status)(?![A-Za-z]))[A-Za-z]+[^sS\W\d]s\s?"
    r"(?:[:=]\s?|(?:is|are|was|were|reached|hit|numbered)\s(?:at\s)?)?$|数(?:量|目)?\s?(?:为|是|达|达到|[:：=])?\s?$",
    re.ASCII | re.IGNORECASE,
)
_POWER_DIGITS = 12
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_MULTIPLIERS = frozenset({"1e3", "1e4", "1e6", "1e8", "1e9"})


@lru_cache(maxsize=2048)
def quantities(text: str) -> tuple[Quantity, ...]:
    """The quantities of `text` as a reader takes them, in order."""
    found = _joined(_read(text, loose=False), scan(text).masked)
    return tuple(_placed(quantity, scan(text).folded) for quantity in found)


@lru_cache(maxsize=2048)
def readings_of_line(text: str) -> tuple[Quantity, ...]:
    """Every quantity that `text`, as evidence, can be said to state: also the words for one, both parts of `5s 30ms`,
    an id, port or index, and a plain number whose key, series or record has the unit (`duration_ms=30`)."""
    scanned = scan(text)
    found = _read(text, loose=True)
    units = key_units(scanned.folded)
    every = dict.fromkeys(
        [
            *_joined(found, scanned.masked),
            *found,
            *_spaced_groups(scanned.masked),
            *_changes(scanned.masked),
            *(_of_1024(q) for q in found if q.text.endswith("kB")),
        ]
    )
    return tuple(dict.fromkeys([*(units.given_to(q) for q in every), *numbers_alone(scanned)]))


def _read(text: str, *, loose: bool) -> list[Quantity]:
    masked = scan(text).masked
    found: list[Quantity] = []
    left = list(masked)

    def take(quantity: Quantity) -> None:
        found.append(quantity)
        left[quantity.start : quantity.end] = MASK * (quantity.end - quantity.start)

    for m in _SPAN.finditer(masked):
        total = sum((Decimal(n) * _seconds(u) for n, u in _SPAN_PART.findall(m[1])), Decimal(0))
        take(Quantity(total, "s", m[1], m.start(1), m.end(1), total))
    for m in _TIMES.finditer(masked):
        take(Quantity(Decimal(m[1]), None, m.group(), m.start(), m.end(), Decimal(m[1])))
    if not loose:
        for quantity in _spaced_groups("".join(left)):
            take(quantity)
    for m in _NUMBER.finditer("".join(left)):
        number = _digits(m)
        if number is not None:
            take(number)
    for quantity in english_words("".join(left), loose=loose):
        take(quantity)
    for quantity in chinese_words("".join(left), loose=loose):
        take(quantity)
    found.sort(key=lambda q: q.start)
    return _lists(_ranges(found, masked), masked, loose=loose)


def _seconds(unit: str) -> Decimal:
    return Decimal(60) if unit == "m" else Decimal(UNITS["us" if unit == "µs" else unit][0])


def _spaced_groups(text: str) -> list[Quantity]:
    return [
        made(Decimal(m["number"].replace(" ", "")), units_of(m), m.group(), m.start())
        for m in _SPACED_GROUPS.finditer(text)
    ]


def _of_1024(quantity: Quantity) -> Quantity:
    """`2097152kB` of a kernel or a container runtime counts in 1024."""
    return replace(quantity, value=quantity.digits * 1024)


def _changes(text: str) -> list[Quantity]:
    return [
        made(Decimal(n[0]), units_of(m), n[0], m.start() + n.start())
        for m in _CHANGE.finditer(text)
        for n in _PLAIN.finditer(m[0])
    ]


def _digits(m: re.Match[str]) -> Quantity | None:
    text = m.string
    after = text[m.end() : m.end() + 1]
    before = text[max(0, m.start() - 2) : m.start()]
    number = m["number"]
    if m["about"] or (after.isascii() and (after.isalnum() or after == "_")):
        return None
    if re.search(r"[A-Za-z0-9_]\+$|[A-Za-z]-$|\d\.$", before, re.ASCII):
        return None
    if re.match(rf"\s?[多余来几](?:[{_COUNTED}]|%)", text[m.end() : m.end() + 3]):
        return None
    value = Decimal(re.sub(r"[,'’]", "", number))
    if m["power"]:
        if len(number) > _POWER_DIGITS:
            return None
        value **= int(m["power"].translate(_SUPER))
    if m["sign"] == "-":
        value = -value
    units = units_of(m)
    whole = m.group()
    if units and units[0][1] is None and units[0][0] in _MULTIPLIERS:
        return _with_counted_unit(value, units, whole, m.start(), text)
    return made(value, units, whole, m.start())


def _with_counted_unit(value: Decimal, units: tuple[Unit, ...], whole: str, start: int, text: str) -> Quantity:
    """`3 万毫秒`, `2 million bytes`: a multiplier may stand before the unit."""
    tail = re.match(rf"(?:{WRITTEN})", text[start + len(whole) : start + len(whole) + 16], re.ASCII)
    if tail is None or units[0] not in UNITS.values() or len(units) > 1:
        return made(value, units, whole, start)
    inner = units_of(tail)
    scale = Decimal(units[0][0])
    scaled = tuple((str(scale * Decimal(s)), u) for s, u in inner)
    return made(value, scaled, whole + tail.group(), start)


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


def _lists(found: list[Quantity], text: str, *, loose: bool) -> list[Quantity]:
    """`1, 2 and 4 seconds`, `80/350/1200 ms`, 3 和 5 秒: each number may have the last one's unit, or none.

    In evidence a comma alone joins nothing (`status=200, 30 ms`); behind `and` or a slash it does.
    """
    out = list(found)
    closed = not loose
    for i in range(len(out) - 2, -1, -1):
        one, two = out[i], out[i + 1]
        between = text[one.end : two.start]
        listed = _LIST.fullmatch(between) is not None
        last: tuple[Reading, ...] = two.readings if two.unit is not None else two.others
        if (
            one.unit is None
            and not one.others
            and last
            and two.digits
            and (listed or (closed and _COMMA.fullmatch(between)))
        ):
            shared = tuple((one.digits * (value / two.digits), unit) for value, unit in last)
            out[i] = Quantity(one.value, None, one.text, one.start, one.end, one.digits, shared)
            closed = True
        else:
            closed = not loose
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


def _placed(quantity: Quantity, folded: str) -> Quantity:
    """`quantity` with what its place in a claim says of it: `label`, `bare`."""
    if quantity.unit is not None or not re.fullmatch(r"[\d,.]+", quantity.text):
        return quantity
    before = folded[max(0, quantity.start - 32) : quantity.start]
    label = labelled(before)
    bare = _BARE_END.match(folded, quantity.end) is not None and _COUNT_BEFORE.search(before) is None
    return replace(quantity, label=label, bare=bare) if label or bare else quantity
