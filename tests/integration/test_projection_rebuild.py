"""Rebuild: the same bytes from the log, compared, swapped in at once; a snapshot that older programs read."""

from __future__ import annotations

import asyncio
import csv
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from projection_sessions import ListLog, sample_log

from projections import catalog
from projections.projector import Projector
from projections.rebuild import rebuild
from projections.snapshot import snapshot
from projections.store import BadStore, Store, StoreBusy
from streams.envelope import Event


def live(path: Path, events: list[Event]) -> Store:
    store = Store.open(path)
    asyncio.run(Projector(store, ListLog(events), duty=0, batch=13).run(until=len(events)))
    return store


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    store = Store.open(path)
    found = {t.name: store.connection.execute(f"FROM {t.name}").fetchall() for t in catalog.tables()}
    found["sessions"] = store.connection.execute("FROM diagnosis_session ORDER BY session").fetchall()
    store.close()
    return found


@pytest.mark.scenario("SEV-5")
def test_a_deleted_file_is_rebuilt_to_the_same_rows(tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    live(path, events).close()
    before = rows(path)
    path.unlink()
    told: list[tuple[int, int]] = []
    report = asyncio.run(rebuild(path, ListLog(events), lambda at, last: told.append((at, last))))
    assert rows(path) == before
    assert (report.upto, report.swapped, report.not_compared) == (len(events), True, "there was no read model")
    assert told[0] == (0, len(events))
    assert told[-1] == (len(events), len(events))
    assert [p.name for p in tmp_path.iterdir()] == ["read.duckdb"]


def test_a_rebuild_of_a_sound_file_finds_no_difference(tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    live(path, events[:60]).close()
    report = asyncio.run(rebuild(path, ListLog(events)))
    assert (report.same, report.compared, report.upto) == (True, 60, len(events))


def test_a_rebuild_names_what_was_changed_in_the_file(tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    store = live(path, events)
    store.connection.execute("UPDATE verdicts SET effective_verdict = 'PASS' WHERE effective_verdict = 'REJECT'")
    store.connection.execute("INSERT INTO channels SELECT * FROM channels WHERE channel = 'team_review'")
    [(seq,)] = store.connection.execute("SELECT seq FROM verdicts WHERE session = 'e2611-rejected'").fetchall()
    store.close()
    changed = path.read_bytes()
    report = asyncio.run(rebuild(path, ListLog(events), swap=False))
    found = {d.table: (d.only_live, d.only_rebuilt, d.first_seq) for d in report.differences}
    assert found["verdicts"] == (1, 1, seq)
    assert found["channels"][:2] == (1, 0)
    assert set(found) == {"verdicts", "channels"}
    assert path.read_bytes() == changed
    assert asyncio.run(rebuild(path, ListLog(events))).swapped
    assert asyncio.run(rebuild(path, ListLog(events), swap=False)).same


@pytest.mark.parametrize("place", [0, 4096, 5_000, 300_000, 800_000])
def test_a_damaged_file_is_replaced_and_the_damage_told(tmp_path: Path, place: int) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    live(path, events).close()
    raw = bytearray(path.read_bytes())
    raw[place : place + 3_000] = b"\xa5" * 3_000
    path.write_bytes(raw)
    report = asyncio.run(rebuild(path, ListLog(events)))
    assert report.swapped
    assert report.not_compared is None or report.not_compared.startswith("the old one could not be read (")
    assert report.not_compared is None or "move it away" not in report.not_compared
    assert asyncio.run(rebuild(path, ListLog(events), swap=False)).compared == len(events)


def test_a_folder_in_its_place_is_told_before_anything_is_built(tmp_path: Path) -> None:
    path = tmp_path / "read.duckdb"
    path.mkdir()
    with pytest.raises(BadStore, match=r"it is a folder\): move it away"):
        asyncio.run(rebuild(path, ListLog(sample_log())))
    assert [p.name for p in tmp_path.iterdir()] == ["read.duckdb"]


@pytest.mark.parametrize("count", [0, 1])
def test_a_log_of_no_or_one_event_is_rebuilt(tmp_path: Path, count: int) -> None:
    path = tmp_path / "read.duckdb"
    report = asyncio.run(rebuild(path, ListLog(sample_log()[:count])))
    assert report.upto == count
    assert len(rows(path)["events"]) == count
    assert asyncio.run(rebuild(path, ListLog(sample_log()[:count]))).same


def test_a_session_that_goes_on_after_many_others_is_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projections.projector.HEADS_KEPT", 1)
    monkeypatch.setattr("projections.rebuild.BATCH", 4)
    path, events = tmp_path / "read.duckdb", sample_log()
    assert asyncio.run(rebuild(path, ListLog(events))).upto == len(events)
    live(tmp_path / "other.duckdb", events).close()
    assert rows(path) == rows(tmp_path / "other.duckdb")


class StoppingLog(ListLog):
    """A log whose server goes away after 30 events."""

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        for event in self.events[:30]:
            yield event
        raise ConnectionError("gone")


def test_an_interrupted_rebuild_leaves_the_live_file_and_the_next_begins_anew(tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    live(path, events[:40]).close()
    before = path.read_bytes()
    with pytest.raises(ConnectionError):
        asyncio.run(rebuild(path, StoppingLog(events)))
    assert path.read_bytes() == before
    path.with_name("read.duckdb.rebuild").write_bytes(b"left behind by a process that was killed")
    assert asyncio.run(rebuild(path, ListLog(events))).upto == len(events)
    assert [p.name for p in tmp_path.iterdir()] == ["read.duckdb"]


def test_a_file_of_another_schema_or_no_database_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "read.duckdb"
    path.write_bytes(b"not a database" * 1_000)
    report = asyncio.run(rebuild(path, ListLog(sample_log())))
    assert report.not_compared is not None
    assert report.swapped
    assert rows(path)["verdicts"]


REBUILDER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from projection_sessions import ListLog, sample_log
from projections import rebuild
rebuild.BATCH = 10
asyncio.run(rebuild.rebuild(Path(sys.argv[1]), ListLog(sample_log()), lambda at, last: print(at, last, flush=True)))
"""


def test_a_rebuild_that_was_killed_leaves_the_live_file_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    live(path, events[:40]).close()
    before = path.read_bytes()
    command = [sys.executable, "-c", REBUILDER, str(path), str(Path(__file__).parent)]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert killed.stdout
    said = killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert said == f"0 {len(events)}\n"
    assert path.read_bytes() == before
    Store.open(path).close()
    report = asyncio.run(rebuild(path, ListLog(events)))
    assert (report.same, report.compared, report.upto) == (True, 40, len(events))
    assert [p.name for p in tmp_path.iterdir()] == ["read.duckdb"]
    live(tmp_path / "other.duckdb", events).close()
    assert rows(path) == rows(tmp_path / "other.duckdb")


HOLDER = """
import sys, time
from pathlib import Path
from projections.store import Store
store = Store.open(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_file_that_another_process_holds_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "read.duckdb"
    live(path, sample_log()).close()
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with pytest.raises(StoreBusy, match=f"PID {holder.pid}") as busy:
            Store.open(path)
        assert busy.value.pid == holder.pid
        with pytest.raises(StoreBusy):
            asyncio.run(rebuild(path, ListLog(sample_log())))
    finally:
        holder.kill()
        holder.wait()
    Store.open(path).close()


WRITER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from projection_sessions import ListLog, sample_log
from projections.projector import Projector
from projections.store import Store
events = sample_log()
projector = Projector(Store.open(Path(sys.argv[1])), ListLog(events), batch=5, duty=0)
asyncio.run(projector.run(until=len(events), progress=lambda at: print(at, flush=True)))
"""


def test_a_killed_projector_goes_on_where_its_last_commit_was(tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    here = str(Path(__file__).parent)
    for _ in range(2):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), here], stdout=subprocess.PIPE, text=True)
        assert writer.stdout
        said = [int(writer.stdout.readline()) for _ in range(3)]
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        store = Store.open(path)
        assert store.checkpoint().seq >= said[-1]
        store.close()
    live(path, events).close()
    assert asyncio.run(rebuild(path, ListLog(events), swap=False)).same


def duckdb_cli() -> str:
    found = shutil.which("duckdb", path=str(Path(sys.executable).parent)) or shutil.which("duckdb")
    assert found, "the duckdb-cli wheel is a development dependency"
    return found


def test_a_snapshot_is_read_by_an_older_duckdb_while_the_projector_goes_on(tmp_path: Path) -> None:
    events = sample_log()
    store = live(tmp_path / "read.duckdb", events[:50])
    copy = tmp_path / "out" / "copy.duckdb"
    assert snapshot(store, copy) == 50
    asyncio.run(Projector(store, ListLog(events), duty=0).run(until=len(events)))
    assert snapshot(store, copy) == len(events)

    def ask(sql: str) -> list[list[str]]:
        done = subprocess.run(
            [duckdb_cli(), "-readonly", "-csv", "-noheader", str(copy), sql], capture_output=True, text=True, check=True
        )
        return list(csv.reader(done.stdout.splitlines()))

    assert ask("SELECT version()")[0][0].startswith("v1.")
    assert ask("SELECT count(*), count(self_evaluation) FROM diagnosis_session") == [["6", "6"]]
    assert ask("SELECT count(*) FROM v_turn") == [["7"]]
    assert ask(
        "SELECT n FROM diagnosis_session_at_time('2026-11-30T12:00:03+02:00') WHERE session = 'e2611-passed'"
    ) == [["4"]]
    assert [p.name for p in copy.parent.iterdir()] == ["copy.duckdb"]
    store.close()


def test_two_rebuilds_at_once_do_not_take_each_others_file(tmp_path: Path) -> None:
    path, events = tmp_path / "read.duckdb", sample_log()
    refused: list[object] = []

    async def both() -> bool:
        others = []

        def meanwhile(_at: int, _last: int) -> None:
            others.append(asyncio.ensure_future(rebuild(path, ListLog(events))))

        swapped = (await rebuild(path, ListLog(events), meanwhile)).swapped
        refused.extend(await asyncio.gather(*others[:1], return_exceptions=True))
        return swapped

    assert asyncio.run(both())
    assert [type(error) for error in refused] == [StoreBusy]
    assert asyncio.run(rebuild(path, ListLog(events))).same
