"""What the projector stores of an event: its position, its hash, its bytes, and its payload where they lack it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from streams.envelope import SEALED, Event, dataref_of, payload_bytes
from streams.events import LATEST
from streams.log import EventLog, event_of

_SCHEMA_KEY = b'"dataschema":"urn:verdictlog:'


class Row(NamedTuple):
    """One event, ready for the batch statement."""

    seq: int
    hash: str
    body: str
    payload: str | None = None


class StoredBody(Protocol):
    """A stored message: its position and its bytes."""

    @property
    def seq(self) -> int: ...

    @property
    def body(self) -> bytes: ...


@runtime_checkable
class BodyLog(Protocol):
    """A log that can also give stored messages undecoded: most events need no pydantic to be projected."""

    def stored(self, after: int = 0) -> AsyncIterator[Sequence[StoredBody]]:
        """Every message with seq > `after`, in order, in lists as they come, without end."""
        ...


def plain(body: bytes) -> bool:
    """Whether the body holds today's payload as it is: no blob, no seal, latest schema. False where that is not certain.

    The envelope's attributes stand behind the payload, so the last `dataschema` is the envelope's own.
    """
    at = body.rfind(_SCHEMA_KEY)
    if at < 0 or body.startswith(SEALED) or b'"dataref":"blob:' in body[:200]:
        return False
    kind, _, schema = body[at + len(_SCHEMA_KEY) : body.index(b'"', at + len(_SCHEMA_KEY))].decode().partition(":")
    known = LATEST.get(kind)
    return known is not None and schema == str(known.SCHEMA)


def of_body(seq: int, body: bytes) -> Row:
    """The row of a `plain` body."""
    return Row(seq, hashlib.sha256(body).hexdigest(), body.decode())


def of_event(event: Event) -> Row:
    """The row of a decoded event; its payload stands beside the body where the body holds another, or none."""
    sealed = event.head.sealed and not event.hidden
    beside = sealed or dataref_of(event.body) is not None or event.schema != type(event.data).SCHEMA
    return Row(event.seq, event.hash, event.body.decode(), payload_bytes(event.data).decode() if beside else None)


async def follow(log: EventLog, after: int) -> AsyncIterator[list[Row]]:
    """Rows of every event with seq > `after`, in order, in lists as they come, without end."""
    if isinstance(log, BodyLog):
        async for messages in log.stored(after):
            yield [
                of_body(m.seq, m.body) if plain(m.body) else of_event(await event_of(log, m.body, m.seq))
                for m in messages
            ]
    else:
        async for event in log.follow(after):
            yield [of_event(event)]
