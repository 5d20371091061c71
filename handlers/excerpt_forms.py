"""Forms of a text in which an excerpt is looked for, each with a map back to the text it was made from.

gate.md, "Excerpt matching", steps 2 (normalising), 3 (one level of unescape) and 6 (case-folding). A form is text plus
the list of places where it differs in length from its parent; everything else maps one to one, so that a 64 KiB
log costs a few hundred entries and not 65,536.
"""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import regex  # type: ignore[import-untyped]

Span = tuple[int, int]
Spot = tuple[int, int, str]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A text and its map. `new_*` are offsets here, `old_*` in the parent, one entry for each place that was rewritten."""

    text: str
    parent: Form | None = None
    new_starts: array[int] = field(default_factory=lambda: array("l"))
    new_ends: array[int] = field(default_factory=lambda: array("l"))
    old_starts: array[int] = field(default_factory=lambda: array("l"))
    old_ends: array[int] = field(default_factory=lambda: array("l"))

    def up(self, start: int, end: int) -> Span | None:
        """The span of the parent that [start:end) (not empty) was made from; None if an edge lies inside a rewrite."""
        first = bisect_right(self.new_starts, start) - 1
        if first < 0:
            old_start = start
        elif start < self.new_ends[first]:
            if start != self.new_starts[first]:
                return None
            old_start = self.old_starts[first]
        else:
            old_start = self.old_ends[first] + start - self.new_ends[first]
        last = bisect_right(self.new_starts, end - 1) - 1
        if last < 0:
            old_end = end
        elif end <= self.new_ends[last]:
            if end != self.new_ends[last]:
                return None
            old_end = self.old_ends[last]
        else:
            old_end = self.old_ends[last] + end - self.new_ends[last]
        return old_start, old_end

    def to_source(self, start: int, end: int) -> Span | None:
        """The span of the original text; None if an edge lies inside a character that was rewritten into several."""
        form: Form = self
        span: Span | None = (start, end)
        while span is not None and form.parent is not None:
            span = form.up(*span)
            form = form.parent
        return span

    def down(self, position: int) -> int | None:
        """Where an offset of the original text lies here; None inside a rewrite that left something in its place."""
        at: int | None = position if self.parent is None else self.parent.down(position)
        if at is None or not self.old_starts:
            return at
        index = bisect_right(self.old_starts, at) - 1
        if index < 0 or at >= self.old_ends[index]:
            return at if index < 0 else self.new_ends[index] + at - self.old_ends[index]
        if at == self.old_starts[index] or self.new_starts[index] == self.new_ends[index]:
            return self.new_starts[index]
        return None


def rewrite(parent: Form, spots: Iterable[Spot], text: str | None = None) -> Form:
    """A form of `text` (by default the parent's, never of another length) with each spot `(start, end, new)` replaced."""
    text = parent.text if text is None else text
    new_starts, new_ends, old_starts, old_ends = array("l"), array("l"), array("l"), array("l")
    parts: list[str] = []
    last = length = 0
    for start, end, new in spots:
        parts += (text[last:start], new)
        length += start - last
        if len(new) != end - start or len(new) > 1:
            new_starts.append(length)
            new_ends.append(length + len(new))
            old_starts.append(start)
            old_ends.append(end)
        length += len(new)
        last = end
    if parts:
        text = "".join(parts) + text[last:]
    return Form(text, parent, new_starts, new_ends, old_starts, old_ends)


_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9b-\x9d\r\n]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles, hyperlinks; ended by BEL or ST
)
_ANSI_START = re.compile("[\x1b\x9b\x9d]")

_DROPPED = (
    "\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
)
_FOLDS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\uff07",
    '"': "\u00ab\u00bb\u201c\u201d\u201e\u201f\u2033\u2036\u300c-\u300f\u301d-\u301f\uff02",
    "-": "\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d",
    " ": "\t\n\x0b\x0c\r\x1c-\x1f\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
}
_TO_FOLD = re.compile("[" + "".join(_FOLDS.values()) + "]")
_FOLDED = {
    chr(code): target
    for target, family in _FOLDS.items()
    for code in range(0x3100)
    if re.match(f"[{family}]", chr(code))
} | {
    chr(code): target
    for target, family in _FOLDS.items()
    for code in range(0xFE00, 0x10000)
    if re.match(f"[{family}]", chr(code))
}
_ASCII_SPACE = str.maketrans(dict.fromkeys("\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f", " "))
_SPACES = re.compile(" {2,}")
_WIDE = "\u3001-\u3011\u3400-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_RUN = re.compile(f"(?: (?=[ {_DROPPED}])|[{_DROPPED}]|(?<=[{_WIDE}]) (?=[{_WIDE}]))[ {_DROPPED}]*")
_WIDE_CHAR = re.compile(f"[{_WIDE}]")
_CLUSTER = regex.compile(r"[\x00-\x7f]+(?=[\x00-\x7f]|\Z)|\X")


def normalized(parent: Form) -> Form:
    """Step 2. The result's parent is the same text with its line breaks, colours and composed forms dealt with."""
    text = parent.text
    if text.isascii() and "\x1b" not in text:
        flat = text.translate(_ASCII_SPACE)
        return rewrite(parent, ((m.start(), m.end(), " ") for m in _SPACES.finditer(flat)), flat)
    if _ANSI_START.search(text):
        parent = rewrite(parent, ((m.start(), m.end(), "") for m in _ANSI.finditer(text)))
    if not unicodedata.is_normalized("NFC", parent.text):
        parent = rewrite(parent, _composed(parent.text))
    flat = _TO_FOLD.sub(lambda m: _FOLDED[m[0]], parent.text)
    return rewrite(parent, ((m.start(), m.end(), _run(m)) for m in _RUN.finditer(flat)), flat)


def _run(m: re.Match[str]) -> str:
    """What stays of a run: a space if it has any, but none between Han characters, where a space is only layout."""
    if " " not in m[0] or (
        _WIDE_CHAR.match(m.string, m.end()) and m.start() and _WIDE_CHAR.match(m.string, m.start() - 1)
    ):
        return ""
    return " "


def _composed(text: str) -> Iterator[Spot]:
    """A grapheme cluster at a time: no canonical composition reaches over its edge."""
    for m in _CLUSTER.finditer(text):
        cluster = m[0]
        if not cluster.isascii():
            composed = unicodedata.normalize("NFC", cluster)
            if composed != cluster:
                yield m.start(), m.end(), composed


_JSON_ESCAPE = re.compile(
    r"\\(?:[\"\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4})"
)
_JSON_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HTML_ESCAPE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def json_unescaped(parent: Form) -> Form | None:
    """One level of JSON string escapes undone; None if there are none. What is no valid escape stays as it is."""
    if "\\" not in parent.text:
        return None
    form = rewrite(parent, ((m.start(), m.end(), _json_char(m[0])) for m in _JSON_ESCAPE.finditer(parent.text)))
    return form if form.new_starts else None


def _json_char(escape: str) -> str:
    if escape[1] != "u":
        return _JSON_SHORT.get(escape[1], escape[1])
    if len(escape) == 12:
        return chr(0x10000 + ((int(escape[2:6], 16) - 0xD800) << 10) + int(escape[8:12], 16) - 0xDC00)
    return chr(int(escape[2:6], 16))


def html_unescaped(parent: Form) -> Form | None:
    """One level of HTML character references undone; None if there are none."""
    if "&" not in parent.text:
        return None
    form = rewrite(parent, ((m.start(), m.end(), html.unescape(m[0])) for m in _HTML_ESCAPE.finditer(parent.text)))
    return form if form.text != parent.text else None


_LIGATURES = "\u0149\u1e9a\ufb00-\ufb06\ufb13-\ufb17"
_LIGATURE = re.compile(f"[{_LIGATURES}]")
_NO_LIGATURES = re.compile(f"[^{_LIGATURES}]+")


def fold_case(text: str) -> str:
    """Step 6 for a text: its case folded, its ligatures kept. That `ﬁ` is two letters is compatibility (NFKC), not case."""
    if text.isascii():
        return text.lower()
    return text.casefold() if not _LIGATURE.search(text) else _NO_LIGATURES.sub(lambda m: m[0].casefold(), text)


def casefolded(parent: Form) -> Form:
    """Step 6. Some letters grow (`ß`, `İ`): those places are mapped, the rest is one to one."""
    text = parent.text
    folded = fold_case(text)
    if len(folded) == len(text):
        return Form(folded, parent)
    return rewrite(parent, _grown(text), None)


def _grown(text: str) -> Iterator[Spot]:
    for index, char in enumerate(text):
        folded = fold_case(char)
        if folded != char:
            yield index, index + 1, folded


def normalize(text: str) -> str:
    """Step 2 of gate.md, ends trimmed, for those who need no offsets."""
    return normalized(Form(text)).text.strip(" ")
