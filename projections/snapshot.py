"""A copy of the read model for others to read: whole, of one moment, readable by older DuckDB, swapped in at once."""

from __future__ import annotations

import os
from pathlib import Path

from projections.store import Store, quoted

STORAGE_VERSION = "v1.0.0"  # every DuckDB since 1.0 reads it
HEAD_BYTES = 12


def snapshot(store: Store, path: Path) -> int:
    """Write the copy to `path`, replacing an older one at once; return the position it stands at.

    Readers that have the older copy open keep it. The copy has our tables, views and macros.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    making = building(path)
    remove(making)
    with store.cursor() as cursor:
        [(database,)] = cursor.execute("SELECT current_database()").fetchall()
        cursor.execute(f"ATTACH {quoted(str(making))} AS copying (STORAGE_VERSION {quoted(STORAGE_VERSION)})")
        try:
            cursor.execute(f'COPY FROM DATABASE "{database}" TO copying')
            [(position,)] = cursor.execute("SELECT coalesce(max(seq), 0) FROM copying.main.events").fetchall()
        finally:
            cursor.execute("DETACH copying")
    os.replace(making, path)
    return int(position)


def replaceable(path: Path) -> bool:
    """Whether a copy may take the place of what is at `path`: nothing, an empty file, or a DuckDB file."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return not head or is_database(head)


def is_database(head: bytes) -> bool:
    """Whether a file whose first HEAD_BYTES are `head` is DuckDB's."""
    return head[8:HEAD_BYTES] == b"DUCK"


def building(path: Path) -> Path:
    """Where a copy is made before it stands at `path`."""
    return path.with_name(f"{path.name}.building")


def remove(path: Path) -> None:
    """Remove a database file and its write-ahead log, where they are."""
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
