"""Requests to `verdictlog mcp` on stdin: each gets a reply, also one that the library cannot read and says nothing to."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from handlers.cli.main import one_line
from handlers.strict_json import complaint

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import WriteStream

SHOWN = 300


async def serve(server: MCPServer) -> None:
    """Serve on stdin and stdout until stdin ends."""
    loop = asyncio.get_running_loop()
    replies: asyncio.Future[WriteStream[SessionMessage]] = loop.create_future()
    given = TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
    try:
        stdin = cast("anyio.AsyncFile[str]", _readable(cast("AsyncIterator[str]", anyio.wrap_file(given)), replies))
        async with stdio_server(stdin) as (requests, answers):
            replies.set_result(answers)
            low = server._lowlevel_server  # its own runner takes no other stdin
            await low.run(requests, answers, low.create_initialization_options())
    finally:
        given.detach()


async def _readable(
    lines: AsyncIterator[str], replies: asyncio.Future[WriteStream[SessionMessage]]
) -> AsyncIterator[str]:
    async for line in lines:
        try:
            await asyncio.to_thread(jsonrpc_message_adapter.validate_json, line, by_name=False)
        except ValidationError as error:
            reply = await asyncio.to_thread(reply_to, line, error)
            if reply is not None:
                await (await replies).send(SessionMessage(reply))
        else:
            yield line


def reply_to(line: str, error: ValidationError) -> JSONRPCMessage | None:
    """What answers a line that is no message: a call's error result, or an error of the protocol; None where nobody
    waits for an answer."""
    if not line.strip():
        return None
    first = error.errors(include_url=False, include_input=False)[0]
    why = one_line(f"the request cannot be read: {complaint(first)}")[:SHOWN]
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, why)
    if first["type"] == "json_invalid":
        why = f"{why}: half of a character, such as \\ud800 by itself, belongs into no text"
    if not isinstance(said, dict):
        return _error(None, INVALID_REQUEST, "the request is no JSON object: send each request by itself")
    if "id" not in said or "result" in said or "error" in said:
        return None if "method" in said or "id" in said else _error(None, INVALID_REQUEST, why)
    number = said["id"]
    known = number if isinstance(number, str | int) and not isinstance(number, bool) and _utf8(number) else None
    if said.get("method") == "tools/call" and known is not None:
        result: dict[str, Any] = {"content": [{"type": "text", "text": why}], "isError": True}
        return JSONRPCResponse(jsonrpc="2.0", id=known, result=result)
    return _error(known, INVALID_REQUEST, why)


def _error(number: str | int | None, code: int, why: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=why))


def _utf8(value: object) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True
