"""Where a number stands: that lines have it is not enough, if they have it of another thing, under another key, or in
another order than the claim says. Each finding lowers a claim, none proves one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from handlers.agents.lexical_keys import stated, stems
from handlers.anchors import (
    Identifier,
    Quantity,
    absent_quantities,
    fold,
    identifiers,
    quantities,
    readings_of_line,
    same,
    stands_in,
)
from handlers.question import vocabulary

_CLAUSE = re.compile(
    r"[;；,，、。\n()（）]|\.(?=\s|$)|(?<![A-Za-z])(?:and|but|while|whereas|then)(?![A-Za-z])|而|并且?|但",
    re.IGNORECASE,
)
MOST_ANCHORS = 128
NEAR = 48  # characters before a number that may say what it is
_ALIKE = 0.75  # of two names, one can be taken for the other
_SERIAL = re.compile(r"\d{4,}")
_DIGITS = re.compile(r"(?<![\w.])\d{4,}(?![\w.])", re.ASCII)
_COLUMN = re.compile(r"\t+|\s{2,}|\s*\|\s*")
_WORD = re.compile(r"[\w./-]{3,}")
_REASON = re.compile(r"(?<![A-Za-z0-9_.])(?:[A-Z][a-z]+){2,}(?![A-Za-z0-9_.])")
_STATS = {
    "last": "last now current currently latest 当前 目前 现在",
    "max": "max maximum peak peaked most highest 峰值 最高 最大",
    "min": "min minimum least lowest 最低 最小",
    "avg": "avg average mean 平均",
}
_SERIES = re.compile(r"^([A-Za-z_:][\w:.]*)(?:\{.*?\})?\s+(?=(?:last|min|max|avg)=)")
_STAT = re.compile(r"\b(last|min|max|avg)=(\S+)")
_DIRECTIVE = re.compile(r"^\s*([A-Za-z_][\w.-]*)\s+(\d\S*?);?\s*$")
_BLOCK = re.compile(r"^\s*(?:-\s)?[\"']?([A-Za-z_][\w.-]*)[\"']?:\s*$")
_BEFORE = re.compile(r"(?<![\w.-])((?:[A-Za-z]{2,} )?[A-Za-z][\w.-]{2,}) $")
_AFTER = re.compile(r"^ ([a-z]{3,})(?![\w=:])")
_CHANGED = re.compile(
    r"(?<![A-Za-z])from\s+[\"'`]?([\w.-]+)[\"'`]?\s+to\s+[\"'`]?([\w-]+(?:\.[\w-]+)*)|(?<![\w.-])([\w.-]+)\s*(?:->|→|=>)\s*([\w-]+(?:\.[\w-]+)*)",
    re.IGNORECASE,
)
_ROW = re.compile(r"^\s*\|\s*([A-Za-z_][\w.-]*)\s*\|\s*(\d\S*)\s*\|")
_FROM = re.compile(r"(?:(?<![A-Za-z])from|从|由)\s*$", re.IGNORECASE)
_TO = re.compile(
    r"^\W{0,2}(?:MB|GB)?\s*(?:(?:all the way|back|down|up|over)\s+)?(?:to|into|到|至|变为|[升降][到至为]|切换[到至为])\s*$",
    re.IGNORECASE,
)
_WAS = re.compile(r"(?<![A-Za-z])(?:from|was|old|prev(?:ious)?|before)\W{0,3}$", re.IGNORECASE)


def misplaced(claim: str, lines: Sequence[str]) -> str | None:
    """What of the claim the lines say of another thing, or None."""
    return _of_another(claim, lines) or _under_another_key(claim, lines) or _other_way_round(claim, lines)


def _clauses(text: str) -> Iterator[str]:
    yield from (part for part in _CLAUSE.split(fold(text)) if part.strip())


def _of_another(claim: str, lines: Sequence[str]) -> str | None:
    """`web-1 restarted 6 times` where only the line of web-2 has a 6."""
    for clause in _clauses(claim):
        names = identifiers(clause)
        serials = [q.text for q in quantities(clause) if _SERIAL.fullmatch(q.text)]
        own = [line for line in lines if any(stands_in(n, fold(line)) for n in names)]
        own = own or _rows_named(clause, lines) or [line for line in lines if _numbered(serials, line)]
        if not own:
            continue
        rows = not names or any(_is_head(name, line) for name in names for line in own)
        others = [
            line
            for line in lines
            if line not in own
            and (_has_like(names, line) or _counts_on(serials, line) or (rows and _is_row(line, own[0])))
        ]
        neutral = [line for line in lines if line not in own and line not in others]
        strange = absent_quantities(quantities(clause), [*own, *neutral])
        there = [q.text for q in strange if not absent_quantities([q], others)]
        words = [word for word in _REASON.findall(clause) if not any(word in line for line in [*own, *neutral])]
        there += [word for word in words if any(word in line for line in others)]
        if others and there:
            return f"{', '.join(there)} stands in the line of another: {others[0].strip()[:120]}"
    return None


def _is_head(name: Identifier, line: str) -> bool:
    """Whether a table's row is headed by the name."""
    return "  " in line.strip() and fold(line).lstrip().startswith(name.text)


def _is_row(line: str, beside: str) -> bool:
    return any(_is_head(name, line) for name in identifiers(line)[:1]) or 2 < len(_cells(line)) == len(_cells(beside))


def _cells(line: str) -> list[str]:
    return [cell for cell in _COLUMN.split(line.strip()) if cell]


def _rows_named(clause: str, lines: Sequence[str]) -> list[str]:
    """The rows of a table that a word of the clause names, if it does not name all of them."""
    rows = [line for line in lines if len(_cells(line)) > 2 and any(char.isdigit() for char in line)]
    words = frozenset(_WORD.findall(clause))
    named = [row for row in rows if any(cell in words for cell in _cells(row) if not cell.isdigit())]
    return named if len(named) < len(rows) else []


def _numbered(serials: Sequence[str], line: str) -> bool:
    return any(number in serials for number in _DIGITS.findall(line))


def _counts_on(serials: Sequence[str], line: str) -> bool:
    """Whether a line has another number of the same series: 31002 beside 31001."""
    return any(len(n) == len(s) and n[:-2] == s[:-2] for n in _DIGITS.findall(line) for s in serials)


def _has_like(names: Sequence[Identifier], line: str) -> bool:
    return any(_alike(name, other) for other in identifiers(line) for name in names)


def _alike(one: Identifier, other: Identifier) -> bool:
    if one.kind != other.kind or one.key == other.key:
        return False
    mine, its = one.key.split("-"), other.key.split("-")
    same_family = one.kind == "pod" and mine[0] == its[0]
    return same_family or one.kind == "ip" or SequenceMatcher(None, one.key, other.key).ratio() >= _ALIKE


@dataclass(frozen=True, slots=True)
class _Entry:
    words: frozenset[str]
    number: Quantity


def _under_another_key(claim: str, lines: Sequence[str]) -> str | None:
    """`read time-out 5 s, connect time-out 60 s` where the record has them the other way round."""
    entries = list(_in_context(lines))
    for clause in _clauses(claim):
        said = quantities(clause)
        # Of several numbers each goes by the words next to it.
        told = [_Entry(stems(clause), said[0])] if len(said) == 1 else list(_beside(clause))
        for number, near in ((entry.number, entry.words) for entry in told):
            mine = [entry for entry in entries if same(entry.number, number)]
            for rival in entries:
                if same(rival.number, number) or number.unit not in {unit for _, unit in rival.number.readings}:
                    continue
                if mine and all(_fits_better(rival, entry, near) for entry in mine):
                    return f'the record gives "{rival.number.text}" for {", ".join(sorted(rival.words & near))}'
    return None


def _fits_better(rival: _Entry, entry: _Entry, near: frozenset[str]) -> bool:
    """Whether what is told of a number names the rival's key, and nothing of its own that the rival lacks."""
    own = entry.words - rival.words
    return bool(own and (rival.words - entry.words) & near) and not own & near


def _in_context(lines: Sequence[str]) -> Iterator[_Entry]:
    """The entries of all lines; those of an indented block (YAML) also go by the keys above them."""
    above: list[tuple[int, str]] = []
    for line in lines:
        depth = len(line) - len(line.lstrip())
        above = [(at, key) for at, key in above if at < depth]
        block = _BLOCK.match(line)
        if block is not None:
            above.append((depth, block[1]))
        context = vocabulary([key for _, key in above])
        yield from (_Entry(entry.words | context, entry.number) for entry in _entries(line))
        yield from _beside(line)


def _beside(line: str) -> Iterator[_Entry]:
    """Numbers by the words next to them: `failure rate 62.5% exceeds threshold 50%`, `3 failed, 212 passed`."""
    folded = fold(line)
    for q in readings_of_line(line):
        before, after = _BEFORE.search(folded[max(0, q.start - NEAR) : q.start]), _AFTER.match(folded[q.end :])
        words = vocabulary([m[1] for m in (before, after) if m])
        if words and folded[q.start : q.end] == q.text:
            yield _Entry(words, q)


def _entries(line: str) -> Iterator[_Entry]:
    series = _SERIES.match(line)
    if series is not None:
        for stat, value in _STAT.findall(line):
            words = vocabulary([series[1], *_STATS[stat].split()])
            yield from (_Entry(words, q) for q in readings_of_line(f"{series[1]}={value}"))
        return
    pair = _DIRECTIVE.match(line) or _ROW.match(line)
    if pair is not None:
        yield from (_Entry(vocabulary([pair[1]]), q) for q in readings_of_line(f"{pair[1]}={pair[2]}"))
        return
    yield from (_Entry(entry.key, q) for entry in stated(line) for q in entry.numbers)


def _other_way_round(claim: str, lines: Sequence[str]) -> str | None:
    """`from 20 to 60` where every line that has both has the 60 before the 20, and does not say which was first."""
    said = fold(claim)
    changes = [pair for line in lines for pair in _changes(line)]
    for old, new in _changes(claim):
        if (new, old) in changes and (old, new) not in changes:
            return f"the lines say from {new} to {old}"
    anchors: list[Identifier | Quantity] = [*identifiers(claim), *quantities(claim)]
    anchors.sort(key=lambda anchor: anchor.start)
    for one, two in pairwise(anchors[:MOST_ANCHORS]):
        if not _FROM.search(said[max(0, one.start - NEAR) : one.start]) or not _TO.match(said[one.end : two.start]):
            continue
        orders = [(_starts(one, line), _starts(two, line)) for line in lines]
        both = [(first, second) for first, second in orders if first and second]
        told = any(_WAS.search(fold(line)[max(0, at - NEAR) : at]) for line in lines for at in _starts(one, line))
        if both and not told and all(min(first) > max(second) for first, second in both):
            return f"the lines have {two.text} before {one.text}"
    return None


def _changes(text: str) -> Iterator[tuple[str, str]]:
    for m in _CHANGED.finditer(fold(text)):
        yield (m[1] or m[3]).lower(), (m[2] or m[4]).lower()


def _starts(anchor: Identifier | Quantity, line: str) -> list[int]:
    if isinstance(anchor, Quantity):
        return [q.start for q in readings_of_line(line) if same(q, anchor)]
    folded = fold(line)
    return [m.start() for m in re.finditer(re.escape(anchor.key), folded)] if stands_in(anchor, folded) else []
