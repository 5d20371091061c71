"""A response body that is never held in memory beyond a bound, whatever length the server claims or leaves out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2


class TooLarge(Exception):
    """The body is longer than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the reply is longer than {limit} bytes")
        self.limit = limit


class Capped(httpx2.AsyncByteStream):
    """A stream that raises TooLarge once more than `limit` bytes came."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._stream:
            seen += len(chunk)
            if seen > self._limit:
                raise TooLarge(self._limit)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def cap(limit: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A response hook: every body of the client, of errors too, is capped before it is read."""

    async def hook(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Capped(response.stream, limit)

    return hook
