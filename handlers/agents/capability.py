"""What an endpoint's model can be asked for, found out by asking: two ladders. Pure but for `KNOWN`.

The output's format: strict JSON schema, else any JSON object, else the prompt alone. Evidence: the model calls tools,
else the plan's calls are made without it. What a server refuses is not asked of it again in this process. Some models
also want another name for the token limit, or no temperature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Level = Literal["json_schema", "json_object", "prompt"]
ToolLevel = Literal["calls", "plan"]
NO_TOOLS = frozenset({200, 400, 404, 405, 422, 500, 501})
"""Statuses that servers say it with, a 200 with an error in its body among them."""

_OTHER_CAUSE = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too many tokens|too long|exceeds? the|"
    r"model.{0,40}(not found|does not exist)|(unknown|no such|invalid) model|api.?key|quota|billing",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"response_format|json_?schema|json_object|schema|grammar|structured", re.IGNORECASE)
_TOOLS = re.compile(
    r"(?<![a-z_])tools?(?![a-z_])|tool[ _-]?(?:use|call|choice)|function[ _-]?call|(?<![a-z])functions(?![a-z])|"
    r"\u5de5\u5177|\u51fd\u6570\u8c03\u7528",
    re.IGNORECASE,
)
_LACKING = re.compile(
    r"(?:\bnot|n['\u2019]t) (?:\w+ ){0,2}(?:support|enabl|allow|permit|availab|implement|advertis)|"
    r"\bno\b.{0,40}\bsupport|unsupported|unavailable|disabled|unrecogni[sz]ed|unknown|unexpected|"
    r"extra[ _](?:inputs|fields|forbidden)|requires? --|--(?:jinja|enable-auto-tool-choice|tool-call-parser)|"
    r"\u4e0d\u652f\u6301",
    re.IGNORECASE,
)
_ROLE = re.compile(r"\broles?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Profile:
    """How requests to one model at one endpoint are made. Some servers know schemas and no plain JSON mode."""

    json_schema: bool = True
    json_object: bool = True
    tools: bool = True
    limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True


KNOWN: dict[tuple[str, str], Profile] = {}
"""(endpoint, model) -> what worked last, for this process."""


def format_fields(profile: Profile, name: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    """The `response_format` of a request. Without a schema of its own the ladder begins at `json_object`."""
    if schema is not None and profile.json_schema:
        strict = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": strict}}
    return {"response_format": {"type": "json_object"}} if profile.json_object else {}


def about_format(told: str) -> bool:
    """Whether a server's error speaks of the output format, as a schema that it cannot compile."""
    return _FORMAT.search(told) is not None


def level_of(request: dict[str, Any]) -> Level:
    """The level that a request was made at."""
    sent = request.get("response_format")
    if sent is None:
        return "prompt"
    return "json_schema" if sent["type"] == "json_schema" else "json_object"


def tool_level(profile: Profile) -> ToolLevel:
    """Who makes the Executor's calls: the model, or the plan where the server lets no model call a tool."""
    return "calls" if profile.tools else "plan"


def lacks_tools(request: Mapping[str, Any], status: int, told: str) -> bool:
    """Whether the server says that it, or this model, calls no tools: a lack, and no failure.

    A tool whose own schema it refuses is another matter. Templates of models that know no tools also stumble over
    the role of a tool's result.
    """
    if status not in NO_TOOLS or not request.get("tools") or _OTHER_CAUSE.search(told) or about_format(told):
        return False
    if _TOOLS.search(told) and _LACKING.search(told):
        return True
    return _ROLE.search(told) is not None and any(message["role"] == "tool" for message in request["messages"])


def lowered(profile: Profile, request: dict[str, Any], status: int, told: str) -> Profile | None:
    """The profile to try after `status` with the server's words `told`; None if no change would help.

    Each step takes something away, so the ladder ends. A 5xx counts only if it speaks of the format or of tools.
    """
    if lacks_tools(request, status, told):
        return replace(profile, tools=False)
    if status not in {400, 404, 422, 500, 501}:
        return None
    if status in {404, 500, 501} and not about_format(told):
        return None
    if "max_completion_tokens" in told and profile.limit_key == "max_tokens":
        return replace(profile, limit_key="max_completion_tokens")
    if "temperature" in told and profile.temperature:
        return replace(profile, temperature=False)
    level = level_of(request)
    if level == "prompt" or (_OTHER_CAUSE.search(told) and not about_format(told)):
        return None
    return replace(profile, json_schema=False) if level == "json_schema" else replace(profile, json_object=False)
