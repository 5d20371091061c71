"""A real MCP server for tests: what a platform team would offer about payment-service. `python mcp_server.py [PORT]`."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ImageContent, TextContent, ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
EVENTS = "\n".join(
    f"2026-03-17T10:{9 + k:02d}:00Z Warning Unhealthy pod/payment-service-{k} readiness probe failed: timeout after 30s"
    for k in range(3)
)
server = MCPServer("platform", log_level="ERROR")


@server.tool(annotations=READS, structured_output=False)
def pod_events(service: str) -> str:
    """Events of a service's pods, a line each."""
    return EVENTS.replace("payment-service", service)


@server.tool(annotations=READS, structured_output=False)
def pool_report() -> list[TextContent | ImageContent]:
    """The state of connection pools, and a picture of it."""
    return [
        TextContent(type="text", text="payments-pool active=20 max=20 pending=37"),
        ImageContent(type="image", data="aGVsbG8=", mime_type="image/png"),
        TextContent(type="text", text='{\n "pool": "payments-pool",\n "leaked": 0\n}'),
    ]


@server.tool(annotations=READS, structured_output=False)
def deployments(service: str) -> str:
    """Deployments of a service."""
    return "No resources found in payments namespace."


@server.tool(annotations=READS, structured_output=False)
def node_pressure() -> str:
    """Pressure conditions of nodes."""
    raise ToolError("Error from server (Forbidden): nodes is forbidden")


@server.tool(annotations=READS, structured_output=False)
async def slow_report() -> str:
    """Answers late."""
    await asyncio.sleep(5)
    return "late"


@server.tool(annotations=READS, structured_output=False)
def large_report(lines: int, length: int) -> str:
    """Gives so many lines of such a length."""
    return "\n".join([f"payments-pool active=20 {'x' * length}"] * lines)


@server.tool(annotations=READS, structured_output=False)
def noisy() -> str:
    """Prints what is no message, then answers."""
    os.write(1, b"starting the pool report...\n")
    return "payments-pool active=20"


@server.tool(annotations=READS, structured_output=False)
def dies() -> str:
    """Takes the server down."""
    os._exit(3)


@server.tool(annotations=READS, structured_output=False)
def credentials() -> str:
    """Holds a secret."""
    return "payment-service connects with password=Vq7-ledger-Xk to ledger-db"


@server.tool(annotations=ToolAnnotations(read_only_hint=False), structured_output=False)
def restart_pod(pod: str) -> str:
    """Restarts a pod."""
    return f"restarted {pod}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(server.run_streamable_http_async(host="127.0.0.1", port=int(sys.argv[1])))
    else:
        asyncio.run(server.run_stdio_async())
