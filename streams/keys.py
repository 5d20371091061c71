"""Keys of sealed sessions: one file a session, in a folder outside the log. Whoever drops a key erases the text.

A dropped key leaves a tombstone: no second key is made for that session. Overwriting reaches what the file system
lets it reach; copies and backups of the folder are their owner's to destroy.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from streams.identity import check_session
from streams.sealing import KEY_BYTES, BadSeal, NoKey

HELD = 4096
_SALT = "salt"


class Keys(Protocol):
    """The keys of sessions, each KEY_BYTES long."""

    def get(self, session: str) -> bytes | None:
        """The session's key; None if it is not here, or was dropped."""
        ...

    def make(self, session: str) -> bytes:
        """The session's key, made if there is none. NoKey if it was dropped."""
        ...


class FileKeys:
    """Keys as files of mode 0600 in a folder of mode 0700, which any number of processes may share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: dict[str, bytes] = {}

    def get(self, session: str) -> bytes | None:
        path = self._key(session)
        # Held keys are looked for, too: another process may have dropped this one.
        if not path.exists():
            self._held.pop(session, None)
            return None
        key = self._held.get(session)
        if key is None:
            try:
                key = path.read_bytes()
            except FileNotFoundError:
                return None
            if len(key) != KEY_BYTES:
                raise BadSeal(f"key file {path} is {len(key)} bytes long, not {KEY_BYTES}: put it back as it was")
            if len(self._held) >= HELD:
                self._held.clear()
            self._held[session] = key
        return key

    def make(self, session: str) -> bytes:
        if self._tombstone(session).exists():
            raise NoKey(session, "its text was erased")
        found = self.get(session)
        if found is not None:
            return found
        self._create(self._key(session))
        made = self.get(session)
        if made is None:
            raise NoKey(session, "its text was erased")
        return made

    def salt(self) -> bytes:
        """What makes ids that are derived from text unguessable, the same for all sessions of this folder."""
        path = self.folder / _SALT
        if not path.exists():
            self._create(path)
        return path.read_bytes()

    def drop(self, session: str) -> bool:
        """Put up the tombstone, then destroy the key; whether there was one. Safe to repeat after a crash."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(self._tombstone(session), b"")
        going, found = self._going(session), False
        # Another process may be dropping it, too, and be ahead at any step.
        with suppress(FileNotFoundError):
            # Renamed first, so that nobody reads a key that is being overwritten.
            os.replace(self._key(session), going)
        self._held.pop(session, None)
        with suppress(FileNotFoundError):
            self._write(going, bytes(going.stat().st_size), os.O_WRONLY)
            found = True
            going.unlink()
        self._sync()
        return found

    def destroyed(self, session: str) -> bool:
        """Whether the session's key was dropped here, and nothing is left of it."""
        return self._tombstone(session).exists() and not self.left(session)

    def left(self, session: str) -> bool:
        """Whether something is left of the session's key."""
        return self._key(session).exists() or self._going(session).exists()

    def _create(self, path: Path) -> None:
        """A file with a new key, whole or not at all; one that somebody else made meanwhile stays."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        making = self.folder / f".{secrets.token_hex(8)}"
        try:
            self._write(making, secrets.token_bytes(KEY_BYTES))
            os.link(making, path)
        except FileExistsError:
            pass
        finally:
            making.unlink(missing_ok=True)
        self._sync()

    def _write(self, path: Path, content: bytes, flags: int = os.O_WRONLY | os.O_CREAT) -> None:
        file = os.open(path, flags, 0o600)
        try:
            os.write(file, content)
            os.fsync(file)
        finally:
            os.close(file)

    def _sync(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _key(self, session: str) -> Path:
        return self.folder / f"{check_session(session)}.key"

    def _going(self, session: str) -> Path:
        return self.folder / f"{check_session(session)}.going"

    def _tombstone(self, session: str) -> Path:
        return self.folder / f"{check_session(session)}.erased"
