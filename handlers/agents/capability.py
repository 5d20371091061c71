"""What an endpoint's model can be asked for, found out by asking: the ladder of output formats. Pure but for `KNOWN`.

Strict JSON schema, else any JSON object, else the prompt alone. What a server refuses is not asked of it again in
this process. Some models also want another name for the token limit, or no temperature.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

Level = Literal["json_schema", "json_object", "prompt"]

_OTHER_CAUSE = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too many tokens|too long|exceeds? the|"
    r"model.{0,40}(not found|does not exist)|(unknown|no such|invalid) model|api.?key|quota|billing",
    re.IGNORECASE,
)
_FORMAT = re.compile(r"response_format|json_?schema|json_object|schema|grammar|structured", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Profile:
    """How requests to one model at one endpoint are made. Some servers know schemas and no plain JSON mode."""

    json_schema: bool = True
    json_object: bool = True
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


def lowered(profile: Profile, request: dict[str, Any], status: int, told: str) -> Profile | None:
    """The profile to try after `status` with the server's words `told`; None if no change would help.

    Each step takes something away, so the ladder ends. A 5xx counts only if it speaks of the format.
    """
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
