"""`verdictlog config`: what holds, where it came from, and never a secret; it needs no server and makes no folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handlers.settings import Settings

ROOT = Path(__file__).parents[2]
TOML = """
deadline_s = 40
model = "from-toml"
on_exhausted = "fallback"
seal = true
[prometheus]
token = "toml-secret-token"
tenant = "payments"
[mcp.platform]
command = "platform-mcp"
args = ["--read-only", "--api-key", "args-secret-1", "--token=args-secret-2", "http://u:args-secret-3@h/?key=args-secret-4"]
env = { LEDGER = "env-secret" }
headers = { Authorization = "Bearer header-secret" }
"""


def run(folder: Path, *arguments: str, code: int = 0, **settings: str) -> tuple[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VERDICTLOG_", "OPENAI_", "NATS_URL"))}
    done = subprocess.run(
        [sys.executable, "-m", "handlers.cli.main", *arguments],
        cwd=folder, env={**clean, "PYTHONPATH": str(ROOT), **settings},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def told(folder: Path, *arguments: str, **settings: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(run(folder, "config", "--json", *arguments, **settings)[0])
    return shown


def test_a_flag_wins_over_the_environment_over_env_file_over_toml_over_default(tmp_path: Path) -> None:
    (tmp_path / "verdictlog.toml").write_text(TOML)
    (tmp_path / ".env").write_text("VERDICTLOG_DEADLINE_S=30\nVERDICTLOG_MODEL=from-file\n")
    by_flag = told(tmp_path, "--deadline", "10", VERDICTLOG_DEADLINE_S="20")
    assert by_flag["deadline_s"] == {"value": 10.0, "from": "flag", "variable": "VERDICTLOG_DEADLINE_S"}
    by_environment = told(tmp_path, VERDICTLOG_DEADLINE_S="20", VERDICTLOG_PROMETHEUS_TIMEOUT_S="5", VERDICTLOG_SEAL="")
    assert {name: (one["value"], one["from"]) for name, one in by_environment.items()}.items() >= {
        "deadline_s": (20.0, "environment"),
        "model": ("from-file", ".env"),
        "verifier_model": ("from-file", ".env"),
        "on_exhausted": ("fallback", "verdictlog.toml"),
        "seal": (True, "verdictlog.toml"),
        "max_attempts": (2, "default"),
        "prometheus.timeout_s": (5.0, "environment"),
        "prometheus.tenant": ("payments", "verdictlog.toml"),
        "loki.timeout_s": (30.0, "default"),
        "lang": ("zh-CN", "default"),
        "agents": ("offline", "default"),
        "keys": (".verdictlog/keys", "default"),
        "mcp.platform.command": ("platform-mcp", "verdictlog.toml"),
    }.items()
    (tmp_path / ".env").unlink()
    assert told(tmp_path)["deadline_s"]["from"] == "verdictlog.toml"


def test_what_depends_on_other_settings_is_told_as_it_holds(tmp_path: Path) -> None:
    shown = told(tmp_path, "--data", "d", NATS_URL="nats://ledger-host:4222", OPENAI_API_KEY="sk-one")
    assert shown["agents"]["value"] == "openai"
    assert shown["data"] == {"value": "d", "from": "flag", "variable": "VERDICTLOG_DATA"}
    assert shown["nats_url"] == {"value": "nats://ledger-host:4222", "from": "environment", "variable": "NATS_URL"}
    assert shown["keys"]["value"].startswith("d/keys-")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_no_secret_is_printed(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "verdictlog.toml").write_text(TOML)
    (tmp_path / ".env").write_text("VERDICTLOG_LOKI_PASSWORD=file-secret\n")
    out, err = run(
        tmp_path, "config", *flags,
        NATS_URL="nats://ann:nats-secret-1@h1:4222,nats-secret-2@h2:4222,nats://h3:4222", OPENAI_API_KEY="sk-api-secret",
        OPENAI_BASE_URL="https://ann:base-secret-1@models/v1?api-key=base-secret-2",
    )  # fmt: skip
    assert "secret" not in out + err
    assert "***@h1:4222,***@h2:4222,nats://h3:4222" in out
    assert "https://***@models/v1?api-key=***" in out
    assert "http://***@h/?key=***" in out
    shown = told(tmp_path, OPENAI_API_KEY="sk-api-secret")
    assert {name for name, one in shown.items() if one["value"] == "***"} == {
        "openai_api_key", "prometheus.token", "loki.password",
    }  # fmt: skip
    assert shown["mcp.platform.env"]["value"] == {"LEDGER": "***"}
    assert shown["mcp.platform.headers"]["value"] == {"Authorization": "***"}


def test_every_setting_is_told_in_text_and_as_json(tmp_path: Path) -> None:
    text, _ = run(tmp_path, "config")
    lines = {line.split()[0]: line.split()[1] for line in text.splitlines()}
    shown = told(tmp_path)
    assert lines == {name: one["from"] for name, one in shown.items()}
    assert {name.partition(".")[0] for name in shown} == {*Settings.model_fields, "log", "debug"}
    assert set(lines.values()) == {"default"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("modle = 1", "modle"),
        ("[prometheus]\ntokn = 'x'", "prometheus.tokn"),
        ("[mcp.platform]\ncommand = 'x'\nargz = []", "mcp.platform.argz"),
        ("model = \nseal = true", "line 1"),
    ],
)
@pytest.mark.parametrize("command", ["config", "sessions"])
def test_a_key_that_no_setting_has_is_an_error_that_names_file_and_key(
    command: str, text: str, key: str, tmp_path: Path
) -> None:
    (tmp_path / "verdictlog.toml").write_text(text)
    out, err = run(tmp_path, command, code=2)
    assert out == ""
    assert err.startswith("verdictlog: verdictlog.toml: ")
    assert key in err
    assert err.count("\n") == 1


def test_a_value_that_cannot_be_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    _, err = run(tmp_path, "config", code=2, VERDICTLOG_MAX_ATTEMPTS="hunter2")
    assert "max_attempts" in err
    assert "hunter2" not in err
