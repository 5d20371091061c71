"""A file of cases: one object if it parses as one, else line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handlers.case import BadCase, Case, read_case, read_json


@dataclass(frozen=True, slots=True)
class Line:
    """One case of a file, or what is wrong with it; `number` counts from 1."""

    number: int
    case: Case | None = None
    error: BadCase | None = None


def read_cases(raw: bytes, form: str) -> tuple[list[Line], bool]:
    """The cases of a file, and whether it is a single object. BadCase if the only object is wrong."""
    read = _reader(form)
    try:
        whole = read_json(raw)
    except BadCase as error:
        lines = [(k, line) for k, line in enumerate(raw.split(b"\n"), 1) if line.strip()]
        if len(lines) < 2 or not any(_parses(line) for _, line in lines):
            raise error from None
        return [_line(k, line, form) for k, line in lines], False
    return [Line(1, read(whole))], True


def _reader(form: str) -> Callable[[Any], Case]:
    if form == "case":
        return read_case
    raise BadCase("--format", f"{form} is not read yet")


def _parses(line: bytes) -> bool:
    try:
        return isinstance(read_json(line), dict)
    except BadCase:
        return False


def _line(number: int, line: bytes, form: str) -> Line:
    try:
        return Line(number, _reader(form)(read_json(line)))
    except BadCase as error:
        return Line(number, error=error)
