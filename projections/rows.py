"""What the projector stores of an event: its position, its hash, its bytes, and its payload where they lack it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from streams.envelope import SEALED, Event, decode, payload_bytes
from streams.events import LATEST
from streams.log import EventLog, referred_of

_SCHEMA_KEY = b'"dataschema":"urn:verdictlog:'


class Row(NamedTuple):
    """One thing that an event says, ready for the batch statement; nearly always the event says one.

    `kept`: the payload of that time, where a blob holds it or it was sealed. `today`: the payload as tables are derived from it, where the
    body holds another or none; `kind`: its type, where it is not the event's own. `also`: (type, payload) of what an
    old event says beside it; `part` counts those from 1.
    """

    seq: int
    hash: str
    body: str
    kept: str | None = None
    today: str | None = None
    kind: str | None = None
    part: int = 0
    also: tuple[tuple[str, str], ...] = ()

    def parts(self) -> list[Row]:
        """One row for each thing that the event says."""
        rest = [
            self._replace(kept=None, today=today, kind=kind, part=i, also=())
            for i, (kind, today) in enumerate(self.also, 1)
        ]
        return [self, *rest]


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

    The envelope's attributes stand before the payload, in which anybody may write anything: the first `dataschema`
    is the envelope's own.
    """
    at = body.find(_SCHEMA_KEY)
    if at < 0 or body.startswith(SEALED) or b'"dataref":"blob:' in body[:200]:
        return False
    kind, _, schema = body[at + len(_SCHEMA_KEY) : body.index(b'"', at + len(_SCHEMA_KEY))].decode().partition(":")
    known = LATEST.get(kind)
    return known is not None and schema == str(known.SCHEMA)


def of_body(seq: int, body: bytes) -> Row:
    """The row of a `plain` body."""
    return Row(seq, hashlib.sha256(body).hexdigest(), body.decode())


def of_event(event: Event, referred: bytes | None = None) -> Row:
    """The row of a decoded event; `referred`: its payload where the body lacks it (`referred_of`)."""
    kind = None if event.type == event.data.TYPE else event.data.TYPE
    whole = referred is None and kind is None and event.schema == event.data.SCHEMA
    return Row(
        event.seq,
        event.hash,
        event.body.decode(),
        None if referred is None else referred.decode(),
        None if whole else payload_bytes(event.data).decode(),
        kind,
        also=tuple((said.TYPE, payload_bytes(said).decode()) for said in event.also),
    )


async def follow(log: EventLog, after: int) -> AsyncIterator[list[Row]]:
    """Rows of every event with seq > `after`, in order, in lists as they come, without end.

    An event that cannot be read is an error (UnknownEventType, BadEnvelope, MissingBlob), after all before it.
    """
    if isinstance(log, BodyLog):
        async for messages in log.stored(after):
            rows: list[Row] = []
            try:
                for m in messages:
                    rows.append(of_body(m.seq, m.body) if plain(m.body) else await _read(log, m))  # noqa: PERF401  what was read before an error counts
            except (ValueError, LookupError):
                yield rows
                raise
            yield rows
    else:
        async for event in log.follow(after):
            yield [of_event(event, await referred_of(log, event.body))]


async def _read(log: EventLog, message: StoredBody) -> Row:
    referred = await referred_of(log, message.body)
    return of_event(decode(message.body, message.seq, referred), referred)
