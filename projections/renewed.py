"""Today's tables for an archive that another version of the read model wrote: derived from its events, once, beside it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from projections import archive, catalog
from projections.epochs import blob_path, exported
from projections.shelf import Shelf
from streams.directget import Stored
from streams.events import Blob
from streams.log import MissingBlob


@dataclass(frozen=True, slots=True)
class ArchivedEvents:
    """An archive as the log of its epoch: what a projector needs of one."""

    folder: Path

    async def last_seq(self) -> int:
        return archive.read_manifest(self.folder).last_seq

    async def stored(self, after: int = 0) -> AsyncGenerator[list[Stored], None]:
        """Every event behind position `after`, then nothing more, without end."""
        for rows in archive.stored(self.folder, "seq, body", f"seq > {after:d}"):
            yield [Stored(seq, "", body.encode()) for seq, body in rows]
        await asyncio.Event().wait()

    async def get_blob(self, blob: Blob) -> bytes:
        path = blob_path(self.folder, blob.sha256)
        if not await asyncio.to_thread(path.is_file):
            raise MissingBlob(blob.sha256)
        return await asyncio.to_thread(path.read_bytes)

    def key(self, _session: str) -> None:
        return None


async def renewed(shelf: Shelf, epoch: str) -> Path:
    """The folder with today's tables of the epoch's archive; what it is made from stays as it is."""
    place = shelf.folder / f".{epoch}-tables-{catalog.SCHEMA_VERSION}"
    if not await asyncio.to_thread(place.exists):
        part = place.with_name(f"{place.name}.part")
        await asyncio.to_thread(shutil.rmtree, part, ignore_errors=True)
        await exported(part.with_name(f"{part.name}.duckdb"), ArchivedEvents(shelf.folder / epoch), epoch, part)
        await asyncio.to_thread(os.replace, part, place)
    return place
