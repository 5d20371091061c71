"""`export session`, `export parquet`: what others keep, each with what it needs to be checked."""

from __future__ import annotations

import asyncio
import hashlib
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.options import data_option, settings_from
from handlers.cli.process import run

if TYPE_CHECKING:
    pass


@click.group()
def export() -> None:
    """Export a session that verifies itself, or the read model as Parquet."""


@export.command("session")
@click.argument("session")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=None, help="Default: SESSION.zip.")
@data_option
def export_session(session: str, out: Path | None, data: Path | None) -> int:
    """Write SESSION as a zip that checks itself: `python3 SESSION.zip` needs no package of ours."""
    out = out or Path(f"{session}.zip")
    count = run(_session(session, out, data))
    click.echo(f"{count} events: {out}; check it with: python3 {out}")
    return 0


async def _session(session: str, out: Path, data: Path | None) -> int:
    import orjson

    from handlers.cli.audit import state_of
    from handlers.cli.runtime import opened
    from handlers.cli.story import session_object
    from streams.chain import blobs
    from streams.events import Blob

    async with opened(settings_from(data=data)) as station:
        state = await state_of(station, session, None)
        members: dict[str, bytes] = {f"events/{event.n:06}.json": event.body for event in state.events}
        for sha256, size in sorted({found for event in state.events for found in blobs(event)}):
            blob = Blob(sha256=sha256, size_bytes=size, chunks=0)
            members[f"blobs/{sha256}"] = await station.log.get_blob(blob)
    members["report.json"] = orjson.dumps(session_object(state), option=orjson.OPT_INDENT_2)
    members["__main__.py"] = files("streams").joinpath("bundle_check.py").read_bytes()
    write_bundle(out, session, len(state.events), state.head.hash, members)
    return len(state.events)


def write_bundle(out: Path, session: str, count: int, head: str, members: dict[str, bytes]) -> None:
    """The zip: events as stored, blobs, a readable report, the checker, and a manifest of them all."""
    import orjson

    manifest = {
        "session": session,
        "events": count,
        "head": head,
        "members": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("manifest.json", orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        for name, content in sorted(members.items()):
            bundle.writestr(name, content)


@export.command("parquet")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--epoch", default=None, help="Only sessions of this epoch, such as e2611.")
@data_option
def export_parquet(folder: Path, epoch: str | None, data: Path | None) -> int:
    """Write the read model to FOLDER as Parquet by day, with a manifest of positions, counts and hashes."""
    manifest = run(_parquet(folder, epoch, data))
    click.echo(f"{len(manifest.files)} files in {folder}")
    return 0


async def _parquet(folder: Path, epoch: str | None, data: Path | None) -> Any:
    from handlers.cli.readmodel import levelled
    from handlers.cli.runtime import opened
    from projections import archive

    async with opened(settings_from(data=data)) as station, levelled(station) as store:
        return await asyncio.to_thread(archive.export, store, folder, epoch)
