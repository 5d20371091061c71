"""Identifiers in a text: error codes, exceptions, hosts, pods, IPs, ids, versions, names (VER-5).

A false identifier costs a verdict (`answer.identifier_absent` rejects), so shapes are narrow: an English compound
such as `read-only` or `long-running`, an acronym, a plain CamelCase word are none. Time stamps, dates, clock times,
ordinals and list markers are found here too, because neither they nor identifiers are ever numbers.
All offsets are offsets in `fold(text)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from handlers.marks import NO_AMOUNTS, TIMES, list_marks
from handlers.shapes import LEFT as _L
from handlers.shapes import RIGHT as _R
from handlers.shapes import fold

Kind = Literal["error_code", "exception", "host", "pod", "ip", "id", "version", "name", "symbol"]

NAME_LIKE: frozenset[Kind] = frozenset({"host", "pod", "name", "symbol"})
"""What the question may exempt (VER-5): names of what is asked about. An IP, an id, a version, a code never."""

NAMED_IN_PROSE: frozenset[Kind] = frozenset({"error_code", "exception", "host", "pod", "ip", "id", "version", "name"})
"""What `answer.identifier_absent` looks for. A `symbol` (path, variable, metric, class) is not in its row of gate.md:
advice may name a setting; EXE-5 and the guard of claims look at symbols too."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """One identifier. `key` is what must stand in the evidence (`v1.2.3` has key `1.2.3`)."""

    kind: Kind
    text: str
    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """A text read once: folded, its identifiers, and a copy of equal length where nothing is left but words and
    numbers (each masked character is U+FFFC)."""

    folded: str
    identifiers: tuple[Identifier, ...]
    masked: str


_TLD = (
    r"(?:com|net|org|io|dev|cloud|app|ai|cn|de|uk|eu|example|test|invalid|internal|intranet|local|localdomain|lan|corp"
    r"|home|svc|cluster|prod|staging)"
)
_FILE = r"(?:log|ya?ml|json|ndjson|java|py|go|rs|kt|sql|conf|cfg|properties|xml|sh|md|txt|ini|toml|gz|jar|so|csv)"

_ERROR_PREFIX_WORDS = "ORA PLS TNS SQL DB2 ERR ERROR RMAN DPY MSG JBAS HHH AADSTS SP2 PG MY"
_ERROR_PREFIX = frozenset(_ERROR_PREFIX_WORDS.split())
_NO_ID_PREFIX_WORDS = (
    "UTF SHA MD AES RSA ISO RFC IEEE HTTP HTTPS TLS SSL UTC GMT TOP SEV TIER LEVEL LAYER GPT COVID JDK JAVA TCP "
    "UDP IP CPU GPU BASE EC RAID CAT PEP ES USB"
)
_NO_ID_PREFIX = frozenset(_NO_ID_PREFIX_WORDS.split())
_ERRNO_WORDS = (
    "ECONNREFUSED ECONNRESET ECONNABORTED ETIMEDOUT EHOSTUNREACH ENETUNREACH EADDRINUSE EADDRNOTAVAIL EPIPE "
    "ENOENT EACCES EPERM ENOSPC EMFILE ENFILE EAGAIN EIO ENOMEM ENOTFOUND EINVAL EEXIST EBUSY EDEADLK ENOTCONN "
    "EROFS EBADF EDQUOT ESTALE EPROTO EINTR"
)
_ERRNO = frozenset(_ERRNO_WORDS.split())
_STATUS_WORD = re.compile(
    r"^ERR_|_ERR(?:OR)?$|_EXCEEDED$|_REFUSED$|_RESET$|_EXHAUSTED$|_DENIED$|_UNAVAILABLE$|_FAILED$|_ABORTED$"
)
_NAME_TAIL_WORDS = (
    "service svc pool db api gateway worker server cluster broker proxy queue topic cache database deployment"
)
_NAME_TAIL = frozenset(_NAME_TAIL_WORDS.split())
_GENERIC_HEAD_WORDS = (
    "self micro full in thread connection multi cross client web message rest per inter intra non pre post job "
    "task work database application app mail load reverse dead-letter out of on the a an end quality denial data "
    "shared same single dual sub super cloud event db sql http file name time remote local upstream downstream "
    "backend frontend object read write internal external public private open soap graph json third first second "
    "primary secondary standby"
)
_GENERIC_HEAD = frozenset(_GENERIC_HEAD_WORDS.split())
_NO_NAME_HEAD_WORDS = (
    "top utf sha aes rsa base tier layer level phase step type part sub pre post mid under over non near http "
    "https tls ssl covid gpt round attempt stage section chapter figure table line day week month year quarter "
    "priority sev severity java jdk python rfc iso utc gmt version sum all any up down at about around plus minus "
    "less more max min least most only page item case point rule latest newest oldest last option class category group of to from by and or "
    "in on one two three"
)
_NO_NAME_HEAD = frozenset(_NO_NAME_HEAD_WORDS.split())
_MACHINES = frozenset({"node", "host", "broker", "shard", "worker", "thread", "pod", "replica", "zone"})
_HEX_HASH = re.compile(r"(?=[0-9a-fA-F]*[a-fA-F])(?=[0-9a-fA-F]*\d)(?!\d+(?:[eE]\d+|[a-fA-F])$)[0-9a-fA-F]+")


def _whole(kind: Kind) -> Callable[[re.Match[str]], tuple[Kind, str]]:
    return lambda m: (kind, m.group())


def _inner(kind: Kind) -> Callable[[re.Match[str]], tuple[Kind, str]]:
    return lambda m: (kind, m.group(1))


def _lower(kind: Kind) -> Callable[[re.Match[str]], tuple[Kind, str]]:
    return lambda m: (kind, m.group().lower())


def _serial(m: re.Match[str]) -> tuple[Kind, str]:
    return ("error_code" if m.group()[1].isdigit() else "id"), m.group()


def _ip(m: re.Match[str]) -> tuple[Kind, str]:
    octets = m.group(1).split(".")
    return ("ip" if all(int(o) <= 255 for o in octets) else "version"), m.group()


def _ticket(m: re.Match[str]) -> tuple[Kind, str] | None:
    if m.group(1) in _NO_ID_PREFIX:
        return None
    return ("error_code" if m.group(1) in _ERROR_PREFIX else "id"), m.group()


def _snake(m: re.Match[str]) -> tuple[Kind, str]:
    word = m.group()
    return ("error_code" if word.isupper() and _STATUS_WORD.search(word) else "symbol"), word


def _kebab(m: re.Match[str]) -> tuple[Kind, str] | None:
    word = m.group()
    parts = word.lower().split("-")
    head = word.split("-", 1)[0]
    if len(word) > _NAME_LIMIT or len(head) < 2 or not head.isalpha() or parts[0] in _NO_NAME_HEAD:
        return None
    if any(c.isdigit() for c in word):
        inner_capital = head[0].islower() or any(c.isupper() for c in head[1:]) or parts[0] in _MACHINES
        return (("pod" if _POD.fullmatch(word) else "name"), word) if inner_capital else None
    if parts[-1] in _NAME_TAIL and not any(p in _GENERIC_HEAD for p in parts[:-1]):
        return "name", word
    return None


def _host(m: re.Match[str]) -> tuple[Kind, str] | None:
    name = m.group().lower()
    return None if name in {"asp.net", "node.app"} else ("host", name)


def _hash(m: re.Match[str]) -> tuple[Kind, str] | None:
    word = m.group()
    one_case = word in (word.lower(), word.upper())
    return ("id", word.lower()) if one_case and _HEX_HASH.fullmatch(word) else None


_NAME_LIMIT = 120
_POD = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?=[a-z]*\d)[a-z0-9]{6,10}-[a-z0-9]{3,5}")

_Reading = Callable[[re.Match[str]], tuple[Kind, str] | None]
_READINGS: tuple[tuple[str, _Reading], ...] = (
    (rf"{_L}[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}{_R}", _lower("id")),
    (rf"{_L}((?:\d{{1,3}}\.){{3}}\d{{1,3}})(?![\d]|\.\d)(?:/\d{{1,2}}|:\d{{1,5}})?{_R}", _ip),
    (
        r"(?<![\w:.])(?=[0-9a-fA-F:]*[0-9a-fA-F])(?=[0-9a-fA-F:]*::|(?:[0-9a-fA-F]{1,4}:){7})[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])",
        _whole("ip"),
    ),
    (
        (
            rf"{_L}(?:[A-Za-z_][A-Za-z0-9_$]{{0,60}}\.){{0,8}}[A-Z][A-Za-z0-9_$]{{0,80}}[a-z0-9](?:Exception|Error|Throwable){_R}"
            rf"|{_L}(?:[a-z_][a-z0-9_]{{0,60}}\.){{0,8}}(?:IO|OS|HTTP|SQL|URL|DNS|SSL|API|JSON|EOF|RPC|DB)(?:Exception|Error){_R}"
        ),
        _whole("exception"),
    ),
    (
        (
            rf"{_L}[vV]?(\d+(?:\.\d+){{2,}}(?:-(?:\d|rc|alpha|beta|snapshot|SNAPSHOT|M\d|pre|dev|hotfix|build)[0-9A-Za-z]*"
            rf"(?:\.[0-9A-Za-z]+)*|\+[0-9A-Za-z.]*[0-9A-Za-z])?){_R}"
        ),
        _inner("version"),
    ),
    (rf"{_L}[vV](\d+(?:\.\d+)+){_R}", _inner("version")),
    (
        (
            rf"(?:{_L}(?:version|ver\.?|release|[Jj]ava|JDK|Python|MySQL|PostgreSQL|Redis|Kafka|Kubernetes|upgraded? to|rolled back to)|版本号?|升级到|回滚到)\s*[:：]?\s*"
            rf"[vV]?(\d+(?:\.\d+)+){_R}"
        ),
        _inner("version"),
    ),
    (rf"{_L}SQLSTATE[\s:=\[(\"']*([0-9A-Z]{{5}}){_R}", _inner("error_code")),
    (
        rf"(?:{_L}(?:[Ee]rror[\s_-]?[Cc]ode|errno)|错误码|错误代码)\s*[:=：#]?\s*(-?\d{{3,6}}){_R}",
        _inner("error_code"),
    ),
    (rf"{_L}0x[0-9A-Fa-f]{{3,}}{_R}", _whole("error_code")),
    (rf"{_L}({'|'.join(sorted(_ERRNO))}){_R}", _whole("error_code")),
    (rf"{_L}([A-Z][A-Z0-9]{{1,9}})-\d{{1,7}}(?:-\d+)?{_R}(?!-[A-Za-z])", _ticket),
    (
        rf"{_L}(?!ISO|RFC|IEEE)(?:E\d{{4,6}}|[A-Z]{{2,6}}\d{{4,}}){_R}",
        _serial,
    ),
    (
        rf"{_L}(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?\.){{1,8}}{_TLD}(?::\d{{1,5}})?(?![A-Za-z0-9_-]|\.[A-Za-z0-9])",
        _host,
    ),
    (rf"(?<![A-Za-z0-9_-])(?:localhost|[a-z][a-z0-9]*(?:-[a-z0-9]+){{1,12}}):\d{{2,5}}{_R}", _whole("host")),
    (r"(?<![\w.:/])/[A-Za-z_](?:[\w.@%+-]*/)*[\w.@%+-]*[\w](?:/(?=\s|$))?", _whole("symbol")),
    (rf"(?<![\w./-])[\w-]{{1,80}}(?:[./][\w-]{{1,80}}){{0,12}}\.{_FILE}(?::\d+)?{_R}", _whole("symbol")),
    (rf"(?<![\w.])(?:[a-z_]\w*\.){{2,12}}[A-Z]\w*{_R}", _whole("symbol")),
    (rf"(?:(?:{_L}|_)(?:id|ID|Id)|编号|单号|工单号?)\s*[:=：]?\s*#?(\d{{3,}}){_R}", _inner("id")),
    (rf"{_L}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+{_R}", _snake),
    (rf"{_L}(?:node|host|web|srv|server|worker|broker|shard|app|db)\d{{1,4}}{_R}", _whole("host")),
    (r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+(?![A-Za-z0-9_])", _kebab),
    (rf"{_L}[0-9a-fA-F]{{7,64}}{_R}", _hash),
    (rf"(?<![\w&])#(\d{{3,}}){_R}", _inner("id")),
)
_SHAPES = tuple((re.compile(shape, re.ASCII), read) for shape, read in _READINGS)
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
        found.extend(
            Identifier(i.kind, i.text, i.key, i.start + m.start(1), i.end + m.start(1))
            for i in _identify(m.group(1), list(m.group(1)))
        )
        mask(m.start(), m.end())
    for pattern in TIMES:
        for m in pattern.finditer("".join(left)):
            mask(m.start(), m.end())
    found.extend(_identify("".join(left), left))
    for start, end in list_marks("".join(left)):
        mask(start, end)
    for pattern in NO_AMOUNTS:
        for m in pattern.finditer("".join(left)):
            mask(m.start(), m.end())
    return Scan(folded, tuple(sorted(found, key=lambda i: i.start)), "".join(left))


def _identify(text: str, left: list[str]) -> list[Identifier]:
    found: list[Identifier] = []
    for pattern, read in _SHAPES:
        for m in pattern.finditer(text):
            reading = read(m)
            if reading is not None:
                found.append(Identifier(reading[0], m.group(), reading[1], m.start(), m.end()))
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
        return re.compile(rf"(?<![A-Za-z0-9_-]){k}{_R}", re.ASCII)
    if kind == "host":
        return re.compile(rf"(?<![A-Za-z0-9_.-]){k}(?![A-Za-z0-9_-]|\.[A-Za-z0-9])", re.ASCII | re.IGNORECASE)
    if kind == "ip":
        return re.compile(rf"(?<![0-9A-Fa-f.:]){k}(?![0-9A-Fa-f]|\.\d|:[0-9A-Fa-f]*:)", re.ASCII | re.IGNORECASE)
    if kind == "version":
        longer = r"(?![0-9A-Za-z]|-(?:rc|alpha|beta|snapshot|SNAPSHOT|M\d|pre|dev))"
        longer += "" if key.count(".") == 1 else r"(?!\.\d)"
        return re.compile(rf"(?<![0-9A-Za-z_.])[vV]?{k}{longer}", re.ASCII)
    if kind == "id" and _HEX_HASH.fullmatch(key) and len(key) >= 7:
        return re.compile(rf"{_L}{k}", re.ASCII | re.IGNORECASE)
    return re.compile(
        rf"(?<![A-Za-z0-9_]){k}{_R}",
        re.ASCII | (re.IGNORECASE if kind == "id" and "-" in key and len(key) == 36 else 0),
    )


def _whole_in(kind: Kind, key: str, folded: str) -> bool:
    """The pattern is tried where the key stands: over a large text, a search that looks behind first is slow."""
    pattern = _finder(kind, key)
    if pattern.flags & re.IGNORECASE:
        text, wanted = folded.lower(), key.lower()
        if len(text) != len(folded):
            return pattern.search(folded) is not None
    else:
        text, wanted = folded, key
    at = text.find(wanted)
    while at >= 0:
        if pattern.match(folded, at) or (kind == "version" and at > 0 and pattern.match(folded, at - 1)):
            return True
        at = text.find(wanted, at + 1)
    return False


_PORT = re.compile(r"^(.+):(\d{1,5})$")


def stands_in(identifier: Identifier, folded: str) -> bool:
    """True if `identifier` stands in `folded` (a text that went through `fold`), whole.

    A service name stands in its pod's name, a short hash in the long one, a class in its dotted name, `4.12` in
    `4.12.0`; a host with a port may stand there as host and port of one line.
    """
    kind, key = identifier.kind, identifier.key
    if _whole_in(kind, key, folded):
        return True
    if kind == "exception" and "." in key:
        simple = key.rsplit(".", 1)[1]
        return (
            simple in folded and re.search(rf"(?<![A-Za-z0-9_.$]){re.escape(simple)}{_R}", folded, re.ASCII) is not None
        )
    port = _PORT.match(key) if kind in {"host", "ip"} and key.count(":") == 1 else None
    if port is None:
        return False
    number = re.compile(rf"(?<!\d){port[2]}(?!\d)")
    return any(
        _whole_in(kind, port[1], line) and number.search(line) for line in folded.splitlines() if port[2] in line
    )
