"""What the bench adds to a tool's own result."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from handlers.evidence.bench import ToolBench
from handlers.evidence.files import tools_for
from streams.contract import ToolCall
from streams.events import Sources, ToolInvoked
from tests.play import Stage

LINE = "2026-03-17T10:00:01Z ERROR payment-service payments-pool - request timed out after 30000ms."


def called(log: Path, **arguments: Any) -> ToolInvoked:
    stage = Stage()
    bench = ToolBench(tools_for(Sources(logs=(str(log),)), stage.clock), stage.log, None)

    async def run() -> ToolInvoked:
        return await bench.invoke(ToolCall(call_id="101", name="query_logs", arguments=arguments), await stage.state())

    return asyncio.run(run())


def test_a_call_with_an_argument_that_the_tool_does_not_have_runs_and_is_told_so(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text(f"{LINE}\n", encoding="utf-8")
    plain, extra = called(log, terms=["timed out"]), called(log, terms=["timed out"], query="pool")
    assert plain.retrieval_details is not None and extra.retrieval_details is not None
    assert extra.retrieval_details.evidence_refs == plain.retrieval_details.evidence_refs
    assert plain.retrieval_details.dropped_reason is None
    assert (extra.retrieval_details.dropped_reason or "").startswith("not used: query; this tool has only terms, ")
    assert extra.retrieval_details.truncated is False
    failed = called(log, since="yesterday-ish", query="pool")
    assert (failed.status, failed.retrieval_details and failed.retrieval_details.dropped_reason) == ("error", None)
