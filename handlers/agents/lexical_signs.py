"""Words with an opposite, in both languages, and whether lines say the opposite of a claim: `unhealthy` of `healthy`,
没有超时 of 超时, `decreased` of `increased`. A negation in the same clause turns a word round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handlers.anchors import fold, identifiers, negated, stands_in
from handlers.question import content_words, vocabulary

# concept -> (one side, its opposite); an empty opposite is said by a negation alone
_POLES = {
    "available": (r"available|可用", r"unavailable|不可用"),
    "reachable": (r"reachable|可达", r"unreachable|不可达"),
    "ready": (r"ready|就绪", r"not\s?ready|unready|未就绪"),
    "healthy": (r"healthy|健康", r"unhealthy|不健康"),
    "up": (
        r"(?<=is )up|(?<=are )up|(?<=was )up|(?<=were )up",
        r"(?<=is )down|(?<=are )down|(?<=was )down|(?<=were )down",
    ),
    "succeed": (r"succe(?:eds?|eded|ss|ssful|ssfully)|成功", r"fail(?:s|ed|ing|ures?)?|unsuccessful(?:ly)?|失败"),
    "rise": (
        r"increas(?:e|es|ed|ing)|r[io]se(?:s|n)?|rising|gr[eo]w(?:s|n|ing)?|(?:went|goes|going)\s+up|上升|升高|增加|增长|上涨|变大",
        r"decreas(?:e|es|ed|ing)|f[ae]ll(?:s|en|ing)?|drop(?:s|ped|ping)?|declin(?:e|es|ed|ing)|(?:went|goes|going)\s+down|下降|降低|减少|下跌|变小",
    ),
    "enabled": (r"enabled|已启用", r"disabled|已禁用"),
    "timeout": (r"tim(?:ed|es|ing)[ -]out|time-?outs?|超时", ""),
    "exhausted": (r"exhaust(?:ed|ion)|耗尽", ""),
    "delay": (r"delay(?:s|ed)?|延迟", ""),
    "leak": (r"leak(?:s|ed|ing)?|泄[漏露]", ""),
    "crash": (r"crash(?:es|ed)?|崩溃", ""),
    "restart": (r"restart(?:s|ed)?|重启", ""),
}
_PATTERNS = tuple(
    (concept, sign, re.compile(rf"(?:(?<![A-Za-z_])(?:{side})(?![A-Za-z_{{]))(?![\"']?\s?[:=])", re.IGNORECASE))
    for concept, sides in _POLES.items()
    for sign, side in ((-1, sides[1]), (1, sides[0]))
    if side
)
_CLAUSE = re.compile(
    r"[,，;；。!！?？\n()（）]|\.(?=\s|$)|(?<![A-Za-z])(?:but|however|although|while)(?![A-Za-z])|但是?|却|然而|不过",
    re.IGNORECASE,
)
_UNABLE = re.compile(
    r"无法|不能|(?<![A-Za-z])(?:cannot|can['’]t|could\s+not|couldn['’]t|unable)(?![A-Za-z])", re.IGNORECASE
)
_SAME_THING = 0.5


@dataclass(frozen=True, slots=True)
class Signs:
    """What lines say of a claim's words with an opposite: `opposite` is the clause that denies one, `agreed` is True
    if every one of them, and at least one, is said with the claim's sign."""

    opposite: str | None
    agreed: bool


@dataclass(frozen=True, slots=True)
class _Said:
    concept: str
    sign: int
    clause: str
    rest: frozenset[str]


def signs(claim: str, lines: Sequence[str]) -> Signs:
    """The claim's words with an opposite against the lines. Opposite is only a clause about the same thing: it shares
    half of the claim's other words, or a name; and no other clause may say it with the claim's sign."""
    given = [said for line in lines for said in _said(line)]
    agreed: list[bool] = []
    for mine in _said(claim):
        theirs = [said for said in given if said.concept == mine.concept]
        agreed.append(any(said.sign == mine.sign for said in theirs))
        if not agreed[-1]:
            for said in theirs:
                if _same_thing(claim, mine, said, lines):
                    return Signs(said.clause.strip()[:160], False)
    return Signs(None, bool(agreed) and all(agreed))


def _said(text: str) -> Iterator[_Said]:
    for clause in _CLAUSE.split(fold(text)):
        left, found = clause, []
        for concept, sign, pattern in _PATTERNS:
            if pattern.search(left):
                found.append((concept, sign))
                left = pattern.sub(" ", left)
        # That something could not be done turns no word round: `could not connect, timed out`.
        turned = -1 if found and negated(_UNABLE.sub(" ", left)) else 1
        rest = frozenset(word.stem for word in content_words(left))
        yield from (_Said(concept, sign * turned, clause, rest) for concept, sign in found)


def _same_thing(claim: str, mine: _Said, said: _Said, lines: Sequence[str]) -> bool:
    names = identifiers(claim)
    if names and any(stands_in(name, fold(line)) for name in names for line in lines if said.clause in fold(line)):
        return True
    rest = mine.rest - {"存在", "出现", "发生"}
    return len(rest & vocabulary([said.clause])) >= _SAME_THING * len(rest)
