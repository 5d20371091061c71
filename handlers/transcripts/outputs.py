"""What a foreign tool returned, as evidence refs: line by line as it was written, and a summary where it is empty."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handlers.evidence.bodies import read_body
from handlers.evidence.json_records import Flat, walk
from streams.contract import EvidenceRef, InvocationStatus, RetrievalDetails

TEXT_PARTS = frozenset({"text", "input_text", "output_text", "json", "resource", "tool_result", "reasoning_text"})
MAX_REFS = 50_000  # of a reply: its lines, and the objects of a JSON body beside them
MAX_LINE_BYTES = 256 * 1024  # a longer one cannot be checked against a quotation (gate.md), and is shown in pieces
_PIECE = 100_000  # characters
_OVERLAP = 2_000  # so that what may be quoted stands whole in one of them


@dataclass(frozen=True, slots=True)
class Output:
    """A tool's reply: how the call ended, what can be quoted, and the tool's own error text."""

    status: InvocationStatus
    details: RetrievalDetails
    error: str | None = None


def read_output(content: Any, arguments: Mapping[str, Any], failed: bool | None = None) -> Output:
    """Read a reply: text, JSON, or a list of content parts. `failed`: what the transcript says; None: told by the text.

    Refs are `lines[i]` from 0, blank lines left out; a JSON body has its objects as refs by their paths too, since a
    body in one line is one line. What is longer than can be checked is shown in pieces (`lines[i][0:102000]`); of more
    than MAX_REFS the middle is left out, counted and told. An empty reply, or one that only says that nothing was found, is `no_data` with a
    `summary` (ruling 7). The text of a failed access is quotable as `error` as well.
    """
    text = text_of(content)
    body = read_body(text)
    status: InvocationStatus = "error" if failed else "success" if failed is False and text.strip() else body.status
    lines = [ref for k, line in _lines(text) for ref in _pieces(f"lines[{k}]", line)]
    if status == "error":
        said = text.strip()
        extra = _pieces("error", said)[:1] if said else []
    elif status == "no_data":
        extra = [EvidenceRef(raw_path="summary", text=_summary(body.text, arguments))]
    else:
        extra = [ref for flat in _records(text) for ref in _pieces(flat.path, flat.text)]
    every = [*lines, *extra]
    # The two ends: an answer speaks of how it began, and of what came last.
    shown = every if len(every) <= MAX_REFS else [*every[: MAX_REFS // 2], *every[-MAX_REFS // 2 :]]
    cut = len(shown) < len(every)
    found = status == "success"
    details = RetrievalDetails(
        evidence_refs=tuple(shown),
        matched=len(every) if found else 0,
        returned=len(shown) if found else 0,
        truncated=cut,
        order="first+last" if cut else None,
        dropped_reason=f"{len(every) - len(shown)} records between the first and the last are left out"
        if cut
        else None,
    )
    return Output(status, details, text.strip() or None if status == "error" else None)


def text_of(content: Any) -> str:
    """The text of a message's content: text as it is, the texts of its parts, other JSON one element a line."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(item) for item in content)
    if isinstance(content, dict) and content.get("type") in TEXT_PARTS:
        return _part(content)
    return json.dumps(content, ensure_ascii=False)


def _part(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and item.get("type") in TEXT_PARTS:
        for key in ("text", "json", "content", "resource"):
            if key in item:
                held = item[key]
                return held["text"] if isinstance(held, dict) and isinstance(held.get("text"), str) else text_of(held)
    return json.dumps(item, ensure_ascii=False)


def _lines(text: str) -> list[tuple[int, str]]:
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [(k, line) for k, line in enumerate(lines) if line.strip()]


def _pieces(path: str, text: str) -> list[EvidenceRef]:
    if len(text) * 4 <= MAX_LINE_BYTES or len(text.encode("utf-8", "replace")) <= MAX_LINE_BYTES:
        return [EvidenceRef(raw_path=path, text=text)]
    size = _PIECE if text.isascii() else _PIECE // 2  # four bytes a character at most
    return [
        EvidenceRef(
            raw_path=f"{path}[{at}:{min(at + size + _OVERLAP, len(text))}]", text=text[at : at + size + _OVERLAP]
        )
        for at in range(0, len(text), size)
    ]


def _records(text: str) -> list[Flat]:
    stripped = text.strip()
    if not stripped.startswith(("{", "[")):
        return []
    found: dict[str, Flat] = {}
    try:
        for entry in walk(json.loads(stripped)):
            flat = entry if isinstance(entry, Flat) else Flat(entry.path, entry.render())
            found.setdefault(flat.path, flat)
    except (ValueError, RecursionError):
        # No JSON, or nested beyond reason: its lines are quotable all the same.
        return []
    return list(found.values())


def _summary(said: str, arguments: Mapping[str, Any]) -> str:
    query = json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)
    body = f"body={json.dumps(said, ensure_ascii=False)} " if said else ""
    return f"hits=0 status=ok {body}query={query}"
