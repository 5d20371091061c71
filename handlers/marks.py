"""Digits that are no amounts: time stamps, dates, clock times, ordinals, list marks, footnotes, years.

`identifiers.scan` masks them. All patterns are for folded text.
"""

from __future__ import annotations

import re

from handlers.shapes import LEFT as _L
from handlers.shapes import RIGHT as _R
from handlers.units import HAN, UNITS

Span = tuple[int, int]

_NO_UNIT = rf"(?!\s?%|\s?(?:{'|'.join(u for u in UNITS if u[0].isascii() and u != '%')}){_R}|\s?(?:{HAN}))"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
TIMES = tuple(
    re.compile(p, re.ASCII)
    for p in (
        (
            rf"(?<![\d.])(?<!/(?=\d{{4}}-\d\d-\d\d/))\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?)?"
            rf"(?:\s?(?:Z|UTC|GMT){_R}|\s?[+-]\d{{2}}:?\d{{2}}(?!\d))?(?!\d)"
        ),
        rf"{_L}\d{{8}}T\d{{6}}Z?{_R}",
        r"(?<![\w.])(?:19|20)\d{2}\.(?:0[1-9]|1[0-2])\.(?:0[1-9]|[12]\d|3[01])(?![\d.]*\d)",
        rf"{_L}\d{{1,2}}/(?:{_MONTH}|\d{{1,2}})/\d{{4}}(?::\d{{2}}:\d{{2}}:\d{{2}})?(?:\s[+-]\d{{4}})?(?!\d)",
        r"(?<![\w.])(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?:19|20)\d{2}(?![\d.]*\d)",
        rf"(?<!\d\.){_L}\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?:\s?(?:am|pm|AM|PM|Z|(?:UTC|GMT)(?:[+-]\d{{1,2}}(?::?\d{{2}})?)?){_R}|[+-]\d{{2}}:\d{{2}})?(?!\d|:[0-9A-Za-z])",
    )
)
"""Masked before anything else: a clock time must not look like a host with a port."""
NO_AMOUNTS = tuple(
    re.compile(p, re.ASCII)
    for p in (
        rf"{_L}\d{{1,2}}(?:\.\d{{2}})?\s?(?:am|pm|AM|PM|a\.m\.|p\.m\.){_R}",
        rf"{_L}{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?{_R}",
        rf"{_L}\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}(?:\s+\d{{4}})?{_R}",
        r"[\d零〇一二三四五六七八九十]{1,4}\s*年(?![以之来内])(?:\s*\d{1,2}\s*月)?(?:\s*\d{1,2}\s*[日号])?",
        r"(?<![\d.])\d{1,2}\s*月(?:\s*\d{1,2}\s*[日号])?",
        r"(?<![\d.])\d{1,2}(?:\.\d{1,2})?\s*[日号](?!志)",
        r"(?<![\d.])\d{1,2}\s*(?:点|时)(?!间)(?:\s*\d{1,2}\s*分(?!钟))?(?:\s*\d{1,2}\s*秒)?",
        rf"{_L}{_MONTH},?\s+(?:19|20)\d{{2}}{_R}",
        (
            rf"{_L}(?:[Ii]n|[Ss]ince|[Uu]ntil|[Dd]uring)\s+(?:19[7-9]\d|20[0-4]\d){_R}"
            rf"(?![.,]\d){_NO_UNIT}"
        ),
        rf"{_L}(?:year|end|start|beginning|spring|summer|autumn|fall|winter|Q[1-4])\s+(?:of\s+)?(?:19|20)\d{{2}}{_R}",
        r"(?:timestamp|epoch|unix time|时间戳)\s*[:=：]?\s*\d{10}(?:\d{3})?(?!\d)",
        r"@\s?\d{10}(?:\.\d+|\d{3})?(?!\d)",
        rf"{_L}\d+(?:st|nd|rd|th){_R}",
        r"第\s*[\d零〇一二两三四五六七八九十百]{1,9}\s*(?:次|个|条|步|轮|行|页|章|节|项|点|天|位|名|台|层|级)?",
        rf"{_L}(?:No\.|Nr\.|#)\s?\d{{1,2}}{_R}",
        r"(?m:^)[ \t>*-]*\d{1,2}(?:[.)、]|\uff0e)(?=\s|[^\d\s.])",
        r"(?:(?m:^)|(?<=[:：;；。]))[ \t]*[(（]\d{1,2}[)）]",
        rf"(?<=[A-Za-z_\])])\[-?\d+\]|\[\d{{1,2}}\](?!\d|\.\w)|{_L}24/7{_R}|{_L}[1-5][xX]{{2}}{_R}|{_L}x86[-_]64{_R}",
        rf"{_L}(?:[Jj]ava|(?:Open)?JDK|Python|Ubuntu|Debian)\s+\d+(?![\d.]*\d)",
        rf"{_L}HTTP/\d(?:\.\d)?{_R}|{_L}TLS\s?v?1(?:\.\d)?{_R}",
        r"[零〇一二两三四五六七八九十]{1,4}分之(?<!百分之)[零〇一二两三四五六七八九十百]{1,6}|三次握手|四次挥手|二次(?=确认|元|开发)",
        r"[零〇一二三四五六七八九十]{1,3}\s*点\s*[零〇一二三四五六七八九十]{1,3}\s*分(?!钟)|[一二三四五六七八九十]{1,2}月[一二三四五六七八九十]{1,3}[日号]",
        r"(?<![\d.])\d{1,2}(?:\.\d+)?\s?(?:分位|percentile(?![A-Za-z]))",
        r"四处(?=[查找寻搜排散走奔打求扩传蔓碰])|一分为二|三番五次|百分之百(?=[占用打耗确肯可正])|[有某]一[天日]",
        rf"(?:{_L}(?:[Ii]nvocations?|[Tt]ool call){_R}|调用)\s?(?:id|ID|编号)?\s?#?\s?\d{{1,9}}(?!\d|\.\d){_NO_UNIT}",
    )
)


_LIST_MARK = re.compile(r"(?<![\w.(（])(\d{1,2})[.)、](?=\s|[^\d\s.,;])|[(（](\d{1,2})[)）]", re.ASCII)


def list_marks(folded: str) -> tuple[Span, ...]:
    """`1. ... 2. ...` and `(1) ... (2) ...` inside a line: marks that count up from one, two at least."""
    marks = [(int(m[1] or m[2]), m.span()) for m in _LIST_MARK.finditer(folded)]
    taken: list[Span] = []
    run: list[Span] = []
    for number, span in marks:
        if number == len(run) + 1:
            run.append(span)
        else:
            taken += run if len(run) > 1 else []
            run = [span] if number == 1 else []
    return tuple(taken + (run if len(run) > 1 else []))
