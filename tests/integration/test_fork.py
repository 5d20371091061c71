"""A fork names its origin, tells its events again, and goes on from there; the origin is left as it is."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from handlers.dispatch import Again
from handlers.fork import forked
from handlers.report import turn_report
from handlers.roles import ROLES
from streams.chain import verify
from streams.envelope import Head
from streams.events import AnswerDrafted, FactsVerified, SessionForked
from streams.session import SessionState, fold
from tests.cases import EXAMPLE, long_case
from tests.play import SESSION, Stage, play

FORK = "e2603-fork"


def played() -> tuple[Stage, SessionState]:
    stage = Stage()
    return stage, asyncio.run(play(long_case(), stage))


async def fork_at(stage: Stage, n: int, cut: int | None = None) -> SessionState:
    origin = (await stage.state()).as_of(n)
    drafts = forked(origin.events, FORK, (SESSION, origin.head), "auditor", "what if")
    return fold(FORK, await stage.log.append(FORK, drafts[:cut], Head(), stage.clock()))


LAST = played()[1].head.n


@pytest.mark.parametrize("n", range(1, LAST + 1))
def test_a_fork_at_any_event_ends_as_its_origin_did(n: int) -> None:
    stage, origin = played()
    bodies = [event.body for event in origin.events]

    async def scenario() -> SessionState:
        state = await fork_at(stage, n)
        assert (state.open_turn is None) == (n == LAST)
        return await stage.run(FORK)

    state = asyncio.run(scenario())
    assert verify(state.events) is None
    assert state.events[0].data == state.origin
    assert state.origin == SessionForked(
        who="auditor",
        why="what if",
        origin_session=SESSION,
        origin_n=n,
        origin_hash=origin.events[n - 1].hash,
        copied=n,
    )
    assert [(e.type, e.actor, e.turn, e.round, e.attempt) for e in state.events[1:]] == [
        (e.type, e.actor, e.turn, e.round, e.attempt) for e in origin.events
    ]
    told, again = (turn_report(s, s.turns[0]) for s in (origin, state))
    assert {**again, "session": SESSION} == told
    assert [event.body for event in asyncio.run(stage.log.read(SESSION))] == bodies


def test_ids_of_a_fork_are_its_own_and_what_names_them_follows() -> None:
    stage, origin = played()
    state = asyncio.run(fork_at(stage, LAST))
    ids = {event.id for event in state.events}
    assert len(ids) == LAST + 1
    assert not ids & {event.id for event in origin.events}
    assert {event.cause for event in state.events if event.cause} <= ids
    named = [e.data.reply_event for e in state.events if isinstance(e.data, AnswerDrafted | FactsVerified)]
    assert len(named) > 2
    assert set(named) <= ids


def test_nobody_works_on_a_fork_before_all_of_it_is_there() -> None:
    stage, _ = played()

    async def scenario() -> None:
        half = await fork_at(stage, 4, cut=3)
        assert half.copying
        for role in ROLES.values():
            for event in half.events:
                if event.type in role.triggers:
                    with pytest.raises(Again):
                        await stage.reactor().react(role, event)
        assert len(await stage.log.read(FORK)) == 3

    asyncio.run(scenario())


def test_a_copy_that_was_cut_goes_on_where_it_stood() -> None:
    stage, _ = played()

    async def scenario() -> SessionState:
        reactor = stage.reactor()
        half = await fork_at(stage, 4, cut=3)
        with pytest.raises(Again):
            await reactor.react(ROLES["planner"], half.events[1])
        whole = await fork_at(stage, 4)
        assert [e.body for e in whole.events[:3]] == [e.body for e in half.events]
        await reactor.react(ROLES["planner"], half.events[1])
        return await stage.run(FORK)

    assert asyncio.run(scenario()).turns[0].answer is not None


def test_a_fork_of_a_fork_has_one_origin() -> None:
    stage, _ = played()

    async def scenario() -> SessionState:
        first = await fork_at(stage, 5)
        drafts = forked(first.events, "e2603-second", (FORK, first.head), "auditor")
        return fold("e2603-second", await stage.log.append("e2603-second", drafts, Head(), stage.clock()))

    state = asyncio.run(scenario())
    assert state.origin is not None
    assert (state.origin.origin_session, state.origin.copied, state.head.n) == (FORK, 5, 6)


def verdictlog(folder: Path, *arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_command_forks_in_the_middle_of_a_turn_and_plays_it_to_its_end(tmp_path: Path) -> None:
    session = json.loads(verdictlog(tmp_path, "judge", str(EXAMPLE), "--json"))["session"]
    before = verdictlog(tmp_path, "tail", "--session", session, "--until-idle", "1", "--json")
    told = json.loads(verdictlog(tmp_path, "fork", session, "--at", "5", "--why", "what if", "--json"))
    assert told["origin"]["session"] == session
    assert (told["report"]["session"], told["report"]["effective_verdict"]) == (told["session"], "PASS")
    assert verdictlog(tmp_path, "tail", "--session", session, "--until-idle", "1", "--json") == before
    verdictlog(tmp_path, "verify")
    verdictlog(tmp_path, "fork", session, "--at", "99", code=3)
    verdictlog(tmp_path, "fork", "e2611-nobody", "--at", "1", code=3)
