"""One reply subject for all requests of a connection: one reply, or many until the server says the end.

`Client.request` knows only one reply, and a subscription for each read would cost a round trip more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from nats.aio.client import Client
from nats.aio.msg import Msg

STATUS = "Status"


class NoReply(Exception):
    """The server did not answer in time, or nobody is there to answer (`why`)."""

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(f"{subject}: {why}")
        self.subject = subject
        self.why = why


@dataclass(frozen=True, slots=True)
class Replies:
    """The messages of a request with many replies, and the status message that ended it."""

    messages: list[Msg]
    status: str
    headers: dict[str, str]


class Inbox:
    """Requests over `client`; the subscription is made with the first of them and lives as long as the client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._prefix = client.new_inbox()
        self._tokens = count(1)
        self._waiting: dict[str, Callable[[Msg], None]] = {}
        self._starting = asyncio.Lock()
        self._started = False

    async def one(self, subject: str, payload: bytes, headers: dict[str, str] | None, timeout: float) -> Msg:
        """The first reply. NoReply if none comes within `timeout` seconds or no responder is there."""
        reply: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

        def take(msg: Msg) -> None:
            if not reply.done():
                reply.set_result(msg)

        token = await self._send(subject, payload, headers, take)
        try:
            async with asyncio.timeout(timeout):
                msg = await reply
        except TimeoutError:
            raise NoReply(subject, f"no reply within {timeout:g} s") from None
        finally:
            del self._waiting[token]
        if not msg.data and (msg.headers or {}).get(STATUS) == "503":
            raise NoReply(subject, "no responder")
        return msg

    async def many(self, subject: str, payload: bytes, timeout: float) -> Replies:
        """All replies up to a status message. NoReply if `timeout` seconds pass without the next one."""
        arrived: asyncio.Queue[Msg] = asyncio.Queue()
        token = await self._send(subject, payload, None, arrived.put_nowait)
        messages: list[Msg] = []
        try:
            while True:
                async with asyncio.timeout(timeout):
                    msg = await arrived.get()
                headers = msg.headers or {}
                if not msg.data and STATUS in headers:
                    if headers[STATUS] == "503":
                        raise NoReply(subject, "no responder")
                    return Replies(messages, headers[STATUS], headers)
                messages.append(msg)
        except TimeoutError:
            raise NoReply(subject, f"no reply within {timeout:g} s") from None
        finally:
            del self._waiting[token]

    async def _send(
        self, subject: str, payload: bytes, headers: dict[str, str] | None, take: Callable[[Msg], None]
    ) -> str:
        if not self._started:
            await self._start()
        token = str(next(self._tokens))
        self._waiting[token] = take
        try:
            await self._client.publish(subject, payload, reply=f"{self._prefix}.{token}", headers=headers)
        except BaseException:
            del self._waiting[token]
            raise
        return token

    async def _start(self) -> None:
        async with self._starting:
            if not self._started:
                # -1: nothing is dropped here; what is in flight is bounded by those who ask.
                await self._client.subscribe(
                    f"{self._prefix}.*", cb=self._take, pending_msgs_limit=-1, pending_bytes_limit=-1
                )
                self._started = True

    async def _take(self, msg: Msg) -> None:
        take = self._waiting.get(msg.subject.rpartition(".")[2])
        if take is not None:
            take(msg)
