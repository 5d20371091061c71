"""What the text of a recorded output amounts to: records, a failed access, or nothing.

"No resources found" is no data, and "Forbidden" an error: neither may be read as a finding about the system. What a
workload logs about its own failures is a finding: only what is plainly the tool's own failure is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, AnyStr, Literal

from handlers.evidence import prometheus_json
from handlers.evidence.json_records import Flat, walk

LONG_LINE = 1_500  # JSON in lines longer than that is shown by its objects
MAX_FAILURE_LINES = 6
MAX_OBJECT_LINES = 40

HEADING = re.compile(r"^(?:stdout|stderr|output):\s*$", re.IGNORECASE)
# What tools say of their own failed access, at the beginning of a line and in nobody else's words. A refused connection
# or a denied access by itself is what workloads log about theirs.
_FAILURE = re.compile(
    r"^(?:error from server\b|unable to connect to the server\b|the connection to the server .* was refused"
    r"|you must be logged in|an error occurred \([A-Za-z.]+\) when calling|(?:forbidden|unauthorized)\b(?!.*\bfor user ')"
    r"|(?:access|permission) denied\.?$|curl: \(\d+\) |ssh: connect to host "
    r"|http(?:/[\d.]+)?(?: error| status)?:? ?(?:40[1347]|429|5\d\d)\b[\s:()A-Za-z-]{0,40}$"
    r"|[45]\d\d (?:client error|server error|forbidden|unauthorized|not found)\b"
    r"|(?:/[\w./-]+/)?(?:(?:ba|da|z|k)?sh|env|cat|ls|grep|tail|head|find|kubectl|oc|helm|docker|journalctl)(?:\[\d+\])?:.{0,120}: "
    r"(?:command not found|not found|permission denied|no such file or directory)$)",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"^command [`'\"].*failed with return code\b", re.IGNORECASE)
# kubectl's plain `error: ...`, but not about a host and port, which is how workloads begin such a line.
_ERROR = re.compile(r"^error: (?!.*(?:ECONN|connection refused|dial tcp|:\d{2,5}\b))")
_NOISE = re.compile(
    r"^[EW]\d{4} \d\d:\d\d:\d\d\S* .*\bmemcache\.go:\d+\]|^exit (?:code|status):? ?[1-9]\d*$", re.IGNORECASE
)
_NOTHING = re.compile(
    r"^(?:no resources found\b.*|no (?:data|results?|matches|entries|logs|rows|events)(?: found)?\.?|\(0 rows\)|\[\]|\{\}|null)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Body:
    """What a text amounts to: its status, its records, and for a failure or a spoken emptiness its words."""

    status: Literal["success", "no_data", "error"]
    entries: tuple[Flat, ...] = ()
    text: str = ""


def read_body(text: str) -> Body:
    """What a recorded body amounts to."""
    lines = [line for line in text.splitlines() if line.strip() and not HEADING.match(line.strip())]
    if not lines:
        return Body("no_data")
    said = "\n".join(line.strip() for line in lines)
    if len(lines) <= MAX_FAILURE_LINES and _failed(lines):
        return Body("error", text=said)
    if len(lines) == 1 and _NOTHING.match(lines[0].strip()):
        return Body("no_data", text=said)
    body = _json(text)
    if isinstance(body, dict) and (error := prometheus_json.error_of(body)) is not None:
        return Body("error", text=error)
    if body is not None and max(len(line) for line in lines) > LONG_LINE:
        try:
            flat = [entry if isinstance(entry, Flat) else Flat(entry.path, entry.render()) for entry in walk(body)]
        except RecursionError:
            # Nested beyond reason: shown by its lines.
            return Body("success", tuple(_line_records(text, is_json=False)))
        return Body("success", tuple(flat))
    return Body("success", tuple(_line_records(text, is_json=body is not None)))


def _failed(lines: list[str]) -> bool:
    """Whether the tool says that its own access failed: in every line, or in the first of a command's report."""
    if _COMMAND.match(lines[0].strip()):
        return True
    own = [line.strip() for line in lines if not _NOISE.match(line.strip())]
    return bool(own) and all(_FAILURE.match(line) or _ERROR.match(line) for line in own)


def _json(text: str) -> Any:
    stripped = text.lstrip("\ufeff \r\n\t")
    if not stripped.startswith(("{", "[")):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return None


def _line_records(text: str, is_json: bool) -> list[Flat]:
    lines = text.split("\n")
    found, at = [], 0
    while at < len(lines):
        line = lines[at].removesuffix("\r")
        if not line.strip() or HEADING.match(line.strip()):
            at += 1
            continue
        end = object_end(lines, at, "{", "[", "}") if is_json else at
        if end > at:
            joined = "\n".join(one.removesuffix("\r") for one in lines[at : end + 1])
            found.append(Flat(f"lines[{at + 1}-{end + 1}]", joined))
        elif not is_json or re.search(r"\w", line):
            found.append(Flat(f"lines[{at + 1}]", line))
        at = end + 1
    return found


def object_end(lines: Sequence[AnyStr], start: int, brace: AnyStr, bracket: AnyStr, close: AnyStr) -> int:
    """The line that closes an object that starts here and holds no other; `start` if there is no such object."""
    if not lines[start].rstrip().endswith(brace):
        return start
    for at in range(start + 1, min(len(lines), start + MAX_OBJECT_LINES)):
        line = lines[at].strip()
        if line.endswith((brace, bracket)):
            return start
        if line.startswith(close):
            return at
    return start
