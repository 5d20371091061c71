"""From a record to what is quoted of it: an excerpt the gate finds again, and a reading form for people."""

from __future__ import annotations

import json
import re
from typing import Any

from handlers.agents import symptoms
from handlers.evidence.log_lines import plain

EXCERPT_BYTES = 1_800  # the whole excerpt must stand in the 2 KB of lines that the Verifier is shown
QUOTE_CHARS = 420
MOST_FIELDS = 5
FIELD_CHARS, FAULT_CHARS = 80, 240
_MESSAGE = ("message", "msg", "@m", "@mt", "log", "event", "error", "text", "body")
_LEVEL = ("level", "lvl", "severity", "levelname", "@l")
_FAULT = ("error", "err", "exception", "exc_info", "@x", "cause", "reason")
_SOURCE = ("service", "app", "logger", "component", "container", "source_identifier")
_SILENT = re.compile(
    r"^(?:@?time(?:stamp)?|@t|@i|@mt|ts|date|trace_?id|span_?id|request_?id|pod|thread|host(?:name)?|stack(?:_?trace)?|seq|pid|logger)$",
    re.IGNORECASE,
)
_JSON_KEY = re.compile(r"[{}\s]*\"([^\"\n]{1,80})\"\s*:\s*\{?")
_EDGE = re.compile(r"\s")
_FRAME = re.compile(r"\s*(?:at\s+\S|File \"|\.\.\. \d+ more|\S+\.\w+:\d+ \+0x|Traceback \()")
_PINO = {"10": "TRACE", "20": "DEBUG", "30": "INFO", "40": "WARN", "50": "ERROR", "60": "FATAL"}
_CAUSED = re.compile(r"\s*(?:Caused by|Root cause)\b", re.IGNORECASE)
_ROW = re.compile(r"(count=\d+ of=\d+ level=\w+) (?:\S.* )?example: (.+)", re.DOTALL)
_HOLE = re.compile(r"\{@?(\w+)(?:[,:][^{}]*)?\}")


def excerpt_of(text: str) -> str:
    """A part of a record, word for word: all of it where it is short, else the line or window that says most."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(text.encode()) <= EXCERPT_BYTES and (len(lines) == 1 or text.lstrip().startswith(("{", '"'))):
        return _trimmed(text)
    best = _telling(lines)
    return _trimmed(best) if len(best.encode()) <= EXCERPT_BYTES else _window(best)


def _telling(lines: list[str]) -> str:
    """The line that says most: the last cause of a stack trace, never one of its frames where there is another line."""
    caused = [line for line in lines if _CAUSED.match(line)]
    if caused:
        return caused[-1]
    spoken = [line for line in lines if not _FRAME.match(line)] or lines
    return max(spoken, key=lambda line: (len(symptoms.PROBLEM.findall(line)), -spoken.index(line)))


def _trimmed(text: str) -> str:
    return text.strip().removesuffix(",")


def _window(line: str) -> str:
    """At most EXCERPT_BYTES of a long line, around what it complains of, cut where there is white space."""
    room = EXCERPT_BYTES // 4  # a character takes up to four bytes
    hit = symptoms.PROBLEM.search(line)
    middle = hit.start() if hit else 0
    start, end = max(0, middle - room // 2), min(len(line), middle + room)
    if start:
        start = next((gap.end() for gap in _EDGE.finditer(line, start, middle)), start)
    if end < len(line):
        gaps = [gap.start() for gap in _EDGE.finditer(line, middle, end)]
        end = gaps[-1] if gaps else end
    return line[start:end].strip()


def reading_form(excerpt: str) -> str:
    """The excerpt for people: a JSON log line by its message and telling fields, white space collapsed, colours gone."""
    if row := _ROW.match(excerpt):
        return _shortened(f"{row[1]} example: {reading_form(row[2])}")
    value = _object(excerpt)
    text = _spoken(value) if value is not None else _JSON_KEY.sub(r" \1: ", excerpt) if _is_json(excerpt) else excerpt
    if _is_json(excerpt) and value is None:
        text = text.replace("}", " ")
    text = plain(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
    return _shortened(" ".join(text.replace("\r", " ").split()))


def _is_json(excerpt: str) -> bool:
    return _JSON_KEY.match(excerpt.lstrip("{ \n")) is not None


def _object(excerpt: str) -> dict[str, Any] | None:
    if not excerpt.startswith("{"):
        return None
    try:
        value = json.loads(excerpt)
    except ValueError:
        return None
    return value if isinstance(value, dict) and _first(value, _MESSAGE) else None


def _first(value: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next(
        (str(value[name]) for name in names if isinstance(value.get(name), (str, int, float)) and value[name]), None
    )


def _spoken(value: dict[str, Any]) -> str:
    """`payment-service ERROR request timed out (duration_ms=30000)`: what went wrong first, then the other fields."""
    message = _HOLE.sub(lambda hole: _filled(value, hole), _first(value, _MESSAGE) or "")
    head = [part for part in (_first(value, _SOURCE), _level(value)) if part]
    said = {name for names in (_LEVEL, _SOURCE) for name in names}
    said |= {next(name for name in _MESSAGE if value.get(name))}
    faults = [f"{key}={text}" for key in _FAULT if key not in said and (text := _fault(value.get(key)))]
    fields = [
        f"{key}={item if isinstance(item, str) else json.dumps(item)}"
        for key, item in value.items()
        if key not in said and key not in _FAULT and key not in _MESSAGE and not _SILENT.match(key) and _tells(item)
    ]
    told = [*faults, *fields][:MOST_FIELDS]
    tail = f" ({', '.join(told)})" if told else ""
    return f"{' '.join([*head, message])}{tail}"


def _level(value: dict[str, Any]) -> str | None:
    """The level by its word; pino and bunyan write 10 to 60."""
    found = _first(value, _LEVEL)
    return _PINO.get(found, found) if found else None


def _filled(value: dict[str, Any], hole: re.Match[str]) -> str:
    item = value.get(hole[1])
    return hole[0] if item is None or isinstance(item, (dict, list)) else str(item)


def _fault(item: Any) -> str:
    """What went wrong, as a field tells it: a text's first line, or the message of an error object."""
    if isinstance(item, dict):
        item = next((item[key] for key in ("message", "msg", "error", "reason", "type") if item.get(key)), "")
    text = str(item).strip().split("\n", 1)[0] if isinstance(item, (str, int, float)) else ""
    return text if len(text) <= FAULT_CHARS else f"{text[: text.rfind(' ', 0, FAULT_CHARS)]} …"


def _tells(item: Any) -> bool:
    return isinstance(item, (int, float, bool)) or (isinstance(item, str) and 0 < len(item) <= FIELD_CHARS)


def _shortened(text: str) -> str:
    if len(text) <= QUOTE_CHARS:
        return text
    cut = text.rfind(" ", 0, QUOTE_CHARS)
    return f"{text[: cut if cut > QUOTE_CHARS // 2 else QUOTE_CHARS]} …"
