"""The Executor without a model: runs the plan's calls, then quotes; mends an answer by choosing other records."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from handlers.agents.offline_answer import as_text, contract_of, spots
from handlers.agents.offline_material import Claim, Material, Spot
from handlers.agents.planned_calls import due
from handlers.agents.protocol import AgentReply, ExecutorBrief
from streams.contract import ToolCall
from streams.events import PlannedStep

_ID = re.compile(r"(?<![\w-])c\d+(?![\w-])")


def reply_to(brief: ExecutorBrief) -> AgentReply:
    """Tool calls first, once in a round; then the contract as JSON."""
    steps = due(brief)
    if steps:
        return AgentReply(tool_calls=_calls(brief, steps), finish_reason="tool_calls", model="offline")
    if brief.repair is not None:
        return AgentReply(text=_mended(brief), model="offline")
    return AgentReply(text=as_text(contract_of(_material(brief))), model="offline")


def _material(brief: ExecutorBrief, barred: frozenset[Spot] = frozenset(), wanted: str = "") -> Material:
    return Material(brief.question, brief.lang, brief.plan.narrow, brief.invocations, barred, wanted)


def _calls(brief: ExecutorBrief, steps: tuple[PlannedStep, ...]) -> tuple[ToolCall, ...]:
    first = len(brief.invocations) + 1
    return tuple(
        ToolCall(call_id=f"inv-{first + at}", name=step.tool_name, arguments=dict(step.arguments))
        for at, step in enumerate(steps)
    )


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
