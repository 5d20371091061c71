"""Recorded sessions of every release: how they are kept, read, and compared with what a program makes of them.

`tests/golden/<release>/<session>.ndjson` has a line an event, `{"seq": 7, "body": "<the stored bytes>"}`, and a line for
each blob that an event names, `{"blob": "<sha256>", "content": "..."}`, or `"base64"` where its bytes are no text. The
sessions of `KEYS` are sealed with keys that everybody knows: what is left without one is in `<session>.hidden.json`. These files never change: `SHA256SUMS` lists
them. What the fold and the read model make of them stands beside: `<session>.state.json` and `rows.json`, compared by
what they hold: a later program may say more, never less or else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from projections import catalog
from projections.store import Store
from streams import sealing, subjects
from streams.directget import Stored
from streams.envelope import HASH_HEADER, SEALED, Event, dataref_of, decode
from streams.events import Blob
from streams.session import SessionState

HERE = Path(__file__).parent
SUMS = HERE / "SHA256SUMS"
KEYS = {"e2611-sealed": bytes(range(sealing.KEY_BYTES))}
IN_EVENTS_TABLE = {"body", "payload"}  # compared with the recording, not kept twice


class KnownKeys(dict[str, bytes]):
    """Keys of sessions as a log asks for them: `get` is that of every dict."""

    def make(self, session: str) -> bytes:
        return self[session]


@dataclass(frozen=True)
class Recording:
    """One release: the stored messages in order of the log, and the blobs that they name."""

    release: str
    messages: tuple[Stored, ...]
    blobs: dict[str, bytes]

    @property
    def sessions(self) -> list[str]:
        return sorted({message.subject.split(".")[1] for message in self.messages})

    def events(self, session: str, key: bytes | None = None) -> list[Event]:
        """The session by way of the real decoder; `key` opens it where it is sealed."""
        return [self._event(m, key) for m in self.messages if m.subject.split(".")[1] == session]

    def _event(self, message: Stored, key: bytes | None) -> Event:
        blob = dataref_of(message.body)
        held = None if blob is None else self.blobs[blob.sha256]
        if key is not None and message.body.startswith(SEALED) and sealing.seal_of(held or message.body):
            held = sealing.unsealed(key, orjson.loads(message.body)["id"], held or message.body)
        return decode(message.body, message.seq, held)


def releases() -> list[str]:
    return sorted(path.name for path in HERE.iterdir() if path.is_dir() and any(path.glob("*.ndjson")))


def read(release: str) -> Recording:
    """The recording of a release, its sessions merged into the one log that they were."""
    messages, blobs = [], {}
    for path in sorted((HERE / release).glob("*.ndjson")):
        for line in path.read_bytes().splitlines():
            said = orjson.loads(line)
            if "blob" in said:
                text = said.get("content")
                blobs[said["blob"]] = base64.b64decode(said["base64"]) if text is None else text.encode()
                continue
            body = said["body"].encode()
            raw = orjson.loads(body)
            subject = subjects.event_subject(raw["session"], raw["n"], raw["type"].removeprefix("verdictlog."))
            headers = {HASH_HEADER: hashlib.sha256(body).hexdigest()}
            messages.append(Stored(said["seq"], subject, body, headers))
    return Recording(release, tuple(sorted(messages, key=lambda m: m.seq)), blobs)


def write(folder: Path, messages: list[Stored], blobs: dict[str, bytes]) -> None:
    """One file a session, as read from the log. A session that has one keeps it."""
    folder.mkdir(parents=True, exist_ok=True)
    for session in sorted({m.subject.split(".")[1] for m in messages}):
        if (folder / f"{session}.ndjson").exists():
            continue
        own = [m for m in messages if m.subject.split(".")[1] == session]
        lines = [orjson.dumps({"seq": m.seq, "body": m.body.decode()}) for m in own]
        named = [sha256 for sha256 in sorted(blobs) if any(sha256.encode() in m.body for m in own)]
        lines += [orjson.dumps({"blob": sha256, **_content(blobs[sha256])}) for sha256 in named]
        (folder / f"{session}.ndjson").write_bytes(b"".join(line + b"\n" for line in lines))


def _content(blob: bytes) -> dict[str, str]:
    try:
        return {"content": blob.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(blob).decode()}


def sums() -> dict[str, str]:
    """`<release>/<file>` -> SHA-256, of every recorded file as it is now."""
    files = sorted(path for release in releases() for path in (HERE / release).glob("*.ndjson"))
    return {f"{p.parent.name}/{p.name}": hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def listed() -> dict[str, str]:
    """The same, as it was when each was recorded."""
    lines = SUMS.read_text(encoding="utf-8").splitlines() if SUMS.exists() else []
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def state_object(state: SessionState) -> dict[str, Any]:
    """Everything the fold knows; an event stands for itself by its number, a payload by the fields it was given."""
    known: dict[str, Any] = _plain(state, leave_out={"events"})
    return {**known, "self_evaluation": sorted(state.self_evaluation or {})}


def _plain(value: Any, leave_out: frozenset[str] | set[str] = frozenset()) -> Any:
    if isinstance(value, Event):
        return {"event": value.n}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name not in leave_out}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def rows(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Every table's rows, and `diagnosis_session`."""
    return {name: _rows(store, name) for name in (*(t.name for t in catalog.tables()), "diagnosis_session")}


def _rows(store: Store, name: str) -> list[dict[str, Any]]:
    result = store.connection.execute(f"FROM {name} ORDER BY ALL")
    names = [str(column[0]) for column in result.description or []]
    left = IN_EVENTS_TABLE if name == "events" else set()
    return [
        {key: _json(value) for key, value in zip(names, row, strict=True) if key not in left}
        for row in result.fetchall()
    ]


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda v: v.isoformat() if isinstance(v, datetime) else str(v)))


def missing(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where `found` does not hold what `expected` holds. Further keys are no difference, further items are."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from missing(value, found[key], f"{place}.{key}")
            else:
                yield f"{place}.{key} is not there"
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from missing(one, other, f"{place}[{i}]")
    elif expected != found:
        yield f"{place}: {str(found)[:200]} instead of {str(expected)[:200]}"


class RecordedLog:
    """A recording as a projector reads a log: stored bytes, in lists as a server hands them out."""

    def __init__(self, recording: Recording, size: int = 50, keys: Mapping[str, bytes] = KEYS) -> None:
        self.recording = recording
        self.size = size
        self.keys = keys

    def key(self, session: str) -> bytes | None:
        return self.keys.get(session)

    async def last_seq(self) -> int:
        return self.recording.messages[-1].seq

    async def get_blob(self, blob: Blob) -> bytes:
        return self.recording.blobs[blob.sha256]

    async def stored(self, after: int = 0) -> AsyncIterator[list[Stored]]:
        behind = [m for m in self.recording.messages if m.seq > after]
        for i in range(0, len(behind), self.size):
            yield behind[i : i + self.size]
