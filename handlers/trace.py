"""The tool trace summary: what was looked for and found, small enough to be read whole (TRC-1 to TRC-6).

Made from invocation events alone, so the same events give the same items anywhere. It is navigation and audit
context; the evidence that a claim rests on is shown to the Verifier apart from it (GAT-12).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Literal

import orjson

from streams.contract import EvidenceRef, TraceItem
from streams.events import ToolInvoked

LIMIT_BYTES = 2048
# Refs that state that a search found nothing, or why it failed (ruling 7): no hit.
NOT_A_HIT = frozenset({"summary", "error"})
LISTS = ("query_samples", "retrieval_layers", "relevance_levels", "source_documents")
SHOWN_REFS = 3


def summarise(rounds: Sequence[Sequence[ToolInvoked]], limit_bytes: int = LIMIT_BYTES) -> tuple[TraceItem, ...]:
    """One item for each evidence call, or for the calls of one tool, topic and round; rounds in their order.

    Helpers are left out. Calls merge only where the tool named a topic (ruling 20), and only while the ids fit.
    An item's JSON takes at most `limit_bytes`, however much a call returned; ids are never shortened.
    """
    return tuple(
        _item(calls, limit_bytes) for calls_of_round in rounds for calls in _groups(calls_of_round, limit_bytes)
    )


def has_hit(call: ToolInvoked) -> bool:
    """Whether a call found something: it succeeded, and neither its count nor its refs say that it found nothing.

    A successful call of old data, which recorded neither, counts as one: its status is all there is.
    """
    if call.status != "success":
        return False
    details = call.retrieval_details
    if details is None:
        return True
    if details.matched is not None:
        return details.matched > 0
    return details.evidence_refs is None or any(ref.raw_path not in NOT_A_HIT for ref in details.evidence_refs)


def _groups(calls: Iterable[ToolInvoked], limit_bytes: int) -> list[list[ToolInvoked]]:
    groups: list[list[ToolInvoked]] = []
    last: dict[tuple[str, str, str], list[ToolInvoked]] = {}
    for call in calls:
        if call.evidence_kind == "helper":
            continue
        key = (call.tool_name, call.evidence_kind, call.topic or "")
        group = last.get(key) if call.topic else None
        if group is None or sum(len(c.invocation_id.encode()) + 3 for c in (*group, call)) > limit_bytes // 2:
            group = last[key] = []
            groups.append(group)
        group.append(call)
    return groups


def _item(calls: Sequence[ToolInvoked], limit_bytes: int) -> TraceItem:
    shown = next((call for call in calls if has_hit(call)), calls[0])
    hit = has_hit(shown)
    level: Literal["direct", "indirect", "none"] = "none"
    if hit:
        level = "indirect" if shown.evidence_kind == "knowledge" else "direct"
    item = TraceItem(
        trace_ref=f"trace-{calls[0].invocation_id}",
        tool_name=shown.tool_name,
        success=hit,
        input_summary=json.dumps(shown.arguments, ensure_ascii=False, sort_keys=True, default=str),
        output_summary=_output(shown, hit),
        evidence_level=level,
        source_invocation_ids=tuple(call.invocation_id for call in calls),
        **{name: _values(calls, name) for name in LISTS},
    )
    if len(calls) > 1:
        failed = sum(call.status == "error" for call in calls)
        no_hit = sum(not has_hit(call) for call in calls) - failed
        item = item.model_copy(update={"repeated_count": len(calls), "failed_count": failed, "no_hit_count": no_hit})
    return _fit(item, limit_bytes)


def _output(call: ToolInvoked, hit: bool) -> str:
    details = call.retrieval_details
    refs: tuple[EvidenceRef, ...] = (details.evidence_refs or ()) if details else ()
    quoted = [f"{ref.raw_path}: {_clip(ref.text, 400)}" for ref in refs[:SHOWN_REFS]]
    if call.status == "error":
        return "; ".join(["failed", *([_clip(call.error, 400)] if call.error else quoted)])
    if not hit:
        return "; ".join(["no hit", *quoted])
    counts = []
    if details and details.matched is not None:
        counts.append(f"{details.matched} matched")
    if details and details.returned is not None:
        counts.append(f"{details.returned} returned")
    if details and details.truncated:
        counts.append("cut")
    return "; ".join([", ".join(counts) or "hit", *quoted])


def _values(calls: Sequence[ToolInvoked], name: str) -> tuple[str, ...] | None:
    found: dict[str, None] = {}
    for call in calls:
        found.update(dict.fromkeys(getattr(call.retrieval_details, name, None) or ()))
    return tuple(found)[:8] or None


def _fit(item: TraceItem, limit_bytes: int) -> TraceItem:
    """Shorten what is for reading, never the ids, until the item is within its bound."""
    width = limit_bytes
    while width > 8 and len(orjson.dumps(item.model_dump(mode="json"))) > limit_bytes:
        width //= 2
        lists = {name: tuple(_clip(v, width // 4) for v in getattr(item, name) or ()) or None for name in LISTS}
        item = item.model_copy(
            update={
                "input_summary": _clip(item.input_summary, width // 2),
                "output_summary": _clip(item.output_summary, width),
                **(lists if width > limit_bytes // 64 else dict.fromkeys(LISTS)),
            }
        )
    return item


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
