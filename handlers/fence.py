"""Fences around text that nobody of ours wrote: tool output, questions, answers of others.

A fence opens and closes with a nonce of the run, so no text inside can end it, and what looks like a tag inside is
disarmed besides. Each record stays on one line: a line break in it would let one log line pose as two. Escapes are
JSON's own, so a quote copied out of a fence still matches its source (gate.md, matching step 3). Ruling 18.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

_TAG = re.compile(r"<(?=[/|!?<]?[A-Za-z|/!<])")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _shown(text: str, kept: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char in kept or unicodedata.category(char) not in _HIDDEN else _escape(char) for char in text
    )


def one_line(text: str, limit: int | None = None) -> str:
    """`text` as one visible line: breaks, control, bidi and zero-width characters as JSON escapes, tags disarmed.

    Of a text longer than `limit` characters the head and the tail stay, with the number of characters left out.
    """
    if limit is not None and len(text) > limit:
        head, tail = limit * 3 // 4, limit - limit * 3 // 4
        cut = len(text) - head - tail
        text = f"{text[:head]} [... {cut} characters not shown ...] {text[-tail:]}"
    return _TAG.sub("&lt;", _shown(text, "\t"))


def paragraphs(text: str) -> str:
    """`text` with its line breaks kept and everything else as `one_line` has it: for questions and answers."""
    return _TAG.sub("&lt;", _shown(text.replace("\r\n", "\n"), "\t\n"))


def fenced(kind: str, nonce: str, lines: Iterable[str], attributes: Mapping[str, object] | None = None) -> str:
    """Lines between `<<kind nonce key=value ...>>` and `<<end nonce>>`; the nonce itself is taken out of them.

    The lines must have been through `one_line` or `paragraphs`; attributes go through `one_line` here.
    """
    told = "".join(f" {key}={one_line(str(value), 200)}" for key, value in (attributes or {}).items())
    opening = without_nonce(f"{kind}{told}", nonce)[0]
    body = without_nonce("\n".join(lines), nonce)[0]
    head, _, rest = opening.partition(" ")
    return f"<<{head} {nonce}{' ' + rest if rest else ''}>>\n{body}\n<<end {nonce}>>"


def without_nonce(text: str, nonce: str) -> tuple[str, int]:
    """`text` without the nonce, however its letters are cased, and how often it stood there."""
    if not nonce:
        return text, 0
    total = 0
    pattern = re.compile(re.escape(nonce), re.IGNORECASE)
    # Taking one out can bring the halves of another together.
    while True:
        text, found = pattern.subn("", text)
        if not found:
            return text, total
        total += found
