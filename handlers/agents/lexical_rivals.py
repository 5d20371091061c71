"""Words that exclude each other: a level, a kind of probe, a resource, a signal, a reason. A claim that says one where
its lines only say another is about another thing; and `all` or a denial reaches further than a record does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handlers.anchors import fold, negated
from handlers.question import vocabulary

_LEVELS = {
    "debug": ("debug", "trace", "调试"),
    "info": ("info", "information", "informational", "notice", "normal", "信息"),
    "warning": ("warn", "warning", "警告"),
    "error": ("err", "error", "severe", "错误"),
    "critical": ("crit", "critical", "fatal", "alert", "emerg", "emergency", "panic", "致命", "严重"),
}
_LEVEL_OF = {word: level for level, words in _LEVELS.items() for word in words}
_WORDS = "|".join(sorted(_LEVEL_OF, key=len, reverse=True))
_CLAIMED_LEVEL = re.compile(
    rf"(?<![A-Za-z])(?:level|severity|logged\s+(?:\w+\s+)?as(?:\s+an?)?)\s*[:=]?\s*[\"'(]?({_WORDS})(?![A-Za-z])"
    rf"|(?<![A-Za-z])({_WORDS})[ -](?:level|severity)(?![A-Za-z])|({_WORDS})\s?级别?|级别为?\s?({_WORDS})",
    re.IGNORECASE,
)
_LINE_LEVEL = re.compile(
    rf"(?i:(?:level|severity|lvl)[\"']?\s*[:=]\s*[\"']?({_WORDS})(?![A-Za-z]))|(?i:[\[(|<]\s*({_WORDS})\s*[\])|>/])"
    r"|(?<![A-Za-z])(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|CRITICAL|FATAL|ALERT|PANIC)(?![A-Za-z])"
    r"|(?:(?<=\s)|^)(Normal|Warning)\s{2,}",
)
_RIVALS = (
    ("liveness 存活", "readiness", "startup"),
    ("memory mem oom oomkilled heap rss ram 内存", "cpu", "disk storage filesystem volume space inode 磁盘 硬盘"),
    ("sigterm", "sigkill", "sigsegv", "sigabrt", "sigint", "sighup", "sigbus"),
    ("primary master 主库 主节点", "replica slave secondary standby 从库 从节点 副本"),
    ("leader", "follower"),
    ("heap", "metaspace", "permgen"),
    ("producer 生产者", "consumer 消费者"),
    ("inbound", "outbound"),
    ("ingress", "egress"),
    ("upload 上传", "download 下载"),
    ("tcp", "udp"),
    ("ipv4", "ipv6"),
    ("collscan", "ixscan"),
)
_STEMS = tuple(tuple(vocabulary([words]) for words in group) for group in _RIVALS)
_REASON = re.compile(r"(?<![A-Za-z0-9_.])[A-Z][a-z]+(?:[A-Z]+[a-z]+)+(?![A-Za-z0-9_])")
_VALUE = re.compile(
    r"(?<![A-Za-z])(?:flags?|reason|status|state|signal|plan|phase|mode)\s+(?:(?:is|was|of)\s+)?[\"'(]?([A-Z][A-Za-z]+)(?![A-Za-z0-9_-])"
)
_PHASE = re.compile(
    r"(?<![A-Za-z])(?:is|are|was|were|in)\s+(?:still\s+)?[\"'(]?(Running|Pending|Succeeded|Completed|Terminating|Evicted|Unknown)(?![A-Za-z])"
)
_PRODUCTS = frozenset(
    "github gitlab javascript typescript powershell opentelemetry cloudwatch elasticsearch cloudflare openshift".split()  # noqa: SIM905
)
_ALL = re.compile(
    r"(?<![A-Za-z-])(?<!at )(?<!of )(?<!above )(?:all|every)\s+(?!of a sudden|the time|at once|other)(?=[a-z])(?!(?:two|three|four|five|six|seven|eight|nine|ten)\b)"
    r"|(?:所有|全部)(?!\s?\d)",
    re.IGNORECASE,
)
_SAYS_ALL = re.compile(
    r"(?<![A-Za-z])(?:all|every|each)(?![A-Za-z])|所有|全部|每|都|均|[:=]\s?0(?![\d.])|100(?:\.0+)?\s?%", re.IGNORECASE
)
_RATIO = re.compile(r"(?<![\d/])(\d+)/(\d+)(?![\d/])")
_VALUES = re.compile(r"[=:]\s?(\d[\d.]*)")
MANY = 6
"""So many verified lines can bear out what is said of all."""
_FAILS = re.compile(
    r"fail|refus|reject|den(?:y|ied)|forbid|unable|false|disabled?|\boff\b|null|\bnil\b|empty|missing|lack|insufficient|(?<![a-z])un[a-z]{4,}"
    r"|(?<![a-z])(?:in(?:valid|active|complete|accessible)|dis(?:abled|allowed|connected))|lost|abort|time[ds]?[ -]?out|exceed|mismatch|expired|stopped"
    r"|exited|terminated|crash|kill|down|[=:]\s?[\"']?-[\"']?(?:[\s,}]|$)|(?<![\d.:,/-])0(?![\d.:,-])|[=:]\s?0(?![\d.:,-])|失败|拒绝|超时",
    re.IGNORECASE,
)
_SAID_SO = re.compile(
    r"not only|no longer|no[nt]-|without|无法|不能|不可|不足|不够|不存在|未就绪|未找到|不断|cannot|could not|couldn['’]t|can['’]t|unable|not\s+(?:ready|available"
    r"|found|enough|match|exist|reachable|able|allowed|permitted|authori[sz]ed|respond\w*)",
    re.IGNORECASE,
)


def excluded(claim: str, lines: Sequence[str], question: str = "") -> str | None:
    """What of the claim its lines say another word of the same kind for, or None."""
    said, given = fold(claim), fold("\n".join(lines))
    return _other_level(said, given) or _rival(said, given) or _strange_value(said, given, fold(question))


def overreaching(claim: str, lines: Sequence[str]) -> str | None:
    """What of the claim reaches further than its lines: `all` of one record, a denial where no record denies, or None."""
    said, given = fold(claim), fold("\n".join(lines))
    if _ALL.search(said) and len(lines) < MANY and not _bears_all(given):
        return "the lines do not say it of all"
    if negated(_SAID_SO.sub(" ", said)) and not negated(given) and not _FAILS.search(given):
        return "the claim denies something and no line does"
    return None


def _bears_all(given: str) -> bool:
    values = _VALUES.findall(given)
    whole = any(b != "1" and a in {b, "0"} for a, b in _RATIO.findall(given))
    return whole or len(set(values)) < len(values) or _SAYS_ALL.search(given) is not None


def _other_level(said: str, given: str) -> str | None:
    claimed = {_level(m) for m in _CLAIMED_LEVEL.finditer(said)}
    written = {_level(m) for m in _LINE_LEVEL.finditer(given)}
    if claimed and written and not claimed & written:
        return f"the lines are of level {', '.join(sorted(written))}, not {', '.join(sorted(claimed))}"
    return None


def _level(m: re.Match[str]) -> str:
    return _LEVEL_OF[next(group for group in m.groups() if group).lower()]


def _rival(said: str, given: str) -> str | None:
    mine, theirs = vocabulary([said]), vocabulary([given])
    for group, words in zip(_STEMS, _RIVALS, strict=True):
        ours = {i for i, stems in enumerate(group) if stems & mine}
        its = {i for i, stems in enumerate(group) if stems & theirs}
        if ours and its and not ours & its:
            return f"the lines speak of {words[min(its)].split()[0]}, not of {words[min(ours)].split()[0]}"
    return None


def _strange_value(said: str, given: str, question: str) -> str | None:
    there = re.sub(r"[\s_-]", "", f"{given}\n{question}").lower()
    for word in [*_REASON.findall(said), *_VALUE.findall(said), *_PHASE.findall(said)]:
        if word.lower() not in there and word.lower() not in _PRODUCTS:
            return f"the lines do not say {word}"
    return None
