"""The read model's own schema: a file of an older, a newer or another one is never read; it is said what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb
import pytest
from projection_sessions import ListLog, sample_log

from projections import catalog
from projections.projector import Projector
from projections.query import ask
from projections.rebuild import rebuild
from projections.store import SchemaMismatch, Store

NOW = catalog.SCHEMA_VERSION
OTHERS = {
    "older": (
        f"SELECT {NOW - 1} AS version, 'f' AS definition",
        f"has schema {NOW - 1}, this program needs {NOW}: run `verdictlog rebuild`",
    ),
    "before definitions": (
        "SELECT 1 AS version",
        f"has schema 1, this program needs {NOW}: run `verdictlog rebuild`",
    ),
    "newer": (
        f"SELECT {NOW + 1} AS version, '{catalog.definition()}' AS definition",
        f"has schema {NOW + 1} of a newer program, this one needs {NOW}: upgrade it, or run `verdictlog rebuild`",
    ),
    "same number": (
        f"SELECT {NOW} AS version, 'f' AS definition",
        f"has schema {NOW} as another build of this program made it: run `verdictlog rebuild`",
    ),
    "empty": (
        "SELECT 1 AS version, 'f' AS definition LIMIT 0",
        f"is no read model (schema {NOW} is needed): run `verdictlog rebuild`, which replaces it",
    ),
}


def written(path: Path, says: str | None) -> bytes:
    """A real read model, of what its schema table says; None: without that table."""
    events = sample_log()
    store = Store.open(path)
    asyncio.run(Projector(store, ListLog(events), duty=0).run(until=len(events)))
    store.connection.execute("DROP TABLE schema_version")
    if says is not None:
        store.connection.execute(f"CREATE TABLE schema_version AS {says}")
    store.close()
    return path.read_bytes()


@pytest.mark.parametrize("other", OTHERS)
def test_a_file_of_another_schema_is_refused_in_one_line_and_rebuilt_when_told(other: str, tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    before = written(path, OTHERS[other][0])
    for use in (lambda: Store.open(path), lambda: ask(path, "SELECT count(*) FROM verdicts")):
        with pytest.raises(SchemaMismatch) as refused:
            use()
        assert str(refused.value) == f"{path} {OTHERS[other][1]}"
    assert path.read_bytes() == before
    report = asyncio.run(rebuild(path, ListLog(events)))
    assert (report.swapped, report.compared, report.upto) == (True, 0, len(events))
    assert report.not_compared is not None
    assert ask(path, "SELECT count(*) FROM events").rows == ((len(events),),)


def test_somebody_elses_database_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "read.duckdb"
    with duckdb.connect(str(path)) as other:
        other.execute("CREATE TABLE pods AS SELECT 'payment-7f' AS name")
    with pytest.raises(SchemaMismatch, match="is no read model"):
        Store.open(path)
    with duckdb.connect(str(path)) as other:
        assert other.execute("SHOW TABLES").fetchall() == [("pods",)]


@pytest.mark.parametrize("kind", ["tables", "macros", "views"])
def test_a_changed_definition_is_another_schema_even_where_the_number_was_forgotten(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "read.duckdb"
    Store.open(path).close()
    first, *rest = getattr(catalog, kind)()
    definition = catalog.definition.__wrapped__

    def changed(sql: str) -> None:
        item = type(first)(first.name, first.doc, first.types, sql, first.columns)
        monkeypatch.setattr(catalog, kind, lambda: (item, *rest))
        monkeypatch.setattr(catalog, "definition", definition)

    changed(f"-- a remark\n{first.sql}\n")
    Store.open(path).close()
    changed(first.sql.replace("SELECT", "SELECT DISTINCT", 1).replace("CASE", "CASE WHEN false THEN NULL", 1))
    with pytest.raises(SchemaMismatch, match="as another build of this program made it"):
        Store.open(path)
