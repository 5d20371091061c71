"""Settings from the environment: an empty one is none; numbers are finite."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from handlers.cli.options import settings_from
from handlers.settings import Settings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without `.env` and `verdictlog.toml`, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("VERDICTLOG_", "OPENAI_", "NATS_URL")):
            monkeypatch.delenv(name)


def names() -> list[str]:
    own = [field.validation_alias or f"VERDICTLOG_{name.upper()}" for name, field in Settings.model_fields.items()]
    return [*map(str, own), "VERDICTLOG_PROMETHEUS_TOKEN", "VERDICTLOG_LOKI_TIMEOUT_S"]


@pytest.mark.parametrize("name", names())
def test_an_empty_setting_is_not_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unset = Settings()
    monkeypatch.setenv(name, "")
    assert Settings() == unset


def test_an_empty_setting_in_the_env_file_is_not_set(tmp_path: Path) -> None:
    unset = Settings()
    (tmp_path / ".env").write_text("NATS_URL=\nVERDICTLOG_DEADLINE_S=\n")
    assert Settings() == unset


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1", "1e300"])
def test_a_deadline_is_a_finite_number_of_seconds(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERDICTLOG_DEADLINE_S", value)
    with pytest.raises(click.UsageError, match="deadline_s"):
        settings_from()
