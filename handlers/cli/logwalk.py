"""The whole log, walked once: every event follows the one before it, and every text that one names is there."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handlers.cli.process import program
from streams import chain, subjects
from streams.envelope import HASH_HEADER, BadEnvelope, Event, Head
from streams.events import Blob
from streams.log import LogWentBackwards, MissingBlob, event_of
from streams.upcasts import UnknownEventType

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from streams.directget import Stored

PATIENCE_S = 20.0  # for the next stored event, of those that the log says it has


@dataclass
class Outcome:
    """What was checked, and the first bad place of each kind."""

    ok: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)


async def walk(station: Station, outcome: Outcome) -> dict[str, dict[int, str]]:
    """Check every stored event; the hash of each by session and n."""
    steps = Steps(station, outcome)
    last = await station.log.last_seq()
    try:
        async with aclosing(station.log.stored(0)) as batches:
            while steps.place < last:
                async with asyncio.timeout(PATIENCE_S):
                    messages = await anext(batches)
                for message in messages:
                    await steps.take(message)
    except LogWentBackwards as error:
        outcome.bad.append(str(error))
    except TimeoutError:
        outcome.bad.append(f"log: it ends with position {last}, and nothing can be read behind position {steps.place}")
    outcome.bad += steps.broken.values()
    if not outcome.bad:
        outcome.ok.append(f"log: {steps.count} events in {len(steps.hashes)} sessions, no gap, every chain whole")
        outcome.ok.append(f"blobs: {len(steps.blobs)}, each whole and of its hash")
    return steps.hashes


class Steps:
    """How far the walk is: the tip of each chain, the first fault of each session, and the hashes met."""

    def __init__(self, station: Station, outcome: Outcome) -> None:
        self.hashes: dict[str, dict[int, str]] = {}
        self.broken: dict[str, str] = {}
        self.blobs: set[str] = set()
        self.count = 0
        self.place = 0
        self._station = station
        self._outcome = outcome
        self._tips: dict[str, Head] = {}

    async def take(self, message: Stored) -> None:
        """The next message in the order of the log."""
        self.count, self.place = self.count + 1, message.seq
        try:
            session, n, _ = subjects.parse(message.subject)
        except ValueError:
            self._outcome.bad.append(f"position {message.seq}: {message.subject} is no subject of an event")
            return
        self.hashes.setdefault(session, {})[n] = hashlib.sha256(message.body).hexdigest()
        if session in self.broken:
            return
        why = await self._fault(message, session, n)
        if why is not None:
            self.broken[session] = f"session {session}: event {n} (position {message.seq}): {why}"

    async def _fault(self, message: Stored, session: str, n: int) -> str | None:
        try:
            event = await event_of(self._station.log, message.body, message.seq)
        except (BadEnvelope, UnknownEventType, LookupError) as error:
            return str(error)
        link = chain.verify([event], self._tips.get(session, Head()))
        self._tips[session] = event.head
        await check_blobs(self._station, [event], self._outcome, self.blobs)
        if event.type == "text-erased" and self._station.keys.left(session):
            again = f"`{program()} erase {session}` again"
            self._outcome.bad.append(f"session {session}: its erasure is unfinished: {again}")
        if link is not None:
            return link.why
        if (event.session, event.n) != (session, n):
            return f"it stands where event {n} of {session} should"
        return (
            None if message.headers.get(HASH_HEADER) == event.hash else "its bytes do not have the hash of its header"
        )


async def check_blobs(station: Station, events: Iterable[Event], outcome: Outcome, known: set[str]) -> None:
    """Every text that the events name is there and has its hash; `known` holds those that were checked."""
    for event in events:
        for sha256, size in sorted(chain.blobs(event)):
            if sha256 in known:
                continue
            known.add(sha256)
            try:
                await station.log.get_blob(Blob(sha256=sha256, size_bytes=size, chunks=0))
            except MissingBlob as missing:
                outcome.bad.append(f"session {event.session}: event {event.n}: {missing}")
