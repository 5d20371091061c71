"""The process of a command: the name it was typed by, and Ctrl-C, which is exit code 130 whenever it comes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Coroutine
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from types import FrameType

T = TypeVar("T")

NAME = "verdictlog"
INTERRUPTED = 130


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def end_by_interrupt() -> None:
    """From here on Ctrl-C ends the process at once: half an import or half a file read has nothing to tidy up."""
    signal.signal(signal.SIGINT, _end)


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, with Ctrl-C as a cancellation, so that what was opened is closed."""
    import asyncio

    # asyncio cancels the work only where it finds Python's own handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGINT, before)


@cache
def program() -> str:
    """The program as the user can type it again: by its name where the PATH has it, else by the path that was typed."""
    typed, known = Path(sys.argv[0]), shutil.which(NAME)
    if typed.name != NAME:
        return NAME if known else shlex.join([_near(Path(sys.executable)), "-m", "handlers.cli"])
    if known and typed.exists() and typed.samefile(known):
        return NAME
    return shlex.quote(_near(typed) if typed.is_absolute() else str(typed))


def _near(path: Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near


def typeable(text: str) -> str:
    """A message from anywhere, whose `verdictlog ...` commands become what this user types."""
    return text.replace(f"`{NAME} ", f"`{program()} ")
