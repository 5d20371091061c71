"""A model server for tests: real HTTP on a free local port, answering what a test has queued, faults included."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. `cut_after`: bytes of the body after which the connection breaks; `delay_s`: before it."""

    body: Body | bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    cut_after: int | None = None
    delay_s: float = 0.0

    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def completion(
    text: str | list[Any] | None = "",
    finish: str | None = "stop",
    calls: Sequence[Body] = (),
    **message: Any,
) -> Answer:
    """A chat completion as the API documents it; further keys go into the message."""
    said: Body = {"role": "assistant", "content": text, **message}
    if calls:
        said["tool_calls"] = list(calls)
    return Answer(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1773741600,
            "model": "stub-1",
            "choices": [{"index": 0, "message": said, "finish_reason": finish}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
        },
        headers={"x-request-id": "req-7"},
    )


def call(name: str, arguments: Any, call_id: str = "call_0") -> Body:
    """A tool call; arguments that are no text are sent as they are, which some servers do."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def error(status: int, message: str, code: str | None = None, **headers: str) -> Answer:
    """An error in the API's shape."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Answer(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


Queued = Answer | Callable[[Body], Answer]


class StubOpenAI:
    """`async with StubOpenAI(a, b) as stub`: answers a, then b, and b from then on. Keeps every request."""

    def __init__(self, *answers: Queued) -> None:
        self._answers = list(answers)
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []

    async def __aenter__(self) -> StubOpenAI:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._tasks: set[asyncio.Task[None]] = set()
        port = self._server.sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        assert head[0].startswith("POST /v1/chat/completions "), head[0]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        request = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.requests.append(request)
        self.headers.append(headers)
        queued = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        answer = queued if isinstance(queued, Answer) else queued(request)
        await asyncio.sleep(answer.delay_s)
        body = answer.raw()
        lines = [f"HTTP/1.1 {answer.status} Stub", f"content-type: {answer.content_type}", "connection: close"]
        lines += [f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        writer.write(body if answer.cut_after is None else body[: answer.cut_after])
        await writer.drain()
