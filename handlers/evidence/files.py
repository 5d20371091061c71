"""The evidence tools of a turn, from the paths that were named for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from handlers.evidence.clock import CurrentTime
from handlers.evidence.knowledge import Runbooks
from handlers.evidence.logs import LogFiles
from handlers.evidence.metrics import MetricFiles
from handlers.evidence.protocol import BadSource, Tool
from handlers.evidence.recorded import RecordedOutputs
from streams.events import Sources

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


def tools_for(sources: Sources, now: Callable[[], datetime]) -> dict[str, Tool]:
    """The tools by name, `current_time` always among them. Raises BadSource: one line, what, where, what to do."""
    tools: dict[str, Tool] = {}
    if sources.logs:
        tools["query_logs"] = LogFiles(sources.logs, now)
    if sources.metrics:
        tools["query_metrics"] = MetricFiles(sources.metrics, now)
    if sources.runbooks:
        tools["lookup_knowledge"] = Runbooks(sources.runbooks)
    for name, paths in sources.tools.items():
        if not _NAME.fullmatch(name):
            raise BadSource(name, "is no name for a tool; use letters, digits, `_`, `.`, `-`, a letter first")
        if name in tools or name == "current_time":
            raise BadSource(name, "this tool is there already; choose another name")
        tools[name] = RecordedOutputs(name, paths)
    tools["current_time"] = CurrentTime(now)
    return tools
