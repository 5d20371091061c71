"""Deliveries to work: one queue per session, kept alive while they wait, acknowledged when done.

The broker delivers at least once; a role's effects are idempotent. A delivery that fails comes back after a growing
pause, and is parked at our own limit: the server's is unlimited, because reaching it would lose the event silently.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from streams.envelope import BadEnvelope, Event
from streams.log import LogUnavailable
from streams.sealing import NoKey
from streams.upcasts import UnknownEventType

LOG = logging.getLogger("verdictlog.dispatch")
BACKOFF_S = (0.2, 1.0, 5.0, 15.0, 30.0)
PARK_AFTER = 5
UNREADABLE_PAUSE_S = 300.0
INTERRUPTED_PAUSE_S = 0.05
ENDS_WORK = frozenset({"turn-failed", "turn-cancelled"})


class Delivery(Protocol):
    """One delivery of an event, as a broker's client gives it."""

    data: bytes
    subject: str

    @property
    def sequence(self) -> int: ...

    @property
    def deliveries(self) -> int: ...

    async def ack(self) -> None: ...

    async def nak(self, delay_s: float) -> None: ...

    async def in_progress(self) -> None: ...


def _ends_work(delivery: Delivery) -> bool:
    return delivery.subject.rpartition(".")[2] in ENDS_WORK


class Again(Exception):
    """The handler wants the same delivery again after `delay_s` seconds; nothing is wrong."""

    def __init__(self, delay_s: float) -> None:
        super().__init__(delay_s)
        self.delay_s = delay_s


Handle = Callable[[Event], Awaitable[None]]
Park = Callable[[Event, str, int], Awaitable[None]]


class Dispatcher:
    """Feeds deliveries of one consumer to a handler: in order within a session, wide open across sessions."""

    def __init__(
        self,
        consumer: str,
        read: Callable[[Delivery], Awaitable[Event]],
        handle: Handle,
        park: Park,
        ack_wait_s: float,
    ) -> None:
        self.consumer = consumer
        self._read = read
        self._handle = handle
        self._park = park
        self._pulse_s = ack_wait_s / 3
        self._queues: dict[str, deque[Delivery]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._held: set[Delivery] = set()
        self._current: dict[str, Delivery] = {}
        self._interrupted: set[str] = set()
        self._keyless: set[str] = set()
        self._pulse: asyncio.Task[None] | None = None

    def put(self, deliveries: Iterable[Delivery]) -> None:
        """Take deliveries over: from here on they are kept alive until acknowledged."""
        if self._pulse is None:
            self._pulse = asyncio.create_task(self._keep_alive())
        for delivery in deliveries:
            key = delivery.subject.split(".")[1]
            self._held.add(delivery)
            queue = self._queues.get(key)
            if queue is not None:
                queue.append(delivery)
                if _ends_work(delivery) and key in self._current and not _ends_work(self._current[key]):
                    # What is being done for this turn is not wanted any more; its delivery comes back and finds so.
                    self._interrupted.add(key)
                    self._tasks[key].cancel()
                continue
            self._queues[key] = deque((delivery,))
            self._tasks[key] = asyncio.create_task(self._work(key))

    async def drain(self, timeout_s: float) -> None:
        """Let what is in work end, within `timeout_s`; what does not goes back to the broker."""
        tasks = list(self._tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self._pulse is not None:
            self._pulse.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pulse
            self._pulse = None

    async def _work(self, key: str) -> None:
        queue = self._queues[key]
        try:
            while queue:
                delivery = self._current[key] = queue[0]
                try:
                    await self._one(delivery)
                except asyncio.CancelledError:
                    if key not in self._interrupted:
                        raise
                    self._uncancel()
                    await self._return(delivery, INTERRUPTED_PAUSE_S)
                self._interrupted.discard(key)
                del self._current[key]
                queue.popleft()
                self._held.discard(delivery)
        except asyncio.CancelledError:
            for delivery in queue:
                await self._return(delivery, INTERRUPTED_PAUSE_S)
        finally:
            self._held.difference_update(queue)
            self._current.pop(key, None)
            del self._queues[key]
            del self._tasks[key]

    @staticmethod
    def _uncancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()

    async def _one(self, delivery: Delivery) -> None:
        try:
            event = await self._read(delivery)
        except (BadEnvelope, UnknownEventType) as error:
            # It stays in the log and in this consumer: a newer program may know it. Other sessions go on.
            LOG.error("%s: event at %d cannot be read: %s", self.consumer, delivery.sequence, error)
            await self._return(delivery, UNREADABLE_PAUSE_S)
            return
        except LogUnavailable as error:
            await self._failed(delivery, None, error)
            return
        try:
            await self._handle(event)
            await delivery.ack()
        except Again as again:
            await self._return(delivery, again.delay_s)
        except LogUnavailable as error:
            await self._failed(delivery, None, error)
        except NoKey as error:
            await self._left(delivery, error)
        except Exception as error:
            await self._failed(delivery, event, error)

    async def _failed(self, delivery: Delivery, event: Event | None, error: Exception) -> None:
        count = delivery.deliveries
        told = f"{type(error).__name__}: {error}"
        if event is not None and count >= PARK_AFTER:
            LOG.error("%s: gave up on event %s after %d deliveries: %s", self.consumer, event.id, count, told)
            try:
                await self._park(event, told, count)
                await delivery.ack()
            except Exception as second:
                LOG.error("%s: could not park event %s: %s", self.consumer, event.id, second)
                await self._return(delivery, BACKOFF_S[-1])
            return
        pause_s = BACKOFF_S[min(count, len(BACKOFF_S)) - 1]
        LOG.warning(
            "%s: event at %d, delivery %d: %s; again in %g s", self.consumer, delivery.sequence, count, told, pause_s
        )
        await self._return(delivery, pause_s)

    async def _left(self, delivery: Delivery, error: NoKey) -> None:
        # Never parked: a process that has the key may take it up, and without it nothing can be recorded of the session.
        if error.session not in self._keyless:
            self._keyless.add(error.session)
            LOG.error("%s: %s; it is left to a process that has the key", self.consumer, error)
        await self._return(delivery, BACKOFF_S[min(delivery.deliveries, len(BACKOFF_S)) - 1])

    async def _return(self, delivery: Delivery, delay_s: float) -> None:
        # Without the broker there is nobody to tell: it delivers again by itself after its ack_wait.
        with contextlib.suppress(Exception):
            await delivery.nak(delay_s)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._pulse_s)
            for delivery in list(self._held):
                with contextlib.suppress(Exception):
                    await delivery.in_progress()
