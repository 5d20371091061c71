"""Somebody else's SQL on the read model: it can read, and nothing else.

Three walls, each enough for most of it: the statement is parsed and only a single SELECT of our tables and of known
table functions goes on; the file is opened read-only with external access off and its settings locked; rows, time
and memory are bounded. With a moment, every table is shown as it was then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import orjson

from projections import catalog
from projections.shelf import overlay
from projections.store import BadStore, check_schema, connect, is_damage, quoted

if TYPE_CHECKING:
    import duckdb

    from projections.asof import Moment

SANDBOX = {
    "enable_external_access": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "max_temp_directory_size": "0MB",
    "temp_directory": "",
}
TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "json_each", "json_tree", "repeat", "repeat_row"})
HIDDEN = re.compile(
    r"^(read_|parquet_|sniff_|duckdb_|pragma_|which_|getenv|glob$|query$|query_table$|current_setting|getvariable"
    r"|write_log|nextval|currval|set_|add_|enable_|disable_|force_|checkpoint|from_substrait|sql_auto|seq_scan|arrow_|pandas_|python_)"
)
SHOWN_CATALOG = frozenset({"duckdb_tables", "duckdb_columns", "duckdb_views"})


class QueryError(Exception):
    """Why a query gave no rows, in one line."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class QueryRefused(QueryError):
    """The statement asks for more than to read the read model."""


class QueryWrong(QueryError):
    """The statement has a fault of its own: its syntax, an unknown table or column, a value that does not convert."""


class QueryFailed(QueryError):
    """The database could not run it: too little memory, or it broke off."""


class QueryTimeout(QueryError):
    """It ran longer than allowed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one query: rows handed out, seconds of work, the database's memory."""

    rows: int = 10_000
    seconds: float = 30.0
    memory: str = "512MB"


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a query; `types` are SQL types; `truncated` if there were more than the limit."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool


def ask(
    path: Path,
    sql: str,
    limits: Limits | None = None,
    moment: Moment | None = None,
    archives: Sequence[Path] = (),
) -> Answer:
    """Run one SELECT on the file at `path`, a read model or a snapshot of one, and on the rows of `archives`.

    `moment` (a position or a time) restricts every table to the events up to it. QueryRefused, QueryWrong, QueryFailed
    and QueryTimeout say why there is no answer; StoreBusy, BadStore and SchemaMismatch why the file cannot be opened. A single value
    of any size escapes both bounds (`confined` holds them).
    """
    import duckdb

    if not path.exists():
        raise QueryFailed(f"{path} is not there: bring the read model level with the log first")
    limits = limits or Limits()
    # Which folders may be read can be said only before everything outside is closed.
    sandbox = {**SANDBOX, "enable_external_access": "true"} if archives else SANDBOX
    with connect(path, limits.memory, read_only=True, **sandbox) as connection:
        if archives:
            allowed = ", ".join(quoted(f"{folder.resolve()}/") for folder in archives)
            connection.execute(f"SET allowed_directories = [{allowed}]")
            connection.execute("SET enable_external_access = false")
        check_schema(connection, path)
        if moment is not None or archives:
            overlay(connection, [folder.resolve() for folder in archives], _bound(moment))
        connection.execute("SET lock_configuration = true")
        timer = Timer(limits.seconds, connection.interrupt)
        timer.start()
        try:
            check(connection, sql)
            result = connection.execute(sql)
            described = result.description or []
            rows = result.fetchmany(limits.rows + 1)
        except duckdb.InterruptException as error:
            raise QueryTimeout(too_long(limits.seconds)) from error
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            raise QueryFailed(too_little(limits.memory)) from error
        except (duckdb.InternalException, duckdb.FatalException) as error:
            raise QueryFailed(one_line(str(error))) from error
        except duckdb.Error as error:
            if is_damage(error):
                raise BadStore(path, one_line(str(error))) from error
            raise QueryWrong(one_line(str(error))) from error
        except RecursionError as error:
            raise QueryWrong("it is nested too deeply") from error
        finally:
            timer.cancel()
    return Answer(
        tuple(str(column[0]) for column in described),
        tuple(str(column[1]) for column in described),
        tuple(rows[: limits.rows]),
        len(rows) > limits.rows,
    )


def too_long(seconds: float) -> str:
    """What a query is told that ran out of its time."""
    return f"ended after {seconds:g} s: narrow the query, or raise the limit (--seconds)"


def too_little(memory: str) -> str:
    """What a query is told that ran out of its memory."""
    return f"it needs more memory than {memory}: narrow the query, or raise the limit (--memory)"


def one_line(text: str) -> str:
    """The first paragraph of a database's message, without its picture of the statement."""
    return " ".join(re.split(r"\n+LINE ", text, maxsplit=1)[0].split())[:500]


def check(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """QueryRefused unless `sql` is one statement that only reads; a duckdb.Error if it does not parse."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryRefused(f"one statement at a time, not {len(statements)}")
    select = re.sub(r"^\s*explain\s+", "", sql, count=1, flags=re.IGNORECASE)
    [(serialized,)] = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [select]).fetchall()
    tree = orjson.loads(serialized)
    if tree.get("error"):
        kind = str(statements[0].type).rsplit(".", 1)[-1]
        raise QueryRefused(
            f"only SELECT (also WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, EXPLAIN) is allowed, not {kind}"
        )
    known = TABLE_FUNCTIONS | {macro.name for macro in catalog.macros()}
    for node in _nodes(tree):
        _check_node(node, known)


def _check_node(node: dict[str, Any], known: frozenset[str]) -> None:
    kind = node.get("type")
    if kind == "TABLE_FUNCTION":
        called = node.get("function") or {}
        name = str(called.get("function_name", "")).lower()
        if name not in known:
            raise QueryRefused(f"table function {name} is not allowed")
    elif kind == "BASE_TABLE":
        schema, database = str(node.get("schema_name", "")).lower(), str(node.get("catalog_name", "")).lower()
        name = str(node.get("table_name", "")).lower()
        if database or schema not in {"", "information_schema"}:
            raise QueryRefused(f"name the table alone: {name}")
        if name == "sqlite_master" or (HIDDEN.match(name) and name not in SHOWN_CATALOG):
            raise QueryRefused(f"table {name} is not allowed")
    elif kind == "SHOW_REF" and "databases" in str(node.get("table_name", "")).lower():
        raise QueryRefused("SHOW DATABASES is not allowed")
    elif node.get("class") in {"FUNCTION", "WINDOW"}:
        name = str(node.get("function_name", "")).lower()
        if HIDDEN.match(name):
            raise QueryRefused(f"function {name} is not allowed")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the parsed statement, without recursion: nesting is the asker's choice."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _bound(moment: Moment | None) -> str:
    if moment is None:
        return "true"
    return f"seq <= {moment.seq or 0:d}" if moment.time is None else f"time <= utc({quoted(moment.time)})"
