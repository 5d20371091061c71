"""Identifiers in a text: error codes, exceptions, hosts, pods, IPs, ids, versions, names (VER-5); where they stand.

Time stamps, dates, clock times, ordinals and list markers are found here too, because neither they nor identifiers are
ever numbers. All offsets are offsets in `fold(text)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from handlers.identifier_shapes import HEX_HASH, NAME_LIKE, NAME_LIMIT, NAMED_IN_PROSE, SHAPES, Kind
from handlers.marks import NO_AMOUNTS, TIMES, list_marks
from handlers.shapes import LEFT as _L
from handlers.shapes import RIGHT as _R
from handlers.shapes import fold

__all__ = ["MASK", "NAMED_IN_PROSE", "NAME_LIKE", "Identifier", "Kind", "Scan", "identifiers", "scan", "stands_in"]


@dataclass(frozen=True, slots=True)
class Identifier:
    """One identifier. `key` is what must stand in the evidence (`v1.2.3` has key `1.2.3`); `origin` is the folded text
    that it was found in."""

    kind: Kind
    text: str
    key: str
    start: int
    end: int
    origin: str = field(default="", compare=False, repr=False)

    @property
    def token(self) -> str:
        """The run of Latin characters that it was cut out of, up to white space, brackets and quotes."""
        return _token(self.origin, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Scan:
    """A text read once: folded, its identifiers, and a copy of equal length where nothing is left but words and
    numbers (each masked character is U+FFFC)."""

    folded: str
    identifiers: tuple[Identifier, ...]
    masked: str


_URL = re.compile(r"https?://([^\s/:\"'<>，。；、）)]+)(?::\d+)?[^\s\"'<>，。；、）)]*", re.ASCII)
MASK = "\ufffc"


@lru_cache(maxsize=2048)
def scan(text: str) -> Scan:
    """`text` read once. What is found first is taken; nothing overlaps."""
    folded = fold(text)
    left = list(folded)
    found: list[Identifier] = []

    def mask(start: int, end: int) -> None:
        left[start:end] = MASK * (end - start)

    for m in _URL.finditer(folded):
        host = m.group(1)
        found.extend(
            Identifier(i.kind, i.text, i.key, i.start + m.start(1), i.end + m.start(1), folded)
            for i in _identify(host, list(host), folded)
        )
        mask(m.start(), m.end())
    for pattern in TIMES:
        for m in pattern.finditer("".join(left)):
            mask(m.start(), m.end())
    found.extend(_identify("".join(left), left, folded))
    for start, end in list_marks("".join(left)):
        mask(start, end)
    for pattern in NO_AMOUNTS:
        for m in pattern.finditer("".join(left)):
            mask(m.start(), m.end())
    return Scan(folded, tuple(sorted(found, key=lambda i: i.start)), "".join(left))


def _identify(text: str, left: list[str], origin: str) -> list[Identifier]:
    found: list[Identifier] = []
    for pattern, read in SHAPES:
        for m in pattern.finditer(text):
            reading = read(m)
            if reading is not None:
                found.append(Identifier(reading[0], m.group(), reading[1], m.start(), m.end(), origin))
                left[m.start() : m.end()] = MASK * (m.end() - m.start())
        text = "".join(left)
    return found


def identifiers(text: str) -> tuple[Identifier, ...]:
    """The identifiers of `text`, in order, each place once."""
    return scan(text).identifiers


@lru_cache(maxsize=4096)
def _finder(kind: Kind, key: str) -> re.Pattern[str]:
    k = re.escape(key)
    if kind in {"name", "pod"}:
        return re.compile(rf"(?<![A-Za-z0-9_-]){k}{_R}", re.ASCII | re.IGNORECASE)
    if kind == "host":
        return re.compile(rf"(?<![A-Za-z0-9_.-]){k}(?![A-Za-z0-9_-]|\.[A-Za-z0-9])", re.ASCII | re.IGNORECASE)
    if kind == "ip" and "." in key:  # a port and a colon may follow: `dial 10.0.0.7:5432: refused`
        return re.compile(rf"(?<![0-9A-Za-z.]){k}(?![0-9A-Za-z]|\.\d)", re.ASCII | re.IGNORECASE)
    if kind == "ip":
        return re.compile(rf"(?<![0-9A-Fa-f.:]){k}(?![0-9A-Fa-f]|\.\d|:[0-9A-Fa-f]*:)", re.ASCII | re.IGNORECASE)
    if kind == "version":
        longer = r"(?![0-9A-Za-z]|-(?:rc|alpha|beta|snapshot|SNAPSHOT|M\d|pre|dev))"
        longer += "" if key.count(".") == 1 else r"(?!\.\d)"
        return re.compile(rf"(?<![0-9A-Za-z_.])[vV]?{k}{longer}", re.ASCII)
    if kind == "id" and HEX_HASH.fullmatch(key) and len(key) >= 7:
        return re.compile(rf"{_L}{k}", re.ASCII | re.IGNORECASE)
    return re.compile(rf"{_L}{k}{_R}", re.ASCII | (re.IGNORECASE if kind in _ANY_CASE else 0))


_ANY_CASE = frozenset({"name", "pod", "host", "ip", "id"})


@lru_cache(maxsize=8)  # many identifiers are looked for in one text
def _lowered(text: str) -> str:
    return text.lower()


def _whole_in(kind: Kind, key: str, folded: str) -> bool:
    """The pattern is tried where the key stands: over a large text, a search that looks behind first is slow."""
    ignores_case = kind in _ANY_CASE
    text, wanted = (_lowered(folded), key.lower()) if ignores_case else (folded, key)
    if len(text) != len(folded):
        return _finder(kind, key).search(folded) is not None
    at = text.find(wanted)
    if at < 0:
        return False
    pattern = _finder(kind, key)
    while at >= 0:
        if pattern.match(folded, at) or (kind == "version" and at > 0 and pattern.match(folded, at - 1)):
            return True
        at = text.find(wanted, at + 1)
    return False


_PORT = re.compile(r"^(.+):(\d{1,5})$")
_TOKEN_ENDS = re.compile(r"[^!-~]|[\s\"'`<>(){}\[\],;|=]")
_ORIGIN = re.compile(r"(?:[\w+.:-]*//)?[^/]*")
_SPAN_OF_NAMES = re.compile(r"([A-Za-z]+-?\d+)-([A-Za-z]+-?\d+)")


def stands_in(identifier: Identifier, folded: str) -> bool:
    """True if `identifier` stands in `folded` (a text that went through `fold`), whole.

    A service name stands in its pod's name, a short hash in the long one, a class in its dotted name, `4.12` in
    `4.12.0`; a host with a port, or a file with a line number, may stand there as two things of one line. What was cut
    out of a longer token stands there if the token does; a path also behind the scheme and host of a URL.
    """
    kind, key = identifier.kind, identifier.key
    if _whole_in(kind, key, folded):
        return True
    token = identifier.token
    if len(token) > len(identifier.text) and _whole_in("symbol", token, folded):
        return True
    if key.startswith("/"):
        return _path_in(key, folded)
    both = _SPAN_OF_NAMES.fullmatch(key) if kind == "name" else None
    if both:
        return all(_whole_in(kind, name, folded) for name in both.groups())
    if kind == "exception" and "." in key:
        simple = key.rsplit(".", 1)[1]
        return (
            simple in folded and re.search(rf"(?<![A-Za-z0-9_.$]){re.escape(simple)}{_R}", folded, re.ASCII) is not None
        )
    port = _PORT.match(key) if kind in {"host", "ip", "symbol"} and key.count(":") == 1 else None
    if port is None:
        return False
    number = re.compile(rf"(?<!\d){port[2]}(?!\d)")
    return any(
        _whole_in(kind, port[1], line) and number.search(line) for line in folded.splitlines() if port[2] in line
    )


def _path_in(path: str, folded: str) -> bool:
    """Whether `path` stands in `folded` as the whole path of a URL or an image, which a host comes before."""
    at = folded.find(path)
    while at >= 0:
        end = at + len(path)
        before = _ORIGIN.fullmatch(folded, _token_start(folded, at), at)
        if before and not re.match(r"[A-Za-z0-9_]", folded[end : end + 1], re.ASCII):
            return True
        at = folded.find(path, at + 1)
    return False


def _token_start(text: str, at: int) -> int:
    start = at
    while start > 0 and at - start < NAME_LIMIT and not _TOKEN_ENDS.match(text[start - 1]):
        start -= 1
    return start


def _token(text: str, start: int, end: int) -> str:
    limit = _TOKEN_ENDS.search(text, end)
    stop = min(len(text) if limit is None else limit.start(), end + NAME_LIMIT)
    return text[_token_start(text, start) : stop].rstrip(".:!?")
