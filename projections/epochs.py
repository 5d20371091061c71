"""An old epoch on its way out: archived with the texts it names, and held against the live log before it is dropped."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import orjson

from projections import archive
from projections.archive import BrokenArchive, Manifest
from projections.projector import Projector
from projections.rebuild import BATCH
from projections.snapshot import remove
from projections.store import Store
from streams import subjects
from streams.bundle_check import blobs_of
from streams.dropping import Contents, Tally
from streams.epochs import Dropped
from streams.events import Blob
from streams.log import EventLog, referred_of

if TYPE_CHECKING:
    from projections.rows import BodyLog
    from streams.directget import Stored

Walk = Callable[[], AsyncGenerator[list["Stored"], None]]


class NotTheSame(Exception):
    """The archive is whole, and is not what the log holds: `place` is the first position at which they differ."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(f"position {place}: {why}")
        self.place = place
        self.why = why


class WithoutKeys:
    """The events of one epoch as they are stored: what is sealed stays sealed, and its key opens or erases it there too."""

    def __init__(self, log: BodyLog, epoch: str, last: int) -> None:
        self._log = log
        self._prefix = f"{subjects.PREFIX}.{epoch}-"
        self._last = last

    async def last_seq(self) -> int:
        return self._last

    async def stored(self, after: int = 0) -> AsyncGenerator[list[Stored], None]:
        """As the log's own, without other epochs' messages."""
        async with aclosing(cast("Any", self._log.stored(after))) as batches:
            async for batch in batches:
                ours = [message for message in batch if message.subject.startswith(self._prefix)]
                if ours:
                    yield ours

    async def get_blob(self, blob: Blob) -> bytes:
        data: bytes = await cast("Any", self._log).get_blob(stored_blob(blob.sha256, blob.size_bytes))
        return data

    def key(self, _session: str) -> None:
        return None


def stored_blob(sha256: str, size_bytes: int) -> Blob:
    """A blob as its bytes stand in the store, sealed or not."""
    return Blob(sha256=sha256, size_bytes=size_bytes, chunks=0)


async def archived(store: Store, log: BodyLog, epoch: str, folder: Path) -> Manifest:
    """Write `epoch` into `folder`, which must be new or empty: tables, manifest, and every text kept as a blob.

    `store` is level with `log` and tells where the epoch ends; the rows are derived anew, without any key. The folder
    appears whole or not at all. FileExistsError, and MissingBlob for a text that the log has lost.
    """
    part = await asyncio.to_thread(_begin, folder)
    try:
        rows = folder.with_name(f"{folder.name}.part.duckdb")
        view = WithoutKeys(log, epoch, await asyncio.to_thread(_last_of, store, epoch))
        manifest = await exported(rows, view, epoch, part)
        for sha256, size in sorted(await asyncio.to_thread(_named, part)):
            data = await view.get_blob(stored_blob(sha256, size))
            await asyncio.to_thread(_keep, blob_path(part, sha256), data)
        await asyncio.to_thread(os.replace, part, folder)  # over an empty folder too
    finally:
        await asyncio.to_thread(shutil.rmtree, part, ignore_errors=True)
    return manifest


def _last_of(store: Store, epoch: str) -> int:
    with store.cursor() as cursor:
        [(last,)] = cursor.execute(
            "SELECT coalesce(max(seq), 0) FROM events WHERE starts_with(session, ?)", [f"{epoch}-"]
        ).fetchall()
    return int(last)


class EpochLog(Protocol):
    """As much of a log as the rows of one epoch are derived from."""

    async def last_seq(self) -> int: ...

    def stored(self, after: int = 0) -> AsyncGenerator[list[Stored], None]: ...

    async def get_blob(self, blob: Blob) -> bytes: ...

    def key(self, _session: str) -> None: ...


async def exported(rows: Path, view: EpochLog, epoch: str, part: Path) -> Manifest:
    """Derive every table from `view` in a database at `rows`, which is removed afterwards, and write them to `part`."""
    remove(rows)
    store = await asyncio.to_thread(Store.open, rows)
    try:
        last = await view.last_seq()
        if last:
            with store.bulk():
                await Projector(store, cast("Any", view), batch=BATCH, duty=0).run(until=last)
        return await asyncio.to_thread(archive.export, store, part, epoch)
    finally:
        store.close()
        remove(rows)


def _begin(folder: Path) -> Path:
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name a new folder")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    return part


def _keep(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def blob_path(folder: Path, sha256: str) -> Path:
    """Where an archive keeps a blob: a file of its own, named by its hash."""
    return folder / "blobs" / sha256[:2] / sha256


def checked(folder: Path) -> Manifest:
    """`archive.check`, and every blob that an event names is there with its bytes. BrokenArchive says what is not."""
    manifest = archive.check(folder)
    for sha256, size in sorted(_named(folder)):
        path = blob_path(folder, sha256)
        if not path.is_file():
            raise BrokenArchive(path, "missing: a text that an event names (`admin archive` takes them along)")
        data = path.read_bytes()
        if len(data) != size or hashlib.sha256(data).hexdigest() != sha256:
            raise BrokenArchive(path, "its bytes are not those of its name")
    return manifest


def _named(folder: Path) -> set[tuple[str, int]]:
    """(sha256, size in bytes) of every blob that the archive's events name."""
    found: set[tuple[str, int]] = set()
    for rows in archive.stored(folder, "body, payload", "contains(body, '\"sha256\"') OR payload IS NOT NULL"):
        for body, payload in rows:
            found |= {*blobs_of(orjson.loads(body)), *(blobs_of(orjson.loads(payload)) if payload else ())}
    return found


@dataclass
class Survey:
    """What dropping an epoch would take and leave. `sessions` and `blobs` are what goes; `kept` is what stays."""

    epoch: str
    head_digest: str
    sessions: set[str] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)
    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0
    kept: Contents = field(default_factory=lambda: Contents(0, 0, 0, ""))
    open_turns: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def note(self, messages: int, first: int, last: int) -> Dropped:
        """The note that a stream keeps of what was taken out of it."""
        return Dropped(
            self.epoch, messages, len(self.sessions), first, last, self.head_digest, position=self.kept.last_seq
        )


async def survey(walk: Walk, log: EventLog, folder: Path, manifest: Manifest) -> Survey:
    """Read the whole log once, and hold each event of the manifest's epoch against the archive in `folder`.

    NotTheSame unless the two have the same events, byte for byte, at the same positions.
    """
    found = Survey(str(manifest.epoch), manifest.head_digest)
    log = cast("EventLog", WithoutKeys(cast("BodyLog", log), found.epoch, manifest.last_seq))
    archive_ = _archive_places(folder)
    tally, staying = Tally(), set[str]()
    async with aclosing(walk()) as batches:
        async for batch in batches:
            for message in batch:
                session, _, kind = subjects.parse(message.subject)
                _turns(found, session, kind, message.body)
                if session.startswith(f"{found.epoch}-"):
                    _hold_against(archive_, message)
                    found.sessions.add(session)
                    found.messages += 1
                    found.first_seq, found.last_seq = found.first_seq or message.seq, message.seq
                    found.blobs |= await _blobs(log, message.body)
                else:
                    tally.add(message)
                    staying |= await _blobs(log, message.body)
    left = next(archive_, None)
    if left is not None:
        raise NotTheSame(left[0], "the archive has an event there, the log has none")
    found.kept = tally.contents
    found.blobs -= staying
    found.open_turns = {session: turns for session, turns in found.open_turns.items() if turns}
    return found


def _archive_places(folder: Path) -> Iterator[tuple[int, str]]:
    """(position, hash of the bytes) of every archived event, in order."""
    for rows in archive.stored(folder, "seq, hash"):
        yield from rows


def _hold_against(places: Iterator[tuple[int, str]], message: Stored) -> None:
    place = next(places, None)
    if place is None or place[0] > message.seq:
        raise NotTheSame(message.seq, f"{message.subject} is in the log, and not in the archive: archive it anew")
    if place[0] < message.seq:
        raise NotTheSame(place[0], "the archive has an event there, the log has none of this epoch")
    if place[1] != hashlib.sha256(message.body).hexdigest():
        raise NotTheSame(message.seq, f"{message.subject} has other bytes than the archive")


def _turns(found: Survey, session: str, kind: str, body: bytes) -> None:
    if kind == "question-asked":
        found.open_turns[session].add(int(orjson.loads(body)["turn"]))
    elif kind == "answer-given":
        found.open_turns[session].discard(int(orjson.loads(body)["turn"]))


async def _blobs(log: EventLog, body: bytes) -> set[str]:
    named: Sequence[bytes] = [body] if b'"sha256"' in body or b'"dataref"' in body else []
    referred = await referred_of(log, body) if named else None
    return {
        sha256 for text in (*named, *([referred] if referred else ())) for sha256, _ in blobs_of(orjson.loads(text))
    }
