"""Anchors: what in a sentence can be compared without understanding it. Numbers with units, identifiers, windows.

The modules behind are `identifiers`, `quantities` and `wording`; this one compares anchors of one text with another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from handlers.identifiers import NAME_LIKE, NAMED_IN_PROSE, Identifier, identifiers, stands_in
from handlers.quantities import Quantity, quantities, readings_of_line, same
from handlers.shapes import fold
from handlers.wording import causal, denied_spans, negated, sentences, windows, within

__all__ = [
    "NAMED_IN_PROSE",
    "NAME_LIKE",
    "Identifier",
    "Quantity",
    "absent_quantities",
    "causal",
    "denied_spans",
    "fold",
    "identifiers",
    "joined",
    "negated",
    "nothing_counted",
    "quantities",
    "readings_of_line",
    "same",
    "sentences",
    "stands_in",
    "windows",
    "within",
]


def joined(texts: Iterable[str]) -> str:
    """`texts` folded into one haystack for `stands_in`, a line each."""
    return "\n".join(fold(text) for text in texts)


def absent_quantities(wanted: Iterable[Quantity], lines: Sequence[str]) -> tuple[Quantity, ...]:
    """Those of `wanted` that no line states. Zero is also stated by a line that says none, 没有 or 0 hits."""
    given = [q for line in lines for q in readings_of_line(line)]
    return tuple(
        q
        for q in wanted
        if not any(same(q, other) for other in given)
        and not (q.value == 0 and q.unit is None and nothing_counted(lines))
    )


def nothing_counted(lines: Sequence[str]) -> bool:
    """True if a line denies something, so that a count of zero is what it says."""
    return any(negated(line) for line in lines)
