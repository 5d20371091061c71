"""The log's protocol: append with the expected position, read, follow, blobs. Two implementations, one suite."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import orjson

from streams import sealing
from streams.envelope import SEALED, BadEnvelope, Draft, Event, Head, dataref_of, decode
from streams.events import Blob

EVENT_LIMIT_BYTES = 256 * 1024  # a larger payload goes to a blob and the body names it (`dataref`)
PAYLOAD_LIMIT_BYTES = 64 * 1024 * 1024
BLOB_CHUNK_BYTES = 128 * 1024
NO_ROOM = frozenset({10023, 10047, 10077})  # on the disk, in the server's share of it, in the stream's


class WrongExpectedVersion(Exception):
    """Somebody else appended to the session first: read it again and decide anew."""

    def __init__(self, session: str, expected: int, actual: int) -> None:
        super().__init__(f"session {session}: expected its last event at {expected}, found {actual}")
        self.session = session
        self.expected = expected
        self.actual = actual


class EventTooLarge(ValueError):
    """A payload over PAYLOAD_LIMIT_BYTES: refused before anything is stored, never cut."""

    def __init__(self, session: str, kind: str, size_bytes: int) -> None:
        super().__init__(f"session {session}: {kind} of {size_bytes} bytes is over {PAYLOAD_LIMIT_BYTES}")
        self.session = session
        self.kind = kind
        self.size_bytes = size_bytes


class EpochDropped(ValueError):
    """The session's epoch was archived and dropped: it can be read from the archive, and nothing follows it."""

    def __init__(self, session: str, epoch: str) -> None:
        super().__init__(f"session {session}: epoch {epoch} was archived and dropped, nothing can be added to it")
        self.session = session
        self.epoch = epoch


class LogUnavailable(Exception):
    """The store cannot be reached, or did not acknowledge in time; nothing is known to be lost."""


class LogFull(LogUnavailable):
    """The store has no room for another event; what it acknowledged before is there."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the store has no room left ({why}): make room on its disk and run this again; what was recorded is not lost"
        )
        self.why = why


class LogWentBackwards(Exception):
    """The log ends before a position that was already seen, or was created anew: stop and look."""


class MissingBlob(LookupError):
    """A blob, or a chunk of it, is not in the store."""

    def __init__(self, sha256: str) -> None:
        super().__init__(f"blob {sha256} is not in the store, or not whole")
        self.sha256 = sha256


class SessionKey(NamedTuple):
    """A sealed session's key, and whose it is."""

    session: str
    key: bytes


class EventLog(Protocol):
    """Sessions of events, each a hash chain; positions (`seq`) count over all sessions and only grow."""

    async def append(self, session: str, drafts: Sequence[Draft], expected: Head, now: datetime) -> list[Event]:
        """Append `drafts` after `expected`, each acknowledged before the next; return them as stored.

        Safe to repeat: if after a conflict the session's events from `expected` on begin with these very
        drafts (by id), the missing ones are appended and all are returned. Otherwise WrongExpectedVersion;
        EpochDropped for a session of an epoch that was dropped, sealing.NoKey for one whose text cannot be sealed.
        """
        ...

    async def read(
        self, session: str, upto: int | None = None, at_least: int | None = None, after: Head | None = None
    ) -> list[Event]:
        """The session's events in order, [] if there is none.

        `upto`: only events whose seq is at most this. `at_least`: wait (bounded) until an event with this seq
        or a later one is seen; LogUnavailable if it does not come. `after`: only what follows this head, for a
        reader that has folded the session up to there.
        """
        ...

    def follow(self, after: int = 0) -> AsyncGenerator[Event, None]:
        """Every event with seq > `after`, in order, without end; the consumer closes the iterator (`aclosing`)."""
        ...

    async def last_seq(self) -> int:
        """The position of the newest event, 0 for an empty log."""
        ...

    async def put_blob(self, data: bytes, key: SessionKey | None = None) -> Blob:
        """Store `data` under its SHA-256, in chunks; storing it again changes nothing. `key`: sealed with it."""
        ...

    async def get_blob(self, blob: Blob) -> bytes:
        """The content of `blob`, checked against its hash; MissingBlob if it is not whole, NoKey if it is sealed."""
        ...

    def key(self, session: str) -> bytes | None:
        """The key that opens a sealed session's text, where it is here."""
        ...

    def key_after(self, session: str, head: Head) -> SessionKey | None:
        """The key that seals what is appended after `head`; None where nothing is. NoKey if it is not here.

        For a new session that is to be sealed it is made.
        """
        ...


def refused(subject: str, refusal: Mapping[str, Any]) -> LogUnavailable:
    """What a server's refusal (`err_code`, `description`) of a publish to `subject` is to the caller."""
    told = str(refusal.get("description", refusal))
    if refusal.get("err_code") in NO_ROOM:
        return LogFull(told)
    return LogUnavailable(f"{subject}: the server refused it: {told}")


def blob_of(data: bytes) -> Blob:
    """What `data` is called in the blob store."""
    chunks = max(1, -(-len(data) // BLOB_CHUNK_BYTES))
    return Blob(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data), chunks=chunks)


async def event_of(log: EventLog, body: bytes, seq: int) -> Event:
    """Stored bytes as an event, its payload fetched where it stands in a blob.

    Raises what `envelope.decode` raises, and MissingBlob.
    """
    return decode(body, seq, await referred_of(log, body))


async def referred_of(log: EventLog, body: bytes) -> bytes | None:
    """The payload of the event `body` where a blob holds it, or where its text is sealed; None where the body holds it.

    Without the key of what is sealed: what the blob holds, or None, which `decode` reads as what is left of the event.
    """
    blob = dataref_of(body)
    held = None if blob is None else await log.get_blob(blob)
    if not body.startswith(SEALED) or not sealing.seal_of(held or body):
        return held
    try:
        stored = orjson.loads(body)
        session, event_id = str(stored["session"]), str(stored["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadEnvelope(f"missing or wrong attribute: {error!r}") from error
    key = log.key(session)
    return held if key is None else sealing.unsealed(key, event_id, held or body)
