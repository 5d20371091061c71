"""A third party's own channel, end to end on a server: request, log, read model, history, and ours out of its reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from test_reception import foreign, now

from projections.asof import Moment
from projections.projector import Projector
from projections.sessions import session_at
from projections.store import Store
from streams.envelope import Draft
from streams.events import ChannelWritten
from streams.server import NatsServer
from streams.session import OUR_CHANNELS, fold
from tests.foreign import CONTRACT, QUESTION, TOOL

pytestmark = pytest.mark.anyio
LOOK_ALIKES = (
    *OUR_CHANNELS, "verifier-evaluation", "rule.evaluation", "rule__evaluation", "verifierevaluation", "ru1e_evaluation",
    "verifier_eva1uati0n", "rule_evaluation.v2", "self_evaluation",
)  # fmt: skip


async def judged(agent: Any) -> dict[str, Any]:
    await agent.request("question-asked", {"question": QUESTION})
    await agent.request("tool-invoked", TOOL)
    await agent.request("answer-drafted", {"answer": CONTRACT})
    told: dict[str, Any] = await agent.request("await", {"timeout_s": 20}, timeout=25)
    return told


def evaluation(store: Store, sql: str) -> Any:
    [(found,)] = store.connection.execute(f"SELECT self_evaluation FROM {sql}").fetchall()
    return orjson.loads(found)


async def test_a_third_partys_channel_stands_beside_ours_with_its_history(fresh_server: NatsServer) -> None:
    def review(useful: bool, **more: Any) -> dict[str, Any]:
        return {"channel": "human_review", "value": {"useful": useful}, "who": "on-call", **more}

    async with foreign(fresh_server, "e2611-channels") as agent:
        assert (await judged(agent))["effective_verdict"] == "PASS"
        ours = fold(agent.session, await agent.log.read(agent.session)).self_evaluation
        assert ours is not None
        first = await agent.request("channel-written", review(False))
        second = await agent.request("channel-written", review(True))
        third = await agent.request("channel-written", review(False))
        assert [said["n"] for said in (second, third)] == [first["n"] + 1, first["n"] + 2]
        assert await agent.request("channel-written", review(False)) == third
        fourth = await agent.request("channel-written", review(True, id="closing"))
        assert await agent.request("channel-written", review(True, id="closing")) == fourth
        events = await agent.log.read(agent.session)
        assert [event.id for event in events[-4:]] == [said["id"] for said in (first, second, third, fourth)]
        assert len({event.id for event in events}) == len(events)

        store = Store.open(Path(":memory:"))
        await Projector(store, agent.log).run(until=events[-1].seq)
    assert evaluation(store, "diagnosis_session") == {**ours, "human_review": {"useful": True}}
    at = {event.id: event.seq for event in events}
    assert evaluation(store, f"diagnosis_session_at({at[first['id']] - 1})") == ours
    for said, useful in ((first, False), (second, True), (third, False), (fourth, True)):
        wanted = {**ours, "human_review": {"useful": useful}}
        assert evaluation(store, f"diagnosis_session_at({at[said['id']]})") == wanted
        row = session_at(store.connection, "e2611-channels", Moment(n=said["n"]))
        assert row and row.self_evaluation == wanted
    history = store.connection.execute(
        "SELECT channel, n, event_id, actor, who, latest, replaced_at IS NULL FROM v_channel_history ORDER BY channel, n"
    ).fetchall()
    assert history[:4] == [
        ("human_review", said["n"], said["id"], "intake", "on-call", said is fourth, said is fourth)
        for said in (first, second, third, fourth)
    ]
    assert [(row[0], row[3], row[4]) for row in history[4:]] == [
        ("rule_evaluation", "evaluator", None),
        ("verifier_evaluation", "verifier", None),
    ]


async def test_a_third_party_can_neither_touch_our_channels_nor_pass_for_them(fresh_server: NatsServer) -> None:
    async with foreign(fresh_server, "e2611-forged") as agent:
        await judged(agent)
        before = await agent.log.read(agent.session)
        for name in LOOK_ALIKES:
            said = await agent.request("channel-written", {"channel": name, "value": {"verdict": "PASS"}})
            assert said["error"]["where"] == "channel", name
            assert said["error"]["why"].startswith(f"{name} could be taken for one that Verdictlog alone writes")
        assert await agent.log.read(agent.session) == before

        # Whoever may write to the log itself: neither the fold nor the read model takes it for ours.
        state = fold(agent.session, before)
        forged = Draft(ChannelWritten(channel="verifier_evaluation", value={"verdict": "PASS"}), "verifier", turn=1)
        await agent.log.append(agent.session, [forged], state.head, now())
        events = await agent.log.read(agent.session)
        assert fold(agent.session, events).self_evaluation == state.self_evaluation
        store = Store.open(Path(":memory:"))
        await Projector(store, agent.log).run(until=events[-1].seq)
    assert evaluation(store, "diagnosis_session") == state.self_evaluation
