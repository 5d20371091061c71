"""The projector beside the roles of `up` and `worker`: whatever happens to it, they work on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.main import one_line

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from projections.projector import Projector
    from projections.store import Store
    from streams.keys import FileKeys
    from streams.log import EventLog

PUBLISH_EVERY_S = 2.0
TELL_EVERY_S = 60.0
PAUSES_S = (1.0, 300.0)  # before the projector is started anew: the first, and the longest; it doubles
PATIENCE_S = 10.0  # in which a server that restarts is there again
ASK_EVERY_S = 0.5

Tell = Callable[[str], None]


def sparing(every_s: float = TELL_EVERY_S) -> Tell:
    """Says what it is told on stderr, at most once in `every_s` seconds."""
    last = -every_s

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= every_s:
            last = time.monotonic()
            click.echo(f"verdictlog: {one_line(text)}", err=True)

    return tell


@asynccontextmanager
async def projecting(station: Station, alone: bool = False) -> AsyncIterator[asyncio.Future[object]]:
    """A projector at work for as long as the block runs, publishing snapshots.

    The future ends only by an error: `alone` by any; else by the server's silence, and the projector is started anew
    after all others. Whenever the text of a session was erased, the read model is made anew.
    """
    from projections.store import Store

    store: Store | None = await asyncio.to_thread(Store.open, station.read_model)
    tell = sparing()

    async def project() -> None:
        nonlocal store
        opened = store if store is not None else await asyncio.to_thread(Store.open, station.read_model)
        store = None
        await _project(station, opened, tell)

    work: asyncio.Future[object] = asyncio.ensure_future(project() if alone else restarted(project, station.log, tell))
    try:
        yield work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        if store is not None:
            store.close()


async def restarted(
    project: Callable[[], Awaitable[None]],
    log: EventLog,
    tell: Tell,
    pauses_s: tuple[float, float] = PAUSES_S,
    patience_s: float = PATIENCE_S,
) -> None:
    """Run `project` again and again, after a pause that grows while it fails soon.

    Ends by LogUnavailable, once `log` has not answered for `patience_s` seconds.
    """
    first_s, longest_s = pauses_s
    pause_s = first_s
    while True:
        began = time.monotonic()
        try:
            await project()
        except Exception as error:
            await _there(log, patience_s)
            if time.monotonic() - began > longest_s:
                pause_s = first_s
            why = str(error) or type(error).__name__
            tell(f"the projector stopped and is started again in {pause_s:g} s, the roles work on: {why}")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, longest_s)


async def _there(log: EventLog, patience_s: float) -> None:
    from streams.log import LogUnavailable

    ends = time.monotonic() + patience_s
    while True:
        try:
            await log.last_seq()
        except LogUnavailable:
            if time.monotonic() >= ends:
                raise
            await asyncio.sleep(min(ASK_EVERY_S, patience_s))
        else:
            return


async def _project(station: Station, store: Store, tell: Tell) -> None:
    from projections.projector import Projector
    from projections.store import damage_told

    while True:
        projector = Projector(store, station.log, tell=tell)
        work = asyncio.ensure_future(projector.run())
        erased = asyncio.ensure_future(_erased(projector, station.keys))
        publishing = asyncio.ensure_future(_publish(projector, station.published))
        try:
            done, _ = await asyncio.wait((work, erased, publishing), return_when=asyncio.FIRST_COMPLETED)
            with damage_told(station.read_model):
                for task in done:
                    task.result()
        finally:
            for task in (work, erased, publishing):
                task.cancel()
            await asyncio.gather(work, erased, publishing, return_exceptions=True)
            store.close()
        store = await _made_anew(station)


async def _erased(projector: Projector, keys: FileKeys) -> None:
    """Return when the tables hold text that nobody can read in the log any more."""
    from projections.erasure import keeping

    at, left = -1, list[str]()
    while True:
        if projector.position != at:
            at = projector.position
            with projector.store.cursor() as cursor:
                left = keeping(cursor)
        if any(not keys.left(session) for session in left):
            return
        await asyncio.sleep(PUBLISH_EVERY_S)


async def _made_anew(station: Station) -> Store:
    from projections.erasure import forget, keeping
    from projections.store import Store, StoreBusy

    while True:
        try:
            store = await asyncio.to_thread(Store.open, station.read_model)
            with store.cursor() as cursor:
                left = keeping(cursor)
            if not left:
                return store  # whoever erased was faster
            store.close()
            await forget(station.read_model, station.published, station.log)
        except StoreBusy as busy:
            click.echo(f"verdictlog: waits for {busy.holder}, to make the read model anew", err=True)
            await asyncio.sleep(PUBLISH_EVERY_S)


async def _publish(projector: Projector, path: Path) -> None:
    from projections.snapshot import snapshot

    at = -1
    while True:
        if projector.position != at:
            copying = asyncio.ensure_future(asyncio.to_thread(snapshot, projector.store, path))
            try:
                at = await asyncio.shield(copying)
            except asyncio.CancelledError:
                # Who cancels closes the file next, and a thread cannot be cancelled.
                await asyncio.gather(copying, return_exceptions=True)
                raise
        await asyncio.sleep(PUBLISH_EVERY_S)
