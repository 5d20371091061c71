"""Planner, Executor and Verifier on any endpoint that speaks chat completions.

One call is one reply. What the model said is handed on raw; only a nonce that leaked into it, and characters that
no text can hold, are taken out, and both are counted in the details.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

import prompts
from handlers.agents import messages, schemas
from handlers.agents.capability import KNOWN, Profile, format_fields, level_of, lowered
from handlers.agents.completion import Completion, RawCall
from handlers.agents.endpoint import DEFAULT_BASE_URL, Endpoint, EndpointSettings, Refused, Sent
from handlers.agents.protocol import AgentReply, ExecutorBrief, PlanBrief, VerifierBrief
from handlers.agents.toolcalls import calls_of, numbered, once, planned
from handlers.evidence.protocol import ToolSpec
from handlers.fence import without_nonce
from prompts import Prompt
from streams.contract import ToolCall
from streams.events import AgentRole

if TYPE_CHECKING:
    from handlers.settings import Settings

CHARS_PER_TOKEN_AT_MOST = 12
STOPPED = frozenset({"refusal", "content_filter"})


class OpenAISettings(EndpointSettings):
    """The endpoint, and which model plays which role."""

    model: str = Field(description="for every role that has none of its own")
    planner_model: str | None = None
    executor_model: str | None = None
    verifier_model: str | None = None
    max_tokens: int = Field(4096, gt=0, description="always sent: without it some proxies cut replies unseen")
    evidence_chars: int = Field(160_000, gt=0, description="bound of all evidence text in one request")
    format_with_tools: bool = Field(
        False, description="ask for the output format while tools are offered; some servers then never call a tool"
    )

    def model_of(self, role: AgentRole) -> str:
        own = {"planner": self.planner_model, "executor": self.executor_model, "verifier": self.verifier_model}
        return own[role] or self.model

    @classmethod
    def of(cls, settings: Settings) -> OpenAISettings:
        """The part of the program's settings that is about models."""
        return cls(
            base_url=settings.openai_base_url or DEFAULT_BASE_URL,
            api_key=settings.openai_api_key,
            reply_timeout_s=settings.request_timeout_s,
            model=settings.model,
            planner_model=settings.planner_model,
            executor_model=settings.executor_model,
            verifier_model=settings.verifier_model,
            max_tokens=settings.max_tokens,
            evidence_chars=settings.evidence_chars,
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    role: AgentRole
    messages: list[messages.Message]
    prompt: Prompt
    nonce: str
    deadline_s: float
    format_name: str
    schema: dict[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    budget: int = 0
    taken: frozenset[str] = frozenset()
    instead: tuple[RawCall, ...] = ()


class OpenAIAgents:
    """The three roles. `load` gives prompts by name; `known` is what endpoints were found to support.

    Raises AgentFailed, never an error of the client's.
    """

    kind = "openai"

    def __init__(
        self,
        settings: OpenAISettings,
        load: Callable[[str], Prompt] = prompts.load,
        known: MutableMapping[tuple[str, str], Profile] = KNOWN,
    ) -> None:
        self._settings = settings
        self._load = load
        self._known = known
        self._endpoint = Endpoint(settings)

    async def plan(self, brief: PlanBrief) -> AgentReply:
        prompt = self._load("chat-planner-prompt")
        sent = messages.planner(brief, prompt)
        # Arguments differ from tool to tool, which a strict schema cannot say: any JSON object will do.
        return await self._reply(_Asked("planner", sent, prompt, brief.nonce, brief.deadline_s, "plan"))

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        prompt = self._load("chat-executor-prompt" if brief.repair is None else "chat-repair-prompt")
        write = messages.executor if brief.repair is None else messages.repair
        sent = write(brief, prompt, self._settings.evidence_chars)
        offered = brief.tools if messages.offers_tools(brief) else ()
        taken = [i.invocation_id for i in brief.invocations]
        taken += [call.call_id for reply in brief.replies for call in reply.tool_calls]
        asked = _Asked(
            "executor",
            sent,
            prompt,
            brief.nonce,
            brief.deadline_s,
            "answer",
            schemas.CONTRACT,
            offered,
            brief.tool_budget,
            frozenset(taken),
            # Small models answer from nothing: an answer before any evidence could only be refused.
            () if brief.invocations else planned(brief.plan.steps, {tool.name for tool in offered}),
        )
        return await self._reply(asked)

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        prompt = self._load("chat-verifier-prompt")
        sent = messages.verifier(brief, prompt)
        return await self._reply(
            _Asked("verifier", sent, prompt, brief.nonce, brief.deadline_s, "judgement", schemas.JUDGEMENT)
        )

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _reply(self, asked: _Asked) -> AgentReply:
        began = time.perf_counter()
        sent, details = await self._climb_down(asked)
        reply = _as_reply(asked, sent.completion, details)
        return AgentReply(
            text=reply.text,
            finish_reason=reply.finish_reason,
            tool_calls=reply.calls,
            model=sent.completion.model or self._settings.model_of(asked.role),
            prompt_sha256=asked.prompt.sha256,
            usage=sent.completion.usage,
            latency_ms=round((time.perf_counter() - began) * 1000, 3),
            details=details,
        )

    async def _climb_down(self, asked: _Asked) -> tuple[Sent, dict[str, Any]]:
        """The first answer on the ladder of what the server supports, remembered for the next request."""
        model = self._settings.model_of(asked.role)
        key = (self._endpoint.name, model)
        profile = self._known.get(key, Profile())
        ends = time.monotonic() + asked.deadline_s
        refusals = 0
        while True:
            request = self._request(asked, model, profile)
            try:
                sent = await self._endpoint.send(request, max(0.0, ends - time.monotonic()))
            except Refused as refused:
                lower = lowered(profile, request, refused.status, refused.told)
                if lower is None:
                    raise self._endpoint.refused(refused) from None
                profile, refusals = lower, refusals + 1
                continue
            self._known[key] = profile
            details = {
                "endpoint": self._endpoint.name,
                "schema_level": level_of(request),
                "tools_offered": len(asked.tools),
                "tries": sent.tries + refusals,
                "waited_s": sent.waited_s,
                "request_id": sent.request_id,
            }
            return sent, _noted(details, request, sent.completion)

    def _request(self, asked: _Asked, model: str, profile: Profile) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": model,
            "messages": asked.messages,
            profile.limit_key: self._settings.max_tokens,
        }
        if profile.temperature:
            request["temperature"] = 0
        if asked.tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
                }
                for t in asked.tools
            ]
        if not asked.tools or self._settings.format_with_tools:
            request |= format_fields(profile, asked.format_name, asked.schema)
        return request


@dataclass(frozen=True, slots=True)
class _Read:
    text: str
    finish_reason: str
    calls: tuple[ToolCall, ...]


def _as_reply(asked: _Asked, completion: Completion, details: dict[str, Any]) -> _Read:
    finish = completion.finish_reason
    raw, text = calls_of(completion, frozenset(tool.name for tool in asked.tools))
    if finish in STOPPED or not asked.tools:
        raw = ()
    elif not raw and asked.instead:
        raw = asked.instead
        details["calls_of_plan"] = len(raw)
    calls = once(numbered(raw, asked.taken))
    kept = calls[: asked.budget]
    if len(calls) > len(kept):
        details["calls_dropped"] = len(calls) - len(kept)
    text, leaks = without_nonce(text, asked.nonce)
    cleaned = tuple(_cleaned(call, asked.nonce) for call in kept)
    leaks += sum(found for _, found in cleaned)
    if leaks:
        details["nonce_removed"] = leaks
    if completion.replaced:
        details["characters_replaced"] = completion.replaced
    if kept:
        finish = "tool_calls"
    elif finish == "tool_calls":
        finish = "stop"
    return _Read(text, finish, tuple(call for call, _ in cleaned))


def _cleaned(call: ToolCall, nonce: str) -> tuple[ToolCall, int]:
    if call.arguments is None:
        told, found = without_nonce(call.arguments_text or "", nonce)
        return call.model_copy(update={"arguments_text": told}), found
    told, found = without_nonce(json.dumps(call.arguments, ensure_ascii=False), nonce)
    return (call.model_copy(update={"arguments": json.loads(told)}), found) if found else (call, 0)


def _noted(details: dict[str, Any], request: dict[str, Any], completion: Completion) -> dict[str, Any]:
    # Some servers cut a long prompt without a word; far too few tokens for its length give it away.
    chars = sum(len(message.get("content") or "") for message in request["messages"])
    read = completion.usage.input_tokens if completion.usage else 0
    if read and chars > CHARS_PER_TOKEN_AT_MOST * read:
        details["prompt_seems_cut"] = {"characters": chars, "tokens_read": read}
    return details
