"""Somebody else's SQL: reads, is bounded, sees a moment, and gets nowhere else."""

from __future__ import annotations

import asyncio
import csv
import io
import re
import time
from pathlib import Path

import orjson
import pandas as pd
import pytest
from projection_sessions import ListLog, sample_log

from projections.asof import BadMoment, Moment, parse_moment, parse_position
from projections.confined import ask_confined, size_bytes
from projections.projector import Projector
from projections.query import Limits, QueryError, QueryFailed, QueryRefused, QueryTimeout, QueryWrong, ask
from projections.results import as_csv, as_objects, as_text, write_parquet
from projections.store import Store


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "read.duckdb"
    store = Store.open(path)
    events = sample_log()
    asyncio.run(Projector(store, ListLog(events), duty=0).run(until=len(events)))
    store.close()
    return path


HONEST = (
    "SELECT count(*) FROM events",
    "FROM diagnosis_session",
    "WITH late AS (SELECT * FROM v_turn WHERE fallback_reason IS NOT NULL) SELECT count(*) FROM late",
    "VALUES (1), (2)",
    "DESCRIBE v_turn",
    "SUMMARIZE routes",
    "SHOW TABLES",
    "EXPLAIN SELECT * FROM claims",
    "SELECT * FROM diagnosis_session_at(40)",
    "SELECT * FROM diagnosis_session_at_time('2026-11-30T12:00:10+02:00')",
    "SELECT rule, unnest(claims) FROM failed_rules",
    "SELECT table_name, comment FROM duckdb_tables LIMIT 3",
    "SELECT column_name FROM information_schema.columns LIMIT 3",
    "SELECT body->>'$.data.question' FROM events WHERE type = 'question-asked'",
    "SELECT parts.key FROM channels, json_each(channels.value) AS parts LIMIT 5;",
)

HOSTILE = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM read_blob('{dir}/*')",
    "SELECT * FROM read_json('{dir}/x.json')",
    "SELECT * FROM read_parquet('https://ledger-db.example/x.parquet')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM '{dir}/other.parquet'",
    "FROM glob('{dir}/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT (SELECT content FROM read_text('/etc/passwd')) AS pool",
    "WITH x AS (FROM read_text('/etc/passwd')) FROM x",
    "FROM events WHERE session IN (SELECT content FROM read_text('/etc/passwd'))",
    "COPY events TO '{dir}/stolen.csv'",
    "COPY (SELECT 1) TO '{dir}/stolen.parquet' (FORMAT parquet)",
    "COPY events FROM '/etc/passwd'",
    "EXPORT DATABASE '{dir}/stolen'",
    "IMPORT DATABASE '{dir}/stolen'",
    "ATTACH '{dir}/new.duckdb' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH read",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL fts FROM 'http://ledger-db.example'",
    "CREATE TABLE mine AS SELECT 1",
    "CREATE TEMP TABLE mine AS SELECT 1",
    "CREATE TEMP MACRO mine() AS 1",
    "CREATE SECRET s (TYPE s3)",
    "CREATE OR REPLACE VIEW v_turn AS SELECT 1",
    "DROP TABLE events",
    "DELETE FROM events",
    "UPDATE verdicts SET effective_verdict = 'PASS'",
    "INSERT INTO channels SELECT * FROM channels",
    "ALTER TABLE events ADD COLUMN mine INTEGER",
    "TRUNCATE events",
    "MERGE INTO verdicts USING routes ON verdicts.seq = routes.seq WHEN MATCHED THEN DELETE",
    "SET memory_limit = '100GB'",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CALL pragma_database_list()",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN TRANSACTION",
    "SELECT 1; DROP TABLE events",
    "SELECT 1; SELECT 2",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "EXPLAIN ANALYZE DELETE FROM events",
    "EXPLAIN COPY events TO '{dir}/stolen.csv'",
    "SELECT getenv('HOME')",
    "SELECT * FROM query('DROP TABLE events')",
    "SELECT * FROM query_table(['events'])",
    "SELECT * FROM duckdb_settings()",
    "SELECT path FROM duckdb_databases()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM pragma_database_list",
    "SHOW DATABASES",
    "SELECT current_setting('temp_directory')",
    "SELECT sql FROM sqlite_master",
    "SELECT * FROM read.main.events",
    "SELECT * FROM main.events",
    "SELECT",
    "",
    "-- nothing",
    "SELEKT 1",
    "SELECT nothing FROM events",
    "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
)


@pytest.mark.parametrize("sql", HONEST)
def test_what_only_reads_is_answered(model: Path, sql: str) -> None:
    assert ask(model, sql).rows


@pytest.mark.parametrize("sql", HOSTILE)
def test_what_does_more_than_read_ends_in_one_line(model: Path, sql: str) -> None:
    before = model.read_bytes()
    with pytest.raises(QueryError) as refused:
        ask(model, sql.replace("{dir}", str(model.parent)))
    assert refused.value.why
    assert "\n" not in refused.value.why
    assert model.read_bytes() == before
    assert [p.name for p in model.parent.iterdir()] == ["read.duckdb"]


def test_the_database_itself_has_no_way_out_even_without_the_parser(model: Path) -> None:
    import duckdb

    from projections.query import SANDBOX
    from projections.store import connect

    with connect(model, read_only=True, **SANDBOX) as connection:
        connection.execute("SET lock_configuration = true")
        for sql in (
            "FROM read_text('/etc/hostname')",
            "SET enable_external_access = true",
            "ATTACH ':memory:' AS o",
            "DROP TABLE events",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(sql).fetchall()


def test_a_query_that_runs_too_long_is_ended(model: Path) -> None:
    started = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"after 0\.5 s"):
        ask(model, "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", Limits(seconds=0.5))
    assert time.monotonic() - started < 20


def test_a_query_that_needs_too_much_memory_is_ended(model: Path) -> None:
    with pytest.raises(QueryFailed, match=r"(?i)memory"):
        ask(model, "SELECT list(range) FROM range(200000000)", Limits(memory="64MB"))


def test_rows_are_bounded_and_the_cut_is_told(model: Path) -> None:
    answer = ask_confined(model, "SELECT * FROM range(100)", Limits(rows=10))
    assert (len(answer.rows), answer.truncated) == (10, True)
    assert not ask(model, "SELECT * FROM range(10)", Limits(rows=10)).truncated
    assert "cut by the limit" in as_text(answer)


def test_as_of_shows_every_table_view_and_macro_as_it_was(model: Path) -> None:
    events = sample_log()
    for moment in (Moment(seq=40), Moment(time=events[39].time)):
        seen = [e for e in events if (e.seq <= 40 if moment.seq else e.time <= events[39].time)]
        [row] = ask(
            model,
            "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM v_usage), (SELECT count(*) FROM diagnosis_session),"
            " (SELECT count(*) FROM diagnosis_session_at(100000))",
            moment=moment,
        ).rows
        sessions = len({e.session for e in seen})
        assert row == (len(seen), len([e for e in seen if e.type == "agent-replied"]), sessions, sessions)


def test_digits_are_a_number_and_anything_else_is_a_time() -> None:
    assert parse_moment("12") == Moment(n=12)
    assert parse_position("12") == Moment(seq=12)
    assert parse_moment("2026-11-30T10:42:00+02:00") == Moment(time="2026-11-30T08:42:00.000Z")
    assert parse_moment("2026-11-30 10:42") == Moment(time="2026-11-30T10:42:00.000Z")
    assert parse_moment("2026-11-30") == Moment(time="2026-11-30T00:00:00.000Z")
    for bad in ("yesterday", "-1", "10:42", ""):
        with pytest.raises(BadMoment):
            parse_moment(bad)


MIXED = (
    "SELECT 1 AS a, 2 AS a, 'HikariPool-1 \x1b[31m, \"x\"\n连接池' AS text, NULL AS nothing, 1.50::DECIMAL(6,2) AS price, "
    "TIMESTAMP '2026-11-30 10:42:00' AS at, ['x', 'y'] AS list, {'k': 1, 'l': 'z'} AS struct, '{\"j\": [1]}'::JSON AS json, "
    "'nan'::DOUBLE AS nan, 170141183460469231731687303715884105727::HUGEINT AS huge, 'ab'::BLOB AS bytes, true AS yes"
)


def test_an_answer_is_written_as_json_csv_and_text(model: Path) -> None:
    answer = ask(model, MIXED)
    [row] = orjson.loads(orjson.dumps(as_objects(answer)))
    assert row["a"] == 1
    assert row["a_2"] == 2
    assert row["at"] == "2026-11-30T10:42:00"
    assert row["json"] == {"j": [1]}
    assert row["struct"] == {"k": 1, "l": "z"}
    assert row["nan"] is None
    assert row["price"] == 1.5
    header, line = csv.reader(io.StringIO(as_csv(answer)))
    assert header[:3] == ["a", "a", "text"]
    assert line[-1] == "true"
    assert line[2] == 'HikariPool-1 \x1b[31m, "x"\n连接池'
    text = as_text(answer)
    assert "\x1b" not in text
    assert "\\x1b" in text
    assert len(text.splitlines()) == 3


def test_an_answer_is_written_as_parquet_that_pandas_reads(model: Path, tmp_path: Path) -> None:
    write_parquet(ask(model, MIXED), tmp_path / "mixed.parquet")
    frame = pd.read_parquet(tmp_path / "mixed.parquet")
    assert list(frame["a_2"]) == [2]
    assert list(frame["list"][0]) == ["x", "y"]
    assert frame["at"][0] == pd.Timestamp("2026-11-30 10:42:00")
    write_parquet(ask(model, "FROM v_turn ORDER BY asked_at"), tmp_path / "turns.parquet")
    assert set(pd.read_parquet(tmp_path / "turns.parquet")["effective_verdict"].dropna()) == {"PASS", "REJECT"}
    write_parquet(ask(model, "FROM v_turn WHERE false"), tmp_path / "empty.parquet")
    assert len(pd.read_parquet(tmp_path / "empty.parquet")) == 0


def test_a_single_value_that_the_database_does_not_stop_at_is_ended_in_time(model: Path) -> None:
    began = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"after 0\.5 s"):
        ask_confined(model, "SELECT repeat('x', 2000000000)", Limits(seconds=0.5, memory="12GB"))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("size", [2_000_000_000, 600_000_000])
def test_a_single_value_does_not_grow_beyond_the_memory_limit(model: Path, size: int) -> None:
    with pytest.raises(QueryFailed, match="needs more memory than 64MB"):
        ask_confined(model, f"SELECT repeat('x', {size})", Limits(memory="64MB"))


def test_a_query_apart_says_the_same_as_one_at_hand(model: Path) -> None:
    for sql in ("FROM diagnosis_session ORDER BY seq", "SELECT count(*), 1.5::DECIMAL(4,2), NULL, [1] FROM events"):
        assert ask_confined(model, sql, Limits()) == ask(model, sql)
    moment = parse_position("40")
    counted = "SELECT count(*) FROM events"
    assert ask_confined(model, counted, Limits(), moment) == ask(model, counted, None, moment)
    for sql, kind in (("SELEC 1", QueryWrong), ("FROM nowhere", QueryWrong), ("DROP TABLE events", QueryRefused)):
        with pytest.raises(kind) as apart:
            ask_confined(model, sql, Limits())
        with pytest.raises(kind, match=re.escape(str(apart.value))):
            ask(model, sql)


@pytest.mark.parametrize(
    ("text", "size"), [("512MB", 512_000_000), ("1.5 GiB", 3 << 29), ("2gb", 2_000_000_000), ("64000000b", 64_000_000)]
)
def test_a_memory_limit_is_a_size(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["banana", "", "512", "-1GB", "1KB", "nanGB", "infGB", "1e9GB", "512MB; SET x"])
def test_a_memory_limit_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size of 16MB or more"):
        size_bytes(text)
