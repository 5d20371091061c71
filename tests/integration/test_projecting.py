"""The projector beside the roles: a busy process is not a dead server, and its trouble is not theirs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from handlers.cli.projecting import restarted, sparing
from projections.projector import Projector
from projections.store import Store
from streams.envelope import Event
from streams.log import LogUnavailable, LogWentBackwards
from tests.integration.projection_sessions import ListLog, sample_log

pytestmark = pytest.mark.anyio
PATIENCE_S = 0.05


class LateLog(ListLog):
    """Gives its first event `late_s` seconds after it was asked; answers as long as it is `there`."""

    late_s = 6 * PATIENCE_S
    there = True

    async def last_seq(self) -> int:
        if not self.there:
            raise LogUnavailable("no reply")
        return await super().last_seq()

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        await asyncio.sleep(self.late_s)
        async for event in super().follow(after):
            yield event


@asynccontextmanager
async def half_projected(events: list[Event]) -> AsyncIterator[Store]:
    store = Store.open(Path(":memory:"))
    await Projector(store, ListLog(events), batch=5, duty=0).run(until=5)
    yield store
    store.close()


async def test_a_log_that_answers_is_waited_for_however_late_its_events_come() -> None:
    events = sample_log()
    told: list[str] = []
    async with half_projected(events) as store:
        late = Projector(store, LateLog(events), duty=0, patience_s=PATIENCE_S, tell=told.append)
        await late.run(until=len(events))
        assert store.checkpoint().seq == len(events)
    assert "the log answers and has given no event for 0.05 s" in told[0]


async def test_a_log_that_does_not_answer_ends_the_projector() -> None:
    events = sample_log()

    class Gone(LateLog):
        async def follow(self, after: int = 0) -> AsyncIterator[Event]:
            self.there = False
            async for event in super().follow(after):
                yield event

    async with half_projected(events) as store:
        with pytest.raises(LogUnavailable, match="no reply"):
            await Projector(store, Gone(events), duty=0, patience_s=PATIENCE_S).run(until=len(events))


async def test_a_log_that_lost_what_the_read_model_has_is_not_waited_for() -> None:
    events = sample_log()

    class Shorter(LateLog):
        late_s = 60.0

        async def follow(self, after: int = 0) -> AsyncIterator[Event]:
            del self.events[2:]
            async for event in super().follow(after):
                yield event

    async with half_projected(events) as store:
        with pytest.raises(LogWentBackwards, match="from position 5 on"):
            await Projector(store, Shorter(events), duty=0, patience_s=PATIENCE_S).run(until=len(events))


async def test_a_projector_that_fails_is_started_again_after_a_pause_that_grows() -> None:
    began: list[float] = []
    told: list[str] = []
    done = asyncio.Event()

    async def project() -> None:
        began.append(time.monotonic())
        if len(began) == 4:
            done.set()
            await asyncio.Event().wait()
        raise LogWentBackwards("the disk of the read model is full")

    work = asyncio.ensure_future(restarted(project, ListLog(sample_log()), told.append, (0.02, 0.08), 0.05))
    async with asyncio.timeout(20):
        await done.wait()
    assert not work.done()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    pauses = [after - before for before, after in pairwise(began)]
    assert all(pause >= least for pause, least in zip(pauses, (0.02, 0.04, 0.08), strict=True))
    assert "started again in 0.02 s, the roles work on: the disk of the read model is full" in told[0]


async def test_only_a_server_that_stays_silent_ends_it() -> None:
    log = LateLog(sample_log())
    runs = 0

    async def project() -> None:
        nonlocal runs
        runs += 1
        log.there = False
        if runs == 1:
            asyncio.get_running_loop().call_later(0.1, setattr, log, "there", True)
        raise LogUnavailable("the log stopped giving events")

    with pytest.raises(LogUnavailable, match="no reply"):
        await restarted(project, log, lambda _: None, (0.01, 0.01), 1.2)
    assert runs == 2


def test_a_line_is_said_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    often, seldom = sparing(0.0), sparing(60.0)
    for _ in range(3):
        often("a")
        seldom("b")
    assert capsys.readouterr().err.split("\n") == [
        "verdictlog: a",
        "verdictlog: b",
        "verdictlog: a",
        "verdictlog: a",
        "",
    ]
