"""Upcasters: old payloads read as today's. Old events are never rewritten.

`UPCASTERS` maps (type, from_schema) to the step that leads on: a function from that schema's dict to the next schema's,
or a `Split` where one old event is read as several facts. `check()` runs at import: every released schema must reach
today's, without a gap and without a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams.events import EVENTS, LATEST

Schema = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Split:
    """A payload that says several things, read as one payload of each schema of `into`, in that order.

    The event keeps its one place, id and hash; what it says is folded and projected in order, the first being its
    `data`. The types of `into` differ from one another. A type that is no longer written ends in a Split, too.
    """

    into: tuple[Schema, ...]
    read: Callable[[dict[str, Any]], Sequence[dict[str, Any]]]


Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
Steps = Mapping[Schema, Upcaster | Split]

UPCASTERS: dict[Schema, Upcaster | Split] = {}


class UnknownEventType(ValueError):
    """An event type, or a schema of it, that this program does not know: it is newer, or foreign. `place`: where."""

    def __init__(self, kind: str, schema: int, place: str = "") -> None:
        at = f"{place}: " if place else ""
        super().__init__(f"{at}event type {kind!r} schema {schema} is not known to this program: upgrade it")
        self.kind = kind
        self.schema = schema
        self.place = place


class BrokenUpcasts(RuntimeError):
    """The upcaster table has a gap, a circle, or a step that leads nowhere."""


def check(table: Steps = UPCASTERS, latest: Mapping[str, int] | None = None) -> None:
    """Raise BrokenUpcasts unless every schema from 1 on of each type leads to schemas of today, and only those do."""
    newest = latest or {kind: cls.SCHEMA for kind, cls in LATEST.items()}
    tops = {**{kind: schema + 1 for kind, schema in sorted(table)}, **newest}
    for kind, top in tops.items():
        for schema in range(1, top):
            if (kind, schema) not in table:
                raise BrokenUpcasts(f"no upcaster from {kind} schema {schema} to {schema + 1}")
    for kind, schema in table:
        if not 1 <= schema < tops[kind]:
            raise BrokenUpcasts(f"upcaster ({kind}, {schema}) leads to no known schema")
        _follow((kind, schema), table, newest, ())


def _follow(at: Schema, table: Steps, newest: Mapping[str, int], passed: tuple[Schema, ...]) -> None:
    if at in passed:
        circle = " -> ".join(f"{kind} {schema}" for kind, schema in (*passed[passed.index(at) :], at))
        raise BrokenUpcasts(f"the upcasters go in a circle: {circle}")
    step = table.get(at)
    if step is None:
        if newest.get(at[0]) != at[1]:
            raise BrokenUpcasts(f"upcaster {passed[-1]} leads to no known schema: {at[0]} {at[1]}")
        return
    into = step.into if isinstance(step, Split) else ((at[0], at[1] + 1),)
    if not into or len({kind for kind, _ in into}) < len(into):
        raise BrokenUpcasts(f"the split of {at[0]} schema {at[1]} needs types that differ")
    for target in into:
        _follow(target, table, newest, (*passed, at))


def upcast(kind: str, schema: int, data: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What `data` of `schema` says today, as (type, payload): one, or several where it was split.

    Raises UnknownEventType for a type or schema that is not known.
    """
    step = UPCASTERS.get((kind, schema))
    if isinstance(step, Split):
        parts = zip(step.into, step.read(data), strict=True)
        return [said for (part, of), payload in parts for said in upcast(part, of, payload)]
    if step is not None:
        return upcast(kind, schema + 1, step(data))
    if kind not in LATEST or schema != LATEST[kind].SCHEMA:
        raise UnknownEventType(kind, schema)
    return [(kind, data)]


check()
assert all(cls.SCHEMA >= 1 for cls in EVENTS.values())
