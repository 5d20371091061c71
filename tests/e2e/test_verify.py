"""What was changed is found: in an exported session by Python alone, in a log against an anchor kept elsewhere."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.bundle_check import first_fault
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.server import NatsServer
from tests.cases import EXAMPLE

Members = dict[str, bytes]


def verdictlog(folder: Path, *arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def bundle(folder: Path) -> Path:
    session = json.loads(verdictlog(folder, "judge", str(EXAMPLE), "--json"))["session"]
    out = folder / "session.zip"
    verdictlog(folder, "export", "session", session, "--out", str(out))
    return out


def offline(bundle: Path) -> subprocess.CompletedProcess[str]:
    """The bundle checks itself, in a Python that sees no package but the standard library."""
    return subprocess.run([sys.executable, "-I", "-S", str(bundle)], capture_output=True, text=True, check=False)


def test_a_bundle_verifies_with_the_standard_library_alone(bundle: Path) -> None:
    done = offline(bundle)
    with zipfile.ZipFile(bundle) as zipped:
        manifest = json.loads(zipped.read("manifest.json"))
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stdout.startswith(
        f"ok   session {manifest['session']}: 13 events, the chain is whole up to {manifest['head']}"
    )
    assert done.stdout.removeprefix("ok   ") in verdictlog(bundle.parent, "verify", str(bundle))


def test_what_a_tool_was_asked_is_shown_as_json(folder: Path, bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as zipped:
        session = json.loads(zipped.read("manifest.json"))["session"]
    assert 'query_metrics {"q": "hikaricp"}  success' in verdictlog(folder, "show", session)


def drop(members: Members) -> None:
    del members["events/000004.json"]


def insert(members: Members) -> None:
    names = sorted((name for name in members if name.startswith("events/")), reverse=True)
    for name in names:
        n = int(name[7:13])
        if n >= 4:
            members[f"events/{n + 1:06}.json"] = members.pop(name)
    members["events/000004.json"] = members["events/000003.json"]


def reorder(members: Members) -> None:
    four, five = members["events/000004.json"], members["events/000005.json"]
    members["events/000004.json"], members["events/000005.json"] = five, four


def change(members: Members) -> None:
    members["events/000002.json"] = members["events/000002.json"].replace(b"no plan", b"No plan", 1)


def change_last(members: Members) -> None:
    last = max(name for name in members if name.startswith("events/"))
    members[last] = members[last].replace(b"answer", b"Answer", 1)


def cut(members: Members) -> None:
    del members[max(name for name in members if name.startswith("events/"))]


def change_blob(members: Members) -> None:
    name = next(name for name in members if name.startswith("blobs/"))
    members[name] = members[name][:-1] + b"!"


def drop_blob(members: Members) -> None:
    del members[next(name for name in members if name.startswith("blobs/"))]


def change_report(members: Members) -> None:
    members["report.json"] = members["report.json"].replace(b"PASS", b"pass")


def add(members: Members) -> None:
    members["events/note.txt"] = b"{}"


@pytest.mark.parametrize(
    ("tamper", "place"),
    [
        (drop, "event 4"),
        (insert, "event 4"),
        (reorder, "event 4"),
        (change, "event 3"),
        (change_last, "event 13"),
        (cut, "event 12"),
        (change_blob, "event 1"),
        (drop_blob, "event 1"),
        (change_report, "report.json"),
        (add, "event 14"),
    ],
)
def test_a_bundle_that_was_changed_names_the_first_bad_place(
    tamper: Callable[[Members], None], place: str, bundle: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(bundle) as source:
        members = {name: source.read(name) for name in source.namelist()}
    before = dict(members)
    tamper(members)
    assert members != before
    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(changed, "w") as target:
        for name, content in members.items():
            target.writestr(name, content)
    fault = first_fault(str(changed))
    assert fault is not None
    assert fault.startswith(place)
    done = offline(changed)
    assert (done.returncode, done.stdout.strip()) == (1, f"BAD  {fault}")


def test_what_is_no_bundle_says_so(tmp_path: Path) -> None:
    junk = tmp_path / "junk.zip"
    junk.write_bytes(b"PK not really")
    assert "not a bundle" in str(first_fault(str(junk)))
    assert verdictlog(tmp_path, "verify", str(junk), code=1).startswith("BAD")


def test_what_has_no_chain_is_told_and_what_can_be_verified_instead(folder: Path, tmp_path: Path) -> None:
    copy, table = tmp_path / "copy.duckdb", tmp_path / "events.parquet"
    verdictlog(folder, "snapshot", str(copy))
    verdictlog(folder, "sql", "SELECT 1 AS one", "--parquet", str(table))
    for file, kind in ((copy, "is a DuckDB file"), (table, "is a Parquet file"), (tmp_path, "is a folder")):
        done = subprocess.run(
            [sys.executable, "-m", "handlers.cli.main", "verify", str(file), "--data", str(folder)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert kind in done.stderr
        assert "SESSION or BUNDLE one session" in done.stderr


def test_a_moment_that_is_none_is_named_by_the_argument_it_came_by(folder: Path, bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as zipped:
        session = json.loads(zipped.read("manifest.json"))["session"]
    for moments, code, says in (
        (("0", "3"), 3, "A 0: "),
        (("1", "999"), 3, "B 999: "),
        (("1", "soon"), 2, "B 'soon' "),
    ):
        command = [sys.executable, "-m", "handlers.cli.main", "diff", session, *moments, "--data", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr.startswith(f"verdictlog: {says}")) == (code, True), done.stderr
        assert "--as-of" not in done.stderr


def test_the_whole_log_verifies_and_an_anchor_finds_another_log(folder: Path, bundle: Path, tmp_path: Path) -> None:
    anchor = tmp_path / "anchor.json"
    verdictlog(folder, "anchor", "--out", str(anchor))
    verdictlog(folder, "sessions")
    told = json.loads(verdictlog(folder, "verify", "--anchor", str(anchor), "--json"))
    assert told["ok"], told
    assert any("read model: equal to a rebuild" in line for line in told["checked"])
    other = tmp_path / "other"
    verdictlog(other, "judge", str(EXAMPLE))
    told = json.loads(verdictlog(other, "verify", "--anchor", str(anchor), "--json", code=1))
    assert "is not the event that was anchored" in told["bad"][0] or "not in the log any more" in told["bad"][0]


def test_an_unknown_session_is_not_found(folder: Path, bundle: Path) -> None:
    verdictlog(folder, "verify", "e2611-nobody", code=3)


def test_an_anchor_is_compared_with_the_whole_log_only(folder: Path, bundle: Path) -> None:
    verdictlog(folder, "verify", str(bundle), "--anchor", str(EXAMPLE), code=2)


@pytest.mark.parametrize(
    ("subject", "body", "why"),
    [
        ("vl.junk", b"{}", "position 14: vl.junk is no subject of an event"),
        ("vl.e2611-forged.1.question-asked", b"{}", "session e2611-forged: event 1 (position 14): missing"),
        ("vl.{session}.14.answer-given", b"{last}", "session {session}: event 14 (position 14): "),
    ],
)
def test_what_somebody_wrote_past_us_is_found_with_its_position(
    subject: str, body: bytes, why: str, fresh_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_URL", fresh_server.url)
    session = json.loads(verdictlog(tmp_path, "judge", str(EXAMPLE), "--json"))["session"]
    verdictlog(tmp_path, "verify")

    async def forge() -> None:
        client = await connect(fresh_server.url)
        told = (await JetStreamLog(client).read(session))[-1].body
        data = told if body == b"{last}" else body
        await client.jetstream().publish(subject.format(session=session), data)
        await disconnect(client)

    asyncio.run(forge())
    bad = json.loads(verdictlog(tmp_path, "verify", "--json", code=1))["bad"]
    assert bad[0].startswith(why.format(session=session))
