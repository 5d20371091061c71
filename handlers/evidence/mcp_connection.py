"""A connection to an MCP server: opened by the first call, shared by all, closed when nobody has called for a while.

Its context must be left by the task that entered it, so a task of its own holds it; a server that died is started
anew by the next call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, CallToolResult, Implementation, Tool
from pydantic import ValidationError

from handlers.agents.capped import TooLarge, cap
from handlers.evidence.mcp_access import McpServer
from handlers.evidence.mcp_stdio import Program
from handlers.strict_json import faults

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
        self._program: Program | None = None
        self._over: list[str] = []
        if not logging.getLogger().isEnabledFor(logging.WARNING):
            logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it prints tracebacks of what is told here in words

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
        except Exception as error:  # a server may answer with anything
            raise McpFailed(f"{self._name} did not list its tools: {self._why(error)}") from None
        return found

    async def call(self, tool: str, arguments: dict[str, Any], within_s: float | None = None) -> CallToolResult:
        """Raises McpFailed where there is no result, also after `within_s` seconds if the setting has more; one that
        says it is an error is a result."""
        seconds = self._server.timeout_s if within_s is None else min(within_s, self._server.timeout_s)
        try:
            async with asyncio.timeout(seconds):
                return await self._called(tool, arguments)
        except TimeoutError:
            raise McpFailed(f"{self._name} did not answer within {seconds:.3g} s") from None

    async def _called(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        client = await self._client()
        holder, program, over = self._holder, self._program, self._over
        self._calls += 1
        try:
            return await client.call_tool(tool, arguments)
        except MCPError as error:
            why = self._why(error)
            if error.code == CONNECTION_CLOSED:
                why = next(iter(over), program.fault if program is not None and program.fault is not None else why)
                if self._holder is holder:
                    await self.close()
            raise McpFailed(f"{self._name}: {why}") from None
        except Exception as error:  # a transport fails in ways of its own; the next call opens it anew
            if self._holder is holder:  # another call may have opened a new one
                await self.close()
            raise McpFailed(f"{self._name} broke off: {self._why(error)}") from None
        finally:
            self._calls -= 1
            self._used.set()

    def _why(self, error: BaseException) -> str:
        told = _words(error)
        fault = self._program.fault if self._program is not None else None
        if fault is None or isinstance(error, ValidationError):
            return told
        return f"{told}; {fault}"

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
            why = f"{self._name} did not open within {OPEN_S:g} s"
            fault = self._program.fault if self._program is not None else None
            raise McpFailed(f"{why}; {fault}" if fault else why) from None

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
                ready.set_exception(McpFailed(f"{self._name} cannot be opened: {self._why(error)}"))

    async def _transport(self, stack: contextlib.AsyncExitStack) -> Any:
        server = self._server
        if server.url is not None:
            over = self._over = list[str]()

            def too_large(error: TooLarge) -> None:
                over.append(f"an answer is longer than {error.limit} bytes; ask for less")

            headers = {name: value.get_secret_value() for name, value in server.headers.items()}
            client = httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity", **headers},  # a packed body would be measured packed
                timeout=server.timeout_s,
                follow_redirects=False,
                event_hooks={"response": [cap(server.max_bytes, too_large)]},
            )
            return streamable_http_client(server.url, http_client=await stack.enter_async_context(client))
        assert server.command is not None
        env = {name: value.get_secret_value() for name, value in server.env.items()}
        self._program = Program(server.command, server.args, env, server.max_bytes)
        return self._program.streams()


def _us() -> Implementation:
    return Implementation(name="verdictlog", version="1")


def _words(error: BaseException) -> str:
    # What goes wrong inside a group of tasks arrives wrapped.
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        inner: Sequence[BaseException] = error.exceptions
        error = inner[0]
    if isinstance(error, ValidationError):
        return f"its answer is not as MCP has it: {faults(error)}"[:600]
    return " ".join((str(error) or type(error).__name__).split())[:600]
