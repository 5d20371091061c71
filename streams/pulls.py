"""Pull requests that the server keeps open on one consumer: messages come as they are stored, without asking for each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from typing import Any

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from streams.inbox import STATUS

BATCH_BYTES = 16 * 1024 * 1024
HEARTBEAT_S = 1.0
TICK_S = 0.25
EXPIRES_S = 30.0


class Pulls:
    """How many messages are asked for, and whether the server still answers.

    Two requests of `batch` messages overlap, so that the server never waits for us.
    """

    def __init__(self, client: Client, stream: str, batch: int) -> None:
        self.consumer = ""
        self._client = client
        self._stream = stream
        self._batch = batch
        self._asked = 0
        self._reconnects = 0
        self._silent_since = math.inf

    def begin(self, consumer: str) -> None:
        """Start anew on `consumer`: nothing is asked for yet."""
        self.consumer = consumer
        self._asked = 0
        self._reconnects = self._client.stats["reconnects"]
        self._silent_since = asyncio.get_running_loop().time()

    async def ask(self, replies: str) -> None:
        """Send requests until enough is asked for; messages and statuses come to `replies`."""
        while self._asked <= self._batch:
            self._asked += self._batch
            pull: dict[str, Any] = {
                "batch": self._batch,
                "max_bytes": BATCH_BYTES,
                "expires": nanoseconds(EXPIRES_S),
                "idle_heartbeat": nanoseconds(HEARTBEAT_S),
            }
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self.consumer}"
            await self._client.publish(subject, orjson.dumps(pull), reply=replies)

    def arrived(self) -> None:
        """One of the messages asked for has come."""
        self._took(1)

    def heard(self) -> None:
        """Something came: the server is there."""
        self._silent_since = asyncio.get_running_loop().time()

    def went_on(self, headers: dict[str, str]) -> bool:
        """Whether a status leaves the consumer as it was: a heartbeat, or a request that ended in time."""
        status = headers[STATUS]
        if status == "100":
            return True
        if status in {"408", "409"} and "Nats-Pending-Messages" in headers:
            self._took(int(headers["Nats-Pending-Messages"]))
            return True
        return False

    def _took(self, count: int) -> None:
        # Requests from before `begin` may still be open on the server, and their ends come here as well.
        self._asked = max(0, self._asked - count)

    def gone_silent(self) -> bool:
        """Whether what was asked for is lost: the connection is another one, or no heartbeat comes."""
        silence = asyncio.get_running_loop().time() - self._silent_since
        return self._client.stats["reconnects"] != self._reconnects or silence > 3 * HEARTBEAT_S


class Feed:
    """What a durable consumer delivers, in lists, without end: over reconnects and restarts of the server."""

    def __init__(self, client: Client, stream: str, durable: str, batch: int) -> None:
        self._client = client
        self._durable = durable
        self._pulls = Pulls(client, stream, batch)
        self._buffer: list[Msg] = []
        self._arrived = asyncio.Event()
        self._refused = False

    async def batches(self) -> AsyncGenerator[list[Msg], None]:
        """All that has come since the last list. A durable that is gone gives nothing: who owns it must look."""
        replies = self._client.new_inbox()
        subscription = await self._client.subscribe(
            replies, cb=self._take, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        self._pulls.begin(self._durable)
        try:
            while not self._client.is_closed:
                if self._client.is_connected:
                    await self._pulls.ask(replies)
                await self._wait()
                batch, self._buffer = self._buffer, []
                if batch:
                    yield batch
                if self._refused:
                    await asyncio.sleep(TICK_S)
                if self._refused or self._pulls.gone_silent():
                    self._refused = False
                    self._pulls.begin(self._durable)
        finally:
            if not self._client.is_closed:
                await subscription.unsubscribe()

    async def _wait(self) -> None:
        if self._buffer or self._refused:
            return
        self._arrived.clear()
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._arrived.wait()
        except TimeoutError:
            return

    async def _take(self, msg: Msg) -> None:
        self._pulls.heard()
        headers = msg.headers
        if headers and not msg.data and STATUS in headers:
            if self._pulls.went_on(headers):
                return
            self._refused = True
        else:
            self._pulls.arrived()
            self._buffer.append(msg)
        self._arrived.set()


def nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
