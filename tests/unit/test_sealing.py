"""Sealed text: what is left without the key is a payload of its class, and the key gives back every byte."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import sealing
from streams.envelope import BadEnvelope, Draft, Event, Head, decode, payload_bytes, stamp
from streams.events import (
    LATEST,
    AnswerDrafted,
    ChannelWritten,
    FactsVerified,
    HandlerParked,
    ParkedResolved,
    Payload,
    SessionForked,
    TextErased,
    ToolInvoked,
)
from streams.exposure import MARK, put_back, take_out
from tests.integration.projection_sessions import sample_log

KEY, OTHER = bytes(range(64)), bytes(64)
NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)
LINE = "10:41:02 HikariPool-1 - Connection is not available, request timed out after 30000ms"
OPERATORS = (
    HandlerParked(consumer="verifier", event_id="id-1", event_seq=7, error=f"no judgement of {LINE}", deliveries=5),
    ParkedResolved(who="Ann Ng", why="the pool was grown", parked_event="id-2", action="retry"),
    SessionForked(who="Ann Ng", why="what if", origin_session="e2611-a", origin_n=3, origin_hash="0" * 64),
)
SAMPLES = [
    *(event for event in sample_log() if not event.data.OPEN),
    *(stamp("e2611-operators", Head(), Draft(payload, "operator"), NOW) for payload in OPERATORS),
]


def as_sealed(event: Event, key: bytes = KEY) -> Event:
    draft = Draft(event.data, event.actor, event.turn, event.round, event.attempt, event.cause)
    return stamp(event.session, Head(), draft, NOW, None, sealing.sealed(key, draft.id(event.session), event.data))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def test_the_samples_are_of_every_type_that_is_sealed() -> None:
    assert {event.type for event in SAMPLES} == {kind for kind, cls in LATEST.items() if not cls.OPEN}


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: f"{event.session}-{event.n}-{event.type}")
def test_a_sealed_event_opens_with_its_key_and_is_what_it_was(event: Event) -> None:
    stored = as_sealed(event)
    payload = sealing.unsealed(KEY, stored.id, stored.body) if sealing.seal_of(stored.body) else None
    opened = decode(stored.body, 1, payload)
    assert payload_bytes(opened.data) == payload_bytes(event.data)
    assert not opened.hidden


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: f"{event.session}-{event.n}-{event.type}")
def test_without_the_key_it_is_a_payload_of_its_class_with_its_text_gone(event: Event) -> None:
    left = decode(as_sealed(event).body)
    assert type(left.data) is type(event.data)
    stored = orjson.loads(left.body)["data"]
    assert [text for text in texts(stored) if len(text.split()) > 1] == []
    assert left.hidden == (MARK in list(texts(stored)))


def test_verdicts_labels_scores_rules_and_ids_stay_without_the_key() -> None:
    [verified] = [e for e in SAMPLES if isinstance(e.data, FactsVerified)][:1]
    left = decode(as_sealed(verified).body).data
    assert isinstance(left, FactsVerified)
    assert isinstance(verified.data, FactsVerified)
    was, now = verified.data.evaluation, left.evaluation
    assert (now.verdict, now.derived_verdict, now.groundedness_score) == (
        was.verdict,
        was.derived_verdict,
        was.groundedness_score,
    )
    assert [(f.verification, f.is_critical, f.claim_id) for f in now.facts_checked] == [
        (f.verification, f.is_critical, f.claim_id) for f in was.facts_checked
    ]
    assert now.gatekeeper_result.failed_rules == was.gatekeeper_result.failed_rules
    assert {f.fact for f in now.facts_checked} == {MARK}


def test_the_same_event_gives_the_same_bytes_and_the_same_text_elsewhere_gives_others() -> None:
    payload = ChannelWritten(channel="latency", value=LINE)
    assert sealing.sealed(KEY, "id-1", payload) == sealing.sealed(KEY, "id-1", payload)
    seals = {sealing.sealed(key, name, payload).seal for key in (KEY, OTHER) for name in ("id-1", "id-2")}
    assert len(seals) == 4


@pytest.mark.parametrize("place", ["seal", "open part", "another event", "another key"])
def test_what_was_changed_does_not_open(place: str) -> None:
    stored = as_sealed(next(e for e in SAMPLES if isinstance(e.data, ToolInvoked)))
    body, name, key = stored.body, stored.id, KEY
    if place == "seal":
        at = 30
        body = body[:at] + (b"A" if body[at : at + 1] != b"A" else b"B") + body[at + 1 :]
    elif place == "open part":
        body = body.replace(b'"status":"success"', b'"status":"no_data"')
        assert body != stored.body
    elif place == "another event":
        name = "5b0f6a6e-0000-5000-8000-000000000000"
    else:
        key = OTHER
    with pytest.raises(sealing.BadSeal):
        sealing.unsealed(key, name, body)
    assert issubclass(sealing.BadSeal, BadEnvelope)


def test_a_seal_that_is_no_base64_does_not_open() -> None:
    with pytest.raises(sealing.BadSeal):
        sealing.unsealed(KEY, "id", b'{"sealed":"1:???","data":{}}')


def test_a_blob_opens_with_its_key_only() -> None:
    output = LINE.encode() * 5000
    stored = sealing.seal_blob(KEY, output)
    assert stored == sealing.seal_blob(KEY, output)
    assert b"Hikari" not in stored
    assert sealing.unseal_blob(KEY, stored) == output
    for key, data in ((OTHER, stored), (KEY, stored[:-1]), (KEY, b"")):
        with pytest.raises(sealing.BadSeal):
            sealing.unseal_blob(key, data)


def test_the_reason_of_an_erasure_is_never_sealed() -> None:
    draft = Draft(TextErased(who="dba", why="request 4711"), "operator")
    [one] = sealing.of_drafts(None, "e2611-payment", [draft])
    event = stamp("e2611-payment", Head(n=1), draft, NOW, None, one)
    assert event.head.sealed
    read = decode(event.body)
    assert (read.data, read.hidden) == (draft.payload, False)


def test_digests_of_a_sealed_session_need_its_key() -> None:
    assert sealing.digest(None, b"ledger") != sealing.digest(KEY, b"ledger") != sealing.digest(OTHER, b"ledger")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=12), JSON, max_size=4)
WAYS: dict[type[Payload], Any] = {
    ChannelWritten: lambda value: {"channel": "c", "value": value},
    ToolInvoked: lambda value: {"invocation_id": "i1", "tool_name": "t", "arguments": {"q": value}},
    AnswerDrafted: lambda value: {"parse_status": "valid", "structured": {"claims": [value], "more": value}},
}


@given(st.sampled_from(list(WAYS)), JSON | OBJECTS)
def test_whatever_an_agent_or_a_third_party_writes_comes_back(cls: type[Payload], value: Any) -> None:
    data = WAYS[cls](value)
    before = orjson.loads(orjson.dumps(data))
    left, cuts = take_out(cls, data)
    assert put_back(orjson.loads(orjson.dumps(left)), orjson.loads(orjson.dumps(cuts))) == before
    cls.model_validate(left)


@given(st.sampled_from(list(WAYS)), st.text(min_size=1).filter(lambda text: len(text.split()) > 1))
def test_no_text_of_several_words_stays_wherever_it_stands(cls: type[Payload], text: str) -> None:
    for value in (text, [text], {"note": text}, {text: 1}, {"deep": [{"more": {text: text}}]}):
        left, _ = take_out(cls, WAYS[cls](value))
        assert text not in list(texts(left))


def test_a_number_that_names_somebody_is_taken_out_of_a_calls_arguments() -> None:
    left, _ = take_out(ToolInvoked, {"invocation_id": "i1", "tool_name": "t", "arguments": {"customer": 4711}})
    assert left["arguments"] == {}
