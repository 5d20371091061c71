"""What an excerpt says, word by word: whether it carries information, and whether it paraphrases a record.

Rules `evidence.excerpt_trivial` and `evidence.excerpt_paraphrase` of gate.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from handlers.excerpt_cuts import HAN, NEGATION
from handlers.excerpt_forms import fold_case
from handlers.identifiers import identifiers

UNIT = r"(?:%|‰|°C|[mun]?s|µs|secs?|seconds?|m|min|mins|minutes?|h|hours?|d|days?|[kKMGTP]i?[bB]?|bytes?|rps|qps|Hz|秒|毫秒|分钟|小时|天|次|个)"
_INFORMATIVE = re.compile(
    r"[\w.-][\"']?\s?==?\s?[\"']?[^\s\"'=,;]"  # key=value
    r"|[^\W\d][\"']?\s?:\s?[\"']?[-+]?\d"  # key: number
    rf"|\d(?:[.,]\d+)?\s?{UNIT}(?![^\W_])"  # number with unit
    r"|(?=\w*\d)(?=\w*[^\W\d_])\w{3,}"  # identifier of letters and digits
    r"|[^\W_]_\w|[a-z][A-Z]|[A-Z]{2}[a-z]{2}"  # snake_case, camelCase, OOMKilled
    r"|[^\W\d_]{2,}-\d|\d+(?:\.\d+){2,}"  # ORA-12154; address, version
)
_WORD = re.compile(f"\\d+(?:[-:/.,]\\d+)+|[^\\W_{HAN}]+(?:['’][^\\W_{HAN}]+)?")
_HAN_CHAR = re.compile(f"[{HAN}]")


def is_trivial(excerpt: str) -> bool:
    """Fewer than two words, and fewer than eight letters or digits too, and no key=value, number with unit, or identifier.

    A word said twice is one word, a clock time too. Chinese has no spaces: two Han characters count as one word of four
    letters, so `错误` is trivial and `连接失败` is not.
    """
    if _INFORMATIVE.search(excerpt):
        return False
    words = {fold_case(m[0]) for m in _WORD.finditer(excerpt)}
    han = len(_HAN_CHAR.findall(excerpt))
    if len(words) + han // 2 >= 2 or sum(c.isalnum() for word in words for c in word) + 2 * han >= 8:
        return False
    return not identifiers(excerpt)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, identifier or operator of a normalised text; `key` is what two texts are compared by."""

    key: str
    start: int
    end: int
    kind: str


_MARKUP = re.compile(
    r"</?(?:a|b|i|em|strong|code|span|div|p|br|li|ul|ol|td|tr|th|table|pre|h[1-6])(?: [^<>]*)?/?>", re.IGNORECASE
)
_COMPOUND = re.compile(
    rf"(?P<han>[{HAN}])"
    rf"|(?P<operator>[<>]=?|!=|!(?=\w)|[≠≤≥→←~±%‰°]|[*^](?=\d)|-+>)"
    rf"|(?P<compound>(?:(?<!\w)[-+$€£¥])?[^\W{HAN}]+(?:(?:[-.@'’]|(?<=\d)[:/,](?=\d))[^\W{HAN}]+)*[%‰°]?)"
)
_PART = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_AMOUNT = re.compile(rf"(?P<number>[-+$€£¥]?\d+(?:[.,]\d+)*)(?:(?P<unit>{UNIT})|(?P<sign>[%‰°]))?")
_UNIT_WORD = re.compile(UNIT)
_FUNCTION_WORDS_TEXT = (
    "a an the is are was were be been being has have had do does did of to in on at for from with as that this "
    "these those it its and which there then so"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS_TEXT.split())
_LEVELS_TEXT = "TRACE DEBUG INFO NOTICE WARN WARNING ERROR FATAL CRITICAL SEVERE"
_LEVELS = frozenset(_LEVELS_TEXT.split())


def tokens(text: str) -> list[Token]:
    """The tokens of a normalised text. What holds a figure stays whole, but for the unit of a number: `30000ms` gives
    the two tokens of `30000 ms`. Other compounds are split into words."""
    return list(_tokens(_MARKUP.sub(lambda m: " " * len(m[0]), text)))


def _tokens(text: str) -> Iterator[Token]:
    counted = -1  # where a plain number ended: what comes next may be its unit
    for m in _COMPOUND.finditer(text):
        kind = m.lastgroup or ""
        amount = _AMOUNT.fullmatch(m[0]) if kind == "compound" else None
        if amount is not None:
            cut = m.start() + amount.end("number")
            yield Token(amount["number"], m.start(), cut, "number")
            if cut < m.end():
                yield Token(text[cut : m.end()], cut, m.end(), "unit" if amount["unit"] else "operator")
            else:
                counted = cut
        elif kind == "compound" and any(c.isdigit() for c in m[0]):
            yield Token(m[0].replace("’", "'"), m.start(), m.end(), "number")
        elif kind == "compound" and counted == m.start() - 1 and text[counted] == " " and _UNIT_WORD.fullmatch(m[0]):
            yield Token(m[0], m.start(), m.end(), "unit")
        elif kind == "compound":
            if m[0][0] in "+-" and text[m.start() - 1 : m.start()] != "-":
                yield Token(m[0][0], m.start(), m.start() + 1, "operator")
            yield from _words(text, m)
        elif kind == "han":
            yield Token(m[0], m.start(), m.end(), "negation" if NEGATION.match(text, m.start()) else "han")
        else:
            yield Token(m[0], m.start(), m.end(), "operator")


def _words(text: str, compound: re.Match[str]) -> Iterator[Token]:
    parts = list(_PART.finditer(text, compound.start(), compound.end()))
    for part in parts:
        key = fold_case(part[0]).replace("’", "'")
        if NEGATION.search(key):
            kind = "negation"
        elif len(parts) > 1:
            kind = "name"
        else:
            kind = "level" if part[0] in _LEVELS else "word"
        yield Token(key, part.start(), part.end(), kind)


def paraphrased(excerpt: list[Token], record: list[Token]) -> Iterator[tuple[int, int]]:
    """The spans of the record whose words the excerpt gives in the same order.

    Left out of the record may be: punctuation, function words, and a level in capitals (`WARN`). Every other word says
    something of its own (`rarely`, `replica`, `failed`), and so do `by`, which turns round who did what, numbers, units,
    identifiers, negations, operators and Han characters.
    """
    if len(excerpt) < 2:
        return
    for first, token in enumerate(record):
        if token.key == excerpt[0].key:
            last = _aligned(excerpt, record, first)
            if last is not None:
                yield token.start, record[last].end


def _aligned(excerpt: list[Token], record: list[Token], first: int) -> int | None:
    at = first
    for wanted in excerpt[1:]:
        at += 1
        while at < len(record) and record[at].key != wanted.key:
            if record[at].kind != "level" and not (record[at].kind == "word" and record[at].key in _FUNCTION_WORDS):
                return None
            at += 1
        if at >= len(record):
            return None
    return at
