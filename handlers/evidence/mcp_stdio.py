"""A program that speaks MCP over its stdin and stdout: what it may write is bounded, and what is no message is told.

The library's own transport holds a line of any length, which takes it the longer the longer the line is, and prints
a traceback for each line that it cannot read.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

GRACE_S = 2.0  # in which a program ends by itself once nobody writes to it
POLL_S = 0.01
SHOWN = 120


class Program:
    """A program to start. `fault`: why it was hung up on, or what it wrote that was no message."""

    def __init__(self, command: str, args: Sequence[str], env: Mapping[str, str], max_bytes: int) -> None:
        self._command = (command, *args)
        self._env = {**get_default_environment(), **env}
        self._max_bytes = max_bytes
        self.fault: str | None = None

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Any]:
        """The read and write streams of a session, as the library's transports give them; the program runs as long."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            limit=self._max_bytes,
        )
        arriving, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, leaving = anyio.create_memory_object_stream[SessionMessage](0)
        reading = asyncio.ensure_future(self._read(process, arriving))
        writing = asyncio.ensure_future(_write(process, leaving, arriving))
        try:
            yield read, write
        finally:
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)
            for stream in (arriving, read, write, leaving):
                stream.close()
            await asyncio.shield(_ended(process))

    async def _read(self, process: asyncio.subprocess.Process, arriving: Any) -> None:
        assert process.stdout is not None
        async with arriving:
            while True:
                try:
                    line = await process.stdout.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    self.fault = f"an answer is longer than {self._max_bytes} bytes; ask for less"
                    return
                except (asyncio.IncompleteReadError, OSError):
                    return
                try:
                    message = await asyncio.to_thread(jsonrpc_message_adapter.validate_json, line, by_name=False)
                except ValidationError:
                    if line.strip():
                        text = " ".join(line[: 4 * SHOWN].decode("utf-8", "replace").split())[:SHOWN]
                        self.fault = f"it writes lines that are no messages of MCP: {text!r}"
                    continue
                await arriving.send(SessionMessage(message))


async def _write(process: asyncio.subprocess.Process, leaving: Any, arriving: Any) -> None:
    assert process.stdin is not None
    try:
        async for sent in leaving:
            line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode("utf-8") + b"\n")
            await process.stdin.drain()
    except OSError:
        arriving.close()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """The program is asked to end by the end of its input, and ended where it does not, with all that it started."""
    assert process.stdin is not None
    process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Not `wait`: that goes on for as long as anything that the program started holds its pipes.
        for _ in range(int(GRACE_S / POLL_S)):
            if process.returncode is not None:
                break
            await asyncio.sleep(POLL_S)
        if process.returncode is not None:
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    with suppress(AttributeError):
        process._transport.close()  # type: ignore[attr-defined]  # a grandchild may hold the pipes open
