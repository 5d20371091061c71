"""Excerpts somebody tampered with, class by class."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.bench.excerpt_texts import (
    MESSAGES,
    SERVICES,
    STORES,
    filled,
    logfmt,
    ndjson,
    plain,
    record,
)
from tests.bench.honest_excerpts import chinese, cut, exact, picked, ref_with

_SWAPS = (
    (r"\bincreased\b", "decreased"), (r"\bhigh\b", "low"), (r"\bopened\b", "closed"), (r"\bstarted\b", "stopped"),
    (r"\bfailed\b", "succeeded"), (r"\brefused\b", "accepted"), (r"\bunavailable\b", "available"), (r"\bSlow\b", "Fast"),
    (r"\bjoined\b", "left"), (r"\babove\b", "below"), (r"\breached\b", "avoided"), (r"\bexhausted\b", "idle"),
    (r"已耗尽", "已恢复"), (r"升高", "下降"), (r"失败", "成功"), (r"已被拒绝", "已被接受"), (r"\bdropped\b", "added"), (r"\bbehind\b", "ahead"),
)  # fmt: skip
_UNITS = {
    "ms": "s",
    "MB": "GB",
    "%": "ms",
    "seconds": "minutes",
    "minutes": "hours",
    "毫秒": "秒",
    "次": "个",
    "rows": "tables",
}
_NEGATED = r"\b(?:not|never|no longer) |没有|不(?=可用)"


def _changed(
    pattern: str, change: Callable[[random.Random, re.Match[str]], str]
) -> Callable[[random.Random], tuple[str, str]]:
    """A tampering that replaces one occurrence of a pattern in an honest excerpt; other excerpts are drawn again."""

    def made(rng: random.Random) -> tuple[str, str]:
        while True:
            excerpt, ref = (chinese if rng.random() < 0.2 else exact if rng.random() < 0.5 else picked)(rng)
            spots = list(re.finditer(pattern, excerpt))
            if spots:
                spot = rng.choice(spots)
                return excerpt[: spot.start()] + change(rng, spot) + excerpt[spot.end() :], ref

    return made


def _other(options: tuple[str, ...]) -> Callable[[random.Random, re.Match[str]], str]:
    return lambda rng, m: rng.choice([option for option in options if option != m[0]])


def _antonym(rng: random.Random, m: re.Match[str]) -> str:
    return next(new for pattern, new in _SWAPS if re.fullmatch(pattern, m[0]))


def _added_negation(rng: random.Random) -> tuple[str, str]:
    return _changed(
        r"\b(?:is|was|are) (?!not|never|no )|(?<=\w)已(?=耗尽|被)",
        lambda r, m: m[0] + "not " if m[0].isascii() else "未",
    )(rng)


def _boundary_start(rng: random.Random) -> tuple[str, str]:
    return _changed(r"\A.*?\w(?=[0-9a-zA-Z])(?=.{12})", lambda r, m: "")(rng)


def _boundary_end(rng: random.Random) -> tuple[str, str]:
    while True:
        excerpt, ref = picked(rng)
        spots = [
            m.start()
            for m in re.finditer(r"(?<=[0-9a-zA-Z])(?:[0-9a-zA-Z]|%|[.,:](?=[0-9]))", excerpt)
            if m.start() > 14
        ]
        if spots:
            return excerpt[: rng.choice(spots)], ref


_FABRICATIONS = (
    "{svc} ran out of file descriptors at {p}% of the limit",
    "certificate of {db} expired {w} seconds ago",
    "kernel killed {svc} with signal 9 after {ms}ms",
    "DNS lookup of {db} returned NXDOMAIN {n} times",
    "{svc} 的证书已过期 {w} 天",
)


def _fabricated(rng: random.Random) -> tuple[str, str]:
    _, ref = picked(rng)
    return filled(rng, rng.choice(_FABRICATIONS)), ref


def _appended(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    return excerpt + filled(
        rng, rng.choice((" because {db} ran out of disk", " caused by a deployment of {svc}", "，导致 {svc} 崩溃"))
    ), ref


def _reordered(rng: random.Random) -> tuple[str, str]:
    while True:
        excerpt, ref = picked(rng)
        words = excerpt.split(" ")
        a, b = sorted(rng.sample(range(len(words)), 2))
        if words[a] != words[b]:
            words[a], words[b] = words[b], words[a]
            return " ".join(words), ref


def _stitched(rng: random.Random) -> tuple[str, str]:
    (one, line), (two, last) = record(rng), record(rng)
    parts = (cut(rng, one), cut(rng, two))
    return rng.choice((" ... ", " … ", " ")).join(parts), "\n".join((line, record(rng)[1], last))


def _trivial(rng: random.Random) -> tuple[str, str]:
    """Text that stands there, on word boundaries, and says nothing."""
    line = rng.choice((plain, logfmt, ndjson))(rng, "ERROR: " + filled(rng, MESSAGES[0]))
    options = ("ERROR", "not", "after", "ERROR:", "request", "(", '"msg": "')
    return rng.choice([option for option in options if option in line]), ref_with(rng, line)


def _wrong_ref(rng: random.Random) -> tuple[str, str]:
    return exact(rng)[0], "\n".join(record(rng)[1] for _ in range(10))


TAMPERED: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "digit": _changed(r"\d", lambda r, m: r.choice([d for d in "0123456789" if d != m[0]])),
    "digit dropped": _changed(r"(?<=\d)\d", lambda r, m: ""),
    "number added": _changed(r"(?<= )\d+", lambda r, m: f"{m[0]} and {r.randint(100, 999)}"),
    "entity": _changed("|".join(SERVICES + STORES), _other(SERVICES + STORES)),
    "antonym": _changed("|".join(pattern for pattern, _ in _SWAPS), _antonym),
    "negation dropped": _changed(_NEGATED, lambda r, m: ""),
    "negation added": _added_negation,
    "unit": _changed(
        r"(?<=\d)(?:ms\b|MB\b|%)|(?<=\d )(?:ms|seconds|minutes|rows)\b|毫秒|(?<=\d )次", lambda r, m: _UNITS[m[0]]
    ),
    "boundary, start": _boundary_start,
    "boundary, end": _boundary_end,
    "fabricated": _fabricated,
    "appended cause": _appended,
    "reordered": _reordered,
    "stitched": _stitched,
    "trivial": _trivial,
    "wrong ref": _wrong_ref,
}
NEVER = (
    "digit",
    "digit dropped",
    "entity",
    "antonym",
    "negation dropped",
    "negation added",
    "unit",
    "boundary, start",
    "boundary, end",
    "fabricated",
)
"""Classes of which none may be accepted (J1)."""
