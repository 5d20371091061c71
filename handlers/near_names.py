"""Names that only the evidence shows to be names: `web-front-blue`, where the evidence has `web-front-green`.

A compound of three words and more without a figure is English as often as a name (`out-of-memory`), so by its shape
alone it is none (`identifier_shapes`). Where the evidence has one that differs in a single part, it is another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from handlers.identifiers import Identifier, scan, stands_in

_COMPOUND = re.compile(r"(?<![A-Za-z0-9_.-])[a-z][a-z0-9]*(?:-[a-z0-9]+){2,8}(?![A-Za-z0-9_-])", re.ASCII)
_SAME_HEAD = 4
"""Parts that share so many letters at the start, or the whole of one, are one word: `write-ahead-log`, `-logging`."""


def near_names(text: str, evidence: str) -> tuple[Identifier, ...]:
    """Compounds of `text` that stand nowhere in `evidence` (folded), which has one that differs in one part."""
    scanned = scan(text)
    known = frozenset((i.start, i.end) for i in scanned.identifiers)
    found = (
        Identifier("name", m[0], m[0], m.start(), m.end(), scanned.folded)
        for m in _COMPOUND.finditer(scanned.folded)
        if (m.start(), m.end()) not in known
    )
    return tuple(name for name in found if not stands_in(name, evidence) and _has_near(name.key, evidence))


def _has_near(name: str, evidence: str) -> bool:
    known = _compounds(evidence)
    return any(
        not _one_word(part, other) for frame, part in _frames(name) for other in known.get(frame, ()) if part != other
    )


def _frames(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The name with each of its parts taken out in turn, and that part."""
    parts = name.split("-")
    for at, part in enumerate(parts):
        yield (*parts[:at], "", *parts[at + 1 :]), part


def _one_word(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one) or one[:_SAME_HEAD] == other[:_SAME_HEAD]


@lru_cache(maxsize=8)  # one session's evidence, asked for with every claim
def _compounds(evidence: str) -> dict[tuple[str, ...], list[str]]:
    known: dict[tuple[str, ...], list[str]] = {}
    for word in dict.fromkeys(_COMPOUND.findall(evidence)):
        for frame, part in _frames(word):
            known.setdefault(frame, []).append(part)
    return known
