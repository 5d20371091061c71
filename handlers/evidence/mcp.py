"""Tools of MCP servers as evidence tools. Each text that a tool gives is quotable line by line: `lines[3]`, and
`content[1]:lines[3]` where it gives several; JSON counts as elsewhere. What is no text is told and cannot be quoted.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from handlers.evidence import records
from handlers.evidence.bodies import Body, read_body
from handlers.evidence.json_records import Flat
from handlers.evidence.logs import failed
from handlers.evidence.mcp_access import Bears, McpServer
from handlers.evidence.mcp_connection import McpConnection, McpFailed
from handlers.evidence.no_hit import no_hit
from handlers.evidence.protocol import BadSource, ToolResult, ToolSpec
from handlers.evidence.recorded import LIMIT, result_of
from handlers.evidence.sources import SourceFile
from streams.events import ForeignTool

MAX_CHARS = 16 << 20
DESCRIPTION_CHARS = 2_000


async def offered(servers: Mapping[str, McpServer]) -> dict[str, ForeignTool]:
    """The tools of all servers that bear evidence or help, by the names they have here. Raises BadSource."""
    tools: dict[str, ForeignTool] = {}
    for name, server in servers.items():
        connection = McpConnection(name, server)
        try:
            listed = await connection.tools()
        except McpFailed as error:
            raise BadSource(f"MCP server {name}", str(error)) from error
        finally:
            await connection.close()
        unknown = sorted(set(server.tools) - {tool.name for tool in listed})
        if unknown:
            there = ", ".join(tool.name for tool in listed[:20]) or "none"
            raise BadSource(f"MCP server {name}", f"has no tool {', '.join(unknown)}; it has: {there}")
        for tool in listed:
            kind = _bears(tool, server)
            if kind != "off":
                tools[_name(name, tool.name, tools)] = ForeignTool(
                    server=name,
                    tool=tool.name,
                    description=(tool.description or tool.title or "")[:DESCRIPTION_CHARS],
                    parameters=tool.input_schema,
                    evidence_kind=kind,
                )
    return tools


def _bears(tool: Tool, server: McpServer) -> Bears:
    if tool.name in server.tools:
        return server.tools[tool.name]
    hints = tool.annotations
    changes = hints is not None and (hints.read_only_hint is False or hints.destructive_hint is True)
    return "off" if changes else server.others


def _name(server: str, tool: str, taken: Mapping[str, ForeignTool]) -> str:
    # Models' endpoints take no other characters in a tool's name.
    base = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}_{tool}")[:60]
    return next(own for k in range(1, len(taken) + 2) if (own := base if k == 1 else f"{base}_{k}") not in taken)


class McpTool:
    """One tool of a server. `connection` None: this process does not know how to reach it."""

    def __init__(self, name: str, foreign: ForeignTool, connection: McpConnection | None) -> None:
        self._foreign = foreign
        self._connection = connection
        self.spec = ToolSpec(name, foreign.description, foreign.parameters, foreign.evidence_kind)

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:
        return await self.invoke_within(arguments, None)

    async def invoke_within(self, arguments: Mapping[str, Any], seconds: float | None) -> ToolResult:
        """The same, ended as a failure after so many seconds."""
        if self._connection is None:
            return failed(f"MCP server {self._foreign.server} is not configured here: set [mcp.{self._foreign.server}]")
        try:
            said = await self._connection.call(self._foreign.tool, dict(arguments), seconds)
        except McpFailed as error:
            return failed(str(error))
        source = f"{self._foreign.server}/{self._foreign.tool}"
        return await asyncio.to_thread(read, said, source, dict(arguments))

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return records.find(output, raw_path)


def read(said: CallToolResult, source: str, arguments: dict[str, Any]) -> ToolResult:
    """What a server said, as a result: an error, no data with a summary, or records."""
    texts, notes = _texts(said)
    if said.is_error:
        return failed("\n".join(texts) or f"{source} failed and gave no reason")
    bodies = [(SourceFile(Path(source), f"content[{at}]" if len(texts) > 1 else ""), read_body(text)) for at, text in enumerate(texts)]  # fmt: skip
    hits = [(file, entry) for file, body in bodies if body.status == "success" for entry in body.entries]
    errors = [body.text for _, body in bodies if body.status == "error"]
    if errors and not hits:
        return failed("\n".join(errors))
    notes += [f"a part of it is a failed access, which is no evidence of a state: {text}" for text in errors]
    if not hits:
        return _nothing([body for _, body in bodies], arguments, notes)
    return result_of(_apart(hits), None, (), LIMIT, notes)


def _apart(hits: Sequence[tuple[SourceFile, Flat]]) -> list[tuple[SourceFile, Flat]]:
    return [(file, Flat(records.clean_path(entry.path), entry.text)) for file, entry in hits]


def _texts(said: CallToolResult) -> tuple[list[str], list[str]]:
    texts: list[str] = []
    notes: list[str] = []
    for block in said.content:
        match block:
            case TextContent(text=text):
                texts.append(text)
            case EmbeddedResource(resource=TextResourceContents(text=text)):
                texts.append(text)
            case ResourceLink(name=name, uri=uri):
                texts.append(f"{name} {uri}")
            case ImageContent(mime_type=kind, data=data) | AudioContent(mime_type=kind, data=data):
                notes.append(f"a part of type {kind} with {len(data)} characters cannot be quoted and is left out")
            case _:
                notes.append(f"a part of type {block.type} cannot be quoted and is left out")
    if not any(text.strip() for text in texts) and said.structured_content:
        texts = [json.dumps(said.structured_content, ensure_ascii=False, indent=1)]
    if sum(map(len, texts)) > MAX_CHARS:
        notes.append(f"the output is longer than {MAX_CHARS} characters: the rest is left out")
        texts = _cut(texts)
    return texts, notes


def _cut(texts: Sequence[str]) -> list[str]:
    room, kept = MAX_CHARS, []
    for text in texts:
        kept.append(text[:room])
        room -= len(kept[-1])
    return [text for text in kept if text]


def _nothing(bodies: Sequence[Body], arguments: dict[str, Any], notes: list[str]) -> ToolResult:
    said = (f"body={json.dumps(body.text, ensure_ascii=False)}" for body in bodies if body.text)
    return no_hit("all", said, arguments, notes, truncated=bool(notes))
