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
from handlers.cli.projecting import sparing

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from handlers.settings import Settings
    from projections.projector import Projector
    from projections.store import Store


@asynccontextmanager
async def levelled(station: Station) -> AsyncIterator[Store]:
    """An open read model that holds every event of the log as of now. StoreBusy if another process holds it."""
    from projections.projector import Projector
    from projections.store import Store, damage_told

    store = await asyncio.to_thread(Store.open, station.read_model)
    try:
        projector = Projector(store, station.log, tell=sparing())
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
