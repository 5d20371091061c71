"""Ctrl-C is exit code 130 and no traceback, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cases import EXAMPLE

COMMANDS = (
    ["judge", str(EXAMPLE)],
    ["sql", "SELECT sum(a.range) FROM range(10000000) a, range(10000000)"],
    ["up"],
    ["demo"],
)


def begun() -> list[str]:
    """The program, telling when its first line has run."""
    code = "import handlers.cli.__main__ as program; print('begun', flush=True); program.main()"
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.2, 0.6, 1.5])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_interrupt_ends_a_command_without_a_traceback(command: list[str], after_s: float, tmp_path: Path) -> None:
    (tmp_path / "data" / "nats").mkdir(parents=True)  # who only reads begins no data
    started = subprocess.Popen(
        [*begun(), *command, "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "NATS_URL": ""},
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == "begun\n"
        time.sleep(after_s)
        os.killpg(started.pid, signal.SIGINT)
        _, told = started.communicate(timeout=40)
    assert started.returncode == 130, told
    assert "Traceback" not in told
    assert "Error" not in told
