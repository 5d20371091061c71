"""Planner, Executor and Verifier on any endpoint that speaks chat completions.

One call is one reply. What the model said is handed on raw; only a nonce that leaked into it, and characters that
no text can hold, are taken out, and both are counted in the details. Where the server lets no model call a tool, the
plan's calls are made instead, and the model answers from what they found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

import prompts
from handlers.agents import messages, planned_calls, schemas
from handlers.agents.capability import KNOWN, Profile, format_fields, level_of, lowered, tool_level
from handlers.agents.completion import Completion, RawCall
from handlers.agents.endpoint import DEFAULT_BASE_URL, Endpoint, EndpointSettings, Refused, Sent
from handlers.agents.exchange import Asked, read_reply
from handlers.agents.offline import MODEL
from handlers.agents.protocol import AgentReply, ExecutorBrief, PlanBrief, VerifierBrief
from handlers.agents.toolcalls import kept
from prompts import Prompt
from streams.events import AgentRole, PlannedStep

if TYPE_CHECKING:
    from handlers.settings import Settings

CHARS_PER_TOKEN_AT_MOST = 12


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


class _NoTools(Exception):
    """The server lets this model call no tool; its words."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


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
        return await self._reply(Asked("planner", sent, prompt, brief.nonce, brief.deadline_s, "plan"))

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        began = time.monotonic()
        refused = None
        if self._profile("executor").tools:
            try:
                return await self._reply(self._answer(brief))
            except _NoTools as lack:
                refused = lack.told
        steps = planned_calls.due(brief) if messages.offers_tools(brief) else ()
        spent_s = time.monotonic() - began
        if steps:
            return self._of_plan(brief, steps, refused, spent_s)
        bare = replace(brief, tools=(), deadline_s=max(0.0, brief.deadline_s - spent_s))
        return await self._reply(replace(self._answer(bare), refused=refused))

    def _answer(self, brief: ExecutorBrief) -> Asked:
        prompt = self._load("chat-executor-prompt" if brief.repair is None else "chat-repair-prompt")
        write = messages.executor if brief.repair is None else messages.repair
        sent = write(brief, prompt, self._settings.evidence_chars)
        offered = brief.tools if messages.offers_tools(brief) else ()
        return Asked(
            "executor",
            sent,
            prompt,
            brief.nonce,
            brief.deadline_s,
            "answer",
            schemas.CONTRACT,
            offered,
            brief.tool_budget,
            _taken(brief),
            # Small models answer from nothing: an answer before any evidence could only be refused.
            () if brief.invocations else _raw(planned_calls.named(brief.plan, offered)),
        )

    def _of_plan(
        self, brief: ExecutorBrief, steps: tuple[PlannedStep, ...], refused: str | None, spent_s: float
    ) -> AgentReply:
        details: dict[str, Any] = {"endpoint": self._endpoint.name, "tool_level": "plan", "calls_of_plan": len(steps)}
        if refused is not None:
            details["tools_refused"] = refused
        calls = kept(_raw(steps), _taken(brief), brief.tool_budget, brief.nonce, details)
        return AgentReply(
            tool_calls=calls,
            finish_reason="tool_calls",
            model=MODEL,
            latency_ms=round(spent_s * 1000, 3),
            details=details,
        )

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        prompt = self._load("chat-verifier-prompt")
        sent = messages.verifier(brief, prompt)
        return await self._reply(
            Asked("verifier", sent, prompt, brief.nonce, brief.deadline_s, "judgement", schemas.JUDGEMENT)
        )

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _reply(self, asked: Asked) -> AgentReply:
        began = time.perf_counter()
        sent, details = await self._climb_down(asked)
        reply = read_reply(asked, sent.completion, details)
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

    def _key(self, role: AgentRole) -> tuple[str, str]:
        return self._endpoint.name, self._settings.model_of(role)

    def _profile(self, role: AgentRole) -> Profile:
        return self._known.get(self._key(role), Profile())

    async def _climb_down(self, asked: Asked) -> tuple[Sent, dict[str, Any]]:
        """The first answer on the ladder of what the server supports, remembered for the next request.

        Without tools another request is due, if any: that raises _NoTools.
        """
        model = self._settings.model_of(asked.role)
        profile = self._profile(asked.role)
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
                if profile.tools and not lower.tools:
                    self._known[self._key(asked.role)] = lower
                    raise _NoTools(str(refused)) from None
                profile, refusals = lower, refusals + 1
                continue
            self._known[self._key(asked.role)] = profile
            details = {
                "endpoint": self._endpoint.name,
                "schema_level": level_of(request),
                "tools_offered": len(asked.tools),
                "tries": sent.tries + refusals,
                "waited_s": sent.waited_s,
                "request_id": sent.request_id,
            }
            if asked.role == "executor":
                details["tool_level"] = tool_level(profile)
            if asked.refused is not None:
                details["tools_refused"] = asked.refused
            return sent, _noted(details, request, sent.completion)

    def _request(self, asked: Asked, model: str, profile: Profile) -> dict[str, Any]:
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


def _taken(brief: ExecutorBrief) -> frozenset[str]:
    ids = [i.invocation_id for i in brief.invocations]
    return frozenset(ids + [call.call_id for reply in brief.replies for call in reply.tool_calls])


def _raw(steps: tuple[PlannedStep, ...]) -> tuple[RawCall, ...]:
    return tuple(RawCall(step.tool_name, step.arguments) for step in steps)


def _noted(details: dict[str, Any], request: dict[str, Any], completion: Completion) -> dict[str, Any]:
    # Some servers cut a long prompt without a word; far too few tokens for its length give it away.
    chars = sum(len(message.get("content") or "") for message in request["messages"])
    read = completion.usage.input_tokens if completion.usage else 0
    if read and chars > CHARS_PER_TOKEN_AT_MOST * read:
        details["prompt_seems_cut"] = {"characters": chars, "tokens_read": read}
    return details
