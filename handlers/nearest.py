"""The nearest miss: what an excerpt that failed was probably meant to be (gate.md, step 10). It never accepts."""

from __future__ import annotations

import re
from typing import Literal

from rapidfuzz import fuzz

from handlers.excerpt_forms import Form, fold_case
from handlers.excerpt_words import UNIT, Token, tokens
from streams.contract import NearestMiss

Difference = Literal["digit", "negation", "entity", "word"]

_WORDS_COUNTED = 12
_ANCHORS = 5
_PLACES = 64
_WINDOWS = 4
_ALIGNED_CHARS = 400
_LEAST_RATIO = 50.0
_UNIT_AHEAD = re.compile(rf"(?<=\d) ?{UNIT}(?![A-Za-z])")


def nearest_miss(excerpt: str, form: Form, folded: Form) -> NearestMiss | None:
    """The source's text closest to a normalised excerpt, on word boundaries; None if nothing is half alike.

    Only places that share words with the excerpt are compared, the rarest words first, so that the cost is bounded.
    """
    best: tuple[float, int, int] | None = None
    for guess in _guesses(excerpt, folded.text):
        low, high = max(0, guess - len(excerpt) // 4 - 40), guess + len(excerpt) * 5 // 4 + 40
        window = form.text[low:high]
        if len(excerpt) <= _ALIGNED_CHARS:
            found = fuzz.partial_ratio_alignment(excerpt, window)
            if found is None:
                continue
            start, end = low + found.dest_start, low + found.dest_end
        else:
            start, end = max(0, guess), min(len(form.text), guess + len(excerpt))
        start, end = _whole_words(form.text, start, end)
        ratio = fuzz.ratio(excerpt, form.text[start:end])
        if start < end and (best is None or ratio > best[0]):
            best = ratio, start, end
    if best is None or best[0] < _LEAST_RATIO:
        return None
    ratio, start, end = best
    span = form.to_source(start, end)
    source = form
    while source.parent is not None:
        source = source.parent
    if span is None:
        return None
    return NearestMiss(
        text=source.text[slice(*span)],
        start=span[0],
        end=span[1],
        difference=difference(excerpt, form.text[start:end]),
        ratio=round(ratio, 1),
    )


def _guesses(excerpt: str, folded: str) -> list[int]:
    """Offsets where the excerpt may have started, by the words it shares with the text; rare words count for more."""
    votes: dict[int, float] = {}
    first: dict[int, int] = {}
    grain = max(16, len(excerpt) // 2)
    words = {fold_case(token.key): token for token in reversed(tokens(excerpt))}
    longest = sorted(words, key=lambda key: -len(key))[:_WORDS_COUNTED]
    counts = {key: folded.count(key) for key in longest}
    for key in sorted((key for key in longest if counts[key]), key=lambda key: counts[key] / len(key))[:_ANCHORS]:
        token = words[key]
        places: list[int] = []
        at = folded.find(key)
        while at >= 0 and len(places) < _PLACES:
            places.append(at)
            at = folded.find(key, at + len(key))
        for place in places:
            guess = place - token.start
            bucket = guess // grain
            first.setdefault(bucket, guess)
            votes[bucket] = votes.get(bucket, 0.0) + len(key) / counts[key]
    ranked = sorted(votes, key=lambda bucket: (-votes[bucket] - votes.get(bucket + 1, 0.0), bucket))
    return [first[bucket] for bucket in ranked[:_WINDOWS]]


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    while 0 < start < len(text) and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while 0 < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    unit = _UNIT_AHEAD.match(text, end)
    if unit is not None:
        end = unit.end()
    while start < end and text[start] == " ":
        start += 1
    while start < end and text[end - 1] == " ":
        end -= 1
    return start, end


def difference(excerpt: str, source: str) -> Difference:
    """The kind of the gravest difference between two near texts: a figure, a negation, a name, or some other word."""
    ours, theirs = tokens(excerpt), tokens(source)
    added, missing = _only(ours, theirs), _only(theirs, ours)
    changed = added + missing
    if any(token.kind == "negation" for token in changed):
        return "negation"
    if (
        any(_is_figure(token) for token in changed)
        or [_figures_out(t) for t in added] == [_figures_out(t) for t in missing] != []
    ):
        return "digit"
    if any(token.kind in ("name", "number") or not token.key.isalpha() for token in changed):
        return "entity"
    return "word"


def _only(some: list[Token], others: list[Token]) -> list[Token]:
    left: dict[str, int] = {}
    for token in others:
        left[token.key] = left.get(token.key, 0) + 1
    only: list[Token] = []
    for token in some:
        if left.get(token.key, 0):
            left[token.key] -= 1
        else:
            only.append(token)
    return only


def _is_figure(token: Token) -> bool:
    return token.kind == "unit" or (token.kind == "number" and token.key.lstrip("+-")[:1].isdigit())


def _figures_out(token: Token) -> str:
    return "".join(char for char in token.key if not char.isdigit())
