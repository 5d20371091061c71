"""Bad input gets one line that says what, where and what to do, and the exit code of its kind."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streams.local import local_server
from tests.cases import EXAMPLE

PYTHON = re.compile(r"NoneType|\b(dict|dictionary|tuple|str|bool|int|float|instance|Error\()\b")


def verdictlog(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    command = [sys.executable, "-m", "handlers.cli.main", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **(env or {})}
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log that holds nothing."""
    folder = tmp_path_factory.mktemp("empty") / "data"

    async def begun() -> None:
        async with local_server(folder):
            pass

    asyncio.run(begun())
    return folder


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["judge", "nowhere.json"], 2, "nowhere.json: No such file"),
        (["judge", "."], 2, "Is a directory"),
        (["ask", " "], 2, "the question is empty"),
        (["ask", "??"], 2, "the question has no words"),
        (["ask", "why \udcff\udcfe?"], 2, "not UTF-8"),
        (["ask", "why? " * 8_000], 2, "the question has 40000 characters, 32000 at most"),
        (["ask", "why?", "--logs", "nowhere.log"], 2, "nowhere.log"),
        (["ask", "why?", "--tool", "query_state"], 2, "expected NAME=PATH"),
        (["ask", "why?", "--agents", "oracle"], 2, "expected offline, openai or scripted:FILE"),
        (["show", "e2611-nobody"], 3, "there is no session e2611-nobody"),
        (["show", "no id"], 3, "expected e<yymm>-"),
        (["explain", "e2611-nobody"], 3, "there is no session"),
        (["sql", "SELECT nothing"], 2, "nothing"),
        (["sql", "SELEC 1"], 2, "syntax error"),
        (["sql", "FROM unheard_of"], 2, "unheard_of does not exist"),
        (["sql", "SELECT 'a'::INTEGER"], 2, "Could not convert"),
        (["sql", "SELECT 1", "--memory", "banana"], 2, "--memory: 'banana' is no size"),
        (["sql", "SELECT 1", "--memory", "1KB"], 2, "16MB or more"),
        (["sql", "SELECT 1", "--parquet", "nowhere/x.parquet"], 2, "there is no folder nowhere"),
        (["sql", "SELECT 1", "--parquet", "/"], 2, "is a directory"),
        (["sql", "SELECT 1", "--seconds", "nan"], 2, "'nan' is no number of seconds"),
        (["sql", "SELECT 1", "--seconds", "inf"], 2, "'inf' is no number of seconds"),
        (["sql", "SELECT 1", "--seconds", "-1"], 2, "'-1' is no number of seconds"),
        (["sql", "SELECT repeat('x', 2000000000)", "--seconds", "5"], 1, "needs more memory than 512MB"),
        (["sql", "SELECT repeat('x', 2000000000)", "--seconds", "1", "--memory", "12GB"], 1, "ended after 1 s"),
        (["snapshot", "nowhere/x.duckdb"], 2, "there is no folder nowhere"),
        (["anchor", "--out", "nowhere/x.json"], 2, "there is no folder nowhere"),
        (["ask", "why?", "--deadline", "nan"], 2, "'nan' is no number of seconds"),
        (["judge", "x.json", "--deadline", "1e300"], 2, "'1e300' is no number of seconds"),
        (["tail", "--until-idle", "inf"], 2, "'inf' is no number of seconds"),
        (["sql", "DROP TABLE events"], 2, "only SELECT"),
        (["unheard-of"], 2, "No such command"),
    ],
)
def test_one_line_and_the_code_of_its_kind(arguments: list[str], code: int, says: str, data: Path) -> None:
    returned, told = verdictlog(*arguments, *([] if arguments == ["unheard-of"] else ["--data", str(data)]))
    assert (returned, told.count("\n")) == (code, 1), told
    assert says in told
    assert told.startswith("verdictlog: ")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("null", "standard input: expected one JSON object, found null"),
        ("12", "standard input: expected one JSON object, found a number"),
        ("[]", "standard input: expected one JSON object, found a list"),
        ('"why?"', "standard input: expected one JSON object, found a string"),
        ("true", "standard input: expected one JSON object, found a boolean"),
        ("why?", "standard input: not JSON: expected value at line 1 column 1"),
        ("", "standard input: not JSON: "),
        ("{}", "standard input: question: is missing"),
        ('{"question": 1, "rounds": [{"executor_output": ""}]}', "standard input: question: expected a text"),
        ('{"question": "why?", "rounds": 1}', "standard input: rounds: expected a list"),
        ('{"question": "why?", "rounds": [1]}', "standard input: rounds[0]: expected an object"),
        (
            '{"question": "why?", "rounds": [{"executor_output": 1}]}',
            "expected text, an object or a list of them, found",
        ),
        ('{"question": "why?", "lang": "fr", "rounds": []}', "standard input: lang: expected 'zh-CN' or 'en'"),
        (
            '{"question": "why?", "rounds": [{"executor_output": ""}], "settings": {"deadline_s": 1e300}}',
            "standard input: settings.deadline_s: expected less than or equal to 31536000",
        ),
    ],
)
def test_a_case_that_is_none_is_told_in_the_words_of_json(given: str, says: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "handlers.cli.main", "judge", "-", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert says in done.stderr
    assert not PYTHON.search(done.stderr), done.stderr


def test_an_anchor_that_is_none_is_told(tmp_path: Path, data: Path) -> None:
    for given in ("null", "[1]", "{}", "why?"):
        (tmp_path / "anchor.json").write_text(given)
        code, told = verdictlog("verify", "--anchor", str(tmp_path / "anchor.json"), "--data", str(data))
        assert (code, told.count("\n")) == (2, 1), told
        assert "anchor.json: this is no anchor" in told
        assert not PYTHON.search(told), told


def test_a_snapshot_takes_the_place_of_a_snapshot_and_of_nothing_else(tmp_path: Path, data: Path) -> None:
    note, copy, model = tmp_path / "note.txt", tmp_path / "copy.duckdb", data / "verdictlog.duckdb"
    note.write_text("the only copy")
    command = [sys.executable, "-m", "handlers.cli.main", "snapshot", str(copy), "--data", str(data)]
    for _ in range(2):
        assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    for file, says in ((note, "is no DuckDB file"), (model, "is the read model of this data folder itself")):
        before = file.read_bytes()
        code, told = verdictlog("snapshot", str(file), "--data", str(data))
        assert (code, told.count("\n")) == (2, 1), told
        assert says in told
        assert file.read_bytes() == before


def test_a_log_level_that_is_none_is_told() -> None:
    code, told = verdictlog("schema", env={"VERDICTLOG_LOG": "banana"})
    assert (code, told.count("\n")) == (2, 1)
    assert "VERDICTLOG_LOG=banana: expected one of DEBUG, INFO" in told


def test_what_cannot_be_reached_is_4(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    assert verdictlog("judge", str(EXAMPLE), "--data", str(taken))[0] == 4
    code, told = verdictlog("demo", "--data", str(taken))
    assert (code, told.count("\n")) == (4, 1), told  # nothing is announced before it can be played
    assert verdictlog("sessions", "--data", str(tmp_path), env={"NATS_URL": "nats://127.0.0.1:1"})[0] == 4


def test_a_password_in_an_address_is_shown_to_nobody(tmp_path: Path) -> None:
    code, told = verdictlog(
        "sessions", "--data", str(tmp_path), env={"NATS_URL": "nats://annelise:s3cret@127.0.0.1:1,tok3n@127.0.0.1:2"}
    )
    assert code == 4
    assert "127.0.0.1:1" in told
    assert not any(secret in told for secret in ("annelise", "s3cret", "tok3n"))
