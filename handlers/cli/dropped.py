"""What `verify` asks of the epochs that were dropped: is each one's archive there, whole, and the one that was archived."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handlers.cli.logwalk import Outcome
    from handlers.cli.runtime import Station
    from streams.epochs import Dropped


async def hold_archives(station: Station, outcome: Outcome, seen: dict[str, dict[int, str]]) -> None:
    """Check every archive against the log's note on it; `seen` gets the hashes of its events, for anchors."""
    for note in (await station.log.state()).dropped:
        folder = station.shelf.of(note.epoch)
        if folder is None:
            outcome.bad.append(
                f"epoch {note.epoch}: it was dropped, and {station.shelf.folder / note.epoch} is not there"
            )
            continue
        why = await asyncio.to_thread(_held, folder, note, seen)
        if why is not None:
            outcome.bad.append(f"epoch {note.epoch}: {why}")
        else:
            told = f"{note.messages} events in {note.sessions} sessions, every chain whole"
            outcome.ok.append(f"epoch {note.epoch}: dropped from the log, its archive {folder} is whole: {told}")


def _held(folder: Path, note: Dropped, seen: dict[str, dict[int, str]]) -> str | None:
    from projections.archive import BrokenArchive, stored
    from projections.epochs import checked

    try:
        manifest = checked(folder)
    except BrokenArchive as broken:
        return str(broken)
    found = (manifest.epoch, manifest.events, manifest.head_digest)
    if found != (note.epoch, note.messages, note.head_digest):
        return f"{folder} is not the archive that was there when it was dropped: head digest {manifest.head_digest}"
    for rows in stored(folder, "session, n, hash"):
        for session, n, hash_ in rows:
            seen.setdefault(session, {})[n] = hash_
    return None
