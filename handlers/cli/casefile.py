"""A file of cases: one object if it parses as one, else line by line; transcripts and traces in their own ways."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from handlers.case import BadCase, Case, read_case, read_json
from handlers.cli.rawtext import apart, as_text, mended, unsent


@dataclass(frozen=True, slots=True)
class Line:
    """One case of a file, or what is wrong with it; `number` is its line, or its place in a list, from 1."""

    number: int
    case: Case | None = None
    error: BadCase | None = None


def placed(error: BadCase) -> str:
    """Where in the file, and why; a fault of the whole file names no place."""
    return error.why if error.where == "file" else f"{error.where}: {error.why}"


def read_cases(raw: bytes, form: str) -> tuple[list[Line], bool]:
    """The cases of a file, and whether it is a single object. BadCase if the only object is wrong.

    `openai`: one transcript, or a list of them; lines that are a message each are one transcript together, other lines
    one each.
    `otel`: exports, one or one a line; the cases are the conversations in all of them.
    """
    raw = as_text(raw)
    if form != "case":
        raw, lost = mended(unsent(raw))
        lines, single = _traces(raw) if form == "otel" else _cases(raw, form)
        told = f"{lost} characters that are half of a pair, or no UTF-8, were read as U+FFFD" if lost else None
        return [_noticed(line, told) for line in lines] if told else lines, single
    return _cases(raw, form)


def _cases(raw: bytes, form: str) -> tuple[list[Line], bool]:
    foreign = form != "case"
    try:
        whole = read_json(raw, inf_nan=foreign)
    except BadCase as error:
        lines = _lines(raw, error, (dict, list) if foreign else dict)
        if foreign and (messages := _messages(lines)) is not None:
            return [Line(1, _held(_chat(messages)))], True
        read: Callable[[Any], Case] = _chat_line if foreign else _case_line
        return [_line(k, line, read) for k, line in lines], False
    if foreign and _are_transcripts(whole) and len(whole) > 1:
        return [_line(k, transcript, _chat) for k, transcript in enumerate(whole, 1)], False
    if foreign:
        return [Line(1, _held(_chat(whole[0] if _are_transcripts(whole) else whole)))], True
    return [Line(1, _held(read_case(whole)))], True


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


def _chat_line(line: bytes) -> Case:
    return _chat(read_json(line, inf_nan=True))


def _case_line(line: bytes) -> Case:
    return read_case(read_json(line))


def _are_transcripts(whole: Any) -> bool:
    from handlers.transcripts.openai import is_transcript

    return isinstance(whole, list) and bool(whole) and all(map(is_transcript, whole))


def _traces(raw: bytes) -> tuple[list[Line], bool]:
    from handlers.transcripts.otel import read_traces

    errors: list[Line] = []
    try:
        exports = [read_json(raw, inf_nan=True)]
    except BadCase as error:
        exports = []
        for k, line in apart(raw) or _lines(raw, error, dict):
            try:
                exports.append(read_json(line, inf_nan=True))
            except BadCase as bad:
                errors.append(Line(k, error=bad))
    cases = read_traces(exports)
    return [*(Line(k, case) for k, case in enumerate(cases, 1)), *errors], len(cases) == 1 and not errors


def _messages(lines: list[tuple[int, bytes]]) -> list[Any] | None:
    """The messages of a transcript with one a line; None where the lines are something else. BadCase for a line among
    them that is no JSON."""
    from handlers.transcripts.openai import is_message

    messages, bad = [], list[BadCase]()
    for k, line in lines:
        try:
            messages.append(read_json(line, inf_nan=True))
        except BadCase as error:
            bad.append(BadCase(f"line {k}", f"{error.why} (the other lines are messages of one transcript)"))
    if not messages or not all(is_message(message) for message in messages):
        return None
    if bad:
        raise bad[0]
    return messages


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


def _line(number: int, given: Any, read: Callable[[Any], Case]) -> Line:
    try:
        return Line(number, _held(read(given)))
    except BadCase as error:
        return Line(number, error=error)
