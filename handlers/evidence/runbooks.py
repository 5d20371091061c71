"""Markdown documents as sections that can be quoted: front matter, headings of both kinds, stable section names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

OBSOLETE = frozenset(
    {"obsolete", "deprecated", "superseded", "retired", "archived", "outdated", "withdrawn", "expired"}
    | {"废弃", "已废弃", "过期", "已过期", "作废", "已作废", "停用", "已停用"}
)

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_ATX = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-{3,})[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_SLUG = re.compile(r"[^\w\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text up to the next one. `raw` is the document's own text; `path` is `<doc>#<section>`."""

    path: str
    heading: str
    raw: str
    first_line: int


@dataclass(frozen=True, slots=True)
class Document:
    """One runbook. `meta` is its front matter; `obsolete` that it says of itself that it no longer holds."""

    name: str
    title: str
    meta: Mapping[str, Any]
    obsolete: bool
    sections: tuple[Section, ...] = field(default=())
    note: str | None = None

    def banner(self) -> str:
        """The first line of every section that is shown: what document this is, and whether it still holds."""
        parts = [str(self.meta[key]) for key in ("id",) if self.meta.get(key)]
        parts.append(self.title)
        text = " ".join(parts)
        for key in ("services", "status", "updated"):
            value = self.meta.get(key)
            if value:
                shown = ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
                text += f" | {key}: {shown}"
        return f"[OBSOLETE] {text}" if self.obsolete else text


def read(name: str, text: str) -> Document:
    """The document in a text. Bad front matter is noted, not fatal."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    meta, body, note, offset = _front_matter(text)
    pieces = _split(body)
    headings = [heading for heading, _, _ in pieces if heading]
    title = str(meta.get("title") or (headings[0] if headings else name))
    used: dict[str, int] = {}
    sections = []
    for heading, raw, line in pieces:
        if not _says_something(raw, heading):
            continue
        slug = _SLUG.sub("-", heading.casefold()).strip("-") or "top"
        used[slug] = used.get(slug, 0) + 1
        ending = f"-{used[slug]}" if used[slug] > 1 else ""
        sections.append(Section(f"{name}#{slug}{ending}", heading or title, raw, line + offset))
    status = str(meta.get("status") or meta.get("state") or "").strip().casefold()
    marked = status in OBSOLETE or meta.get("obsolete") is True or meta.get("deprecated") is True
    shouted = re.search(r"\b(?:OBSOLETE|DEPRECATED|SUPERSEDED)\b|已废弃|已作废", f"{title}\n{body[:300]}") is not None
    return Document(name, title, meta, marked or shouted, tuple(sections), note)


def _front_matter(text: str) -> tuple[dict[str, Any], str, str | None, int]:
    hit = _FRONT.match(text.lstrip("\ufeff"))
    if hit is None:
        return {}, text, None, 0
    body = text.lstrip("\ufeff")[hit.end() :]
    try:
        meta = yaml.safe_load(hit[1])
    except yaml.YAMLError as error:
        return {}, body, f"front matter could not be read ({str(error).splitlines()[0]})", hit[0].count("\n")
    return (meta if isinstance(meta, dict) else {}), body, None, hit[0].count("\n")


def _split(body: str) -> list[tuple[str, str, int]]:
    """(heading, raw text with the heading's lines, number of its first line from 1); text before any heading first."""
    lines = body.split("\n")
    starts: list[tuple[int, str]] = [(0, "")]
    fenced = False
    for at, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        if hit := _ATX.match(line):
            starts.append((at, hit[2].strip()))
        elif _UNDERLINE.match(line) and at and (found := _underlined(lines, at, starts[-1][0])) is not None:
            starts.append(found)
    pieces = []
    for (start, heading), (end, _) in zip(starts, [*starts[1:], (len(lines), "")], strict=True):
        pieces.append((heading, "\n".join(lines[start:end]).strip("\n"), start + 1))
    return pieces


def _underlined(lines: list[str], at: int, after: int) -> tuple[int, str] | None:
    """A heading underlined by `===` or `---`: the one or two lines of its paragraph; marks without words are dropped."""
    start = at
    while start - 1 >= after and at - start < 2 and lines[start - 1].strip():
        start -= 1
    heading = " ".join(line.strip() for line in lines[start:at] if re.search(r"\w", line))
    return (start, heading) if heading else None


def _says_something(raw: str, heading: str) -> bool:
    said = re.sub(r"[\W_]+", "", raw)
    return len(said) > len(re.sub(r"[\W_]+", "", heading))
