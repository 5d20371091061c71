"""Roles at work on a real server: every question is answered once, whatever a role, a message or an operator does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from handlers.agents.offline import OfflineAgents
from handlers.agents.protocol import AgentFailed, AgentReply, Agents, ExecutorBrief, PlanBrief, VerifierBrief
from handlers.app import App
from handlers.case import read_case
from handlers.intake import ask
from handlers.react import Reactor
from handlers.report import turn_report
from handlers.roles import ROLES
from handlers.workshop import TurnWorkshop
from streams import topology
from streams.chain import verify
from streams.envelope import Draft
from streams.events import HandlerParked, QuestionAsked, TurnCancelled
from streams.jetstream import JetStreamLog, connect
from streams.keys import FileKeys
from streams.server import NatsServer
from streams.session import SessionState, fold
from tests.cases import example

pytestmark = pytest.mark.anyio


class Unused:
    """Agents for scripts that leave nothing out."""

    kind = "offline"

    async def plan(self, brief: PlanBrief) -> AgentReply:
        raise AgentFailed("the script has a plan")

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        raise AgentFailed("the script has an answer")

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        raise AgentFailed("the script has a judgement")


class Hanging(Unused):
    """A model that never replies."""

    async def plan(self, brief: PlanBrief) -> AgentReply:
        await asyncio.sleep(3600)
        raise AssertionError


class Broken(Unused):
    """Code of ours that raises: no agent's failure, a fault of the handler."""

    async def plan(self, brief: PlanBrief) -> AgentReply:
        raise ZeroDivisionError("a bug")


def now() -> datetime:
    return datetime.now(UTC)


async def nobody(ids: frozenset[str], session: str) -> frozenset[str]:
    return frozenset()


@asynccontextmanager
async def running(
    server: NatsServer, agents: Callable[[], Agents] = Unused, keys: FileKeys | None = None
) -> AsyncIterator[tuple[JetStreamLog, App]]:
    client = await connect(server.url)
    await topology.ensure(client.jetstream())
    log = JetStreamLog(client, keys=keys)
    workshop = TurnWorkshop(log, {"offline": agents}, lambda sources: {}, nobody)
    app = App(client, server.url, Reactor(log, workshop, now), log, now)
    await app.start()
    try:
        yield log, app
    finally:
        await app.stop(2.0)
        await client.close()


async def scripted(log: JetStreamLog, **changes: Any) -> QuestionAsked:
    case = read_case(example())
    blob = await log.put_blob(orjson.dumps(case.script))
    return QuestionAsked(question=case.question, lang=case.lang, script=blob, **changes)


async def answered(log: JetStreamLog, session: str, within_s: float = 20.0) -> SessionState:
    async with asyncio.timeout(within_s):
        while True:
            events = await log.read(session)
            state = fold(session, events)
            if state.turns and not state.turns[-1].open:
                assert verify(events) is None
                return state
            await asyncio.sleep(0.02)


async def test_a_turn_runs_to_its_answer(fresh_server: NatsServer) -> None:
    async with running(fresh_server) as (log, _):
        await ask(log, "e2611-one", await scripted(log), now())
        state = await answered(log, "e2611-one")
    assert turn_report(state, state.turns[-1])["effective_verdict"] == "PASS"


@pytest.mark.scenario("ROU-8")
async def test_two_processes_racing_give_one_answer(fresh_server: NatsServer) -> None:
    async with running(fresh_server) as (log, _), running(fresh_server):
        sessions = [f"e2611-race{k}" for k in range(12)]
        for session in sessions:
            await ask(log, session, await scripted(log), now())
        for session in sessions:
            state = await answered(log, session)
            kinds = [event.type for event in state.events]
            assert kinds.count("answer-given") == 1
            assert len(kinds) == len({event.id for event in state.events})


async def test_a_model_that_hangs_ends_at_the_deadline(fresh_server: NatsServer) -> None:
    async with running(fresh_server, Hanging) as (log, _):
        await ask(log, "e2611-slow", QuestionAsked(question="Why?", lang="en", deadline_s=0.5), now())
        state = await answered(log, "e2611-slow")
    turn = state.turns[-1]
    assert turn.answer is not None
    assert (turn.answer.kind, turn.answer.fallback_reason) == ("degraded", "deadline")
    assert turn.rounds[-1].routed is not None
    assert turn.rounds[-1].routed.route == "degraded"


async def test_a_cancelled_turn_ends_at_once_also_in_the_middle_of_a_model_call(fresh_server: NatsServer) -> None:
    async with running(fresh_server, Hanging) as (log, _):
        state = await ask(log, "e2611-stop", QuestionAsked(question="Why?", lang="en", deadline_s=60), now())
        await asyncio.sleep(0.3)
        await log.append("e2611-stop", [Draft(TurnCancelled(who="on-call"), "intake", 1)], state.head, now())
        state = await answered(log, "e2611-stop", 5)
    assert state.turns[-1].answer is not None
    assert state.turns[-1].answer.fallback_reason == "cancelled"


async def test_a_question_delivered_again_after_its_turn_has_ended_elsewhere_leads_to_nothing(
    fresh_server: NatsServer,
) -> None:
    """A process that ends before its acknowledgement is through: the next one knows the session by its question alone."""
    async with running(fresh_server, Hanging) as (log, _):
        state = await ask(log, "e2611-again", QuestionAsked(question="Why?", lang="en", deadline_s=60), now())
        await log.append("e2611-again", [Draft(TurnCancelled(who="on-call"), "intake", 1)], state.head, now())
        ended = await answered(log, "e2611-again")
        fresh = Reactor(log, TurnWorkshop(log, {"offline": OfflineAgents}, lambda sources: {}, nobody), now)
        async with asyncio.timeout(5):
            await fresh.react(ROLES["planner"], ended.events[0])
        assert fold("e2611-again", await log.read("e2611-again")).head == ended.head


async def test_an_agent_that_fails_ends_the_turn(fresh_server: NatsServer) -> None:
    async with running(fresh_server) as (log, _):
        await ask(log, "e2611-down", QuestionAsked(question="Why?", lang="en"), now())
        state = await answered(log, "e2611-down")
    assert state.turns[-1].failed is not None
    assert state.turns[-1].answer is not None
    assert state.turns[-1].answer.fallback_reason == "agent_failed"


async def test_a_role_that_keeps_failing_is_parked_and_others_go_on(
    fresh_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.dispatch.BACKOFF_S", (0.05,))
    async with running(fresh_server, Broken) as (log, _):
        await ask(log, "e2611-bug", QuestionAsked(question="Why?", lang="en"), now())
        await ask(log, "e2611-well", await scripted(log), now())
        well = await answered(log, "e2611-well")
        state = await answered(log, "e2611-bug")
    assert turn_report(well, well.turns[-1])["effective_verdict"] == "PASS"
    parked = [event.data for event in state.events if isinstance(event.data, HandlerParked)]
    assert [(p.consumer, p.deliveries) for p in parked] == [("verdictlog-all", 5)]
    assert "ZeroDivisionError" in parked[0].error
    assert state.turns[-1].answer is not None
    assert state.turns[-1].answer.fallback_reason == "parked"


async def test_a_session_whose_key_is_elsewhere_waits_for_it_unparked_and_others_go_on(
    fresh_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("handlers.dispatch.BACKOFF_S", (0.02,))
    keys, asked = FileKeys(tmp_path / "keys"), QuestionAsked(question="Why?", lang="en", deadline_s=600)
    async with running(fresh_server) as (log, _):
        sealing = JetStreamLog(await connect(fresh_server.url), keys=keys, seal=True)
        question = await scripted(sealing)
        await ask(sealing, "e2611-sealed", asked.model_copy(update={"script": question.script}), now())
        await ask(log, "e2611-well", await scripted(log), now())
        well = await answered(log, "e2611-well")
        await asyncio.sleep(1.0)  # many more deliveries than a parked event has
        [event] = await log.read("e2611-sealed")
        told = [record for record in caplog.records if "e2611-sealed" in record.getMessage()]
        assert turn_report(well, well.turns[-1])["effective_verdict"] == "PASS"
        assert [record.getMessage().count("left to a process that has the key") for record in told] == [1]
    async with running(fresh_server, keys=keys):
        state = await answered(sealing, "e2611-sealed")
    assert state.events[0] == replace(event, data=asked.model_copy(update={"script": question.script}), hidden=False)
    assert turn_report(state, state.turns[-1])["effective_verdict"] == "PASS"


class Waiting(Unused):
    """A model that replies when it is told to."""

    ready = asyncio.Event()
    asked = asyncio.Event()

    async def plan(self, brief: PlanBrief) -> AgentReply:
        self.asked.set()
        await self.ready.wait()
        raise AgentFailed("it had no plan")


async def test_a_log_without_room_is_told_to_who_waits_and_the_turn_goes_on_when_there_is_some(
    fresh_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.dispatch.BACKOFF_S", (0.05,))
    async with running(fresh_server, Waiting) as (log, app):
        js = (await connect(fresh_server.url)).jetstream()
        full = app.full_from_now()
        await ask(log, "e2611-full", QuestionAsked(question="Why?", lang="en", deadline_s=60), now())
        await asyncio.wait_for(Waiting.asked.wait(), 10)
        info = await js.stream_info(topology.STREAM_NAME)
        before = info.config.max_bytes
        await js.update_stream(info.config.evolve(max_bytes=info.state.bytes + 1))
        Waiting.ready.set()
        assert "no room left" in str(await asyncio.wait_for(full, 10))
        assert app.full_from_now() is not full
        await js.update_stream(info.config.evolve(max_bytes=before))
        state = await answered(log, "e2611-full")
    assert [event.type for event in state.events].count("answer-given") == 1


async def test_an_unreadable_message_stops_nobody_else(fresh_server: NatsServer) -> None:
    async with running(fresh_server) as (log, _):
        client = await connect(fresh_server.url)
        for k, junk in enumerate((b"not json", b"[]", b'{"specversion":"1.0"}', b"\xff\x00")):
            await client.jetstream().publish(f"vl.e2611-junk{k}.1.question-asked", junk)
        await client.close()
        await ask(log, "e2611-after", await scripted(log), now())
        state = await answered(log, "e2611-after")
    assert turn_report(state, state.turns[-1])["effective_verdict"] == "PASS"


async def test_a_durable_that_somebody_deletes_stops_the_process_with_its_name(
    fresh_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.app.WATCH_EVERY_S", 0.1)
    async with running(fresh_server) as (_, app):
        client = await connect(fresh_server.url)
        await client.jetstream().delete_consumer(topology.STREAM_NAME, "verdictlog-all")
        await client.close()
        fault = await asyncio.wait_for(app.fault, 5)
    assert "verdictlog-all does not exist" in str(fault)


async def test_the_server_killed_in_the_middle_loses_nothing(fresh_server: NatsServer) -> None:
    async with running(fresh_server) as (log, _):
        for k in range(6):
            await ask(log, f"e2611-kill{k}", await scripted(log), now())
        await asyncio.to_thread(fresh_server.kill)
        await asyncio.to_thread(fresh_server.start)
        for k in range(6):
            state = await answered(log, f"e2611-kill{k}", 30)
            assert turn_report(state, state.turns[-1])["effective_verdict"] == "PASS"
