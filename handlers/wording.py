"""How a text says things: sentences, negations and what they deny, causal connectives, failures, time windows."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from decimal import Decimal
from operator import itemgetter

from handlers.amounts import made
from handlers.identifiers import identifiers, scan
from handlers.marks import list_marks
from handlers.quantities import Quantity, quantities
from handlers.units import units_of

Span = tuple[int, int]

_SENTENCE_END = re.compile(r"(?<=[。！？!?；;])|(?<=[.])(?=\s|$)|\n+")
_LINE_MARK = re.compile(r"(?m:^)[ \t>*•-]*(?:\d{1,2}[.)、](?!\d)|[(（]\d{1,2}[)）])[ \t]*")
_NEGATION = re.compile(
    r"(?<![A-Za-z])(?:no|not|none|never|neither|nor|nothing|without|cannot|lacks?|absent|zero)(?![A-Za-z])|n['’]t(?![A-Za-z])"
    r"|(?<![A-Za-z0-9.])0\s+(?:hits?|errors?|match(?:es)?|results?|lines?|records?|entries|occurrences?|events?)(?![A-Za-z])"
    r"|hits=0(?!\d)|没|未(?![来必])|无(?![论须])|(?<![\d.])[0零]\s?[次条个行项]|不(?![过同仅但断久止管论妨])",
    re.IGNORECASE,
)
_CONTRAST = r"(?<![A-Za-z])(?:but|however|although|though|whereas|while|yet)(?![A-Za-z])|但是?|却|然而|不过|而是|反而"
_FRAGMENT_END = re.compile(rf"(?P<comma>[,，](?!\d{{3}}(?!\d)))|[;；。!！?？\n]|\.(?=\s|$)|{_CONTRAST}", re.IGNORECASE)
_CAUSAL = re.compile(
    r"(?<![A-Za-z])(?P<effect_first>because(?:\s+of)?|caused\s+by|due\s+to|owing\s+to|as\s+a\s+(?:result|consequence)\s+of"
    r"|resulting\s+from|result(?:s|ed)?\s+from|stem(?:s|med|ming)?\s+from|attribut(?:ed|able)\s+to|triggered\s+by"
    r"|brought\s+(?:on|about)\s+by|on\s+account\s+of|root\s+cause\s+(?:of\s+.{1,60}?\s+)?(?:is|was)(?!\s+(?:still\s+)?(?:not|un\w+))"
    r"|(?<!no )(?:reason|cause)\s+(?:of\s+.{1,60}?\s+|for\s+.{1,60}?\s+)?(?:is|was)(?!\s+(?:still\s+)?(?:not|un\w+|found|sought)))(?![A-Za-z])"
    r"|(?<![A-Za-z])(?P<cause_first>caus(?:es|ed|ing)|lead(?:s|ing)?\s+to|led\s+to|result(?:s|ed|ing)?\s+in|trigger(?:s|ing|ed(?!\s+(?:for|on|at|in|from|by|when|after|with)(?![A-Za-z])))"
    r"|contribut(?:es|ed|ing)\s+to|responsible\s+for|gave\s+rise\s+to|is\s+(?:the\s+)?root\s+cause|therefore|hence)(?![A-Za-z])"
    r"|(?P<han_effect>因为|由于|源于|归因于|起因是|起因于|根因(?:是|为)|根本原因(?:是|为)|原因(?:是|为|在于))"
    r"|(?P<han_cause>导致|引起|引发|造成|致使|使得|触发|因此|因而|从而|所以)",
    re.IGNORECASE,
)
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


def negated(text: str) -> bool:
    """True if `text` holds a negation, Chinese or English, or a count of zero hits."""
    return _NEGATION.search(scan(text).folded) is not None


def denied_spans(text: str) -> tuple[Span, ...]:
    """The parts of `text` (offsets in its folded form) in which a negation stands, so that what they name is denied.

    A part ends at a comma, a sentence's end or a contrast (but, 但); a list goes on over commas while each part before
    ends with an identifier: `no ORA-00060, ORA-00061 or E11000 was found` denies all three.
    """
    scanned = scan(text)
    spans: list[Span] = []
    inherited = False
    starts = [i.start for i in scanned.identifiers]
    for start, end, after_comma in _fragments(scanned.folded):
        inside = scanned.identifiers[bisect_left(starts, start) : bisect_left(starts, end)]
        denied = _NEGATION.search(scanned.folded, start, end) is not None or (after_comma and inherited)
        if denied:
            spans.append((start, end))
        inherited = denied and bool(inside) and not scanned.folded[inside[-1].end : end].strip(" '\"`)）”’")
    return tuple(spans)


def _fragments(folded: str) -> Iterator[tuple[int, int, bool]]:
    start, after_comma = 0, False
    for m in _FRAGMENT_END.finditer(folded):
        yield start, m.start(), after_comma
        start, after_comma = m.end(), m["comma"] is not None
    yield start, len(folded), after_comma


def within(start: int, end: int, spans: tuple[Span, ...]) -> bool:
    """True if the piece from `start` to `end` lies in one of `spans`, which are in order and apart."""
    at = bisect_right(spans, start, key=itemgetter(0)) - 1
    return at >= 0 and end <= spans[at][1]


def causal(text: str) -> bool:
    """True if `text` says that one thing made another: because, caused by, due to, led to, 导致, 因为, 引起, ..."""
    return _CAUSAL.search(scan(text).folded) is not None


def causal_sides(text: str) -> tuple[str, str] | None:
    """What stands on either side of the causal connective, cause and effect in either order; None if there is none,
    or nothing on one side. `由于 A，B` and `Because A, B` are cut at the comma."""
    folded = scan(text).folded
    for m in _CAUSAL.finditer(folded):
        left, right = folded[: m.start()], folded[m.end() :]
        if not re.search(r"\w", left):
            left, _, right = right.partition("，" if "，" in right else ",")
        if re.search(r"\w", left) and re.search(r"\w", right):
            return left, right
    return None


def states_failed_access(text: str) -> bool:
    """True if `text` says that an access failed: refused, forbidden, not found, timed out, 拒绝, 超时, 失败, ..."""
    return _FAILED_ACCESS.search(text) is not None


_NAMELESS_WINDOW = re.compile(
    r"(?<![A-Za-z])(?:last|past|previous)\s+(?:(?:full|whole)\s+)?(?P<unit>minute|hour|day|week)(?![A-Za-z])",
    re.IGNORECASE,
)


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


def anchored(text: str) -> bool:
    """True if `text` holds a number or an identifier."""
    return bool(quantities(text) or identifiers(text))
