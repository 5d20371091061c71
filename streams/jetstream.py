"""The log on JetStream: append with the expected sequence, direct reads, follow, blobs."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import Header

from streams import chain, sealing, subjects
from streams.directget import DirectGet, Stored
from streams.envelope import (
    CONTENT_TYPE,
    HASH_HEADER,
    BadEnvelope,
    Draft,
    Event,
    Head,
    Sealed,
    payload_bytes,
    stamp,
)
from streams.events import Blob
from streams.follower import Follower, StreamState, stream_state
from streams.identity import check_session, epoch_of
from streams.inbox import Inbox, NoReply
from streams.keys import Keys
from streams.log import (
    BLOB_CHUNK_BYTES,
    EVENT_LIMIT_BYTES,
    PAYLOAD_LIMIT_BYTES,
    EpochDropped,
    EventTooLarge,
    LogUnavailable,
    MissingBlob,
    SessionKey,
    WrongExpectedVersion,
    blob_of,
    event_of,
    refused,
)
from streams.quickclient import QuickClient
from streams.sealing import NoKey
from streams.session import BrokenChain
from streams.topology import BLOBS_NAME, STREAM_NAME

EXPECTED_SUBJECT = f"{Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value}-Subject"
EXPECTED_SEQUENCE = Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value
WRONG_SEQUENCE = frozenset({10071, 10164})  # the second: in a cluster, while another append is on its way
NOT_READY = 10008  # JetStream itself is starting
BLOB_WRITES = 8  # chunks on their way at once
RETRY_S = 0.05
READ_TIMEOUT_S = 5.0  # a busy machine is not a dead server
LAG_S = (0.02, 0.1, 0.3)  # waits for a replica that lags

ErrorHook = Callable[[Exception], Awaitable[None]]


async def connect(
    url: str,
    credentials: str | Path | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    within_s: float = 5.0,
    on_error: ErrorHook | None = None,
    name: str = "verdictlog",
) -> Client:
    """A client that reconnects for ever once it was connected. LogUnavailable if that takes over `within_s` seconds.

    `url`: one server or several, with commas. `credentials`: a `.creds` file, or a file with an nkey seed.
    """
    client = QuickClient()
    try:
        async with asyncio.timeout(within_s):
            await client.connect(servers=url.split(","), name=name, **options(credentials, tls, on_error))
    except (TimeoutError, NatsError, OSError, ValueError, ImportError) as error:
        # ValueError: no such address. ImportError: the library signs with a package of its own.
        why = client.last_error or error
        await disconnect(client)
        told = (str(why) or "no answer").replace(url, without_secrets(url))
        raise LogUnavailable(f"cannot reach NATS at {without_secrets(url)}: {told}") from error
    return client


def without_secrets(url: str) -> str:
    """Server addresses as people may see them: without user, password or token."""
    return ",".join(re.sub(r"^(\w+://)?[^/]*@", r"\1", one.strip()) for one in url.split(","))


async def disconnect(client: Client) -> None:
    """Close `client`, quietly also where the server is gone or never was: its own `close` raises then, or asserts."""
    with suppress(NatsError, OSError, AssertionError):
        await client.close()


def options(
    credentials: str | Path | None = None,
    tls: ssl.SSLContext | None = None,
    on_error: ErrorHook | None = None,
) -> dict[str, Any]:
    """Client options, also for whoever makes the connection itself (FastStream's broker)."""
    chosen: dict[str, Any] = {
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.1,
        "connect_timeout": 2,
        "ping_interval": 20,
        "error_cb": on_error or _quiet,
    }
    if tls is not None:
        chosen["tls"] = tls
    if credentials is not None:
        chosen["user_credentials" if str(credentials).endswith(".creds") else "nkeys_seed"] = str(credentials)
    return chosen


async def _quiet(_error: Exception) -> None:
    """The client's own hook prints a traceback for each attempt; the last error stays in `last_error`."""


class JetStreamLog:
    """An EventLog over one client. Streams must exist (`topology.ensure`).

    `ack_timeout_s`: how long one publish waits before the outcome counts as unknown and the session is read.
    `patience_s`: how long an append or a read goes on over lost acknowledgements, restarts of the server and
    replicas that lag, before it is LogUnavailable. `keys` open sealed sessions; with `seal` new ones are sealed.
    """

    def __init__(
        self,
        client: Client,
        *,
        ack_timeout_s: float = 2.0,
        patience_s: float = 20.0,
        keys: Keys | None = None,
        seal: bool = False,
    ) -> None:
        self._client = client
        self._ack_timeout_s = ack_timeout_s
        self._patience_s = patience_s
        self._keys = keys
        self._seal = seal
        self._inbox = Inbox(client)
        self._events = DirectGet(self._inbox, STREAM_NAME, min(READ_TIMEOUT_S, patience_s))
        self._chunks = DirectGet(self._inbox, BLOBS_NAME, min(READ_TIMEOUT_S, patience_s))
        self._dropped: frozenset[str] | None = None

    async def append(self, session: str, drafts: Sequence[Draft], expected: Head, now: datetime) -> list[Event]:
        end = self._end()
        if epoch_of(session) in await self.dropped_epochs(end):
            raise EpochDropped(session, epoch_of(session))
        stored: list[Event] = []
        planned = await self._planned(session, drafts, expected, now)
        while planned:
            event = planned[0]
            try:
                seq = await self._publish(event, stored[-1].seq if stored else expected.seq, end)
            except _UnknownOutcome as unknown:
                stored = await self._own(session, drafts, expected, unknown.at_least, end)
                head = stored[-1].head if stored else expected
                planned = await self._planned(session, drafts[len(stored) :], head, now)
            else:
                stored.append(event.at(seq))
                planned = planned[1:]
        return stored

    async def read(
        self, session: str, upto: int | None = None, at_least: int | None = None, after: Head | None = None
    ) -> list[Event]:
        check_session(session)
        found = await self._session(session, at_least, after or Head(), self._end())
        return [await self._event(message) for message in found if upto is None or message.seq <= upto]

    async def follow(self, after: int = 0) -> AsyncGenerator[Event, None]:
        async with aclosing(self.stored(after)) as batches:
            async for batch in batches:
                for message in batch:
                    yield await self._event(message)

    def stored(self, after: int = 0) -> AsyncGenerator[list[Stored], None]:
        """As `follow`, in lists and not decoded: a rebuild reads the bytes it needs itself."""
        return Follower(self._client, self._inbox, STREAM_NAME, after, self._patience_s).batches()

    async def last_seq(self) -> int:
        return (await self.state()).last_seq

    async def state(self) -> StreamState:
        """The log's last position, when it was created (another value: it is another log), which epochs it lost."""
        return await stream_state(self._inbox, STREAM_NAME, self._patience_s)

    async def dropped_epochs(self, end: float | None = None) -> frozenset[str]:
        """Epochs that are not in the log any more; `end`: the loop's time up to which it may be tried."""
        ends = self._end() if end is None else end
        # Asked once: who drops an epoch makes the log anew, and whoever works on it has to begin again.
        while self._dropped is None:
            try:
                state = await stream_state(self._inbox, STREAM_NAME, self._ack_timeout_s)
                self._dropped = frozenset(one.epoch for one in state.dropped)
            except LogUnavailable:
                if asyncio.get_running_loop().time() >= ends:
                    raise
                await asyncio.sleep(RETRY_S)
        return self._dropped

    def key(self, session: str) -> bytes | None:
        return None if self._keys is None else self._keys.get(session)

    def key_after(self, session: str, head: Head) -> SessionKey | None:
        if not head.sealed and not (self._seal and head.n == 0):
            return None
        if self._keys is not None and head.n == 0:
            return SessionKey(session, self._keys.make(session))
        return SessionKey(session, self._known(session))

    async def put_blob(self, data: bytes, key: SessionKey | None = None) -> Blob:
        if key is not None:
            stored = await self.put_blob(await asyncio.to_thread(sealing.seal_blob, key.key, data))
            return stored.model_copy(update={"session": key.session})
        blob = blob_of(data)
        chunks = [data[i : i + BLOB_CHUNK_BYTES] for i in range(0, len(data), BLOB_CHUNK_BYTES)] or [b""]
        for first in range(0, len(chunks), BLOB_WRITES):
            batch = enumerate(chunks[first : first + BLOB_WRITES], first)
            await asyncio.gather(*(self._put_chunk(f"blob.{blob.sha256}.{i}", chunk) for i, chunk in batch))
        return blob

    async def get_blob(self, blob: Blob) -> bytes:
        for pause in (*LAG_S, None):
            found = await self._latest(self._chunks, f"blob.{blob.sha256}.*", 0, self._end())
            data = b"".join(chunk.body for chunk in sorted(found, key=lambda chunk: int(chunk.subject.split(".")[2])))
            if (len(data), blob_of(data).sha256) == (blob.size_bytes, blob.sha256):
                if blob.session is not None:
                    data = await asyncio.to_thread(sealing.unseal_blob, self._known(blob.session), data)
                return data
            if pause is not None:
                await asyncio.sleep(pause)
        raise MissingBlob(blob.sha256)

    def _known(self, session: str) -> bytes:
        key = self.key(session)
        if key is None:
            raise NoKey(session)
        return key

    def _end(self) -> float:
        return asyncio.get_running_loop().time() + self._patience_s

    async def _planned(self, session: str, drafts: Sequence[Draft], head: Head, now: datetime) -> list[Event]:
        """`drafts` placed behind `head`. Nothing is stored before the size of each is known to be allowed."""
        key = None if all(draft.payload.OPEN for draft in drafts) else self.key_after(session, head)
        sealed = sealing.of_drafts(key.key if key else None, session, drafts) if key or head.sealed else None
        events = _placed(session, drafts, head, now, {}, sealed)
        large = {
            i: sealing.document(sealed[i]) if sealed else payload_bytes(draft.payload)
            for i, (event, draft) in enumerate(zip(events, drafts, strict=True))
            if len(event.body) > EVENT_LIMIT_BYTES
        }
        for i, data in large.items():
            if len(data) > PAYLOAD_LIMIT_BYTES:
                raise EventTooLarge(session, drafts[i].payload.TYPE, len(data))
        blobs = {i: await self.put_blob(data) for i, data in large.items()}
        return _placed(session, drafts, head, now, blobs, sealed) if large else events

    async def _publish(self, event: Event, expected_seq: int, end: float) -> int:
        headers = {
            "Content-Type": CONTENT_TYPE,
            HASH_HEADER: event.hash,
            EXPECTED_SEQUENCE: str(expected_seq),
            # Derived here and nowhere else: the server accepts a filter that does not cover the subject.
            EXPECTED_SUBJECT: subjects.session_filter(event.session),
        }
        return await self._acknowledged(
            subjects.event_subject(event.session, event.n, event.type), event.body, headers, end
        )

    async def _put_chunk(self, subject: str, chunk: bytes) -> None:
        headers, end = {EXPECTED_SEQUENCE: "0"}, self._end()
        while True:
            try:
                await self._acknowledged(subject, chunk, headers, end)
            except _UnknownOutcome as unknown:
                if unknown.at_least is None:
                    continue
            return

    async def _acknowledged(self, subject: str, body: bytes, headers: dict[str, str], end: float) -> int:
        """Publish once; the position it was stored at.

        _UnknownOutcome: stored or not, who can tell; LogUnavailable: refused, or out of patience.
        """
        left = end - asyncio.get_running_loop().time()
        if left <= 0:
            raise LogUnavailable(f"{subject}: not acknowledged within {self._patience_s:g} s{self._said()}")
        try:
            ack = orjson.loads((await self._inbox.one(subject, body, headers, min(left, self._ack_timeout_s))).data)
        except NoReply as error:
            said = str(self._client.last_error).lower()
            if "permissions violation" in said and subject in said:
                raise LogUnavailable(f"{subject}: {self._client.last_error}") from error
            await asyncio.sleep(RETRY_S)
            raise _UnknownOutcome(None) from error
        except (NatsError, OSError) as error:
            raise LogUnavailable(f"{subject}: {error}") from error
        refusal = ack.get("error")
        if refusal is None:
            return int(ack["seq"])
        if refusal.get("err_code") in WRONG_SEQUENCE:
            last = re.search(r"(\d+)$", str(refusal.get("description", "")))
            raise _UnknownOutcome(int(last[1]) if last else 0)
        if refusal.get("err_code") == NOT_READY:
            await asyncio.sleep(RETRY_S)
            raise _UnknownOutcome(None)
        raise refused(subject, refusal)

    async def _own(
        self, session: str, drafts: Sequence[Draft], expected: Head, at_least: int | None, end: float
    ) -> list[Event]:
        """What is stored of `drafts` behind `expected`; WrongExpectedVersion if something else is there."""
        history = [await self._event(message) for message in await self._session(session, at_least, Head(), end)]
        found = chain.behind(history, expected)
        actual = history[-1].head if history else Head()
        known = expected.n == 0 or (actual.n >= expected.n and history[expected.n - 1].hash == expected.hash)
        if not known or not chain.resumes(session, drafts, found):
            raise WrongExpectedVersion(session, expected.n, actual.n)
        if at_least is not None and not found:
            await asyncio.sleep(RETRY_S)
        return found[: len(drafts)]

    async def _session(self, session: str, at_least: int | None, after: Head, end: float) -> list[Stored]:
        """The session's messages behind `after`, whole: `n` counts on by one, and `at_least` is reached."""
        tries = 0
        while True:
            found = await self._latest(self._events, subjects.session_filter(session), after.seq, end)
            places = [subjects.parse(message.subject)[1] for message in found]
            whole = places == list(range(after.n + 1, after.n + 1 + len(found)))
            if whole and (found[-1].seq if found else after.seq) >= (at_least or 0):
                return found
            tries += 1
            if not whole and tries > len(LAG_S):
                gap = next((i for i, n in enumerate(places, after.n + 1) if n != i), 0)
                raise BrokenChain(session, gap, "it is missing, or is there twice")
            if asyncio.get_running_loop().time() >= end:
                raise LogUnavailable(f"session {session}: event at position {at_least} is not there")
            await asyncio.sleep(LAG_S[min(tries, len(LAG_S)) - 1])

    async def _latest(self, source: DirectGet, filter_: str, after: int, end: float) -> list[Stored]:
        while True:
            try:
                return await source.latest(filter_, after)
            except NoReply as error:
                if asyncio.get_running_loop().time() >= end:
                    raise LogUnavailable(f"{error}{self._said()}") from error
                await asyncio.sleep(RETRY_S)
            except (NatsError, OSError) as error:
                raise LogUnavailable(f"{filter_}: {error}") from error

    async def _event(self, message: Stored) -> Event:
        session, n, _ = subjects.parse(message.subject)
        try:
            event = await event_of(self, message.body, message.seq)
        except BadEnvelope as error:
            raise BrokenChain(session, n, error.why) from error
        if (event.session, event.n) != (session, n):
            raise BrokenChain(session, n, f"it says of itself to be event {event.n} of {event.session}")
        if message.headers.get(HASH_HEADER) != event.hash:
            raise BrokenChain(session, n, "its bytes do not have the hash of its header")
        return event

    def _said(self) -> str:
        return f" ({self._client.last_error})" if self._client.last_error else ""


class _UnknownOutcome(Exception):
    """The publish may be stored or not. `at_least`: the server said that the subject's last one is there."""

    def __init__(self, at_least: int | None) -> None:
        super().__init__()
        self.at_least = at_least


def _placed(
    session: str,
    drafts: Sequence[Draft],
    head: Head,
    now: datetime,
    blobs: Mapping[int, Blob],
    sealed: Sequence[Sealed] | None,
) -> list[Event]:
    events: list[Event] = []
    for i, draft in enumerate(drafts):
        at = events[-1].head if events else head
        events.append(stamp(session, at, draft, now, blobs.get(i), sealed[i] if sealed else None))
    return events
