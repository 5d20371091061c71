"""The stream read from a position on, in order, without end: over reconnects, and never past a gap."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from streams.directget import Stored
from streams.epochs import Dropped, covers, dropped_of
from streams.inbox import STATUS, Inbox, NoReply
from streams.log import LogUnavailable, LogWentBackwards
from streams.pulls import EXPIRES_S, TICK_S, Pulls, nanoseconds

BATCH = 500  # messages of one pull; two pulls overlap, so that the server never waits for us
API_TIMEOUT_S = 1.0  # a request that was on its way when the server died is not answered: ask again soon


class StreamState(NamedTuple):
    """How far a stream goes, which one it is, how much is in it, and which epochs were taken out of it."""

    last_seq: int
    created: str
    messages: int
    dropped: tuple[Dropped, ...]

    @property
    def complete(self) -> bool:
        """Whether exactly the noted messages are missing."""
        return self.messages + sum(one.messages for one in self.dropped) == self.last_seq


async def stream_state(inbox: Inbox, stream: str, timeout: float = API_TIMEOUT_S) -> StreamState:
    """Ask the server; LogUnavailable if it does not answer or has no such stream."""
    info = await api(inbox, f"$JS.API.STREAM.INFO.{stream}", b"", timeout)
    state, dropped = info["state"], dropped_of(info["config"].get("metadata"))
    return StreamState(int(state["last_seq"]), str(info["created"]), int(state["messages"]), dropped)


async def api(inbox: Inbox, subject: str, payload: bytes, timeout: float) -> dict[str, Any]:
    """One request to JetStream itself; LogUnavailable if it does not answer, or refuses."""
    try:
        answer: dict[str, Any] = orjson.loads((await inbox.one(subject, payload, None, timeout)).data)
    except NoReply as error:
        raise LogUnavailable(str(error)) from error
    if "error" in answer:
        raise LogUnavailable(f"{subject}: {answer['error'].get('description', answer['error'])}")
    return answer


class Follower:
    """A walk over `stream` from behind position `after`, by overlapping pulls of an ephemeral consumer.

    What it holds is bounded by two pulls: the next is asked for when the reader has taken what came.
    """

    def __init__(self, client: Client, inbox: Inbox, stream: str, after: int, patience_s: float) -> None:
        self._patience_s = patience_s
        self._client = client
        self._inbox = inbox
        self._stream = stream
        self._seen = after
        self._created = ""
        self._dropped: tuple[Dropped, ...] = ()
        self._pulls = Pulls(client, stream, BATCH)
        self._delivered = 0
        self._lost_track = False
        self._buffer: list[Stored] = []
        self._arrived = asyncio.Event()

    async def batches(self) -> AsyncGenerator[list[Stored], None]:
        """Messages as they come, in lists. LogWentBackwards if the log ends before what was seen, has a gap, or
        is another one; LogUnavailable if it cannot be reached at the start for `patience_s` seconds (later it waits
        for the server without end) or the client was closed."""
        replies = self._client.new_inbox()
        subscription = await self._client.subscribe(
            replies, cb=self._take, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        try:
            await self._open_until(asyncio.get_running_loop().time() + self._patience_s)
            while True:
                await self._pulls.ask(replies)
                await self._wait()
                batch, self._buffer = self._buffer, []
                whole = self._whole(batch)
                if whole:
                    yield batch[:whole]
                if whole < len(batch):
                    raise LogWentBackwards(f"{self._stream} has no event at position {self._seen + 1}: there is a gap")
                if self._lost_track or self._pulls.gone_silent():
                    await self._open_until(math.inf)
        finally:
            if not self._client.is_closed:
                await subscription.unsubscribe()
                # Without waiting for the answer: the server drops an unused consumer by itself as well.
                await self._client.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._pulls.consumer}")

    async def _open(self) -> None:
        state = await stream_state(self._inbox, self._stream)
        if self._created not in {"", state.created}:
            raise LogWentBackwards(f"{self._stream} was created anew at {state.created}")
        if state.last_seq < self._seen:
            raise LogWentBackwards(f"{self._stream} ends at position {state.last_seq}, {self._seen} was seen before")
        self._created = state.created
        self._dropped = state.dropped if state.complete else ()
        self._pulls.begin(self._client.new_inbox().rpartition(".")[2])
        self._buffer, self._delivered, self._lost_track = [], 0, False
        config = {
            "name": self._pulls.consumer,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._seen + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": nanoseconds(2 * EXPIRES_S),
        }
        request = orjson.dumps({"stream_name": self._stream, "config": config})
        await api(self._inbox, f"$JS.API.CONSUMER.CREATE.{self._stream}.{self._pulls.consumer}", request, API_TIMEOUT_S)

    async def _open_until(self, end: float) -> None:
        while True:
            try:
                return await self._open()
            except (LogUnavailable, NatsError) as error:
                if self._client.is_closed or asyncio.get_running_loop().time() >= end:
                    raise LogUnavailable(str(error)) from error
                await asyncio.sleep(TICK_S)

    async def _wait(self) -> None:
        if not self._buffer and not self._lost_track:
            self._arrived.clear()
            try:
                async with asyncio.timeout(TICK_S):
                    await self._arrived.wait()
            except TimeoutError:
                return

    async def _take(self, msg: Msg) -> None:
        self._pulls.heard()
        headers = msg.headers or {}
        if not msg.data and STATUS in headers:
            # Also what went on: the end of a request is when to ask again.
            self._lost_track = self._lost_track or not self._pulls.went_on(headers)
            self._arrived.set()
            return
        tokens = msg.reply.split(".")
        consumer, sequences = (tokens[3], tokens[5:7]) if len(tokens) == 9 else (tokens[5], tokens[7:9])
        if consumer != self._pulls.consumer or self._lost_track:
            return
        self._delivered += 1
        if int(sequences[1]) != self._delivered:
            self._lost_track = True  # something was dropped on the way: ask for it again
        else:
            self._pulls.arrived()
            self._buffer.append(Stored(int(sequences[0]), msg.subject, msg.data, headers))
        self._arrived.set()

    def _whole(self, batch: list[Stored]) -> int:
        """How many messages of `batch` follow one another: without a gap, or over one that a dropped epoch left."""
        for i, message in enumerate(batch):
            if message.seq != self._seen + 1 and not covers(self._dropped, self._seen + 1, message.seq - 1):
                return i
            self._seen = message.seq
        return len(batch)
