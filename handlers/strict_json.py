"""Strict reading of a model's JSON: one object, no duplicate key, no NaN, no infinity, nothing behind it.

The usual parsers take the last of two equal keys, read `1e999` as infinity and let U+0000 through. None of that
may decide a verdict (ruling 8), so all of it is `NotStrict`, and never an exception of another kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import jiter
from pydantic import ValidationError

# Enough of the faults for one re-ask; a long list makes a model rewrite what was right.
SHOWN_FAULTS = 5


class NotStrict(ValueError):
    """A text that is no strict JSON of the wanted shape; `why` names each fault with its place."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def read(text: str) -> Any:
    """The one JSON value of `text`. White space around it is part of JSON; anything else raises NotStrict."""
    try:
        value = jiter.from_json(text.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
    except UnicodeEncodeError as error:
        raise NotStrict(f"not JSON: a lone surrogate at character {error.start}") from error
    except ValueError as error:
        raise NotStrict(f"not JSON: {error}") from error
    _refuse_unsafe(value)
    return value


def read_object(text: str) -> dict[str, Any]:
    """The one JSON object of `text`; another kind of value raises NotStrict."""
    value = read(text)
    if not isinstance(value, dict):
        raise NotStrict(f"not a JSON object but {kind_name(value)}")
    return value


def id_text(value: Any) -> Any:
    """An id as text: a string as it is, a number in digits; any other value unchanged, for the schema to refuse.

    Integers are exact, however long. JSON has one kind of number, so 101.0 is 101; another fraction keeps its
    shortest form. A fraction too large to be exact is no id. A boolean is no number.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and abs(value) < 2**53:
        return str(int(value)) if value.is_integer() else repr(value)
    return value


def faults(error: ValidationError) -> str:
    """A schema's complaints as `path: complaint`, the first few."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{_path(f['loc'])}: {complaint(f)}" for f in found[:SHOWN_FAULTS]]
    rest = len(found) - len(lines)
    return "; ".join(lines) + (f"; and {rest} more" if rest else "")


EXPECTED: Final = {
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "null",
}


def complaint(error: Mapping[str, Any]) -> str:
    """What a schema says of one value, in the words of JSON; `error` is one of `ValidationError.errors()`."""
    kind = error["type"]
    if kind == "missing":
        return "is missing"
    if kind in EXPECTED:
        return f"expected {EXPECTED[kind]}"
    told = str(error["msg"]).removeprefix("Value error, ")
    return f"expected{told.removeprefix('Input should be')}" if told.startswith("Input should be ") else told


def _path(loc: tuple[int | str, ...]) -> str:
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path[:200] or "the object"


def _refuse_unsafe(value: Any) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if "\0" in item:
                raise NotStrict("a string holds U+0000")
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise NotStrict("a number is out of range")
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def kind_name(value: Any) -> str:
    """What a JSON value is, in the words of JSON."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names[type(value)]
