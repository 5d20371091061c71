"""Anchors: what in a sentence can be compared without understanding it. Numbers with units, identifiers, windows.

The modules behind are `identifiers`, `quantities` and `wording`; this one compares anchors of one text with another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from handlers.identifiers import NAME_LIKE, NAMED_IN_PROSE, Identifier, identifiers, scan, stands_in
from handlers.numbered import numbers_in_names
from handlers.quantities import Quantity, Reading, amounts, quantities, readings_of_line, same
from handlers.shapes import fold
from handlers.wording import causal, denied_spans, negated, sentences, windows, within

__all__ = [
    "NAMED_IN_PROSE",
    "NAME_LIKE",
    "Identifier",
    "Quantity",
    "Stated",
    "absent_quantities",
    "causal",
    "denied_spans",
    "fold",
    "identifiers",
    "joined",
    "negated",
    "quantities",
    "readings_of_line",
    "same",
    "sentences",
    "stands_in",
    "stated",
    "windows",
    "within",
]


def joined(texts: Iterable[str]) -> str:
    """`texts` folded into one haystack for `stands_in`, a line each."""
    return "\n".join(fold(text) for text in texts)


@dataclass(frozen=True, slots=True)
class Stated:
    """All amounts that some lines state, to compare many claims with. `nothing`: a line says none, 没有, 0 hits.
    `in_names` are the numbers in names, `written` those that stand there with a unit."""

    amounts: frozenset[Reading]
    nothing: bool
    in_names: frozenset[Decimal] = frozenset()
    written: frozenset[Decimal] = frozenset()

    def has(self, quantity: Quantity) -> bool:
        """True if a line states the amount. Zero is also stated by a line that says none, a number that says which one
        by a name (`partition 3` by orders-3), and a number that says no unit by one with a unit (`30000` by 30000ms)."""
        if not self.amounts.isdisjoint(amounts(quantity)):
            return True
        if (quantity.label and quantity.value in self.in_names) or (quantity.bare and quantity.value in self.written):
            return True
        return self.nothing and quantity.value == 0 and quantity.unit is None


def stated(lines: Sequence[str]) -> Stated:
    """What `lines`, as evidence, state."""
    found = [q for line in lines for q in readings_of_line(line)]
    return Stated(
        frozenset().union(*map(amounts, found)),
        any(negated(line) for line in lines),
        frozenset().union(*(numbers_in_names(scan(line)) for line in lines)),
        frozenset(q.digits for q in found if q.unit is not None),
    )


def absent_quantities(wanted: Iterable[Quantity], lines: Sequence[str]) -> tuple[Quantity, ...]:
    """Those of `wanted` that no line states."""
    there = stated(lines)
    return tuple(q for q in wanted if not there.has(q))
