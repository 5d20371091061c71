"""Bad input gets one line that says what, where and what to do, and the exit code of its kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import EXAMPLE


def verdictlog(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    command = [sys.executable, "-m", "handlers.cli.main", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **(env or {})}
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["judge", "nowhere.json"], 2, "nowhere.json: No such file"),
        (["judge", "."], 2, "Is a directory"),
        (["ask", " "], 2, "the question is empty"),
        (["ask", "why \udcff\udcfe?"], 2, "not UTF-8"),
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
def test_one_line_and_the_code_of_its_kind(arguments: list[str], code: int, says: str, tmp_path: Path) -> None:
    data = [] if arguments == ["unheard-of"] else ["--data", str(tmp_path / "data")]
    returned, told = verdictlog(*arguments, *data)
    assert (returned, told.count("\n")) == (code, 1), told
    assert says in told
    assert told.startswith("verdictlog: ")


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
