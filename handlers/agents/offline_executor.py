"""The Executor without a model: runs the plan's calls, then quotes; mends an answer by choosing other records."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from handlers.agents.offline_answer import Claim, Material, Spot, as_text, contract_of, spots
from handlers.agents.offline_planner import plan_text
from handlers.agents.protocol import AgentReply, ExecutorBrief, PlanBrief
from streams.contract import ToolCall

_ID = re.compile(r"(?<![\w-])c\d+(?![\w-])")


def reply_to(brief: ExecutorBrief) -> AgentReply:
    """Tool calls first, once in a round; then the contract as JSON."""
    asked = any(reply.tool_calls for reply in brief.replies)
    if not asked and not brief.round_invocations and brief.repair is None:
        calls = _calls(brief)
        if calls:
            return AgentReply(tool_calls=calls, finish_reason="tool_calls", model="offline")
    if brief.repair is not None:
        return AgentReply(text=_mended(brief), model="offline")
    return AgentReply(text=as_text(contract_of(_material(brief))), model="offline")


def _material(brief: ExecutorBrief, barred: frozenset[Spot] = frozenset(), wanted: str = "") -> Material:
    return Material(brief.question, brief.lang, brief.plan.narrow, brief.invocations, barred, wanted)


def _calls(brief: ExecutorBrief) -> tuple[ToolCall, ...]:
    steps = [(step.tool_name, step.arguments) for step in brief.plan.steps] or _own_steps(brief)
    known = {spec.name for spec in brief.tools}
    first = len(brief.invocations) + 1
    wanted = [(name, arguments) for name, arguments in steps if name in known][: brief.tool_budget]
    return tuple(
        ToolCall(call_id=f"inv-{first + at}", name=name, arguments=dict(arguments))
        for at, (name, arguments) in enumerate(wanted)
    )


def _own_steps(brief: ExecutorBrief) -> list[tuple[str, dict[str, object]]]:
    """A plan that names no call is replaced by our own."""
    asked = PlanBrief(
        question=brief.question,
        lang=brief.lang,
        round=brief.round,
        tools=brief.tools,
        nonce=brief.nonce,
        deadline_s=brief.deadline_s,
        retry_context=brief.retry_context,
    )
    return [(step["tool_name"], step["arguments"]) for step in json.loads(plan_text(asked))["steps"]]


def _mended(brief: ExecutorBrief) -> str:
    """The previous answer without the claims that the request names; other records take their place, the rest stays."""
    assert brief.repair is not None
    named = set(_ID.findall(brief.repair.request))
    previous = _claims_of(brief.repair.previous_text)
    kept = [claim for claim in previous if claim["claim_id"] not in named]
    barred = frozenset(spot for claim in previous if claim["claim_id"] in named for spot in spots(claim))
    material = _material(brief, barred, brief.repair.request)
    if not named and material.narrow:
        material = replace(material, narrow=False)  # nothing is wrong with the claims: there are too few
    return as_text(contract_of(material, kept))


def _claims_of(text: str) -> list[Claim]:
    try:
        claims = json.loads(text)["claims"]
        return [claim for claim in claims if claim["claim_id"] and spots(claim)]
    except (ValueError, TypeError, KeyError):
        return []
