"""The shapes of identifiers (VER-5), as patterns over folded text and what each reading makes of a hit.

A false identifier costs a verdict (`answer.identifier_absent` rejects), so shapes are narrow: an English compound
such as `read-only` or `long-running`, an acronym, a plain CamelCase word are none. The order counts: what is found
first is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from handlers.shapes import LEFT as _L
from handlers.shapes import RIGHT as _R

Kind = Literal["error_code", "exception", "host", "pod", "ip", "id", "version", "name", "symbol"]

NAME_LIKE: frozenset[Kind] = frozenset({"host", "pod", "name", "symbol"})
"""What the question may exempt (VER-5): names of what is asked about. An IP, an id, a version, a code never."""

NAMED_IN_PROSE: frozenset[Kind] = frozenset({"error_code", "exception", "host", "pod", "ip", "id", "version", "name"})
"""What `answer.identifier_absent` looks for. A `symbol` (path, variable, metric, class) is not in its row of gate.md:
advice may name a setting; EXE-5 and the guard of claims look at symbols too."""

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
    r"^(?:ERR|UNKNOWN|INVALID|NO_SUCH|TOO_MANY|CANNOT)_|_(?:ERR(?:OR)?|EXCEEDED|REFUSED|RESET|EXHAUSTED|DENIED|UNAVAILABLE|FAILED"
    r"|ABORTED|DECLINED|EXPIRED|REJECTED|FORBIDDEN|UNAUTHORIZED|NOT_FOUND|TIMED_OUT|CANCELL?ED|VIOLATION|MISMATCH)$"
)
_NAME_TAIL_WORDS = (
    "service svc pool db api gateway worker server cluster broker proxy queue topic cache database deployment frontend "
    "backend consumer producer processor master replica primary standby apiserver scheduler controller operator exporter "
    "ingress headless"
)
_NAME_TAIL = frozenset(_NAME_TAIL_WORDS.split())
_GENERIC_HEAD_WORDS = (
    "self micro full in thread connection multi cross client web message rest per inter intra non pre post job "
    "task work database application app mail load reverse dead-letter out of on the a an end quality denial data "
    "shared same single dual sub super cloud event db sql http file name time remote local upstream downstream "
    "backend frontend object read write internal external public private open soap graph json third first second "
    "primary secondary standby batch background stream log logs metric metrics rate circuit async sync cron queue kafka "
    "main old new current former hot warm cold"
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
_NUMBERED_HOSTS = (
    "node host web srv server worker broker shard app db mysql redis kafka mongo etcd cache rack gpu vm lb gw proxy osd esxi "
    "rabbit rabbitmq nginx consul pg postgres cn"
)
_INTERFACE = r"(?:eth|ens|eno|bond|wlan|nvme|xvd[a-z]|vd[a-z]|sd[a-z])\d{1,3}"
_SERIAL_TAIL = re.compile(r"\d{3,}|(?=(?:[a-z]*\d){3})[0-9a-z]{4,}", re.IGNORECASE)
HEX_HASH = re.compile(r"(?=[0-9a-fA-F]*[a-fA-F])(?=[0-9a-fA-F]*\d)(?!\d+(?:[eE]\d+|[a-fA-F])$)[0-9a-fA-F]+")


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
    if word.isupper() and _STATUS_WORD.search(word):
        return "error_code", word
    head, _, tail = word.rpartition("_")
    serial = _SERIAL_TAIL.fullmatch(tail) and head.upper() not in _NO_ID_PREFIX
    return ("id" if serial else "symbol"), word


def _kebab(m: re.Match[str]) -> tuple[Kind, str] | None:
    word = m.group()
    parts = word.lower().split("-")
    head = word.split("-", 1)[0]
    if len(word) > NAME_LIMIT or len(head) < 2 or not head.isalpha():
        return None
    if parts[0] in _NO_NAME_HEAD:
        thread = parts[0] in {"http", "https"} and len(parts) > 3 and parts[-1].isdigit()
        return ("name", word) if thread else None
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
    return ("id", word.lower()) if one_case and HEX_HASH.fullmatch(word) else None


_COUNTED = r"ms|us|ns|s|sec|secs|seconds?|minutes?|times?|requests?|errors?|lines?|events?|of|per|in|out"
NAME_LIMIT = 120
_POD = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?=[a-z]*\d)[a-z0-9]{6,10}-[a-z0-9]{3,5}")

_Reading = Callable[[re.Match[str]], tuple[Kind, str] | None]
_READINGS: tuple[tuple[str, _Reading], ...] = (
    (rf"{_L}[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}{_R}", _lower("id")),
    (rf"{_L}((?:\d{{1,3}}\.){{3}}\d{{1,3}})(?![\d]|\.\d)(?:/\d{{1,2}}(?![\d.])|:\d{{1,5}})?{_R}", _ip),
    (rf"{_L}(?:[0-9a-fA-F]{{2}}:){{5}}[0-9a-fA-F]{{2}}(?![\w:])", _lower("id")),
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
    (
        rf"(?:{_L}(?:[Ee]rror[\s_-]?[Cc]ode|[Ee]rror|ERROR|errno)|错误码|错误代码|错误)\s*[:=：]?\s*([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+){_R}",
        _inner("error_code"),
    ),
    (rf"{_L}(?:error|Error|ERROR)\s+(\d{{3,6}}){_R}(?![.,]\d|\s?%|\s*(?:{_COUNTED}){_R})", _inner("error_code")),
    (rf"{_L}SQLCODE[\s:=]*(-?\d{{1,5}}){_R}", _inner("error_code")),
    (rf"{_L}(?:HY\d{{3}}|XX\d{{3}}|HV\d{{3}}|P0\d{{3}}|\d{{2}}P\d{{2}}){_R}", _whole("error_code")),
    # Accounts and resources: `system:serviceaccount:payments:ledger-sa`, `arn:aws:iam::123456789012:role/ledger`.
    (
        rf"{_L}system:(?:serviceaccounts?|nodes?|kube-[a-z-]{{1,40}}|masters|anonymous|(?:un)?authenticated)(?::[A-Za-z0-9](?:[\w.-]{{0,80}}[A-Za-z0-9])?){{0,3}}{_R}",
        _whole("name"),
    ),
    (rf"{_L}arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d*:[\w+=,.@/*-]{{0,200}}[\w*]", _whole("name")),
    (r"\(\*[A-Za-z_]\w*\)\.[A-Za-z_]\w*", _whole("symbol")),  # a method of Go: (*Pool).Get
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
    (rf"(?<![\w./-])[\w-]{{1,80}}(?:[./][\w-]{{1,80}}){{0,12}}\.{_FILE}(?::\d+)?{_R}", _whole("symbol")),
    (
        (
            rf"(?<![A-Za-z0-9_.-])(?:localhost|[a-z][a-z0-9]*(?:-[a-z0-9]+){{1,12}}(?:\.[a-z0-9]+(?:-[a-z0-9]+){{0,12}}){{0,6}}"
            rf"):\d{{2,5}}{_R}"
        ),
        _whole("host"),
    ),
    (r"(?<![\w.:/])/[A-Za-z_](?:[\w.@%+-]*/)*[\w.@%+-]*[\w](?:/(?=\s|$))?", _whole("symbol")),
    (rf"(?<![\w.])(?:[a-z_]\w*\.){{2,12}}[A-Z]\w*{_R}", _whole("symbol")),
    (rf"(?:(?:{_L}|_)(?:id|ID|Id)|编号|单号|工单号?)\s*[:=：]?\s*#?(\d{{3,}}){_R}", _inner("id")),
    (rf"{_L}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+{_R}", _snake),
    (
        rf"{_L}(?:(?:{'|'.join(_NUMBERED_HOSTS.split())})\d{{1,4}}|[a-z]{{2,20}}0\d{{1,3}}|[A-Z]{{2,20}}0\d{{1,3}}){_R}(?!-)",
        _host,
    ),
    (rf"{_L}{_INTERFACE}{_R}", _whole("name")),
    (r"(?<![\w-])[A-Z]\d{1,3}(?:-[A-Z]{1,3}\d{0,3}(?::[A-Z]\d{1,3})?){2,6}(?![\w-])", _whole("name")),
    (r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+(?![A-Za-z0-9_])", _kebab),
    (rf"{_L}[0-9a-fA-F]{{7,64}}{_R}", _hash),
    (
        rf"{_L}(?=[0-9A-Z]*\d[0-9A-Z]*\d)(?=[0-9A-Z]*[A-Z][0-9A-Z]*[A-Z])(?!\d+[A-Z]{{1,3}}{_R}|\d{{8}}T\d)[0-9A-Z]{{10,40}}{_R}",
        _whole("id"),
    ),
    (rf"(?<![\w&])#(\d{{3,}}){_R}", _inner("id")),
)
SHAPES = tuple((re.compile(shape, re.ASCII), read) for shape, read in _READINGS)
