"""S6, S7, S10: rebuild against fetch and raw insert, one session as of an event, verdict counts per day.

`run(events)` takes how many events the large log has (the bars speak of 1,000,000); S10 always has 100,000 sessions.
The log is a real one, on a nats-server of our own. Its events are published without waiting for acknowledgements,
which no product code may do, because filling it would otherwise take longer than all that is measured.
"""

from __future__ import annotations

import asyncio
import hashlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from projections.asof import Moment, state_at
from projections.catalog import questions
from projections.rebuild import BATCH, rebuild
from projections.sessions import session_at
from projections.store import Store, connect
from streams.envelope import HASH_HEADER, ZERO_HASH
from streams.jetstream import JetStreamLog, disconnect
from streams.jetstream import connect as connect_log
from streams.server import NatsServer
from streams.subjects import event_subject
from streams.topology import ensure
from tests.integration.projection_sessions import passed, recorded

S6_BAR, S6_MEMORY_MB = 0.5, 600
S7_LOG_MS, S7_MODEL_MS, S7_RATIO, S7_SMALL, S7_ASKED = 20.0, 5.0, 1.5, 10_000, 60
S10_BAR_S, S10_SESSIONS = 0.2, 100_000
TEMPLATE = "e2611-00000000"
TURN = len(passed().drafts)


def bodies(count: int) -> Iterator[tuple[str, int, str, bytes, str]]:
    """`count` events as (session, n, type, body, hash): one recorded turn again and again, each session chained."""
    chain = recorded(TEMPLATE, passed().drafts)
    made, i = 0, 0
    while made < count:
        session, before = f"e2611-{i:08x}", ZERO_HASH
        for event in chain[: count - made]:
            body = event.body.replace(TEMPLATE.encode(), session.encode())
            body = body.replace(b'"prevhash":"' + event.prevhash.encode(), b'"prevhash":"' + before.encode())
            before = hashlib.sha256(body).hexdigest()
            yield session, event.n, event.type, body, before
        made += len(chain)
        i += 1


class PeakMemory:
    """The largest resident size of this process while the block runs, in MB."""

    def __enter__(self) -> PeakMemory:
        self.mb = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._ended.wait(0.05):
            self.mb = max(self.mb, process.memory_info().rss / 1e6)


async def fill(client: Any, start: int, count: int) -> None:
    """Publish the events `start` to `count` and wait until the stream has them."""
    for i, (session, n, kind, body, hash_) in enumerate(bodies(count)):
        if i < start:
            continue
        await client.publish(event_subject(session, n, kind), body, headers={HASH_HEADER: hash_})
        if i % 500 == 0:
            await client.flush()
    await client.flush()
    log = JetStreamLog(client)
    async with asyncio.timeout(60):
        while await log.last_seq() < count:  # noqa: ASYNC110  the stream tells nobody when it has them
            await asyncio.sleep(0.1)


async def fetch_and_insert(log: JetStreamLog, path: Path, count: int) -> float:
    """Seconds for the limit of S6: everything fetched and its raw bytes stored, batch by batch, nothing else."""
    connection = connect(path)
    connection.execute("CREATE TABLE raw (seq BIGINT, body VARCHAR)")

    def insert(batch: list[Any]) -> None:
        rows = [[m.seq for m in batch], [m.body.decode() for m in batch]]
        connection.execute("INSERT INTO raw SELECT unnest($1::BIGINT[]), unnest($2::VARCHAR[])", rows)

    connection.execute("BEGIN TRANSACTION")  # as the rebuild does: one transaction is the faster way
    began = time.perf_counter()
    pending: list[Any] = []
    work: asyncio.Future[None] | None = None
    stream = log.stored()
    async for messages in stream:
        pending += messages
        ended = messages[-1].seq >= count
        if len(pending) >= BATCH or ended:
            if work is not None:
                await work
            work = asyncio.ensure_future(asyncio.to_thread(insert, pending))
            pending = []
        if ended:
            break
    await stream.aclose()
    if work is not None:
        await work
    connection.execute("COMMIT")
    connection.execute("CHECKPOINT")
    took = time.perf_counter() - began
    connection.close()
    return took


async def s6(log: JetStreamLog, folder: Path, count: int) -> list[dict[str, Any]]:
    """The limit is measured before and after, because the machine is not the same all the time."""
    limits = [await fetch_and_insert(log, folder / "before.duckdb", count)]
    with PeakMemory() as peak:
        began, cpu = time.perf_counter(), time.process_time()
        await rebuild(folder / "read.duckdb", log)
        ours, cpu = time.perf_counter() - began, time.process_time() - cpu
    limits.append(await fetch_and_insert(log, folder / "after.duckdb", count))
    raw = statistics.mean(limits)
    ratio = raw / ours
    return [
        {
            "name": f"S6 rebuild of {count:,} events, against fetch and raw insert",
            "value": round(ratio, 3),
            "bar": S6_BAR,
            "ok": ratio >= S6_BAR,
            "events_per_s": round(count / ours),
            "raw_events_per_s": [round(count / seconds) for seconds in limits],
            "cpu_us_per_event": round(cpu / count * 1e6, 1),
        },
        {
            "name": "S6 memory of the rebuilding process, MB",
            "value": round(peak.mb),
            "bar": S6_MEMORY_MB,
            "ok": peak.mb < S6_MEMORY_MB,
        },
    ]


def _median_ms(work: Callable[[int], object], times: int = 31) -> float:
    taken = []
    for i in range(times):
        began = time.perf_counter()
        work(i)
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


def from_models(small: Path, large: Path, count: int) -> tuple[float, float]:
    """Median milliseconds of one session as of its tenth event, spread over the log: in a small one and in a large one.

    The two are asked in turn, each session once, so that neither has the better minute of the machine.
    """
    asked = [(Store.open(small), S7_SMALL), (Store.open(large), count)]
    taken: tuple[list[float], list[float]] = ([], [])
    try:
        for i in range(S7_ASKED):
            for (store, events), times in zip(asked, taken, strict=True):
                session = f"e2611-{i * max(1, events // TURN // S7_ASKED):08x}"
                began = time.perf_counter()
                session_at(store.connection, session, Moment(n=10))
                times.append((time.perf_counter() - began) * 1e3)
    finally:
        for store, _ in asked:
            store.close()
    return statistics.median(taken[0]), statistics.median(taken[1])


async def from_log(url: str, count: int) -> float:
    """The same from the log: every read on a client of its own, nothing cached."""
    spread, taken = max(1, count // TURN // 40), []
    for i in range(15):
        client = await connect_log(url)
        log, session = JetStreamLog(client), f"e2611-{i * spread:08x}"
        began = time.perf_counter()
        state_at(session, await log.read(session), Moment(n=10))
        taken.append((time.perf_counter() - began) * 1e3)
        await disconnect(client)
    return statistics.median(taken)


def s10() -> dict[str, Any]:
    """The documented question `verdicts_by_day` over 100,000 sessions of 30 days."""
    store = Store.open(Path(":memory:"))
    con = store.connection
    place = "i AS seq, 'e2611-' || i AS session, 14 AS n, 1 AS turn, 1 AS round, 0 AS attempt, TIMESTAMP '2026-11-01' + (i % 30) * INTERVAL 1 DAY AS time"
    con.execute(
        f"INSERT INTO routes BY NAME SELECT {place}, ['PASS', 'LOW_CONFID', 'REJECT'][i % 3 + 1] AS effective_verdict, "
        f"0.5 AS groundedness_score, 'answer' AS route FROM range({S10_SESSIONS}) t(i)"
    )
    con.execute(
        f"INSERT INTO answers BY NAME SELECT {place}, 'answer' AS kind, 'x' AS text FROM range({S10_SESSIONS}) t(i)"
    )
    con.execute(
        f"INSERT INTO interruptions BY NAME SELECT {place}, 'deadline' AS reason FROM range(0, {S10_SESSIONS}, 100) t(i)"
    )
    sql = next(q.sql for q in questions() if q.name == "verdicts_by_day")
    assert sum(row[2] for row in con.execute(sql).fetchall()) == S10_SESSIONS * 99 // 100
    seconds = _median_ms(lambda _: con.execute(sql).fetchall(), 9) / 1e3
    store.close()
    return {
        "name": f"S10 verdict counts per day, {S10_SESSIONS:,} sessions, s",
        "value": round(seconds, 4),
        "bar": S10_BAR_S,
        "ok": seconds < S10_BAR_S,
    }


async def _run(count: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nats").mkdir()
        server = NatsServer(folder / "nats", sync="2m")
        server.start()
        client = await connect_log(server.url)
        try:
            await ensure(client.jetstream(), roles=())
            await fill(client, 0, S7_SMALL)
            log = JetStreamLog(client)
            await rebuild(folder / "small.duckdb", log)
            await fill(client, S7_SMALL, count)
            rows = await s6(log, folder, count)
            read = await from_log(server.url, count)
            small, large = from_models(folder / "small.duckdb", folder / "read.duckdb", count)
        finally:
            await disconnect(client)
            server.stop()
    return [
        *rows,
        {
            "name": f"S7 session as of an event, from the log at {count:,} events, ms",
            "value": round(read, 2),
            "bar": S7_LOG_MS,
            "ok": read < S7_LOG_MS,
        },
        {
            "name": f"S7 the same from the read model, ms ({S7_SMALL:,} events: {small:.2f})",
            "value": round(large, 2),
            "bar": S7_MODEL_MS,
            "ok": large < S7_MODEL_MS,
        },
        {
            "name": "S7 read model, large against small, asked in turn",
            "value": round(large / small, 2),
            "bar": S7_RATIO,
            "ok": large <= S7_RATIO * small,
        },
        s10(),
    ]


def run(events: int = 50_000) -> dict[str, Any]:
    """`{"name", "rows": [{name, value, bar, ok}]}`; `events` is the size of the large log, at least 10,000."""
    return {"name": "S6 S7 S10 read model", "rows": asyncio.run(_run(max(events, S7_SMALL)))}


def main() -> None:
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)["rows"]:
        print(f"{'ok  ' if row['ok'] else 'MISS'} {row}")


if __name__ == "__main__":
    main()
