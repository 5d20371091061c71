"""Where an excerpt was cut out of its source: inside a word or number (refused), or away from a negation (warned).

gate.md, "Excerpt matching", steps 7 and 8. Chinese, Japanese, Korean and South-East Asian scripts need no boundary,
except between the figures of one number and between a number and its unit.
"""

from __future__ import annotations

import re
import unicodedata

_HAN_NEGATION = r"不(?!过|仅|但|断|管|同)|没|沒|未(?!来)|无(?!线)|無(?!線)|非(?!常)|勿|莫|别(?<![级类分特识区个差判]别)(?!的)|否(?<!是否)"
_LATIN_NEGATION = (
    r"[nN](?<![\w=<].)(?i:ot|o|ever|one|either|or|othing|obody|owhere|on)(?!\w)"
    r"|[wW](?<![\w=<].)(?i:ithout|asnt|erent|ont)(?!\w)|[cC](?<![\w=<].)(?i:annot|ant)(?!\w)"
    r"|[dD](?<![\w=<].)(?i:ont|oesnt|idnt)(?!\w)|[iI](?<![\w=<].)(?i:snt)(?!\w)|[aA](?<![\w=<].)(?i:rent)(?!\w)"
    r"|[uU](?<![\w=<].)(?i:nable)(?!\w)|[nN](?<=\w.)['’][tT](?!\w)"
)
NEGATION = re.compile(_LATIN_NEGATION + "|" + _HAN_NEGATION)
"""A negation, or the end of one (`n't`). Each branch starts with its letter: the search runs from letter to letter."""
NEGATION_HINT = re.compile(
    r"[nN](?:[oO]|[eE][iIvV]|['’]?[tT](?!\w))|[wW][iI][tT][hH]|[cC][aA][nN]|[uU][nN][aA]|[不没沒未无無非勿莫别否]"
)
"""Every place that NEGATION matches holds one of these; many others do too. It is ten times as quick to look for."""
HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = re.compile(
    f"[{HAN}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\uac00-\ud7af]"
)

_BETWEEN_DIGITS = ".,:/-"
_AFTER_NUMBER = re.compile("[%‰％°℃℉]|[十百千万萬亿億兆秒毫微纳]|分钟|小时|天")
_HAN_FIGURES = "〇零一二两三四五六七八九十百千万萬亿億"
_BEFORE_NUMBER = "$€£¥￥"
_CONTRACTION = re.compile(r"'(?:t|s|d|m|re|ve|ll)(?![^\W_])", re.IGNORECASE)
_COMPOUND_LEFT = re.compile(r"[\w-]*\Z")
_COMPOUND_RIGHT = re.compile(r"[\w-]*")
_PREFIXES_TEXT = "non no not un in im ir dis de mis anti pseudo semi sub"
_PREFIXES = frozenset(_PREFIXES_TEXT.split())
_SUFFIXES_TEXT = "free less proof"
_SUFFIXES = frozenset(_SUFFIXES_TEXT.split())
_COMPOUND_CHARS = 80


def splits_word(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` (normalised) lies inside a word or number. The text's ends are never inside."""
    if at <= 0 or at >= len(text):
        return False
    a, b = text[at - 1], text[at]
    if a == " " or b == " ":
        return False
    before = text[at - 2] if at > 1 else " "
    after = text[at + 1] if at + 1 < len(text) else " "
    if not b.isascii() and unicodedata.category(b)[0] == "M":
        return True
    if _is_word(a) and _is_word(b):
        if _UNSPACED.match(a) or _UNSPACED.match(b):
            return (a.isdigit() and _AFTER_NUMBER.match(text, at) is not None) or (
                a in _HAN_FIGURES and b in _HAN_FIGURES
            )
        return True
    if a.isdigit():
        if b in _BETWEEN_DIGITS and after.isdigit():
            return True
        if b in ".-" and _is_word(after):
            return True
        if _AFTER_NUMBER.match(text, at):
            return True
    if b.isdigit():
        if a in _BETWEEN_DIGITS and before.isdigit():
            return True
        if a == "-" or a in _BEFORE_NUMBER or (a == "." and before != "."):
            return True
        if a == "+" and _is_word(before):
            return True
    if a == "'" and _is_word(before) and _CONTRACTION.match(text, at - 1):
        return True
    if b == "'" and _is_word(a) and _CONTRACTION.match(text, at):
        return True
    if (a == "." and before.isdigit() and _is_word(b)) or (b == "." and _is_word(a) and after.isdigit()):
        return True
    return _splits_compound(text, at, a, b, before, after)


def _splits_compound(text: str, at: int, a: str, b: str, before: str, after: str) -> bool:
    """`payments-pool` may be cut at its hyphen; `pool-1`, `ORA-12154`, dates, ids, `non-zero` and `error-free` may not."""
    if not ((b == "-" and _is_word(a) and _is_word(after)) or (a == "-" and _is_word(b) and _is_word(before))):
        return False
    left = _COMPOUND_LEFT.search(text, max(0, at - _COMPOUND_CHARS), at)
    right = _COMPOUND_RIGHT.match(text, at, at + _COMPOUND_CHARS)
    assert left is not None
    assert right is not None
    parts = (left[0].strip("-").lower().split("-"), right[0].strip("-").lower().split("-"))
    return any(char.isdigit() for char in left[0] + right[0]) or parts[0][-1] in _PREFIXES or parts[1][0] in _SUFFIXES


def _is_word(char: str) -> bool:
    return char == "_" or char.isalnum() or (not char.isascii() and unicodedata.category(char)[0] == "M")


_GROUPING = "\u00a0\u2007\u2009\u202f"


def splits_grouped_number(source: str, start: int, end: int) -> bool:
    """`1\u202f000` is one number although its grouping space normalises to a plain one."""
    return any(
        1 < at < len(source) and gap in _GROUPING and left.isdigit() and right.isdigit()
        for at, gap, left, right in (
            (start, source[start - 1 : start], source[start - 2 : start - 1], source[start : start + 1]),
            (end, source[end : end + 1], source[end - 1 : end], source[end + 1 : end + 2]),
        )
        if gap
    )


_CLAUSE = re.compile(
    r"[;!?。；！？，：|{}\[\]]|[,:](?=[\s'\"{\[]|\Z)|\.(?=\s|\Z)|\s[-–—]+(?=\s|\Z)"
    r"|(?<=[:,={\[])\"|\"(?=[,:}\]]|\s+[\w.-]+=|\s*(?:\Z|\n))"
    r"|(?>\r\n|\r|\n)(?![ \t]*[a-z" + HAN + "])"
)
_TOKEN = re.compile(f"[{HAN}]|(?:[^\\W_{HAN}]|['’_-](?=\\w))+")
_CLAUSE_CHARS = 160
_LOOK_AHEAD = 40
_TOKENS_NEAR = 3


def clipped_before(text: str, start: int) -> bool:
    """Whether a negation stands before `start`, in the same clause and at most three tokens away.

    `text` has its line breaks: a line ends a clause unless the next one goes on in lower case or in Han. Two Han
    characters count as one token. Round brackets do not end a clause: warning once too often costs nothing.
    """
    if start == 0 or _CLAUSE.match(text, start - 1) or _CLAUSE.match(text, start):
        return False
    low = max(0, start - _CLAUSE_CHARS)
    if NEGATION.search(text, low, start) is None:
        return False
    around = text[low : start + _LOOK_AHEAD]
    ends = [m.end() for m in _CLAUSE.finditer(around) if m.end() <= start - low]
    clause = around[ends[-1] if ends else 0 : start - low]
    return _negation_near(list(_TOKEN.finditer(clause))[::-1], clause)


def clipped_after(text: str, end: int) -> bool:
    """The same for a negation behind the cut at `end`."""
    if _CLAUSE.match(text, end - 1) or _CLAUSE.match(text, end):
        return False
    right = text[end : end + _CLAUSE_CHARS]
    if NEGATION.search(right) is None:
        return False
    stop = _CLAUSE.search(right)
    clause = right[: stop.start()] if stop else right
    return _negation_near(list(_TOKEN.finditer(clause)), clause)


def _negation_near(tokens: list[re.Match[str]], clause: str) -> bool:
    distance = 0.0
    for token in tokens:
        if distance >= _TOKENS_NEAR:
            return False
        negation = NEGATION.search(clause, token.start())
        if negation and negation.start() < token.end():
            return True
        distance += 0.5 if re.match(f"[{HAN}]", token[0]) else 1
    return False
