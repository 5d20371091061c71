"""One reply subject for all requests of a connection: one reply, or many until the server says the end.

`Client.request` knows only one reply, and a subscription for each read would cost a round trip more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

STATUS = "Status"
LATE_S = 0.2  # by which a timer may come late before it says more of this process than of the server
LATE_TIMES = 5


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
        timer = _Timer(reply, subject, timeout)
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

        def take(msg: Msg) -> None:
            if ended.done():
                return
            headers = msg.headers or {}
            if not msg.data and STATUS in headers:
                ended.set_result(headers)
            else:
                messages.append(msg)

        token = await self._send(subject, payload, None, take)
        timer = _Timer(ended, subject, timeout, messages)
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


class _Timer:
    """Ends a wait by NoReply once `timeout` seconds pass without another of `messages`.

    A loop that comes late itself was busy, and has not read what lies there: it waits again, a few times. A bare timer,
    because `asyncio.timeout` costs as much as the stamping of an event does.
    """

    __slots__ = ("_counted", "_due", "_late", "_loop", "_messages", "_subject", "_timeout", "_timer", "_waited")

    def __init__(self, waited: asyncio.Future[Any], subject: str, timeout: float, messages: Sequence[Msg] = ()) -> None:
        self._loop = waited.get_loop()
        self._waited, self._subject, self._timeout, self._messages = waited, subject, timeout, messages
        self._counted = self._late = 0
        self._arm()

    def _arm(self) -> None:
        self._due = self._loop.time() + self._timeout
        self._timer = self._loop.call_later(self._timeout, self._tick)

    def _tick(self) -> None:
        if self._waited.done():
            return
        if len(self._messages) > self._counted:
            self._counted = len(self._messages)
        elif self._loop.time() - self._due > LATE_S and self._late < LATE_TIMES:
            self._late += 1
        else:
            self._waited.set_exception(NoReply(self._subject, f"no reply within {self._timeout:g} s"))
            return
        self._arm()

    def cancel(self) -> None:
        self._timer.cancel()
