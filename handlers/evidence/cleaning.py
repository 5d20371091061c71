"""A tool's result without secrets: what is shown, what is kept in full, and what was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from handlers.evidence import records
from handlers.evidence.protocol import ToolResult
from handlers.redaction import Redact
from streams.contract import EvidenceRef, RetrievalDetails


def cleaned(result: ToolResult, redact: Redact) -> tuple[ToolResult, dict[str, int]]:
    """`result` with placeholders for secrets, and how many of each kind its full output had (its refs, where it has none)."""
    counts: Counter[str] = Counter()
    output = result.output
    if output is not None:
        output, found = _bytes(output, redact)
        counts.update(found)
    packed = output if result.output_format == records.FORMAT else None

    def shown(ref: EvidenceRef) -> EvidenceRef:
        # A slice counts the characters of its record as it is kept, and must not begin inside a secret.
        whole = records.find(packed, ref.raw_path) if packed is not None and ":chars[" in ref.raw_path else None
        return ref.model_copy(
            update={"text": take(ref.text) if whole is None else whole, "source": ref.source and redact(ref.source)[0]}
        )

    def take(text: str) -> str:
        clean, found = redact(text)
        if result.output is None:
            counts.update(found)
        return clean

    details = result.retrieval_details
    error = None if result.error is None else take(result.error)
    changed = replace(
        result, output=output, error=error, retrieval_details=details and _details(details, shown, redact)
    )
    return changed, dict(counts)


def _details(details: RetrievalDetails, shown: Any, redact: Redact) -> RetrievalDetails:
    refs, samples = details.evidence_refs, details.query_samples
    return details.model_copy(
        update={
            "evidence_refs": None if refs is None else tuple(shown(ref) for ref in refs),
            "query_samples": None if samples is None else tuple(redact(text)[0] for text in samples),
            "dropped_reason": details.dropped_reason and redact(details.dropped_reason)[0],
        }
    )


def _bytes(output: bytes, redact: Redact) -> tuple[bytes, dict[str, int]]:
    try:
        text, found = redact(output.decode("utf-8", "surrogatepass"))
        return text.encode("utf-8", "surrogatepass"), found
    except UnicodeDecodeError:
        text, found = redact(output.decode("latin-1"))
        return text.encode("latin-1", "replace"), found


def clean_arguments(arguments: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """What a model asked for, as it may be recorded."""
    return dict(redact.value(dict(arguments))[0])
