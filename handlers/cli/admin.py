"""`admin`: what an operator does with a log as a whole, each by hand and rarely."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.main import FAILED, USAGE, Refused
from handlers.cli.options import data_option, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from handlers.settings import Settings
    from projections.epochs import Survey


@click.group()
def admin() -> None:
    """Archive an old epoch, and drop it from the log."""


@admin.command("archive")
@click.argument("epoch")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@data_option
def archive_epoch(epoch: str, folder: Path, data: Path | None) -> int:
    """Write all sessions of EPOCH (such as e2611) to DIR: Parquet by day, the texts they name, and a manifest."""
    run(_archive(epoch, folder, data))
    return 0


async def _archive(epoch: str, folder: Path, data: Path | None) -> None:
    from handlers.cli.readmodel import levelled
    from handlers.cli.runtime import opened
    from projections import epochs
    from streams.identity import check_epoch

    check_epoch(epoch)
    async with opened(settings_from(data=data)) as station:
        if epoch in await station.log.dropped_epochs():
            raise Refused(f"epoch {epoch} is not in the log any more: its archive is at {station.shelf.folder / epoch}")
        async with levelled(station) as store:
            manifest = await epochs.archived(store, station.log, epoch, folder)
    click.echo(
        f"{folder}: {manifest.events} events of {manifest.sessions} sessions, positions {manifest.first_seq} to "
        f"{manifest.last_seq}, head digest {manifest.head_digest}"
    )


@admin.command("drop")
@click.argument("epoch")
@click.option(
    "--archive",
    "folder",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="What `admin archive` wrote.",
)
@click.option("--yes", is_flag=True, help="Do it; without it only the checks are made.")
@data_option
def drop_epoch(epoch: str, folder: Path, yes: bool, data: Path | None) -> int:
    """Take EPOCH out of the log for good, once its archive is proved to hold all of it.

    The log is copied without it, compared, and put back with every other event at its position. Nobody may be at work,
    and no turn open. Whoever interrupts it runs it again.
    """
    return run(_drop(epoch, folder, yes, settings_from(data=data)))


async def _drop(epoch: str, folder: Path, yes: bool, settings: Settings) -> int:
    from handlers.cli.runtime import at_home, now, opened, reached
    from projections import epochs
    from projections.archive import BrokenArchive
    from projections.epochs import NotTheSame
    from streams import identity
    from streams.dropping import SUBJECTS, resume

    identity.check_epoch(epoch)
    settings = at_home(settings)
    async with reached(settings) as (_, client):
        for name in SUBJECTS:
            if await resume(client, name):
                click.echo(f"{name}: an interrupted drop was brought to its end, or undone", err=True)
    async with opened(settings) as station:
        if epoch in await station.log.dropped_epochs():
            await _rebuilt(station)
            click.echo(f"epoch {epoch} is not in the log any more; its archive: {station.shelf.folder / epoch}")
            return 0
        if epoch >= identity.epoch(now()):
            raise Refused(f"epoch {epoch} is not over: sessions are added to it", USAGE)
        try:
            manifest = await asyncio.to_thread(epochs.checked, folder)
            if manifest.epoch != epoch:
                raise Refused(f"{folder} is the archive of {manifest.epoch or 'all epochs'}, not of {epoch}", USAGE)
            await _nobody_at_work(station)
            survey = await _surveyed(station, folder, epoch)
        except (BrokenArchive, NotTheSame) as error:
            again = f"`{program()} admin archive {epoch} DIR` makes one that is"
            raise Refused(
                f"{error}; nothing was dropped, because {folder} is not what the log holds: {again}"
            ) from None
        click.echo(
            f"epoch {epoch}: {survey.messages} events of {len(survey.sessions)} sessions and {len(survey.blobs)} texts of "
            f"their own are in {folder}, byte for byte; {survey.kept.messages} events of other epochs stay"
        )
        if not yes:
            click.echo("nothing was dropped: add --yes", err=True)
            return FAILED
        await _dropped(station, survey, folder)
        click.echo(f"epoch {epoch} was dropped; what is asked of it is answered from {station.shelf.folder / epoch}")
    return 0


async def _nobody_at_work(station: Station) -> None:
    from streams.topology import STREAM_NAME

    found = await station.client.jetstream().consumers_info(STREAM_NAME)
    busy = sorted(consumer.name for consumer in found if consumer.num_waiting)
    if busy:
        raise Refused(f"somebody is at work on the log ({', '.join(busy)}): stop `up` and every worker first")


async def _surveyed(station: Station, folder: Path, epoch: str) -> Survey:
    from projections import epochs
    from projections.archive import read_manifest
    from streams.dropping import Streams
    from streams.topology import STREAM_NAME

    manifest = read_manifest(folder)
    streams = Streams(station.client)
    survey = await epochs.survey(lambda: streams.walk(STREAM_NAME), station.log, folder, manifest)
    if not survey.messages:
        raise Refused(f"there is no session of epoch {epoch} in the log", USAGE)
    if survey.open_turns:
        raise Refused(f"turns are open: {', '.join(sorted(survey.open_turns)[:5])}; run `verdictlog up` to end them")
    return survey


async def _dropped(station: Station, survey: Survey, folder: Path) -> None:
    from handlers.cli.anchor import recorded_anchor
    from streams.dropping import Streams, remove
    from streams.epochs import noted
    from streams.topology import BLOBS_NAME, STREAM_NAME

    await asyncio.to_thread(_free, station.read_model)
    # The heads of all chains, the dropped ones' too, stay in the log: an anchor, and the last event of it.
    told = await recorded_anchor(station)
    survey = await _surveyed(station, folder, survey.epoch)
    station.shelf.put(survey.epoch, folder)
    streams = Streams(station.client)
    if survey.blobs:
        await station.log.put_blob(told)  # so that the last text is one that stays, as the last event is
        kept, gone = await streams.parted(BLOBS_NAME, lambda subject: subject.split(".")[1] in survey.blobs)
        if gone.messages:
            note = survey.note(gone.messages, gone.first_seq, gone.last_seq)
            filters = [f"blob.{sha256}.>" for sha256 in sorted(survey.blobs)]
            await remove(station.client, BLOBS_NAME, filters, kept, noted(await streams.metadata(BLOBS_NAME), note))
    note = survey.note(survey.messages, survey.first_seq, survey.last_seq)
    filters = [f"vl.{session}.>" for session in sorted(survey.sessions)]
    await remove(station.client, STREAM_NAME, filters, survey.kept, noted(await streams.metadata(STREAM_NAME), note))
    await _rebuilt(station)


def _free(read_model: Path) -> None:
    """StoreBusy, before anything is done, if the read model could not be made anew afterwards."""
    from projections.store import connect

    if read_model.exists():
        connect(read_model).close()


async def _rebuilt(station: Station) -> None:
    """The read model holds what the log holds: the archive's rows are read from the archive."""
    from projections.rebuild import rebuild

    if station.read_model.exists():
        await rebuild(station.read_model, station.log)
    await asyncio.to_thread(station.published.unlink, missing_ok=True)
