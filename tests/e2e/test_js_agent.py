"""The JavaScript example: an agent in another language asks, mends its answer when told, and gets its verdict."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from streams.chain import verify
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.server import NatsServer

EXAMPLE = Path(__file__).parents[2] / "infra" / "examples" / "js-agent"
NODE, NPM = shutil.which("node"), shutil.which("npm")

MISSING = "node or npm is not installed: the JavaScript example is NOT tested here"
if NODE is None or NPM is None:
    warnings.warn(MISSING, stacklevel=1)  # a skip alone is one letter among many

pytestmark = pytest.mark.anyio


async def run(*command: str, cwd: Path, **environment: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(120):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.fixture(scope="module")
async def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its dependencies, from the committed lock."""
    folder = tmp_path_factory.mktemp("js") / "agent"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    code, _, err = await run(str(NPM), "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
    assert code == 0, err
    return folder


@asynccontextmanager
async def up(server: NatsServer, folder: Path) -> AsyncIterator[None]:
    """`verdictlog up` as a process of its own, until its intake listens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "handlers.cli.main", "up", "--data", str(folder),
        env={**os.environ, "NATS_URL": server.url, "VERDICTLOG_AGENTS": "offline"},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            told = await process.stderr.readline()
        assert b"intake" in told, told
        yield
    finally:
        process.terminate()
        await process.communicate()


async def played(server: NatsServer, example: Path, session: str, *flags: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = await run(str(NODE), "agent.mjs", *flags, cwd=example, NATS_URL=server.url, SESSION=session)
    return code, json.loads(out) if out.strip() else {}, err


def test_the_lock_names_no_registry() -> None:
    lock = json.loads((EXAMPLE / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: held for name, held in lock["packages"].items() if name}
    assert packages
    assert all("resolved" not in held and held["integrity"].startswith("sha512-") for held in packages.values())


@pytest.mark.skipif(NODE is None or NPM is None, reason=MISSING)
async def test_the_javascript_agent_gets_its_verdict(fresh_server: NatsServer, example: Path, tmp_path: Path) -> None:
    async with up(fresh_server, tmp_path / "data"):
        mended = await played(fresh_server, example, "e2611-js-mended")
        invented = await played(fresh_server, example, "e2611-js-invented", "--invent")
        client = await connect(fresh_server.url)
        events = await JetStreamLog(client).read("e2611-js-mended")
        await disconnect(client)
    code, said, err = mended
    assert (code, said["verdict"], said["kind"]) == (0, "PASS", "answer"), err
    assert "payments-pool" in said["text"]
    assert "asked to mend" in err
    assert [e.attempt for e in events if e.type == "answer-drafted"] == [0, 1]
    assert verify(events) is None
    code, said, err = invented
    assert (code, said["verdict"], said["kind"]) == (20, "REJECT", "degraded"), err
