"""Imports run one way, and what decides is pure: no broker, no database, no clock, no chance (design section 10)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPURE = frozenset(
    {
        "asyncio",
        "duckdb",
        "faststream",
        "httpx",
        "mcp",
        "nats",
        "openai",
        "os",
        "random",
        "secrets",
        "socket",
        "subprocess",
        "time",
    }
)
# Edges: what touches the world. Every other module of streams/ and handlers/ is pure, also one that comes tomorrow.
EDGES = (
    "streams/directget.py",
    "streams/dropping.py",
    "streams/follower.py",
    "streams/inbox.py",
    "streams/jetstream.py",
    "streams/keys.py",
    "streams/local.py",
    "streams/memory.py",
    "streams/pulls.py",
    "streams/quickclient.py",
    "streams/server.py",
    "streams/topology.py",
    "handlers/agents/",
    "handlers/app.py",
    "handlers/cli/",
    "handlers/demo/chance.py",
    "handlers/demo/incident.py",
    "handlers/dispatch.py",
    "handlers/evidence/",
    "handlers/http/",
    "handlers/mcp.py",
    "handlers/owners.py",
    "handlers/react.py",
    "handlers/reception.py",
)
MAY_IMPORT = {
    "streams": {"streams"},
    "prompts": {"prompts"},
    "projections": {"projections", "streams"},
    "handlers": {"handlers", "streams", "prompts"},
}
SEES_EVERYTHING = ("handlers/cli/", "handlers/app.py", "handlers/http/", "handlers/mcp.py")


def modules() -> list[str]:
    return sorted(str(p.relative_to(ROOT)) for folder in MAY_IMPORT for p in (ROOT / folder).rglob("*.py"))


def imported(path: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


@pytest.mark.parametrize("path", modules())
def test_imports_run_one_way(path: str) -> None:
    folder = path.split("/", maxsplit=1)[0]
    allowed = set(MAY_IMPORT) if path.startswith(SEES_EVERYTHING) else MAY_IMPORT[folder]
    wrong = [
        f"{path}:{line} imports {name}"
        for name, line in imported(path)
        if name.split(".")[0] in MAY_IMPORT and name.split(".")[0] not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize(
    "path", [p for p in modules() if p.split("/")[0] in {"streams", "handlers"} and not p.startswith(EDGES)]
)
def test_what_decides_is_pure(path: str) -> None:
    wrong = [f"{path}:{line} imports {name}" for name, line in imported(path) if name.split(".")[0] in IMPURE]
    assert not wrong


@pytest.mark.parametrize("path", modules())
def test_a_module_fits_its_room(path: str) -> None:
    assert len((ROOT / path).read_text(encoding="utf-8").splitlines()) <= 400


def test_the_top_level_is_the_agreed_one() -> None:
    agreed = {
        "pyproject.toml",
        "README.md",
        "streams",
        "handlers",
        "projections",
        "prompts",
        "tests",
        "infra",
        "Makefile",
        "LICENSE",
        "CHANGELOG.md",
    }
    import subprocess

    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    strangers = {name.split("/")[0] for name in tracked} - agreed
    assert {name for name in strangers if not name.startswith(".")} == set()
