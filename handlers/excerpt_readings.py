"""The ways an excerpt can be read: as it is, with one level of escapes undone, with one wrapper taken off, in parts.

gate.md, "Excerpt matching", steps 3 to 5, on the excerpt's side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from handlers.excerpt_cuts import NEGATION
from handlers.excerpt_forms import Form, html_unescaped, json_unescaped, normalize, normalized
from streams.contract import Tier

_PAIRS = (
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("‘", "’"),
    ("「", "」"),
    ("『", "』"),
    ("«", "»"),
    ("`", "`"),
    ("``", "``"),
)
_FENCE = re.compile(r"\A(`{3,}|~{3,})(.*?)\1\Z", re.DOTALL)
_FENCE_LANGUAGE = re.compile(r"\A[A-Za-z][\w+#.-]*[ \t]*[\r\n]")
_QUOTE_MARK = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_ELLIPSIS = r"(?:\[ ?(?:\.{3,}|…+) ?\]|\.{3,}|…+)"
_CUT_NOTE = re.compile(
    rf"[ \t]*(?:{_ELLIPSIS}\s*)?(?:{_ELLIPSIS}|[(\[（]\s*(?:\.{{3,}}|…)?\s*(?:truncated|截断|已截断)\s*(?:\.{{3,}}|…)?\s*[)\]）])\Z",
    re.IGNORECASE,
)
_PARTS = re.compile(rf"\s*{_ELLIPSIS}\s*")


def readings(excerpt: str) -> list[tuple[Tier, str]]:
    """Normalised readings of an excerpt, the most literal first, none twice, none empty."""
    found: dict[str, Tier] = {}
    for text in _escapes(excerpt):
        found.setdefault(text, "unescaped" if found else "normalized")
    for inner in _unwrapped(excerpt.strip()):
        for text in _escapes(inner):
            found.setdefault(text, "unwrapped")
    return [(tier, text) for text, tier in found.items() if text]


def parts(reading: str) -> list[str]:
    """What stands between the ellipses of a reading; empty if it has none."""
    found = _PARTS.split(reading)
    return [part for part in found if part] if len(found) > 1 else []


def _escapes(text: str) -> Iterator[str]:
    yield normalize(text)
    form = Form(text)
    for unescaped in (json_unescaped(form), html_unescaped(form)):
        if unescaped is not None:
            yield normalized(unescaped).text.strip(" ")


def _unwrapped(text: str) -> Iterator[str]:
    """Each reading with exactly one wrapper taken off."""
    fence = _FENCE.match(text)
    if fence:
        yield fence[2]
        language = _FENCE_LANGUAGE.match(fence[2])
        if language and not NEGATION.search(language[0]):
            yield fence[2][language.end() :]
    for opening, closing in _PAIRS:
        if len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
            yield text[len(opening) : -len(closing)]
    if text.startswith(">") and all(_QUOTE_MARK.match(line) for line in text.splitlines() if line.strip()):
        yield _QUOTE_MARK.sub("", text)
    note = _CUT_NOTE.search(text)
    if note and note.start():
        yield text[: note.start()]
