"""The excerpt matcher: is this text in that ref, and where. Layered and exact; no score ever accepts (gate.md).

`match` gives the rule that an excerpt breaks, or none, with the span of the source's own text. Refs are
remembered with their normalised forms, by their text, in two bounded tables (small refs and large ones).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from handlers.excerpt_cuts import splits_grouped_number, splits_word
from handlers.excerpt_forms import Span, fold_case, normalize
from handlers.excerpt_readings import parts, readings
from handlers.excerpt_source import Source, View, source_of
from handlers.excerpt_source import full_lines as _full_lines
from handlers.excerpt_words import Token, is_trivial, paraphrased, tokens
from handlers.nearest import nearest_miss
from streams.contract import NearestMiss, Tier

__all__ = ["Match", "full_lines", "is_trivial", "match", "normalize"]

EXCERPT_LIMIT_CHARS = 2000
REF_LIMIT_BYTES = 256 * 1024
LINES_LIMIT_BYTES = 2048
SPANS_LIMIT = 1000
"""Places kept of an excerpt that stands everywhere; and four times as many are looked at."""
_PLACES_TRIED = 4096
_PARAPHRASE_PLACES = 32
_ANCHORS = 5
_SLACK = 60


@dataclass(frozen=True, slots=True)
class Match:
    """What the matcher found. `rule` is None for a supported excerpt, whatever the warnings.

    `start`, `end` and `text` are the source's (offsets in characters); `spans` are all places, one or more (1,000 at
    most), those that hold the excerpt to the letter first. They are empty where a rule is broken; `nearest_miss` is only there then.
    """

    rule: str | None
    trivial: bool
    warnings: tuple[str, ...]
    tier: Tier | None
    start: int | None
    end: int | None
    text: str | None
    spans: tuple[Span, ...]
    lines: str | None
    ref_sha256: str
    nearest_miss: NearestMiss | None


@dataclass(frozen=True, slots=True)
class _Hit:
    span: Span
    clipped: bool


def match(excerpt: str | None, ref_text: str) -> Match:
    """Look for the excerpt in a ref's text by the ten steps of gate.md. Never raises, whatever the two texts hold."""
    source = source_of(ref_text)
    shown = normalize(excerpt) if excerpt is not None else ""
    if excerpt is None or not shown:
        return _refused("evidence.excerpt_missing", source)
    if len(excerpt) > EXCERPT_LIMIT_CHARS or source.bytes > REF_LIMIT_BYTES:
        return _refused("evidence.too_large", source)
    hits = _whole(shown, source.views[0], source, fold=False)
    if hits:
        return _supported(excerpt, "normalized", hits, source, is_trivial(shown))
    read = readings(excerpt)
    for fold in (False, True):
        for tier, needle, view in _attempts(read, source):
            hits = _whole(needle, view, source, fold)
            if hits:
                return _supported(excerpt, "casefolded" if fold else tier, hits, source, is_trivial(needle))
        hits = [] if fold else _raw(excerpt.strip(), source)
        if hits:
            return _supported(excerpt, "exact", hits, source, is_trivial(shown))
        for _, needle, view in _attempts(read, source):
            found = parts(needle)
            hits = _elided(found, view, source, fold)
            if hits:
                trivial = len(found) == 1 and is_trivial(found[0])
                return _supported(excerpt, "casefolded" if fold else "elided", hits, source, trivial)
    return _failed(read, source, is_trivial(shown))


def full_lines(text: str, start: int, end: int, limit_bytes: int = LINES_LIMIT_BYTES) -> str:
    """The full line or lines around a hit, at most `limit_bytes` of UTF-8, whole characters, centred on the hit."""
    return _full_lines(text, start, end, limit_bytes)


_TIERS: tuple[Tier, ...] = ("normalized", "unescaped", "unwrapped")


def _attempts(read: list[tuple[Tier, str]], source: Source) -> Iterator[tuple[Tier, str, View]]:
    """Every reading of the excerpt against every reading of the source, the least changed pairs first."""
    for wanted in _TIERS:
        for tier, needle in read:
            for view in source.views:
                if max(_TIERS.index(tier), _TIERS.index(view.tier)) == _TIERS.index(wanted):
                    yield wanted, needle, view


def _whole(needle: str, view: View, source: Source, fold: bool) -> list[_Hit]:
    return [_Hit(span, view.clips_negation(start, end)) for start, end, span in _places(needle, view, source, fold)]


def _places(needle: str, view: View, source: Source, fold: bool) -> list[tuple[int, int, Span]]:
    """Where a needle stands, cut on word boundaries: offsets in the view's normalised text, and the source's span."""
    form = view.folded if fold else view.form
    wanted = fold_case(needle) if fold else needle
    text = view.form.text
    found: list[tuple[int, int, Span]] = []
    at = form.text.find(wanted)
    for _ in range(_PLACES_TRIED):
        if at < 0 or len(found) >= SPANS_LIMIT:
            break
        flat = form.up(at, at + len(wanted)) if fold else (at, at + len(wanted))
        span = view.form.to_source(*flat) if flat is not None else None
        if (
            flat is not None
            and span is not None
            and not _cut_inside(view, *flat, span, source)
            and not (fold and _unit_changed(needle, text[slice(*flat)]))
        ):
            found.append((*flat, span))
        at = form.text.find(wanted, at + 1)
    return found


def _cut_inside(view: View, start: int, end: int, span: Span, source: Source) -> bool:
    """Step 7, at both ends."""
    text = view.form.text
    return splits_word(text, start) or splits_word(text, end) or splits_grouped_number(source.text, *span)


_UNIT = re.compile(r"(?<=\d)[A-Za-z]+|(?<=\d )(?i:m|[kmgtp]?i?b)(?![^\W_])")


def _unit_changed(needle: str, text: str) -> bool:
    """`5m` is not `5M`, `10 Mb` is not `10 MB`, although both fold to the same: only then case counts."""
    return any(
        ours != theirs
        and ({ours, theirs} == {"m", "M"} or all(a == b or a in "bB" for a, b in zip(ours, theirs, strict=False)))
        for ours, theirs in zip(_UNIT.findall(needle), _UNIT.findall(text), strict=False)
    )


def _raw(excerpt: str, source: Source) -> list[_Hit]:
    """Step 1 where step 2 would not find it: the excerpt's edge lies inside an escape sequence of the source."""
    if "\x1b" not in source.text:
        return []
    view = source.views[0]
    at = source.text.find(excerpt)
    hits: list[_Hit] = []
    while at >= 0 and len(hits) < SPANS_LIMIT:
        start, end = view.form.down(at), view.form.down(at + len(excerpt))
        if (
            start is not None
            and end is not None
            and start < end
            and not splits_word(view.form.text, start)
            and not splits_word(view.form.text, end)
        ):
            hits.append(_Hit((at, at + len(excerpt)), view.clips_negation(start, end)))
        at = source.text.find(excerpt, at + 1)
    return hits


def _elided(found: list[str], view: View, source: Source, fold: bool) -> list[_Hit]:
    """Step 5: all parts informative, in order, in one record. A single part is an excerpt with its end marked as cut."""
    if len(found) == 1:
        return _whole(found[0], view, source, fold)
    if not found or any(is_trivial(part) for part in found):
        return []
    columns = _columns(found, view, source, fold)
    if not columns:
        return []
    hits: dict[Span, _Hit] = {}
    for head in columns[0]:
        record = source.record(head[2][1] - 1)
        if record not in hits:
            chain = _chain([[head], *columns[1:]])
            if chain and source.same_record(tuple(span for _, _, span in chain)):
                clipped = any(view.clips_negation(start, end) for start, end, _ in chain)
                hits[record] = _Hit((chain[0][2][0], chain[-1][2][1]), clipped)
    return list(hits.values())


def _columns(found: list[str], view: View, source: Source, fold: bool) -> list[list[tuple[int, int, Span]]]:
    """The places of each part; empty if some part has none."""
    text = (view.folded if fold else view.form).text
    wanted = {part: fold_case(part) if fold else part for part in found}
    if any(part not in text for part in wanted.values()):
        return []
    places = {part: _places(part, view, source, fold) for part in wanted}
    return [places[part] for part in found] if all(places.values()) else []


def _chain(columns: list[list[tuple[int, int, Span]]]) -> list[tuple[int, int, Span]]:
    """The earliest place of each part after the one before; empty if some part has none left."""
    chain: list[tuple[int, int, Span]] = []
    for column in columns:
        index = bisect_left(column, chain[-1][1], key=lambda place: place[0]) if chain else 0
        if index == len(column):
            return []
        chain.append(column[index])
    return chain


def _supported(excerpt: str, tier: Tier, hits: list[_Hit], source: Source, trivial: bool) -> Match:
    literal = (excerpt, excerpt.strip())
    spans = tuple(sorted({hit.span for hit in hits}, key=lambda span: (source.text[slice(*span)] not in literal, span)))
    start, end = spans[0]
    text = source.text[start:end]
    if tier == "normalized" and text in literal:
        tier = "exact"
    warned = (
        ("evidence.excerpt_case", tier == "casefolded"),
        ("evidence.ambiguous_span", len(spans) > 1),
        ("evidence.negation_clipped", any(hit.clipped for hit in hits)),
    )
    return Match(
        rule=None,
        trivial=trivial,
        warnings=tuple(warning for warning, holds in warned if holds),
        tier=tier,
        start=start,
        end=end,
        text=text,
        spans=spans,
        lines=full_lines(source.text, start, end),
        ref_sha256=source.sha256,
        nearest_miss=None,
    )


def _failed(read: list[tuple[Tier, str]], source: Source, trivial: bool) -> Match:
    rule = "evidence.excerpt_mismatch"
    if any(_stitched(parts(needle), view, source) for _, needle, view in _attempts(read, source)):
        rule = "evidence.excerpt_stitched"
    elif not trivial and any(_paraphrases(needle, view, source) for _, needle, view in _attempts(read, source)):
        rule = "evidence.excerpt_paraphrase"
    view = source.views[0]
    return _refused(rule, source, trivial, nearest_miss(read[-1][1], view.form, view.folded))


def _stitched(found: list[str], view: View, source: Source) -> bool:
    """All parts stand there, in order, whatever the records; that they are not in one has been seen before."""
    if len(found) < 2 or any(is_trivial(part) for part in found):
        return False
    columns = _columns(found, view, source, fold=True)
    return bool(columns and _chain(columns))


def _paraphrases(needle: str, view: View, source: Source) -> bool:
    """Looked for around the rarest of the long words, inside one record, word by word."""
    wanted = tokens(needle)
    text, folded = view.form.text, view.folded
    keys = {fold_case(token.key) for token in wanted}
    if not wanted or any(key not in folded.text for key in keys):
        return False
    longest = sorted(wanted, key=lambda token: -len(token.key))[:_ANCHORS]
    anchor = min(longest, key=lambda token: folded.text.count(fold_case(token.key)))
    word = fold_case(anchor.key)
    at = folded.text.find(word)
    for _ in range(_PARAPHRASE_PLACES):
        if at < 0:
            return False
        place = folded.up(at, at + len(word))
        if place is not None:
            low, high = place[0] - 2 * anchor.start - _SLACK, place[1] + 2 * (len(needle) - anchor.end) + _SLACK
            low, high = text.rfind(" ", 0, max(0, low)) + 1, text.find(" ", max(0, high))
            window = text[low : high if high >= 0 else len(text)]
            if all(key in fold_case(window) for key in keys) and _says_the_same(wanted, window, low, view, source):
                return True
        at = folded.text.find(word, at + 1)
    return False


def _says_the_same(wanted: list[Token], window: str, low: int, view: View, source: Source) -> bool:
    for start, end in paraphrased(wanted, tokens(window)):
        span = view.form.to_source(low + start, low + end)
        if (
            span is not None
            and source.same_record(((span[0], span[0] + 1), (span[1] - 1, span[1])))
            and not _cut_inside(view, low + start, low + end, span, source)
            and not view.clips_negation(low + start, low + end)
        ):
            return True
    return False


def _refused(rule: str, source: Source, trivial: bool = False, nearest: NearestMiss | None = None) -> Match:
    return Match(rule, trivial, (), None, None, None, None, (), None, source.sha256, nearest)
