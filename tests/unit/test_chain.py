"""The chain of a session, without any log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from streams.chain import BrokenLink, heads, merkle_root, resumes, verify
from streams.envelope import ZERO_HASH, Draft, Event, Head, decode, stamp
from streams.events import ChannelWritten

SESSION = "e2611-payments"
NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)


def draft(i: int) -> Draft:
    return Draft(ChannelWritten(channel="latency", value=i), "payment-service", cause=str(i))


def recorded(count: int, session: str = SESSION) -> list[Event]:
    events: list[Event] = []
    for i in range(count):
        head = events[-1].head if events else Head()
        events.append(replace(stamp(session, head, draft(i), NOW + timedelta(seconds=i)), seq=i + 1))
    return events


def altered(event: Event, old: bytes, new: bytes) -> Event:
    """The event as it would be read from a store in which somebody changed its bytes."""
    assert old in event.body
    return decode(event.body.replace(old, new), event.seq)


def test_whole_session_has_no_broken_link() -> None:
    assert verify(recorded(5)) is None
    assert verify([]) is None


def test_rest_of_a_session_is_checked_from_its_head() -> None:
    events = recorded(5)
    assert verify(events[2:], events[1].head) is None
    assert verify(events[2:], events[0].head) == BrokenLink(SESSION, 3, "it follows event 1")


def test_changed_byte_is_found_at_the_next_event() -> None:
    events = recorded(4)
    events[1] = altered(events[1], b'"value":1', b'"value":7')
    assert verify(events) == BrokenLink(SESSION, 3, "its prevhash is not the hash of the event before it")


def test_changed_bytes_under_the_old_hash_are_found_at_once() -> None:
    events = recorded(3)
    events[1] = replace(events[1], body=events[1].body.replace(b'"value":1', b'"value":7'))
    assert verify(events) == BrokenLink(SESSION, 2, "its bytes do not have its hash")


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_dropped_event_is_found(gone: int) -> None:
    events = recorded(4)
    del events[gone]
    link = verify(events)
    assert link is not None
    assert link.n == gone + 2


def test_inserted_event_is_found() -> None:
    events = recorded(3)
    stranger = replace(stamp(SESSION, events[0].head, draft(9), NOW + timedelta(seconds=1)), seq=2)
    assert verify([events[0], stranger, *events[1:]]) == BrokenLink(SESSION, 2, "it follows event 2")


def test_exchanged_events_are_found() -> None:
    one, two, three = recorded(3)
    assert verify([one, three, two]) is not None


def test_event_of_another_session_is_found() -> None:
    events = recorded(2)
    foreign = replace(events[1], session="e2611-other")
    assert verify([events[0], foreign]) == BrokenLink(SESSION, 2, "it belongs to session e2611-other")


def test_field_that_the_bytes_do_not_say_is_found() -> None:
    events = recorded(2)
    forged = replace(events[1], id=events[0].id)
    assert verify([events[0], forged]) == BrokenLink(SESSION, 2, "its bytes say something else than the event")


def test_time_that_goes_back_is_found() -> None:
    [first] = recorded(1)
    late = Head(first.n, first.seq, first.hash, "")
    second = stamp(SESSION, late, draft(1), NOW - timedelta(hours=1))
    link = verify([first, second])
    assert link is not None
    assert link.n == 2
    assert "is before" in link.why


def test_own_events_are_known_by_their_ids() -> None:
    events, drafts = recorded(3), [draft(i) for i in range(3)]
    assert resumes(SESSION, drafts, [])
    assert resumes(SESSION, drafts, events[:2])
    assert resumes(SESSION, drafts[:2], events)
    assert not resumes(SESSION, drafts, events[1:])
    assert not resumes(SESSION, [draft(7)], events)


def test_heads_are_the_last_of_each_session() -> None:
    one, other = recorded(3), recorded(2, "e2611-other")
    assert heads([one[2], other[0], one[0], other[1]]) == {SESSION: one[2].head, "e2611-other": other[1].head}


def test_root_depends_on_every_head_and_not_on_their_order() -> None:
    tips = {f"e2611-{i}": recorded(i + 1, f"e2611-{i}")[-1].head for i in range(5)}
    root = merkle_root(tips)
    assert merkle_root(dict(reversed(tips.items()))) == root
    for session, tip in tips.items():
        assert merkle_root({**tips, session: replace(tip, hash=ZERO_HASH)}) != root
        assert merkle_root({name: head for name, head in tips.items() if name != session}) != root
    assert merkle_root({}) == ZERO_HASH
