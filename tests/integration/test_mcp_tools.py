"""Tools of a real MCP server, over stdio and over HTTP, as evidence tools."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from handlers.evidence.bench import ToolBench
from handlers.evidence.files import tools_for
from handlers.evidence.mcp import offered
from handlers.evidence.mcp_access import McpServer, read_flag
from handlers.evidence.protocol import BadSource, Tool, ToolResult
from handlers.redaction import Redactions
from handlers.settings import Settings
from streams.contract import ToolCall
from streams.events import QuestionAsked, Sources
from tests import mcp_server
from tests.integration.metric_servers import free_port
from tests.play import Stage

pytestmark = pytest.mark.anyio
SCRIPT = Path(mcp_server.__file__)
NOW = datetime(2026, 3, 17, 11, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(port)], stdout=subprocess.DEVNULL)
    ends = time.monotonic() + 30
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
            break
        except httpx.HTTPError:
            assert time.monotonic() < ends
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait(timeout=20)


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest, address: str) -> McpServer:
    return McpServer(url=address) if request.param == "http" else stdio()


def stdio(**more: Any) -> McpServer:
    return McpServer(command=sys.executable, args=[str(SCRIPT)], **more)


async def tools_of(server: McpServer) -> dict[str, Tool]:
    sources = Sources(mcp=await offered({"platform": server}))
    return tools_for(sources, lambda: NOW, None, {"platform": server})


def refs(result: ToolResult) -> list[tuple[str, str]]:
    assert result.retrieval_details is not None
    return [(ref.raw_path, ref.text) for ref in result.retrieval_details.evidence_refs or ()]


def note(result: ToolResult) -> str:
    assert result.retrieval_details is not None
    return result.retrieval_details.dropped_reason or ""


async def test_each_line_of_a_text_can_be_quoted_and_is_found_again(server: McpServer) -> None:
    tool = (await tools_of(server))["platform_pod_events"]
    result = await tool.invoke({"service": "payment-service"})
    assert refs(result) == [(f"lines[{k}]", line) for k, line in enumerate(mcp_server.EVENTS.split("\n"), 1)]
    assert result.output is not None
    assert [tool.resolve(result.output, path) for path, _ in refs(result)] == mcp_server.EVENTS.split("\n")


async def test_several_parts_are_told_apart_and_what_is_no_text_is_told(server: McpServer) -> None:
    result = await (await tools_of(server))["platform_pool_report"].invoke({})
    assert refs(result)[0] == ("content[0]:lines[1]", "payments-pool active=20 max=20 pending=37")
    assert refs(result)[1][0].startswith("content[1]:")
    assert '"leaked": 0' in refs(result)[1][1]
    assert "a part of type image/png with 8 characters cannot be quoted and is left out" in note(result)


async def test_a_failure_is_an_error_and_an_empty_answer_is_no_data(server: McpServer) -> None:
    tools = await tools_of(server)
    broken = await tools["platform_node_pressure"].invoke({})
    assert broken.status == "error"
    assert "nodes is forbidden" in (broken.error or "")
    assert [path for path, _ in refs(broken)] == ["error"]
    nothing = await tools["platform_deployments"].invoke({"service": "ledger-service"})
    assert nothing.status == "no_data"
    ((path, text),) = refs(nothing)
    assert path == "summary"
    assert "No resources found" in text
    assert '"service": "ledger-service"' in text


async def test_arguments_that_the_tool_does_not_take_are_its_error(server: McpServer) -> None:
    result = await (await tools_of(server))["platform_pod_events"].invoke({"wrong": 1})
    assert result.status == "error"
    assert "service" in (result.error or "")


async def test_a_server_that_died_is_an_error_and_the_next_call_starts_it_anew() -> None:
    tools = await tools_of(stdio())
    broken = await tools["platform_dies"].invoke({})
    assert broken.status == "error"
    assert "platform" in (broken.error or "")
    assert (await tools["platform_pod_events"].invoke({"service": "payment-service"})).status == "success"


async def test_a_call_that_takes_too_long_is_an_error_and_others_go_on() -> None:
    tools = await tools_of(stdio(timeout_s=1.5))
    slow = await tools["platform_slow_report"].invoke({})
    assert slow.error == "platform did not answer within 1.5 s"
    assert (await tools["platform_pod_events"].invoke({"service": "payment-service"})).status == "success"


async def test_a_call_takes_a_third_of_what_its_turn_has_left_and_no_more() -> None:
    stage = Stage()
    await stage.ask(QuestionAsked(question="Why does payment-service time out?", lang="en", deadline_s=6.0))
    bench = ToolBench(await tools_of(stdio()), stage.log, None, stage.clock)
    state, began = await stage.state(), time.monotonic()
    slow = await bench.invoke(ToolCall(call_id="m1", name="platform_slow_report", arguments={}), state)
    assert (slow.status, slow.evidence_kind) == ("error", "incident")
    assert (slow.error or "").startswith("platform did not answer within ")
    assert time.monotonic() - began < 3.5


@pytest.mark.parametrize(("lines", "length"), [(2_000, 1_000), (1, 2_000_000)])
async def test_an_answer_that_is_too_long_is_an_error_and_the_next_call_works(
    address: str, lines: int, length: int
) -> None:
    for server in (stdio(max_bytes=1 << 20), McpServer(url=address, max_bytes=1 << 20)):
        tools = await tools_of(server)
        large = await tools["platform_large_report"].invoke({"lines": lines, "length": length})
        assert large.status == "error"
        assert "longer than 1048576 bytes" in (large.error or "")
        assert (await tools["platform_pod_events"].invoke({"service": "payment-service"})).status == "success"


async def test_lines_that_are_no_messages_are_passed_over_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    tool = (await tools_of(stdio()))["platform_noisy"]
    assert refs(await tool.invoke({})) == [("lines[1]", "payments-pool active=20")]
    assert capfd.readouterr().err == ""


BAD_SCHEMA = """
import json, sys
print("listening", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        info = {"name": "p", "version": "1"}
        said = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    else:
        said = {"tools": [{"name": "pods", "inputSchema": ["service"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""


async def test_a_server_whose_list_is_none_is_named_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadSource) as refused:
        await offered({"platform": McpServer(command=sys.executable, args=["-c", BAD_SCHEMA])})
    told = str(refused.value)
    assert told.startswith("MCP server platform: ")
    assert "inputSchema: expected an object" in told
    assert "pydantic" not in told
    assert "\n" not in told
    with pytest.raises(BadSource, match="no messages of MCP: 'listening on port 9'"):
        await offered({"platform": McpServer(command="sh", args=["-c", "echo listening on port 9"])})
    assert capfd.readouterr().err == ""


async def test_a_tool_that_changes_something_is_offered_only_where_the_setting_names_it() -> None:
    names = await offered({"platform": stdio()})
    assert "platform_restart_pod" not in names
    assert names["platform_pod_events"].evidence_kind == "incident"
    named = await offered({"platform": stdio(tools={"restart_pod": "helper", "pod_events": "knowledge"}, others="off")})
    assert {name: tool.evidence_kind for name, tool in named.items()} == {
        "platform_restart_pod": "helper",
        "platform_pod_events": "knowledge",
    }


async def test_what_cannot_be_offered_is_refused_in_one_line() -> None:
    with pytest.raises(BadSource, match="has no tool nothing_such; it has: pod_events"):
        await offered({"platform": stdio(tools={"nothing_such": "incident"})})
    with pytest.raises(BadSource, match="platform cannot be opened"):
        await offered({"platform": McpServer(command="/no/such/program")})
    with pytest.raises(BadSource, match="platform cannot be opened"):
        await offered({"platform": McpServer(url="http://127.0.0.1:9/mcp")})


async def test_a_process_that_does_not_know_the_server_says_so() -> None:
    sources = Sources(mcp=await offered({"platform": stdio()}))
    result = await tools_for(sources, lambda: NOW)["platform_pod_events"].invoke({"service": "x"})
    assert result.error == "MCP server platform is not configured here: set [mcp.platform]"


async def test_what_such_a_tool_says_is_redacted_before_it_is_recorded() -> None:
    stage = Stage()
    bench = ToolBench(await tools_of(stdio()), stage.log, Redactions())
    await stage.ask(QuestionAsked(question="Why does payment-service time out?", lang="en"))
    invoked = await bench.invoke(ToolCall(call_id="m1", name="platform_credentials", arguments={}), await stage.state())
    assert invoked.redactions == {"password": 1}
    assert "Vq7-ledger-Xk" not in invoked.model_dump_json()


async def test_a_result_is_recorded_as_evidence_of_the_kind_that_the_setting_names() -> None:
    stage = Stage()
    await stage.ask(QuestionAsked(question="Why does payment-service time out?", lang="en"))
    bench = ToolBench(await tools_of(stdio(tools={"pod_events": "knowledge"})), stage.log, None)
    call = ToolCall(call_id="m1", name="platform_pod_events", arguments={"service": "payment-service"})
    invoked = await bench.invoke(call, await stage.state())
    assert (invoked.status, invoked.evidence_kind, invoked.output_format) == ("success", "knowledge", "records")


def test_flags_and_settings_name_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "verdictlog.toml").write_text(
        '[mcp.platform]\ncommand = "platform-mcp"\nargs = ["--read-only"]\n[mcp.platform.env]\nTOKEN = "t0k-secret"\n'
        '[mcp.platform.tools]\nrestart_pod = "off"\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    configured = Settings().mcp
    assert configured["platform"].args == ["--read-only"]
    assert "t0k-secret" not in repr(configured)
    assert read_flag("platform", configured) == ("platform", configured["platform"])
    name, server = read_flag("platform=other-mcp --port '1 2'", configured)
    assert (name, server.command, server.args, server.tools) == (
        "platform",
        "other-mcp",
        ["--port", "1 2"],
        {"restart_pod": "off"},
    )
    assert read_flag("grafana=https://grafana/mcp", {})[1].url == "https://grafana/mcp"


@pytest.mark.parametrize("flag", ["nobody", "=x", "a b=c", "x=", "x='", "x=http://me:pw@host/mcp"])
def test_a_flag_that_names_no_server_is_refused(flag: str) -> None:
    with pytest.raises(BadSource) as refused:
        read_flag(flag, {})
    assert "pw@" not in str(refused.value)
