"""The series of a metrics file's text, whatever of the known forms it has."""

from __future__ import annotations

import json
from typing import Any

from handlers.evidence import exposition, prometheus_json
from handlers.evidence.bodies import read_body
from handlers.evidence.json_records import walk


def parse(text: str) -> prometheus_json.Answer:
    """The records of a file's text, whatever of the known forms it has; else its lines."""
    stripped = text.lstrip("\ufeff \r\n\t")
    if not stripped:
        return prometheus_json.Answer(empty=True)
    if stripped[0] in "{[":
        try:
            body = json.loads(stripped)
        except (ValueError, RecursionError):
            # RecursionError: nested deeper than anything a metrics API gives; its lines stay quotable.
            body = _json_lines(stripped)
        if body is not None:
            answer = prometheus_json.read(body)
            if answer is not None:
                return answer
            found = list(walk(body))
            return prometheus_json.Answer(records=found, empty=not found)
    if exposition.looks_like_exposition(stripped):
        series, bad = exposition.parse(stripped)
        notes = [f"{bad} lines could not be read as samples"] if bad else []
        return prometheus_json.Answer(records=list(series), notes=notes)
    body_read = read_body(text)
    if body_read.status == "error":
        return prometheus_json.Answer(error=body_read.text)
    return prometheus_json.Answer(records=list(body_read.entries), empty=not body_read.entries)


def _json_lines(text: str) -> list[Any] | None:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None
