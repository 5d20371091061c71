"""Recorded outputs as a tool, the clock, and the tools of a turn from its sources."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handlers.evidence.files import tools_for
from handlers.evidence.protocol import BadSource, ToolResult
from handlers.evidence.recorded import RecordedOutputs
from streams.contract import RetrievalDetails
from streams.events import Sources

NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)


def look(*paths: Path, **arguments: Any) -> ToolResult:
    return asyncio.run(RecordedOutputs("query_state", [str(path) for path in paths]).invoke(arguments))


def details(result: ToolResult) -> RetrievalDetails:
    assert result.retrieval_details is not None
    return result.retrieval_details


def refs(result: ToolResult) -> list[tuple[str, str]]:
    return [(ref.raw_path, ref.text) for ref in details(result).evidence_refs or ()]


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_each_line_can_be_quoted_and_headings_say_nothing(tmp_path: Path) -> None:
    result = look(written(tmp_path / "a.txt", "stdout:\nStatus:   Running\n\nReady: True\n\nstderr:\n"))
    assert refs(result) == [("lines[2]", "Status:   Running"), ("lines[4]", "Ready: True")]


def test_a_value_in_json_stands_with_the_name_it_belongs_to(tmp_path: Path) -> None:
    body = json.dumps(
        {"partitions_detected": True, "nodes": [{"node": "rabbit@0", "running": False, "memory": None}]}, indent=2
    )
    found = dict(refs(look(written(tmp_path / "a.json", body))))
    assert '"running": false' in found["lines[4-8]"]
    assert '"node": "rabbit@0"' in found["lines[4-8]"]
    assert '"memory": null' in found["lines[4-8]"]
    assert found["lines[2]"].strip() == '"partitions_detected": true,'


def test_json_on_one_long_line_is_shown_by_its_objects(tmp_path: Path) -> None:
    body = json.dumps({"items": [{"pod": f"payment-{at}", "phase": "Running", "x": None} for at in range(100)]})
    found = dict(refs(look(written(tmp_path / "a.json", body), terms=["payment-42"])))
    assert found == {"items[42]": 'items[42] pod="payment-42" phase="Running" x=null'}


@pytest.mark.parametrize(
    "text",
    [
        'Error from server (Forbidden): secrets is forbidden: User "x" cannot list resource "secrets"',
        "Command `kubectl top pods -A` failed with return code 1\nstdout:\n\nstderr:\nerror: Metrics API not available",
        "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout",
        "bash: kubectl: command not found",
        '{"error": "permission denied", "code": 403}',
    ],
)
def test_a_body_that_only_says_that_access_failed_is_an_error(tmp_path: Path, text: str) -> None:
    result = look(written(tmp_path / "a.txt", text + "\n"))
    assert result.status == "error"
    assert [path for path, _ in refs(result)] == ["error"]


@pytest.mark.parametrize(
    "text", ["ERROR: request timed out after 30000ms", "Environment variable DEPLOY_ENV is undefined"]
)
def test_a_line_that_speaks_of_a_problem_of_the_system_is_no_failed_access(tmp_path: Path, text: str) -> None:
    assert look(written(tmp_path / "a.txt", text)).status == "success"


@pytest.mark.parametrize("text", ["", "stdout:\n\nstderr:\n", "No resources found in payments namespace.\n", "[]\n"])
def test_a_body_that_says_nothing_was_found_is_no_data(tmp_path: Path, text: str) -> None:
    result = look(written(tmp_path / "a.txt", text))
    assert result.status == "no_data"
    ((path, summary),) = refs(result)
    assert path == "summary"
    assert summary.startswith("hits=0 window=all status=ok files=1 lines_scanned=0 ")
    assert summary.endswith("query={}")


def test_errors_and_empty_bodies_beside_data_are_told(tmp_path: Path) -> None:
    written(tmp_path / "1.txt", "Status: Pending\n")
    written(tmp_path / "2.txt", "Error from server (NotFound): pods not found\n")
    written(tmp_path / "3.txt", "")
    result = look(tmp_path)
    assert result.status == "success"
    assert refs(result) == [("1.txt:lines[1]", "Status: Pending")]
    dropped = details(result).dropped_reason or ""
    assert "2.txt holds a failed access" in dropped
    assert "3.txt is empty: no data" in dropped


def test_one_output_by_its_name_is_a_topic_of_its_own(tmp_path: Path) -> None:
    written(tmp_path / "1.txt", "Status: Pending\n")
    written(tmp_path / "2.txt", "Status: Running\n")
    result = look(tmp_path, file="2.txt")
    assert (result.topic, refs(result)) == ("2.txt", [("2.txt:lines[1]", "Status: Running")])
    assert look(tmp_path, file="9.txt").status == "error"


def test_nothing_beside_the_named_file_is_read(tmp_path: Path) -> None:
    written(tmp_path / "manifest.json", '{"status": "the answer"}')
    result = look(written(tmp_path / "1.txt", "Status: Pending\n"))
    assert "answer" not in details(result).model_dump_json()


def test_many_lines_are_cut_from_the_middle_and_severe_ones_stay(tmp_path: Path) -> None:
    lines = [f"item {at} ok" for at in range(900)]
    lines[450] = "item 450 failed: OOMKilled"
    result = look(written(tmp_path / "a.txt", "\n".join(lines)), limit=30)
    assert ("lines[451]", "item 450 failed: OOMKilled") in refs(result)
    assert (details(result).matched, details(result).returned, details(result).truncated) == (900, 30, True)
    assert "870 of 900 records not shown" in (details(result).dropped_reason or "")


def test_every_record_is_found_in_the_full_output(tmp_path: Path) -> None:
    tool = RecordedOutputs(
        "query_state", [str(written(tmp_path / "a.json", json.dumps({"a": {"b": 1, "c": 2}}, indent=1)))]
    )
    result = asyncio.run(tool.invoke({}))
    assert all(tool.resolve(result.output or b"", path) == text for path, text in refs(result))


@pytest.mark.scenario("TRC-3")
def test_the_clock_is_a_helper_and_says_utc() -> None:
    tool = tools_for(Sources(), lambda: NOW)["current_time"]
    assert tool.spec.evidence_kind == "helper"
    assert refs(asyncio.run(tool.invoke({}))) == [("result", "2026-03-17T11:00:00Z")]


def test_the_tools_of_a_turn_are_those_of_its_sources(tmp_path: Path) -> None:
    log = str(written(tmp_path / "a.log", "x\n"))
    runbook = str(written(tmp_path / "r.md", "# T\ntext\n"))
    sources = Sources(logs=(log,), metrics=(log,), runbooks=(runbook,), tools={"query_state": (log,)})
    assert list(tools_for(sources, lambda: NOW)) == [
        "query_logs", "query_metrics", "lookup_knowledge", "query_state", "current_time",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["query_logs", "current_time", "two words", ""])
def test_a_tool_s_name_must_be_new_and_plain(tmp_path: Path, name: str) -> None:
    log = str(written(tmp_path / "a.log", "x\n"))
    with pytest.raises(BadSource) as caught:
        tools_for(Sources(logs=(log,), tools={name: (log,)}), lambda: NOW)
    assert "\n" not in str(caught.value)
