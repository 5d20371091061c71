"""The read model as Parquet by day, with a manifest that says what is in it and proves it: an epoch's archive.

`manifest.json`: format, first and last position, days, `head_digest` (SHA-256 over `session n hash` lines in order of
session), and for each file its table, day, rows, first and last position, size and SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from projections import catalog
from projections.store import Store, connect, quoted
from streams import sealing
from streams.envelope import SEALED, Event, decode

if TYPE_CHECKING:
    import duckdb

FORMAT = 1
MANIFEST = "manifest.json"


class BrokenArchive(Exception):
    """An archive that is not what its manifest says. `file` is the first that is wrong."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file = file
        self.why = why


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One Parquet file: rows of one table from events of one day (UTC)."""

    path: str
    table: str
    day: str
    rows: int
    first_seq: int
    last_seq: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds. `events` counts events; an empty archive has positions 0."""

    format: int
    schema_version: int
    epoch: str | None
    first_seq: int
    last_seq: int
    events: int
    sessions: int
    head_digest: str
    files: tuple[ArchivedFile, ...]


def export(store: Store, folder: Path, epoch: str | None = None) -> Manifest:
    """Write every table by day into `folder`, which must be new or empty; all of one moment.

    `epoch` (`e2611`) takes only the sessions of that epoch. The folder appears whole or not at all.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a new folder")
    building = folder.with_name(f"{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    where = "true" if epoch is None else f"starts_with(session, {quoted(f'{epoch}-')})"
    try:
        with store.cursor() as cursor:
            cursor.execute("BEGIN TRANSACTION")
            files = [file for table in catalog.tables() for file in _table(cursor, building, table.name, where)]
            first, last, events, sessions = cursor.execute(
                f"SELECT coalesce(min(seq), 0), coalesce(max(seq), 0), count(*), count(DISTINCT session) FROM events WHERE {where}"  # noqa: S608  our own condition
            ).fetchall()[0]
            digest = _head_digest(cursor, f"events WHERE {where}")
            cursor.execute("COMMIT")
        manifest = Manifest(FORMAT, catalog.SCHEMA_VERSION, epoch, first, last, events, sessions, digest, tuple(files))
        building.joinpath(MANIFEST).write_bytes(orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2))
        if folder.exists():
            folder.rmdir()
        os.replace(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return manifest


def _table(cursor: duckdb.DuckDBPyConnection, root: Path, table: str, where: str) -> Iterable[ArchivedFile]:
    days = cursor.execute(
        f"SELECT time::DATE::VARCHAR AS day, count(*), min(seq), max(seq) FROM {table} WHERE {where} GROUP BY day ORDER BY day"  # noqa: S608  our own names
    ).fetchall()
    for day, rows, first, last in days:
        name = f"{table}/day={day}/{table}.parquet"
        target = root / name
        target.parent.mkdir(parents=True)
        cursor.execute(
            f"COPY (SELECT * FROM {table} WHERE time::DATE = DATE {quoted(day)} AND {where} ORDER BY seq) "  # noqa: S608  our own names
            f"TO {quoted(str(target))} (FORMAT parquet, COMPRESSION zstd)"
        ).fetchall()
        yield ArchivedFile(name, table, day, rows, first, last, target.stat().st_size, _sha256(target))


def read_manifest(folder: Path) -> Manifest:
    """The archive's manifest; BrokenArchive where there is none that can be read."""
    path = folder / MANIFEST
    try:
        raw: dict[str, Any] = orjson.loads(path.read_bytes())
        files = tuple(ArchivedFile(**file) for file in raw.pop("files"))
        manifest = Manifest(files=files, **raw)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BrokenArchive(path, f"no readable manifest: {error}") from error
    if manifest.format != FORMAT:
        raise BrokenArchive(path, f"format {manifest.format} is not known to this program")
    return manifest


def check(folder: Path) -> Manifest:
    """Check every file against the manifest, every body against its hash, every session's chain and the digest.

    BrokenArchive names the first file that is wrong. This is what stands before an old epoch may be dropped.
    """
    manifest = read_manifest(folder)
    for file in manifest.files:
        path = folder / file.path
        if not path.is_file():
            raise BrokenArchive(path, "missing")
        if path.stat().st_size != file.size_bytes or _sha256(path) != file.sha256:
            raise BrokenArchive(path, "its bytes are not those of the manifest")
    if not manifest.events:
        return manifest
    with connect(":memory:") as connection:
        source = _events(folder)
        broken = connection.execute(
            f"""
            SELECT session, n FROM (
              SELECT session, n, hash, sha256(body) AS found, prevhash,
                lag(hash, 1, repeat('0', 64)) OVER chain AS before, row_number() OVER chain AS place
              FROM {source} WINDOW chain AS (PARTITION BY session ORDER BY n)
            ) WHERE hash <> found OR prevhash <> before OR n <> place ORDER BY session, n LIMIT 1
            """  # noqa: S608  our own files
        ).fetchall()
        if broken:
            raise BrokenArchive(folder / "events", f"session {broken[0][0]}: event {broken[0][1]} breaks the chain")
        [(count,)] = connection.execute(f"SELECT count(*) FROM {source}").fetchall()  # noqa: S608  our own files
        if count != manifest.events or _head_digest(connection, source) != manifest.head_digest:
            raise BrokenArchive(folder / MANIFEST, "its counts or its digest are not those of the events")
    return manifest


def archived_events(folder: Path, session: str, key: bytes | None = None) -> list[Event]:
    """A session's events from the archive, in order, [] if it has none: `show` and as-of fold them as ever.

    `key` opens what is sealed.
    """
    return [
        _opened(seq, body.encode(), None if payload is None else payload.encode(), key)
        for rows in stored(folder, "seq, body, payload", f"session = {quoted(session)}")
        for seq, body, payload in rows
    ]


def _opened(seq: int, body: bytes, held: bytes | None, key: bytes | None) -> Event:
    if key is not None and body.startswith(SEALED) and sealing.seal_of(held or body):
        held = sealing.unsealed(key, str(orjson.loads(body)["id"]), held or body)
    return decode(body, seq, held)


def stored(folder: Path, columns: str, where: str = "true") -> Iterator[list[tuple[Any, ...]]]:
    """`columns` of the archived events in order of the log, in lists; nothing where there are none. BrokenArchive."""
    import duckdb

    if not any(file.table == "events" for file in read_manifest(folder).files):
        return
    with connect(":memory:") as connection:
        try:
            result = connection.execute(f"SELECT {columns} FROM {_events(folder)} WHERE {where} ORDER BY seq")  # noqa: S608  our own words
            while rows := result.fetchmany(10_000):
                yield rows
        except duckdb.Error as error:
            why = f"cannot be read ({str(error).splitlines()[0][:200]}): `verdictlog verify` names the file to put back"
            raise BrokenArchive(folder / "events", why) from error


def _events(folder: Path) -> str:
    return f"read_parquet({quoted(str(folder / 'events' / '*' / '*.parquet'))}, hive_partitioning = false)"


def _head_digest(connection: duckdb.DuckDBPyConnection, source: str) -> str:
    digest = hashlib.sha256()
    result = connection.execute(
        f"SELECT session, max(n), arg_max(hash, n) FROM {source} GROUP BY session ORDER BY session"  # noqa: S608  our own names
    )
    while rows := result.fetchmany(10_000):
        digest.update("".join(f"{session} {n} {hash_}\n" for session, n, hash_ in rows).encode())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
