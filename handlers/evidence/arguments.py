"""Arguments as agents send them: read leniently in form (`"error"` for `["error"]`), strictly in meaning."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from handlers.evidence import log_lines
from handlers.strict_json import kind_name

# What both metric tools read a series by; an agent must find the same words for files and for a server.
SERIES_ARGUMENTS: dict[str, dict[str, Any]] = {
    "metric": {"type": "string", "description": "metric name, a part of it, or a regular expression"},
    "labels": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "label -> value or regular expression that must match it whole",
    },
    "terms": {
        "type": "array",
        "items": {"type": "string"},
        "description": "words; a series matches if its name or labels hold any of them",
    },
    "since": {"type": "string", "description": "ISO 8601 time, or a span before now such as 15m"},
    "until": {"type": "string", "description": "ISO 8601 time, or a span before now"},
}


class BadArgument(ValueError):
    """An argument that cannot be used: which, and what would do."""


def unused(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """What to tell an agent whose call has arguments that a closed schema does not name: they changed nothing, and it
    believes they did. None if there are none, or if the schema is open."""
    names = parameters.get("properties") or {}
    extra = [] if parameters.get("additionalProperties") is not False else [k for k in arguments if k not in names]
    if not extra:
        return None
    told = ", ".join(key[:60] for key in extra[:10])
    return f"not used: {told}; this tool has only {', '.join(names) or 'no arguments'}"


def text_of(arguments: Mapping[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadArgument(f"{name}: must be a text, not {kind_name(value)}")
    return str(value).strip() or None


def words_of(arguments: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = arguments.get(name)
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, (str, int, float)) for item in value):
        raise BadArgument(f"{name}: must be a list of texts")
    return tuple(dict.fromkeys(str(item).strip() for item in value if str(item).strip()))


def count_of(arguments: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = arguments.get(name)
    if value is None:
        return default
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise BadArgument(f"{name}: must be a whole number from 1 to {most}") from error
    return min(most, max(1, number))


def time_of(arguments: Mapping[str, Any], name: str, now: datetime) -> float | None:
    text = text_of(arguments, name)
    if text is None:
        return None
    seconds = log_lines.moment(text, now)
    if seconds is None:
        raise BadArgument(f"{name}: {text!r} is no ISO 8601 time (2026-03-17T10:00:00Z) and no span such as 15m")
    return seconds
