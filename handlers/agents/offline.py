"""Agents without a model: honest, extractive, and labelled as such. The default where no endpoint is set.

The Planner picks tools by the question's words, the Executor quotes evidence and claims observations only, the
Verifier labels by numbers, identifiers, units, negation and shared words. Their replies are raw text that goes through
the same strict parsers as a model's. They read in a thread: over thousands of records or claims that takes seconds, and
the deadline must be able to end the turn meanwhile.
"""

from __future__ import annotations

import asyncio

from handlers.agents import offline_executor, offline_planner, offline_verifier
from handlers.agents.protocol import AgentReply, ExecutorBrief, PlanBrief, VerifierBrief

MODEL = "offline"


class OfflineAgents:
    """The three roles without a model. The same brief gives the same reply, always."""

    kind = "offline"

    async def plan(self, brief: PlanBrief) -> AgentReply:
        return AgentReply(text=offline_planner.plan_text(brief), model=MODEL)

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        return await asyncio.to_thread(offline_executor.reply_to, brief)

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        return AgentReply(text=await asyncio.to_thread(offline_verifier.judgement_text, brief), model=MODEL)
