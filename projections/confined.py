"""A query in a process of its own: what the database does not end by itself, the kernel ends.

DuckDB acts on an interrupt between chunks only, and one value is one chunk: `repeat('x', 2000000000)` ran 43 s and held
7.9 GB under a limit of 5 s and 512 MB. A timer that kills and a bound on the process's memory hold in every case.
"""

from __future__ import annotations

import os
import pickle
import re
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from projections.query import Answer, Limits, QueryError, QueryFailed, QueryTimeout, ask, too_little, too_long
from projections.store import BadStore, SchemaMismatch, StoreBusy

if TYPE_CHECKING:
    from projections.asof import Moment

GRACE_S = 0.5  # for the database to end the query by itself, which says more
ROOM = 512 << 20  # bytes beside the database's own: the interpreter, and the rows on their way out
UNITS = {
    "b": 1,
    **{f"{unit}b": 1000 ** (k + 1) for k, unit in enumerate("kmgt")},
    **{f"{unit}ib": 1024 ** (k + 1) for k, unit in enumerate("kmgt")},
}
SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([kmgt]?i?b)", re.IGNORECASE)
LEAST_BYTES = 16_000_000  # below it the database cannot even open a read model


def size_bytes(text: str) -> int:
    """A size such as `512MB` or `1.5 GiB` in bytes; ValueError if it is none, or too small to work in."""
    found = SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * UNITS[found[2].lower()]) if found and found[2].lower() in UNITS else 0
    if size < LEAST_BYTES:
        raise ValueError(f"{text!r} is no size of 16MB or more, such as 512MB or 2GB")
    return size


def ask_confined(
    path: Path, sql: str, limits: Limits, moment: Moment | None = None, archives: tuple[Path, ...] = ()
) -> Answer:
    """`query.ask` in a child process that can neither outlive `limits.seconds` nor outgrow `limits.memory`.

    Raises what `ask` raises. ValueError for a size that is none.
    """
    size_bytes(limits.memory)
    request = pickle.dumps((path, sql, limits, moment, archives))
    # -P and the package's own folder: what lies in the folder that the user stands in is not imported.
    command = [sys.executable, "-P", "-m", "projections.confined"]
    root = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    # An interrupt at the keyboard reaches the child too: blocked until the child can end by it without a word.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with child:
        told, _ = child.communicate(request)
    if child.returncode == -signal.SIGALRM:
        raise QueryTimeout(too_long(limits.seconds))
    if child.returncode != 0:
        raise QueryFailed(f"the database broke off ({_ended(child.returncode)}): narrow the query, or raise --memory")
    outcome = pickle.loads(told)  # noqa: S301  our own child wrote it
    if isinstance(outcome, Exception):
        raise outcome
    assert isinstance(outcome, Answer)
    return outcome


def _ended(code: int) -> str:
    return f"exit code {code}" if code > 0 else signal.Signals(-code).name


def _child() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    path, sql, limits, moment, archives = pickle.loads(sys.stdin.buffer.read())  # noqa: S301  our own parent wrote it
    signal.setitimer(signal.ITIMER_REAL, limits.seconds + GRACE_S)
    room = size_bytes(limits.memory) + ROOM
    # Where a tighter bound is set already, or the system knows none, the timer remains.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (room, room))
    try:
        outcome: Answer | Exception = ask(path, sql, limits, moment, archives)
        written = pickle.dumps(outcome)
    except (QueryError, StoreBusy, BadStore, SchemaMismatch) as error:
        written = pickle.dumps(error)
    except MemoryError:
        written = pickle.dumps(QueryFailed(too_little(limits.memory)))
    sys.stdout.buffer.write(written)


if __name__ == "__main__":
    _child()
