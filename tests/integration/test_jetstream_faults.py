"""The log on JetStream while the server dies, acknowledgements get lost, and somebody tampers with the stream."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.aio.client import Client

from streams import chain
from streams.envelope import CONTENT_TYPE, HASH_HEADER, Draft, Event, Head, stamp
from streams.events import ChannelWritten
from streams.follower import BATCH
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.log import BLOB_CHUNK_BYTES, LogUnavailable, LogWentBackwards, MissingBlob
from streams.server import NatsServer
from streams.session import BrokenChain
from streams.topology import STREAM_NAME, ensure, streams

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)


def draft(i: int, text: str = "p99 of payment-service") -> Draft:
    return Draft(ChannelWritten(channel="latency", value=[i, text]), "payment-service", cause=str(i))


@pytest.fixture
async def own_client(fresh_server: NatsServer) -> AsyncIterator[Client]:
    """A client of a server that the test may kill."""
    client = await connect(fresh_server.url)
    await ensure(client.jetstream())
    yield client
    await disconnect(client)


class Proxy:
    """A TCP relay to the server that can swallow what the server says."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []
        self.deaf = False

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, up_writer]
        self._tasks.append(asyncio.create_task(self._relay(reader, up_writer, False)))
        self._tasks.append(asyncio.create_task(self._relay(up_reader, writer, True)))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, downwards: bool) -> None:
        while data := await reader.read(65536):
            if not (downwards and self.deaf):
                writer.write(data)

    def cut(self) -> None:
        """Close all connections and listen again to the server."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()
        self.deaf = False

    async def stop(self) -> None:
        self.cut()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def test_lost_acknowledgement_is_found_again_by_the_ids(nats_server: NatsServer, session_id: str) -> None:
    proxy = Proxy(nats_server.port)
    client = await connect(await proxy.start())
    log = JetStreamLog(client, ack_timeout_s=0.3)
    await ensure(client.jetstream())
    [first] = await log.append(session_id, [draft(0)], Head(), NOW)
    proxy.deaf = True
    appending = asyncio.create_task(log.append(session_id, [draft(1), draft(2)], first.head, NOW))
    await asyncio.sleep(0.15)
    proxy.cut()
    appended = await appending
    events = await log.read(session_id)
    assert events == [first, *appended]
    assert chain.verify(events) is None
    await client.close()
    await proxy.stop()


async def test_server_killed_again_and_again_while_appending_loses_and_doubles_nothing(
    fresh_server: NatsServer, own_client: Client, session_id: str
) -> None:
    log = JetStreamLog(own_client, ack_timeout_s=0.3)
    done = asyncio.Event()
    acknowledged: dict[str, list[Event]] = {}

    async def write(session: str) -> None:
        events: list[Event] = acknowledged.setdefault(session, [])
        while not done.is_set():
            head = events[-1].head if events else Head()
            events += await log.append(session, [draft(len(events))], head, NOW)

    writers = [asyncio.create_task(write(f"{session_id}-{i}")) for i in range(4)]
    for _ in range(3):
        await asyncio.sleep(0.3)
        fresh_server.kill()
        fresh_server.start()
    await asyncio.sleep(0.5)
    done.set()
    await asyncio.gather(*writers)
    for session, events in acknowledged.items():
        assert len(events) > 3
        assert await log.read(session) == events
        assert chain.verify(events) is None
    assert await log.last_seq() == sum(map(len, acknowledged.values()))


async def test_follow_goes_on_over_restarts_of_the_server(
    fresh_server: NatsServer, own_client: Client, session_id: str
) -> None:
    log = JetStreamLog(own_client, ack_timeout_s=0.3)
    seen: list[Event] = []

    async def watch() -> None:
        async with aclosing(log.follow()) as events:
            async for event in events:
                seen.append(event)
                if len(seen) == 4:
                    return

    watching = asyncio.create_task(watch())
    stored: list[Event] = []
    for i in range(3):
        stored += await log.append(session_id, [draft(i)], stored[-1].head if stored else Head(), NOW)
        fresh_server.kill()
        fresh_server.start()
    stored += await log.append(session_id, [draft(9)], stored[-1].head, NOW)
    await asyncio.wait_for(watching, 10)
    assert seen == stored


async def test_follow_stops_when_the_log_was_put_back(
    fresh_server: NatsServer, own_client: Client, session_id: str
) -> None:
    """The server comes back with an older copy of its store."""
    log = JetStreamLog(own_client, ack_timeout_s=0.3)
    [first] = await log.append(session_id, [draft(0)], Head(), NOW)
    fresh_server.stop()
    copied(fresh_server.folder / "store", fresh_server.folder / "kept")
    fresh_server.start()
    await log.append(session_id, [draft(1)], first.head, NOW)
    async with asyncio.timeout(20), aclosing(log.follow()) as events:
        assert [(await anext(events)).n for _ in range(2)] == [1, 2]
        fresh_server.stop()
        copied(fresh_server.folder / "kept", fresh_server.folder / "store")
        fresh_server.start()
        with pytest.raises(LogWentBackwards):
            await anext(events)


def copied(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


async def test_follow_stops_when_the_stream_was_made_anew(own_client: Client, session_id: str) -> None:
    log = JetStreamLog(own_client)
    await log.append(session_id, [draft(0)], Head(), NOW)
    async with asyncio.timeout(20), aclosing(log.follow()) as events:
        assert (await anext(events)).n == 1
        await own_client.jetstream().delete_stream(STREAM_NAME)
        await ensure(own_client.jetstream())
        await log.append(session_id, [draft(0)], Head(), NOW)
        with pytest.raises(LogWentBackwards, match="anew"):
            await anext(events)


async def test_follow_stops_at_a_gap(own_client: Client, session_id: str) -> None:
    log = JetStreamLog(own_client)
    js = own_client.jetstream()
    await js.delete_stream(STREAM_NAME)
    wanted, _ = streams()
    await js.add_stream(wanted, deny_delete=False)
    stored = await log.append(session_id, [draft(i) for i in range(3)], Head(), NOW)
    await js.delete_msg(STREAM_NAME, stored[1].seq)
    async with asyncio.timeout(10), aclosing(log.follow()) as events:
        assert await anext(events) == stored[0]
        with pytest.raises(LogWentBackwards, match="position 2"):
            await anext(events)
    with pytest.raises(BrokenChain) as raised:
        await log.read(session_id)
    assert raised.value.n == 2


async def test_session_longer_than_one_page_is_read_whole(client: Client, session_id: str) -> None:
    log = JetStreamLog(client)
    events: list[Event] = []
    for part in range(4):
        head = events[-1].head if events else Head()
        events += await log.append(session_id, [draft(part * 300 + i) for i in range(300)], head, NOW)
    assert await log.read(session_id) == events
    assert len(await log.read(session_id, upto=events[1099].seq)) == 1100
    assert await log.read(session_id, after=events[1197].head) == events[1198:]


async def test_reader_slower_than_the_log_gets_everything_within_bounds(client: Client, session_id: str) -> None:
    """More is waiting than two pulls; what the walk holds meanwhile stays within them."""
    log = JetStreamLog(client)
    start = await log.last_seq()
    count = 2 * BATCH + 300
    await asyncio.gather(
        *(log.append(f"{session_id}-{i}", [draft(j) for j in range(13)], Head(), NOW) for i in range(count // 13))
    )
    taken, largest = 0, 0
    async with asyncio.timeout(20), aclosing(log.stored(start)) as batches:
        async for batch in batches:
            taken += len(batch)
            largest = max(largest, len(batch))
            await asyncio.sleep(0.1)
            if taken >= count // 13 * 13:
                break
    assert taken == count // 13 * 13
    assert largest <= 2 * BATCH


async def test_foreign_bytes_in_a_session_are_a_broken_chain(client: Client, session_id: str) -> None:
    log = JetStreamLog(client)
    [first] = await log.append(session_id, [draft(0)], Head(), NOW)
    await client.jetstream().publish(f"vl.{session_id}.2.channel-written", b"not an event")
    with pytest.raises(BrokenChain) as raised:
        await log.read(session_id)
    assert (raised.value.session, raised.value.n) == (session_id, first.n + 1)


@pytest.mark.parametrize("case", ["other-place", "other-session", "wrong-hash", "no-hash"])
async def test_event_that_is_not_what_its_subject_and_hash_say_is_a_broken_chain(
    client: Client, session_id: str, case: str
) -> None:
    event = stamp("e2611-other" if case == "other-session" else session_id, Head(), draft(0), NOW)
    place = 2 if case == "other-place" else 1
    headers = {"Content-Type": CONTENT_TYPE, HASH_HEADER: "0" * 64 if case == "wrong-hash" else event.hash}
    if case == "no-hash":
        del headers[HASH_HEADER]
    await client.jetstream().publish(f"vl.{session_id}.{place}.channel-written", event.body, headers=headers)
    with pytest.raises(BrokenChain):
        await JetStreamLog(client).read(session_id)


async def test_two_events_at_one_place_are_a_broken_chain(client: Client, session_id: str) -> None:
    log = JetStreamLog(client)
    [event] = await log.append(session_id, [draft(0)], Head(), NOW)
    headers = {HASH_HEADER: event.hash}
    await client.jetstream().publish(f"vl.{session_id}.1.answer-given", event.body, headers=headers)
    with pytest.raises(BrokenChain):
        await log.read(session_id)


async def test_blob_with_a_chunk_missing_or_changed_is_missing(client: Client) -> None:
    log = JetStreamLog(client)
    data = b"2026-11-30T10:42:00Z WARN HikariPool-1 - Connection is not available\n" * 6000
    half = await log.put_blob(data[:BLOB_CHUNK_BYTES])
    whole = half.model_copy(update={"size_bytes": len(data), "chunks": 4})
    with pytest.raises(MissingBlob):
        await log.get_blob(whole)
    await client.jetstream().publish(f"blob.{half.sha256}.1", b"something else")
    with pytest.raises(MissingBlob):
        await log.get_blob(half)


async def test_half_stored_blob_is_completed(client: Client, session_id: str) -> None:
    data = (session_id * 40_000).encode()
    sha256 = hashlib.sha256(data).hexdigest()
    await client.jetstream().publish(f"blob.{sha256}.1", data[BLOB_CHUNK_BYTES : 2 * BLOB_CHUNK_BYTES])
    log = JetStreamLog(client)
    assert await log.get_blob(await log.put_blob(data)) == data


async def test_full_stream_refuses_at_once_and_says_why(own_client: Client, session_id: str) -> None:
    js = own_client.jetstream()
    wanted, _ = streams()
    await js.update_stream(wanted, max_bytes=20_000)
    log = JetStreamLog(own_client)
    stored: list[Event] = []

    async def fill() -> None:
        for i in range(30):
            stored.extend(
                await log.append(session_id, [draft(i, "x" * 1000)], stored[-1].head if stored else Head(), NOW)
            )

    with pytest.raises(LogUnavailable, match="maximum bytes"):
        await fill()
    assert await log.read(session_id) == stored
    await js.update_stream(wanted)
    assert len(await log.append(session_id, [draft(99)], stored[-1].head, NOW)) == 1


async def test_stopped_server_is_unavailable_within_the_patience(
    fresh_server: NatsServer, own_client: Client, session_id: str
) -> None:
    log = JetStreamLog(own_client, ack_timeout_s=0.2, patience_s=0.5)
    [event] = await log.append(session_id, [draft(0)], Head(), NOW)
    fresh_server.stop()
    async with asyncio.timeout(8):
        with pytest.raises(LogUnavailable):
            await log.append(session_id, [draft(1)], event.head, NOW)
        with pytest.raises(LogUnavailable):
            await log.read(session_id)
        with pytest.raises(LogUnavailable):
            await log.last_seq()


async def test_log_without_its_stream_is_unavailable(fresh_server: NatsServer, session_id: str) -> None:
    client = await connect(fresh_server.url)
    log = JetStreamLog(client, patience_s=0.3)
    with pytest.raises(LogUnavailable):
        await log.append(session_id, [draft(0)], Head(), NOW)
    with pytest.raises(LogUnavailable):
        await log.read(session_id)
    with pytest.raises(LogUnavailable, match="stream not found"):
        await log.last_seq()
    await client.close()


async def test_closed_connection_is_unavailable_at_once(client: Client, session_id: str) -> None:
    log = JetStreamLog(client)
    await log.append(session_id, [draft(0)], Head(), NOW)
    await client.close()
    with pytest.raises(LogUnavailable):
        await log.append(session_id, [draft(1)], Head(), NOW)
    with pytest.raises(LogUnavailable):
        await log.read(session_id)
