"""An amount: a number with its unit, and when two are the same."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from handlers.units import Unit

Reading = tuple[Decimal, str | None]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it stands in a text. `value` is in the canonical `unit`: `s`, `B`, `bit`, `%`, or None for plain
    numbers and counts. `digits` is the number as written, before the unit. `others` are further honest readings
    (`512M` is a count or bytes). Offsets are offsets in `fold(text)`.

    `label`: it says which one (`partition 3`, 订单 8812), not how many. `bare`: nothing is counted and no unit is
    said (`the timeout is 30000.`). Both only of a claim's quantities."""

    value: Decimal
    unit: str | None
    text: str
    start: int
    end: int
    digits: Decimal
    others: tuple[Reading, ...] = ()
    label: bool = False
    bare: bool = False

    @property
    def readings(self) -> tuple[Reading, ...]:
        return ((self.value, self.unit), *self.others)


def same(one: Quantity, other: Quantity) -> bool:
    """True if both can be the same amount. 61 % is 0.61; 0 s is not 0."""
    return not amounts(one).isdisjoint(amounts(other))


def amounts(quantity: Quantity) -> frozenset[Reading]:
    """What a quantity can be: its readings, and of a percentage under 100 its share."""
    if quantity.unit == "%" and 0 < quantity.value < 100:
        return frozenset((*quantity.readings, (quantity.value / 100, None)))
    return frozenset(quantity.readings)


def made(digits: Decimal, units: tuple[Unit, ...], text: str, start: int) -> Quantity:
    """The quantity of `digits` in any of `units`; `text` is how it is written, from `start`."""
    readings = [(digits * Decimal(scale), unit) for scale, unit in units] or [(digits, None)]
    value, unit = readings[0]
    return Quantity(value, unit, text.rstrip(), start, start + len(text.rstrip()), digits, tuple(readings[1:]))


def plain(digits: str, start: int) -> Quantity:
    """The quantity of a number that stands alone."""
    return made(Decimal(digits), (), digits, start)
