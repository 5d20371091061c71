"""`current_time`: a helper, which bears no evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from handlers.evidence.protocol import ToolResult, ToolSpec
from streams.contract import EvidenceRef, RetrievalDetails


class CurrentTime:
    """The present time in UTC."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.spec = ToolSpec(
            name="current_time", description="The present time in UTC, ISO 8601. No evidence.", evidence_kind="helper"
        )

    async def invoke(self, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002
        text = self._now().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return ToolResult(
            status="success",
            retrieval_details=RetrievalDetails(
                evidence_refs=(EvidenceRef(raw_path="result", text=text),), matched=1, returned=1, truncated=False
            ),
            output=text.encode(),
            output_format="text",
        )

    def resolve(self, output: bytes, raw_path: str) -> str | None:
        return output.decode() if raw_path == "result" else None
