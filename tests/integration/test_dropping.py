"""Messages leave a stream that refuses every deletion: what remains stands where it stood, whatever interrupts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest
from nats.aio.client import Client

from streams import topology
from streams.dropping import Contents, NotAsKept, Streams, remove, resume
from streams.envelope import Draft, Event, Head
from streams.epochs import Dropped, covers, noted
from streams.events import ChannelWritten
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.log import EpochDropped, LogWentBackwards
from streams.server import NatsServer
from streams.topology import COPY_SUFFIX, STREAM_NAME, Interrupted, ensure

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)
OLD, NEW = ("e2610-a", "e2610-b"), ("e2611-a", "e2611-b")
ORDER = (OLD[0], NEW[0], OLD[1], OLD[0], NEW[0], NEW[1], OLD[0], NEW[1])
GONE = Dropped("e2610", 4, 2, 1, 7, "0" * 64, 8)


@pytest.fixture
async def client(fresh_server: NatsServer) -> AsyncIterator[Client]:
    connection = await connect(fresh_server.url)
    await ensure(connection.jetstream())
    yield connection
    await disconnect(connection)


async def write(log: JetStreamLog) -> list[Event]:
    heads: dict[str, Head] = {}
    events = []
    for i, session in enumerate(ORDER):
        head = heads.get(session, Head())
        draft = Draft(ChannelWritten(channel="reviewer", value={"i": i}), "reviewer", ordinal=i)
        events += await log.append(session, [draft], head, NOW)
        heads[session] = events[-1].head
    return events


async def kept(client: Client) -> Contents:
    return (await Streams(client).parted(STREAM_NAME, lambda subject: subject.split(".")[1] in OLD))[0]


async def drop(client: Client) -> None:
    metadata = noted(await Streams(client).metadata(STREAM_NAME), GONE)
    await remove(client, STREAM_NAME, [f"vl.{s}.>" for s in OLD], await kept(client), metadata)


async def followed(log: JetStreamLog, last: int, after: int = 0) -> list[Event]:
    events: list[Event] = []
    async with asyncio.timeout(10), aclosing(log.follow(after)) as source:
        async for event in source:
            events.append(event)
            if event.seq >= last:
                break
    return events


async def test_what_remains_stands_at_its_place_and_the_log_goes_on(client: Client) -> None:
    events = await write(JetStreamLog(client))
    remaining = [event for event in events if event.session in NEW]
    await drop(client)
    log = JetStreamLog(client)
    assert await followed(log, 8) == remaining
    assert await followed(log, 8, after=5) == [event for event in remaining if event.seq > 5]
    assert [await log.read(session) for session in OLD] == [[], []]
    draft = Draft(ChannelWritten(channel="reviewer", value={}), "reviewer", ordinal=9)
    assert (await log.append(NEW[0], [draft], remaining[1].head, NOW))[0].seq == 9
    with pytest.raises(EpochDropped, match="e2610"):
        await log.append("e2610-c", [draft], Head(), NOW)


async def test_the_stream_refuses_deletion_as_before_and_nothing_is_left_behind(client: Client) -> None:
    await write(JetStreamLog(client))
    before = await Streams(client).info(STREAM_NAME)
    await drop(client)
    after = await Streams(client).info(STREAM_NAME)
    assert before is not None
    assert after is not None
    assert {**after["config"], "metadata": {}} == {**before["config"], "metadata": {}}
    assert await Streams(client).info(STREAM_NAME + COPY_SUFFIX) is None
    with pytest.raises(Exception, match="purge"):
        await client.jetstream().purge_stream(STREAM_NAME)


async def test_roles_begin_behind_what_was_settled(client: Client) -> None:
    await write(JetStreamLog(client))
    await drop(client)
    js = client.jetstream()
    assert sorted(fault.name for fault in await topology.check(js)) == ["verdictlog-all", "verdictlog-deadline"]
    await ensure(js)
    assert await topology.check(js) == []
    assert (await js.consumer_info(STREAM_NAME, "verdictlog-all")).num_pending == 0


async def test_one_message_more_that_is_missing_is_a_gap_still(client: Client) -> None:
    await write(JetStreamLog(client))
    filters = [*(f"vl.{s}.>" for s in OLD), f"vl.{NEW[0]}.2.>"]
    goes = [f"vl.{s}." for s in (*OLD, f"{NEW[0]}.2")]
    left, _ = await Streams(client).parted(STREAM_NAME, lambda subject: subject.startswith(tuple(goes)))
    with pytest.raises(LogWentBackwards, match="position 1"):
        await remove(client, STREAM_NAME, filters, left, noted({}, GONE))


async def test_who_writes_meanwhile_is_not_lost(client: Client) -> None:
    log = JetStreamLog(client)
    events = await write(log)
    before = await kept(client)
    draft = Draft(ChannelWritten(channel="reviewer", value={}), "reviewer", ordinal=9)
    late = await log.append(NEW[0], [draft], events[4].head, NOW)
    with pytest.raises(NotAsKept, match="somebody is writing"):
        await remove(client, STREAM_NAME, [f"vl.{s}.>" for s in OLD], before, noted({}, GONE))
    assert await followed(log, 9) == [*events, *late]
    assert await topology.check(client.jetstream()) == []


class Killed(Exception):
    pass


@pytest.mark.parametrize("calls", range(10))
async def test_interrupted_after_any_step_nothing_is_lost(
    client: Client, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes next is refused or finds a whole log, never an empty one; the same command ends it."""
    events = await write(JetStreamLog(client))
    ask, made = Streams._ask, 0

    async def dies(self: Streams, verb: str, name: str, request: dict[str, Any] | None = None) -> None:
        nonlocal made
        if made >= calls:
            raise Killed
        made += 1
        await ask(self, verb, name, request)

    with monkeypatch.context() as patch:
        patch.setattr(Streams, "_ask", dies)
        with pytest.raises(Killed):
            await drop(client)
    js = client.jetstream()
    faults = [fault for fault in await topology.check(js, ()) if fault.name == STREAM_NAME]
    if calls == 0:
        assert not faults
    elif calls > 1 and faults:
        assert all(isinstance(fault, Interrupted) for fault in faults)
        with pytest.raises(Interrupted):
            await ensure(js)
    await resume(client, STREAM_NAME)
    assert await topology.check(js, ()) == []
    log = JetStreamLog(client)
    if not (await log.state()).dropped:
        assert await followed(log, 8) == events
        await drop(client)
    assert await followed(JetStreamLog(client), 8) == [event for event in events if event.session in NEW]
    assert await Streams(client).info(STREAM_NAME + COPY_SUFFIX) is None


def test_gaps_are_allowed_only_where_epochs_stood() -> None:
    two = (Dropped("e2609", 3, 1, 2, 5, "", 9), Dropped("e2610", 3, 1, 5, 8, "", 9))
    assert covers(two, 2, 8)
    assert covers(two, 3, 4)
    assert not covers(two, 1, 2)
    assert not covers(two, 8, 9)
    assert not covers((), 1, 1)
