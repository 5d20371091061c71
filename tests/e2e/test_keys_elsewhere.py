"""Sealed sessions where their keys are not: what can be told is told, nothing is given up, and nobody else waits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from streams.server import NatsServer
from tests.e2e.home import Home, environment, foreign, request
from tests.foreign import QUESTION


@pytest.mark.timeout(600)
def test_up_without_the_key_projects_what_is_left_and_doctor_tells_who_waits(
    tmp_path: Path, fresh_server: NatsServer
) -> None:
    home, elsewhere = Home(tmp_path / "data", fresh_server), Home(tmp_path / "elsewhere", fresh_server)
    with AtWork(elsewhere, "worker", "intake", "--seal"):
        asyncio.run(request(fresh_server.url, "e2611-sealed", "question-asked", {"question": QUESTION}))
    with AtWork(home, "up"):
        assert asyncio.run(foreign(fresh_server.url, "e2611-open"))["effective_verdict"] == "PASS"
    home.level()
    assert home.sql("SELECT session, question FROM questions ORDER BY session") == [
        ("e2611-open", QUESTION),
        ("e2611-sealed", "[erased]"),
    ]
    told = home.run("doctor", code=1)
    assert "1 open turns wait for a key that is not in" in told
    assert "e2611-sealed" in told
    assert "the key is not here" in home.run("show", "e2611-sealed")
    assert [event["type"] for event in home.told("show", "e2611-sealed", "--json")["events"]] == ["question-asked"]
    assert QUESTION in elsewhere.run("show", "e2611-sealed")
    assert "sealed text" not in elsewhere.run("doctor")
    differs = home.run("verify", code=1, VERDICTLOG_KEYS=str(next(elsewhere.folder.glob("keys-*"))))
    assert "rebuild" in differs


class AtWork:
    """A command that runs until the block ends."""

    def __init__(self, home: Home, *arguments: str) -> None:
        home.folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(home.folder)]
        self._process = subprocess.Popen(command, env=environment(home.server.url), stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> None:
        assert self._process.stderr is not None
        assert any("running" in line for line in self._process.stderr)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        _, told = self._process.communicate(timeout=60)
        assert "could not park" not in told
        assert self._process.returncode == 0
