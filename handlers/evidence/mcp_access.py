"""MCP servers as they are configured: `[mcp.NAME]` in verdictlog.toml, or `--mcp NAME=COMMAND` and `--mcp NAME=URL`."""

from __future__ import annotations

import re
import shlex
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, model_validator

from handlers.evidence.access import without_secrets
from handlers.evidence.protocol import BadSource

Bears = Literal["incident", "knowledge", "helper", "off"]
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


class McpServer(BaseModel):
    """How a server is reached, and what its tools' results are worth. None of the secrets is part of an event."""

    command: str | None = Field(None, description="program of a server that speaks over stdin and stdout")
    args: list[str] = Field(default_factory=list)
    env: dict[str, SecretStr] = Field(default_factory=dict, description="beside a minimal environment of its own")
    url: str | None = Field(None, description="address of a server that speaks streamable HTTP")
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    tools: dict[str, Bears] = Field(default_factory=dict, description="tool -> the kind of evidence it bears, or off")
    others: Bears = Field(
        "incident", description="for tools that are not named; those that say that they change something are off"
    )
    timeout_s: float = Field(60.0, gt=0, description="of one call; never more than a third of what the turn has left")
    max_bytes: int = Field(32 << 20, gt=0, description="a longer answer is refused before it fills memory")

    @model_validator(mode="after")
    def _one_way(self) -> McpServer:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either a command or a url")
        return self


def read_flag(text: str, configured: dict[str, McpServer]) -> tuple[str, McpServer]:
    """(name, server) of `NAME`, `NAME=COMMAND ARGS` or `NAME=URL`; what is configured for the name stays. Raises BadSource."""
    name, sign, way = text.partition("=")
    if not _NAME.fullmatch(name):
        raise BadSource(name[:40], "is no name for an MCP server; write NAME=COMMAND or NAME=URL")
    held = configured.get(name)
    if not sign:
        if held is None:
            raise BadSource(name, f"no [mcp.{name}] in verdictlog.toml; write {name}=COMMAND or {name}=URL")
        return name, held
    if way.startswith(("http://", "https://")):
        if without_secrets(way)[1] is not None:
            raise BadSource(name, f"a password does not belong into an address; set headers in [mcp.{name}]")
        given: dict[str, object] = {"url": way, "command": None, "args": []}
    else:
        try:
            words = shlex.split(way)
        except ValueError as error:
            raise BadSource(name, f"the command cannot be read ({error})") from error
        if not words:
            raise BadSource(name, "the command is empty")
        given = {"command": words[0], "args": words[1:], "url": None}
    return name, McpServer.model_validate({**(held.model_dump() if held else {}), **given})
