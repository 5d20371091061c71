"""The README's Python of a third party runs as it stands, against `verdictlog up`, and its channel is in the read model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from streams.server import NatsServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_third_party_of_the_readme_writes_its_channel(fresh_server: NatsServer, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("VERDICTLOG_", "OPENAI_"))}
    env |= {"NATS_URL": fresh_server.url, "PYTHONPATH": str(ROOT)}

    def verdictlog(*arguments: str) -> str:
        command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(tmp_path / "data")]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, env=env).stdout

    session = json.loads(verdictlog("judge", str(ROOT / "infra" / "examples" / "case.json"), "--json"))["session"]
    [script] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    up = subprocess.Popen(
        [sys.executable, "-m", "handlers.cli.main", "up", "--data", str(tmp_path / "up")],
        stderr=subprocess.PIPE, text=True, env=env,
    )  # fmt: skip
    try:
        assert up.stderr
        assert "running" in up.stderr.readline()
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env={**env, "SESSION": session},
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        written = json.loads(done.stdout)
        asked = "SELECT n, actor, who, value FROM v_channel_history WHERE channel = 'human_review'"
        [row] = [json.loads(line) for line in verdictlog("sql", asked, "--json").splitlines()]
        assert row == {"n": written["n"], "actor": "intake", "who": "on-call", "value": {"useful": True}}
    finally:
        up.kill()
        up.wait()
