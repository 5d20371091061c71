"""Text as anchors are looked for in it: folded, and the edges of a Latin word inside Chinese text."""

from __future__ import annotations

import re
import unicodedata

LEFT, RIGHT = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
"""Edges of a word for patterns: `\\b` would see none between Chinese and Latin letters."""

_ANSI = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[ -/]*[@-~]")
_DROPPED = [0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A)]
_FOLD: dict[int, str | None] = {
    **dict.fromkeys([*_DROPPED, 0xFEFF, *range(0xFE00, 0xFE10)]),
    **dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2212, 0xFE63, 0xFF0D], "-"),
    **dict.fromkeys([0x2014, 0x2015], " - "),
    **dict.fromkeys([0xA0, 0x202F, 0x3000, *range(0x2000, 0x200B)], " "),
    **{c: chr(c - 0xFEE0) for c in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))},
    **{c: chr(c - 0xFEE0) for c in (0xFF05, 0xFF0E, 0xFF1D, 0xFF3F)},
}


def fold(text: str) -> str:
    """`text` with what only changes its look taken away: terminal codes, invisible characters, dashes, wide letters.

    Digits, case and words stay. A wide comma stays wide: `20，300` is two numbers. Idempotent.
    """
    if text.isascii() and "\x1b" not in text:
        return text
    return unicodedata.normalize("NFC", _ANSI.sub("", text).translate(_FOLD))
