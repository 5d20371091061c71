"""The projector: rows and checkpoint together, duplicates without effect, and a log that is wrong stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from projection_sessions import (
    BodyListLog,
    ListLog,
    altered,
    extra_round,
    in_log,
    passed,
    recorded,
    repaired,
    sample_log,
    two_turns,
    with_blob,
)

from projections import catalog
from projections.asof import Moment, NoSuchMoment, state_at, summary
from projections.projector import ProjectionBehind, Projector
from projections.sessions import session_at, sessions, sessions_at
from projections.store import BadStore, Store
from streams.envelope import Draft, Event
from streams.events import ChainAnchored
from streams.log import LogWentBackwards
from streams.session import BrokenChain

SLOW = settings(
    max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)


def project(store: Store, log: ListLog, batch: int = 1_000, until: int | None = None) -> None:
    last = asyncio.run(log.last_seq()) if until is None else until
    asyncio.run(Projector(store, log, batch=batch, duty=0).run(until=last))


def everything(store: Store) -> dict[str, list[tuple[object, ...]]]:
    return {t.name: store.connection.execute(f"SELECT * FROM {t.name}").fetchall() for t in catalog.tables()}


@cache
def reference() -> dict[str, list[tuple[object, ...]]]:
    store = Store.open(Path(":memory:"))
    project(store, ListLog(sample_log()))
    return everything(store)


@pytest.mark.scenario("SEV-4")
@SLOW
@given(batch=st.integers(5, 60), again=st.lists(st.integers(0, 120), max_size=30), bodies=st.booleans())
def test_any_batching_and_duplication_gives_the_same_rows(batch: int, again: list[int], bodies: bool) -> None:
    events = sample_log()
    deliver = list(events)
    for i in again:
        deliver.insert(i, deliver[max(0, i - 3)] if i < len(deliver) else deliver[-1])
    deliver = [e for i, e in enumerate(deliver) if e.seq <= max((x.seq for x in deliver[:i]), default=0) + 1]
    store = Store.open(Path(":memory:"))
    project(store, (BodyListLog if bodies else ListLog)(events, deliver), batch)
    assert everything(store) == reference()


STORIES_TOLD = (two_turns, extra_round, repaired)


def in_bytes(store: Store) -> bytes:
    """All that the read model holds of what was said, without where in the log it stands."""
    found = []
    for name in (*(table.name for table in catalog.tables()), "diagnosis_session", "v_channel_history"):
        columns = [row[0] for row in store.connection.execute(f"DESCRIBE {name}").fetchall()]
        kept = ", ".join(f'"{column}"' for column in columns if column not in {"seq", "parked_event_seq"})
        found.append((name, store.connection.execute(f"SELECT {kept} FROM {name} ORDER BY ALL").fetchall()))
    return repr(found).encode()


def told_by(order: Sequence[int]) -> list[Event]:
    chains = [recorded(f"e2611-s{i}", make().drafts) for i, make in enumerate(STORIES_TOLD)]
    return in_log(*chains, order=order)


@cache
def one_after_the_other() -> bytes:
    store = Store.open(Path(":memory:"))
    project(store, ListLog(told_by(())))
    return in_bytes(store)


@pytest.mark.scenario("SEV-4")
@SLOW
@given(
    order=st.lists(st.integers(0, 2), max_size=60),
    batch=st.integers(8, 60),
    again=st.lists(st.integers(1, 60), max_size=20),
    stops=st.lists(st.integers(1, 60), max_size=2),
    bodies=st.booleans(),
)
def test_any_interleaving_duplication_batching_and_restart_gives_the_same_bytes(
    order: list[int], batch: int, again: list[int], stops: list[int], bodies: bool
) -> None:
    """What is delivered again is anything that was delivered before, at any later point; a restart is a new projector."""
    events = told_by(order)
    deliver = list(events)
    for i in again:
        deliver.insert(min(len(deliver), 2 * i), events[min(i, len(events)) - 1])
    deliver = [e for i, e in enumerate(deliver) if e.seq <= max((x.seq for x in deliver[:i]), default=0) + 1]
    store = Store.open(Path(":memory:"))
    for until in (*sorted(min(stop, len(events)) for stop in stops), len(events)):
        project(store, (BodyListLog if bodies else ListLog)(events, deliver), batch, until)
    assert in_bytes(store) == one_after_the_other()
    found = {row.session: row.self_evaluation for row in sessions(store.connection)}
    chains = {s: [e for e in events if e.session == s] for s in {e.session for e in events}}
    assert found == {s: state_at(s, chain).self_evaluation for s, chain in chains.items()}


@pytest.mark.scenario("SEV-1")
@pytest.mark.scenario("SEV-2")
@pytest.mark.scenario("SEV-3")
def test_for_every_n_projection_and_fold_agree() -> None:
    events = sample_log()
    store = Store.open(Path(":memory:"))
    project(store, ListLog(events))
    chains = {session: [e for e in events if e.session == session] for session in {e.session for e in events}}
    for position, event in enumerate(events):
        chain = chains[event.session]
        wanted = summary(state_at(event.session, chain, Moment(n=event.n)))
        assert session_at(store.connection, event.session, Moment(n=event.n)) == wanted
        assert session_at(store.connection, event.session, Moment(seq=event.seq)) == wanted
        if position % 4 and event.type in {"agent-replied", "plan-made", "tool-invoked"}:
            continue  # the macro is asked after every event that changes more than a count, and a sample of the rest
        for moment in (Moment(seq=event.seq), Moment(time=event.time)):
            states = [summary(state_at(session, chain, moment)) for session, chain in chains.items()]
            assert sessions_at(store.connection, moment) == sorted((s for s in states if s), key=lambda s: s.seq)
    for session, chain in chains.items():
        assert session_at(store.connection, session, Moment(n=0)) is None
        with pytest.raises(NoSuchMoment):
            session_at(store.connection, session, Moment(n=len(chain) + 1))


@pytest.mark.scenario("SEV-1")
@pytest.mark.scenario("SEV-2")
def test_one_channel_leaves_the_other_untouched() -> None:
    chain = recorded("e2611-pass", passed().drafts)
    store = Store.open(Path(":memory:"))
    project(store, ListLog(in_log(chain)))
    scored = next(e for e in chain if e.type == "rules-scored")
    verified = next(e for e in chain if e.type == "facts-verified")
    before = session_at(store.connection, "e2611-pass", Moment(n=scored.n - 1))
    between = session_at(store.connection, "e2611-pass", Moment(n=scored.n))
    after = session_at(store.connection, "e2611-pass", Moment(n=verified.n))
    assert before and between and after
    assert before.self_evaluation is None
    assert between.self_evaluation and set(between.self_evaluation) == {"rule_evaluation"}
    assert after.self_evaluation and set(after.self_evaluation) == {"rule_evaluation", "verifier_evaluation"}
    assert after.self_evaluation["rule_evaluation"] == between.self_evaluation["rule_evaluation"]


@pytest.mark.scenario("SEV-6")
def test_the_stored_judgement_holds_what_it_rests_on() -> None:
    store = Store.open(Path(":memory:"))
    project(store, ListLog(in_log(recorded("e2611-pass", passed().drafts))))
    row = session_at(store.connection, "e2611-pass")
    assert row and row.self_evaluation
    judgement = row.self_evaluation["verifier_evaluation"]
    assert judgement["traceability_version"] == "trace_summary_v1"
    assert {"tool_trace_summary", "gatekeeper_result", "executor_output_parse_status", "executor_final_answer"} <= set(
        judgement
    )


def test_a_time_with_an_offset_is_the_same_moment() -> None:
    store = Store.open(Path(":memory:"))
    project(store, ListLog(in_log(recorded("e2611-pass", passed().drafts))))
    calls = (
        "'2026-11-30T10:00:03Z'",
        "'2026-11-30T12:00:03+02:00'",
        "'2026-11-30 10:00:03'",
        "TIMESTAMP '2026-11-30 10:00:03'",
    )
    for zone in ("UTC", "Asia/Shanghai"):
        store.connection.execute(f"SET TimeZone = '{zone}'")
        for call in calls:
            found = store.connection.execute(f"SELECT n FROM diagnosis_session_at_time({call})").fetchall()
            assert found == [(4,)], (zone, call)
    assert store.connection.execute("SELECT n FROM diagnosis_session_at_time('2026-11-30')").fetchall() == []


def test_stored_bytes_are_the_logs_bytes() -> None:
    events = sample_log()
    store = Store.open(Path(":memory:"))
    project(store, ListLog(events))
    found = store.connection.execute("SELECT body, sha256(body) = hash FROM events ORDER BY seq").fetchall()
    assert [body.encode() for body, _ in found] == [e.body for e in events]
    assert all(same for _, same in found)


@pytest.mark.parametrize("kind", [ListLog, BodyListLog])
def test_a_payload_kept_as_a_blob_is_projected(kind: type[ListLog]) -> None:
    events, blob, data = with_blob("e2611-large", "why? " * 100_000)
    log = kind(events)
    log.blobs[blob.sha256] = data
    if kind is ListLog:
        log.deliver = list(events)
    store = Store.open(Path(":memory:"))
    project(store, log)
    assert store.connection.execute("SELECT length(question) FROM questions").fetchall() == [(500_000,)]


def test_a_second_run_goes_on_behind_the_checkpoint(tmp_path: Path) -> None:
    events = sample_log()
    store = Store.open(tmp_path / "read.duckdb")
    project(store, ListLog(events[:50]))
    store.close()
    store = Store.open(tmp_path / "read.duckdb")
    assert store.checkpoint().seq == 50
    project(store, ListLog(events))
    assert store.checkpoint().seq == len(events)
    assert store.connection.execute("SELECT count(*), count(DISTINCT seq) FROM events").fetchall() == [
        (len(events),) * 2
    ]


def test_a_log_that_ends_before_the_checkpoint_stops_the_projector() -> None:
    events = sample_log()
    store = Store.open(Path(":memory:"))
    project(store, ListLog(events))
    with pytest.raises(LogWentBackwards, match="ends at position 10"):
        project(store, ListLog(events[:10]), until=len(events) + 1)


def test_a_log_with_another_event_at_the_checkpoint_stops_the_projector() -> None:
    events = sample_log()
    store = Store.open(Path(":memory:"))
    project(store, ListLog(events[:20]))
    other = [*events[:19], altered(events[19], note="else"), *events[20:]]
    with pytest.raises(LogWentBackwards, match="created anew"):
        project(store, ListLog(other))


def _without(events: list[Event], i: int) -> list[Event]:
    return events[:i] + events[i + 1 :]


def test_a_gap_in_a_sessions_chain_stops_before_anything_of_the_batch_is_stored() -> None:
    events = in_log(recorded("e2611-pass", passed().drafts))
    store = Store.open(Path(":memory:"))
    project(store, ListLog(events[:5]))
    with pytest.raises(BrokenChain, match="event 9: follows event 7"):
        project(store, ListLog(events, _without(events, 7)))
    assert store.checkpoint().seq == 5


def test_a_changed_event_breaks_the_chain_at_the_next_one() -> None:
    events = in_log(recorded("e2611-pass", passed().drafts))
    events[3] = altered(events[3], tool_name="other")
    store = Store.open(Path(":memory:"))
    with pytest.raises(BrokenChain, match="event 5: its prevhash"):
        project(store, ListLog(events))


def test_wait_returns_when_the_position_is_stored_and_says_how_far_it_is_otherwise() -> None:
    events = sample_log()

    async def scenario() -> None:
        store = Store.open(Path(":memory:"))
        projector = Projector(store, ListLog(events))
        task = asyncio.create_task(projector.run())
        await projector.wait(len(events), timeout=20)
        assert store.checkpoint().seq == len(events)
        with pytest.raises(ProjectionBehind) as late:
            await projector.wait(len(events) + 1, timeout=0.05)
        assert late.value.at == len(events)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_who_waits_is_told_what_stopped_the_projector() -> None:
    events = in_log(recorded("e2611-pass", passed().drafts))

    async def scenario() -> None:
        projector = Projector(Store.open(Path(":memory:")), ListLog(events, _without(events, 3)))
        task = asyncio.create_task(projector.run())
        with pytest.raises(BrokenChain):
            await projector.wait(len(events), timeout=20)
        with pytest.raises(BrokenChain):
            await task

    asyncio.run(scenario())


def test_a_file_that_is_no_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "read.duckdb"
    path.write_bytes(b"not a database" * 1_000)
    with pytest.raises(BadStore, match="run `verdictlog rebuild`"):
        Store.open(path)


def test_a_failed_commit_leaves_neither_rows_nor_checkpoint() -> None:
    events = sample_log()
    store = Store.open(Path(":memory:"))
    project(store, ListLog(events[:30]))
    store.connection.execute("DROP TABLE verdicts")
    before = store.connection.execute("SELECT count(*) FROM claims").fetchall()
    with pytest.raises(Exception, match="verdicts"):
        project(store, ListLog(events))
    assert store.checkpoint().seq == 30
    assert store.connection.execute("SELECT count(*) FROM claims").fetchall() == before


def test_a_session_without_a_question_is_no_diagnosis() -> None:
    heads = {"e2611-pass": {"n": 1, "hash": "0" * 64}}
    anchored = ChainAnchored(heads=heads, merkle_root="0" * 64, last_seq=1)
    anchors = recorded("e2611-anchors", [Draft(anchored, "auditor", cause="anchor")])
    store = Store.open(Path(":memory:"))
    project(store, ListLog(in_log(anchors, recorded("e2611-pass", passed().drafts))))
    assert [row.session for row in sessions(store.connection)] == ["e2611-pass"]
    assert session_at(store.connection, "e2611-anchors") is None
    assert [row.session for row in sessions_at(store.connection, Moment(seq=1))] == []
    assert store.connection.execute("SELECT count(*) FROM events WHERE session = 'e2611-anchors'").fetchall() == [(1,)]
