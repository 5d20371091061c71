"""The recorded answers quote what the real tools return, except where a run is about a quote that is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from handlers.case import read_case
from handlers.demo.incident import generate
from handlers.demo.runs import ORDER, QUESTION, announced, scripts
from handlers.evidence.knowledge import Runbooks
from handlers.evidence.logs import LogFiles
from handlers.evidence.metrics import MetricFiles
from handlers.evidence.protocol import Tool

Refs = dict[tuple[str, str, str], str]


@pytest.fixture(scope="module")
def refs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Refs]:
    """For each run: (tool, invocation id, raw_path) -> text, as the tools return it."""
    incident = generate(tmp_path_factory.mktemp("incident"))

    def now() -> datetime:
        return datetime(2026, 3, 17, 11, 0, tzinfo=UTC)

    tools: dict[str, Tool] = {
        "query_logs": LogFiles([str(incident.logs)], now),
        "query_metrics": MetricFiles([str(incident.metrics)], now),
        "lookup_knowledge": Runbooks([str(incident.runbooks)]),
    }

    async def run(script: dict[str, Any]) -> Refs:
        found: Refs = {}
        for rnd in script["rounds"]:
            for call in rnd["tool_calls"]:
                result = await tools[call["name"]].invoke(call["arguments"])
                assert result.status == "success", (call, result.error)
                assert result.retrieval_details is not None
                for ref in result.retrieval_details.evidence_refs or ():
                    found[call["name"], call["call_id"], ref.raw_path] = ref.text
        return found

    return {name: asyncio.run(run(script)) for name, script in scripts().items()}


def _bindings(answer: dict[str, Any]) -> Iterator[dict[str, str]]:
    for item in (*answer["claims"], *answer["recommended_actions"]):
        yield from item["evidence_bindings"]


def _answers(script: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for rnd in script["rounds"]:
        yield rnd["executor_output"]
        yield from rnd.get("repairs", ())


def _misses(name: str, refs: dict[str, Refs]) -> list[str]:
    missed = []
    for answer in _answers(scripts()[name]):
        for binding in _bindings(answer):
            key = (binding["tool_name"], binding["source_invocation_id"], binding["raw_path"])
            assert key in refs[name], key
            if binding["evidence_excerpt"] not in refs[name][key].replace('\\"', '"'):
                missed.append(binding["evidence_excerpt"])
    return missed


@pytest.mark.parametrize("name", [name for name in ORDER if name != "tampered"])
def test_every_excerpt_stands_in_the_record_it_points_at(name: str, refs: dict[str, Refs]) -> None:
    assert _misses(name, refs) == []


def test_the_tampered_run_changes_one_number_in_every_attempt(refs: dict[str, Refs]) -> None:
    missed = _misses("tampered", refs)
    assert len(missed) == 3
    assert all(excerpt.startswith("duration: 9906.404 ms") for excerpt in missed)


def test_tampered_and_good_run_differ_in_that_number_alone() -> None:
    good, tampered = (scripts()[name]["rounds"][0]["executor_output"] for name in ("good", "tampered"))
    assert str(tampered).replace("9906.404", "9096.404") == str(good)


@pytest.mark.parametrize("name", ORDER)
def test_a_script_is_a_case_file_without_a_key_of_its_own(name: str) -> None:
    assert read_case(scripts()[name]).unknown_keys == ()


def test_runs_are_asked_the_demo_question_and_one_of_them_in_chinese() -> None:
    asked = {name: (script["lang"], script["question"]) for name, script in scripts().items()}
    assert [asked[name] for name in ORDER if asked[name][0] == "en"] == [("en", QUESTION)] * 4
    assert asked["extra-round"] == ("zh-CN", "payment-service 为什么超时？")


def test_announcements_name_every_run_and_end_in_what_the_verdict_allows() -> None:
    told = announced()
    assert tuple(told) == ORDER == tuple(scripts())
    ends = {"PASS": "answer", "LOW_CONFID": "disclaimer", "REJECT": "degraded"}
    assert all(run.route[-1] == ends[run.verdict] for run in told.values())
