"""Where there is no data, a damaged read model, no room, or nobody who reads on: one line, and nothing is lost or made."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from projections.store import BadStore
from tests.cases import EXAMPLE
from tests.e2e.home import environment

LOCAL = {key: value for key, value in environment("").items() if key != "NATS_URL"}
MANY_ROWS = "SELECT repeat('payments-pool ', 100) FROM range(10000)"


def process(*arguments: str, **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "handlers.cli.main", *arguments]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": LOCAL, **more}
    return subprocess.Popen(command, **given)  # type: ignore[call-overload,no-any-return]


def told(*arguments: str, code: int, **more: object) -> str:
    """The one line that a command prints."""
    running = process(*arguments, **more)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err.count("\n"), out or "") == (code, 1, ""), (out, err)
    return str(err)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one session, projected."""
    data = tmp_path_factory.mktemp("judged") / "data"
    for arguments in (["judge", str(EXAMPLE)], ["sessions"]):
        done = process(*arguments, "--data", str(data))
        done.communicate(timeout=60)
        assert done.returncode == 0
    return data


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions"],
        ["show", "e2611-x"],
        ["sql", "SELECT 1"],
        ["tail"],
        ["rejudge", "--all"],
        ["fork", "e2611-x", "--at", "1"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("there", [True, False], ids=["empty folder", "no folder"])
def test_reading_where_there_is_no_data_makes_none_and_says_what_would(
    arguments: list[str], there: bool, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    if there:
        data.mkdir()
    line = told(*arguments, "--data", str(data), code=3)
    assert f"no data in {data}" in line
    assert all(word in line for word in ("--data", "NATS_URL", "ask"))
    assert list(tmp_path.rglob("*")) == ([data] if there else [])


def test_a_reader_that_leaves_early_ends_the_command_as_any_other_and_quietly(judged: Path) -> None:
    running = process("sql", MANY_ROWS, "--csv", "--data", str(judged))
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline()
    running.stdout.close()
    assert running.wait(60) == 141
    assert running.stderr.read() == ""


def test_output_that_finds_no_room_is_one_line(judged: Path) -> None:
    with Path("/dev/full").open("w") as full:
        line = told("sql", MANY_ROWS, "--csv", "--data", str(judged), code=4, stdout=full)
    assert "No space left on device: make room" in line


@pytest.mark.parametrize(
    "arguments", [["sql", "SELECT 1"], ["sessions"], ["snapshot", "{}/x.duckdb"], ["up"]], ids=lambda given: given[0]
)
def test_a_read_model_that_is_none_says_how_it_is_made_anew(
    arguments: list[str], judged: Path, tmp_path: Path, damaged: Path
) -> None:
    line = told(*(word.format(tmp_path) for word in arguments), "--data", str(judged), code=4)
    assert f"{damaged} cannot be read" in line
    assert "rebuild" in line


def test_a_damaged_block_of_the_read_model_is_found_by_who_reads_it_and_a_rebuild_mends_it(
    judged: Path, tmp_path: Path
) -> None:
    path = judged / "verdictlog.duckdb"
    blocks = bytearray(path.read_bytes())
    middle = len(blocks) // 2
    blocks[middle:] = bytes(byte ^ 0x5A for byte in blocks[middle:])
    path.write_bytes(blocks)
    line = told("export", "parquet", str(tmp_path / "parquet"), "--data", str(judged), code=4)
    assert f"{path} cannot be read" in line
    assert "rebuild" in line
    mended = process("rebuild", "--data", str(judged))
    out, _ = mended.communicate(timeout=60)
    assert "rebuilt to position 13" in out
    ended = process("export", "parquet", str(tmp_path / "parquet"), "--data", str(judged))
    ended.communicate(timeout=60)
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("why", "do"), [("IO Error: Permission denied", "make it and its folder writable"), ("bad header", "rebuild")]
)
def test_what_to_do_about_a_read_model_follows_from_what_is_wrong_with_it(why: str, do: str) -> None:
    assert do in str(BadStore(Path("verdictlog.duckdb"), why))


def test_a_server_that_takes_the_connection_and_says_nothing_is_told_within_seconds(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        line = told("sessions", "--data", str(tmp_path), code=4, env=environment(url))
    assert f"cannot reach NATS at {url}: no answer" in line


@pytest.fixture
def damaged(judged: Path) -> Iterator[Path]:
    path = judged / "verdictlog.duckdb"
    whole = path.read_bytes()
    path.write_bytes(b"payment-service" * 300)
    yield path
    path.write_bytes(whole)
