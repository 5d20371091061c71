"""`lookup_knowledge` over Markdown runbooks: BM25 on sections, for Chinese and English.

What a runbook says is never evidence of the present incident (EXE-8): `evidence_kind` is `knowledge`. Documents that
say of themselves that they are obsolete are marked, not hidden.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from handlers.evidence import records, runbooks
from handlers.evidence.arguments import BadArgument, count_of, text_of
from handlers.evidence.logs import failed
from handlers.evidence.no_hit import no_hit
from handlers.evidence.protocol import ToolResult, ToolSpec
from handlers.evidence.ranking import Bm25, words
from handlers.evidence.runbooks import Document, Section
from handlers.evidence.sources import expand, whole
from streams.contract import RetrievalDetails

LIMIT = 6
MAX_LIMIT = 30
ENDINGS = (".md", ".markdown", ".mdx", ".txt", ".rst")
TITLE_WEIGHT = 3  # a word of the title or heading counts as often
HIGH, MEDIUM = 0.66, 0.33  # shares of the best score


class Runbooks:
    """The tool. Reads the documents at each call, so that a changed runbook counts; raises BadSource when made."""

    def __init__(self, paths: Sequence[str], name: str = "lookup_knowledge") -> None:
        self._files = expand(paths, ENDINGS)
        self.spec = ToolSpec(
            name=name,
            description=(
                "Looks up runbooks and past cases. Gives the best sections. They are background: never evidence of what "
                "happens now. Sections marked [OBSOLETE] no longer hold."
            ),
            parameters={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "query": {"type": "string", "description": "symptom, error text, service: Chinese or English"},
                    "service": {"type": "string", "description": "documents for this service count more"},
                    "limit": {"type": "integer", "description": f"sections to show, 1 to {MAX_LIMIT} ({LIMIT})"},
                },
                "required": ["query"],
            },
            evidence_kind="knowledge",
        )

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            query = text_of(arguments, "query") or ""
            service = text_of(arguments, "service")
            limit = count_of(arguments, "limit", LIMIT, MAX_LIMIT)
        except BadArgument as error:
            return failed(str(error))
        if not words(query):
            return failed("query: says nothing that could be looked up; give a symptom, an error text or a service")
        return await asyncio.to_thread(self._look_up, query, service, limit, dict(arguments))

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return records.find(output, raw_path)

    def _look_up(self, query: str, service: str | None, limit: int, arguments: dict[str, Any]) -> ToolResult:
        documents, notes = self._read()
        if not documents:
            return failed("; ".join(notes))
        entries = [(document, section) for document in documents for section in document.sections]
        scores = rank(entries, query, service)
        best = sorted((at for at in range(len(entries)) if scores[at] > 0), key=lambda at: (-scores[at], at))
        if not best:
            return self._nothing(len(documents), len(entries), arguments, notes)
        output = records.pack((entries[at][1].path, _text(*entries[at])) for at in best)
        refs, levels, room = [], [], records.MAX_REFS_BYTES
        for at in best[:limit]:
            document, section = entries[at]
            ref, note = records.shown(section.path, _text(document, section), words(query), document.name)
            if records.weight(ref) > room:
                notes.append("the sections shown are bounded in size")
                break
            room -= records.weight(ref)
            notes += [note] if note else []
            refs.append(ref)
            levels.append(f"{section.path}: {_relevance(scores[at] / scores[best[0]], document)}")
        if len(refs) < len(best):
            notes.insert(0, f"{len(best) - len(refs)} of {len(best)} matching sections not shown, the weaker ones")
        return ToolResult(
            status="success",
            retrieval_details=RetrievalDetails(
                evidence_refs=tuple(refs),
                matched=len(best),
                returned=len(refs),
                truncated=len(refs) < len(best),
                order="ranked",
                dropped_reason="; ".join(dict.fromkeys(notes)) or None,
                query_samples=(query,),
                retrieval_layers=("bm25 over sections",),
                relevance_levels=tuple(levels),
                source_documents=tuple(dict.fromkeys(ref.source for ref in refs if ref.source)),
            ),
            output=output,
            output_format=records.FORMAT,
            topic=service,
        )

    def _read(self) -> tuple[list[Document], list[str]]:
        documents, notes = [], []
        for file in self._files:
            name = file.name or file.path.name
            try:
                raw, note = whole(file.path)
            except OSError as error:
                notes.append(f"{name} could not be read: {error.strerror or error}")
                continue
            document = runbooks.read(name, records.decode(raw))
            notes += [f"{name}: {text}" for text in (note, document.note) if text]
            documents.append(document)
        return documents, notes

    def _nothing(self, files: int, sections: int, arguments: dict[str, Any], notes: list[str]) -> ToolResult:
        searched = (f"documents={files}", f"sections_scanned={sections}")
        return no_hit("all", searched, arguments, notes, truncated=False)


def rank(entries: Sequence[tuple[Document, Section]], query: str, service: str | None) -> list[float]:
    """A score for each section; obsolete documents count half, those of the asked service a quarter more."""
    texts = []
    for document, section in entries:
        title = words(f"{document.title} {section.heading}") * TITLE_WEIGHT
        texts.append([*title, *words(" ".join(str(value) for value in document.meta.values())), *words(section.raw)])
    scores = Bm25(texts).scores(words(query))
    named = service.casefold() if service else None
    for at, (document, _) in enumerate(entries):
        if document.obsolete:
            scores[at] *= 0.5
        if named and named in json.dumps(document.meta, default=str, ensure_ascii=False).casefold():
            scores[at] *= 1.25
    return scores


def _relevance(share: float, document: Document) -> str:
    level = "high" if share >= HIGH else "medium" if share >= MEDIUM else "low"
    return f"{level}, obsolete" if document.obsolete else level


def _text(document: Document, section: Section) -> str:
    return f"{document.banner()}\n{section.raw}"
