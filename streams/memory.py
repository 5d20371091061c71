"""The log in memory: the same rules as the log on JetStream, for one event loop and no longer than it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from streams import chain
from streams.envelope import Draft, Event, Head, payload_bytes, stamp
from streams.events import Blob
from streams.identity import check_session
from streams.log import (
    EVENT_LIMIT_BYTES,
    PAYLOAD_LIMIT_BYTES,
    EventTooLarge,
    LogUnavailable,
    LogWentBackwards,
    MissingBlob,
    SessionKey,
    WrongExpectedVersion,
    blob_of,
)


class MemoryLog:
    """An EventLog of one process. `patience_s` bounds the wait of `read(at_least=...)`. Nothing in it is sealed."""

    def __init__(self, patience_s: float = 5.0) -> None:
        self._events: list[Event] = []
        self._sessions: dict[str, list[Event]] = {}
        self._blobs: dict[str, bytes] = {}
        self._patience_s = patience_s
        self._grown = asyncio.Event()

    async def append(self, session: str, drafts: Sequence[Draft], expected: Head, now: datetime) -> list[Event]:
        check_session(session)
        for draft in drafts:
            size = len(payload_bytes(draft.payload))
            if size > PAYLOAD_LIMIT_BYTES:
                raise EventTooLarge(session, draft.payload.TYPE, size)
        stored: list[Event] = []
        while len(stored) < len(drafts):
            history = self._sessions.get(session, [])
            found = chain.behind(history, expected)
            actual = history[-1].head if history else Head()
            if actual.n < expected.n or not chain.resumes(session, drafts, found):
                raise WrongExpectedVersion(session, expected.n, actual.n)
            stored = found[: len(drafts)]
            if len(stored) < len(drafts):
                self._store(await self._stamped(session, actual, drafts[len(stored)], now))
                stored = chain.behind(self._sessions[session], expected)[: len(drafts)]
                # Others may see the event, and go on from it, before its writer knows that it is stored.
                await asyncio.sleep(0)
        return stored

    async def _stamped(self, session: str, head: Head, draft: Draft, now: datetime) -> Event:
        event = stamp(session, head, draft, now)
        if len(event.body) <= EVENT_LIMIT_BYTES:
            return event
        return stamp(session, head, draft, now, await self.put_blob(payload_bytes(draft.payload)))

    def _store(self, event: Event) -> None:
        event = event.at(len(self._events) + 1)
        self._events.append(event)
        self._sessions.setdefault(event.session, []).append(event)
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    async def read(
        self, session: str, upto: int | None = None, at_least: int | None = None, after: Head | None = None
    ) -> list[Event]:
        check_session(session)
        if at_least is not None:
            try:
                async with asyncio.timeout(self._patience_s):
                    while not self._reaches(session, at_least):
                        await self._grown.wait()
            except TimeoutError as error:
                raise LogUnavailable(f"session {session}: event at position {at_least} is not there") from error
        events = self._sessions.get(session, [])[after.n if after else 0 :]
        return [event for event in events if upto is None or event.seq <= upto]

    def _reaches(self, session: str, seq: int) -> bool:
        history = self._sessions.get(session)
        return history is not None and history[-1].seq >= seq

    async def follow(self, after: int = 0) -> AsyncGenerator[Event, None]:
        if after > len(self._events):
            raise LogWentBackwards(f"the log ends at position {len(self._events)}, {after} was seen before")
        position = after
        while True:
            grown = self._grown
            while position < len(self._events):
                position += 1
                yield self._events[position - 1]
            await grown.wait()

    async def last_seq(self) -> int:
        return len(self._events)

    async def put_blob(self, data: bytes, key: SessionKey | None = None) -> Blob:  # noqa: ARG002
        blob = blob_of(data)
        self._blobs.setdefault(blob.sha256, bytes(data))
        return blob

    async def get_blob(self, blob: Blob) -> bytes:
        data = self._blobs.get(blob.sha256)
        if data is None or len(data) != blob.size_bytes:
            raise MissingBlob(blob.sha256)
        return data

    def key(self, session: str) -> bytes | None:  # noqa: ARG002
        return None

    def key_after(self, session: str, head: Head) -> SessionKey | None:  # noqa: ARG002
        return None
