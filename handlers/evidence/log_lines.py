"""What one log line says of itself: its level, its time stamp, its template, and whether it continues a record."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

TRACE, DEBUG, INFO, WARN, ERROR, FATAL = range(6)
LEVEL_NAMES = ("trace", "debug", "info", "warn", "error", "fatal")
NO_LEVEL = -1

_WORDS = {
    **dict.fromkeys(("trace", "finest", "finer"), TRACE),
    **dict.fromkeys(("debug", "fine", "verbose"), DEBUG),
    **dict.fromkeys(("info", "information", "notice", "normal", "log"), INFO),
    **dict.fromkeys(("warn", "warning"), WARN),
    **dict.fromkeys(("error", "err", "severe"), ERROR),
    **dict.fromkeys(("fatal", "critical", "crit", "panic", "emerg", "emergency", "alert"), FATAL),
}
_FIELD = re.compile(
    rb"(?:^|[\s{,])\"?(?:log\.?)?(?:level|lvl|levelname|severity|severity_text|loglevel)\"?\s*[:=]\s*\"?([A-Za-z]+|\d+)",
    re.IGNORECASE,
)
_BARE = re.compile(
    rb"(?<![\w.])(TRACE|FINEST|FINER|DEBUG|FINE|VERBOSE|INFO|NOTICE|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|"
    rb"PANIC|EMERG|ALERT)(?![\w.])|[\[<(](trace|debug|info|notice|warn|warning|error|err|crit|critical|alert|emerg|fatal)[\]>):]"
)
_KLOG = re.compile(rb"^\s*([IWEF])\d{4} \d\d:\d\d")
_REDIS = re.compile(rb"^\d+:[XCSM] \d\d \w{3} \d{4} [\d:.]+ ([.*#-]) ")
_SPOKEN = re.compile(
    rb"\b(?:error|errors|exception|traceback|fail(?:ed|ure|s)?|fatal|panic|refused|timed out|unavailable|denied|oomkilled)\b"
    rb"|Exception\b|Error\b|\bundefined\b"
    rb"|\xe9\x94\x99\xe8\xaf\xaf|\xe5\xa4\xb1\xe8\xb4\xa5|\xe8\xb6\x85\xe6\x97\xb6|\xe5\xbc\x82\xe5\xb8\xb8",
    re.IGNORECASE,
)
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_BLIND = b"0123456789abcdefABCDEF.,:+-"

_MONTHS = rb"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_TIME = re.compile(
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
    rb"|\d\d/(?:" + _MONTHS + rb")/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?"
    rb"|\b(?:" + _MONTHS + rb") [ \d]\d \d\d:\d\d:\d\d"
    rb"|(?<=[\"{, ])(?:ts|time|timestamp|@timestamp|date)\"?\s*[:=]\s*\"?(\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19})(?!\d)"
)
_CONTINUES = re.compile(rb"^(?:\s+at\s|\s+\.\.\. \d|\s+File \"|Caused by: |\s+Suppressed: |\s+\^+|\s{4,}\S|\t)")
_HAS_STACKS = re.compile(
    rb"^(?:\s+at\s\S|Caused by: |Traceback \(most recent call last\)|\s+File \"|\s+\.\.\. \d)", re.MULTILINE
)
_RELATIVE = re.compile(r"^(?:now)?-?(\d+)\s*(s|m|min|h|d)(?:\s+ago)?$")
_SPAN = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def plain(line: bytes) -> bytes:
    """The line without terminal colours: for searching only, never for quoting."""
    return _ANSI.sub(b"", line) if b"\x1b" in line else line


def template(line: bytes) -> bytes:
    """What stays of a line without numbers, hexadecimal letters and time marks: lines of one statement look alike."""
    return line.translate(None, _BLIND)


def level(line: bytes) -> int:
    """The line's level 0 to 5, by its own field, else a level word near its start, else what it speaks of; -1 if none."""
    line = plain(line)
    if hit := _FIELD.search(line):
        word = hit[1].lower().decode()
        if word.isdigit():
            return min(FATAL, max(TRACE, int(word) // 10 - 1)) if int(word) >= 10 else NO_LEVEL
        if word in _WORDS:
            return _WORDS[word]
    if hit := _BARE.search(line[:160]):
        return _WORDS[(hit[1] or hit[2]).lower().decode()]
    if hit := _KLOG.match(line):
        return {b"I": INFO, b"W": WARN, b"E": ERROR, b"F": FATAL}[hit[1]]
    if hit := _REDIS.match(line):
        spoken = ERROR if _SPOKEN.search(line) else WARN
        return {b".": DEBUG, b"-": DEBUG, b"*": INFO}.get(hit[1], spoken)
    return ERROR if _SPOKEN.search(line) else NO_LEVEL


def level_number(name: str) -> int | None:
    return _WORDS.get(name.strip().lower())


def stamp(line: bytes) -> bytes | None:
    """The line's time stamp as written there, looked for in its first 400 bytes."""
    hit = _TIME.search(line[:400])
    if hit is None:
        return None
    return hit[1] or hit[0]


def epoch(text: bytes | str, year: int = 1970) -> float | None:
    """Seconds since 1970 of a time stamp; without a zone it is read as UTC, without a year as of `year`."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    text = text.strip().replace(",", ".")
    number = text.replace(".", "", 1)
    if number.isdigit() and "-" not in text:
        digits = len(text.split(".", maxsplit=1)[0])
        return float(text) / {13: 1e3, 16: 1e6, 19: 1e9}.get(digits, 1.0)
    return _calendar(text, year)


def _calendar(text: str, year: int) -> float | None:
    for form in (None, "%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%Y %b %d %H:%M:%S"):
        try:
            if form is None:
                moment = datetime.fromisoformat(text.replace("/", "-").replace(" Z", "Z"))
            else:
                moment = datetime.strptime(f"{year} {text}" if form.startswith("%Y ") else text, form)  # noqa: DTZ007
        except ValueError:
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def moment(text: str, now: datetime) -> float | None:
    """An argument's time: ISO 8601, seconds since 1970, `now`, or a span before it (`15m`, `-2h`, `1h ago`). None if it is none."""
    if text.strip() == "now":
        return now.timestamp()
    if hit := _RELATIVE.match(text.strip()):
        return (now - timedelta(seconds=int(hit[1]) * _SPAN[hit[2]])).timestamp()
    return epoch(text, now.year)


def has_stacks(block: bytes) -> bool:
    """True if stack traces may be in it: only then are records put together from several lines."""
    return _HAS_STACKS.search(block) is not None


def continues(line: bytes) -> bool:
    """True for a line that belongs to the record before it: a frame, a cause, an indented line of a traceback."""
    return _CONTINUES.match(line) is not None


def opens_traceback(line: bytes) -> bool:
    return line.rstrip().endswith(b"Traceback (most recent call last):")
