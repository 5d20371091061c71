"""Upcasters: old payloads read as today's. Old events are never rewritten.

`UPCASTERS` maps (type, from_schema) to a function from that schema's dict to the next schema's. `check()` runs
at import: every released schema must reach the latest one, without a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streams.events import EVENTS, LATEST

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: dict[tuple[str, int], Upcaster] = {}


class UnknownEventType(ValueError):
    """An event type, or a schema of it, that this program does not know: it is newer, or foreign."""

    def __init__(self, kind: str, schema: int) -> None:
        super().__init__(f"event type {kind!r} schema {schema} is not known to this program: upgrade it")
        self.kind = kind
        self.schema = schema


class BrokenUpcasts(RuntimeError):
    """The upcaster table has a gap, a duplicate or a step that leads nowhere."""


def check(table: Mapping[tuple[str, int], Upcaster] = UPCASTERS, latest: Mapping[str, int] | None = None) -> None:
    """Raise BrokenUpcasts unless schemas 1..latest of each type are joined by single steps."""
    newest = latest or {kind: cls.SCHEMA for kind, cls in LATEST.items()}
    for kind, top in newest.items():
        for schema in range(1, top):
            if (kind, schema) not in table:
                raise BrokenUpcasts(f"no upcaster from {kind} schema {schema} to {schema + 1}")
    for kind, schema in table:
        if kind not in newest or not 1 <= schema < newest[kind]:
            raise BrokenUpcasts(f"upcaster ({kind}, {schema}) leads to no known schema")


def upcast(kind: str, schema: int, data: dict[str, Any]) -> dict[str, Any]:
    """Return `data` of `schema` as the latest schema of `kind`; raise UnknownEventType for what is not known."""
    if kind not in LATEST or not 1 <= schema <= LATEST[kind].SCHEMA:
        raise UnknownEventType(kind, schema)
    for step in range(schema, LATEST[kind].SCHEMA):
        data = UPCASTERS[kind, step](data)
    return data


check()
assert all(cls.SCHEMA >= 1 for cls in EVENTS.values())
