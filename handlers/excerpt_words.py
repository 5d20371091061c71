"""What an excerpt says, word by word: whether it carries information, and whether it paraphrases a record.

Rules `evidence.excerpt_trivial` and `evidence.excerpt_paraphrase` of gate.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from handlers.excerpt_cuts import HAN, NEGATION

_UNIT = r"(?:%|‰|°C|ms|s|sec|secs|seconds?|min|mins|minutes?|h|hours?|days?|[kKMGT]i?[bB]?|bytes?|rps|qps|Hz|秒|毫秒|分钟|小时|天|次|个)"
_INFORMATIVE = re.compile(
    r"[\w.-][\"']?\s?==?\s?[\"']?[^\s\"'=,;]"  # key=value
    r"|[^\W\d][\"']?\s?:\s?[\"']?[-+]?\d"  # key: number
    rf"|\d(?:[.,]\d+)?\s?{_UNIT}(?![^\W_])"  # number with unit
    r"|(?=\w*\d)(?=\w*[^\W\d_])\w{3,}"  # identifier of letters and digits
    r"|[^\W_]_\w|[a-z][A-Z]|[A-Z]{2}[a-z]{2}"  # snake_case, camelCase, OOMKilled
    r"|[^\W\d_]{2,}-\d|\d+(?:\.\d+){2,}"  # ORA-12154; address, version
)
_WORD = re.compile(f"[^\\W_{HAN}]+(?:['’][^\\W_{HAN}]+)?")
_HAN_CHAR = re.compile(f"[{HAN}]")
_DOTTED = re.compile(r"[^\W_]+(?:[-.][^\W_]+)+")


def is_trivial(excerpt: str) -> bool:
    """Fewer than two words and eight letters or digits, and no key=value, number with unit, or identifier.

    A word said twice is one word. Chinese has no spaces: two Han characters count as one word of four letters, so
    `错误` is trivial and `连接失败` is not.
    """
    if _INFORMATIVE.search(excerpt) or any(len(m[0]) > 8 for m in _DOTTED.finditer(excerpt)):
        return False
    words = [m[0] for m in _WORD.finditer(excerpt)]
    han = len(_HAN_CHAR.findall(excerpt))
    distinct = len({word.casefold() for word in words})
    return distinct + han // 2 < 2 or sum(c.isalnum() for word in words for c in word) + 2 * han < 8


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
_FUNCTION_WORDS_TEXT = (
    "a an the is are was were be been being has have had do does did of to in on at by for from with as that this "
    "these those it its and which there then so"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS_TEXT.split())
_CHANGES_MEANING_TEXT = (
    "if unless until when while would could should may might almost nearly barely hardly except only instead before "
    "after but or than fail fails failed failing stop stops stopped lack lacks lost avoid avoids avoided prevent "
    "prevents prevented deny denies denied refuse refused false off zero one two three four five half double "
    "expected previously formerly other another"
)
_CHANGES_MEANING = frozenset(_CHANGES_MEANING_TEXT.split())


def tokens(text: str) -> list[Token]:
    """The tokens of a normalised text. What holds a figure stays whole; other compounds are split into words."""
    return list(_tokens(_MARKUP.sub(lambda m: " " * len(m[0]), text)))


def _tokens(text: str) -> Iterator[Token]:
    for m in _COMPOUND.finditer(text):
        kind = m.lastgroup or ""
        if kind == "compound" and any(c.isdigit() for c in m[0]):
            yield Token(m[0].replace("’", "'"), m.start(), m.end(), "number")
        elif kind == "compound":
            parts = list(_PART.finditer(text, m.start(), m.end()))
            for part in parts:
                key = part[0].casefold().replace("’", "'")
                negated = NEGATION.search(key) is not None
                yield Token(
                    key, part.start(), part.end(), "negation" if negated else "name" if len(parts) > 1 else "word"
                )
        elif kind == "han":
            yield Token(m[0], m.start(), m.end(), "negation" if NEGATION.match(text, m.start()) else "han")
        else:
            yield Token(m[0], m.start(), m.end(), "operator")


def paraphrased(excerpt: list[Token], record: list[Token]) -> Iterator[tuple[int, int]]:
    """The spans of the record whose words the excerpt gives in the same order.

    Left out of the record may be: punctuation, function words, and now and then one other word (never two running,
    never more than a third). Never left out: a number, an identifier, a negation, an operator, a Han character, or
    a word that turns the meaning (`if`, `failed`, `almost`).
    """
    if len(excerpt) < 2:
        return
    for first, token in enumerate(record):
        if token.key == excerpt[0].key:
            last = _aligned(excerpt, record, first)
            if last is not None:
                yield token.start, record[last].end


def _aligned(excerpt: list[Token], record: list[Token], first: int) -> int | None:
    at, left_out, running = first, 0, 0
    for wanted in excerpt[1:]:
        at, running = at + 1, 0
        while at < len(record) and record[at].key != wanted.key:
            skipped = record[at]
            if skipped.kind != "word" or skipped.key in _CHANGES_MEANING:
                return None
            if skipped.key not in _FUNCTION_WORDS:
                left_out, running = left_out + 1, running + 1
                if running > 1 or left_out * 3 > len(excerpt):
                    return None
            at += 1
        if at >= len(record):
            return None
    return at
