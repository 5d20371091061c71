"""The calls that a plan makes by itself, where nobody chooses calls on the way: no model, or none that calls tools."""

from __future__ import annotations

import json
from collections.abc import Iterable

from handlers.agents.offline_planner import plan_text
from handlers.agents.protocol import ExecutorBrief, PlanBrief
from handlers.evidence.protocol import ToolSpec
from streams.events import PlanMade, PlannedStep


def due(brief: ExecutorBrief) -> tuple[PlannedStep, ...]:
    """The calls to make now: once in a round, before its first answer; none in a repair or a re-ask.

    A plan that names no tool that there is is replaced by the one that the question's words give.
    """
    asked = bool(brief.round_invocations) or any(reply.tool_calls for reply in brief.replies)
    if asked or brief.repair is not None or brief.reask is not None:
        return ()
    return (named(brief.plan, brief.tools) or _by_words(brief))[: brief.tool_budget]


def named(plan: PlanMade, tools: Iterable[ToolSpec]) -> tuple[PlannedStep, ...]:
    """The plan's calls of tools that there are."""
    known = {tool.name for tool in tools}
    return tuple(step for step in plan.steps if step.tool_name in known)


def _by_words(brief: ExecutorBrief) -> tuple[PlannedStep, ...]:
    asked = PlanBrief(
        question=brief.question,
        lang=brief.lang,
        round=brief.round,
        tools=brief.tools,
        nonce=brief.nonce,
        deadline_s=brief.deadline_s,
        retry_context=brief.retry_context,
    )
    return tuple(PlannedStep(**step) for step in json.loads(plan_text(asked))["steps"])
