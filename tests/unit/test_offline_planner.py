"""The Planner without a model: tools and words from the question alone, wider in a second round."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handlers.agents.offline import OfflineAgents
from handlers.agents.protocol import PlanBrief
from handlers.evidence.files import tools_for
from handlers.evidence.protocol import ToolSpec
from handlers.planner import read_plan
from streams.events import Sources

NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)


@pytest.fixture
def specs(tmp_path: Path) -> tuple[ToolSpec, ...]:
    log, runbook = tmp_path / "a.log", tmp_path / "r.md"
    log.write_text("x\n")
    runbook.write_text("# T\ntext\n")
    states = [tmp_path / f"state-{at}.txt" for at in range(3)]
    for state in states:
        state.write_text("Status: Running\n")
    sources = Sources(
        logs=(str(log),),
        metrics=(str(log),),
        runbooks=(str(runbook),),
        tools={"query_state": tuple(str(state) for state in states)},
    )
    return tuple(tool.spec for tool in tools_for(sources, lambda: NOW).values())


def plan(
    question: str, specs: tuple[ToolSpec, ...], number: int = 1, context: dict[str, Any] | None = None
) -> dict[str, Any]:
    brief = PlanBrief(question, "zh-CN", number, specs, "n", 300.0, context)
    reply = asyncio.run(OfflineAgents().plan(brief))
    assert reply.model == "offline"
    read = json.loads(reply.text)
    assert len(read_plan(reply.text).steps) == len(read["steps"])
    return read


def steps(found: dict[str, Any], tool: str) -> list[dict[str, Any]]:
    return [step["arguments"] for step in found["steps"] if step["tool_name"] == tool]


@pytest.mark.parametrize("question", ["Why does payment-service time out?", "payment-service 为什么超时？"])
def test_both_languages_come_to_the_same_words(specs: tuple[ToolSpec, ...], question: str) -> None:
    first = steps(plan(question, specs), "query_logs")[0]["terms"]
    assert {"timeout", "timed out", "超时"} <= set(first)


def test_every_evidence_tool_is_used_and_no_helper(specs: tuple[ToolSpec, ...]) -> None:
    found = plan("Why does payment-service time out?", specs)
    assert {step["tool_name"] for step in found["steps"]} == {
        "query_logs",
        "query_metrics",
        "lookup_knowledge",
        "query_state",
    }
    assert all(step["why"] for step in found["steps"])


def test_recorded_outputs_are_looked_at_one_by_one(specs: tuple[ToolSpec, ...]) -> None:
    assert steps(plan("what is wrong", specs), "query_state") == [{"file": f"state-{at}.txt"} for at in range(3)]


def test_a_text_the_question_wants_to_see_is_searched_for_and_nothing_else(specs: tuple[ToolSpec, ...]) -> None:
    found = steps(plan('show the last logs that contain "ORA-00060" from payment-service', specs), "query_logs")
    assert found == [{"terms": ["ORA-00060"]}]


@pytest.mark.scenario("EXE-7")
@pytest.mark.parametrize(
    ("question", "narrow"),
    [
        ("is payment-service out of connections?", True), ("payment-service 是否正常？", True), ("确认 HikariPoolSaturated 告警", True),
        ("Why does payment-service time out?", False), ("payment-service 为什么超时？", False), ("Is it down, and what is the root cause?", False),
    ],
)  # fmt: skip
def test_a_question_for_one_thing_is_narrow(specs: tuple[ToolSpec, ...], question: str, narrow: bool) -> None:
    assert plan(question, specs)["narrow"] is narrow


def test_a_second_round_looks_wider_and_repeats_no_call(specs: tuple[ToolSpec, ...]) -> None:
    first = plan("Why does payment-service time out?", specs)
    context = {"critical_gaps": ["the rollback of ledger-service"], "tried": first["steps"]}
    second = plan("Why does payment-service time out?", specs, 2, context)
    made = [(step["tool_name"], json.dumps(step["arguments"])) for step in (*first["steps"], *second["steps"])]
    assert second["steps"]
    assert len(made) == len(set(made))
    assert "rollback" in steps(second, "query_logs")[0]["terms"]


def test_a_tool_of_others_is_called_only_if_its_arguments_can_be_given() -> None:
    search = ToolSpec(
        "search", "", {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    )
    needy = ToolSpec("needy", "", {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]})
    found = plan("why is it slow?", (search, needy))
    assert [(step["tool_name"], step["arguments"]) for step in found["steps"]] == [
        ("search", {"query": "why is it slow?"})
    ]


@pytest.mark.parametrize(
    "wrapped", ["{}", "```json\n{}\n```", "<think>which tool has the pool?</think>\n{}", "\ufeff{}"], ids=repr
)
def test_a_plan_is_read_out_of_what_models_put_around_it(wrapped: str) -> None:
    plan = json.dumps({"steps": [{"tool_name": "query_logs", "arguments": {"terms": ["timed out"]}}]})
    assert [step.tool_name for step in read_plan(wrapped.replace("{}", plan)).steps] == ["query_logs"]
