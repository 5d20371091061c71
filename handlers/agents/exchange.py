"""One request to a model, and what its completion comes to. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handlers.agents.completion import Completion, RawCall
from handlers.agents.messages import Message
from handlers.agents.toolcalls import as_text, calls_of, kept
from handlers.evidence.protocol import ToolSpec
from handlers.fence import without_nonce
from prompts import Prompt
from streams.contract import ToolCall
from streams.events import AgentRole

STOPPED = frozenset({"refusal", "content_filter"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What a role's model is asked. `instead`: calls to make where it makes none; `refused`: why it is offered none."""

    role: AgentRole
    messages: list[Message]
    prompt: Prompt
    nonce: str
    deadline_s: float
    format_name: str
    schema: dict[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    budget: int = 0
    taken: frozenset[str] = frozenset()
    instead: tuple[RawCall, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """What a completion said, cleaned of the nonce."""

    text: str
    finish_reason: str
    calls: tuple[ToolCall, ...]


def read_reply(asked: Asked, completion: Completion, details: dict[str, Any]) -> Read:
    """The reply in a completion; `details` tells what was taken out of it, or put in its place."""
    finish = completion.finish_reason
    raw, text = calls_of(completion, frozenset(tool.name for tool in asked.tools))
    if finish in STOPPED:
        raw = ()
    elif not asked.tools:
        if raw:
            details["calls_not_offered"] = len(raw)
            text = text if text.strip() else as_text(raw)
        raw = ()
    elif not raw and asked.instead:
        raw = asked.instead
        details["calls_of_plan"] = len(raw)
    calls = kept(raw, asked.taken, asked.budget, asked.nonce, details)
    text, leaks = without_nonce(text, asked.nonce)
    if leaks:
        details["nonce_removed"] = details.get("nonce_removed", 0) + leaks
    if completion.replaced:
        details["characters_replaced"] = completion.replaced
    if calls:
        finish = "tool_calls"
    elif finish == "tool_calls":
        finish = "stop"
    return Read(text, finish, calls)
