"""FastStream wiring: one batch subscriber per durable (one for all roles and one for the deadline), raw messages, manual acknowledgement, our own dispatchers.

FastStream consumes and nothing more: streams and durables are made by `streams.topology` alone (`declare=False`),
events are appended through the log alone. What its defaults would cost is in infra/decisions/003-faststream.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any

from faststream import AckPolicy
from faststream.nats import JStream, NatsBroker, PullSub
from nats.aio.client import Client
from nats.aio.msg import Msg

from handlers import deadline, flow
from handlers.dispatch import Again, Delivery, Dispatcher, Handle, Park
from handlers.react import Reactor
from handlers.roles import ROLES
from streams import subjects, topology
from streams.envelope import Event
from streams.log import EventLog, LogFull, event_of
from streams.pulls import Feed

LOG = logging.getLogger("verdictlog.app")
BATCH = 256
WATCH_EVERY_S = 5.0
# Sessions are held by the thousand and have no cycles: the collector's own pace cost an eighth of a turn.
COLLECT_AFTER = (20_000, 20, 50)


class JetStreamDelivery:
    """A delivery of the broker's client."""

    __slots__ = ("_msg", "data", "subject")

    def __init__(self, msg: Msg) -> None:
        self._msg = msg
        self.data = msg.data
        self.subject = msg.subject

    @property
    def sequence(self) -> int:
        # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>..., with a domain and an account before them on newer servers
        tokens = self._msg.reply.split(".")
        return int(tokens[5 if len(tokens) == 9 else 7])

    @property
    def deliveries(self) -> int:
        return int(self._msg.metadata.num_delivered or 1)

    async def ack(self) -> None:
        await self._msg.ack()

    async def nak(self, delay_s: float) -> None:
        await self._msg.nak(delay=delay_s)

    async def in_progress(self) -> None:
        await self._msg.in_progress()


class App:
    """Runs roles of this process against one server until stopped."""

    def __init__(
        self,
        client: Client,
        url: str,
        reactor: Reactor,
        log: EventLog,
        now: Callable[[], datetime],
        roles: Iterable[str] = ROLES,
        connect_options: dict[str, Any] | None = None,
        book: Mapping[str, flow.Role] = ROLES,
    ) -> None:
        """`book`: who plays each of `roles`."""
        self._book = book
        self._client = client
        self._reactor = reactor
        self._log = log
        self._now = now
        self._roles = sorted(set(roles))
        self._broker = NatsBroker(url, apply_types=False, logger=None, **(connect_options or {}))
        self._dispatchers: dict[str, Dispatcher] = {}
        self._watch: asyncio.Task[None] | None = None
        self.fault: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        # Who waits for one turn ends by it; who works on goes on trying, because somebody may make room.
        self._full: asyncio.Future[LogFull] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Check what the roles stand on, then consume. Raises Drift or Missing for what is not as it must be."""
        await self._check()
        gc.set_threshold(*COLLECT_AFTER)
        for durable in topology.durables(self._roles):
            self._subscribe(durable)
        await self._broker.start()
        self._watch = asyncio.create_task(self._watch_topology())

    async def stop(self, within_s: float = 10.0) -> None:
        """Stop consuming, let work in hand end within `within_s` seconds, give the rest back."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        for subscriber in self._broker.subscribers:
            await subscriber.stop()
        await asyncio.gather(*(d.drain(within_s) for d in self._dispatchers.values()))
        with contextlib.suppress(Exception):
            await self._broker.stop()

    def watch(self, session: str, on_append: Callable[[Event], None]) -> None:
        """Call `on_append` with each event that this process appends to `session`."""
        self._reactor.watchers[session] = on_append

    def unwatch(self, session: str) -> None:
        self._reactor.watchers.pop(session, None)

    def _subscribe(self, durable: topology.Durable) -> None:
        roles = [self._book[name] for name in durable.roles]
        handle = self._hold if durable is topology.DEADLINE else self._handle(roles)
        dispatcher = Dispatcher(
            durable.name, self._read, self._noticed(handle), self._park(durable.name), topology.ACK_WAIT_S
        )
        self._dispatchers[durable.name] = dispatcher

        async def take(messages: list[Msg]) -> None:
            dispatcher.put([JetStreamDelivery(msg) for msg in messages])

        subscriber = self._broker.subscriber(
            durable=durable.name,
            config=durable.config(),
            stream=JStream(topology.STREAM_NAME, declare=False),
            pull_sub=PullSub(batch_size=BATCH, batch=True),
            decoder=_raw,
            ack_policy=AckPolicy.MANUAL,
            title=durable.name,
        )
        subscriber(take)
        feed = Feed(self._client, topology.STREAM_NAME, durable.name, BATCH)

        async def consume() -> None:
            async with aclosing(feed.batches()) as batches:
                async for messages in batches:
                    await subscriber.consume(messages)

        # As shipped, a batch waits until it is full or its time-out is over: 5 s for a single message.
        subscriber._consume_pull = consume  # type: ignore[method-assign]

    def full_from_now(self) -> asyncio.Future[LogFull]:
        """Done when the log has no room for an event of these roles; what was before does not count."""
        if self._full.done():
            self._full = asyncio.get_running_loop().create_future()
        return self._full

    def _noticed(self, handle: Handle) -> Handle:
        async def noticed(event: Event) -> None:
            try:
                await handle(event)
            except LogFull as error:
                if not self._full.done():
                    self._full.set_result(error)
                raise

        return noticed

    def _handle(self, roles: list[flow.Role]) -> Handle:
        async def handle(event: Event) -> None:
            for role in roles:
                if event.type in role.triggers:
                    await self._reactor.react(role, event)

        return handle

    async def _hold(self, event: Event) -> None:
        state = await self._reactor.load(event)
        if not state.turn(event.turn).open:
            return
        left_s = deadline.remaining(event, self._now())
        if left_s > 0:
            raise Again(left_s)
        await self._reactor.react(self._book[deadline.ROLE], event)

    async def _read(self, delivery: Delivery) -> Event:
        session, n, _ = subjects.parse(delivery.subject)
        known = self._reactor.known(session, n, delivery.sequence)
        if known is not None:
            return known
        return await event_of(self._log, delivery.data, delivery.sequence)

    def _park(self, consumer: str) -> Park:
        async def park(event: Event, error: str, deliveries: int) -> None:
            await self._reactor.park(event, consumer, error, deliveries, self._book["router"])

        return park

    async def _check(self) -> None:
        faults = await topology.check(self._client.jetstream(), self._roles)
        if faults:
            raise faults[0]

    async def _watch_topology(self) -> None:
        # A durable that somebody deletes leaves a pull subscriber alive and deaf.
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            try:
                await self._check()
            except topology.TopologyFault as fault:
                LOG.error("stopping: %s", fault)
                if not self.fault.done():
                    self.fault.set_result(fault)
                return
            except Exception as error:
                LOG.warning("could not check streams and consumers: %s: %s", type(error).__name__, error)


async def _raw(msg: Any) -> Any:
    return msg.raw_message
