"""Sessions of every release ever made are read by today's program: bytes, chain, fold, read model."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from projections.projector import Projector
from projections.rebuild import rebuild
from projections.sessions import session_events
from projections.store import Store
from streams import events as ev
from streams import topology
from streams.chain import verify
from streams.envelope import SEALED, dataref_of
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.server import NatsServer
from streams.session import fold
from tests.golden.recordings import (
    HERE,
    KEYS,
    KnownKeys,
    RecordedLog,
    Recording,
    listed,
    missing,
    read,
    releases,
    rows,
    state_object,
    sums,
)

ROOT = Path(__file__).parents[2]
SESSIONS = [(release, session) for release in releases() for session in read(release).sessions]


@cache
def recording(release: str) -> Recording:
    return read(release)


def expected(release: str, name: str) -> Any:
    return orjson.loads((HERE / release / name).read_bytes())


def test_no_recorded_file_was_changed_added_or_removed() -> None:
    assert sums() == listed()


def test_every_event_type_has_a_recording_of_every_schema_it_ever_had() -> None:
    recorded = set()
    for release in releases():
        for message in recording(release).messages:
            kind, schema = orjson.loads(message.body)["dataschema"].removeprefix("urn:verdictlog:").split(":")
            recorded.add((kind, int(schema)))
    released = {(kind, schema) for kind, cls in ev.LATEST.items() for schema in range(1, cls.SCHEMA + 1)}
    assert released - recorded == set(), "record them: python -m tests.golden --release NAME"
    assert set(ev.LATEST) <= {kind for kind, _ in recorded}


@pytest.mark.parametrize(("release", "session"), SESSIONS)
def test_a_recorded_session_is_folded_to_what_it_always_was(release: str, session: str) -> None:
    events = recording(release).events(session, KEYS.get(session))
    assert verify(events) is None
    state = orjson.loads(orjson.dumps(state_object(fold(session, events))))
    assert list(missing(expected(release, f"{session}.state.json"), state)) == []


@pytest.mark.parametrize(("release", "session"), [one for one in SESSIONS if one[1] in KEYS])
def test_a_sealed_recording_tells_with_its_key_what_was_said_and_without_it_what_is_left(
    release: str, session: str
) -> None:
    left, whole = (recording(release).events(session, key) for key in (None, KEYS[session]))
    assert all(
        message.body.startswith(SEALED) for message in recording(release).messages if f".{session}." in message.subject
    )
    assert verify(left) is None
    assert [(event.id, event.hash) for event in left] == [(event.id, event.hash) for event in whole]
    state = orjson.loads(orjson.dumps(state_object(fold(session, left))))
    assert list(missing(expected(release, f"{session}.hidden.json"), state)) == []
    texts = [orjson.dumps([state_object(fold(session, events))]).decode() for events in (left, whole)]
    assert ["payment-service" in text for text in texts] == [False, True]
    asked = [event for event in whole if event.type == "question-asked"]
    assert [dataref_of(event.body) is not None for event in asked] == [False, True]


@pytest.mark.parametrize(("release", "session"), SESSIONS)
def test_every_field_that_was_ever_written_is_known_today(release: str, session: str) -> None:
    """A field that is kept but not known was renamed or dropped without an upcaster: it would be read as absent."""
    for event in recording(release).events(session, KEYS.get(session)):
        for part in event.told:
            assert list(_unknown(part.data, f"event {event.n} {part.type}")) == []


def _unknown(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from (f"{place}.{name}" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name), f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _unknown(item, place)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _unknown(item, place)


@pytest.mark.parametrize("release", releases())
def test_a_recorded_log_is_projected_to_the_rows_it_always_had(release: str, tmp_path: Path) -> None:
    log = RecordedLog(recording(release))
    store = Store.open(tmp_path / "read.duckdb")
    asyncio.run(Projector(store, log, duty=0, batch=20).run(until=recording(release).messages[-1].seq))
    found = rows(store)
    assert list(missing(expected(release, "rows.json"), found)) == []
    bodies = store.connection.execute("SELECT body FROM events ORDER BY seq").fetchall()
    assert [body.encode() for (body,) in bodies] == [message.body for message in recording(release).messages]
    for session in recording(release).sessions:
        assert session_events(store.connection, session) == recording(release).events(session, KEYS.get(session))
    store.close()
    assert asyncio.run(rebuild(tmp_path / "read.duckdb", log, swap=False)).same


@pytest.mark.anyio
@pytest.mark.parametrize("release", releases())
async def test_a_recorded_log_on_a_server_is_read_as_it_was_recorded(release: str, fresh_server: NatsServer) -> None:
    client = await connect(fresh_server.url)
    await topology.ensure(client.jetstream())
    log = JetStreamLog(client, keys=KnownKeys(KEYS))
    for sha256, content in recording(release).blobs.items():
        assert (await log.put_blob(content)).sha256 == sha256
    for message in recording(release).messages:
        stored = await client.jetstream().publish(message.subject, message.body, headers=message.headers)
        assert stored.seq == message.seq
    for session in recording(release).sessions:
        assert await log.read(session) == recording(release).events(session, KEYS.get(session))
    store = Store.open(Path(":memory:"))
    await Projector(store, log, duty=0).run(until=recording(release).messages[-1].seq)
    assert list(missing(expected(release, "rows.json"), rows(store))) == []
    await disconnect(client)


def recorded_files() -> list[Path]:
    return sorted(path for release in releases() for path in (HERE / release).iterdir())


def test_a_recording_is_never_made_again() -> None:
    before = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in recorded_files()}
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden", "--release", releases()[0]],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "never made again" in done.stderr
    assert {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in before} == before


def test_less_or_else_than_expected_is_found() -> None:
    wanted = {"turns": [{"kind": "answer", "score": 1.0}], "n": 3}
    assert list(missing(wanted, {"turns": [{"kind": "answer", "score": 1.0, "new": 1}], "n": 3, "more": []})) == []
    assert list(missing(wanted, {"turns": [{"kind": "answer"}], "n": 3})) == [".turns[0].score is not there"]
    assert list(missing(wanted, {"turns": [], "n": 4})) == [
        ".turns: [] instead of [{'kind': 'answer', 'score': 1.0}]",
        ".n: 4 instead of 3",
    ]
