"""Recorded outputs of any tool as an evidence tool of their own (`--tool NAME=PATH`), quotable line by line.

An output may be text or JSON; an innermost JSON object that is written over several lines is one record
(`lines[7-10]`), so that a value can be quoted with the name it belongs to. A body that only says that the access
failed is an error, one that says nothing, or that nothing was found, is no data. Nothing beside the named files is read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handlers.evidence import log_lines, records
from handlers.evidence.arguments import BadArgument, count_of, text_of, words_of
from handlers.evidence.bodies import Body, read_body
from handlers.evidence.json_records import Flat
from handlers.evidence.logs import failed
from handlers.evidence.no_hit import no_hit
from handlers.evidence.protocol import ToolResult, ToolSpec
from handlers.evidence.sources import Kept, SourceFile, expand, whole
from streams.contract import RetrievalDetails

LIMIT = 160
MAX_LIMIT = 600


def _body(path: Path) -> tuple[Body, str | None]:
    raw, note = whole(path)
    return read_body(records.decode(raw)), note


_BODIES = Kept(_body)


class RecordedOutputs:
    """The tool. Raises BadSource on bad paths when it is made."""

    def __init__(self, name: str, paths: Sequence[str]) -> None:
        self._files = expand(paths)
        self._names = [file.name or file.path.name for file in self._files]
        shown = ", ".join(self._names[:20])
        self.spec = ToolSpec(
            name=name,
            description=f"Recorded outputs of {name}: {shown}. Gives their lines, all of them or those with any of the terms.",
            parameters={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "file": {"type": "string", "description": "only this output", "enum": self._names[:100]},
                    "terms": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "words or phrases; a line matches if it holds any of them, in any case",
                    },
                    "limit": {"type": "integer", "description": f"lines to show, 1 to {MAX_LIMIT} ({LIMIT})"},
                },
            },
        )

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            wanted = text_of(arguments, "file")
            terms = words_of(arguments, "terms")
            limit = count_of(arguments, "limit", LIMIT, MAX_LIMIT)
        except BadArgument as error:
            return failed(str(error))
        files = [
            one for one, name in zip(self._files, self._names, strict=True) if wanted in {None, name, one.path.name}
        ]
        if not files:
            return failed(f"file: {wanted!r} is none of {', '.join(self._names[:20])}")
        return await asyncio.to_thread(self._look, files, wanted, terms, limit, dict(arguments))

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return records.find(output, raw_path)

    def _look(
        self,
        files: Sequence[SourceFile],
        wanted: str | None,
        terms: tuple[str, ...],
        limit: int,
        arguments: dict[str, Any],
    ) -> ToolResult:
        read: list[tuple[SourceFile, Body]] = []
        notes = []
        for file in files:
            try:
                body, note = _BODIES.of(file.path)
            except OSError as error:
                read.append((file, Body("error", text=error.strerror or str(error))))
                continue
            notes += [note] if note else []
            read.append((file, body))
        errors = [(file, body) for file, body in read if body.status == "error"]
        found = [(file, entry) for file, body in read if body.status == "success" for entry in body.entries]
        if errors and not found:
            several = len(errors) > 1
            return failed("\n".join(f"{file.name}: {body.text}" if several else body.text for file, body in errors))
        notes += [
            f"{_name(file)} holds a failed access, which is no evidence of a state: {body.text}"
            for file, body in errors
        ]
        notes += [f"{_name(file)} is empty: no data" for file, body in read if body.status == "no_data" and found]
        folded = [term.casefold() for term in terms]
        hits = [(file, entry) for file, entry in found if not folded or any(t in entry.text.casefold() for t in folded)]
        if not hits:
            return _nothing(read, wanted, arguments, terms, notes)
        return result_of(hits, wanted, terms, limit, notes)


def result_of(
    hits: Sequence[tuple[SourceFile, Flat]], wanted: str | None, terms: tuple[str, ...], limit: int, notes: list[str]
) -> ToolResult:
    """Records of outputs as a result: all of them, or the first, the last and the most severe `limit`."""
    output = records.pack((f"{file.prefix()}{entry.path}", entry.text) for file, entry in hits)
    chosen = (hits[at] for at in _chosen(hits, limit))
    shown = (records.shown(f"{file.prefix()}{entry.path}", entry.text, terms, str(file.path)) for file, entry in chosen)
    refs = records.within_room(shown, notes)
    if len(refs) < len(hits):
        notes.insert(0, f"{len(hits) - len(refs)} of {len(hits)} records not shown; narrow by file or terms")
    return ToolResult(
        status="success",
        retrieval_details=RetrievalDetails(
            evidence_refs=tuple(refs),
            matched=len(hits),
            returned=len(refs),
            truncated=len(refs) < len(hits) or bool(notes),
            order="all" if len(refs) == len(hits) else "first+last+severe",
            dropped_reason="; ".join(dict.fromkeys(notes)) or None,
            query_samples=terms or None,
            source_documents=tuple(dict.fromkeys(_name(file) for file, _ in hits)),
        ),
        output=output,
        output_format=records.FORMAT,
        topic=wanted,
    )


def _chosen(hits: Sequence[tuple[SourceFile, Flat]], limit: int) -> list[int]:
    if len(hits) <= limit:
        return list(range(len(hits)))
    third = limit // 3
    picked = dict.fromkeys((*range(third), *range(len(hits) - third, len(hits))))
    severe = sorted(
        (at for at in range(len(hits)) if at not in picked),
        key=lambda at: (-log_lines.level(hits[at][1].text.encode("utf-8", "replace")), at),
    )
    picked.update(dict.fromkeys(severe[: limit - len(picked)]))
    return sorted(picked)


def _nothing(
    read: Sequence[tuple[SourceFile, Body]],
    wanted: str | None,
    arguments: dict[str, Any],
    terms: tuple[str, ...],
    notes: list[str],
) -> ToolResult:
    lines = sum(len(body.entries) for _, body in read)
    said = (f"body={json.dumps(b.text, ensure_ascii=False)}" for _, b in read if b.status == "no_data" and b.text)
    searched = (f"files={len(read)}", f"lines_scanned={lines}", *said)
    return no_hit("all", searched, arguments, notes, truncated=False, terms=terms, topic=wanted)


def _name(file: SourceFile) -> str:
    return file.name or file.path.name
