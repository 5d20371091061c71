"""Secrets and personal data out of texts of others, before anything is recorded or sent to a model.

A value becomes `[REDACTED:kind#n]`, the same value of a session the same placeholder, so that lines still compare
and excerpts still match. What is taken out, and what never is, stands in `redaction_rules`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, AnyStr

from handlers.redaction_rules import NAMES, RULES, Rule
from streams.events import ChannelWritten, QuestionAsked, ToolInvoked, TurnCancelled
from streams.session import SessionState

PLACEHOLDER = re.compile(r"\[REDACTED:([a-z-]+)#(\d{1,9})\]")
PEM_CHARS = 16_000
HELD = 512
NAMED_CHARS = 4_000  # of a value that is read together with the name it stands under

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")
_PEM_END = "-----END "
_PEM_LINE = re.compile(r"(?m)^(?:[^\t\n]*\t)?[ ]*(?P<secret>[A-Za-z0-9+/]{2,}={0,2})[ \r]*$")
_PEM_RUN = re.compile(r"(?<![A-Za-z0-9+/=])(?P<secret>[A-Za-z0-9+/]{40,}={0,2})(?![A-Za-z0-9+/=])")
_HEX = re.compile(r"[0-9a-fA-F]+")
_PEM_FULL = 40  # characters of a line that is taken for a key's where the key's end is not in sight
_TO_ZERO = bytes(0x30 if 0x30 <= code <= 0x39 else code for code in range(256))
_TO_CAPITAL = bytes(0x41 if 0x41 <= code <= 0x5A else code for code in _TO_ZERO)
# Letters that look like ASCII's, and characters that nobody sees: a key word is the same with them.
_WIDE = re.compile("[\uff10-\uff19\uff1d\uff20-\uff3a\uff41-\uff5a]+")
_WIDE_LETTER = re.compile("[\uff20-\uff5a]")  # one range, and no punctuation of Chinese: a quick first look
_NARROW = {code: code - 0xFEE0 for code in range(0xFF10, 0xFF5B)}
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_UNSEEN_RUN = re.compile(f"[{_UNSEEN}]")


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
    spans = _spans(text, known)
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


def _spans(text: str, known: Known) -> list[_Span]:
    """What goes, by place, without overlaps: earlier rules first, a wide rule before what lies wholly inside its own."""
    if text.isascii():
        return _found(text, known)
    if _WIDE_LETTER.search(text):
        text = _WIDE.sub(lambda run: run[0].translate(_NARROW), text)
    if not any(char in text for char in _UNSEEN):
        return _found(text, known)
    # A place in the text without them is behind as many as stand before it.
    before = [hit.start() - n for n, hit in enumerate(_UNSEEN_RUN.finditer(text))]
    spans = _found(_UNSEEN_RUN.sub("", text), known)
    starts = (span.start + bisect_right(before, span.start) for span in spans)
    ends = (span.end + bisect_left(before, span.end) for span in spans)
    return [_Span(start, end, span.kind) for start, end, span in zip(starts, ends, spans, strict=True)]


def _found(text: str, known: Known) -> list[_Span]:
    # One byte a character, so that places are the same; what is no Latin 1 is found in the text itself.
    plain = text.encode("latin-1", "replace")
    folded = plain.lower()
    shapes = {"text": folded, "digits": folded.translate(_TO_ZERO), "capitals": plain.translate(_TO_CAPITAL)}
    met: dict[str, dict[str, list[int]]] = {name: {} for name in shapes}
    taken: list[_Span] = []
    for span in _pem(text, known):
        _take(taken, span, wide=False)
    for rule in RULES:
        if rule.needs not in text:
            continue
        for hit in _hits(rule, text, shapes[rule.reads], met[rule.reads]):
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


def _hits(rule: Rule, text: str, folded: bytes, met: dict[str, list[int]]) -> Iterator[re.Match[str]]:
    end = 0
    for at in _places(rule, text, folded, met):
        if at < end or (rule.gate is not None and rule.gate.match(text, at) is None):
            continue
        tried = (rule.pattern.match(text, start) for start in range(max(end, at - rule.back), at + 1))
        hit = next((hit for hit in tried if hit is not None), None)
        if hit is None or PLACEHOLDER.search(hit["secret"]) or (rule.check is not None and not rule.check(hit)):
            continue
        end = hit.end()
        yield hit


def _places(rule: Rule, text: str, folded: bytes, met: dict[str, list[int]]) -> list[int]:
    """Where the rule's anchors stand; `met` keeps those of other rules that read the same."""
    found: list[int] = []
    for anchor in rule.anchors:
        if anchor not in met:
            plain = anchor.isascii() and (rule.reads != "text" or anchor == anchor.lower())
            met[anchor] = _all(folded, anchor.encode()) if plain else _all(text, anchor)
        found += met[anchor]
    found.sort()
    return found


def _all(text: AnyStr, part: AnyStr) -> list[int]:
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def _pem(text: str, known: Known) -> Iterator[_Span]:
    """The lines between a key's first and last line, each a record of its own where a file was read line by line.

    Beside a time stamp or in a field a line is known by its length; shown alone, by what was found before.
    """
    end = 0
    for begin in _PEM_BEGIN.finditer(text) if "PRIVATE KEY-----" in text else ():
        if begin.end() < end:
            continue
        close = text.find(_PEM_END, begin.end(), begin.end() + PEM_CHARS)
        end = close if close >= 0 else min(len(text), begin.end() + PEM_CHARS)
        first = text.find("\n", begin.end(), end)
        for hit in _PEM_LINE.finditer(text, first + 1, end) if first >= 0 else ():
            if close < 0 and len(hit["secret"]) < _PEM_FULL:
                continue
            yield _Span(hit.start("secret"), hit.end("secret"), "private-key")
        for hit in _PEM_RUN.finditer(text, begin.end(), end):
            if not _HEX.fullmatch(hit["secret"]):
                yield _Span(hit.start("secret"), hit.end("secret"), "private-key")
    if "private-key" in known.last:
        for hit in _PEM_RUN.finditer(text):
            if hit["secret"] in known.placeholders:
                yield _Span(hit.start("secret"), hit.end("secret"), "private-key")


def unnumbered(text: str) -> str:
    """`text` as it is whatever numbers its placeholders were given: what two processes made of the same secret is equal."""
    return PLACEHOLDER.sub(r"[REDACTED:\1]", text)


def alone(text: str) -> str:
    """`text` with placeholders numbered for itself: what an operator says, which is no text of a session's."""
    return redact(text, Known())[0]


def masked(text: str) -> str:
    """`text` without secrets where no session is at hand to number them: what a server says of itself, an error."""
    return unnumbered(alone(text))


class Redact:
    """`redact` with what is known of one session; every method gives the clean thing and the counts by kind."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def __call__(self, text: str) -> tuple[str, dict[str, int]]:
        return redact(text, self._known)

    def value(self, value: Any, name: str = "") -> tuple[Any, dict[str, int]]:
        """A JSON value under `name`: what a name says of its value holds as in the same JSON read as a text."""
        counts: Counter[str] = Counter()
        return self._value(value, name, counts), dict(counts)

    def texts(self, texts: Sequence[str]) -> tuple[list[str], dict[str, int]]:
        """Records that follow each other: a key's lines are known by its first and last, in records of their own."""
        whole, counts = self("\n".join(texts))
        lines = iter(whole.split("\n"))
        return ["\n".join(next(lines) for _ in range(text.count("\n") + 1)) for text in texts], counts

    def _value(self, value: Any, name: str, counts: Counter[str]) -> Any:
        if isinstance(value, dict):
            return {self._text(key, counts): self._value(item, key, counts) for key, item in value.items()}
        if isinstance(value, list):
            if not NAMES.search(name) and all(isinstance(item, str) for item in value):
                value, found = self.texts(value)
                counts.update(found)
            return [self._value(item, name, counts) for item in value]
        if isinstance(value, str):
            named = self._named(name, value, counts)
            return self._text(value, counts) if named is None else named
        if isinstance(value, int | float) and not isinstance(value, bool):
            named = self._named(name, value, counts)
            return value if named is None else named
        return value

    def _text(self, text: str, counts: Counter[str]) -> str:
        clean, found = self(text)
        counts.update(found)
        return clean

    def _named(self, name: str, value: str | int | float, counts: Counter[str]) -> str | None:
        """`value` if its name makes it a secret. Read as JSON text: an excerpt that quotes it so must find it again."""
        if not NAMES.search(name) or len(str(value)) > NAMED_CHARS:
            return None
        start = f"{json.dumps(name, ensure_ascii=False)}: "
        clean, found = self(start + json.dumps(value, ensure_ascii=False))
        if not found or not clean.startswith(start):
            return None
        counts.update(found)
        told = clean.removeprefix(start)
        return str(json.loads(told)) if isinstance(value, str) else told


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
        return Redact(self.of(state))


def _texts(state: SessionState, seen: int) -> Iterable[str]:
    for event in state.events[seen:]:
        match event.data:
            case QuestionAsked(question=question):
                yield question
            case ToolInvoked(retrieval_details=details, error=error) as call:
                yield from (ref.text for ref in ((details.evidence_refs or ()) if details else ()))
                yield from (error or "", call.invocation_id, call.tool_name, call.topic or "", str(call.arguments))
            case ChannelWritten(value=value, who=who):
                yield from (str(value), who)
            case TurnCancelled(who=who, why=why):
                yield from (who, why)
