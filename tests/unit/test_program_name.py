"""Hints name the program as the user can type it again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handlers.cli.process import program, typeable


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    program.cache_clear()
    yield
    program.cache_clear()


def installed(folder: Path) -> Path:
    folder.mkdir(parents=True)
    script = folder / "verdictlog"
    script.touch(mode=0o755)
    return script


def test_by_its_name_where_the_path_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = installed(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert program() == "verdictlog"


def test_by_the_path_that_was_typed_where_it_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path / ".venv" / "bin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/verdictlog"])
    assert program() == ".venv/bin/verdictlog"
    assert typeable("run `verdictlog rebuild`") == "run `.venv/bin/verdictlog rebuild`"


def test_not_by_the_name_of_another_one_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, own = installed(tmp_path / "bin"), installed(tmp_path / "my env" / "bin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setattr(sys, "argv", [str(own)])
    assert program() == "'my env/bin/verdictlog'"


def test_as_a_module_where_there_is_no_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["/somewhere/handlers/cli/__main__.py"])
    assert program().endswith(" -m handlers.cli")
