"""Numbers written as words, English and Chinese: thirty-one, twice, half a minute, 三万, 百分之五十, 半分钟, 失败一次.

The word for one is an article in both languages and counts only where it clearly counts (`only one`, `exactly one`,
仅一次, 失败一次); words for about (十几, 二十多, 上百, dozens) give no number at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from handlers.amounts import Quantity, made
from handlers.units import HAN, UNITS, WRITTEN, units_of

_ONE_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_ONES = _ONE_WORDS.split()
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = _TEN_WORDS.split()
_WORDS = {w: i for i, w in enumerate(_ONES)} | {w: 20 + 10 * i for i, w in enumerate(_TENS)}
_small = "|".join(_ONES[1:10])
_ENGLISH = re.compile(
    rf"(?<![A-Za-z0-9_-])(?![A-Za-z]+-(?:tier|way|phase|factor|fold)\b)(?P<word>(?:{'|'.join(_TENS)})(?:[ -](?:{_small}))?|{'|'.join(sorted(_ONES, key=len, reverse=True))}"
    r"|a(?=\s(?:hundred|thousand|million)\b)|a\s+single(?=\s+time\b)|twice(?!\s+(?:as|the)\b)|thrice|once"
    r"|half(?:\s+an?)?(?=[\s-](?:hours?|minutes?|seconds?|million)\b))(?P<half>\s+and\s+a\s+half)?"
    rf"(?:[\s-](?P<times>hundred|thousand|million)(?!s))?(?:[\s-]?(?:{WRITTEN}))?(?![A-Za-z0-9_])",
    re.ASCII | re.IGNORECASE,
)
_COUNTED_ONE = re.compile(
    r"(?:only|just|exactly|at most|at least|no more than|(?<![A-Za-z])\w+ed)\s+$|(?:仅|只|只有|共|最多|至多|至少|了)\s*$",
    re.IGNORECASE,
)
# 一次 behind a verb is a count (失败一次); behind 这, 每, 又, 再, 第 it is an occasion, and 一次性 is a word.
_DONE_ONCE = re.compile(
    r"[\u4e00-\u9fff](?<![这那每又再第上下何任有同头某哪另多单最近首前后本该此在于是的为因由对将把被从以当和与及每])\s*$"
)
_EVERY = re.compile(r"每[^，。；,;]{0,14}$")
_HAN_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}
_HAN_NUMERALS = "零〇一二两三四五六七八九十百千万亿"
_CHINESE = re.compile(
    rf"(?P<percent>百分之)?(?<![{_HAN_NUMERALS}])(?P<word>[{_HAN_NUMERALS}半]{{1,12}})(?![{_HAN_NUMERALS}])"
    rf"(?P<about>[多余来几])?(?P<and_half>个半(?=小时|钟头))?\s?(?P<unit>{HAN})?"
)
_TEN_MINUTES = re.compile(r"(?:[点时]|小时)\s*$")
_HALVED = frozenset({"小时", "个小时", "分钟", "秒", "秒钟"})


def english_words(text: str, *, loose: bool) -> Iterator[Quantity]:
    """The English number words of `text`; `loose` also takes a bare `one`, as evidence may mean it."""
    for m in _ENGLISH.finditer(text):
        quantity = _english(m, loose)
        if quantity is not None:
            yield quantity


def chinese_words(text: str, *, loose: bool) -> Iterator[Quantity]:
    """The Chinese number words of `text`, each before a unit or behind 百分之; `loose` also takes a bare 一个."""
    for m in _CHINESE.finditer(text):
        quantity = _chinese(m, loose)
        if quantity is not None:
            yield quantity


def _english(m: re.Match[str], loose: bool) -> Quantity | None:
    word = " ".join(m["word"].lower().split())
    before = m.string[max(0, m.start() - 24) : m.start()]
    if word in {"one", "once"} and not (m["times"] or m["half"] or loose or _COUNTED_ONE.search(before)):
        return None
    if word in {"once", "twice", "thrice"}:
        value = Decimal({"once": 1, "twice": 2, "thrice": 3}[word])
        return made(value, (), m["word"], m.start())
    if word.startswith("half"):
        value = Decimal("0.5")
    elif word.startswith("a"):
        value = Decimal(1)
    else:
        value = Decimal(sum(_WORDS[w] for w in re.split(r"[ -]", word)))
    if m["half"]:
        value += Decimal("0.5")
    if m["times"]:
        value *= {"hundred": 100, "thousand": 1000, "million": 1_000_000}[m["times"].lower()]
    return made(value, units_of(m), m.group(), m.start())


def _chinese(m: re.Match[str], loose: bool) -> Quantity | None:
    before = m.string[max(0, m.start() - 4) : m.start()]
    word = m["word"]
    if m["about"] or re.search(r"[第几数多每]$", before):
        return None
    if word[0] in "十百千万亿" and re.search(r"[上成近]$", before):
        return None
    value = _han_value(word)
    if m["percent"]:
        return None if value is None else made(value, (UNITS["%"],), m.group(), m.start())
    unit = m["unit"]
    if unit is None:
        return None
    if word == "半":
        return made(Decimal("0.5"), units_of(m), m.group(), m.start()) if unit in _HALVED else None
    if value is None or (word + unit == "十分" and not _TEN_MINUTES.search(before)):
        return None
    if m["and_half"]:
        return made(value + Decimal("0.5"), units_of(m), m.group(), m.start())
    one = value == 1 and UNITS[unit][1] is None
    done = (
        unit == "次"
        and not _EVERY.search(m.string[max(0, m.start() - 16) : m.start()])
        and _DONE_ONCE.search(before)
        and m.string[m.end() : m.end() + 1] not in ("性", "次", "也", "都")
    )
    if one and not loose and not done and not _COUNTED_ONE.search(before):
        return None
    return made(value, units_of(m), m.group(), m.start())


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
