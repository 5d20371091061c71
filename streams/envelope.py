"""The envelope: one self-contained CloudEvents 1.0 JSON object, and the draft it is made from.

A role decides on `Draft`s; the log stamps each with its place in the session (`n`, `time`, `prevhash`) and
stores the bytes of `encode`. The hash of an event is the SHA-256 of exactly those bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
from pydantic_core import PydanticSerializationError

from streams import identity, upcasts
from streams.events import LATEST, Blob, Payload

CONTENT_TYPE = "application/cloudevents+json"
HASH_HEADER = "vl-hash"
SOURCE = "urn:verdictlog"
TYPE_PREFIX = "verdictlog."
ZERO_HASH = "0" * 64
SEALED = b'{"sealed":"'  # how the body of every event of a sealed session begins
IN_BLOB = "dataref"  # the seal stands with the payload in a blob


class BadEnvelope(ValueError):
    """Bytes that are not one of our events."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Head:
    """Where a session's chain ends: the position that an append expects."""

    n: int = 0
    seq: int = 0
    hash: str = ZERO_HASH
    time: str = ""
    sealed: bool = False  # what is appended is sealed (streams.sealing); for a new session: whatever the setting is


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that was decided on and is not yet placed in the log."""

    payload: Payload
    actor: str
    turn: int = 0
    round: int = 0
    attempt: int = 0
    cause: str = ""
    ordinal: int = 0
    correlation: str = ""
    traceparent: str = ""

    def id(self, session: str) -> str:
        """The deterministic id: the same decision has the same id, however often it is made."""
        return identity.event_id(
            session, self.turn, self.round, self.attempt, self.actor, self.payload.TYPE, self.cause, self.ordinal
        )


class Sealed(NamedTuple):
    """A payload as a sealed session stores it: JSON without its text, and the text enciphered ("" for none)."""

    data: bytes
    seal: str


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it stands in the log. `type` and `schema` are those that were stored, `data` is today's payload.

    `also`: what an old event says beside `data`, where its type was split since (`upcasts.Split`).
    """

    id: str
    type: str
    schema: int
    session: str
    n: int
    turn: int
    round: int
    attempt: int
    time: str
    actor: str
    cause: str
    correlation: str
    prevhash: str
    traceparent: str
    data: Payload
    hash: str
    body: bytes = field(repr=False)
    seq: int = 0
    also: tuple[Payload, ...] = ()
    hidden: bool = False  # its text is sealed, and the key is not here: `data` is what is left of it

    @property
    def head(self) -> Head:
        return Head(self.n, self.seq, self.hash, self.time, self.body.startswith(SEALED))

    @property
    def told(self) -> tuple[Event, ...]:
        """The event once for each thing that it says; nearly always itself."""
        if not self.also:
            return (self,)
        return tuple(replace(self, type=said.TYPE, data=said, also=()) for said in (self.data, *self.also))

    def at(self, seq: int) -> Event:
        """The same event, stored at position `seq`."""
        return Event(
            self.id,
            self.type,
            self.schema,
            self.session,
            self.n,
            self.turn,
            self.round,
            self.attempt,
            self.time,
            self.actor,
            self.cause,
            self.correlation,
            self.prevhash,
            self.traceparent,
            self.data,
            self.hash,
            self.body,
            seq,
            self.also,
            self.hidden,
        )


def iso(moment: datetime) -> str:
    """UTC with milliseconds and `Z`; strings of this form compare as times do."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp(
    session: str, head: Head, draft: Draft, now: datetime, dataref: Blob | None = None, sealed: Sealed | None = None
) -> Event:
    """Place `draft` after `head`. `time` never goes back within a session, whatever the clock does.

    With `dataref` the payload stands in that blob (CloudEvents' dataref extension: a claim check) and the body
    only names it; the hash still covers it, because the blob is named by its own hash. `sealed` is stored in the
    payload's place, its seal in the attribute of that name.
    """
    n = head.n + 1
    time = max(head.time, iso(now))
    event_id = draft.id(session)
    kind = draft.payload.TYPE
    attributes = orjson.dumps(
        {
            **({} if sealed is None else {"sealed": sealed.seal if dataref is None else IN_BLOB}),
            **({} if dataref is None else {"dataref": f"blob:{dataref.sha256}:{dataref.size_bytes}:{dataref.chunks}"}),
            "specversion": "1.0",
            "id": event_id,
            "source": SOURCE,
            "type": TYPE_PREFIX + kind,
            "subject": f"{session}/{n}",
            "time": time,
            "datacontenttype": "application/json",
            "dataschema": f"urn:verdictlog:{kind}:{draft.payload.SCHEMA}",
            "session": session,
            "turn": draft.turn,
            "round": draft.round,
            "attempt": draft.attempt,
            "n": n,
            "cause": draft.cause,
            "correlation": draft.correlation or f"{session}/{draft.turn}",
            "actor": draft.actor,
            "prevhash": head.hash,
            "traceparent": draft.traceparent,
        }
    )
    # The payload's JSON is spliced in as it was written: parsing it to write it again would double the cost.
    payload, data = _encoded(draft.payload)
    if sealed is not None:
        data = sealed.data
    body = attributes if dataref is not None else b'%b,"data":%b}' % (attributes[:-1], data)
    return Event(
        id=event_id,
        type=kind,
        schema=draft.payload.SCHEMA,
        session=session,
        n=n,
        turn=draft.turn,
        round=draft.round,
        attempt=draft.attempt,
        time=time,
        actor=draft.actor,
        cause=draft.cause,
        correlation=draft.correlation or f"{session}/{draft.turn}",
        prevhash=head.hash,
        traceparent=draft.traceparent,
        data=payload,
        hash=hashlib.sha256(body).hexdigest(),
        body=body,
    )


def payload_bytes(payload: Payload) -> bytes:
    """A payload's JSON: what stands in `data`, or in the blob that `dataref` names; lone surrogates as escapes."""
    return _encoded(payload)[1]


def _encoded(payload: Payload) -> tuple[Payload, bytes]:
    try:
        return payload, payload.__pydantic_serializer__.to_json(payload, exclude_none=not payload.NULLS)
    except PydanticSerializationError:
        return _encoded(well_formed(payload))


def well_formed(payload: Payload) -> Payload:
    """`payload` with every lone surrogate written as its escape: text of others may hold what UTF-8 cannot."""
    return type(payload).model_validate(_well_formed(payload.model_dump()))


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_well_formed(key): _well_formed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_well_formed(item) for item in value]
    return value


def dataref_of(body: bytes) -> Blob | None:
    """The blob that holds an event's payload, or None where the body holds it itself."""
    if b'"dataref":"blob:' not in body[:200]:
        return None
    _, sha256, size, chunks = str(orjson.loads(body)["dataref"]).split(":")
    return Blob(sha256=sha256, size_bytes=int(size), chunks=int(chunks))


def decode(body: bytes, seq: int = 0, referred: bytes | None = None) -> Event:
    """Read stored bytes, upcasting an old payload to today's class.

    `referred` is the payload where the body does not hold it: the content of the blob that `dataref_of(body)` names,
    or what was sealed. A sealed body, or sealed content of a blob, by itself gives what is left of the event.
    Raises BadEnvelope for bytes that are no event of ours, upcasts.UnknownEventType for a type or a schema
    that this program does not know.
    """
    try:
        raw: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadEnvelope(f"not JSON: {error}") from error
    if not isinstance(raw, Mapping):
        raise BadEnvelope("not an object")
    try:
        kind = str(raw["type"]).removeprefix(TYPE_PREFIX)
        schema = int(str(raw["dataschema"]).rsplit(":", 1)[1])
        held = raw["data"] if referred is None else orjson.loads(referred)
        hidden = bool(raw.get("sealed")) and referred is None
        if referred is not None and referred.startswith(SEALED):
            hidden, held = bool(held["sealed"]), held["data"]
        said = upcasts.upcast(kind, schema, held)
        payload, *also = [LATEST[today].model_validate(data) for today, data in said]
        return Event(
            id=raw["id"],
            type=kind,
            schema=schema,
            session=raw["session"],
            n=int(raw["n"]),
            turn=int(raw["turn"]),
            round=int(raw["round"]),
            attempt=int(raw["attempt"]),
            time=raw["time"],
            actor=raw["actor"],
            cause=raw["cause"],
            correlation=raw["correlation"],
            prevhash=raw["prevhash"],
            traceparent=raw.get("traceparent", ""),
            data=payload,
            hash=hashlib.sha256(body).hexdigest(),
            body=bytes(body),
            seq=seq,
            also=tuple(also),
            hidden=hidden,
        )
    except upcasts.UnknownEventType as error:
        place = f"event {raw.get('n')} of session {raw.get('session')}" + (f" (position {seq})" if seq else "")
        raise upcasts.UnknownEventType(kind, schema, place) from error
    except (KeyError, IndexError, TypeError) as error:
        raise BadEnvelope(f"missing or wrong attribute: {error!r}") from error
    except ValueError as error:
        raise BadEnvelope(str(error).replace("\n", " ")[:300]) from error
