"""The DuckDB file: one writer, tables that only grow, one transaction for rows and checkpoint.

DuckDB lets one process open a file for writing and nobody else read it meanwhile; readers get a snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from projections import catalog

if TYPE_CHECKING:
    import duckdb

    from projections.rows import Row

MEMORY_LIMIT = "192MB"
"""Of the database alone: with it a rebuild of a million events stays below 600 MB (bar S6)."""
_STAGED = ("seq", "hash", "body", "kept", "today", "kind", "part")  # $1 to $7 of staged.sql


class StoreBusy(Exception):
    """Another process holds the file. `holder` is what DuckDB says of it, `pid` its process id if known."""

    def __init__(self, path: Path, holder: str, pid: int | None) -> None:
        super().__init__(
            f"{path} is held by {holder}: read a snapshot, or end that process; one process can open the file at a time"
        )
        self.path = path
        self.holder = holder
        self.pid = pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.holder, self.pid)


class SchemaMismatch(Exception):
    """The file was written by another version of the read model: rebuild it from the log.

    `found` is None for a database that is no read model, and equals `wanted` where the number is the same but not the
    tables.
    """

    def __init__(self, path: Path, found: int | None, wanted: int) -> None:
        if found is None:
            why = f"is no read model (schema {wanted} is needed): run `verdictlog rebuild`, which replaces it"
        elif found > wanted:
            why = f"has schema {found} of a newer program, this one needs {wanted}: upgrade it, or run `verdictlog rebuild`"
        elif found < wanted:
            why = f"has schema {found}, this program needs {wanted}: run `verdictlog rebuild`"
        else:
            why = f"has schema {found} as another build of this program made it: run `verdictlog rebuild`"
        super().__init__(f"{path} {why}")
        self.path = path
        self.found = found
        self.wanted = wanted

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.found, self.wanted)


class BadStore(Exception):
    """The file is no DuckDB file, or damaged: rebuild it from the log. A folder in its place is for its owner to move."""

    def __init__(self, path: Path, why: str) -> None:
        do = "run `verdictlog rebuild`, which puts a new one in its place"
        if path.is_dir():
            do = "move it away"
        elif "Permission denied" in why:
            do = "make it and its folder writable"
        super().__init__(f"{path} cannot be read ({why}): {do}")
        self.path = path
        self.why = why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.why)


class Placed(NamedTuple):
    """Where a staged event stands, and the type of what it says; `part` counts from 0 where it says several things."""

    seq: int
    session: str
    n: int
    hash: str
    prevhash: str
    type: str
    part: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest event that the tables hold: position 0 and no hash for none."""

    seq: int = 0
    hash: str = ""


class Store:
    """An open read model. Not safe for use from several threads at once: take a `cursor` for each."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self.connection = connection
        self._in_bulk = False

    @classmethod
    def open(cls, path: Path, memory_limit: str = MEMORY_LIMIT) -> Store:
        """Open or create the file; StoreBusy, SchemaMismatch or BadStore say why it cannot be used."""
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = connect(path, memory_limit)
        try:
            connection.execute(catalog.statement("staged"), [[] for _ in _STAGED])
            connection.execute(catalog.statement("batch"))
            if _tables(connection):
                check_schema(connection, path)
            else:
                create(connection)
        except BaseException as error:
            connection.close()
            if is_damage(error):
                raise BadStore(path, str(error).splitlines()[0][:200]) from error
            raise
        return cls(path, connection)

    def close(self) -> None:
        self.connection.close()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A second connection to the same data, for one other thread."""
        return self.connection.cursor()

    def checkpoint(self) -> Checkpoint:
        """The newest event: the rows are the checkpoint, so the two cannot disagree."""
        row = self.cursor().execute("SELECT max(seq), arg_max(hash, seq) FROM events HAVING count(*) > 0").fetchall()
        return Checkpoint(*row[0]) if row else Checkpoint()

    def head(self, session: str) -> tuple[int, str] | None:
        """(n, hash) of a session's newest event."""
        # In bulk only this connection sees what was stored so far; its thread is the one that asks.
        reader = self.connection if self._in_bulk else self.cursor()
        row = reader.execute(
            "SELECT n, hash FROM events WHERE session = ? ORDER BY n DESC LIMIT 1", [session]
        ).fetchall()
        return (int(row[0][0]), str(row[0][1])) if row else None

    def stage(self, rows: Sequence[Row]) -> list[Placed]:
        """Read `rows` into the batch and say where each stands; nothing is stored yet."""
        if any(row.also for row in rows):
            rows = [part for row in rows for part in row.parts()]
        self.connection.execute(catalog.statement("staged"), [[getattr(row, name) for row in rows] for name in _STAGED])
        found = self.connection.execute(f"SELECT {', '.join(Placed._fields)} FROM staged").fetchall()  # noqa: S608  our own names
        return [Placed._make(row) for row in found]

    def commit(self, kinds: frozenset[str]) -> None:
        """Store what was staged: every table's rows in one transaction. `kinds` are the batch's event types."""
        if self._in_bulk:
            self._insert(kinds)
            return
        with self._transaction():
            self._insert(kinds)

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """One transaction around all commits inside, for a first load: nothing is seen, or kept, before its end.

        The log of changes is by-passed for full row groups, and indexes are made once, at the end.
        """
        for table in catalog.tables():
            self.connection.execute(f"DROP INDEX {_index(table.name)}")
        with self._transaction():
            self._in_bulk = True
            try:
                yield
            finally:
                self._in_bulk = False
        for table in catalog.tables():
            self.connection.execute(f"CREATE INDEX {_index(table.name)} ON {table.name} (session)")
        self.connection.execute("CHECKPOINT")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN TRANSACTION")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise

    def _insert(self, kinds: frozenset[str]) -> None:
        for table in catalog.tables():
            if table.derives_from(kinds):
                self.connection.execute(f"INSERT INTO {table.name} BY NAME {table.sql}")


def connect(
    path: Path | str, memory_limit: str = MEMORY_LIMIT, read_only: bool = False, **config: str
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with our settings: UTC, bounded memory, no extension from anywhere."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "threads": "2",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        **config,
    }
    try:
        connection = duckdb.connect(str(path), read_only=read_only, config=settings)
    except duckdb.IOException as error:
        text = str(error)
        if "lock" in text.lower():
            holder = re.search(r"held in (.+?)(?: by user .*)?(?:\. See|\.?$)", text.splitlines()[0])
            pid = re.search(r"PID (\d+)", text)
            raise StoreBusy(
                Path(path), holder[1] if holder else "another process", int(pid[1]) if pid else None
            ) from error
        raise BadStore(Path(path), text.splitlines()[0][:200]) from error
    except duckdb.Error as error:
        if is_damage(error):
            raise BadStore(Path(path), str(error).splitlines()[0][:200]) from error
        raise
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def is_damage(error: BaseException) -> bool:
    """Whether the database says that the file itself cannot be read; a wrong checksum has no type of its own."""
    import duckdb

    kinds = (duckdb.IOException, duckdb.SerializationException)
    return isinstance(error, kinds) or (isinstance(error, duckdb.Error) and "corrupt" in str(error).lower())


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """BadStore where a block of the file at `path`, which was opened well, turns out to be damaged."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        # An IOException may be another file's: the one that is written from this one.
        if is_damage(error) and not isinstance(error, duckdb.IOException):
            raise BadStore(path, str(error).splitlines()[0][:200]) from error
        raise


def check_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """SchemaMismatch unless tables, macros and views are those of this program: nothing else is ever read."""
    found: tuple[int | None, str | None] = (None, None)
    if "schema_version" in _tables(connection):
        columns = [str(row[0]) for row in connection.execute("DESCRIBE schema_version").fetchall()]
        definition = "definition" if "definition" in columns else "NULL"
        row = connection.execute(f"SELECT version, {definition} FROM schema_version").fetchone()  # noqa: S608  our own names
        found = (row[0], row[1]) if row else found
    if found != (catalog.SCHEMA_VERSION, catalog.definition()):
        raise SchemaMismatch(path, found[0], catalog.SCHEMA_VERSION)


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every table, macro and view in an empty database, documented, in one transaction."""
    connection.execute("BEGIN TRANSACTION")
    for table in catalog.tables():
        connection.execute(f"CREATE TABLE {table.name} AS {table.sql} LIMIT 0")
        connection.execute(f"CREATE INDEX {_index(table.name)} ON {table.name} (session)")
    for macro in catalog.macros():
        connection.execute(macro.sql)
    for view in catalog.views():
        connection.execute(f"CREATE VIEW {view.name} AS {view.sql}")
    for kind, definitions in (("TABLE", catalog.tables()), ("VIEW", catalog.views())):
        for item in definitions:
            connection.execute(f"COMMENT ON {kind} {item.name} IS {quoted(item.doc)}")
            for column, doc in item.columns.items():
                connection.execute(f'COMMENT ON COLUMN {item.name}."{column}" IS {quoted(doc)}')
    connection.execute(
        "CREATE TABLE schema_version AS SELECT ?::INTEGER AS version, ?::VARCHAR AS definition",
        [catalog.SCHEMA_VERSION, catalog.definition()],
    )
    connection.execute("COMMENT ON TABLE schema_version IS 'version of the read model that made this file'")
    connection.execute("COMMIT")


def _index(table: str) -> str:
    return f"{table}_session"


def quoted(text: str) -> str:
    """`text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    found = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
    return [str(name) for (name,) in found]
