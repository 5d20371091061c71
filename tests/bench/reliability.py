"""R3 and R5: the past as it was, a rebuild of the same bytes, and what a hand in an exported session leaves behind.

Tampering is the harder kind: whoever changed a member of the bundle put its new hash into the manifest as well, so that
only the chain can tell. Whoever writes a whole chain anew is found by an anchor kept elsewhere, and by nothing here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from handlers.cli.export import write_bundle
from projections import archive
from projections.asof import Moment, Summary, state_at, summary
from projections.projector import Projector
from projections.sessions import session_at, sessions_at
from projections.store import Store
from streams.bundle_check import first_fault
from streams.envelope import Event
from tests.bench.table import Row
from tests.integration.projection_sessions import START, STORIES, BodyListLog, ListLog, in_log, recorded

SEED = 20261130
SESSIONS, QUICK_SESSIONS = 36, 12
BYTES_PER_EVENT = 4
Members = dict[str, bytes]


def many(count: int, rng: random.Random) -> dict[str, list[Event]]:
    """`count` sessions of every kind of story, interleaved as one log, over several days."""
    made = []
    for i in range(count):
        start = START + timedelta(hours=rng.randrange(72))
        made.append(recorded(f"e2611-{i:04}", STORIES[i % len(STORIES)](f"model-{i % 3}").drafts, start))
    order = [rng.randrange(count) for _ in range(sum(map(len, made)))]
    sessions: dict[str, list[Event]] = {}
    for event in in_log(*made, order=order):
        sessions.setdefault(event.session, []).append(event)
    return sessions


def projected(path: Path, events: Sequence[Event], batch: int, raw: bool) -> Store:
    store = Store.open(path)
    log: Any = BodyListLog(events) if raw else ListLog(events)  # as much of a log as a projector needs
    asyncio.run(Projector(store, log, batch=batch, duty=0).run(until=len(events)))
    return store


def as_of_wrong(store: Store, sessions: dict[str, list[Event]]) -> tuple[int, int]:
    """(compared, wrong): each session as of each of its events, and every session as of each position of the log."""
    compared = wrong = 0
    known: dict[str, Summary | None] = {}
    for event in sorted((e for events in sessions.values() for e in events), key=lambda e: e.seq):
        known[event.session] = folded = summary(state_at(event.session, sessions[event.session][: event.n]))
        wrong += session_at(store.connection, event.session, Moment(n=event.n)) != folded
        wanted = sorted((row for row in known.values() if row is not None), key=lambda row: row.seq)
        wrong += sessions_at(store.connection, Moment(seq=event.seq)) != wanted
        compared += 2
    return compared, wrong


def r3(count: int, rng: random.Random) -> list[Row]:
    sessions = many(count, rng)
    events = sorted((e for one in sessions.values() for e in one), key=lambda e: e.seq)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifests = []
        for i, (batch, raw) in enumerate(((1, False), (7, True), (20_000, True))):
            store = projected(folder / f"{i}.duckdb", events, batch, raw)
            if i == 1:
                compared, wrong = as_of_wrong(store, sessions)
            manifests.append(archive.export(store, folder / f"parquet{i}"))
            store.close()
    files = [{file.path: file.sha256 for file in manifest.files} for manifest in manifests]
    differing = sum(len(set(hashes)) > 1 for hashes in zip(*(f.values() for f in files), strict=True))
    differing += sum(f.keys() != files[0].keys() for f in files)
    details = {"sessions": count, "events": len(events), "files": len(files[0]), "batches": [1, 7, 20_000]}
    return [
        Row("R3", f"as of every event of {count} sessions and every position: not the fold, of {compared}", wrong, "0", not wrong, "", details),
        Row("R3", f"three rebuilds in other batches: files not of the same bytes, of {len(files[0])}", differing, "0", not differing),
    ]  # fmt: skip


@dataclass
class Found:
    """How many hands were in exported sessions, and which were not found."""

    tried: int = 0
    missed: list[str] = field(default_factory=list)


def _names(members: Members) -> list[str]:
    return sorted(name for name in members if name.startswith("events/"))


def _changed(members: Members, rng: random.Random) -> Iterator[tuple[str, Members]]:
    for name in _names(members):
        body = members[name]
        for at in rng.sample(range(len(body)), BYTES_PER_EVENT):
            other = bytes([body[at] ^ rng.randrange(1, 256)])
            yield f"{name} byte {at}", {**members, name: body[:at] + other + body[at + 1 :]}


def _dropped(members: Members, _rng: random.Random) -> Iterator[tuple[str, Members]]:
    names = _names(members)
    for i, gone in enumerate(names):
        bodies = [members[name] for name in names if name != gone]
        yield f"{gone} closed up", _with_events(members, bodies)
        if i + 1 < len(names):
            yield f"{gone} a hole", {name: body for name, body in members.items() if name != gone}


def _inserted(members: Members, _rng: random.Random) -> Iterator[tuple[str, Members]]:
    bodies = [members[name] for name in _names(members)]
    for i in range(len(bodies) + 1):
        twice = bodies[min(i, len(bodies) - 1)]
        yield f"again at {i + 1}", _with_events(members, [*bodies[:i], twice, *bodies[i:]])
        forged = json.loads(twice)
        forged.update(n=i + 1, prevhash=hashlib.sha256(bodies[i - 1]).hexdigest() if i else "0" * 64)
        body = json.dumps(forged, separators=(",", ":")).encode()
        yield f"forged at {i + 1}", _with_events(members, [*bodies[:i], body, *bodies[i:]])


def _reordered(members: Members, _rng: random.Random) -> Iterator[tuple[str, Members]]:
    bodies = [members[name] for name in _names(members)]
    for i in range(len(bodies) - 1):
        yield f"{i + 1} and {i + 2}", _with_events(members, [*bodies[:i], bodies[i + 1], bodies[i], *bodies[i + 2 :]])


HANDS: dict[str, Callable[[Members, random.Random], Iterator[tuple[str, Members]]]] = {
    "one byte changed": _changed,
    "one event dropped": _dropped,
    "one event inserted": _inserted,
    "two events in each other's place": _reordered,
}


def _with_events(members: Members, bodies: Sequence[bytes]) -> Members:
    others = {name: body for name, body in members.items() if not name.startswith("events/")}
    return {**others, **{f"events/{i:06}.json": body for i, body in enumerate(bodies, 1)}}


def _rewritten(bundle: Path, manifest: dict[str, Any], members: Members) -> None:
    """The bundle with other members and hashes that fit them; how many events, and the head, stay as exported."""
    hashes = {name: hashlib.sha256(body).hexdigest() for name, body in sorted(members.items())}
    with zipfile.ZipFile(bundle, "w") as zipped:
        zipped.writestr("manifest.json", json.dumps({**manifest, "members": hashes}))
        for name, body in sorted(members.items()):
            zipped.writestr(name, body)


def r5(rng: random.Random) -> list[Row]:
    found = {what: Found() for what in HANDS}
    with tempfile.TemporaryDirectory() as name:
        bundle = Path(name) / "session.zip"
        for story in STORIES:
            events = recorded(f"e2611-{story.__name__.replace('_', '-')}", story().drafts)
            members = {f"events/{event.n:06}.json": event.body for event in events}
            write_bundle(bundle, events[0].session, len(events), events[-1].hash, members)
            if (fault := first_fault(str(bundle))) is not None:
                raise AssertionError(f"the session as exported is not whole: {fault}")
            with zipfile.ZipFile(bundle) as zipped:
                manifest = json.loads(zipped.read("manifest.json"))
            for what, hand in HANDS.items():
                for where, tampered in hand(members, rng):
                    _rewritten(bundle, manifest, tampered)
                    found[what].tried += 1
                    if first_fault(str(bundle)) is None:
                        found[what].missed.append(f"{events[0].session} {where}")
    return [
        Row("R5", f"{what}: found by verify, of {one.tried}", one.tried - len(one.missed), f"{one.tried}", not one.missed,
            "", {"seed": SEED, "missed": one.missed})
        for what, one in found.items()
    ]  # fmt: skip


def run(quick: bool) -> list[Row]:
    rng = random.Random(SEED)
    return [*r3(QUICK_SESSIONS if quick else SESSIONS, rng), *r5(rng)]
