"""Whether verified lines bear out a statement, by words, numbers and names alone.

It does not understand: it can refuse and lower, and calls direct only what the lines say in so many words. Labels are
those of OUT-4. Measured in `tests/bench/claims.py` next to published methods (bar J5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from handlers import causes
from handlers.agents.lexical_keys import GLOSSARY, conflict, flipped
from handlers.agents.lexical_places import misplaced
from handlers.agents.lexical_rivals import excluded, overreaching
from handlers.agents.lexical_signs import signs
from handlers.agents.lexical_support import is_prose, strange_numbers, support
from handlers.agents.lexical_times import absent_times, shares_time, without_dates
from handlers.anchors import (
    NAME_LIKE,
    Quantity,
    absent_quantities,
    fold,
    identifiers,
    joined,
    quantities,
    stands_in,
    windows,
)
from handlers.identifiers import scan
from handlers.question import comparable, content_words, vocabulary
from handlers.wording import causal
from streams.contract import Claim, Label

MOST_CHARS = 4_000
DIRECT_WORDS, INDIRECT_WORDS = 0.6, 0.3
ANCHORED_WORDS = (DIRECT_WORDS, 0.5, 0.4)  # by how many of its numbers and names, all of which stand in the lines
_QUOTE = re.compile(r"[“「『\"](.{6,}?)[”」』\"](?=[\s。.；;，,）)]|$)", re.DOTALL)
_QUOTATION = re.compile(r"[“「『\"].*[”」』\"]", re.DOTALL)
_FRAME = vocabulary(
    [
        "log logs line lines says say said shows show shown record records recorded state states metric metrics evidence error"
    ]
) | {
    "日志",
    "记录",
    "显示",
    "指标",
    "状态",
    "输出",
    "证据",
    "返回",
    "访问",
    "志记",
    "标显",
    "态输",
    "出显",
    "问失",
    "失败",
    "的错",
    "错误",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A label, and in words what it rests on."""

    label: Label
    detail: str


def judge(claim: Claim, lines: Sequence[str], question: str = "") -> Finding:
    """The label of a claim against its verified lines. The question exempts names of what is asked about and windows."""
    if not lines:
        return Finding("no_evidence", "no verified line")
    found = statement(claim.claim_text, lines, question, denies=claim.claim_type == "negative_observation")
    if found.label != "direct_evidence":
        return found
    return cause(found) if is_cause(claim) else found


def is_cause(claim: Claim) -> bool:
    """True for a claim about what made something happen, by its type or its own wording: that a line says it was seen,
    whatever the quotation says."""
    if claim.claim_type == "observation":
        return causal(_QUOTATION.sub(" ", claim.claim_text))
    return causes.is_causal(claim) or claim.claim_type == "contributing_factor"


def cause(found: Finding) -> Finding:
    """A finding about a statement of cause: never direct. Whoever can write into a log can write a cause into it, and
    words alone do not tell a cause from two things seen together."""
    if found.label != "direct_evidence":
        return found
    return Finding("indirect_support", f"a cause is not weighed without a model: {found.detail}")


def statement(text: str, lines: Sequence[str], question: str = "", denies: bool = False) -> Finding:
    """The label of any sentence against lines. One of more than MOST_CHARS says too much at once to be weighed."""
    if len(text) > MOST_CHARS:
        return Finding("no_evidence", f"it is longer than {MOST_CHARS:,} characters")
    if denies and any(line.lstrip().startswith("hits=0") for line in lines):
        outside = absent_times(text, lines)
        if outside:
            return Finding("no_evidence", f"the search was of another window than {', '.join(outside)}")
        return Finding("direct_evidence", "the search found nothing")
    evidence = [piece for line in lines for piece in line.splitlines() if piece.strip()]
    absent = _absent_numbers(text, evidence, question)
    names = _absent_names(text, evidence, question)
    if not absent and not names and _quoted(text, lines):
        return Finding("direct_evidence", "the lines say it word for word")
    denied = conflict(text, evidence, absent)
    if denied is not None:
        return Finding("contradicted", denied)
    if absent:
        return Finding("no_evidence", f"the lines do not give {', '.join(q.text for q in absent)}")
    if names:
        return Finding("no_evidence", f"the lines do not name {', '.join(names)}")
    times = absent_times(text, evidence)
    if times:
        return Finding("no_evidence", f"the lines give other times than {', '.join(times)}")
    said = signs(text, evidence)
    opposite = said.opposite or (None if said.agreed else flipped(text, evidence))
    if opposite is not None:
        return Finding("contradicted", f"the lines say the opposite: {opposite}")
    doubt = misplaced(text, evidence) or excluded(text, evidence, question)
    doubt = doubt or (None if denies or said.agreed else overreaching(text, evidence))
    if doubt is not None:
        return Finding("no_evidence", doubt)
    return _by_words(text, evidence)


def _absent_numbers(text: str, lines: Sequence[str], question: str) -> list[Quantity]:
    asked = windows(question)
    exempt = [w for w in windows(text) if any(w.value == a.value and w.unit == a.unit for a in asked)]
    return list(absent_quantities([q for q in quantities(text) if q not in exempt], lines))


def numbers_absent(text: str, lines: Sequence[str]) -> tuple[str, ...]:
    """The numbers of a statement that no line gives; in prose also those written to letters (`10bn`)."""
    absent = [quantity.text for quantity in _absent_numbers(text, lines, "")]
    if is_prose(lines):
        absent += strange_numbers(text, "\n".join(lines))
    return tuple(dict.fromkeys(absent))


def _absent_names(text: str, lines: Sequence[str], question: str) -> list[str]:
    haystack, asked = joined(lines), fold(question)
    return [
        name.text
        for name in identifiers(text)
        if not stands_in(name, haystack) and not (name.kind in NAME_LIKE and stands_in(name, asked))
    ]


def _quoted(text: str, lines: Sequence[str]) -> bool:
    """Whether most of the statement is a quotation, and the lines have it."""
    plain = [" ".join(fold(line).split()) for line in lines]
    quotes = [" ".join(fold(quote).split()).removesuffix(" …").removesuffix("…") for quote in _QUOTE.findall(text)]
    if not quotes or sum(map(len, quotes)) < 0.6 * len(" ".join(text.split())):
        return False
    return all(any(quote in line for line in plain) for quote in quotes)


def _by_words(text: str, lines: Sequence[str]) -> Finding:
    haystack = joined(lines)
    anchors = len(quantities(text)) + sum(stands_in(name, haystack) for name in identifiers(text))
    anchors += any(shares_time(text, line) for line in lines)
    known = vocabulary(lines)
    if not comparable(text, " ".join(lines)):
        return _across(text, known, anchors)
    words = _words(text) - _FRAME
    if not words:
        label: Label = "direct_evidence" if anchors else "no_evidence"
        return Finding(
            label, "all its numbers and names stand in the lines" if anchors else "it states nothing to compare"
        )
    share = len(words & known) / len(words)
    if is_prose(lines):
        strange = strange_numbers(_unread(text), "\n".join(lines))
        if strange:
            return Finding("no_evidence", f"the lines do not give {', '.join(strange)}")
        share = (share + support(text, lines)) / 2
    detail = f"{round(100 * share)} % of its words stand in the lines"
    if share >= ANCHORED_WORDS[min(anchors, 2)]:
        return Finding("direct_evidence", detail)
    return Finding("indirect_support" if share >= INDIRECT_WORDS or anchors else "no_evidence", detail)


def _unread(text: str) -> str:
    """`text` without the amounts, times, dates and names, which are looked for by what they mean."""
    left = list(without_dates(scan(text).masked))
    for quantity in quantities(text):
        left[quantity.start : quantity.end] = " " * (quantity.end - quantity.start)
    return "".join(left)


def _words(text: str) -> frozenset[str]:
    """The content words that are no part of a number (`6 times`)."""
    spans = [(q.start, q.end) for q in quantities(text)]
    return frozenset(w.stem for w in content_words(fold(text)) if not any(a <= w.start < b for a, b in spans))


def _across(text: str, known: frozenset[str], anchors: int) -> Finding:
    """Words of two languages: Latin words, and the general words of operations by a short list."""
    latin = {word for word in _words(text) if word.isascii()} - _FRAME
    listed = [stems for word, stems in GLOSSARY.items() if word in text]
    shared = len(latin & known) + sum(any(stem in known for stem in stems) for stems in listed)
    wanted = len(latin) + len(listed)
    detail = (
        f"another language: {shared} of {wanted} comparable words and {anchors} numbers or names stand in the lines"
    )
    if anchors and (not wanted or 2 * shared >= wanted):
        return Finding("direct_evidence", detail)
    if anchors or (shared and 2 * shared >= wanted):
        return Finding("indirect_support", detail)
    return Finding("no_evidence", detail)
