"""The chain of a session: what breaks it, what an append finds behind its expected position, and roots for anchors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from streams.bundle_check import blobs_of
from streams.envelope import ZERO_HASH, Draft, Event, Head


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The first event of a session that does not follow from the one before it."""

    session: str
    n: int
    why: str


def verify(events: Iterable[Event], after: Head | None = None) -> BrokenLink | None:
    """Check one session's `events` in order, from its first or from behind `after`; None if they are a chain.

    Checked against the stored bytes, never against a new serialisation: `n` counts on by one, `prevhash` is the
    hash of the bytes before, the hash is that of the event's own bytes, and `time` does not go back. What the
    event claims of itself (`id`, `session`, `n`, `prevhash`, `time`) is read from the bytes again, so that a
    decoded event that was altered in memory or in a file is found as well.
    """
    head = after or Head()
    session = ""
    for event in events:
        session = session or event.session
        why = _fault(event, session, head)
        if why is not None:
            return BrokenLink(session, event.n, why)
        head = event.head
    return None


def _fault(event: Event, session: str, head: Head) -> str | None:
    if event.session != session:
        return f"it belongs to session {event.session}"
    if event.n != head.n + 1:
        return f"it follows event {head.n}"
    if hashlib.sha256(event.body).hexdigest() != event.hash:
        return "its bytes do not have its hash"
    stored = orjson.loads(event.body)
    said = (event.id, event.session, event.n, event.prevhash, event.time)
    if tuple(stored.get(key) for key in ("id", "session", "n", "prevhash", "time")) != said:
        return "its bytes say something else than the event"
    if event.prevhash != head.hash:
        return "its prevhash is not the hash of the event before it"
    if event.time < head.time:
        return f"its time {event.time} is before {head.time}"
    return None


def behind(events: Sequence[Event], expected: Head) -> list[Event]:
    """The session's events after `expected`."""
    return [event for event in events if event.n > expected.n]


def resumes(session: str, drafts: Sequence[Draft], found: Sequence[Event]) -> bool:
    """Whether the events `found` behind an append's expected position are that append's own work.

    True if they are its first drafts (a crash or a lost acknowledgement in the middle), or all of its drafts
    with somebody else's events behind them. Compared by the deterministic ids.
    """
    wanted = [draft.id(session) for draft in drafts[: len(found)]]
    return wanted == [event.id for event in found[: len(drafts)]]


def heads(events: Iterable[Event]) -> dict[str, Head]:
    """The last position of each session that occurs in `events` (any order)."""
    last: dict[str, Head] = {}
    for event in events:
        if event.n > last.get(event.session, Head()).n:
            last[event.session] = event.head
    return last


def blobs(event: Event) -> set[tuple[str, int]]:
    """(sha256, size in bytes) of every blob that an event names, its payload's own place and what it tells of."""
    said = [part.data.model_dump(mode="json") for part in event.told]
    return {*blobs_of(orjson.loads(event.body)), *blobs_of(said)}


def merkle_root(tips: Mapping[str, Head]) -> str:
    """One hash over the heads of many sessions, in hexadecimal; the zero hash where there are none.

    Leaves are `session`, `n` and `hash` in the order of the session ids; leaves and nodes are hashed with
    different first bytes, as RFC 6962 does, so that no node can be passed off as a leaf.
    """
    level = [hashlib.sha256(b"\x00" + f"{s}/{tips[s].n}/{tips[s].hash}".encode()).digest() for s in sorted(tips)]
    if not level:
        return ZERO_HASH
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\x01" + pair[0] + pair[1]).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0].hex()
