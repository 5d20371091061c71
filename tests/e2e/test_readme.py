"""Every command of the README runs, in its order, as a new user would run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streams.server import NatsServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
EXAMPLE_SERVER = "nats://127.0.0.1:4222"


def commands() -> list[str]:
    joined = "".join(BLOCKS).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a fresh clone whose environment is already made."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("Makefile", "pyproject.toml", "infra"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.mark.timeout(300)
def test_every_command_of_the_readme_runs(home: Path, fresh_server: NatsServer) -> None:
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("VERDICTLOG_", "OPENAI_", "NATS_URL"))
    }
    ran = []
    for command in commands():
        wanted = command.replace(EXAMPLE_SERVER, fresh_server.url)
        if wanted.startswith("make "):
            wanted += " -o .venv/.installed"
        done = subprocess.run(
            wanted, shell=True, cwd=home, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode in {0, 10}, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        ran.append(command)
    assert len(ran) >= 10


def test_every_command_is_told_of_by_help() -> None:
    from handlers.cli.main import COMMANDS

    shown = subprocess.run(
        [sys.executable, "-m", "handlers.cli.main", "--help"], capture_output=True, text=True, check=True
    )
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", shown.stdout, re.MULTILINE)
        told = subprocess.run(
            [sys.executable, "-m", "handlers.cli.main", name, "--help"], capture_output=True, text=True, check=True
        )
        assert "Usage" in told.stdout


def test_the_demo_ends_as_announced(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "handlers.cli.main", "demo", "--json", "--data", str(tmp_path)],
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    runs = {run["name"]: run for run in json.loads(done.stdout)["runs"]}
    assert {name: run["effective_verdict"] for name, run in runs.items()} == {
        "good": "PASS",
        "leak": "REJECT",
        "tampered": "REJECT",
        "injected": "REJECT",
        "extra-round": "PASS",
    }
    assert "evidence.excerpt_mismatch" in runs["tampered"]["failed_rules"]
    assert all(
        set(run) == {"name", "effective_verdict", "failed_rules", "response", "session"} for run in runs.values()
    )


def test_show_prints_the_same_bytes_after_the_read_model_was_deleted_and_rebuilt(tmp_path: Path) -> None:
    def verdictlog(*arguments: str) -> bytes:
        command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(tmp_path)]
        return subprocess.run(command, capture_output=True, timeout=60, check=True).stdout

    session = json.loads(verdictlog("judge", str(ROOT / "infra" / "examples" / "case.json"), "--json"))["session"]
    before = [verdictlog("show", session), verdictlog("show", session, "--json"), verdictlog("sessions", "--json")]
    (tmp_path / "verdictlog.duckdb").unlink()
    verdictlog("rebuild")
    assert [
        verdictlog("show", session),
        verdictlog("show", session, "--json"),
        verdictlog("sessions", "--json"),
    ] == before
