"""An old epoch is archived and dropped: nothing is lost of it, and whoever asks is told where the answer comes from."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from handlers.cli.admin import _drop
from handlers.settings import Settings
from projections.shelf import Shelf
from streams import dropping, topology
from streams.envelope import Draft, Event, Head
from streams.events import QuestionAsked
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.local import local_server
from tests.integration.projection_sessions import extra_round, passed

pytestmark = pytest.mark.timeout(600)  # each command is a process, and each starts a server
OCTOBER = datetime(2026, 10, 14, 10, 42, tzinfo=UTC)
OLD, LONG, NEW = "e2610-pool", "e2610-long", "e2611-pool"
OF_LOG = "SELECT session, effective_verdict FROM diagnosis_session WHERE session NOT LIKE '%-anchors' ORDER BY session"


def verdictlog(data: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def told(data: Path, *arguments: str, code: int = 0) -> str:
    return verdictlog(data, *arguments, code=code).stdout


async def recorded(data: Path, *sessions: tuple[str, list[Draft], datetime]) -> dict[str, list[Event]]:
    async with local_server(data) as url:
        client = await connect(url)
        await topology.ensure(client.jetstream())
        log = JetStreamLog(client)
        found = {session: await log.append(session, drafts, Head(), now) for session, drafts, now in sessions}
        await disconnect(client)
    return found


def asks(drafts: list[Draft], text: str) -> list[Draft]:
    """The same turn with another question: one that is too large for an event is kept as a blob."""
    question = drafts[0].payload
    assert isinstance(question, QuestionAsked)
    return [replace(drafts[0], payload=question.model_copy(update={"question": text})), *drafts[1:]]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("before") / "data"
    long = asks(passed().drafts, "why does payment-service time out? " * 10_000)
    november = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
    asyncio.run(
        recorded(
            data,
            (OLD, extra_round().drafts, OCTOBER),
            (NEW, passed().drafts, november),
            (LONG, long, OCTOBER),
        )
    )
    return data


@pytest.fixture(scope="module")
def dropped(before: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the data folder, its October archived elsewhere and dropped."""
    folder = tmp_path_factory.mktemp("after")
    data, archive = folder / "data", folder / "kept" / "october"
    shutil.copytree(before, data)
    told(data, "anchor", "--out", str(folder / "anchor.json"))
    told(data, "sql", OF_LOG)
    shutil.copy(data / "verdictlog.duckdb", folder / "undropped.duckdb")
    told(data, "admin", "archive", "e2610", str(archive))
    told(data, "admin", "drop", "e2610", "--archive", str(archive), "--yes")
    return data


@pytest.mark.parametrize(
    "command",
    [
        ("show", OLD, "--json"),
        ("show", OLD, "--as-of", "5", "--json"),
        ("show", OLD, "--as-of", "2026-10-14T10:42:00Z", "--json"),
        ("explain", OLD, "--json"),
        ("diff", OLD, "3", "9", "--json"),
        ("verify", LONG, "--json"),
    ],
    ids=" ".join,
)
def test_a_session_of_a_dropped_epoch_answers_from_the_archive_and_says_so(
    before: Path, dropped: Path, command: tuple[str, ...]
) -> None:
    as_ever, from_archive = verdictlog(before, *command), verdictlog(dropped, *command)
    assert from_archive.stdout == as_ever.stdout
    assert "archive" not in as_ever.stderr
    assert f"{dropped}/archive/e2610" in from_archive.stderr


@pytest.mark.parametrize("as_of", [(), ("--as-of", "2026-10-31"), ("--as-of", "20")], ids=["now", "time", "position"])
def test_sql_has_the_rows_of_both(before: Path, dropped: Path, as_of: tuple[str, ...]) -> None:
    after = verdictlog(dropped, "sql", OF_LOG, "--json", *as_of)
    assert after.stdout == told(before, "sql", OF_LOG, "--json", *as_of)
    assert "archive" in after.stderr


def test_an_archive_of_another_version_answers_in_sql_too(before: Path, dropped: Path, tmp_path: Path) -> None:
    """Its events are what counts: the tables of the program that wrote it are not read."""
    archive = tmp_path / "archives" / "e2610"
    shutil.copytree(dropped.parent / "kept" / "october", archive)
    manifest = json.loads((archive / "manifest.json").read_text())
    (archive / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 0}))
    for table in (path for path in archive.iterdir() if path.name not in {"events", "blobs", "manifest.json"}):
        shutil.rmtree(table)
    query = "SELECT session, question FROM questions WHERE session <> 'x' ORDER BY session"
    command = [sys.executable, "-m", "handlers.cli.main", "sql", query, "--json", "--data", str(dropped)]
    env = {**os.environ, "VERDICTLOG_ARCHIVES": str(archive.parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == told(before, "sql", query, "--json")


def test_the_list_of_sessions_has_them_too(before: Path, dropped: Path) -> None:
    listed = [json.loads(line)["session"] for line in told(dropped, "sessions", "--json").splitlines()]
    assert sorted(s for s in listed if s in {OLD, LONG, NEW}) == sorted([OLD, LONG, NEW])


def test_sql_reads_no_file_beside_the_archive(dropped: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for sql in (f"FROM '{secret}'", f"FROM read_csv('{secret}')"):
        verdictlog(dropped, "sql", sql, code=2)


def test_what_is_followed_says_which_epoch_is_left_out_and_has_its_sessions_one_by_one(
    before: Path, dropped: Path
) -> None:
    whole = verdictlog(dropped, "tail", "--until-idle", "1", "--json")
    assert {json.loads(line)["session"] for line in whole.stdout.splitlines()} & {OLD, LONG, NEW} == {NEW}
    assert whole.stderr.count("\n") == 1
    assert "epoch e2610 was archived and dropped: its 40 events of 2 sessions (positions 1 to 54)" in whole.stderr
    assert f"{dropped}/archive/e2610" in whole.stderr
    behind = verdictlog(dropped, "tail", "--from", "54", "--until-idle", "1")
    assert behind.stderr == ""
    one = verdictlog(dropped, "tail", "--session", OLD, "--json")
    assert one.stdout == told(before, "tail", "--session", OLD, "--until-idle", "1", "--json")
    assert told(dropped, "tail", "--session", OLD, "--from", "3", "--json") == "".join(one.stdout.splitlines(True)[3:])


def test_all_sessions_are_judged_again_also_those_of_an_archive(before: Path, dropped: Path, tmp_path: Path) -> None:
    def turns(data: Path) -> tuple[list[dict[str, Any]], str]:
        done = verdictlog(data, "rejudge", "--all", "--json", code=1)
        return sorted(json.loads(done.stdout)["turns"], key=lambda turn: str(turn["session"])), done.stderr

    judged, said = turns(dropped)
    assert (judged, said.count("\n")) == (turns(before)[0], 1)
    assert [turn["session"] for turn in judged] == [LONG, OLD, NEW]
    data = tmp_path / "data"
    shutil.copytree(dropped, data, symlinks=True)
    (data / "archive" / "e2610").unlink()
    left, said = turns(data)
    assert [turn["session"] for turn in left] == [NEW]
    assert f"2 sessions left out: epoch e2610 was dropped, and its archive is not at {data}/archive/e2610" in said


def test_the_whole_verifies_and_an_anchor_from_before_holds(dropped: Path) -> None:
    found = json.loads(told(dropped, "verify", "--json", "--anchor", str(dropped.parent / "anchor.json")))
    assert not found["bad"]
    assert any("epoch e2610" in line for line in found["checked"])
    assert any("anchor: all" in line for line in found["checked"])
    assert "e2610" in told(dropped, "doctor")


def test_an_exported_session_has_its_texts(dropped: Path, tmp_path: Path) -> None:
    told(dropped, "export", "session", LONG, "--out", str(tmp_path / "long.zip"))
    done = subprocess.run([sys.executable, "-I", "-S", str(tmp_path / "long.zip")], check=False)
    assert done.returncode == 0


def test_nothing_can_be_added_to_it(dropped: Path) -> None:
    for session in (OLD, "e2610-another"):
        done = verdictlog(dropped, "ask", "and now?", "--session", session, "--agents", "offline", code=2)
        assert "was archived and dropped" in done.stderr


def test_it_is_gone_from_the_log_and_dropping_it_again_changes_nothing(dropped: Path) -> None:
    async def live() -> list[int]:
        async with local_server(dropped) as url:
            client = await connect(url)
            found = [len(await JetStreamLog(client).read(session)) for session in (OLD, LONG, NEW)]
            await disconnect(client)
            return found

    old, long, new = asyncio.run(live())
    assert (old, long, new > 0) == (0, 0, True)
    again = told(dropped, "admin", "drop", "e2610", "--archive", str(dropped.parent / "kept" / "october"), "--yes")
    assert "not in the log any more" in again
    assert asyncio.run(live()) == [old, long, new]


def test_a_read_model_from_before_the_drop_counts_no_session_twice(before: Path, dropped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(dropped, data, symlinks=True)
    as_ever = told(before, "sql", OF_LOG)
    shutil.copy(dropped.parent / "undropped.duckdb", data / "verdictlog.duckdb")
    assert told(data, "sql", OF_LOG) == as_ever
    listed = [json.loads(line)["session"] for line in told(data, "sessions", "--json").splitlines()]
    assert sorted(listed) == [LONG, OLD, NEW]
    assert "rebuild" in told(data, "verify", code=1)
    shutil.copy(before / "verdictlog.duckdb", data / "verdictlog.duckdb")  # its last event is one that was dropped
    assert "from before an epoch was dropped: run" in verdictlog(data, "sql", OF_LOG, code=4).stderr


def test_an_archive_that_was_damaged_since_is_told_by_who_reads_it(dropped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(dropped, data)
    [events] = (data / "archive" / "e2610" / "events").glob("*/*.parquet")
    whole = events.read_bytes()
    events.write_bytes(whole[:99] + bytes(byte ^ 0x5A for byte in whole[99:-99]) + whole[-99:])
    for command in (("show", OLD), ("rejudge", "--all"), ("tail", "--session", OLD)):
        why = verdictlog(data, *command, code=1).stderr
        assert why.count("\n") == 1
        assert f"{data}/archive/e2610/events: cannot be read" in why
        assert "verify" in why
    assert f"{events}: its bytes are not those of the manifest" in told(data, "verify", code=1)


def test_without_its_archive_it_is_not_found_and_verify_says_so(dropped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(dropped, data, symlinks=True)
    (data / "archive" / "e2610").unlink()
    assert "VERDICTLOG_ARCHIVES" in verdictlog(data, "show", OLD, code=3).stderr
    assert "it was dropped" in told(data, "verify", code=1)
    assert OLD not in verdictlog(data, "sql", OF_LOG, "--json").stdout


@pytest.fixture(scope="module")
def archive(before: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """October archived, not dropped."""
    folder = tmp_path_factory.mktemp("archive") / "october"
    told(before, "admin", "archive", "e2610", str(folder))
    return folder


async def notes(data: Path) -> int:
    async with local_server(data) as url:
        client = await connect(url)
        found = await JetStreamLog(client).dropped_epochs()
        await disconnect(client)
    return len(found)


def refused(data: Path, archive: Path, epoch: str = "e2610", code: int = 1) -> str:
    why = verdictlog(data, "admin", "drop", epoch, "--archive", str(archive), "--yes", code=code).stderr
    assert asyncio.run(notes(data)) == 0
    assert Shelf(data / "archive").of(epoch) is None
    return why


def test_without_yes_only_the_checks_are_made(before: Path, archive: Path) -> None:
    done = verdictlog(before, "admin", "drop", "e2610", "--archive", str(archive), code=1)
    assert "byte for byte" in done.stdout
    assert "nothing was dropped" in done.stderr
    assert asyncio.run(notes(before)) == 0


def test_an_archive_with_a_lost_text_or_a_changed_byte_drops_nothing(
    before: Path, archive: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "october"
    shutil.copytree(archive, folder)
    [text] = (path for path in folder.glob("blobs/*/*") if path.stat().st_size > 256 * 1024)
    whole = text.read_bytes()
    text.unlink()
    assert "missing" in refused(before, folder)
    text.write_bytes(whole[:-1] + b" ")
    assert "not those of its name" in refused(before, folder)
    text.write_bytes(whole)
    [table] = folder.glob("claims/*/*.parquet")
    table.write_bytes(table.read_bytes()[:-1] + b"!")
    assert "not those of the manifest" in refused(before, folder)


def test_an_archive_behind_the_log_or_an_open_turn_drops_nothing(before: Path, archive: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(before, data)
    asyncio.run(recorded(data, ("e2611-open", passed().drafts[:3], OCTOBER)))
    assert "e2611-open" in refused(data, archive)
    asyncio.run(recorded(data, ("e2610-late", passed().drafts, OCTOBER)))
    assert "not in the archive" in refused(data, archive)


@pytest.mark.parametrize(
    ("epoch", "why"), [("e9912", "not over"), ("e2609", "archive of e2610"), ("october", "no epoch")]
)
def test_an_epoch_that_is_not_over_or_not_the_archived_one_is_refused(
    before: Path, archive: Path, epoch: str, why: str
) -> None:
    assert why in refused(before, archive, epoch, code=2)


class Killed(Exception):
    pass


def test_a_drop_that_ended_after_the_texts_is_brought_to_its_end(
    before: Path, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    shutil.copytree(before, data)
    remove = dropping.remove

    async def dies(client: Client, name: str, *given: Any) -> None:
        if name == topology.STREAM_NAME:
            raise Killed
        await remove(client, name, *given)

    with monkeypatch.context() as patch:
        patch.setattr(dropping, "remove", dies)
        with pytest.raises(Killed):
            asyncio.run(_drop("e2610", archive, True, Settings(data=data)))
    assert asyncio.run(notes(data)) == 0
    assert "why does payment-service time out?" in told(data, "show", LONG)
    told(data, "admin", "drop", "e2610", "--archive", str(archive), "--yes")
    assert asyncio.run(notes(data)) == 1
    told(data, "verify")


def test_roles_at_work_are_left_alone(before: Path, archive: Path) -> None:
    command = [sys.executable, "-m", "handlers.cli.main", "tail", "--data", str(before)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as following:
        try:

            async def waits() -> None:
                async with local_server(before) as url, asyncio.timeout(30):
                    client = await connect(url)
                    js = client.jetstream()
                    await topology.ensure(js)
                    while not any(c.num_waiting for c in await js.consumers_info(topology.STREAM_NAME)):  # noqa: ASYNC110  nobody tells
                        await asyncio.sleep(0.1)
                    await disconnect(client)

            asyncio.run(waits())
            assert "at work" in refused(before, archive)
        finally:
            following.terminate()
