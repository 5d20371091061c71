"""Values under a key, and whether a claim gives another one: `retry=2` against "three retries", `leaked ... max=0`
against "leaked 20 connections". Contradicted is only what the same key of the same record denies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from handlers.anchors import Quantity, denied_spans, fold, identifiers, quantities, readings_of_line, same, stands_in
from handlers.question import vocabulary
from handlers.wording import states_failed_access

_UNITS = frozenset(
    [
        "ms",
        "millis",
        "milliseconds",
        "us",
        "micros",
        "ns",
        "s",
        "sec",
        "secs",
        "seconds",
        "minutes",
        "hours",
        "bytes",
        "kb",
        "mb",
        "mib",
        "percent",
        "pct",
        "ratio",
        "total",
        "count",
        "num",
        "number",
        "value",
        "current",
        "p50",
        "p90",
        "p95",
        "p99",
        "sum",
        "avg",
        "max",
        "min",
        "last",
        "first",
        "size",
    ]
)
# A colon makes a pair behind a quoted key or before a space: `ledger-db:5432` and `T12:00` are none.
_PAIR = re.compile(
    r"[\"']?([A-Za-z_][\w.-]*(?: [A-Za-z]+)?)(?:[\"']\s*:|\s*:(?=\s)|[\"']?\s*=)\s*[\"']?(true|false|[-+]?\d[\w.%,]*)",
    re.IGNORECASE,
)
_NO_MEASURE = frozenset("port id pid uid code line version term epoch seq offset attempt revision generation".split())  # noqa: SIM905
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:.]*)(?:\{.*\})?\s+([-+]?\d\S*)(?:\s+\d{10,})?$")
_SERIES = re.compile(r"^([A-Za-z_:][\w:.]*)(?:\{.*?\})?\s+(?=(?:last|value|first)=)")
_STATED = re.compile(r"\b(?:last|min|max|avg|first|value)=(\S+)")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*|[\u4e00-\u9fff]+")
_SIGN = re.compile(
    r"(?<![A-Za-z])(?:no|not|none|never|without|cannot|lacks?|neither|nor|zero)(?![A-Za-z])|n['’]t(?![A-Za-z])|没有?|未|无|不",
    re.IGNORECASE,
)
_FAILED = re.compile(r"Failed[A-Z]|(?<![A-Za-z])[Ee]rror(?![A-Za-z])")
_COLON = re.compile(r":\s|：")
_SAYS_VALUE = re.compile(
    r"(?<![A-Za-z])(?:true|false|off|disabled|enabled is|zero)(?![A-Za-z])|为假|为真|为零", re.IGNORECASE
)
NEAR = 4  # words to either side of a number that say what is counted
REACH = 3  # words behind a negation that it denies
# Chinese words of operations and the English stems that records use for them.
_ABOUT = re.compile(
    r"(?<![A-Za-z])(?:about|around|roughly|approximately|approx\.?|nearly|almost|some)\s+$|[~≈约近]\s*$", re.IGNORECASE
)
_OR = re.compile(r"(?<![A-Za-z])or(?![A-Za-z])|或者?", re.IGNORECASE)
GLOSSARY: dict[str, tuple[str, ...]] = {
    "泄漏": ("leak",), "泄露": ("leak",), "超时": ("timeout", "time", "deadlin"), "连接": ("connect", "connection"),
    "错误": ("error",), "失败": ("fail", "failur"), "重启": ("restart",), "重试": ("retri", "retry"), "活跃": ("activ",),
    "等待": ("wait", "pend"), "排队": ("queu", "pend"), "空闲": ("idl",), "内存": ("memori", "memory", "oom"), "耗尽": ("exhaust",),
    "拒绝": ("refus", "reject", "deni"), "异常": ("exception", "error"), "延迟": ("latenc", "delay", "latency"), "慢": ("slow",),
    "运行": ("run",), "健康": ("health", "healthi", "healthy"), "就绪": ("ready",), "分区": ("partition",), "数据库": ("databas", "db"),
    "回滚": ("rollback", "roll"), "阈值": ("threshold",), "可用": ("availabl",), "限制": ("limit",), "上限": ("limit", "max"),
    "死锁": ("deadlock",), "证书": ("certif", "certificat"), "过期": ("expir",), "节点": ("nod",), "端口": ("port",), "事务": ("transact", "transaction"),
    "告警": ("alert", "alarm", "warn"), "镜像": ("imag", "manifest"), "探针": ("prob",), "副本": ("replica",), "心跳": ("heartbeat",), "发布": ("releas", "deploy"), "请求": ("request",), "磁盘": ("disk",), "未定义": ("undefin",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stated:
    """What a record states under a key: the key's telling word (a stem) and all its words, its numbers, or a truth value."""

    tail: frozenset[str]
    key: frozenset[str]
    numbers: tuple[Quantity, ...]
    truth: bool | None
    record: str


def stated(line: str) -> Iterator[Stated]:
    """The keys of a record with their values: one for a rendered series, else one for each pair."""
    series = _SERIES.match(line)
    if series is not None:
        numbers = tuple(q for value in _STATED.findall(line) for q in readings_of_line(f"{series[1]}={value}"))
        yield Stated(_tail(series[1]), _key(series[1]), numbers, None, line)
        return
    sample = _SAMPLE.match(line.strip())
    if sample is not None:
        numbers = tuple(readings_of_line(f"{sample[1]}={sample[2]}"))
        yield Stated(_tail(sample[1]), _key(sample[1]), numbers, None, line)
        return
    for key, value in _PAIR.findall(line):
        truth = {"true": True, "false": False}.get(value.lower())
        numbers = () if truth is not None else readings_of_line(f"{key.replace(' ', '_')}={value}")
        yield Stated(_tail(key), _key(key), tuple(numbers), truth, line)


def _tail(key: str) -> frozenset[str]:
    pieces = [piece.lower() for piece in _PIECE.findall(key)]
    telling = [piece for piece in pieces if piece not in _UNITS and not piece.isdigit()]
    return vocabulary(telling[-1:])


def _key(key: str) -> frozenset[str]:
    return vocabulary([key])


def conflict(claim: str, lines: Sequence[str], absent: Sequence[Quantity]) -> str | None:
    """Why a record of `lines` contradicts the claim, or None. `absent` are the claim's numbers that no line has."""
    found = [entry for line in lines for entry in stated(line) if entry.tail and _is_about(claim, line, lines)]
    for quantity in absent:
        near = _around(claim, quantity)
        for entry in found:
            if entry.numbers and entry.tail & near and _denies(entry, quantity) and not _rounds(claim, quantity, entry):
                given = ", ".join(dict.fromkeys(q.text for q in entry.numbers))
                return f'"{quantity.text}" where the record gives {given}: {entry.record[:160]}'
    if quantities(claim) or _SAYS_VALUE.search(fold(claim)):
        return None
    denied, affirmed = _signs(claim)
    signed = [entry for entry in found if not entry.tail & _NO_MEASURE and not entry.tail & denied & affirmed]
    return _opposed(signed, denied, _off) or _opposed(signed, affirmed, _on)


def _rounds(claim: str, quantity: Quantity, entry: Stated) -> bool:
    """Whether the claim's number is an entry's, rounded as it is written: `about 48k` of 48211, `2.14 s` of 2141 ms. That
    is no evidence of the number, and no contradiction."""
    if not quantity.digits or not quantity.value:
        return False
    said = fold(claim)
    hedged = _ABOUT.search(said[max(0, quantity.start - 16) : quantity.start]) or said[
        quantity.end :
    ].lstrip().startswith("左右")
    exponent = quantity.digits.as_tuple().exponent
    if not isinstance(exponent, int) or not (hedged or (exponent < 0 and len(quantity.digits.as_tuple().digits) > 2)):
        return False
    half = abs(quantity.value / quantity.digits) * Decimal(10) ** exponent / 2
    return any(number.unit == quantity.unit and abs(number.value - quantity.value) <= half for number in entry.numbers)


def _signs(claim: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words that the claim denies, `REACH` at most behind each negation, and all others."""
    said = fold(claim)
    kept, denied, at = [], [], 0
    for sign in _SIGN.finditer(said):
        if sign.start() < at:
            continue
        reach = list(_WORD.finditer(said, sign.end()))[:REACH]
        end = reach[-1].end() if reach else sign.end()
        kept.append(said[at : sign.start()])
        denied.append(said[sign.end() : end])
        at = end
    return stems(" ".join(denied)), stems(" ".join([*kept, said[at:]]))


def _opposed(entries: Sequence[Stated], words: frozenset[str], agrees: Callable[[Stated], bool]) -> str | None:
    """Of the entries whose key the words name best, one that says the opposite, if none of them agrees."""
    named = [entry for entry in entries if entry.tail & words and (_off(entry) or _on(entry))]
    most = max((len(entry.key & words) for entry in named), default=0)
    best = [entry for entry in named if len(entry.key & words) == most]
    if not best or any(agrees(entry) for entry in best):
        return None
    return f"the record says the opposite: {best[0].record[:160]}"


def _off(entry: Stated) -> bool:
    return entry.truth is False or (bool(entry.numbers) and not any(q.value for q in entry.numbers))


def _on(entry: Stated) -> bool:
    return entry.truth is True or (bool(entry.numbers) and all(q.value > 0 for q in entry.numbers))


def _is_about(claim: str, line: str, lines: Sequence[str]) -> bool:
    """Not about another thing: if some line has names of the claim, so must this one."""
    folded = fold(line)
    names = [name for name in identifiers(claim) if any(stands_in(name, fold(other)) for other in lines)]
    return not names or any(stands_in(name, folded) for name in names)


def _denies(entry: Stated, quantity: Quantity) -> bool:
    alike = [q for q in entry.numbers if q.unit == quantity.unit]
    if not alike or any(same(q, quantity) for q in alike):
        return False
    values = [q.value for q in alike]
    return len(alike) == 1 or not min(values) <= quantity.value <= max(values)


def _around(claim: str, quantity: Quantity) -> frozenset[str]:
    said = fold(claim)
    before = [hit[0] for hit in _WORD.finditer(said[: quantity.start])][-NEAR:]
    after = [hit[0] for hit in _WORD.finditer(said[quantity.end :])][:NEAR]
    return stems(" ".join([*before, *after, said[quantity.start : quantity.end]]))


def stems(text: str) -> frozenset[str]:
    return vocabulary([text]) | {stem for word, stems in GLOSSARY.items() if word in text for stem in stems}


def flipped(claim: str, lines: Sequence[str]) -> str | None:
    """The clause of a line that says the claim's own words with the other sign, or None."""
    for text, others in ((claim, lines), *((line, [claim]) for line in lines)):
        folded = fold(text)
        for span in denied_spans(text):
            start, end = span if text == claim else _behind_or(folded, *_between_colons(folded, *span))
            words = _content(folded[start:end])
            told = _content(" ".join(_reach(folded, start, end)))
            if len(words) < 2:
                continue
            for other in others:
                if _agrees(words, other):
                    continue
                plain = fold(other)
                spans = [_behind_or(plain, *one) if text == claim else one for one in denied_spans(other)]
                kept = "".join(char for at, char in enumerate(plain) if not any(a <= at < b for a, b in spans))
                there = vocabulary([kept])
                same_words = len(words & there) >= 0.8 * len(words) and told <= there
                if same_words and not words & vocabulary([plain[a:b] for a, b in spans]):
                    return (folded[start:end] if text != claim else kept).strip()[:160]
    return None


def _behind_or(text: str, start: int, end: int) -> tuple[int, int]:
    """Of a record's denied part what stands behind the `or` before its first negation: `has expired or is not yet valid`
    does not deny the first."""
    sign = _SIGN.search(text, start, end)
    ors = list(_OR.finditer(text, start, sign.start())) if sign else []
    return (ors[-1].end(), end) if ors else (start, end)


def _between_colons(text: str, start: int, end: int) -> tuple[int, int]:
    """Of a record's denied part what stands between the colons around its first negation: `403: user cannot list`."""
    sign = _SIGN.search(text, start, end)
    if sign is None:
        return start, end
    ends = [m.end() for m in _COLON.finditer(text, start, end)]
    return max([e for e in ends if e <= sign.start()], default=start), min(
        [e for e in ends if e > sign.start()], default=end
    )


def _reach(text: str, start: int, end: int) -> list[str]:
    """What each negation between `start` and `end` denies."""
    return [
        hit[0]
        for sign in _SIGN.finditer(text, start, end)
        for hit in list(_WORD.finditer(text, sign.end(), end))[:REACH]
    ]


def _agrees(words: frozenset[str], line: str) -> bool:
    """Whether a line denies the same in another way: by a zero or a false under a key that the words name, or by a
    failure (`could not be pulled`, `failed to pull`)."""
    return (
        states_failed_access(line)
        or _FAILED.search(line) is not None
        or any(_off(entry) for entry in stated(line) if entry.tail & words)
    )


_SIGNS = frozenset("no not none never without cannot zero nothing neither nor absent lack".split())  # noqa: SIM905


def _content(text: str) -> frozenset[str]:
    from handlers.question import content_words

    return frozenset(word.stem for word in content_words(text) if word.stem not in _SIGNS)
