"""Requests of foreign agents over NATS: each gets one JSON reply, a bad one leaves the log as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from nats.aio.client import Client

from handlers.agents.offline import OfflineAgents
from handlers.app import App
from handlers.intake import Defaults
from handlers.react import Reactor
from handlers.reception import Reception
from handlers.redaction import Redactions
from handlers.workshop import TurnWorkshop
from streams import topology
from streams.chain import verify
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.server import NatsServer
from streams.topology import ROLES
from tests.foreign import CONTRACT, QUESTION, TOOL, miscopied

pytestmark = pytest.mark.anyio


def now() -> datetime:
    return datetime.now(UTC)


async def nobody(ids: frozenset[str], session: str) -> frozenset[str]:
    return frozenset()


class Agent:
    """A foreign agent: a plain NATS connection that knows nothing of ours."""

    def __init__(self, client: Client, session: str, log: JetStreamLog) -> None:
        self.client, self.session, self.log = client, session, log

    async def request(self, kind: str, body: Any, timeout: float = 10.0, **headers: str) -> dict[str, Any]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = await self.client.request(f"vl-in.{self.session}.{kind}", raw, timeout=timeout, headers=headers or None)
        said: dict[str, Any] = json.loads(reply.data)
        return said


@asynccontextmanager
async def foreign(server: NatsServer, session: str, receptions: int = 1) -> AsyncIterator[Agent]:
    client = await connect(server.url)
    await topology.ensure(client.jetstream(), ROLES)
    log = JetStreamLog(client)
    workshop = TurnWorkshop(log, {"offline": OfflineAgents}, lambda sources: {}, nobody)
    app = App(client, server.url, Reactor(log, workshop, now), log, now)
    doors = [Reception(client, log, now, Redactions(), Defaults()) for _ in range(receptions)]
    await app.start()
    for door in doors:
        await door.start()
    other = await connect(server.url)
    try:
        yield Agent(other, session, log)
    finally:
        for door in doors:
            await door.stop()
        await app.stop(2.0)
        await disconnect(other)
        await disconnect(client)


async def test_a_foreign_agent_asks_answers_and_awaits_its_verdict(fresh_server: NatsServer) -> None:
    async with foreign(fresh_server, "e2611-foreign", receptions=2) as agent:
        asked = await agent.request("question-asked", {"question": QUESTION})
        assert (asked["n"], asked["turn"]) == (1, 1)
        assert (await agent.request("tool-invoked", TOOL))["n"] == 2
        waiting = asyncio.create_task(agent.request("await", {"timeout_s": 20}, timeout=25))
        await agent.request("answer-drafted", {"answer": json.dumps(CONTRACT)})
        told = await waiting
        events = await agent.log.read(agent.session)
    assert (told["state"], told["effective_verdict"], told["response"]["kind"]) == ("answered", "PASS", "answer")
    assert told["n"] == events[-1].n
    assert verify(events) is None


async def test_a_mended_answer_is_asked_for_and_taken(fresh_server: NatsServer) -> None:
    async with foreign(fresh_server, "e2611-mended") as agent:
        await agent.request("question-asked", {"question": QUESTION, "repair_wait_s": 20})
        await agent.request("tool-invoked", TOOL)
        await agent.request("answer-drafted", {"answer": miscopied()})
        told = await agent.request("await", {"timeout_s": 20}, timeout=25)
        assert (told["state"], told["attempt"]) == ("repair", 1)
        await agent.request("answer-drafted", {"answer": CONTRACT})
        told = await agent.request("await", {"timeout_s": 20}, timeout=25)
    assert (told["state"], told["effective_verdict"]) == ("answered", "PASS")


async def test_a_foreign_agent_that_falls_silent_after_a_repair_request_ends_its_turn(fresh_server: NatsServer) -> None:
    async with foreign(fresh_server, "e2611-silent") as agent:
        await agent.request("question-asked", {"question": QUESTION, "repair_wait_s": 0.5})
        await agent.request("tool-invoked", TOOL)
        await agent.request("answer-drafted", {"answer": miscopied()})
        told = await agent.request("await", {"timeout_s": 15, "answer_only": True}, timeout=20)
    assert (told["state"], told["effective_verdict"]) == ("answered", "REJECT")


@pytest.mark.parametrize(
    ("kind", "body", "where"),
    [
        ("question-asked", b"{", "body"),
        ("question-asked", b'{"question":"a","question":"b"}', "body"),
        ("question-asked", b"[]", "body"),
        ("tool-invoked", b"\xff\xfe", "body"),
        ("await", b"", "session"),
        ("gate-judged", b"{}", "subject"),
    ],
)
async def test_a_bad_request_gets_a_clear_error_and_is_no_event(
    fresh_server: NatsServer, kind: str, body: bytes, where: str
) -> None:
    async with foreign(fresh_server, "e2611-bad") as agent:
        said = await agent.request(kind, body)
        assert said["error"]["where"] == where
        assert said["error"]["why"]
        assert await agent.log.read(agent.session) == []


async def test_a_session_id_outside_the_grammar_is_refused(fresh_server: NatsServer) -> None:
    async with foreign(fresh_server, "My_Session") as agent:
        said = await agent.request("question-asked", {"question": QUESTION})
    assert said["error"]["where"] == "session"


async def test_a_message_id_header_makes_a_request_safe_to_repeat(fresh_server: NatsServer) -> None:
    async with foreign(fresh_server, "e2611-again", receptions=3) as agent:
        header = {"Nats-Msg-Id": "ask-1"}
        told = await asyncio.gather(
            *(agent.request("question-asked", {"question": QUESTION}, **header) for _ in range(20))
        )
        assert {said["n"] for said in told} == {1}
        tools = await asyncio.gather(
            *(agent.request("tool-invoked", {**TOOL, "invocation_id": f"c{k % 10}"}) for k in range(40))
        )
        assert sorted({said["n"] for said in tools}) == list(range(2, 12))
        assert len(await agent.log.read(agent.session)) == 11
