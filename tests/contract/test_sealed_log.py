"""A sealed session on JetStream: its text is in no stored byte, its chain holds with and without the key."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.aio.client import Client

from streams import chain
from streams.contract import EvidenceRef, RetrievalDetails
from streams.envelope import BadEnvelope, Draft, Event, Head, dataref_of
from streams.events import (
    Blob,
    ChainAnchored,
    ChannelWritten,
    QuestionAsked,
    TextErased,
    ToolInvoked,
)
from streams.exposure import MARK
from streams.jetstream import JetStreamLog
from streams.keys import FileKeys
from streams.log import EVENT_LIMIT_BYTES, EventLog, MissingBlob, WrongExpectedVersion, event_of
from streams.sealing import BadSeal, NoKey
from streams.session import BrokenChain, fold

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)
QUESTION = "why does payment-service of customer Ann Ng time out?"
LINE = "10:41:02 HikariPool-1 - Connection is not available, Ann Ng waited 30000ms"
ERASED = Draft(TextErased(who="dba", why="request 4711"), "operator")


@pytest.fixture
def keys(tmp_path: Path) -> FileKeys:
    return FileKeys(tmp_path / "keys")


@pytest.fixture
def log(client: Client, keys: FileKeys) -> JetStreamLog:
    return JetStreamLog(client, patience_s=1.5, keys=keys, seal=True)


@pytest.fixture
def keyless(client: Client) -> JetStreamLog:
    """Another process, which has no keys folder."""
    return JetStreamLog(client, patience_s=1.5)


def asked() -> Draft:
    return Draft(QuestionAsked(question=QUESTION), "intake", turn=1)


def called(lines: int = 1, ordinal: int = 0) -> Draft:
    refs = tuple(EvidenceRef(raw_path=f"lines[{i}]", text=f"{LINE} {i}") for i in range(lines))
    details = RetrievalDetails(evidence_refs=refs, matched=lines, returned=lines)
    call = ToolInvoked(invocation_id="i1", tool_name="query_logs", retrieval_details=details)
    return Draft(call, "executor", 1, 1, 0, "", ordinal)


async def stored(log: JetStreamLog, session: str) -> AsyncIterator[bytes]:
    last = await log.last_seq()
    async with aclosing(log.stored(0)) as batches:
        async for batch in batches:
            for message in batch:
                if message.subject.startswith(f"vl.{session}."):
                    yield message.body
            if batch[-1].seq >= last:
                return


async def bodies(log: JetStreamLog, session: str) -> list[bytes]:
    found = []
    async for body in stored(log, session):
        found.append(body)
        if (blob := dataref_of(body)) is not None:
            found.append(await log.get_blob(blob))
    return found


async def test_the_text_is_in_no_stored_byte_and_comes_back_with_the_key(
    log: JetStreamLog, client: Client, keys: FileKeys, session_id: str
) -> None:
    appended = await log.append(session_id, [asked(), called()], Head(), NOW)
    assert [event.data for event in appended] == [asked().payload, called().payload]
    for body in await bodies(log, session_id):
        assert b"Ann Ng" not in body
        assert b"Hikari" not in body
    elsewhere = JetStreamLog(client, keys=FileKeys(keys.folder))
    assert await elsewhere.read(session_id) == appended
    assert not any(event.hidden for event in appended)


async def test_without_the_key_the_chain_holds_and_the_text_is_marked(
    log: JetStreamLog, keyless: JetStreamLog, session_id: str
) -> None:
    appended = await log.append(session_id, [asked(), called()], Head(), NOW)
    read = await keyless.read(session_id)
    assert chain.verify(read) is None
    assert [event.hash for event in read] == [event.hash for event in appended]
    state = fold(session_id, read)
    assert state.hidden
    assert state.turns[0].question.question == MARK
    [call] = state.invocations
    assert call.retrieval_details is not None
    assert call.retrieval_details.evidence_refs == (EvidenceRef(raw_path="lines[0]", text=MARK),)
    assert (call.invocation_id, call.tool_name, call.retrieval_details.matched) == ("i1", "query_logs", 1)


async def test_who_has_no_key_adds_nothing(log: JetStreamLog, keyless: JetStreamLog, session_id: str) -> None:
    [first] = await log.append(session_id, [asked()], Head(), NOW)
    with pytest.raises(NoKey):
        await keyless.append(session_id, [called()], first.head, NOW)
    assert await log.read(session_id) == [first]


async def test_an_append_that_was_cut_is_brought_to_its_end_with_the_same_bytes(
    log: JetStreamLog, client: Client, keys: FileKeys, session_id: str
) -> None:
    drafts = [asked(), called(), called(2, 1)]
    half = await log.append(session_id, drafts[:2], Head(), NOW)
    again = JetStreamLog(client, keys=FileKeys(keys.folder))  # a process that seals no session of its own
    whole = await again.append(session_id, drafts, Head(), NOW)
    assert [event.body for event in whole[:2]] == [event.body for event in half]
    assert all(event.head.sealed for event in whole)
    assert b"Ann Ng" not in whole[2].body
    with pytest.raises(WrongExpectedVersion):
        await again.append(session_id, [called(3, 5)], Head(), NOW)


async def test_a_payload_that_needs_a_blob_is_sealed_in_it(
    log: JetStreamLog, keyless: JetStreamLog, keys: FileKeys, session_id: str
) -> None:
    appended = await log.append(session_id, [asked(), called(5000)], Head(), NOW)
    assert len(appended[1].body) < EVENT_LIMIT_BYTES
    assert dataref_of(appended[1].body) is not None
    assert await log.read(session_id) == appended
    assert not any(b"Ann Ng" in body for body in await bodies(keyless, session_id))
    keys.drop(session_id)
    left = (await log.read(session_id))[1]
    assert left.hidden
    assert isinstance(left.data, ToolInvoked)
    assert left.data.retrieval_details is not None
    assert len(left.data.retrieval_details.evidence_refs or ()) == 5000
    assert {ref.text for ref in left.data.retrieval_details.evidence_refs or ()} == {MARK}


async def test_a_blob_of_a_sealed_session_is_sealed_and_named_by_what_is_stored(
    log: JetStreamLog, keyless: JetStreamLog, keys: FileKeys, session_id: str
) -> None:
    output = (LINE + "\n").encode() * 20_000
    blob = await log.put_blob(output, log.key_after(session_id, Head()))
    assert blob.session == session_id
    assert await log.put_blob(output, log.key_after(session_id, Head())) == blob
    assert await log.get_blob(blob) == output
    raw = await keyless.get_blob(Blob(sha256=blob.sha256, size_bytes=blob.size_bytes, chunks=0))
    assert hashlib.sha256(raw).hexdigest() == blob.sha256
    assert b"Ann Ng" not in raw
    with pytest.raises(NoKey):
        await keyless.get_blob(blob)
    with pytest.raises(MissingBlob):
        await log.get_blob(blob.model_copy(update={"sha256": "0" * 64}))
    keys.drop(session_id)
    with pytest.raises(NoKey):
        await log.get_blob(blob)


async def test_after_the_key_is_dropped_the_erasure_stands_in_the_chain_and_nothing_follows_it(
    log: JetStreamLog, keys: FileKeys, session_id: str
) -> None:
    events = await log.append(session_id, [asked(), called()], Head(), NOW)
    [erased] = await log.append(session_id, [ERASED], events[-1].head, NOW)
    keys.drop(session_id)
    read = await log.read(session_id)
    assert chain.verify(read) is None
    state = fold(session_id, read)
    assert state.erased
    assert read[-1].data == ERASED.payload
    with pytest.raises(NoKey):
        await log.append(session_id, [called(2, 1)], erased.head, NOW)
    with pytest.raises(NoKey):
        await log.append(session_id, [asked()], Head(), NOW)


async def test_an_erasure_is_recorded_by_whoever_has_no_key_too(
    log: JetStreamLog, keyless: JetStreamLog, session_id: str
) -> None:
    [first] = await log.append(session_id, [asked()], Head(), NOW)
    [erased] = await keyless.append(session_id, [ERASED], first.head, NOW)
    assert (erased.data, erased.hidden, erased.head.sealed) == (ERASED.payload, False, True)


async def test_a_key_that_is_not_the_sessions_own_is_told(
    log: JetStreamLog, client: Client, keys: FileKeys, tmp_path: Path, session_id: str
) -> None:
    await log.append(session_id, [asked()], Head(), NOW)
    blob = await log.put_blob(LINE.encode(), log.key_after(session_id, Head()))
    others = FileKeys(tmp_path / "others")
    others.make(session_id)
    wrong = JetStreamLog(client, patience_s=1.5, keys=others)
    with pytest.raises(BrokenChain, match="does not open"):
        await wrong.read(session_id)
    with pytest.raises(BadSeal):
        await wrong.get_blob(blob)


async def test_only_sessions_that_begin_while_sealing_is_on_are_sealed(
    log: JetStreamLog, keyless: JetStreamLog, keys: FileKeys, session_id: str
) -> None:
    [plain] = await keyless.append(session_id, [asked()], Head(), NOW)
    [event] = await log.append(session_id, [called()], plain.head, NOW)
    assert b"Ann Ng" in event.body
    assert not event.head.sealed
    assert keys.get(session_id) is None
    [sealed] = await keyless.append(f"{session_id}-2", [asked()], Head(), NOW)
    assert sealed.body == plain.body.replace(session_id.encode(), f"{session_id}-2".encode()).replace(
        plain.id.encode(), sealed.id.encode()
    )


async def test_a_copy_of_a_sealed_session_is_sealed_where_nothing_else_is(
    client: Client, keys: FileKeys, session_id: str
) -> None:
    off = JetStreamLog(client, keys=keys)
    [copy] = await off.append(session_id, [asked()], Head(sealed=True), NOW)
    assert copy.head.sealed
    assert b"Ann Ng" not in copy.body


async def test_anchors_are_never_sealed(log: JetStreamLog, keys: FileKeys, session_id: str) -> None:
    payload = ChainAnchored(heads={"e2611-a": {"n": 1, "hash": "0" * 64}}, merkle_root="0" * 64, last_seq=1)
    [event] = await log.append(session_id, [Draft(payload, "auditor")], Head(), NOW)
    assert not event.head.sealed
    assert keys.get(session_id) is None


async def test_a_body_that_only_begins_like_a_sealed_one_is_no_event(log: EventLog, keyless: EventLog) -> None:
    for body in (b'{"sealed":"1:AAAA"}', b'{"sealed":"1:AAAA","data":{', b'{"sealed":"'):
        for reader in (keyless, log):
            with pytest.raises(BadEnvelope):
                await event_of(reader, body, 1)


async def test_what_is_written_beside_the_contract_is_sealed_too(log: JetStreamLog, session_id: str) -> None:
    written = Draft(ChannelWritten(channel="triage", value={"score": 0.5, "note": LINE}), "triage-bot", turn=1)
    events: list[Event] = await log.append(session_id, [asked(), written], Head(), NOW)
    assert b'"score":0.5' in events[1].body
    assert b"Ann Ng" not in events[1].body
    assert (await log.read(session_id))[1].data == written.payload
