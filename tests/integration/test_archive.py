"""The archive: Parquet by day that others read, and a manifest that finds what was changed."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path

import orjson
import pandas as pd
import pytest
from projection_sessions import ListLog, sample_log, with_blob
from test_projection_rebuild import duckdb_cli

from projections.archive import BrokenArchive, archived_events, check, export, read_manifest
from projections.asof import Moment, state_at, summary
from projections.projector import Projector
from projections.store import Store
from streams import chain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = Store.open(Path(":memory:"))
    events = sample_log()
    asyncio.run(Projector(store, ListLog(events), duty=0).run(until=len(events)))
    export(store, tmp_path / "archive")
    return tmp_path / "archive"


def test_the_manifest_says_what_the_files_hold(folder: Path) -> None:
    events = sample_log()
    manifest = check(folder)
    assert (manifest.first_seq, manifest.last_seq, manifest.events, manifest.sessions) == (
        1,
        len(events),
        len(events),
        6,
    )
    of_events = [f for f in manifest.files if f.table == "events"]
    assert [f.day for f in of_events] == ["2026-11-30", "2026-12-01", "2026-12-02"]
    assert sum(f.rows for f in of_events) == len(events)


def test_pandas_and_an_older_duckdb_read_it(folder: Path) -> None:
    frame = pd.concat([pd.read_parquet(p) for p in sorted(folder.glob("verdicts/*/*.parquet"))])
    assert sorted(frame["effective_verdict"].value_counts().items()) == [("LOW_CONFID", 2), ("PASS", 4), ("REJECT", 1)]
    sql = f"SELECT count(*) FROM read_parquet('{folder}/events/*/*.parquet')"
    done = subprocess.run(
        [duckdb_cli(), "-csv", "-noheader", ":memory:", sql], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == len(sample_log())


def test_pandas_and_the_duckdb_program_read_every_table_of_the_manifest(folder: Path) -> None:
    files = read_manifest(folder).files
    by_table = {file.table: sum(other.rows for other in files if other.table == file.table) for file in files}
    for file in files:
        frame = pd.read_parquet(folder / file.path)
        assert (len(frame), frame["seq"].min(), frame["seq"].max()) == (file.rows, file.first_seq, file.last_seq)
    counts = " UNION ALL ".join(
        f"SELECT '{table}' AS name, count(*) AS rows FROM read_parquet('{folder}/{table}/*/*.parquet')"
        for table in sorted(by_table)
    )
    command = [duckdb_cli(), "-csv", "-noheader", ":memory:", f"{counts} ORDER BY name"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert dict(line.split(",") for line in done.stdout.split()) == {name: str(rows) for name, rows in by_table.items()}


def test_a_session_is_shown_from_the_archive_as_of_any_event(folder: Path) -> None:
    events = [e for e in sample_log() if e.session == "e2611-extra-round"]
    archived = archived_events(folder, "e2611-extra-round")
    assert archived == events
    assert chain.verify(archived) is None
    for n in range(len(events) + 1):
        assert summary(state_at("e2611-extra-round", archived, Moment(n=n))) == summary(
            state_at("e2611-extra-round", events, Moment(n=n))
        )
    assert archived_events(folder, "e2611-unknown") == []


def test_a_payload_kept_as_a_blob_is_in_the_archive(tmp_path: Path) -> None:
    events, blob, data = with_blob("e2611-large", "why? " * 1_000)
    log = ListLog(events)
    log.blobs[blob.sha256] = data
    store = Store.open(Path(":memory:"))
    asyncio.run(Projector(store, log, duty=0).run(until=1))
    export(store, tmp_path / "archive")
    assert archived_events(tmp_path / "archive", "e2611-large") == events


def test_one_epoch_is_archived_alone(tmp_path: Path) -> None:
    store = Store.open(Path(":memory:"))
    events = sample_log()
    asyncio.run(Projector(store, ListLog(events), duty=0).run(until=len(events)))
    assert export(store, tmp_path / "old", epoch="e2610").events == 0
    assert check(tmp_path / "old").files == ()
    assert archived_events(tmp_path / "old", "e2611-passed") == []
    assert export(store, tmp_path / "new", epoch="e2611").events == len(events)


def test_a_folder_that_is_not_empty_is_refused(folder: Path) -> None:
    with pytest.raises(FileExistsError):
        export(Store.open(Path(":memory:")), folder)


def test_a_changed_byte_a_missing_file_and_a_missing_manifest_are_found(folder: Path) -> None:
    victim = next(folder.glob("facts/*/*.parquet"))
    whole = victim.read_bytes()
    victim.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    with pytest.raises(BrokenArchive, match="bytes") as broken:
        check(folder)
    assert broken.value.file == victim
    victim.unlink()
    with pytest.raises(BrokenArchive, match="missing"):
        check(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(BrokenArchive, match="manifest"):
        check(folder)


@pytest.mark.parametrize("fault", ["body", "dropped", "head"])
def test_who_rewrites_files_and_manifest_is_found_by_the_chain(tmp_path: Path, fault: str) -> None:
    store = Store.open(Path(":memory:"))
    events = sample_log()
    asyncio.run(Projector(store, ListLog(events), duty=0).run(until=len(events)))
    session = "e2611-rejected"
    if fault == "body":
        store.connection.execute(
            "UPDATE events SET body = replace(body, 'REJECT', 'PASSED') WHERE type = 'round-routed'"
        )
    elif fault == "dropped":
        store.connection.execute(f"DELETE FROM events WHERE session = '{session}' AND n = 5")
    export(store, tmp_path / "archive")
    if fault == "head":
        manifest = read_manifest(tmp_path / "archive")
        raw = orjson.loads((tmp_path / "archive" / "manifest.json").read_bytes())
        raw["head_digest"] = replace(manifest, head_digest="0" * 64).head_digest
        (tmp_path / "archive" / "manifest.json").write_bytes(orjson.dumps(raw))
    with pytest.raises(BrokenArchive, match="digest" if fault == "head" else f"session {session}"):
        check(tmp_path / "archive")
