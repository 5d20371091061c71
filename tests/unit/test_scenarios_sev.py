"""self_evaluation: two channels, each its own events (SEV). On the log, in reports and in the read model."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from handlers.case import read_case
from handlers.report import turn_report
from projections.projector import Projector
from projections.sessions import session_at, sessions
from projections.store import Store
from streams.contract import GateResult, RuleEvaluation, VerifierEvaluation
from streams.envelope import Draft, Event
from streams.events import FactsVerified, Payload, RulesScored
from streams.session import SessionState, evolve, initial
from tests.ledger_case import case, checked, good, later, miscopied, rnd, unfounded, unplaced, verdict
from tests.play import Stage, judged, play, question_of

ROOT = Path(__file__).parents[2]
CHANNELS = ("rule_evaluation", "verifier_evaluation")
TWO_ROUNDS = case(
    rnd(unplaced(), unfounded(), repairs=[unplaced()]), later(rnd(good(), checked(c2="no_evidence", said="LOW_CONFID")))
)


def played(raw: dict[str, Any]) -> SessionState:
    return asyncio.run(play(raw, deliveries=2))


def states(state: SessionState) -> list[tuple[Event, dict[str, Any] | None]]:
    """After each event: that event, and the object."""
    found, now = [], initial(state.session)
    for event in state.events:
        now = evolve(now, event)
        found.append((event, now.self_evaluation))
    return found


@pytest.mark.scenario("SEV-1", "SEV-2", "SEV-3")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_each_event_changes_its_own_channel_and_no_other(lang: Any) -> None:
    raw = case(rnd(unplaced(lang), unfounded(lang)), later(rnd(good(lang), checked(lang))), lang=lang)
    before: dict[str, Any] | None = None
    written = 0
    for event, after in states(played(raw)):
        name = {"rules-scored": "rule_evaluation", "facts-verified": "verifier_evaluation"}.get(event.type)
        if name is None:
            assert after == before
        else:
            written += 1
            assert after is not None
            assert set(after) == {*(before or {}), name}
            assert {k: v for k, v in after.items() if k != name} == {
                k: v for k, v in (before or {}).items() if k != name
            }
            assert after[name] == event.data.evaluation.model_dump(mode="json")  # type: ignore[attr-defined]
        before = after
    assert written == 4


@pytest.mark.scenario("SEV-3")
def test_before_the_first_channel_event_it_is_null_and_then_has_only_what_was_written() -> None:
    seen = [None if value is None else tuple(sorted(value)) for _, value in states(played(TWO_ROUNDS))]
    assert list(dict.fromkeys(seen)) == [None, ("rule_evaluation",), CHANNELS]


@pytest.mark.scenario("SEV-1", "SEV-2")
def test_the_report_shows_the_last_value_of_each_channel() -> None:
    report = judged(TWO_ROUNDS)
    assert report["self_evaluation"] == {
        "rule_evaluation": report["rule_evaluation"],
        "verifier_evaluation": report["verifier_evaluation"],
    }
    state = played(TWO_ROUNDS)
    values = [entry.value for entry in state.channels if entry.channel == "verifier_evaluation"]
    assert len(values) == 2
    assert state.self_evaluation is not None
    assert state.self_evaluation["verifier_evaluation"] == values[1] != values[0]


@pytest.mark.scenario("SEV-3")
def test_no_statement_in_the_project_writes_the_whole_object() -> None:
    sources = [
        path
        for folder in ("handlers", "streams", "projections")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".sql"}
    ]
    assert len(sources) > 80
    writes = re.compile(
        r"\bUPDATE\s+\w*\s*(?:SET)?[^;]*self_evaluation|self_evaluation\"?\]?\s*(?<![=!<>])=(?!=)\s*\{|INSERT[^;]*self_evaluation",
        re.IGNORECASE,
    )
    assert [path.name for path in sources if writes.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.scenario("SEV-6")
@pytest.mark.parametrize(
    ("reply", "status"),
    [(good(), "valid"), (f"```json\n{json.dumps(good())}\n```", "repaired_wrapper"), ("It is 3s.", "malformed")],
)
def test_the_stored_judgement_holds_what_it_rests_on(reply: Any, status: str) -> None:
    state = played(case(rnd(reply, checked())))
    given = next(e.data.input for e in state.events if e.type == "facts-verified")  # type: ignore[attr-defined]
    stored = (state.self_evaluation or {})["verifier_evaluation"]
    assert stored["traceability_version"]
    assert [i["trace_ref"] for i in stored["tool_trace_summary"]] == ["trace-101"]
    assert [{k: v for k, v in i.items() if v is not None} for i in stored["tool_trace_summary"]] == given[
        "tool_trace_summary"
    ]
    assert stored["gatekeeper_result"] == turn_report(state, state.turns[-1])["gatekeeper_result"]
    assert stored["executor_output_parse_status"] == status
    if status == "malformed":
        assert stored["executor_structured_output"] is None
        assert stored["executor_final_answer"] == reply
    else:
        assert stored["executor_structured_output"]["claims"] == good()["claims"]


# --- in the read model ---

CASES = {
    "e2611-rounds": TWO_ROUNDS,
    "e2611-borrowed": case(rnd(good(), unfounded())),
    "e2611-reject": case(rnd(miscopied("zh-CN"), checked("zh-CN")), lang="zh-CN"),
    "e2611-fallback": case(rnd(unplaced(), checked()), on_exhausted="fallback"),
    "e2611-failed": case(rnd("", checked())),
    "e2611-failed-later": case(rnd(good(), unfounded()), later(rnd("", checked()))),
    "e2611-prose": case(rnd("It is 3s.", verdict("LOW_CONFID")), later(rnd("It is 3s.", ["no", "no"]))),
}


async def sessions_played() -> Stage:
    stage = Stage()
    for name, raw in CASES.items():
        await stage.ask(await question_of(stage, read_case(raw)), name)
    await asyncio.gather(*(stage.run(name) for name in CASES))
    return stage


async def projected(stage: Stage, path: Path, batch: int, again: bool = False) -> Store:
    """The read model of a stage's log; `again`: every event once more, by a projector that starts anew."""
    store = Store.open(path)
    last = await stage.log.last_seq()
    for until in (last // 3, last) if again else (last,):
        await Projector(store, stage.log, batch=batch, duty=0).run(until=until)
    return store


def rows(store: Store) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = store.connection.execute(
        "SELECT session, self_evaluation::VARCHAR, effective_verdict FROM diagnosis_session ORDER BY session"
    ).fetchall()
    return found


@pytest.mark.scenario("SEV-3", "SEV-4", "SEV-5")
def test_the_read_model_has_the_objects_of_the_reports_however_it_is_built(tmp_path: Path) -> None:
    async def run() -> None:
        stage = await sessions_played()
        path = tmp_path / "read.duckdb"
        store = await projected(stage, path, 3, again=True)
        reports = {}
        for name in CASES:
            state = await stage.state(name)
            reports[name] = turn_report(state, state.turns[-1])
        assert {row.session: row.self_evaluation for row in sessions(store.connection)} == {
            name: report["self_evaluation"] for name, report in reports.items()
        }
        assert {row.session: row.effective_verdict for row in sessions(store.connection)} == {
            name: report["effective_verdict"] for name, report in reports.items()
        }
        before = rows(store)
        store.close()
        path.unlink()
        rebuilt = await projected(stage, path, 1000)
        assert rows(rebuilt) == before, "the same bytes"
        rebuilt.close()

    asyncio.run(run())


def one_channel(store: Store, channel: str) -> list[Any]:
    return store.connection.execute(
        "SELECT n, value::VARCHAR FROM channels WHERE channel = ? ORDER BY session, n", [channel]
    ).fetchall()


@pytest.mark.scenario("SEV-3")
def test_a_channel_event_appends_rows_of_its_channel_only(tmp_path: Path) -> None:
    async def run() -> None:
        stage = Stage()
        state = await play(TWO_ROUNDS, stage)
        store = Store.open(tmp_path / "read.duckdb")
        before: dict[str, list[Any]] = {name: [] for name in CHANNELS}
        appended = dict.fromkeys(CHANNELS, 0)
        for event in state.events:
            await Projector(store, stage.log, batch=1, duty=0).run(until=event.seq)
            after = {name: one_channel(store, name) for name in CHANNELS}
            own = {"rules-scored": "rule_evaluation", "facts-verified": "verifier_evaluation"}.get(event.type)
            for name in CHANNELS:
                assert after[name][: len(before[name])] == before[name], "earlier rows stay as they were"
                assert len(after[name]) - len(before[name]) == (name == own)
            if own is not None:
                appended[own] += 1
            before = after
        assert appended == {"rule_evaluation": 3, "verifier_evaluation": 2}
        store.close()

    asyncio.run(run())


SCORED = RuleEvaluation.model_validate(
    {"score": 0.5, "coverage": 1.0, "precision": 1.0, "diversity": 0.0, "yield": 0.0, "weights": {}, "inputs": {}}
)
JUDGED = VerifierEvaluation(
    verdict="PASS",
    groundedness_score=1.0,
    critical_fact_count=1,
    derived_verdict="PASS",
    effective_verdict="PASS",
    executor_output_parse_status="valid",
    gatekeeper_result=GateResult(status="pass", severity="none"),
)
WRITTEN: list[tuple[str, Payload]] = [
    ("evaluator", RulesScored(evaluation=SCORED)),
    ("verifier", FactsVerified(input={}, evaluation=JUDGED)),
]


@pytest.mark.scenario("SEV-4")
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_either_order_gives_the_same_object(tmp_path: Path, batch: int) -> None:
    async def run() -> list[Any]:
        stage = Stage()
        for place, order in enumerate(itertools.permutations(WRITTEN)):
            session = f"e2611-order{place}"
            await stage.ask(await question_of(stage, read_case(CASES["e2611-reject"])), session)
            for index, (actor, payload) in enumerate(order):
                state = await stage.state(session)
                draft = Draft(payload, actor, 1, cause=str(index))
                await stage.log.append(session, [draft], state.head, stage.clock())
        store = await projected(stage, tmp_path / "read.duckdb", batch, again=True)
        found = [session_at(store.connection, f"e2611-order{place}") for place in range(2)]
        folded = [(await stage.state(f"e2611-order{place}")).self_evaluation for place in range(2)]
        assert [row and row.self_evaluation for row in found] == folded
        written = rows(store)
        assert written[0][1] == written[1][1]
        return folded

    one, other = asyncio.run(run())
    assert one == other
    assert one == {
        "rule_evaluation": SCORED.model_dump(mode="json"),
        "verifier_evaluation": JUDGED.model_dump(mode="json"),
    }
