"""One measured run in a process of its own: sessions at once, on a nats-server of its own; prints one JSON line.

`python -m tests.bench.turn_load --mode stub|real|bare|disk ...`. CPU is that of this process and of the server, between the
first question and the last answer. `disk` fills a log and looks at its
files. All but `real` need the peers' folder (`--peers`) for its payloads.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import psutil

from handlers.agents.protocol import AgentFailed, AgentReply, Agents, ExecutorBrief, PlanBrief, VerifierBrief
from handlers.agents.scripted import ScriptedAgents
from handlers.app import App
from handlers.case import read_case
from handlers.intake import ask
from handlers.react import Reactor
from handlers.roles import ROLES
from handlers.workshop import TurnWorkshop
from projections.projector import Projector
from projections.store import Store
from streams import topology
from streams.envelope import CONTENT_TYPE, HASH_HEADER, Draft, Event, Head, payload_bytes, stamp
from streams.events import Blob, Payload, QuestionAsked
from streams.jetstream import EXPECTED_SEQUENCE, EXPECTED_SUBJECT, JetStreamLog, connect, disconnect
from streams.server import NatsServer
from streams.subjects import event_subject, session_filter
from tests.bench import stub_roles
from tests.cases import example

WARM_UP = 5
DEADLINE_S = 900.0


def now() -> datetime:
    return datetime.now(UTC)


async def nobody(_ids: frozenset[str], _session: str) -> frozenset[str]:
    return frozenset()


class NoModel:
    """The script leaves nothing out."""

    kind = "offline"

    async def plan(self, brief: PlanBrief) -> AgentReply:
        raise AgentFailed("the script has a plan")

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        raise AgentFailed("the script has an answer")

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        raise AgentFailed("the script has a judgement")


class SlowModel:
    """The script's replies, three of them after `seconds`: the plan, the answer, the judgement. Tools are called at once."""

    kind = "offline"

    def __init__(self, script: dict[str, Any], seconds: float) -> None:
        self._script = ScriptedAgents(script, NoModel())
        self._seconds = seconds

    async def plan(self, brief: PlanBrief) -> AgentReply:
        await asyncio.sleep(self._seconds)
        return await self._script.plan(brief)

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        if brief.replies:
            await asyncio.sleep(self._seconds)
        return await self._script.execute(brief)

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        await asyncio.sleep(self._seconds)
        return await self._script.verify(brief)


class SlowWorkshop(TurnWorkshop):
    """Recorded tools as ever, but the agents are a slow model's."""

    model: SlowModel

    async def agents(self, question: QuestionAsked) -> Agents:
        return self.model


@dataclass
class Run:
    """What was measured: seconds of each session, and of the projection behind each answer."""

    latencies: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    pending: list[tuple[int, float]] = field(default_factory=list)


One = Callable[[int, str], Awaitable[None]]


class Load:
    """The program under measurement, and how one session goes through it."""

    def __init__(self, options: argparse.Namespace, server: NatsServer, folder: Path) -> None:
        self.options = options
        self.server = server
        self.folder = folder
        self.run = Run()

    async def opened(self, stack: AsyncExitStack) -> One:
        client = await connect(self.server.url)
        stack.push_async_callback(disconnect, client)
        await topology.ensure(client.jetstream())
        if self.options.mode == "bare":
            return self._bare(client)
        log = JetStreamLog(client)
        case = read_case(example())
        script = await log.put_blob(orjson.dumps(case.script))
        workshop = SlowWorkshop if self.options.model_s else TurnWorkshop
        shop = workshop(log, {"offline": NoModel}, lambda _sources: {}, nobody)
        if isinstance(shop, SlowWorkshop):
            shop.model = SlowModel(case.script, self.options.model_s)
        book = stub_roles.book(self._outputs()) if self.options.mode == "stub" else ROLES
        app = App(client, self.server.url, Reactor(log, shop, now), log, now, book=book)
        if self.options.project:
            await self._project(log, stack)
        await app.start()
        stack.push_async_callback(app.stop, 2.0)
        return self._asked(app, log, case.question, script if self.options.mode == "real" else None)

    def _asked(self, app: App, log: JetStreamLog, text: str, script: Blob | None) -> One:
        async def one(number: int, tag: str) -> None:
            session = f"e2611-{tag}{number}"
            answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            def seen(event: Event) -> None:
                if event.type == "answer-given" and not answered.done():
                    answered.set_result(event.seq)

            app.watch(session, seen)
            question = text if script else stub_roles.question(number)
            asked = QuestionAsked(question=question, lang="en", script=script, deadline_s=DEADLINE_S)
            await ask(log, session, asked, now())
            seq = await answered
            self.run.pending.append((seq, time.perf_counter()))
            app.unwatch(session)

        return one

    def _outputs(self) -> stub_roles.Output:
        sys.path.insert(0, self.options.peers)
        output: stub_roles.Output = importlib.import_module("common").stub
        return output

    def _bare(self, client: Any) -> One:
        # Bodies are made before the clock starts: what is measured is publishing them and nothing else.
        output, rounds, js = self._outputs(), importlib.import_module("common").scenario, client.jetstream()
        bodies = {
            (tag, i): _bodies(f"e2611-{tag}{i}", i, output, len(rounds(i)))
            for tag, count in (("warm", WARM_UP), ("x", self.options.sessions))
            for i in range(count)
        }

        async def one(number: int, tag: str) -> None:
            seq = 0
            for event in bodies[tag, number]:
                headers = {
                    "Content-Type": CONTENT_TYPE,
                    HASH_HEADER: event.hash,
                    EXPECTED_SEQUENCE: str(seq),
                    EXPECTED_SUBJECT: session_filter(event.session),
                }
                subject = event_subject(event.session, event.n, event.type)
                seq = (await js.publish(subject, event.body, headers=headers, timeout=60)).seq

        return one

    async def _project(self, log: JetStreamLog, stack: AsyncExitStack) -> None:
        store = Store.open(self.folder / "read.duckdb")
        projector = Projector(store, log)
        tasks = [asyncio.ensure_future(projector.run()), asyncio.ensure_future(self._measure_lag(projector))]

        async def ended() -> None:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            store.close()

        stack.push_async_callback(ended)

    async def _measure_lag(self, projector: Projector) -> None:
        while True:
            await asyncio.sleep(0.01)
            there = [given for given in self.run.pending if given[0] <= projector.position]
            if there:
                at = time.perf_counter()
                self.run.lags += [at - answered for _, answered in there]
                self.run.pending = [given for given in self.run.pending if given[0] > projector.position]


def _bodies(session: str, number: int, output: stub_roles.Output, rounds: int) -> list[Event]:
    head, events = Head(), []
    steps: list[tuple[str, Payload]] = [
        ("intake", QuestionAsked(question=stub_roles.question(number), lang="en", deadline_s=DEADLINE_S))
    ]
    steps += [
        (name, stub_roles.payload(name, output(name, number, rnd)))
        for rnd in range(rounds)
        for name in stub_roles.TRIGGERS
    ]
    for actor, payload in steps:
        events.append(stamp(session, head, Draft(payload, actor, 1), now()))
        head = events[-1].head
    return events


async def stored(options: argparse.Namespace, server: NatsServer, folder: Path) -> dict[str, Any]:
    """Bytes on disk of many sessions, per byte of their payloads' JSON. Filled without waiting for acknowledgements,
    which no product code may do: what is measured is what the stream makes of the same bytes."""
    client = await connect(server.url)
    await topology.ensure(client.jetstream(), roles=())
    sys.path.insert(0, options.peers)
    common = importlib.import_module("common")
    log, payloads, count = JetStreamLog(client), 0, 0
    for i in range(options.sessions):
        for event in _bodies(f"e2611-x{i}", i, common.stub, len(common.scenario(i))):
            payloads += len(payload_bytes(event.data))
            count += 1
            subject = event_subject(event.session, event.n, event.type)
            await client.publish(subject, event.body, headers={"Content-Type": CONTENT_TYPE, HASH_HEADER: event.hash})
        if i % 50 == 0:
            await client.flush()
    while await log.last_seq() < count:  # noqa: ASYNC110  the stream tells nobody when it has them
        await asyncio.sleep(0.1)
    await disconnect(client)
    used = _disk_bytes(folder)
    return {
        "sessions": options.sessions,
        "events": count,
        "payload_bytes_per_session": round(payloads / options.sessions),
        "disk_bytes_per_session": round(used / options.sessions),
        "disk_per_payload": round(used / payloads, 3),
    }


def _disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file() and path.suffix != ".log")


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _server_cpu(server: NatsServer) -> float:
    used = psutil.Process(server.pid).cpu_times()
    return float(used.user + used.system)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def measured(options: argparse.Namespace, server: NatsServer, folder: Path) -> dict[str, Any]:
    load = Load(options, server, folder)
    async with AsyncExitStack() as stack:
        one = await load.opened(stack)
        for i in range(WARM_UP):
            await one(i, "warm")
        load.run.lags.clear()
        numbers = iter(range(options.sessions))

        async def worker() -> None:
            for i in numbers:
                began = time.perf_counter()
                await one(i, "x")
                load.run.latencies.append(time.perf_counter() - began)

        own, servers, began = _own_cpu(), _server_cpu(server), time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(options.at_once)))
        took = time.perf_counter() - began
        own, servers = _own_cpu() - own, _server_cpu(server) - servers
        while options.project and load.run.pending:  # noqa: ASYNC110  the projector is only looked at
            await asyncio.sleep(0.01)
    each = 1e3 / options.sessions
    return {
        "mode": options.mode,
        "sessions": options.sessions,
        "at_once": options.at_once,
        "sync": options.sync,
        "sessions_per_s": round(options.sessions / took, 1),
        "p50_ms": round(percentile(load.run.latencies, 0.5) * 1e3, 1),
        "p99_ms": round(percentile(load.run.latencies, 0.99) * 1e3, 1),
        "cpu_ms": round((own + servers) * each, 2),
        "python_cpu_ms": round(own * each, 2),
        "server_cpu_ms": round(servers * each, 2),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "lag_p99_s": round(percentile(load.run.lags, 0.99), 3) if load.run.lags else None,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("stub", "real", "bare", "disk"), required=True)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=100)
    parser.add_argument("--sync", default="always")
    parser.add_argument("--project", action="store_true")
    parser.add_argument("--model-s", type=float, default=0.0)
    parser.add_argument("--peers", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "nats"
        folder.mkdir()
        server = NatsServer(folder, sync=options.sync)
        server.start()
        try:
            work = stored(options, server, folder) if options.mode == "disk" else measured(options, server, Path(name))
            print(json.dumps(asyncio.run(work)), flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
