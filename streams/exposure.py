"""What of a payload stays readable where its session is sealed, and what is taken out of it. Pure.

Numbers, closed vocabularies, ids and names of rules, tools and models stay, so that verdicts can be counted after the
text is gone. All other text is taken out, and everything that this program has no field for. What is left is a payload
of the same class, with MARK in the place of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from streams.contract import Contract, Notice
from streams.events import Payload

MARK = "[erased]"
"""Stands in the place of every text that was taken out."""

NAMES = frozenset(
    {
        *("agents", "call_id", "channel", "claim_id", "claim_rules", "confirmed_claims", "consumer", "event_id"),
        *("failed_rules", "finish_reason", "invocation_id", "model", "name", "order", "origin_hash", "origin_session"),
        *("output_format", "parked_event", "planned_tools", "prompt_sha256", "raw_path", "reply_event", "rule"),
        *("server", "session", "sha256", "source_invocation_id", "source_invocation_ids", "source_type", "tool"),
        *("tool_name", "trace_ref", "traceability_version", "warnings"),
    }
)
"""Text fields that stay where they hold one word. Hashes of what a tool returned are not among them: who can guess a
short line could prove it by its hash."""

_SHAPES: dict[str, type[BaseModel]] = {
    "structured": Contract,
    "executor_structured_output": Contract,
    "notices": Notice,
}
_WHOLLY = frozenset({"arguments", "parameters"})
_WORD = re.compile(r"[A-Za-z0-9_.:/#+\[\]-]{0,128}")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


class Rule(Enum):
    """What happens to a value."""

    OPEN = "stays"
    TEXT = "is taken out"
    NAME = "stays if it is one word"
    FREE = "numbers stay, text in it is taken out"


@dataclass(frozen=True, slots=True)
class Record:
    """An object with known keys; what stands under others is taken out."""

    fields: dict[str, Plan]


@dataclass(frozen=True, slots=True)
class Listed:
    """Each item by the same plan."""

    item: Plan


@dataclass(frozen=True, slots=True)
class Keyed:
    """Each value by the same plan; the keys are names."""

    item: Plan


Plan = Rule | Record | Listed | Keyed
Cut = tuple[list[str | int], Any]
"""Where something was taken out (keys and indexes from the payload down), and what."""


@cache
def plan_of(cls: type[BaseModel]) -> Record:
    """The plan of a payload class, from the types of its fields: a new field of text is taken out until it is named."""
    fields = cls.model_fields.items()
    return Record({field.alias or name: _plan(field.annotation, name) for name, field in fields})


def _plan(annotation: Any, name: str) -> Plan:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal or annotation in (bool, int, float, NoneType):
        return Rule.OPEN
    if annotation is str:
        return Rule.NAME if name in NAMES else Rule.TEXT
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return plan_of(annotation)
    if origin in (Union, UnionType):
        some = [one for one in arguments if one is not NoneType]
        return _plan(some[0], name) if len(some) == 1 else Rule.TEXT
    if origin is tuple:
        return Listed(_plan(arguments[0], name))
    if origin is dict and arguments[1] is not Any:
        return Keyed(_plan(arguments[1], name))
    if name in _SHAPES:
        return plan_of(_SHAPES[name])
    return Rule.TEXT if name in _WHOLLY else Rule.FREE


def take_out(payload: type[Payload], data: Any) -> tuple[Any, list[Cut]]:
    """`data` (a payload's JSON value) without its text, and all that was taken out; `put_back` is its inverse."""
    cuts: list[Cut] = []
    return _open(data, plan_of(payload), (), cuts), cuts


def put_back(data: Any, cuts: Iterable[Cut]) -> Any:
    """`data` with the cuts in their places; it is changed. LookupError, TypeError: they are not of this data."""
    for path, value in cuts:
        place = data
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
    return data


def _open(value: Any, plan: Plan, path: tuple[str | int, ...], cuts: list[Cut]) -> Any:
    if value is None or plan is Rule.OPEN:
        return value
    if plan is Rule.NAME:
        return value if isinstance(value, str) and _WORD.fullmatch(value) else _cut(value, path, cuts)
    if plan is Rule.FREE and isinstance(value, bool | int | float):
        return value
    if isinstance(value, list) and (plan is Rule.FREE or isinstance(plan, Listed)):
        item = plan.item if isinstance(plan, Listed) else Rule.FREE
        return [_open(one, item, (*path, i), cuts) for i, one in enumerate(value)]
    if isinstance(value, dict) and isinstance(plan, Record):
        return _record(value, plan, path, cuts)
    if isinstance(value, dict) and (plan is Rule.FREE or isinstance(plan, Keyed)):
        item, key = (plan.item, _WORD) if isinstance(plan, Keyed) else (Rule.FREE, _KEY)
        if all(key.fullmatch(name) for name in value):
            return {name: _open(one, item, (*path, name), cuts) for name, one in value.items()}
    return _cut(value, path, cuts)


def _record(value: dict[str, Any], plan: Record, path: tuple[str | int, ...], cuts: list[Cut]) -> dict[str, Any]:
    out = {}
    for name, one in value.items():
        if name in plan.fields or _KEY.fullmatch(name):
            out[name] = _open(one, plan.fields.get(name, Rule.TEXT), (*path, name), cuts)
        else:
            cuts.append(([*path, name], one))
    return out


def _cut(value: Any, path: tuple[str | int, ...], cuts: list[Cut]) -> Any:
    if isinstance(value, str | list | dict) and not value:
        return value
    cuts.append((list(path), value))
    return [] if isinstance(value, list) else {} if isinstance(value, dict) else MARK
