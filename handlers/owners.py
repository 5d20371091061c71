"""Whose invocation is it: the look-up of ids that a session does not have (gate.md, `evidence.session_scope`)."""

from __future__ import annotations

import orjson

from streams import subjects
from streams.jetstream import JetStreamLog

LOOK_BACK = 50_000  # positions; an id that stands further back is told as unknown, which is refused just the same
KIND = "tool-invoked"


async def owners_of(log: JetStreamLog, ids: frozenset[str], session: str) -> frozenset[str]:
    """Those of `ids` that stand in another session than `session`, among the newest LOOK_BACK events."""
    last = await log.last_seq()
    wanted = {identifier: orjson.dumps(identifier) for identifier in ids}
    found: set[str] = set()
    batches = log.stored(max(0, last - LOOK_BACK))
    try:
        async for batch in batches:
            for message in batch:
                owner, _, kind = subjects.parse(message.subject)
                if kind == KIND and owner != session:
                    found.update(i for i, quoted in wanted.items() if b'"invocation_id":' + quoted in message.body)
            if batch[-1].seq >= last or found == ids:
                break
    finally:
        await batches.aclose()
    return frozenset(found)
