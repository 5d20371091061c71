"""The projector: reads the log in order and stores it, batch by batch, until it is stopped or the log is wrong."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol, cast, runtime_checkable

from projections.rows import Row, follow
from projections.store import Placed, Store
from streams.envelope import ZERO_HASH
from streams.epochs import covers
from streams.follower import StreamState
from streams.log import EventLog, LogUnavailable, LogWentBackwards
from streams.session import BrokenChain

HEADS_KEPT = 100_000
IDLE_S = 0.005
LATEST_S = 0.5  # an event waits at most this long for its batch, counted from when it came: lag under a second (bar S8)
DUTY = 4  # pauses this many times a commit's own time, so that small batches take little of the machine
PATIENCE_S = 10.0


class ProjectionBehind(TimeoutError):
    """The read model did not reach a position in time."""

    def __init__(self, wanted: int, at: int) -> None:
        super().__init__(f"the read model is at position {at}, not yet at {wanted}")
        self.wanted = wanted
        self.at = at


class Chains:
    """Checks that each session's events follow one another: `n` by one, `prevhash` the hash before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._heads: OrderedDict[str, tuple[int, str]] = OrderedDict()

    def check(self, placed: Sequence[Placed]) -> None:
        """BrokenChain at the first event that does not follow; the heads move on.

        What was checked before is stored by now: a head that is forgotten here can be found there.
        """
        while len(self._heads) > HEADS_KEPT:
            self._heads.popitem(last=False)
        for event in placed:
            n, hash_ = self._head(event)
            if event.n != n + 1:
                raise BrokenChain(event.session, event.n, f"follows event {n}")
            if event.prevhash != hash_:
                raise BrokenChain(event.session, event.n, "its prevhash is not the hash of the event before it")
            self._heads[event.session] = (event.n, event.hash)
            self._heads.move_to_end(event.session)

    def _head(self, event: Placed) -> tuple[int, str]:
        known = self._heads.get(event.session)
        if known is None and event.n > 1:
            known = self._store.head(event.session)
        return known or (0, ZERO_HASH)


@runtime_checkable
class StatedLog(Protocol):
    """A log that epochs can be dropped from, and that tells of it."""

    async def state(self) -> StreamState:
        """How far it goes, and what was dropped."""
        ...


class Projector:
    """Keeps `store` level with `log`. One task calls `run`; any number may `wait`.

    `patience_s`: how long the log may give no event before it is asked whether it is there; while it answers, it is
    waited for, and `tell` is told so each time.
    """

    def __init__(
        self,
        store: Store,
        log: EventLog,
        batch: int = 1_000,
        duty: float = DUTY,
        patience_s: float = PATIENCE_S,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.store = store
        self.position = store.checkpoint().seq
        self.error: BaseException | None = None
        self._log = log
        self._batch = batch
        self._duty = duty
        self._patience_s = patience_s
        self._tell = tell
        self._chains = Chains(store)
        self._pending: list[Row] = []
        self._since = 0.0  # when the first of them came
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._moved = asyncio.Condition()
        self._waiting = 0

    async def run(self, until: int | None = None, progress: Callable[[int], None] | None = None) -> None:
        """Follow the log, without end or until position `until` is stored. `progress` is told each position reached.

        LogWentBackwards if the log ends before the checkpoint or has another event there, BrokenChain if a
        session's events do not follow one another; what was stored before stays, nothing else is.
        """
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(lambda _: self._arrived.set())
        try:
            while until is None or self.position < until:
                rows = await self._next(reader)
                started = asyncio.get_running_loop().time()
                await _uninterrupted(self._store, rows)
                if progress is not None:
                    progress(rows[-1].seq)
                async with self._moved:
                    self.position = rows[-1].seq
                    self._moved.notify_all()
                await self._pause(asyncio.get_running_loop().time() - started)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            async with self._moved:
                self.error = error
                self._moved.notify_all()
            raise
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def wait(self, seq: int, timeout: float = 5.0) -> None:
        """Return when position `seq` is stored; ProjectionBehind after `timeout` seconds, or what stopped `run`."""
        self._waiting += 1
        self._arrived.set()
        try:
            async with asyncio.timeout(timeout), self._moved:
                await self._moved.wait_for(lambda: self.position >= seq or self.error is not None)
        except TimeoutError as late:
            raise ProjectionBehind(seq, self.position) from late
        finally:
            self._waiting -= 1
        if self.position < seq and self.error is not None:
            raise self.error

    async def _read(self) -> None:
        """Fill `_pending`: at most two batches ahead of the store."""
        checkpoint = await asyncio.to_thread(self.store.checkpoint)
        last = await self._log.last_seq()
        if last < checkpoint.seq:
            raise LogWentBackwards(f"the log ends at position {last}, the read model is at {checkpoint.seq}")
        seen = checkpoint.seq
        async with aclosing(cast("Any", follow(self._log, max(0, seen - 1)))) as batches:
            if seen:
                rows = await self._first(batches, seen)
                if rows[0].seq != seen or rows[0].hash != checkpoint.hash:
                    raise LogWentBackwards(
                        f"the event at position {seen} is not the one the read model has: the log was created anew"
                    )
                seen = self._take(rows, seen)
            async for rows in batches:
                seen = self._take(rows, seen)
                while len(self._pending) >= 2 * self._batch:
                    self._room.clear()
                    await self._room.wait()

    async def _first(self, batches: Any, seen: int) -> list[Row]:
        """The first rows that the log gives, however late: a busy process reads late from a server that is well."""
        coming: asyncio.Task[list[Row]] = asyncio.ensure_future(_following(batches))
        try:
            while not (await asyncio.wait((coming,), timeout=self._patience_s))[0]:
                await self._look(seen)
                if self._tell is not None:
                    self._tell(f"the log answers and has given no event for {self._patience_s:g} s: still waiting")
            return coming.result()
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _look(self, seen: int) -> None:
        """LogUnavailable if the log does not answer, LogWentBackwards if nothing can come from position `seen` on."""
        last = await self._log.last_seq()
        dropped = (await self._log.state()).dropped if isinstance(self._log, StatedLog) else ()
        if last < seen or covers(dropped, seen, last):
            raise LogWentBackwards(f"the log has no event from position {seen} on, where the read model is")

    def _take(self, rows: Sequence[Row], seen: int) -> int:
        for row in rows:
            if row.seq > seen:
                if not self._pending:
                    self._since = asyncio.get_running_loop().time()
                self._pending.append(row)
                seen = row.seq
        if self._pending:
            self._arrived.set()
        return seen

    async def _next(self, reader: asyncio.Task[None]) -> list[Row]:
        """The next batch: full, or what came before the log fell silent for a moment."""
        while not self._pending:
            if reader.done():
                reader.result()
                raise LogUnavailable("the log stopped giving events")
            self._arrived.clear()
            await self._arrived.wait()
        latest = self._since + LATEST_S
        size = 0
        while size < len(self._pending) < self._batch and asyncio.get_running_loop().time() < latest:
            size = len(self._pending)
            await asyncio.sleep(IDLE_S)
        rows, self._pending = self._pending[: self._batch], self._pending[self._batch :]
        self._room.set()
        return rows

    async def _pause(self, took: float) -> None:
        """Let small batches grow, unless somebody waits or there is a full one."""
        latest = asyncio.get_running_loop().time() + self._duty * took
        while not self._waiting and len(self._pending) < self._batch:
            left = (
                min(latest, self._since + LATEST_S) if self._pending else latest
            ) - asyncio.get_running_loop().time()
            if left <= 0:
                return
            self._arrived.clear()
            try:
                async with asyncio.timeout(left):
                    await self._arrived.wait()
            except TimeoutError:
                return

    def _store(self, rows: Sequence[Row]) -> None:
        placed = self.store.stage(rows)
        self._chains.check([event for event in placed if event.part == 0])
        self.store.commit(frozenset(event.type for event in placed))


async def _uninterrupted(store: Callable[[Sequence[Row]], None], rows: Sequence[Row]) -> None:
    """Store in a thread, and do not leave before it has ended: who stops the projector may close the file next."""
    work = asyncio.ensure_future(asyncio.to_thread(store, rows))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.gather(work, return_exceptions=True)
        raise


async def _following(batches: Any) -> list[Row]:
    async for rows in batches:
        found: list[Row] = rows
        return found
    raise LogUnavailable("the log stopped giving events")
