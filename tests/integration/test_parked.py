"""What a role gave up on is listed, asked anew or dismissed, each once, on a server or in local mode."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from handlers.cli.story import session_object, session_text
from handlers.intake import ask
from handlers.parked import asked_again, dismiss, resolve, retry
from streams.chain import verify
from streams.events import HandlerParked, ParkedResolved, QuestionAsked, Sources
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.keys import FileKeys
from streams.local import local_server
from streams.server import NatsServer
from streams.session import SessionState, fold
from tests.e2e.home import environment
from tests.foreign import QUESTION as FOREIGN
from tests.integration.test_app import Broken, answered, now, running, scripted

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]  # many commands, each a process

LOG = "\n".join(
    f"2026-03-17T10:09:0{i}Z ERROR payment-service HikariPool-1 - Connection is not available, "
    f"request timed out after 3000{i}ms (active=20, idle=0)"
    for i in range(5)
)


class Installation:
    """A server, a data folder, and commands as processes."""

    def __init__(self, url: str | None, folder: Path) -> None:
        self.url = url
        self.folder = folder

    async def run(self, *arguments: str, code: int | set[int] = 0, **settings: str) -> tuple[str, str]:
        """(stdout, stderr) of a command that ends with `code`."""
        env = environment(self.url or "", USER="ann", **settings)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(self.folder),
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = (text.decode() for text in await process.communicate())
        assert process.returncode in (code if isinstance(code, set) else {code}), f"{process.returncode}\n{out}\n{err}"
        assert "Traceback" not in err
        return out, err

    async def listed(self, *flags: str) -> list[dict[str, Any]]:
        out, _ = await self.run("parked", "--json", *flags)
        return [json.loads(line) for line in out.splitlines()]


def question(folder: Path) -> QuestionAsked:
    folder.mkdir(exist_ok=True)
    logs = folder / "app.log"
    logs.write_text(LOG, encoding="utf-8")
    sources = Sources(logs=(str(logs),))
    return QuestionAsked(question="Why does payment-service time out?", lang="en", sources=sources, deadline_s=99.0)


async def park(url: str, folder: Path, *sessions: str, keys: FileKeys | None = None) -> None:
    """A fault of a handler, five times over, parks the question of each session."""
    server: Any = type("Reached", (), {"url": url})
    async with running(server, Broken, keys) as (log, _):
        asking = log if keys is None else JetStreamLog(await connect(url), keys=keys, seal=True)
        for session in sessions:
            await ask(asking, session, question(folder), now())
        for session in sessions:
            await answered(log, session, 30)


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[JetStreamLog]:
    client = await connect(url)
    try:
        yield JetStreamLog(client)
    finally:
        await disconnect(client)


async def state_of(url: str, session: str) -> SessionState:
    async with reading(url) as log:
        events = await log.read(session)
    assert verify(events) is None
    return fold(session, events)


def working(url: str, folder: Path) -> subprocess.Popen[str]:
    """`verdictlog up`, on its way."""
    return subprocess.Popen(
        [sys.executable, "-m", "handlers.cli.main", "up", "--data", str(folder)],
        stderr=subprocess.PIPE, text=True, env=environment(url),
    )  # fmt: skip


def resolutions(state: SessionState) -> list[ParkedResolved]:
    return [event.data for event in state.events if isinstance(event.data, ParkedResolved)]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.dispatch.BACKOFF_S", (0.05,))


async def test_a_parked_question_is_listed_asked_anew_once_and_answered(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    await park(fresh_server.url, tmp_path, "e2611-bug")
    here = Installation(fresh_server.url, tmp_path / "data")
    [entry] = await here.listed()
    state = await state_of(fresh_server.url, "e2611-bug")
    [event] = [event for event in state.events if isinstance(event.data, HandlerParked)]
    assert entry == {
        "event_id": event.id,
        "session": "e2611-bug",
        "turn": 1,
        "n": event.n,
        "time": event.time,
        "consumer": "verdictlog-all",
        "parked_event_id": state.events[0].id,
        "error": event.data.error if isinstance(event.data, HandlerParked) else "",
        "deliveries": 5,
        "open": True,
        "resolution": None,
        "question": "Why does payment-service time out?",
    }
    assert "ZeroDivisionError" in entry["error"]
    text, _ = await here.run("parked")
    assert "e2611-bug  turn 1  verdictlog-all, 5 deliveries: ZeroDivisionError" in text
    assert f"{event.id}  open" in text
    assert "1: e2611-bug" in (await here.run("doctor"))[0]

    out, err = await here.run("parked", "retry", "e2611-bug", "--reason", "mended", code={0, 10})
    assert "Connection is not available" in out
    assert "turn 1: asked anew as turn 2 by ann: mended" in err
    state = await state_of(fresh_server.url, "e2611-bug")
    first, second = state.turns
    assert second.question == first.question
    assert second.asked.cause == event.id
    assert resolutions(state) == [
        ParkedResolved(who="ann", why="mended", parked_event=event.id, action="retry", new_turn=2)
    ]
    assert second.answer is not None
    assert second.answer.kind != "degraded"

    assert await here.listed() == []
    [closed] = await here.listed("--all")
    assert closed["resolution"] == {
        "action": "retry", "who": "ann", "why": "mended", "new_turn": 2,
        "n": state.parked[0].resolution.n, "time": state.parked[0].resolution.time,  # type: ignore[union-attr]
    }  # fmt: skip
    assert "ok  parked" not in (await here.run("doctor"))[0]
    for again, name in (("retry", "e2611-bug"), ("dismiss", event.id)):
        told, _ = await here.run("parked", again, name)
        assert "nothing was changed: asked anew as turn 2 by ann: mended" in told
    assert (await state_of(fresh_server.url, "e2611-bug")).head == state.head

    shown = session_text(state)
    assert "parked: verdictlog-all gave up after 5 deliveries: ZeroDivisionError" in shown
    assert "    asked anew as turn 2 by ann: mended, at " in shown
    assert "parked-resolved   asked anew as turn 2 by ann: mended" in shown
    assert session_object(state)["turns"][0]["parked"] == [{k: v for k, v in closed.items() if k != "question"}]


async def test_a_dismissed_entry_is_closed_and_nothing_else_happens(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    await park(fresh_server.url, tmp_path, "e2611-one", "e2611-two")
    here = Installation(fresh_server.url, tmp_path / "data")
    one, two = (entry["event_id"] for entry in await here.listed())
    before = await state_of(fresh_server.url, "e2611-one")
    told, _ = await here.run("parked", "dismiss", one, "--reason", "asked elsewhere", "--who", "bo", "--json")
    assert json.loads(told) | {"told": ""} == {
        "session": "e2611-one", "turn": 1, "event_ids": [one], "outcome": "dismissed", "told": "",
    }  # fmt: skip
    after = await state_of(fresh_server.url, "e2611-one")
    assert after.turns == before.turns
    assert resolutions(after) == [ParkedResolved(who="bo", why="asked elsewhere", parked_event=one, action="dismiss")]
    assert [entry["event_id"] for entry in await here.listed()] == [two]
    # The event that could not be handled names the entry, too; a password in the reason is not recorded.
    [left] = await here.listed()
    await here.run("parked", "dismiss", left["parked_event_id"], "--reason", "password=hunter2hunter2")
    assert "hunter2" not in resolutions(await state_of(fresh_server.url, "e2611-two"))[0].why
    told, _ = await here.run("parked", "retry", "e2611-one")
    assert "nothing was changed: dismissed by bo" in told
    assert (await state_of(fresh_server.url, "e2611-one")).head == after.head
    _, err = await here.run("parked", "retry", "--all")
    assert "no parked entry is open" in err


@pytest.mark.parametrize("name", ["e2611-nobody", "e2611-well", "0b9f2a54-0000-5000-8000-000000000000", "what?"])
@pytest.mark.parametrize("command", ["retry", "dismiss"])
async def test_a_name_that_stands_for_nothing_is_told_in_one_line(
    command: str, name: str, fresh_server: NatsServer, tmp_path: Path
) -> None:
    async with running(fresh_server) as (log, _):
        await ask(log, "e2611-well", await scripted(log), now())
    out, err = await Installation(fresh_server.url, tmp_path / "data").run("parked", command, name, code=3)
    assert out == ""
    assert name in err
    assert err.count("\n") == 1


async def test_names_or_all_and_not_both(fresh_server: NatsServer, tmp_path: Path) -> None:
    here = Installation(fresh_server.url, tmp_path / "data")
    await here.run("parked", "retry", code=2)
    await here.run("parked", "dismiss", "--all", "e2611-a", code=2)
    await here.run("parked", "--all", "retry", "e2611-a", code=2)


async def test_two_at_once_close_an_entry_once(fresh_server: NatsServer, tmp_path: Path, quick: None) -> None:
    sessions = [f"e2611-race{k}" for k in range(6)]
    await park(fresh_server.url, tmp_path, *sessions)
    async with reading(fresh_server.url) as one, reading(fresh_server.url) as two, reading(fresh_server.url) as three:
        for session in sessions:
            [entry] = (await state_of(fresh_server.url, session)).parked
            closing = [
                (one, partial(retry, turn=1, who="ann")),
                (two, partial(retry, turn=1, who="bo", why="mended")),
                (three, partial(dismiss, event_id=entry.event.id, who="cy")),
            ]
            await asyncio.gather(*(resolve(log, session, decide, now()) for log, decide in closing))
            state = await state_of(fresh_server.url, session)
            [closed] = resolutions(state)
            again = 2 if closed.action == "retry" else None
            assert (len(state.turns), closed.new_turn, asked_again(state, 1)) == (again or 1, again, again)


async def test_a_retry_that_was_cut_behind_its_question_is_only_brought_to_its_end(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    await park(fresh_server.url, tmp_path, "e2611-one", "e2611-two")
    async with reading(fresh_server.url) as log:
        for session, decide in (("e2611-one", retry), ("e2611-two", dismiss)):
            state = await state_of(fresh_server.url, session)
            [entry] = state.parked
            await log.append(session, retry(state, 1, "ann")[:1], state.head, now())
            again = partial(decide, **({"turn": 1} if decide is retry else {"event_id": entry.event.id}), who="bo")
            for _ in range(2):
                state, _ = await resolve(log, session, again, now())
            assert [turn.number for turn in state.turns] == [1, 2]
            assert resolutions(state) == [
                ParkedResolved(who="bo", parked_event=entry.event.id, action="retry", new_turn=2)
            ]
    # Its answer never came: who asks for it again waits for it.
    out, err = await Installation(fresh_server.url, tmp_path / "data").run("parked", "retry", "e2611-one", code={0, 10})
    assert "nothing was changed: asked anew as turn 2 by bo" in err
    assert "Connection is not available" in out


async def test_several_are_a_line_each_and_a_running_up_answers(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    await park(fresh_server.url, tmp_path, "e2611-one", "e2611-two")
    here = Installation(fresh_server.url, tmp_path / "data")
    up = working(fresh_server.url, tmp_path / "up")
    try:
        assert up.stderr is not None
        assert "running" in await asyncio.to_thread(up.stderr.readline)
        out, _ = await here.run("parked", "retry", "--all", "--json")
    finally:
        up.kill()
        up.wait()
    told = [json.loads(line) for line in out.splitlines()]
    assert [(one["session"], one["turn"], one["outcome"], one["new_turn"]) for one in told] == [
        ("e2611-one", 1, "retried", 2),
        ("e2611-two", 1, "retried", 2),
    ]
    assert all(one["report"]["turn"] == 2 and one["report"]["effective_verdict"] for one in told)


async def test_what_is_asked_anew_and_parked_again_is_an_entry_of_its_own(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    """A role that still fails: the retry ends without judgement, and the second entry can be retried in its turn."""
    await park(fresh_server.url, tmp_path, "e2611-bug")
    async with running(fresh_server, Broken) as (log, _):
        deciding = partial(retry, turn=1, who="ann")
        state, changed = await resolve(log, "e2611-bug", deciding, now())
        assert (changed, asked_again(state, 1)) == (True, 2)
        await answered(log, "e2611-bug", 30)
    here = Installation(fresh_server.url, tmp_path / "data")
    assert [(entry["turn"], entry["open"]) for entry in await here.listed("--all")] == [(1, False), (2, True)]
    told, _ = await here.run("parked", "retry", "e2611-bug", code={0, 10})
    assert "Connection is not available" in told
    assert [turn.open for turn in (await state_of(fresh_server.url, "e2611-bug")).turns] == [False] * 3


async def test_a_session_with_another_open_question_is_refused(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    await park(fresh_server.url, tmp_path, "e2611-busy", "e2611-free")
    async with reading(fresh_server.url) as log:
        other = QuestionAsked(question="Is ledger-db slow?", lang="en", owner="external", deadline_s=600)
        await ask(log, "e2611-busy", other, now())
    here = Installation(fresh_server.url, tmp_path / "data")
    before = await state_of(fresh_server.url, "e2611-busy")
    _, err = await here.run("parked", "retry", "e2611-busy", code=2)
    assert "turn 2 is still open with another question" in err
    out, _ = await here.run("parked", "retry", "--all", code=1)
    refused, answered = out.splitlines()
    assert refused.startswith("e2611-busy turn 1: session e2611-busy: turn 2 is still open")
    assert answered.startswith("e2611-free turn 1: ")
    assert (await state_of(fresh_server.url, "e2611-busy")).head == before.head
    assert [entry["session"] for entry in await here.listed()] == ["e2611-busy"]


async def test_a_foreign_agents_turn_is_not_asked_for_it(fresh_server: NatsServer, tmp_path: Path) -> None:
    from handlers.react import Reactor
    from handlers.roles import ROLES
    from handlers.workshop import TurnWorkshop
    from tests.integration.test_app import nobody

    async with running(fresh_server) as (log, _):
        asked = QuestionAsked(question=FOREIGN, lang="en", owner="external", deadline_s=60)
        state = await ask(log, "e2611-foreign", asked, now())
        reactor = Reactor(log, TurnWorkshop(log, {}, lambda sources: {}, nobody), now)
        await reactor.park(state.events[0], "verdictlog-all", "ZeroDivisionError", 5, ROLES["router"])
    here = Installation(fresh_server.url, tmp_path / "data")
    _, err = await here.run("parked", "retry", "e2611-foreign", code=2)
    assert "a foreign agent" in err
    await here.run("parked", "dismiss", "e2611-foreign")
    assert await here.listed() == []


async def test_local_mode_runs_the_roles_itself(tmp_path: Path, quick: None) -> None:
    data = tmp_path / "data"
    async with local_server(data) as url:
        await park(url, tmp_path, "e2611-bug")
    here = Installation(None, data)
    out, _ = await here.run("parked", "retry", "e2611-bug", code={0, 10})
    assert "Connection is not available" in out
    async with local_server(data) as url:
        assert [turn.open for turn in (await state_of(url, "e2611-bug")).turns] == [False, False]


async def test_without_a_log_there_is_nothing_and_no_folder_is_made(tmp_path: Path) -> None:
    await Installation(None, tmp_path / "data").run("parked", code=3)
    assert not (tmp_path / "data").exists()


async def test_a_sealed_session_needs_its_key_and_an_erased_one_is_left_alone(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    keys = FileKeys(tmp_path / "keys")
    await park(fresh_server.url, tmp_path, "e2611-sealed", keys=keys)
    here = Installation(fresh_server.url, tmp_path / "data")
    [entry] = await here.listed()
    assert entry["error"] == "[erased]"
    _, err = await here.run("parked", "retry", "e2611-sealed", code=4)
    assert "there is no key for it" in err
    assert len(await here.listed()) == 1
    await here.run("erase", "e2611-sealed", "--reason", "asked for", "--yes", VERDICTLOG_KEYS=str(tmp_path / "keys"))
    assert await here.listed() == []
    assert "ok  parked" not in (await here.run("doctor"))[0]
    _, err = await here.run("parked", "dismiss", "e2611-sealed", code=2)
    assert "was erased" in err


async def test_a_sealed_session_is_asked_anew_where_its_key_is(
    fresh_server: NatsServer, tmp_path: Path, quick: None
) -> None:
    keys = tmp_path / "keys"
    await park(fresh_server.url, tmp_path, "e2611-sealed", keys=FileKeys(keys))
    here = Installation(fresh_server.url, tmp_path / "data")
    await here.run("parked", "retry", "e2611-sealed", code={0, 10}, VERDICTLOG_KEYS=str(keys))
    assert await here.listed() == []
