"""Questions of how many: which records state a number of things, so that lines beside the point do not pass for one."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ASKED = re.compile(
    r"\bhow (?:many|often)\b|\b(?:number|count|total) of\b|多少(?!时间)|几[个次条台笔]|次数|数量|总数", re.IGNORECASE
)
_COUNTED = re.compile(
    r"\b\w*(?:count(?:er|s)?|total|restarts?|times|errors|failures|retries|lag|depth|size)[\"']?\s*(?:[:=]|is(?: at)?|of)\s*[\"']?\d"
    r"|\b(?:value|last)=\d|\bx\d+\b(?= over|\))|\b\d+ (?:times|errors|failures|restarts|of \d+)\b|(?<![\w/.:-])\d+/\d+(?![\w/.:-])"
    r"|\b(?:after|failed|aborted|only|all) \d+ [a-z]|\d+\s*[个次条台笔]",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“].*[\"”]", re.DOTALL)
_SAID = re.compile(
    r"\d|[一二三四五六七八九十百两]|\b(?:no|none|once|twice|one|two|three|four|five|six|seven|eight|nine|ten)\b",
    re.IGNORECASE,
)
BONUS = 1.5


def asks_how_many(question: str) -> bool:
    return _ASKED.search(question) is not None


def counts(lines: Iterable[str]) -> bool:
    """Whether one of the lines states a number of things: a count under a key, `61 times`, `14 of 60`, a series' value."""
    return any(_COUNTED.search(line) for line in lines)


def says_number(claim: str) -> bool:
    """Whether a claim has a number in its own words, outside of what it quotes."""
    return _SAID.search(_QUOTED.sub(" ", claim)) is not None


def tallies(question: str) -> bool:
    """Whether the kinds of records, with how often each occurs, may answer: kinds are blind to numbers, so not where the
    question has one."""
    return asks_how_many(question) and not re.search(r"\d", question)
