"""The log with the archives of dropped epochs behind it: whoever reads an old session is told where it comes from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from streams import sealing
from streams.chain import blobs
from streams.follower import stream_state
from streams.identity import epoch_of
from streams.jetstream import JetStreamLog
from streams.log import EpochDropped, MissingBlob
from streams.sealing import NoKey
from streams.topology import BLOBS_NAME

if TYPE_CHECKING:
    from nats.aio.client import Client

    from projections.shelf import Shelf
    from streams.envelope import Event, Head
    from streams.events import Blob
    from streams.keys import Keys

Told = Callable[[str, Path], None]


class NotOnShelf(EpochDropped):
    """The session's epoch was dropped, and its archive is not where archives are looked for."""

    def __init__(self, session: str, epoch: str, folder: Path) -> None:
        super().__init__(session, epoch)
        self.folder = folder

    def __str__(self) -> str:
        return (
            f"session {self.session}: epoch {self.epoch} was dropped from the log, and {self.folder / self.epoch} is not "
            "there: put its archive or a link to it there, or name another folder by VERDICTLOG_ARCHIVES"
        )


class ArchivedLog(JetStreamLog):
    """A log whose `read` and `get_blob` answer from `shelf` for epochs that were dropped; `told` hears of each session."""

    def __init__(
        self, client: Client, shelf: Shelf, told: Told, *, keys: Keys | None = None, seal: bool = False
    ) -> None:
        super().__init__(client, keys=keys, seal=seal)
        self._shelf = shelf
        self._told = told
        self._read_before: dict[str, list[Event]] = {}
        self._archived_blobs: set[str] = set()

    async def read(
        self, session: str, upto: int | None = None, at_least: int | None = None, after: Head | None = None
    ) -> list[Event]:
        found = await super().read(session, upto, at_least, after)
        if found or epoch_of(session) not in await self.dropped_epochs():
            return found
        if session not in self._read_before:
            self._read_before[session] = await self._archived(session)
        events = self._read_before[session][0 if after is None else after.n :]
        return [event for event in events if upto is None or event.seq <= upto]

    async def _archived(self, session: str) -> list[Event]:
        archive = self._shelf.of(epoch_of(session))
        if archive is None:
            raise NotOnShelf(session, epoch_of(session), self._shelf.folder)
        events = await asyncio.to_thread(self._shelf.events, session, self.key(session))
        if events:
            self._told(session, archive)
            self._archived_blobs |= {sha256 for event in events for sha256, _ in blobs(event)}
        return events

    async def get_blob(self, blob: Blob) -> bytes:
        # The live store waits for a replica before it says that it has none.
        if blob.sha256 in self._archived_blobs and (kept := await self._kept(blob)) is not None:
            return kept
        try:
            return await super().get_blob(blob)
        except MissingBlob:
            noted = (await stream_state(self._inbox, BLOBS_NAME)).dropped
            found = await self._kept(blob) if noted else None
            if found is None:
                raise
            return found

    async def _kept(self, blob: Blob) -> bytes | None:
        found = await asyncio.to_thread(self._shelf.blob, blob.sha256, blob.size_bytes)
        if found is None or blob.session is None:
            return found
        key = self.key(blob.session)
        if key is None:
            raise NoKey(blob.session)
        return await asyncio.to_thread(sealing.unseal_blob, key, found)
