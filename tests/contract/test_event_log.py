"""One suite over both logs: what every EventLog holds, in memory and on JetStream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from streams import chain
from streams.envelope import Draft, Event, Head, dataref_of
from streams.events import Blob, ChannelWritten, QuestionAsked
from streams.identity import BadSessionId
from streams.jetstream import JetStreamLog, connect
from streams.log import (
    BLOB_CHUNK_BYTES,
    EVENT_LIMIT_BYTES,
    PAYLOAD_LIMIT_BYTES,
    EventLog,
    EventTooLarge,
    LogUnavailable,
    LogWentBackwards,
    MissingBlob,
    WrongExpectedVersion,
)
from streams.memory import MemoryLog
from streams.server import NatsServer
from streams.topology import ensure

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)


@pytest.fixture(params=["memory", "jetstream"])
async def log(request: pytest.FixtureRequest, nats_server: NatsServer) -> AsyncIterator[EventLog]:
    if request.param == "memory":
        yield MemoryLog(patience_s=1.5)
        return
    client = await connect(nats_server.url)
    await ensure(client.jetstream())
    yield JetStreamLog(client, patience_s=1.5)
    await client.close()


def asked(question: str = "why does payment-service time out?", cause: str = "", ordinal: int = 0) -> Draft:
    return Draft(QuestionAsked(question=question), actor="intake", turn=1, cause=cause, ordinal=ordinal)


def written(value: object, cause: str = "", ordinal: int = 0) -> Draft:
    return Draft(ChannelWritten(channel="latency", value=value), "payment-service", cause=cause, ordinal=ordinal)


async def taken(log: EventLog, count: int, after: int = 0) -> list[Event]:
    """The next `count` events behind position `after`."""
    events: list[Event] = []
    async with asyncio.timeout(10), aclosing(log.follow(after)) as followed:
        async for event in followed:
            events.append(event)
            if len(events) == count:
                break
    return events


async def test_events_are_read_as_they_were_appended(log: EventLog, session_id: str) -> None:
    first = await log.append(session_id, [asked()], Head(), NOW)
    more = await log.append(session_id, [written(1), written({"p99": 2.5}, ordinal=1)], first[-1].head, NOW)
    events = await log.read(session_id)
    assert events == first + more
    assert [event.n for event in events] == [1, 2, 3]
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert chain.verify(events) is None


async def test_unknown_session_is_empty(log: EventLog, session_id: str) -> None:
    assert await log.read(session_id) == []


@pytest.mark.parametrize("bad", ["payments", "e2611-", "e2611-a.b", "e2611-*", "e2611->", f"e2611-{'a' * 64}"])
async def test_session_id_outside_the_grammar_is_refused(log: EventLog, bad: str) -> None:
    with pytest.raises(BadSessionId):
        await log.append(bad, [asked()], Head(), NOW)
    with pytest.raises(BadSessionId):
        await log.read(bad)


async def test_text_of_any_language_comes_back_unchanged(log: EventLog, session_id: str) -> None:
    question = '支付服务为什么超时？ \u200f𝔘 "\\ \x00 \n\t\' {"dataref":"blob:"}'
    await log.append(session_id, [asked(question)], Head(), NOW)
    [event] = await log.read(session_id)
    assert isinstance(event.data, QuestionAsked)
    assert event.data.question == question


@pytest.mark.parametrize("times", [1, 60_000])
async def test_what_utf8_cannot_hold_is_stored_as_its_escape(log: EventLog, session_id: str, times: int) -> None:
    """A model's reply may hold half a surrogate pair; in a small payload and in one that goes to a blob."""
    appended = await log.append(session_id, [written("pool \ud83d full " * times)], Head(), NOW)
    [event] = await log.read(session_id)
    assert [event] == appended
    assert isinstance(event.data, ChannelWritten)
    assert event.data.value == "pool \\ud83d full " * times


async def test_other_event_at_the_expected_position_is_a_conflict(log: EventLog, session_id: str) -> None:
    await log.append(session_id, [asked()], Head(), NOW)
    with pytest.raises(WrongExpectedVersion) as raised:
        await log.append(session_id, [asked("why is ledger-db slow?", cause="else")], Head(), NOW)
    assert (raised.value.session, raised.value.expected, raised.value.actual) == (session_id, 0, 1)
    assert len(await log.read(session_id)) == 1


async def test_position_that_does_not_exist_yet_is_a_conflict(log: EventLog, session_id: str) -> None:
    [event] = await log.append(session_id, [asked()], Head(), NOW)
    ahead = Head(event.n + 4, event.seq + 4, event.hash, event.time)
    with pytest.raises(WrongExpectedVersion):
        await log.append(session_id, [written(1)], ahead, NOW)
    assert len(await log.read(session_id)) == 1


async def test_append_repeated_after_a_lost_acknowledgement_changes_nothing(log: EventLog, session_id: str) -> None:
    drafts = [asked(), written(1, ordinal=1)]
    first = await log.append(session_id, drafts, Head(), NOW)
    again = await log.append(session_id, drafts, Head(), NOW + timedelta(seconds=5))
    assert again == first == await log.read(session_id)


async def test_repeated_append_is_found_below_the_events_of_others(log: EventLog, session_id: str) -> None:
    drafts = [asked(), written(1, ordinal=1)]
    first = await log.append(session_id, drafts, Head(), NOW)
    await log.append(session_id, [written(2, cause="other")], first[-1].head, NOW)
    assert await log.append(session_id, drafts, Head(), NOW) == first
    assert len(await log.read(session_id)) == 3


async def test_half_of_a_decision_is_completed(log: EventLog, session_id: str) -> None:
    drafts = [asked(), written(1, ordinal=1), written(2, ordinal=2)]
    half = await log.append(session_id, drafts[:1], Head(), NOW)
    whole = await log.append(session_id, drafts, Head(), NOW)
    assert whole[:1] == half
    assert whole == await log.read(session_id)
    assert chain.verify(whole) is None


async def test_half_of_a_decision_with_others_behind_it_is_a_conflict(log: EventLog, session_id: str) -> None:
    drafts = [asked(), written(1, ordinal=1)]
    half = await log.append(session_id, drafts[:1], Head(), NOW)
    await log.append(session_id, [written(9, cause="other")], half[-1].head, NOW)
    with pytest.raises(WrongExpectedVersion):
        await log.append(session_id, drafts, Head(), NOW)
    assert len(await log.read(session_id)) == 2


@pytest.mark.scenario("ROU-8")
async def test_of_racing_appends_exactly_one_wins(log: EventLog, session_id: str) -> None:
    async def attempt(i: int) -> list[Event]:
        return await log.append(session_id, [asked(f"question {i}", cause=str(i))], Head(), NOW)

    outcomes = await asyncio.gather(*(attempt(i) for i in range(8)), return_exceptions=True)
    won = [outcome for outcome in outcomes if isinstance(outcome, list)]
    assert len(won) == 1
    assert sum(isinstance(outcome, WrongExpectedVersion) for outcome in outcomes) == 7
    assert await log.read(session_id) == won[0]


@pytest.mark.scenario("ROU-8")
async def test_same_decision_made_by_two_workers_is_stored_once(log: EventLog, session_id: str) -> None:
    drafts = [asked(), written(1, ordinal=1), written(2, ordinal=2)]
    one, other = await asyncio.gather(*(log.append(session_id, drafts, Head(), NOW) for _ in range(2)))
    assert one == other == await log.read(session_id)
    assert len(one) == 3


async def test_no_event_at_all_is_no_append(log: EventLog, session_id: str) -> None:
    assert await log.append(session_id, [], Head(), NOW) == []
    assert await log.read(session_id) == []


async def test_positions_count_over_all_sessions(log: EventLog, session_id: str) -> None:
    start = await log.last_seq()
    for i in range(3):
        await log.append(f"{session_id}-{i}", [asked()], Head(), NOW)
    assert await log.last_seq() == start + 3


async def test_as_of_read_ends_at_the_position(log: EventLog, session_id: str) -> None:
    events = await log.append(session_id, [asked(), written(1, ordinal=1), written(2, ordinal=2)], Head(), NOW)
    for i, event in enumerate(events, 1):
        assert await log.read(session_id, upto=event.seq) == events[:i]
    assert await log.read(session_id, upto=events[0].seq - 1) == []
    assert await log.read(session_id, upto=events[-1].seq + 1000) == events


async def test_read_after_a_head_gives_what_follows_it(log: EventLog, session_id: str) -> None:
    events = await log.append(session_id, [asked(), written(1, ordinal=1), written(2, ordinal=2)], Head(), NOW)
    assert await log.read(session_id, after=events[0].head) == events[1:]
    assert await log.read(session_id, after=events[2].head) == []


async def test_read_waits_for_the_position_it_needs(log: EventLog, session_id: str) -> None:
    [first] = await log.append(session_id, [asked()], Head(), NOW)
    wanted = await log.last_seq() + 1
    reading = asyncio.create_task(log.read(session_id, at_least=wanted))
    await asyncio.sleep(0.05)
    assert not reading.done()
    [second] = await log.append(session_id, [written(1)], first.head, NOW)
    assert await reading == [first, second]


async def test_read_gives_up_on_a_position_that_does_not_come(log: EventLog, session_id: str) -> None:
    [event] = await log.append(session_id, [asked()], Head(), NOW)
    with pytest.raises(LogUnavailable, match=str(event.seq + 5)):
        await log.read(session_id, at_least=event.seq + 5)


async def test_follow_gives_all_sessions_in_order(log: EventLog, session_id: str) -> None:
    start = await log.last_seq()
    appended, heads = [], [Head(), Head()]
    for i in range(6):
        appended += await log.append(f"{session_id}-{i % 2}", [written(i, cause=str(i))], heads[i % 2], NOW)
        heads[i % 2] = appended[-1].head
    assert await taken(log, 6, after=start) == appended
    assert await taken(log, 2, after=start + 4) == appended[4:]


async def test_follow_from_the_beginning_starts_with_the_first_event(log: EventLog, session_id: str) -> None:
    await log.append(session_id, [asked()], Head(), NOW)
    [event] = await taken(log, 1)
    assert event.seq == 1


async def test_follow_goes_on_with_what_is_appended_later(log: EventLog, session_id: str) -> None:
    start = await log.last_seq()
    following = asyncio.create_task(taken(log, 2, after=start))
    await asyncio.sleep(0.05)
    [first] = await log.append(session_id, [asked()], Head(), NOW)
    await asyncio.sleep(0.02)
    [second] = await log.append(session_id, [written(1)], first.head, NOW)
    assert await following == [first, second]


async def test_follow_from_beyond_the_end_says_that_the_log_went_backwards(log: EventLog, session_id: str) -> None:
    await log.append(session_id, [asked()], Head(), NOW)
    with pytest.raises(LogWentBackwards):
        await taken(log, 1, after=await log.last_seq() + 7)


async def test_others_may_append_to_an_event_before_its_writer_has_the_acknowledgement(
    log: EventLog, session_id: str
) -> None:
    """A handler sees the first event of a decision and answers it while the decision is still being written."""
    start = await log.last_seq()

    async def answer() -> list[Event]:
        [event] = await taken(log, 1, after=start)
        return await log.append(session_id, [written("seen", cause=event.id)], event.head, NOW)

    answering = asyncio.create_task(answer())
    await asyncio.sleep(0.05)
    drafts = [asked(), *(written(i, ordinal=i) for i in range(1, 40))]
    outcomes = await asyncio.gather(log.append(session_id, drafts, Head(), NOW), answering, return_exceptions=True)
    events = await log.read(session_id)
    assert chain.verify(events) is None
    whole, answered = outcomes
    # Whoever came first to place 2, the other one was told; nothing is there twice.
    assert isinstance(whole, list) != isinstance(answered, list)
    assert len({event.id for event in events}) == len(events)


@pytest.mark.parametrize("size", [300_000, 5_000_000])
async def test_large_payload_is_read_like_any_other(log: EventLog, session_id: str, size: int) -> None:
    text = "HikariPool-1 - 连接不可用 " * (size // 30)
    appended = await log.append(session_id, [asked(), written(text, ordinal=1), written(3, ordinal=2)], Head(), NOW)
    events = await log.read(session_id)
    assert events == appended
    assert chain.verify(events) is None
    assert len(events[1].body) < EVENT_LIMIT_BYTES
    blob = dataref_of(events[1].body)
    assert blob is not None
    assert blob.size_bytes > size
    assert await taken(log, 3, after=events[0].seq - 1) == events


async def test_payload_goes_to_a_blob_only_beyond_the_limit_of_an_event(log: EventLog, session_id: str) -> None:
    [small] = await log.append(f"{session_id}-a", [written("")], Head(), NOW)
    fitting = "x" * (EVENT_LIMIT_BYTES - len(small.body))
    [edge] = await log.append(f"{session_id}-b", [written(fitting)], Head(), NOW)
    [over] = await log.append(f"{session_id}-c", [written(fitting + "x")], Head(), NOW)
    assert len(edge.body) == EVENT_LIMIT_BYTES
    assert dataref_of(edge.body) is None
    assert dataref_of(over.body) is not None


async def test_payload_over_the_last_limit_is_refused_before_anything_is_stored(log: EventLog, session_id: str) -> None:
    drafts = [asked(), written("x" * (PAYLOAD_LIMIT_BYTES + 1), ordinal=1)]
    with pytest.raises(EventTooLarge) as raised:
        await log.append(session_id, drafts, Head(), NOW)
    assert raised.value.kind == "channel-written"
    assert await log.read(session_id) == []


@pytest.mark.parametrize("size", [0, 1, BLOB_CHUNK_BYTES, BLOB_CHUNK_BYTES + 1, 1_000_000])
async def test_blob_stored_twice_is_the_same_blob(log: EventLog, size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    blob = await log.put_blob(data)
    assert await log.put_blob(data) == blob
    assert blob.size_bytes == size
    assert await log.get_blob(blob) == data


async def test_blob_that_is_not_there_or_not_whole_is_missing(log: EventLog) -> None:
    stored = await log.put_blob(b"HikariPool-1 - Connection is not available" * 10_000)
    for wrong in (
        Blob(sha256="0" * 64, size_bytes=3, chunks=1),
        Blob(sha256=stored.sha256, size_bytes=stored.size_bytes + 1, chunks=stored.chunks + 1),
    ):
        with pytest.raises(MissingBlob) as raised:
            await log.get_blob(wrong)
        assert raised.value.sha256 == wrong.sha256


async def test_time_never_goes_back_in_a_session(log: EventLog, session_id: str) -> None:
    [first] = await log.append(session_id, [asked()], Head(), NOW)
    [second] = await log.append(session_id, [written(1)], first.head, NOW - timedelta(hours=1))
    [third] = await log.append(session_id, [written(2, cause="later")], second.head, NOW + timedelta(seconds=1))
    assert first.time == second.time < third.time
    assert chain.verify(await log.read(session_id)) is None
