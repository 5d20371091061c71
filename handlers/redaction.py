"""Secrets and personal data out of texts of others, before anything is recorded or sent to a model.

A value becomes `[REDACTED:kind#n]`, the same value of a session the same placeholder, so that lines still compare
and excerpts still match. What is taken out, and what never is, stands in `redaction_rules`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from handlers.redaction_rules import RULES, Rule
from streams.events import QuestionAsked, ToolInvoked
from streams.session import SessionState

PLACEHOLDER = re.compile(r"\[REDACTED:([a-z-]+)#(\d{1,9})\]")
PEM_CHARS = 16_000
HELD = 512

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[ \t\r]*(?:\n|$)")
_PEM_END = "-----END "
_PEM_LINE = re.compile(r"(?m)^(?:[^\t\n]*\t)?[ ]*(?P<secret>[A-Za-z0-9+/]{2,}={0,2})[ \r]*$")
_PEM_FULL = 40  # characters of a line that is taken for a key's where the key's end is not in sight
_TO_ZERO = bytes(0x30 if 0x30 <= code <= 0x39 else code for code in range(256))

Redact = Callable[[str], tuple[str, dict[str, int]]]


@dataclass(slots=True)
class Known:
    """The values of one session and their placeholders, and the last number given in each kind."""

    placeholders: dict[str, str] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)

    def placeholder(self, kind: str, value: str) -> str:
        held = self.placeholders.get(value)
        if held is None:
            self.last[kind] = self.last.get(kind, 0) + 1
            held = self.placeholders[value] = f"[REDACTED:{kind}#{self.last[kind]}]"
        return held

    def reserve(self, text: str) -> None:
        """The placeholders that stand in `text` are never given to another value."""
        if "[REDACTED:" in text:
            for hit in PLACEHOLDER.finditer(text):
                self.last[hit[1]] = max(self.last.get(hit[1], 0), int(hit[2]))


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    kind: str


def redact(text: str, known: Known) -> tuple[str, dict[str, int]]:
    """`text` with placeholders, and how many values of each kind were replaced; new values are entered in `known`."""
    if text in known.placeholders:
        held = known.placeholders[text]
        return held, {held[10:].partition("#")[0]: 1}
    spans = _spans(text)
    if not spans:
        return text, {}
    parts: list[str] = []
    counts: Counter[str] = Counter()
    end = 0
    for span in spans:
        parts += (text[end : span.start], known.placeholder(span.kind, text[span.start : span.end]))
        end = span.end
        counts[span.kind] += 1
    return "".join([*parts, text[end:]]), dict(counts)


def _spans(text: str) -> list[_Span]:
    """What goes, by place, without overlaps: earlier rules first, a wide rule before what lies wholly inside its own."""
    # One byte a character, so that places are the same; what is no Latin 1 is found in the text itself.
    folded = text.encode("latin-1", "replace").lower()
    shape = folded.translate(_TO_ZERO)
    taken: list[_Span] = []
    for span in _pem(text):
        _take(taken, span, wide=False)
    for rule in RULES:
        for hit in _hits(rule, text, shape if rule.digits else folded):
            _take(taken, _Span(hit.start("secret"), hit.end("secret"), rule.kind), rule.wide)
    return taken


def _take(taken: list[_Span], span: _Span, wide: bool) -> None:
    at = bisect_left(taken, span.start, key=lambda held: held.end - 1)
    over = at
    while over < len(taken) and taken[over].start < span.end:
        over += 1
    if over > at and not (wide and span.start <= taken[at].start and taken[over - 1].end <= span.end):
        return
    taken[at:over] = [span]


def _hits(rule: Rule, text: str, folded: bytes) -> Iterator[re.Match[str]]:
    end = 0
    for at in _places(rule.anchors, text, folded):
        if at < end:
            continue
        tried = (rule.pattern.match(text, start) for start in range(max(end, at - rule.back), at + 1))
        hit = next((hit for hit in tried if hit is not None), None)
        if hit is None or PLACEHOLDER.search(hit["secret"]) or (rule.check is not None and not rule.check(hit)):
            continue
        end = hit.end()
        yield hit


def _places(anchors: tuple[str, ...], text: str, folded: bytes) -> list[int]:
    found: list[int] = []
    for anchor in anchors:
        if anchor.isascii() and anchor == anchor.lower():
            needle = anchor.encode()
            at = folded.find(needle)
            while at >= 0:
                found.append(at)
                at = folded.find(needle, at + 1)
        else:
            at = text.find(anchor)
            while at >= 0:
                found.append(at)
                at = text.find(anchor, at + 1)
    found.sort()
    return found


def _pem(text: str) -> Iterator[_Span]:
    """The lines between a key's first and last line, each a record of its own where a file was read line by line."""
    end = 0
    for begin in _PEM_BEGIN.finditer(text) if "PRIVATE KEY-----" in text else ():
        if begin.end() < end:
            continue
        close = text.find(_PEM_END, begin.end(), begin.end() + PEM_CHARS)
        end = close if close >= 0 else min(len(text), begin.end() + PEM_CHARS)
        for hit in _PEM_LINE.finditer(text, begin.end(), end):
            if close < 0 and len(hit["secret"]) < _PEM_FULL:
                continue
            yield _Span(hit.start("secret"), hit.end("secret"), "private-key")


def unnumbered(text: str) -> str:
    """`text` as it is whatever numbers its placeholders were given: what two processes made of the same secret is equal."""
    return PLACEHOLDER.sub(r"[REDACTED:\1]", text)


def redactor(known: Known) -> Redact:
    return lambda text: redact(text, known)


class Redactions:
    """What is known of each session in work, in this process's memory alone: a mapping in the log would be the secret.

    After a restart a value may get a new placeholder; one that stands in the log is never given to another value.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, tuple[Known, int]] = OrderedDict()

    def of(self, state: SessionState) -> Known:
        known, seen = self._sessions.pop(state.session, (Known(), 0))
        for text in _texts(state, seen):
            known.reserve(text)
        self._sessions[state.session] = known, len(state.events)
        while len(self._sessions) > HELD:
            self._sessions.popitem(last=False)
        return known

    def redactor(self, state: SessionState) -> Redact:
        return redactor(self.of(state))


def _texts(state: SessionState, seen: int) -> Iterable[str]:
    for event in state.events[seen:]:
        match event.data:
            case QuestionAsked(question=question):
                yield question
            case ToolInvoked(retrieval_details=details, error=error):
                yield from (ref.text for ref in ((details.evidence_refs or ()) if details else ()))
                yield error or ""
