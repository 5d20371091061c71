"""A data folder and its server as a user has them: every command is a process, and files are looked into for words."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from projections.store import connect as duckdb_file
from streams.envelope import Draft, dataref_of
from streams.events import TextErased
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.server import NatsServer
from tests.foreign import CONTRACT, QUESTION, TOOL

WORDS = ("payments-pool", "out of connections", "quetzal")


def environment(server: str, **settings: str) -> dict[str, str]:
    """Ours, without settings that somebody may have made; those that are given laid over."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("VERDICTLOG_", "OPENAI_"))}
    return {**clean, "NATS_URL": server, **settings}


def command(server: str, folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(folder)],
        env=environment(server, **settings),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


class Home:
    """A data folder and its server; every command is a process."""

    def __init__(self, folder: Path, server: NatsServer) -> None:
        self.folder = folder
        self.server = server

    def run(self, *arguments: str, code: int = 0, **settings: str) -> str:
        done = command(self.server.url, self.folder, *arguments, **settings)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def told(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        done = command(self.server.url, self.folder, *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def judge(self, case: dict[str, Any], *flags: str) -> dict[str, Any]:
        path = self.folder / "case.json"
        path.write_text(json.dumps(case), encoding="utf-8")
        done = command(self.server.url, self.folder, "judge", str(path), "--json", *flags)
        assert done.returncode in {0, 10, 20}, done.stderr
        path.unlink()
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def level(self) -> None:
        """The read model brought level with the log."""
        self.run("sql", "SELECT 1")

    @property
    def read_model(self) -> Path:
        return next(self.folder.glob("verdictlog-????????.duckdb"))

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        with duckdb_file(self.read_model, read_only=True) as connection:
            return connection.execute(query).fetchall()

    def words_in_files(self) -> set[str]:
        """Files of the data folder and of the server's store in which one of WORDS stands."""
        files = [
            path for root in (self.folder, self.server.folder / "store") for path in root.rglob("*") if path.is_file()
        ]
        return {path.name for path in files if any(word.encode() in path.read_bytes() for word in WORDS)}

    def words_in_tables(self, path: Path | None = None) -> set[str]:
        """The same for the tables of the read model, whose file compresses text."""
        found = set()
        with duckdb_file(path or self.read_model, read_only=True) as connection:
            tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            for (table,) in tables:
                told = " OR ".join(f"contains(t::VARCHAR, '{word}')" for word in WORDS)
                [(rows,)] = connection.execute(f"SELECT count(*) FROM {table} AS t WHERE {told}").fetchall()
                found |= {str(table)} if rows else set()
        return found

    def words_in_log(self) -> set[str]:
        """Sessions in whose stored bytes, blobs included, one of WORDS stands."""
        return asyncio.run(self._words_in_log())

    async def _words_in_log(self) -> set[str]:
        client = await connect(self.server.url)
        log, found = JetStreamLog(client), set()
        try:
            last = await log.last_seq()
            async for event in log.follow(0):
                blob = dataref_of(event.body)
                bodies = [event.body, b"" if blob is None else await log.get_blob(blob)]
                if any(word.encode() in body for word in WORDS for body in bodies):
                    found.add(event.session)
                if event.seq >= last:
                    return found
        finally:
            await disconnect(client)
        return found

    def append(self, session: str, payload: TextErased) -> None:
        """What a command records before it is killed."""
        asyncio.run(self._append(session, payload))

    async def _append(self, session: str, payload: TextErased) -> None:
        client = await connect(self.server.url)
        log = JetStreamLog(client)
        head = (await log.read(session))[-1].head
        await log.append(session, [Draft(payload, "operator")], head, datetime.now(UTC))
        await disconnect(client)


async def foreign(url: str, session: str) -> dict[str, Any]:
    asked = {"question": QUESTION, "lang": "en", "deadline_s": 60}
    await request(url, session, "question-asked", asked)
    await request(url, session, "tool-invoked", TOOL)
    repeated = await request(url, session, "tool-invoked", TOOL)
    assert "error" not in repeated
    await request(url, session, "answer-drafted", {"answer": CONTRACT})
    return await request(url, session, "await", {"timeout_s": 60})


async def request(url: str, session: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    client = await connect(url)
    try:
        reply = await client.request(f"vl-in.{session}.{kind}", json.dumps(body).encode(), timeout=90)
        said: dict[str, Any] = json.loads(reply.data)
        return said
    finally:
        await disconnect(client)


def held(home: Home, published: Path) -> set[str]:
    return home.words_in_tables(published) if published.exists() else set()


def until(holds: Any, within_s: float = 60.0) -> None:
    ends = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.5)
