"""A connection to an MCP server: opened by the first call, shared by all, closed when nobody has called for a while.

Its context must be left by the task that entered it, so a task of its own holds it; a server that died is started
anew by the next call.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, CallToolResult, Implementation, Tool

from handlers.evidence.mcp_access import McpServer

IDLE_S = 30.0
OPEN_S = 30.0
PAGES = 20


class McpFailed(Exception):
    """A server that cannot be reached, or a call that it refused; the text is for people and models."""


class McpConnection:
    """One server."""

    def __init__(self, name: str, server: McpServer) -> None:
        self._name = name
        self._server = server
        self._holder: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Client] | None = None
        self._used = asyncio.Event()
        self._calls = 0

    async def tools(self) -> list[Tool]:
        """What the server offers. Raises McpFailed."""
        client = await self._client()
        found: list[Tool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._server.timeout_s):
                for _ in range(PAGES):
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if not cursor:
                        break
        except (MCPError, OSError, TimeoutError) as error:
            raise McpFailed(f"{self._name} did not list its tools: {_words(error)}") from None
        return found

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Raises McpFailed where there is no result; one that says it is an error is a result."""
        client = await self._client()
        holder = self._holder
        self._calls += 1
        try:
            async with asyncio.timeout(self._server.timeout_s):
                return await client.call_tool(tool, arguments)
        except TimeoutError:
            raise McpFailed(f"{self._name} did not answer within {self._server.timeout_s:g} s") from None
        except MCPError as error:
            if error.code == CONNECTION_CLOSED and self._holder is holder:
                await self.close()
            raise McpFailed(f"{self._name}: {_words(error)}") from None
        except Exception as error:  # a transport fails in ways of its own; the next call opens it anew
            if self._holder is holder:  # another call may have opened a new one
                await self.close()
            raise McpFailed(f"{self._name} broke off: {_words(error)}") from None
        finally:
            self._calls -= 1
            self._used.set()

    async def close(self) -> None:
        holder, self._holder, self._ready = self._holder, None, None
        if holder is not None:
            holder.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await holder

    async def _client(self) -> Client:
        if self._holder is None or self._holder.done() or self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._holder = asyncio.create_task(self._hold(self._ready))
        ready = self._ready
        try:
            async with asyncio.timeout(OPEN_S):
                return await asyncio.shield(ready)
        except TimeoutError:
            await self.close()
            raise McpFailed(f"{self._name} did not open within {OPEN_S:g} s") from None

    async def _hold(self, ready: asyncio.Future[Client]) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = await stack.enter_async_context(Client(await self._transport(stack), client_info=_us()))
                ready.set_result(client)
                while True:
                    self._used.clear()
                    try:
                        await asyncio.wait_for(self._used.wait(), IDLE_S)
                    except TimeoutError:
                        if self._calls == 0:
                            return
        except Exception as error:
            if not ready.done():
                ready.set_exception(McpFailed(f"{self._name} cannot be opened: {_words(error)}"))

    async def _transport(self, stack: contextlib.AsyncExitStack) -> Any:
        server = self._server
        if server.url is not None:
            headers = {name: value.get_secret_value() for name, value in server.headers.items()}
            client = httpx2.AsyncClient(headers=headers, timeout=server.timeout_s, follow_redirects=False)
            return streamable_http_client(server.url, http_client=await stack.enter_async_context(client))
        assert server.command is not None
        env = {name: value.get_secret_value() for name, value in server.env.items()}
        quiet = stack.enter_context(_nowhere())
        return stdio_client(StdioServerParameters(command=server.command, args=server.args, env=env), errlog=quiet)


@contextlib.contextmanager
def _nowhere() -> Iterator[TextIO]:
    with Path(os.devnull).open("w", encoding="utf-8") as file:
        yield file


def _us() -> Implementation:
    return Implementation(name="verdictlog", version="1")


def _words(error: BaseException) -> str:
    # What goes wrong inside a group of tasks arrives wrapped.
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        inner: Sequence[BaseException] = error.exceptions
        error = inner[0]
    return " ".join((str(error) or type(error).__name__).split())[:600]
