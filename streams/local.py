"""Local mode: join the server of a data folder, or start it; it ends after its last client, however that one ends."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from streams import server
from streams.log import LogUnavailable

POLL_S = 0.005
ROOM_BYTES = 64 * 1024  # with less the server cannot write its first files

# Kept so that each is waited for when it has ended: a keeper lives on after the one who started it.
_keepers: list[subprocess.Popen[bytes]] = []


class BadDataFolder(LogUnavailable):
    """A data folder that cannot be used: a file, not writable, on a disk that is full."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(f"data folder {folder}: {why}: name a folder that can be written to by --data")
        self.folder = folder
        self.why = why


class LocalServerFailed(LogUnavailable):
    """The data folder's server did not come up; `why` is one line from its log."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(f"the local NATS server over {folder} did not start: {why}")
        self.folder = folder
        self.why = why


@asynccontextmanager
async def local_server(data: Path, within_s: float = server.READY_S) -> AsyncIterator[str]:
    """The URL of the one server over the data folder `data`, for as long as the block runs.

    The block counts as a client. Two commands at once get the same server. Raises BadDataFolder or
    LocalServerFailed, each with one clear line.
    """
    folder = server_folder(data)
    end = time.monotonic() + within_s
    try:
        folder.mkdir(parents=True, exist_ok=True)
        gate = await _locked(server.gate_lock(folder), fcntl.LOCK_EX, folder, end)
        try:
            client = await _locked(server.clients_lock(folder), fcntl.LOCK_SH, folder, end)
        except BaseException:
            os.close(gate)
            raise
    except OSError as error:
        raise BadDataFolder(data, error.strerror or str(error)) from error
    try:
        try:
            url = await _joined(folder, end)
        except OSError as error:
            raise BadDataFolder(data, error.strerror or str(error)) from error
        finally:
            os.close(gate)
        yield url
    finally:
        os.close(client)


async def _locked(path: Path, operation: int, folder: Path, end: float) -> int:
    """An open descriptor that holds the lock; closing it, or dying, lets go."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise LocalServerFailed(folder, f"{path.name} is held by another command") from None
                await asyncio.sleep(POLL_S)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise


async def _joined(folder: Path, end: float) -> str:
    started: subprocess.Popen[bytes] | None = None
    while time.monotonic() < end:
        with server.held(server.keeper_lock(folder), fcntl.LOCK_EX) as nobody_keeps:
            pass
        if not nobody_keeps:
            url = announced(folder)
            if url is not None:
                return url
        elif started is None:
            await asyncio.to_thread(server.end_orphan, folder)
            started = _start_keeper(folder)
        elif started.poll() == 0:
            started = None  # it found another keeper at work, which has ended since
        elif started.poll() is not None:
            raise LocalServerFailed(folder, _last_line(folder))
        await asyncio.sleep(POLL_S)
    raise LocalServerFailed(folder, "it was not ready in time")


def server_folder(data: Path) -> Path:
    """Where a data folder has its server's store, settings and port file."""
    return data / "nats"


def announced(folder: Path) -> str | None:
    """The URL in the port file, if the server that answers there is the one that the file names."""
    try:
        record = json.loads(server.port_file(folder).read_text(encoding="utf-8"))
        port, name = int(record["port"]), str(record["name"])
    except (OSError, ValueError, KeyError):
        return None
    return f"nats://127.0.0.1:{port}" if server.greeting(port) == name else None


def _start_keeper(folder: Path) -> subprocess.Popen[bytes]:
    try:
        program = server.binary()
    except server.ServerFailed as failed:
        raise LocalServerFailed(folder, failed.why) from failed
    _keepers[:] = [keeper for keeper in _keepers if keeper.poll() is None]
    with _keeper_log(folder).open("wb") as log:
        keeper = subprocess.Popen(
            # -I -S: nothing but the standard library, so that it is there in a few hundredths of a second
            [sys.executable, "-I", "-S", str(server.__file__), str(folder.absolute()), str(program)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    _keepers.append(keeper)
    return keeper


def _keeper_log(folder: Path) -> Path:
    return folder / "keeper.log"


def _last_line(folder: Path) -> str:
    lines = _keeper_log(folder).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if shutil.disk_usage(folder).free < ROOM_BYTES:
        return "its disk is full: make room and try again, nothing that was recorded is lost"
    return lines[-1] if lines else "it ended without a word"
