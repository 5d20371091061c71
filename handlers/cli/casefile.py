"""A file of cases: one object if it parses as one, else line by line; transcripts and traces in their own ways."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from handlers.case import BadCase, Case, read_case, read_json

# An escape in a JSON text; `half`: of one half of a pair.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One case of a file, or what is wrong with it; `number` counts from 1."""

    number: int
    case: Case | None = None
    error: BadCase | None = None


def placed(error: BadCase) -> str:
    """Where in the file, and why; a fault of the whole file names no place."""
    return error.why if error.where == "file" else f"{error.where}: {error.why}"


def read_cases(raw: bytes, form: str) -> tuple[list[Line], bool]:
    """The cases of a file, and whether it is a single object. BadCase if the only object is wrong.

    `openai`: one transcript; lines that are a message each are one transcript together, other lines one each.
    `otel`: exports, one or one a line; the cases are the conversations in all of them.
    """
    if form != "case":
        raw, lost = mended(raw)
        lines, single = _traces(raw) if form == "otel" else _cases(raw, form)
        told = f"{lost} characters that are half of a pair, or no UTF-8, were read as U+FFFD" if lost else None
        return [_noticed(line, told) for line in lines] if told else lines, single
    return _cases(raw, form)


def _cases(raw: bytes, form: str) -> tuple[list[Line], bool]:
    try:
        whole = read_json(raw)
    except BadCase as error:
        lines = _lines(raw, error, dict if form == "case" else (dict, list))
        if form == "openai" and (messages := _messages(lines)) is not None:
            return [Line(1, _held(_chat(messages)))], True
        return [_line(k, line, _READERS[form]) for k, line in lines], False
    return [Line(1, _held(_READERS[form](whole)))], True


def mended(raw: bytes) -> tuple[bytes, int]:
    """JSON text whose escapes of single surrogates and whose bytes that are no UTF-8 are U+FFFD, and how many were.

    Whoever cuts a log by UTF-16 units leaves half a character; the rest of a transcript is worth reading.
    """
    lost = 0

    def whole(match: re.Match[str]) -> str:
        nonlocal lost
        if match["half"] is None:
            return match[0]
        lost += 1
        return "\ufffd"

    text = raw.decode("utf-8", "surrogateescape")
    text, bad = re.subn("[\udc80-\udcff]+", "\ufffd", text)
    text = _ESCAPE.sub(whole, text)
    return (text.encode() if lost or bad else raw), lost + bad


def _noticed(line: Line, notice: str) -> Line:
    if line.case is None:
        return line
    return replace(line, case=replace(line.case, notices=(*line.case.notices, notice)))


def _held(case: Case) -> Case:
    """The case, if the log can hold it."""
    try:
        orjson.dumps(case.script)
    except TypeError:
        raise BadCase("file", "a number in it is beyond 64 bits: write it as text") from None
    return case


def _chat(raw: Any) -> Case:
    from handlers.transcripts.openai import read_chat

    return read_chat(raw)


_READERS: dict[str, Callable[[Any], Case]] = {"case": read_case, "openai": _chat}


def _traces(raw: bytes) -> tuple[list[Line], bool]:
    from handlers.transcripts.otel import read_traces

    errors: list[Line] = []
    try:
        exports = [read_json(raw)]
    except BadCase as error:
        exports = []
        for k, line in _lines(raw, error, dict):
            try:
                exports.append(read_json(line))
            except BadCase as bad:
                errors.append(Line(k, error=bad))
    cases = read_traces(exports)
    return [*(Line(k, case) for k, case in enumerate(cases, 1)), *errors], len(cases) == 1 and not errors


def _messages(lines: list[tuple[int, bytes]]) -> list[Any] | None:
    """The messages of a transcript with one a line; None where the lines are something else."""
    from handlers.transcripts.openai import is_message

    try:
        messages = [read_json(line) for _, line in lines]
    except BadCase:
        return None
    return messages if all(is_message(message) for message in messages) else None


def _lines(raw: bytes, error: BadCase, shape: type | tuple[type, ...]) -> list[tuple[int, bytes]]:
    """The lines that are not blank; `error` where they cannot be JSON Lines.

    A single object that is wrong may stand on many lines, some of them objects by themselves: those are indented, and
    not every line begins one.
    """
    lines = [(k, line) for k, line in enumerate(raw.split(b"\n"), 1) if line.strip()]
    apart = [line for k, (_, line) in enumerate(lines) if k == 0 or not line[:1].isspace()]
    opened = all(len(line.strip()) > 1 and line.lstrip()[:1] in b"{[" for _, line in lines)
    if len(lines) < 2 or _is_one(raw) or not (opened or any(_parses(line, shape) for line in apart)):
        raise error from None
    return lines


def _is_one(raw: bytes) -> bool:
    """Whether `raw` is one JSON value to a parser that forgives duplicate keys and NaN."""
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _parses(line: bytes, shape: type | tuple[type, ...]) -> bool:
    try:
        return isinstance(read_json(line), shape)
    except BadCase:
        return False


def _line(number: int, line: bytes, read: Callable[[Any], Case]) -> Line:
    try:
        return Line(number, _held(read(read_json(line))))
    except BadCase as error:
        return Line(number, error=error)
