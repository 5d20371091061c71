"""How a text says things: sentences, what they deny, what they call a cause, failures, time windows."""

from __future__ import annotations

import re
from bisect import bisect_right
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter

from handlers.amounts import made
from handlers.connectives import causal
from handlers.identifiers import identifiers, scan
from handlers.marks import list_marks
from handlers.negations import Span, denied_spans, negated
from handlers.quantities import Quantity, quantities
from handlers.units import units_of

__all__ = [
    "anchored",
    "causal",
    "denied_spans",
    "negated",
    "sentences",
    "states_failed_access",
    "windows",
    "within",
]

_SENTENCE_END = re.compile(r"(?<=[。！？!?；;])|(?<=[.])(?=\s|$)|\n+")
_LINE_MARK = re.compile(r"(?m:^)[ \t>*•-]*(?:\d{1,2}[.)、](?!\d)|[(（]\d{1,2}[)）])[ \t]*")
_FAILED_ACCESS = re.compile(
    r"(?<![A-Za-z])(?:refused|forbidden|not\s+found|tim(?:ed|es|ing)[\s-]?out|time-?outs?|fail(?:ed|s|ure)?|denied|unauthori[sz]ed"
    r"|unreachable|could\s+not|cannot|unable\s+to)(?![A-Za-z])|拒绝|超时|失败|不存在|禁止|无权|未授权|未找到|找不到|无法|不可达",
    re.IGNORECASE,
)
_WINDOW_BEFORE = re.compile(
    r"(?:(?<![A-Za-z])(?:last|past|previous|recent|within|window(?:\s+of)?)(?:\s+the)?(?:\s+(?:last|past))?"
    r"|(?<![A-Za-z])(?:during|across|throughout|over|in)\s+(?:the|these|those)|(?<![A-Za-z])(?:during|across|throughout)"
    r"|(?:^|[.;,:]\s*)over|(?<!took )(?<!lasted )(?<!waited )(?<!ran )(?<!for )(?<!is )(?<!was )(?<!were )(?<!been )(?<!well )(?<!just )(?<!of )(?<!after )(?<![A-Za-z])over"
    r"|最近|近|过去|之前|前|[这此该])\s*(?:的)?[=:]?\s*$",
    re.IGNORECASE,
)
_WINDOW_AFTER = re.compile(
    r"^\s*(?:-|\s)?(?:time\s+)?(?:window|ago)(?![A-Za-z])|^\s*(?:的)?(?:时间)?(?:窗口|以?内|之内|以来|期间|里|之间)",
    re.IGNORECASE,
)


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of `text`, Chinese or English, without list marks; `4.12.0` and `a.b.com` do not end one."""
    marks = list_marks(text)
    starts = [0, *(end for _, end in marks)]
    stretches = [text[a:b] for a, b in zip(starts, [*(start for start, _ in marks), len(text)], strict=True)]
    lines = (_LINE_MARK.sub("", stretch) for stretch in stretches)
    pieces = (piece.strip(" \t\r-*•>") for line in lines for piece in _SENTENCE_END.split(line))
    return tuple(piece for piece in pieces if re.search(r"\w", piece))


def within(start: int, end: int, spans: tuple[Span, ...]) -> bool:
    """True if the piece from `start` to `end` lies in one of `spans`, which are in order and apart."""
    at = bisect_right(spans, start, key=itemgetter(0)) - 1
    return at >= 0 and end <= spans[at][1]


def states_failed_access(text: str) -> bool:
    """True if `text` says that an access failed: refused, forbidden, not found, timed out, 拒绝, 超时, 失败, ..."""
    return _FAILED_ACCESS.search(text) is not None


_NAMELESS_WINDOW = re.compile(
    r"(?<![A-Za-z])(?:last|past|previous)\s+(?:(?:full|whole)\s+)?(?P<unit>minute|hour|day|week)(?![A-Za-z])",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)  # the question's are asked for with every claim
def windows(text: str) -> tuple[Quantity, ...]:
    """Durations that say over which time one looks: the last 30 minutes, the last hour, 最近 30 分钟, a 5 min window.

    A window between clock times needs no place here: clock times are never numbers.
    """
    folded = scan(text).folded
    numbered = [
        q
        for q in quantities(text)
        if q.unit == "s"
        and (
            _WINDOW_BEFORE.search(folded[max(0, q.start - 32) : q.start])
            or _WINDOW_AFTER.search(folded[q.end : q.end + 16])
        )
    ]
    named = [made(Decimal(1), units_of(m), m["unit"], m.start("unit")) for m in _NAMELESS_WINDOW.finditer(folded)]
    return tuple(sorted([*numbered, *named], key=lambda q: q.start))


def plain(text: str) -> str:
    """For equal text: case, white space and the full stop at the end do not count."""
    return " ".join(text.casefold().split()).rstrip(".。!！;；")


def anchored(text: str) -> bool:
    """True if `text` holds a number or an identifier."""
    return bool(quantities(text) or identifiers(text))
