"""What a text denies: negations, counts of zero, and the parts of a sentence that they reach, Chinese or English."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from handlers.identifiers import Identifier, Scan, scan

Span = tuple[int, int]

_NEGATION = re.compile(
    r"(?<![A-Za-z])(?:no|not|none|never|neither|nor|nothing|without|cannot|lacks?|absent|zero)(?![A-Za-z])|n['’]t(?![A-Za-z])"
    r"|(?<![A-Za-z0-9.])0\s+(?:hits?|errors?|match(?:es)?|results?|lines?|records?|entries|occurrences?|events?)(?![A-Za-z])"
    r"|(?<![A-Za-z])(?:hits?|matches|results?|records?|entries|occurrences|count|total)(?:\s?[=:]\s?|\s+(?:is|are|was|were|of|=)\s+)0(?![\d.])"
    r"|(?<![A-Za-z])(?:results?|search|query)\s+(?:is|are|was|were|came\s+back|comes\s+back|returned|returns)\s+empty(?![A-Za-z])"
    r"|没|未(?![来必])|无(?![论须])|(?<![\d.])[0零]\s?(?:[次条个行项]|命中|匹配|结果|记录)|不(?![过同仅但断久止管论妨])"
    r"|(?:结果|命中|匹配|记录|条数|次数|数量|个数|总数)数?\s?(?:均|都|皆)?(?:为|是|等于|[=:：])\s?(?:[0零空](?![\d.])|0)(?![\d.])",
    re.IGNORECASE,
)
_CONTRAST = r"(?<![A-Za-z])(?:but|however|although|though|whereas|while|yet)(?![A-Za-z])|但是?|却|然而|不过|而是|反而"
_FRAGMENT_END = re.compile(rf"(?P<comma>[,，](?!\d{{3}}(?!\d)))|[;；。!！?？\n]|\.(?=\s|$)|{_CONTRAST}", re.IGNORECASE)
_BARE_WORDS = (
    "a all and any anything are at back be been came comes count did do does empty entries entry error errors event events "
    "ever found gave give gives had has have hit hits in is it line lines log logs match matches no none not nothing number "
    "occur occurrence occurrences of queries query record records result results return returned returns search searches "
    "show showed shown shows that the there this to total was were whatsoever which whole with yield yielded yields zero"
)
_BARE = re.compile(
    rf"(?:(?:{_BARE_WORDS.replace(' ', '|')})(?![A-Za-z])|[0=:'’\s\"()]"
    r"|(?:(?:last|past|previous|over|within|during|for)\s+)?(?:the\s+)?(?:last\s+)?\d+\s?(?:s|m|h|min(?:ute)?s?|hours?|days?|seconds?|分钟|小时|天|秒)(?![A-Za-z])"
    r"|最近|过去|之前|以?内"
    r"|命中|匹配|没有|任何|发现|找到|查到|查出|检索到|搜到|搜索到|出现|记录|日志|返回|总共|总计|合计|相关|全部|完全|查询|搜索|检索|显示|数量|结果"
    r"|[均都也并则其为是没无未零空条次个行项共计的到数该一皆了])+",
    re.IGNORECASE,
)
_SEARCHED = re.compile(
    r"(?<![A-Za-z])(?:search(?:e[ds]|ing)?|quer(?:y|ies|ied|ying)|look(?:ed|ing|s)?\s+(?:for|up)|look-?ups?|grep(?:ped|ping)?|scan(?:s|ned|ning)?"
    r"|filter(?:s|ed|ing)?|check(?:s|ed|ing)?\s+for|as\s+(?:for|to)|regarding|concerning)(?![A-Za-z])|查询|搜索|检索|查找|过滤|扫描|针对|关于|对于",
    re.IGNORECASE,
)
_AFFIRMED = re.compile(
    r"(?<![A-Za-z])(?:found|logged|occur(?:s|red)?|appear(?:s|ed)?|seen|report(?:s|ed)|thr[oe]ws?n?|rais(?:es|ed)|caus(?:es|ed)|happen(?:s|ed)"
    r"|fail(?:s|ed)|return(?:s|ed)|show(?:s|ed)|hit|gave)(?![A-Za-z])|\d\s*(?:次|条|个|times?|hits?|lines?|errors?|records?|results?)(?![A-Za-z])"
    r"|出现|发生|报错|报出|抛出|存在|发现|导致|引起|返回|命中|失败|超时",
    re.IGNORECASE,
)
_SAYS_SO = re.compile(r"(?<![A-Za-z])(?:is|are|was|were|has|have|had|does|did)(?![A-Za-z])|[有是为被]", re.IGNORECASE)


def negated(text: str) -> bool:
    """True if `text` holds a negation, Chinese or English, or a count of zero hits."""
    return _NEGATION.search(scan(text).folded) is not None


def denied_spans(text: str) -> tuple[Span, ...]:
    """The parts of `text` (offsets in its folded form) in which a negation stands, so that what they name is denied.

    A part ends at a comma, a sentence's end or a contrast (but, 但); a list goes on over commas while each part before
    ends with an identifier: `no ORA-00060, ORA-00061 or E11000 was found` denies all three. A part that only says that
    nothing was found denies the search that its sentence names before: `查询 ORA-00060，没有命中`.
    """
    scanned = scan(text)
    denied: list[bool] = []
    parts = list(_parts(scanned))
    for at, part in enumerate(parts):
        negation = _NEGATION.search(scanned.folded, part.start, part.end) is not None
        denied.append(
            negation or (part.after_comma and at > 0 and denied[-1] and _ends_with_name(scanned, parts[at - 1]))
        )
        if negation and part.after_comma and _BARE.fullmatch(scanned.folded, part.start, part.end):
            first = at
            while parts[first].after_comma:
                first -= 1
            if _is_search(scanned.folded[parts[first].start : part.start]):
                denied[first:at] = [True] * (at - first)
    return tuple((part.start, part.end) for part, said in zip(parts, denied, strict=True) if said)


@dataclass(frozen=True, slots=True)
class _Part:
    start: int
    end: int
    after_comma: bool
    names: tuple[Identifier, ...]


def _parts(scanned: Scan) -> Iterator[_Part]:
    starts = [i.start for i in scanned.identifiers]
    start, after_comma = 0, False
    for stop, end, comma in _ends(scanned.folded):
        yield _Part(
            start, stop, after_comma, scanned.identifiers[bisect_left(starts, start) : bisect_left(starts, stop)]
        )
        start, after_comma = end, comma


def _ends(folded: str) -> Iterator[tuple[int, int, bool]]:
    for m in _FRAGMENT_END.finditer(folded):
        yield m.start(), m.end(), m["comma"] is not None
    yield len(folded), len(folded), False


def _ends_with_name(scanned: Scan, part: _Part) -> bool:
    return bool(part.names) and not scanned.folded[part.names[-1].end : part.end].strip(" '\"`)）”’")


def _is_search(topic: str) -> bool:
    """Whether what stands before `no hits` says what was looked for, and not that anything was there."""
    if _AFFIRMED.search(topic):
        return False
    return _SEARCHED.search(topic) is not None or _SAYS_SO.search(topic) is None
