"""Archives of dropped epochs, a folder each: what the log does not hold any more is read from there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streams.identity import epoch_of

if TYPE_CHECKING:
    import duckdb

    from streams.envelope import Event


@dataclass(frozen=True, slots=True)
class Shelf:
    """`folder` holds an archive for each epoch, under the epoch's name."""

    folder: Path

    def of(self, epoch: str) -> Path | None:
        """The archive of `epoch`, None where there is none."""
        found = self.folder / epoch
        return found if found.joinpath("manifest.json").is_file() else None

    def events(self, session: str, key: bytes | None = None) -> list[Event]:
        """The session's events from its epoch's archive, in order; [] if there is none. BrokenArchive.

        `key` opens what is sealed; without it that is what is left of it.
        """
        from projections.archive import archived_events

        found = self.of(epoch_of(session))
        return [] if found is None else archived_events(found, session, key)

    def blob(self, sha256: str, size_bytes: int) -> bytes | None:
        """A text that one of the archives keeps; None if none does, or not whole."""
        from projections.epochs import blob_path

        for path in (blob_path(epoch, sha256) for epoch in sorted(self.folder.glob("e????"))):
            data = path.read_bytes() if path.is_file() else b""
            if len(data) == size_bytes and hashlib.sha256(data).hexdigest() == sha256:
                return data
        return None

    def put(self, epoch: str, archive: Path) -> Path:
        """Make `archive` be found under the epoch's name, by a link where it stands elsewhere; FileExistsError."""
        place = self.folder / epoch
        if place.resolve() != archive.resolve():
            self.folder.mkdir(parents=True, exist_ok=True)
            place.symlink_to(archive.resolve(), target_is_directory=True)
        return place


def overlay(connection: duckdb.DuckDBPyConnection, archives: Sequence[Path], bound: str = "true") -> None:
    """Put views before the tables that hold the rows of `archives` too, restricted by `bound`, and ours on top of them.

    The connection is one of its own: what it sees is no more what the file holds. A file that was not made anew since an
    epoch was dropped still has its rows: the archive's are the ones that count.
    """
    from projections import catalog
    from projections.archive import read_manifest
    from projections.store import quoted

    [(database,)] = connection.execute("SELECT current_database()").fetchall()
    epochs = [str(read_manifest(folder).epoch) for folder in archives]
    live = " AND ".join([f"({bound})", *(f"NOT starts_with(session, {quoted(f'{epoch}-')})" for epoch in epochs)])
    for table in catalog.tables():
        parts = [f'FROM "{database}".main.{table.name} WHERE {live}']
        files = [str(path) for folder in archives for path in sorted(folder.glob(f"{table.name}/*/*.parquet"))]
        if files:
            listed = ", ".join(quoted(path) for path in files)
            parts.append(f"FROM read_parquet([{listed}], hive_partitioning = false) WHERE {bound}")
        connection.execute(f"CREATE TEMP VIEW {table.name} AS {' UNION ALL BY NAME '.join(parts)}")
    for macro in catalog.macros():
        connection.execute(macro.sql.replace("CREATE MACRO", "CREATE TEMP MACRO", 1))
    for view in catalog.views():
        connection.execute(f"CREATE TEMP VIEW {view.name} AS {view.sql}")
