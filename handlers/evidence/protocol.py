"""The protocol of evidence tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streams.contract import EvidenceKind, InvocationStatus, RetrievalDetails


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What an agent is told of a tool. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    evidence_kind: EvidenceKind = "incident"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave. `status` tells no data apart from a failure; `output` is the full text, kept as a blob.

    A successful search without a hit has one ref of its own, `raw_path` `summary` (ruling 7); a failed call has
    its error text as ref `error`. `topic` is the tool's own grouping key (ruling 20).
    """

    status: InvocationStatus
    retrieval_details: RetrievalDetails | None = None
    error: str | None = None
    output: bytes | None = None
    output_format: str | None = None
    topic: str | None = None


class Tool(Protocol):
    """An evidence tool. `invoke` never raises for bad arguments or a failing backend: that is a result."""

    @property
    def spec(self) -> ToolSpec: ...

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult: ...

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        """The record at `raw_path` of a full output, also one that was not shown; None if there is none."""
        ...


class BadSource(ValueError):
    """A path or address that cannot serve as a source: says what, where, and what to do."""

    def __init__(self, source: str, why: str) -> None:
        super().__init__(f"{source}: {why}")
        self.source = source
        self.why = why
