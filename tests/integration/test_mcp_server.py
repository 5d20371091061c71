"""`verdictlog mcp` with a real client over stdio: another agent has its answer judged before it speaks."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from handlers.demo.incident import generate
from tests.play import judged

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "infra/examples/case.json"


@asynccontextmanager
async def connected(folder: Path, *flags: str) -> AsyncIterator[Client]:
    command = [sys.executable, "-c", "from handlers.cli.main import main; main()"]
    arguments = [*command[1:], "mcp", "--data", str(folder / "data"), "--lang", "en", *flags]
    async with Client(StdioServerParameters(command=command[0], args=arguments, cwd=folder)) as client:
        yield client


async def said(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def case() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return read


async def test_an_agent_asks_has_answers_judged_and_looks_at_sessions(tmp_path: Path) -> None:
    incident = generate(tmp_path / "incident")
    flags = ("--logs", str(incident.logs), "--metrics", str(incident.metrics), "--runbooks", str(incident.runbooks))
    async with connected(tmp_path, *flags) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {"ask", "judge_answer", "show_session"}
        assert listed["show_session"].annotations is not None
        assert listed["show_session"].annotations.read_only_hint is True

        good = await said(client, "judge_answer", case=case())
        alone = await asyncio.to_thread(judged, case())
        for key in ("effective_verdict", "groundedness_score", "gatekeeper_result", "route"):
            assert good[key] == alone[key]

        forged = case()
        binding = forged["rounds"][0]["executor_output"]["claims"][0]["evidence_bindings"][0]
        binding["evidence_excerpt"] = binding["evidence_excerpt"].replace("last=20", "last=19")
        report = await said(client, "judge_answer", case=forged)
        assert report["effective_verdict"] == "REJECT"
        assert "evidence.excerpt_mismatch" in report["gatekeeper_result"]["failed_rules"]

        shown = await said(client, "show_session", session=good["session"])
        assert shown["turns"][-1]["effective_verdict"] == good["effective_verdict"]
        early = await said(client, "show_session", session=good["session"], at=1)
        assert early["n"] == 1

        asked = await said(client, "ask", question="Why does payment-service time out? password=Vq7-ledger-Xk")
        assert asked["effective_verdict"] in {"PASS", "LOW_CONFID"}
        assert asked["response"]["citations"]
        recorded = await said(client, "show_session", session=asked["session"])
        assert "Vq7-ledger-Xk" not in json.dumps(recorded)


async def test_what_goes_wrong_in_a_call_is_that_calls_error_and_the_next_one_works(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        for tool, arguments, told in (
            ("judge_answer", {"case": {"question": "Why?"}}, "rounds"),
            ("judge_answer", {"case": {**case(), "rounds": []}}, "rounds"),
            ("judge_answer", case(), "case: is missing; give the whole object as one argument of that name"),
            ("judge_answer", {"case": "why?"}, "file: not JSON"),
            ("show_session", {"session": "e2611-nobody"}, "e2611-nobody"),
            ("ask", {"question": "  "}, "question"),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error, tool
            assert told in str(result.content)
        assert (await said(client, "judge_answer", case=case()))["effective_verdict"]
        assert (await said(client, "judge_answer", case=json.dumps(case())))["effective_verdict"]


@asynccontextmanager
async def piped(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "handlers.cli.main", "mcp", "--data", str(folder / "data")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 << 20,
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    first = await replied(process, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}))
    assert first["id"] == 0
    send(process, '{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 30) == 0


def send(process: asyncio.subprocess.Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")


async def replied(process: asyncio.subprocess.Process, line: str | None = None) -> dict[str, Any]:
    if line is not None:
        send(process, line)
    assert process.stdout is not None
    read: dict[str, Any] = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
    return read


def call(number: Any, tool: str, **arguments: Any) -> str:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def told(reply: dict[str, Any]) -> str:
    assert reply["result"]["isError"] is True
    ((text,),) = ([part["text"]] for part in reply["result"]["content"])
    assert "\n" not in text
    return str(text)


async def test_every_request_gets_a_reply_also_one_that_cannot_be_read(tmp_path: Path) -> None:
    broken = case()
    broken["question"] += " \ud800"
    async with piped(tmp_path) as server:
        assert "half of a character" in told(await replied(server, call(1, "judge_answer", case=broken)))
        assert "unicode" in told(await replied(server, call(2, "judge_answer", case=json.dumps(broken))))
        assert "e2611" in told(await replied(server, call(3, "show_session", session="e2611-nobody")))
        for line, number in (
            ('{"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": "\\ud800"}', 4),
            ('{"jsonrpc": "2.0", "id": 5, "method": 6}', 5),
            ('{"jsonrpc": "2.0", "id": "\\udfff", "method": "tools/list"}', None),
            ("{not JSON", None),
            ("[]", None),
        ):
            reply = await replied(server, line)
            assert (reply["id"], "error" in reply) == (number, True), line
        send(server, '{"jsonrpc": "2.0", "method": "notifications/\\ud800"}')  # nobody waits for an answer to that
        send(server, "")
        last = await replied(server, call(9, "judge_answer", case=case()))
        assert last["id"] == 9
        assert last["result"]["structuredContent"]["effective_verdict"]


async def test_a_large_case_does_not_keep_others_waiting(tmp_path: Path) -> None:
    large = case()
    records = large["rounds"][0]["tool_invocations"][0]["retrieval_details"]["evidence_refs"]
    records += [{"raw_path": f"more[{k}]", "text": f"{k} " + "payments-pool active=20 " * 10} for k in range(40_000)]
    async with piped(tmp_path) as server:
        await replied(server, call(1, "show_session", session="e2611-nobody"))
        send(server, call(2, "judge_answer", case=large))
        await asyncio.sleep(1.0)
        order, slowest = [], 0.0
        loop = asyncio.get_running_loop()
        while 2 not in order:
            began = loop.time()
            send(server, json.dumps({"jsonrpc": "2.0", "id": len(order) + 10, "method": "ping"}))
            order.append((await replied(server))["id"])
            slowest = max(slowest, loop.time() - began)
            await asyncio.sleep(0.05)
        assert len(order) > 3
        assert slowest < 2.0
