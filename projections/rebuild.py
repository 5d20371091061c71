"""The read model made anew from the log: built beside the live file, compared row by row, swapped in at once."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from projections import catalog
from projections.projector import Projector
from projections.snapshot import remove
from projections.store import BadStore, SchemaMismatch, Store, StoreBusy, is_damage, quoted
from streams.log import EventLog

BATCH = 20_000
SLICE = 20_000  # positions compared at a time, so that memory does not grow with the log


@dataclass(frozen=True, slots=True)
class Difference:
    """A table whose rows are not the same: how many stand only on one side, and the first such position."""

    table: str
    only_live: int
    only_rebuilt: int
    first_seq: int

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.only_live} rows only in the old one, {self.only_rebuilt} only in the new one, "
            f"the first at position {self.first_seq}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What a rebuild found. `compared` counts positions both sides have; `not_compared` says why there is none.

    `beyond`: how many positions the old one went beyond the log's end. More than 0: the log lost them.
    """

    upto: int
    compared: int
    differences: tuple[Difference, ...]
    not_compared: str | None
    swapped: bool
    beyond: int = 0

    @property
    def same(self) -> bool:
        """Whether everything that could be compared is the same."""
        return not self.differences


async def rebuild(
    path: Path, log: EventLog, progress: Callable[[int, int], None] | None = None, swap: bool = True
) -> Report:
    """Project the whole log into a file beside `path`, compare the two, and put it in the other's place.

    `progress` is told (position reached, position of the log's end, which grows if the log does); 0, 0 for an empty
    log. With
    `swap` false nothing is replaced: that is `verify`'s question. If it is interrupted, the live file is as it
    was, and the next rebuild begins anew. StoreBusy if another process holds the live file, BadStore if a folder is
    in its place: that is not ours to replace.
    """
    with _alone(path):
        return await _rebuild(path, log, progress, swap)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else makes a read model of this folder anew meanwhile: between the closing of the old file and the swap
    the database's own lock is nobody's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise StoreBusy(path, "a rebuild in another process", None) from error
    finally:
        os.close(folder)


async def _rebuild(path: Path, log: EventLog, progress: Callable[[int, int], None] | None, swap: bool) -> Report:
    import duckdb

    live, why = await asyncio.to_thread(_open_live, path)
    building = path.with_name(f"{path.name}.rebuild")
    remove(building)
    swapped = False
    try:
        last = await log.last_seq()
        if progress is not None:
            progress(0, last)
        upto = await _build(building, log, last, progress)
        compared = beyond = 0
        differences: tuple[Difference, ...] = ()
        if live is not None:
            try:
                known = live.checkpoint().seq
                compared, beyond = min(known, upto), max(0, known - upto)
                differences = await asyncio.to_thread(compare, live, building, compared)
            except duckdb.Error as error:
                if not is_damage(error):
                    raise
                compared, why = 0, _unreadable(str(error).splitlines()[0][:200])
        if swap:
            if live is not None:
                live.close()
                live = None
            remove(path.with_name(f"{path.name}.wal"))
            os.replace(building, path)
            swapped = True
        return Report(upto, compared, differences, why, swapped, beyond)
    finally:
        if live is not None:
            live.close()
        remove(building)


def _open_live(path: Path) -> tuple[Store | None, str | None]:
    if not path.exists():
        return None, "there was no read model"
    if path.is_dir():
        raise BadStore(path, "it is a folder")
    try:
        return Store.open(path), None
    except SchemaMismatch as error:
        found = "no schema version" if error.found is None else f"schema {error.found}"
        return None, f"the old one had {found}, this program makes {error.wanted}"
    except BadStore as error:
        return None, _unreadable(error.why)


def _unreadable(why: str) -> str:
    return f"the old one could not be read ({why})"


async def _build(building: Path, log: EventLog, last: int, progress: Callable[[int, int], None] | None) -> int:
    store = await asyncio.to_thread(Store.open, building)
    try:
        with store.bulk():
            projector = Projector(store, log, batch=BATCH, duty=0)
            await projector.run(
                until=last, progress=None if progress is None else lambda at: progress(at, max(at, last))
            )
            return projector.position
    finally:
        store.close()


def compare(live: Store, rebuilt: Path, upto: int) -> tuple[Difference, ...]:
    """Rows up to position `upto` that the live tables and the file `rebuilt` do not share."""
    cursor = live.cursor()
    cursor.execute(f"ATTACH {quoted(str(rebuilt))} AS rebuilt (READ_ONLY)")
    try:
        found = [_difference(cursor, table.name, upto) for table in catalog.tables()]
        return tuple(difference for difference in found if difference is not None)
    finally:
        cursor.execute("DETACH rebuilt")
        cursor.close()


def _difference(cursor: Any, table: str, upto: int) -> Difference | None:
    """Slices are compared by the sum of their rows' hashes; only those that differ are compared row by row."""
    slices = cursor.execute(
        f"""
        WITH a AS (SELECT seq // {SLICE} AS slice, count(*) AS rows, sum(hash(t)::HUGEINT) AS total FROM {table} AS t WHERE seq <= {upto} GROUP BY ALL),
             b AS (SELECT seq // {SLICE} AS slice, count(*) AS rows, sum(hash(t)::HUGEINT) AS total FROM rebuilt.main.{table} AS t WHERE seq <= {upto} GROUP BY ALL)
        SELECT slice FROM a FULL JOIN b USING (slice)
        WHERE a.rows IS DISTINCT FROM b.rows OR a.total IS DISTINCT FROM b.total ORDER BY slice
        """  # noqa: S608  our own table names and numbers
    ).fetchall()
    only_live = only_rebuilt = 0
    firsts: list[int] = []
    for (slice_,) in slices:
        within = f"seq BETWEEN {slice_ * SLICE} AND {min(upto, (slice_ + 1) * SLICE - 1)}"
        for mine, other, is_live in ((table, f"rebuilt.main.{table}", True), (f"rebuilt.main.{table}", table, False)):
            [(count, first)] = cursor.execute(
                f"SELECT count(*), min(seq) FROM (FROM {mine} WHERE {within} EXCEPT ALL FROM {other} WHERE {within})"  # noqa: S608  as above
            ).fetchall()
            only_live, only_rebuilt = only_live + count * is_live, only_rebuilt + count * (not is_live)
            firsts += [first] if count else []
    return Difference(table, only_live, only_rebuilt, min(firsts)) if firsts else None
