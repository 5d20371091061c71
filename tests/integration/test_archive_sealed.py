"""What is sealed stays sealed in an archive: its key opens it there, and a dropped key has erased it there too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import duckdb
import pytest
from nats.aio.client import Client
from projection_sessions import passed

from projections.archive import read_manifest
from projections.epochs import archived, checked, survey
from projections.projector import Projector
from projections.shelf import Shelf
from projections.store import Store
from streams.dropping import Streams
from streams.envelope import Head
from streams.events import QuestionAsked
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.keys import FileKeys
from streams.server import NatsServer
from streams.topology import STREAM_NAME, ensure

pytestmark = pytest.mark.anyio
OCTOBER = datetime(2026, 10, 14, 10, 42, tzinfo=UTC)
SESSION = "e2610-sealed"


@pytest.fixture
async def client(fresh_server: NatsServer) -> AsyncIterator[Client]:
    connection = await connect(fresh_server.url)
    await ensure(connection.jetstream(), ())
    yield connection
    await disconnect(connection)


@pytest.mark.parametrize("times", [1, 10_000], ids=["in the event", "in a blob"])
async def test_the_key_opens_what_an_archive_holds(client: Client, tmp_path: Path, times: int) -> None:
    first, *rest = passed().drafts
    question = first.payload
    assert isinstance(question, QuestionAsked)
    # Hashes hardly compress: what is sealed remains large.
    lines = (f"why does payment-service time out? {sha256(b'%d' % i).hexdigest()}" for i in range(times))
    asked = question.model_copy(update={"question": "\n".join(lines)})
    log = JetStreamLog(client, keys=FileKeys(tmp_path / "keys"), seal=True)
    events = await log.append(SESSION, [replace(first, payload=asked), *rest], Head(), OCTOBER)
    store = Store.open(tmp_path / "read.duckdb")
    await Projector(store, log, duty=0).run(until=events[-1].seq)
    assert "time out" in store.connection.execute("SELECT question FROM questions").fetchall()[0][0]
    folder = tmp_path / "shelf" / "e2610"
    await archived(store, log, "e2610", folder)
    store.close()

    manifest = checked(folder)
    assert manifest == read_manifest(folder)
    assert manifest.events == len(events)
    for file in manifest.files:
        held = duckdb.connect().execute(f"SELECT CAST(t AS VARCHAR) FROM '{folder / file.path}' AS t").fetchall()
        assert not [row for (row,) in held if "time out" in row or "payment-service" in row]
    shelf = Shelf(tmp_path / "shelf")
    assert shelf.events(SESSION, log.key(SESSION)) == await log.read(SESSION) == events
    left = shelf.events(SESSION)
    assert [event.hash for event in left] == [event.hash for event in events]
    assert all("time out" not in event.data.model_dump_json() for event in left)
    streams = Streams(client)
    found = await survey(lambda: streams.walk(STREAM_NAME), log, folder, manifest)
    assert (found.messages, found.sessions, not found.open_turns) == (len(events), {SESSION}, True)
    assert bool(found.blobs) == (times > 1)
