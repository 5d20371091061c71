"""Old events by the real way: stored bytes, upcast, fold, read model. A field that came, one renamed, an event split."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest
from old_events import Old, aged, install, stored
from projection_sessions import START, BodyListLog, in_log, passed, recorded, repaired

from handlers.fork import forked
from projections import catalog
from projections.archive import archived_events, check, export
from projections.projector import Projector
from projections.rebuild import rebuild
from projections.rows import plain
from projections.sessions import session_at, session_events
from projections.store import Store
from streams import events as ev
from streams import topology
from streams.chain import verify
from streams.envelope import Draft, Event, Head, decode
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.server import NatsServer
from streams.session import SessionState, fold
from streams.upcasts import UnknownEventType

SESSION = "e2611-pass"


class OldLog(BodyListLog):
    """A log of stored messages, some of which today's program may not know."""

    def __init__(self, messages: list[Old]) -> None:
        super().__init__([])
        self.messages = messages

    async def last_seq(self) -> int:
        return len(self.messages)

    async def stored(self, after: int = 0) -> Any:
        behind = [m for m in self.messages if m.seq > after]
        for i in range(0, len(behind), self.size):
            yield behind[i : i + self.size]
        await asyncio.Event().wait()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is the later program, with newer schemas and the steps that lead to them."""
    install(monkeypatch)


def read(messages: list[Old]) -> list[Event]:
    return [decode(m.body, m.seq) for m in messages]


def project(messages: list[Old], path: Path = Path(":memory:"), log: OldLog | None = None) -> Store:
    store = Store.open(path)
    asyncio.run(Projector(store, log or OldLog(messages), duty=0, batch=5).run(until=len(messages)))
    return store


def modern() -> list[Event]:
    return in_log(recorded(SESSION, repaired().drafts))


def told(state: SessionState) -> dict[str, Any]:
    """What a session says, apart from where its events stand."""
    return {
        "turns": [
            {
                "question": turn.question.question,
                "calls": [c.model_dump() for rnd in turn.rounds for c in rnd.invocations],
                "gates": [a.gate and a.gate.model_dump() for rnd in turn.rounds for a in rnd.attempts],
                "scores": [a.rules and a.rules.model_dump() for rnd in turn.rounds for a in rnd.attempts],
                "verdicts": [rnd.verification and rnd.verification.model_dump() for rnd in turn.rounds],
                "answer": turn.answer and turn.answer.model_dump(),
            }
            for turn in state.turns
        ],
        "channels": [(entry.channel, entry.value) for entry in state.channels],
    }


PLACE = {"seq", "n", "time", "event_id", "reply_event"}


def rows(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Every table but `events`, apart from where its rows stand."""
    found = {}
    for table in catalog.tables():
        if table.name == "events":
            continue
        result = store.connection.execute(f"FROM {table.name} ORDER BY ALL")
        names = [column[0] for column in result.description or []]
        found[table.name] = [
            {k: v for k, v in zip(names, row, strict=True) if k not in PLACE} for row in result.fetchall()
        ]
    return found


@pytest.mark.usefixtures("later")
def test_a_field_that_came_later_has_what_was_meant_before() -> None:
    [asked, *_] = read(aged(modern()))
    assert (asked.schema, asked.data.SCHEMA) == (1, 2)
    assert isinstance(asked.data, ev.QuestionAsked)
    assert asked.data.owner == "external"
    store = project(aged(modern()))
    assert store.connection.execute("SELECT owner FROM questions").fetchall() == [("external",)]
    assert store.connection.execute("SELECT schema FROM events WHERE n = 1").fetchall() == [(1,)]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("schema", [1, 2])
def test_a_renamed_field_is_found_by_its_new_name_from_every_old_schema(schema: int) -> None:
    old = aged(modern(), schema)
    assert (b'"call_id"' in old[3].body) is (schema == 1)
    assert [call.invocation_id for call in fold(SESSION, read(old)).invocations] == ["i1", "m1"]
    found = (
        project(old).connection.execute("SELECT invocation_id, evidence_kind FROM invocations ORDER BY n").fetchall()
    )
    assert found == [("i1", "incident"), ("m1", "incident")]


@pytest.mark.usefixtures("later")
def test_an_old_event_of_two_facts_is_folded_and_projected_as_the_two_that_are_written_today() -> None:
    old, new = aged(modern()), modern()
    assert len(old) == len(new) - 2
    assert verify(read(old)) is None
    state, wanted = fold(SESSION, read(old)), fold(SESSION, new)
    assert told(state) == told(wanted)
    assert (state.head.n, len(state.events)) == (len(old), len(old))
    store, today = project(old), project([Old(e.seq, "", e.body, {}) for e in new])
    found, same = rows(store), rows(today)
    assert [row.pop("owner") for row in found["questions"]] == ["external"]
    assert [row.pop("owner") for row in same["questions"]] == ["ours"]
    writers = [
        [row.pop("actor") for row in r["channels"] if row["channel"] == "rule_evaluation"] for r in (found, same)
    ]
    assert writers == [["gatekeeper"] * 2, ["evaluator"] * 2]
    assert found == same
    checked = [m.seq for m in old if b"answer-checked" in m.body]
    for table in ("gate_results", "rule_scores"):
        assert [s for (s,) in store.connection.execute(f"SELECT seq FROM {table} ORDER BY seq").fetchall()] == checked
    assert store.connection.execute("SELECT count(*), count(DISTINCT seq) FROM events").fetchall() == [(len(old),) * 2]


@pytest.mark.usefixtures("later")
def test_the_read_model_gives_back_old_events_as_the_log_does(tmp_path: Path) -> None:
    """It keeps the bytes as stored: what it hands out is upcast once, by the program that asks."""
    old = aged(modern())
    store = project(old, tmp_path / "read.duckdb")
    assert session_events(store.connection, SESSION) == read(old)
    row = session_at(store.connection, SESSION)
    assert row and row.self_evaluation == fold(SESSION, read(old)).self_evaluation
    export(store, tmp_path / "archive")
    assert check(tmp_path / "archive").events == len(old)
    assert archived_events(tmp_path / "archive", SESSION) == read(old)
    store.close()
    report = asyncio.run(rebuild(tmp_path / "read.duckdb", OldLog(old)))
    assert (report.same, report.compared) == (True, len(old))


@pytest.mark.usefixtures("later")
def test_an_old_payload_that_is_kept_as_a_blob_is_upcast_as_well(tmp_path: Path) -> None:
    data = orjson.dumps({"question": "why? " * 1_000, "lang": "en"})
    sha256 = hashlib.sha256(data).hexdigest()
    [old] = stored(modern(), [(0, "question-asked", 1, {})])
    raw = {"dataref": f"blob:{sha256}:{len(data)}:1", **orjson.loads(old.body)}
    del raw["data"]
    log = OldLog([Old(1, old.subject, orjson.dumps(raw), {})])
    log.blobs[sha256] = data
    store = project(log.messages, tmp_path / "read.duckdb", log)
    assert store.connection.execute("SELECT length(question), owner FROM questions").fetchall() == [(5_000, "external")]
    [event] = session_events(store.connection, SESSION)
    assert isinstance(event.data, ev.QuestionAsked)
    assert event.data.owner == "external"


@pytest.mark.usefixtures("later")
def test_a_fork_of_an_old_session_is_written_in_todays_events() -> None:
    events = read(aged(modern()))
    drafts = forked(events, "e2611-fork", (SESSION, events[-1].head), "on-call")
    assert [draft.payload.TYPE for draft in drafts[1:]] == [event.type for event in modern()]
    copy = recorded("e2611-fork", drafts)
    assert len({event.id for event in copy}) == len(copy)
    assert told(fold("e2611-fork", copy)) == told(fold(SESSION, events))


@pytest.mark.usefixtures("later")
def test_what_a_payload_says_of_schemas_is_not_taken_for_the_envelopes() -> None:
    """Anybody may write anything in a payload: an old event must not pass for one of today for it."""
    old = aged(modern())[3]
    raw = orjson.loads(old.body)
    raw["data"]["arguments"] = {"dataschema": "urn:verdictlog:tool-invoked:3"}
    body = orjson.dumps(raw)
    assert not plain(body)
    event = decode(body, 4)
    assert isinstance(event.data, ev.ToolInvoked)
    assert event.data.invocation_id == "i1"


def stopped(path: Path, messages: list[Old], at: int, why: str) -> None:
    """The projector stores all before event `at` and stops there; nothing of what follows is stored."""
    store = Store.open(path)
    with pytest.raises(
        UnknownEventType, match=f"^event {at} of session {SESSION} .position {at}.: event type {why} is"
    ):
        asyncio.run(Projector(store, OldLog(messages), duty=0).run(until=len(messages)))
    assert store.checkpoint().seq == at - 1
    assert store.connection.execute("SELECT count(*) FROM events").fetchall() == [(at - 1,)]
    store.close()


def test_a_newer_schema_stops_the_projector_and_a_later_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = aged(modern(), 3)
    stopped(tmp_path / "read.duckdb", messages, 4, "'tool-invoked' schema 3")
    install(monkeypatch)
    store = project(messages, tmp_path / "read.duckdb")
    assert store.checkpoint().seq == len(messages)
    assert store.connection.execute("SELECT count(*) FROM invocations").fetchall() == [(2,)]


def test_an_unknown_type_stops_the_projector_and_a_later_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = modern()
    gate = next(i for i, event in enumerate(events) if event.type == "gate-judged")
    said = [(i, e.type, e.schema, orjson.loads(e.body)["data"]) for i, e in enumerate(events[: gate + 2])]
    both = {"gate": said[gate][3]["result"], "score": said[gate + 1][3]["evaluation"]}
    messages = stored(events, [*said[:gate], (gate, "answer-checked", 1, both)])
    stopped(tmp_path / "read.duckdb", messages, gate + 1, "'answer-checked' schema 1")
    install(monkeypatch)
    store = project(messages, tmp_path / "read.duckdb")
    assert store.checkpoint().seq == len(messages)
    for table in ("gate_results", "rule_scores", "channels"):
        assert store.connection.execute(f"SELECT seq FROM {table}").fetchall() == [(gate + 1,)]


@pytest.mark.anyio
async def test_on_a_server_a_newer_event_blocks_its_session_alone_and_says_why(fresh_server: NatsServer) -> None:
    """Who reads the session, and who projects the log, is told; other sessions are read and written as ever."""
    client = await connect(fresh_server.url)
    await topology.ensure(client.jetstream())
    log = JetStreamLog(client)
    [first, *rest] = aged(in_log(recorded(SESSION, passed().drafts)), 3)
    for message in (first, *rest[:3]):
        await client.jetstream().publish(message.subject, message.body, headers=message.headers)
    await log.append("e2611-other", [Draft(ev.QuestionAsked(question="and now?"), "intake", turn=1)], Head(), START)
    with pytest.raises(UnknownEventType, match=f"event 4 of session {SESSION} .*upgrade it"):
        await log.read(SESSION)
    assert len(await log.read("e2611-other")) == 1
    store = Store.open(Path(":memory:"))
    with pytest.raises(UnknownEventType, match="position 4"):
        await Projector(store, log).run(until=5)
    assert store.checkpoint().seq == 3
    await disconnect(client)
