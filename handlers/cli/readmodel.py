"""The read model from the command line: brought level with the log, then asked.

Where another process (`up`, a worker) holds the file, its newest snapshot is read instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from handlers.settings import Settings
    from projections.store import Store

CATCH_UP_S = 3600.0


@asynccontextmanager
async def levelled(settings: Settings) -> AsyncIterator[tuple[Station, Store]]:
    """An open read model that holds every event of the log as of now."""
    from handlers.cli.runtime import opened
    from projections.store import Store

    async with opened(settings) as station:
        store = await asyncio.to_thread(Store.open, station.read_model)
        try:
            await catch_up(station, store)
            yield station, store
        finally:
            store.close()


async def catch_up(station: Station, store: Store) -> None:
    """Project what the log has beyond the read model's checkpoint."""
    from projections.projector import Projector

    last = await station.log.last_seq()
    projector = Projector(store, station.log)
    if last != projector.position:
        await projector.run(until=last)


@asynccontextmanager
async def projecting(station: Station) -> AsyncIterator[asyncio.Future[object]]:
    """A projector at work for as long as the block runs; the future ends only by its error."""
    from projections.projector import Projector
    from projections.store import Store

    store = await asyncio.to_thread(Store.open, station.read_model)
    task: asyncio.Future[object] = asyncio.ensure_future(Projector(store, station.log).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        store.close()


async def query(
    settings: Settings, statement: str, parameters: list[Any] | None = None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of one of our own statements."""
    async with levelled(settings) as (_, store):
        cursor = store.cursor().execute(statement, parameters or [])
        return [column[0] for column in cursor.description or ()], cursor.fetchall()
