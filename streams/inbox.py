"""One reply subject for all requests of a connection: one reply, or many until the server says the end.

`Client.request` knows only one reply, and a subscription for each read would cost a round trip more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

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
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Msg] = loop.create_future()

        def take(msg: Msg) -> None:
            if not reply.done():
                reply.set_result(msg)

        token = await self._send(subject, payload, headers, take)
        # A bare timer: `asyncio.timeout` costs as much as the stamping of an event does.
        timer = loop.call_later(timeout, _expire, reply, subject, timeout)
        try:
            msg = await reply
        finally:
            timer.cancel()
            del self._waiting[token]
        if not msg.data and (msg.headers or {}).get(STATUS) == "503":
            raise NoReply(subject, "no responder")
        return msg

    async def many(self, subject: str, payload: bytes, timeout: float) -> Replies:
        """All replies up to a status message. NoReply if `timeout` seconds pass without the next one."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[dict[str, str]] = loop.create_future()
        messages: list[Msg] = []
        counted = 0
        timer: asyncio.TimerHandle

        def take(msg: Msg) -> None:
            if ended.done():
                return
            headers = msg.headers or {}
            if not msg.data and STATUS in headers:
                ended.set_result(headers)
            else:
                messages.append(msg)

        def tick() -> None:
            nonlocal counted, timer
            if len(messages) > counted:
                counted = len(messages)
                timer = loop.call_later(timeout, tick)
            else:
                _expire(ended, subject, timeout)

        token = await self._send(subject, payload, None, take)
        timer = loop.call_later(timeout, tick)
        try:
            headers = await ended
        finally:
            timer.cancel()
            del self._waiting[token]
        if headers[STATUS] == "503":
            raise NoReply(subject, "no responder")
        return Replies(messages, headers[STATUS], headers)

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


def _expire(waited: asyncio.Future[Any], subject: str, timeout: float) -> None:
    if not waited.done():
        waited.set_exception(NoReply(subject, f"no reply within {timeout:g} s"))
