"""A search that found nothing, as a finding of its own (ruling 7): one quotable ref `summary`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from handlers.evidence import records
from handlers.evidence.protocol import ToolResult
from streams.contract import EvidenceRef, RetrievalDetails


def no_hit(
    window: str,
    searched: Iterable[str],
    arguments: Mapping[str, Any],
    notes: Iterable[str],
    *,
    truncated: bool,
    terms: tuple[str, ...] = (),
    topic: str | None = None,
) -> ToolResult:
    """`no_data` with hits, window and status first, then what was searched (`key=value` each), the echo last.

    What stands behind `query=` is not evidence text. `notes` say what could not be searched; `truncated` if that
    may have held a hit.
    """
    echo = json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)
    text = " ".join(("hits=0", f"window={window}", "status=ok", *searched, f"query={echo}"))
    return ToolResult(
        status="no_data",
        retrieval_details=RetrievalDetails(
            evidence_refs=(EvidenceRef(raw_path="summary", text=text),),
            matched=0,
            returned=0,
            truncated=truncated,
            dropped_reason="; ".join(notes) or None,
            query_samples=terms or None,
        ),
        output=records.pack_one("summary", text),
        output_format=records.FORMAT,
        topic=topic,
    )


def outside(since: float | None, until: float | None, first: float, last: float, told: str) -> list[str]:
    """A note where nothing that was read (from `first` to `last`, `told` as text) lies in the window asked for: that
    no line was found there shows nothing about it, and another window would."""
    if (since is None or since <= last) and (until is None or until >= first):
        return []
    return [f"all that was read is of {told}: nothing is known about the window that was asked for"]
