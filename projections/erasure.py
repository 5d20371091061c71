"""Erased text leaves the read model: files that may hold it are made anew from the log, and the old ones removed."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from projections import snapshot
from projections.rebuild import rebuild
from projections.store import Store, connect
from streams.exposure import MARK
from streams.log import EventLog

if TYPE_CHECKING:
    import duckdb

_ERASED = "SELECT 1 FROM erasures LIMIT 1"
_KEPT = "SELECT DISTINCT session FROM erasures JOIN questions USING (session) WHERE question <> ? ORDER BY session"
_FORKS = """
WITH RECURSIVE family AS (
  SELECT ?::VARCHAR AS session
  UNION
  SELECT forks.session FROM forks JOIN family ON forks.origin_session = family.session
)
SELECT session FROM family WHERE session <> ? AND session NOT IN (SELECT session FROM erasures) ORDER BY session
"""


def keeping(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Erased sessions whose text the tables still hold."""
    if not connection.execute(_ERASED).fetchall():
        return []
    return [str(session) for (session,) in connection.execute(_KEPT, [MARK]).fetchall()]


def forks_of(connection: duckdb.DuckDBPyConnection, session: str) -> list[str]:
    """Sessions that were made from this one, or from one that was, and have their text."""
    return [str(fork) for (fork,) in connection.execute(_FORKS, [session, session]).fetchall()]


def holds_no_text(published: Path, seq: int) -> bool:
    """Whether the snapshot at `published` stands at position `seq` or behind, and has no erased text in it."""
    if not published.exists():
        return False
    with connect(published, read_only=True) as connection:
        [(at,)] = connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchall()
        return int(at) >= seq and not keeping(connection)


async def forget(read_model: Path, published: Path, log: EventLog) -> None:
    """Make the read model anew, and its snapshot where there is one; what an interrupted one left is removed.

    StoreBusy if another process holds the read model.
    """
    await rebuild(read_model, log)
    await asyncio.to_thread(_published_anew, read_model, published)


def _published_anew(read_model: Path, published: Path) -> None:
    store = Store.open(read_model)
    try:
        for killed in (read_model, read_model.with_name(f"{read_model.name}.rebuild")):
            # What the database had put aside when a process that used it was killed.
            shutil.rmtree(killed.with_name(f"{killed.name}.tmp"), ignore_errors=True)
        if published.exists():
            snapshot.snapshot(store, published)
        else:
            snapshot.remove(snapshot.building(published))
    finally:
        store.close()
