"""`python -m tests.golden`: record the sessions of this release, once; `--expect`: what today's program makes of all.

A recording is made on a real server by the real roles and is never made again: a release that has one is refused.
Run it when a release is made, or when a schema number was raised. `--sealed` records the sealed story behind the others of
a release that was made before there was one. `--expect` writes the expected states and rows anew:
its diff is what a change of the fold or of the read model does to old sessions, and is read like one of code.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import aclosing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from projections.projector import Projector
from projections.store import Store
from streams import chain, topology
from streams.events import Blob
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.log import event_of
from streams.server import NatsServer
from streams.session import fold
from tests.golden import stories
from tests.golden.recordings import (
    HERE,
    KEYS,
    SUMS,
    KnownKeys,
    RecordedLog,
    Recording,
    listed,
    read,
    releases,
    rows,
    state_object,
    sums,
    write,
)


async def record(folder: Path, before: Recording | None = None) -> None:
    """Play every story on a server of its own, and keep what its log holds; behind `before`, the sealed one only."""
    with tempfile.TemporaryDirectory() as data:
        server = NatsServer(Path(data))
        server.start()
        client = await connect(server.url)
        try:
            await topology.ensure(client.jetstream())
            log = JetStreamLog(client)
            sealing = JetStreamLog(client, keys=KnownKeys(KEYS), seal=True)
            if before is None:
                await stories.play(log, sealing)
            else:
                await replayed(before, client)
                await stories.sealed(sealing)
            messages, blobs = [], {}
            last = await log.last_seq()
            async with aclosing(log.stored(0)) as batches:
                while len(messages) < last:
                    messages += await anext(batches)
            for message in messages:
                event = await event_of(log, message.body, message.seq)
                for sha256, size in chain.blobs(event):
                    blobs[sha256] = await log.get_blob(Blob(sha256=sha256, size_bytes=size, chunks=0))
            write(folder, messages, blobs)
        finally:
            await disconnect(client)
            server.stop()


async def replayed(recording: Recording, client: Client) -> None:
    """A recording's messages and blobs, stored at their positions in the empty log of a server."""
    for content in recording.blobs.values():
        await JetStreamLog(client).put_blob(content)
    for message in recording.messages:
        stored = await client.jetstream().publish(message.subject, message.body, headers=message.headers)
        assert stored.seq == message.seq


def expect(release: str) -> None:
    """Write what the fold and the read model of today make of a recording."""
    recording = read(release)
    for session in recording.sessions:
        state = fold(session, recording.events(session, KEYS.get(session)))
        _write(HERE / release / f"{session}.state.json", state_object(state))
        if session in KEYS:
            _write(HERE / release / f"{session}.hidden.json", state_object(fold(session, recording.events(session))))
    store = Store.open(Path(":memory:"))
    log = RecordedLog(recording)
    asyncio.run(Projector(store, log, duty=0).run(until=recording.messages[-1].seq))  # type: ignore[arg-type]
    _write(HERE / release / "rows.json", rows(store))


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--expect", action="store_true", help="write the expected states and rows anew")
    parser.add_argument("--release", default=version("verdictlog"), help="default: the installed version")
    parser.add_argument("--sealed", action="store_true", help="record the sealed story of a release that lacks it")
    given = parser.parse_args()
    if given.expect:
        for release in releases():
            expect(release)
        return 0
    folder = HERE / given.release
    lacks = given.sealed and folder.exists() and not KEYS.keys() <= set(read(given.release).sessions)
    if folder.exists() and not lacks:
        print(f"{folder} is there: a recording is never made again, name a new --release", file=sys.stderr)
        return 2
    asyncio.run(record(folder, read(given.release) if lacks else None))
    known = {**sums(), **listed()}
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(known.items())), encoding="utf-8")
    expect(given.release)
    return 0


if __name__ == "__main__":
    sys.exit(main())
