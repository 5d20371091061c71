"""The read model from the command line: brought level with the log, then asked.

Where another process (`up`, a worker) holds the file, the snapshot that it publishes is read instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.main import UNREACHABLE, Refused
from handlers.cli.process import program

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from handlers.settings import Settings
    from projections.projector import Projector
    from projections.store import Store
    from streams.keys import FileKeys

PUBLISH_EVERY_S = 2.0


@asynccontextmanager
async def levelled(station: Station) -> AsyncIterator[Store]:
    """An open read model that holds every event of the log as of now. StoreBusy if another process holds it."""
    from projections.projector import Projector
    from projections.store import Store, damage_told

    store = await asyncio.to_thread(Store.open, station.read_model)
    try:
        projector = Projector(store, station.log)
        last = await station.log.last_seq()
        with damage_told(station.read_model):
            if last != projector.position:
                await _level(station, projector, last)
            yield store
    finally:
        store.close()


async def _level(station: Station, projector: Projector, last: int) -> None:
    from streams.epochs import covers
    from streams.log import LogWentBackwards

    at = projector.position
    try:
        await projector.run(until=last)
    except LogWentBackwards:
        if not covers((await station.log.state()).dropped, at, at):
            raise
        told = f"{station.read_model} is from before an epoch was dropped: run `{program()} rebuild`"
        raise Refused(told, UNREACHABLE) from None


async def readable(settings: Settings) -> tuple[Path, tuple[Path, ...]]:
    """A file that holds the log as of now and that nobody writes: the read model itself, or the newest snapshot.

    With it the archives of the epochs that were dropped, whose rows are no more in the file.
    """
    from handlers.cli.runtime import opened
    from projections.store import StoreBusy

    async with opened(settings) as station:
        archives = await _archives(station)
        try:
            async with levelled(station):
                return station.read_model, archives
        except StoreBusy as busy:
            if not station.published.exists():
                raise
            click.echo(f"verdictlog: {busy.holder} writes the read model; this is its newest snapshot", err=True)
            return station.published, archives


async def _archives(station: Station) -> tuple[Path, ...]:
    from projections import catalog
    from projections.archive import read_manifest
    from projections.renewed import renewed

    found = []
    for epoch in sorted(await station.log.dropped_epochs()):
        folder = station.shelf.of(epoch)
        if folder is None:
            where = station.shelf.folder / epoch
            click.echo(f"verdictlog: epoch {epoch} was dropped, and its archive is not at {where}: left out", err=True)
            continue
        click.echo(f"verdictlog: with the archive of a dropped epoch: {folder}", err=True)
        old = read_manifest(folder).schema_version != catalog.SCHEMA_VERSION
        found.append(await renewed(station.shelf, epoch) if old else folder)
    return tuple(found)


@asynccontextmanager
async def projecting(station: Station) -> AsyncIterator[asyncio.Future[object]]:
    """A projector at work for as long as the block runs, publishing snapshots; the future ends only by an error.

    Whenever the text of a session was erased, the read model is made anew.
    """
    from projections.store import Store

    store = await asyncio.to_thread(Store.open, station.read_model)
    work: asyncio.Future[object] = asyncio.ensure_future(_project(station, store))
    try:
        yield work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        store.close()


async def _project(station: Station, store: Store) -> None:
    from projections.projector import Projector
    from projections.store import damage_told

    while True:
        projector = Projector(store, station.log)
        work = asyncio.ensure_future(projector.run())
        erased = asyncio.ensure_future(_erased(projector, station.keys))
        publishing = asyncio.ensure_future(_publish(projector, station.published))
        try:
            done, _ = await asyncio.wait((work, erased), return_when=asyncio.FIRST_COMPLETED)
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
