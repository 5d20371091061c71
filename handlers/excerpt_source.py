"""A ref's text as the matcher sees it: its readings, its records and lines, its hash. Remembered, within bounds."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import pairwise

from handlers.excerpt_cuts import NEGATION_HINT, clipped_after, clipped_before
from handlers.excerpt_forms import Form, Span, casefolded, html_unescaped, json_unescaped, normalized
from streams.contract import Tier

_NEGATION_REACH = 160
_BREAK = re.compile(r"\r\n|\r|\n")
_CONTINUATION = re.compile(r"[ \t]+at |[ \t]*Caused by: |[ \t]+\.\.\. \d+ |[ \t]+File \"|[ \t]+Suppressed: ")
_NEXT_ELEMENT = re.compile(r"\}\s*,\s*\{")
_JSON_SPACE = " \t\r\n"


class View:
    """One normalised reading of the source, with its case-folded form and the places where a negation may stand."""

    def __init__(self, tier: Tier, form: Form) -> None:
        self.tier = tier
        self.form = normalized(form)

    @cached_property
    def folded(self) -> Form:
        return casefolded(self.form)

    @cached_property
    def _hints(self) -> array[int]:
        return array("l", (m.start() for m in NEGATION_HINT.finditer(self.form.text)))

    def clips_negation(self, start: int, end: int) -> bool:
        """gate.md step 8 for a span of the normalised text, judged where the line breaks still stand."""
        before = self._hinted(start - _NEGATION_REACH, start)
        after = self._hinted(end, end + _NEGATION_REACH)
        lined, span = self.form.parent, self.form.up(start, end) if before or after else None
        if lined is None or span is None:
            return False
        return (before and clipped_before(lined.text, span[0])) or (after and clipped_after(lined.text, span[1]))

    def _hinted(self, low: int, high: int) -> bool:
        index = bisect_left(self._hints, low)
        return index < len(self._hints) and self._hints[index] < high


class Source:
    """A ref's text with everything the matcher derives from it, each part made when first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        raw = text.encode("utf-8", "surrogatepass")
        self.bytes = len(raw)
        self.sha256 = sha256(raw).hexdigest()

    @cached_property
    def views(self) -> tuple[View, ...]:
        """The text normalised, then with JSON and with HTML escapes undone, where it has any."""
        form = Form(self.text)
        escaped = (json_unescaped(form), html_unescaped(form))
        return (View("normalized", form), *(View("unescaped", f) for f in escaped if f is not None))

    @cached_property
    def _records(self) -> array[int]:
        return array("l", self._elements() or self._lines())

    def _elements(self) -> list[int]:
        """Where the elements of a JSON array start; empty if the text is none."""
        if self.text.lstrip(_JSON_SPACE)[:1] != "[":
            return []
        decoder = json.JSONDecoder()
        at = self.text.index("[") + 1
        starts: list[int] = []
        try:
            while True:
                at = self._skip(at)
                if self.text[at] == "]":
                    return starts if self._skip(at + 1) == len(self.text) else []
                starts.append(at)
                _, at = decoder.raw_decode(self.text, at)
                at = self._skip(at)
                if self.text[at] == ",":
                    at += 1
        except (ValueError, IndexError, RecursionError):
            return []

    def _skip(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in _JSON_SPACE:
            at += 1
        return at

    def _lines(self) -> list[int]:
        """Where lines start; the frames of a stack trace belong to the line they follow."""
        return [0, *(m.end() for m in _BREAK.finditer(self.text) if not _CONTINUATION.match(self.text, m.end()))]

    def record(self, at: int) -> Span:
        """The record around an offset: an element of a JSON array, else a line with its stack trace."""
        index = bisect_right(self._records, at)
        return (
            self._records[index - 1] if index else 0,
            self._records[index] if index < len(self._records) else len(self.text),
        )

    def records(self) -> list[str]:
        return [self.text[a:b] for a, b in pairwise([*self._records, len(self.text)])]

    def same_record(self, spans: tuple[Span, ...]) -> bool:
        """Whether consecutive spans each stand in one record, elements of an array inside a JSON object told apart."""
        nested = self.text.lstrip(_JSON_SPACE)[:1] in ("{", "[")
        return all(
            self.record(a[1] - 1) == self.record(b[0])
            and not (nested and _NEXT_ELEMENT.search(self.text, a[1] - 1, b[0] + 1))
            for a, b in pairwise(spans)
        )


def records(text: str) -> list[str]:
    """The records of a text: the elements of a JSON array, else lines, each with the stack trace that follows it."""
    return source_of(text).records()


def full_lines(text: str, start: int, end: int, limit_bytes: int) -> str:
    """The line or lines that [start:end) touches, at most `limit_bytes` of UTF-8, whole characters, the hit in the middle."""
    first = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    stops = [at for at in (text.find("\n", max(end - 1, start)), text.find("\r", max(end - 1, start))) if at >= 0]
    last = max(end, min(stops, default=len(text)))
    line = text[first:last].rstrip("\r\n")
    if len(line) * 4 <= limit_bytes or _size(line) <= limit_bytes:
        return line
    hit = text[start:end]
    spare = limit_bytes - _size(hit)
    if spare <= 0:
        excess = -spare
        return _tail(_head(hit, limit_bytes + excess // 2), limit_bytes)
    before, after = text[max(first, start - limit_bytes) : start], text[end : min(last, end + limit_bytes)]
    room = max(spare // 2, spare - _size(after))
    left = _tail(before, room)
    return left + hit + _head(after, spare - _size(left))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _head(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "surrogatepass")[: limit + 1]
    if len(raw) <= limit:
        return text
    while limit and raw[limit] & 0xC0 == 0x80:
        limit -= 1
    return raw[:limit].decode("utf-8", "surrogatepass")


def _tail(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    at = max(0, len(raw) - limit)
    while at < len(raw) and raw[at] & 0xC0 == 0x80:
        at += 1
    return raw[at:].decode("utf-8", "surrogatepass")


_SMALL_CHARS = 4096
_small = lru_cache(maxsize=2048)(Source)
_large = lru_cache(maxsize=32)(Source)


def source_of(text: str) -> Source:
    """The remembered source of a text: up to 2,048 of at most 4,096 characters, and 32 larger ones."""
    return _small(text) if len(text) <= _SMALL_CHARS else _large(text)
