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
    """A stream that raises TooLarge once more than `limit` bytes came, and tells `noted` before."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, limit: int, noted: Callable[[TooLarge], None] | None = None
    ) -> None:
        self._noted = noted
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._stream:
            seen += len(chunk)
            if seen > self._limit:
                error = TooLarge(self._limit)
                if self._noted is not None:
                    self._noted(error)
                raise error
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def cap(limit: int, noted: Callable[[TooLarge], None] | None = None) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A response hook: every body of the client, of errors too, is capped before it is read. `noted`: for whoever does
    not see what the client raises."""

    async def hook(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Capped(response.stream, limit, noted)

    return hook
