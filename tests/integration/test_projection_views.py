"""Views and questions: documented, and their numbers are right."""

from __future__ import annotations

import asyncio
import datetime
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from projection_sessions import ListLog, sample_log

from projections import catalog
from projections.projector import Projector
from projections.store import Store


@cache
def store() -> Store:
    opened = Store.open(Path(":memory:"))
    events = sample_log()
    asyncio.run(Projector(opened, ListLog(events), duty=0).run(until=len(events)))
    return opened


def ask(name: str) -> list[tuple[Any, ...]]:
    question = next(q for q in catalog.questions() if q.name == name)
    return store().connection.execute(question.sql).fetchall()


def test_every_table_view_and_column_is_documented() -> None:
    undocumented = (
        store()
        .connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND schema_name = 'main' "
            "AND database_name = current_database() AND comment IS NULL AND table_name <> 'schema_version' "
            "UNION ALL SELECT table_name, '' FROM duckdb_tables() WHERE NOT internal AND NOT temporary AND comment IS NULL "
            "UNION ALL SELECT view_name, '' FROM duckdb_views() WHERE NOT internal AND NOT temporary AND comment IS NULL"
        )
        .fetchall()
    )
    assert undocumented == []


def test_no_documented_column_is_missing_from_its_table_or_view() -> None:
    for item in (*catalog.tables(), *catalog.views()):
        columns = [row[0] for row in store().connection.execute(f"DESCRIBE {item.name}").fetchall()]
        assert list(item.columns) == columns, item.name


@pytest.mark.scenario("SEV-3")
def test_no_statement_in_the_read_model_changes_or_drops_a_row() -> None:
    changing = re.compile(
        r"\b(UPDATE\s+\w+\s+SET|DELETE\s+FROM|TRUNCATE|MERGE\s+INTO|INSERT\s+OR\s+REPLACE|ON\s+CONFLICT)\b",
        re.IGNORECASE,
    )
    root = Path(catalog.__file__).parent
    sources = [*root.rglob("*.py"), *root.rglob("*.sql")]
    assert len(sources) > 40
    assert [str(p) for p in sources if changing.search(p.read_text("utf-8"))] == []


def test_every_question_is_asked_in_a_test() -> None:
    asked = set(re.findall(r'ask\("(\w+)"\)', Path(__file__).read_text("utf-8")))
    assert asked == {q.name for q in catalog.questions()}


def day(number: int) -> datetime.date:
    return datetime.date(2026, 11, 30) + datetime.timedelta(days=number)


def test_pass_rate_by_day() -> None:
    assert ask("pass_rate_by_day") == [(day(0), 2, 2, 1.0), (day(1), 2, 1, 0.5), (day(2), 1, 1, 1.0)]


def test_verdicts_by_day() -> None:
    assert ask("verdicts_by_day") == [
        (day(0), "PASS", 2),
        (day(1), "PASS", 1),
        (day(1), "REJECT", 1),
        (day(2), "PASS", 1),
    ]


def test_pass_rate_by_prompt_and_model() -> None:
    assert ask("pass_rate_by_prompt") == [("2" * 64, "model-0", 2, 2, 1.0), ("2" * 64, "model-1", 3, 2, 0.6667)]


def test_rules_that_fail_most() -> None:
    assert ask("rules_that_fail_most") == [("excerpt_not_found", 2, 2, 2), ("excerpt_number_differs", 2, 2, 2)]


def test_does_the_extra_round_help() -> None:
    assert ask("does_the_extra_round_help") == [("LOW_CONFID", "PASS", 1, 0.2), ("LOW_CONFID", "no judgement", 1, None)]


def test_does_repair_help() -> None:
    assert ask("does_repair_help") == [("accepted", 1, 1, 0.5)]


def test_do_the_channels_agree() -> None:
    rows = ask("do_the_channels_agree")
    assert [(r[0], r[1], r[2]) for r in rows] == [(False, False, 1), (True, False, 1), (True, True, 4)]


def test_cost_per_verdict() -> None:
    rows = {r[0]: r[1:] for r in ask("cost_per_verdict")}
    assert rows["PASS"][0] == 4
    assert rows["REJECT"] == (1, 110.0 + 440.0 + 220.0, 3.0, 13.0)
    assert rows["no judgement"][0] == 2


def test_slowest_tools() -> None:
    assert ask("slowest_tools") == [
        ("query_metrics", 9, 9, 900.0, 900.0, 0),
        ("query_logs", 9, 0, 40.0, 40.0, 30),
    ]


def test_invented_identifiers_by_model() -> None:
    assert ask("invented_identifiers_by_model") == [("model-1", 3, 1, 0.3333), ("model-0", 4, 0, 0.0)]


def test_views_show_the_story_of_a_repaired_turn() -> None:
    con = store().connection
    [round_] = con.execute(
        "SELECT attempts, first_gate_severity, gate_severity, decision, effective_verdict, route FROM v_round WHERE session = 'e2611-repaired'"
    ).fetchall()
    assert round_ == (2, "reject", "none", "accepted", "PASS", "answer")
    claims = con.execute(
        "SELECT attempt, claim_id, bindings, bindings_passed, bindings_failed, verification FROM v_claim "
        "WHERE session = 'e2611-repaired' ORDER BY attempt, claim_id"
    ).fetchall()
    assert claims == [
        (0, "c1", 1, 0, 1, "direct_evidence"),
        (0, "c2", 2, 2, 0, "direct_evidence"),
        (1, "c1", 1, 1, 0, "direct_evidence"),
        (1, "c2", 2, 2, 0, "direct_evidence"),
    ]
    [failed] = con.execute(
        "SELECT evidence_excerpt, failed_rules, nearest_difference FROM v_binding WHERE session = 'e2611-repaired' AND status = 'fail'"
    ).fetchall()
    assert failed == ("request timed out after 3000ms", ["excerpt_not_found", "excerpt_number_differs"], "digit")
    assert con.execute("SELECT DISTINCT model FROM v_failed_rule WHERE session = 'e2611-repaired'").fetchall() == [
        ("model-1",)
    ]


def test_a_turn_that_was_interrupted_has_no_verdict() -> None:
    rows = store().connection.execute(
        "SELECT turn, effective_verdict, kind, fallback_reason FROM v_turn WHERE session IN ('e2611-late', 'e2611-two-turns') ORDER BY session, turn"
    )
    assert rows.fetchall() == [
        (1, None, "degraded", "deadline"),
        (1, "PASS", "answer", None),
        (2, None, "degraded", "cancelled"),
    ]
    session = store().connection.execute(
        "SELECT turns, open_turns, effective_verdict, kind FROM v_session WHERE session = 'e2611-two-turns'"
    )
    assert session.fetchall() == [(2, 0, None, "degraded")]


def test_channel_history_names_writer_event_and_when_it_was_replaced() -> None:
    rows = store().connection.execute(
        "SELECT channel, actor, latest, replaced_at IS NULL, value->>'$.score' FROM v_channel_history "
        "WHERE session = 'e2611-repaired' ORDER BY channel, n"
    )
    assert rows.fetchall() == [
        ("rule_evaluation", "evaluator", False, False, "0.4"),
        ("rule_evaluation", "evaluator", True, True, "0.8"),
        ("verifier_evaluation", "verifier", True, True, None),
    ]
    third = store().connection.execute(
        "SELECT actor, value->>'$.note' FROM v_channel_history WHERE channel = 'team_review'"
    )
    assert third.fetchall() == [("sre", "fine \x1b[0m")]
