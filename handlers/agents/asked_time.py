"""When a question asks about, by the clock: `at 10:42`, `between 10:40 and 10:48`, `10:42 左右`."""

from __future__ import annotations

import re

from handlers.evidence import log_lines

_CLOCK = re.compile(r"(?<![\d:.])([01]?\d|2[0-3])[:：]([0-5]\d)(?:[:：][0-5]\d)?(?![\d:])")
BEFORE_MIN, AFTER_MIN = 15, 5
"""A single time is said roughly, and what led to something stands before it."""
DAY_MIN = 24 * 60
HEAD_CHARS = 60  # where a line has a time that is no known stamp, as Redis writes it


def span_of(question: str) -> tuple[int, int] | None:
    """First and last minute of the day that the question names; None where it names none."""
    minutes = [int(hour) * 60 + int(minute) for hour, minute in _CLOCK.findall(question)]
    if not minutes:
        return None
    if len(minutes) == 1:
        return minutes[0] - BEFORE_MIN, minutes[0] + AFTER_MIN
    return min(minutes), max(minutes)


def within(text: str, span: tuple[int, int]) -> bool:
    """Whether a record's time stamp, in its own zone's clock as written, is in the span."""
    stamp = (log_lines.stamp(text.encode("utf-8", "replace")) or b"").decode("ascii", "replace")
    hit = _CLOCK.search(stamp.replace("T", " ")) or _CLOCK.search(text[:HEAD_CHARS])
    if hit is None:
        return False
    minute = int(hit[1]) * 60 + int(hit[2])
    return any(span[0] <= minute + shift <= span[1] for shift in (0, DAY_MIN, -DAY_MIN))
