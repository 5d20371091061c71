"""Causal claims: whether one line shows cause and effect together (`claim.causal_unsupported`).

A line shows both if it holds more than half of what is particular to each side of the claim's connective: its
identifiers, numbers and content words. A line with a connective of its own (`Caused by:`, 导致) needs one of them on
each side. Words are compared only within one language; across languages a side without anchors can only be shown by a
line that has a connective. A `root_cause` claim without a connective has no sides: only such a line shows it.
"""

from __future__ import annotations

from handlers import anchors
from handlers.question import comparable, content_words, vocabulary
from handlers.wording import causal, causal_sides
from streams.contract import Claim


def is_causal(claim: Claim) -> bool:
    """True for type root_cause and for causal wording."""
    return claim.claim_type == "root_cause" or causal(claim.claim_text)


def shown_by(claim: Claim, lines: str) -> bool:
    """True if one physical line of `lines` shows the claim's cause and effect together."""
    return any(_shown(claim.claim_text, line) for line in lines.splitlines() if line.strip())


def _shown(text: str, line: str) -> bool:
    sides = causal_sides(text)
    connected = causal(line)
    if sides is None:
        held, of = _held(text, "", line)
        return connected and (held > 0 or of == 0)
    counts = [_held(sides[0], sides[1], line), _held(sides[1], sides[0], line)]
    if connected:
        return all(held > 0 or of == 0 for held, of in counts)
    return all(held * 2 > of > 0 for held, of in counts)


def _held(side: str, other: str, line: str) -> tuple[int, int]:
    """How many of the things particular to `side` the line holds, and how many there are to compare."""
    folded, across = anchors.fold(line), anchors.fold(other)
    names = [i for i in anchors.identifiers(side) if not anchors.stands_in(i, across)]
    numbers = [q for q in anchors.quantities(side) if q in anchors.absent_quantities([q], [other])]
    held = (
        sum(anchors.stands_in(i, folded) for i in names)
        + len(numbers)
        - len(anchors.absent_quantities(numbers, [line]))
    )
    of = len(names) + len(numbers)
    if comparable(side, line):
        named = [(i.start, i.end) for i in anchors.identifiers(side)]
        words = {w.stem for w in content_words(side) if not any(a <= w.start < b for a, b in named)} - vocabulary(
            [other]
        )
        held += len(words & vocabulary([line]))
        of += len(words)
    return held, of
