"""The evidence tools of a turn, from the paths and addresses that were named for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from handlers.evidence.access import Access, Accesses, is_address, kind_of
from handlers.evidence.clock import CurrentTime
from handlers.evidence.knowledge import Runbooks
from handlers.evidence.logs import LogFiles
from handlers.evidence.mcp_access import McpServer
from handlers.evidence.metrics import MetricFiles
from handlers.evidence.protocol import BadSource, Tool
from handlers.evidence.recorded import RecordedOutputs
from streams.events import ForeignTool, Sources

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


def tools_for(
    sources: Sources,
    now: Callable[[], datetime],
    accesses: Accesses | None = None,
    servers: Mapping[str, McpServer] | None = None,
) -> dict[str, Tool]:
    """The tools by name, `current_time` always among them. Raises BadSource: one line, what, where, what to do.

    Files are one tool, `query_logs` or `query_metrics`, and each server one of its own, which has that name where
    there is nothing else of its sort. `accesses`: credentials and bounds by kind of backend; `servers`: how MCP
    servers are reached, by name.
    """
    tools: dict[str, Tool] = {}
    for name, paths in (("query_logs", sources.logs), ("query_metrics", sources.metrics)):
        files = tuple(path for path in paths if not is_address(path))
        if files:
            tools[name] = LogFiles(files, now) if name == "query_logs" else MetricFiles(files, now)
        for address in dict.fromkeys(path for path in paths if is_address(path)):
            own = _free(name, tools)
            tools[own] = _server(own, name, address, now, accesses or {})
    if sources.runbooks:
        tools["lookup_knowledge"] = Runbooks(sources.runbooks)
    for name, paths in sources.tools.items():
        if not _NAME.fullmatch(name):
            raise BadSource(name, "is no name for a tool; use letters, digits, `_`, `.`, `-`, a letter first")
        if name in tools or name == "current_time":
            raise BadSource(name, "this tool is there already; choose another name")
        tools[name] = RecordedOutputs(name, paths)
    tools["current_time"] = CurrentTime(now)
    if sources.mcp:
        _add_foreign(tools, sources.mcp, servers or {})
    return tools


def _add_foreign(tools: dict[str, Tool], foreign: Mapping[str, ForeignTool], servers: Mapping[str, McpServer]) -> None:
    from handlers.evidence.mcp import McpTool
    from handlers.evidence.mcp_connection import McpConnection

    connections = {name: McpConnection(name, server) for name, server in servers.items()}
    for name, tool in foreign.items():
        if name in tools:
            raise BadSource(name, "this tool is there already; choose another name for the MCP server")
        tools[name] = McpTool(name, tool, connections.get(tool.server))


def _free(name: str, taken: dict[str, Tool]) -> str:
    return next(own for k in range(1, len(taken) + 2) if (own := name if k == 1 else f"{name}_{k}") not in taken)


def _server(own: str, name: str, source: str, now: Callable[[], datetime], accesses: Accesses) -> Tool:
    # Clients of servers take a while to import, and most turns read files.
    from handlers.evidence.backend import Backend

    kind, address = kind_of(source)
    access = accesses.get(kind) or Access()
    if (kind == "prometheus") != (name == "query_metrics"):
        wanted = "http(s)://..." if name == "query_metrics" else "loki+http(s)://... or vlogs+http(s)://..."
        raise BadSource(address, f"is no address for {name}; write {wanted}")
    backend = Backend(kind, address, access)
    if kind == "prometheus":
        from handlers.evidence.prometheus import PrometheusMetrics

        return PrometheusMetrics(backend, now, own)
    from handlers.evidence.log_servers import ServerLogs
    from handlers.evidence.loki import Loki
    from handlers.evidence.victorialogs import VictoriaLogs

    return ServerLogs(backend, Loki(backend) if kind == "loki" else VictoriaLogs(backend), now, own)
