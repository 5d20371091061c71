"""Agents whose replies come from a script: demos, tests, `judge`, replays. What follows from them is real."""

from __future__ import annotations

from typing import Any

from handlers.agents.protocol import AgentReply, Agents, ExecutorBrief, PlanBrief, SourceExhausted, VerifierBrief
from handlers.case import calls_of

MODEL = "scripted"


class ScriptedAgents:
    """Replies in order; where the script leaves the Verifier out, `fallback` judges."""

    kind = "scripted"

    def __init__(self, script: dict[str, Any], fallback: Agents) -> None:
        self._rounds: list[dict[str, Any]] = script["rounds"]
        self._fallback = fallback

    async def plan(self, brief: PlanBrief) -> AgentReply:
        plan = self._round(brief.round)["plan"]
        if plan is None:
            raise SourceExhausted
        return AgentReply(text=plan, model=MODEL)

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        rnd = self._round(brief.round)
        calls = calls_of(rnd)
        if brief.attempt == 0 and calls and not brief.replies:
            return AgentReply(tool_calls=calls, finish_reason="tool_calls", model=MODEL)
        if brief.attempt == 0:
            return AgentReply(_nth(rnd["executor"], brief.reask), rnd["finish_reason"], model=MODEL)
        if brief.attempt > len(rnd["repairs"]):
            raise SourceExhausted
        return AgentReply(_nth(rnd["repairs"][brief.attempt - 1], brief.reask), model=MODEL)

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        replies = self._round(brief.round)["verifier"]
        if replies is None:
            return await self._fallback.verify(brief)
        return AgentReply(_nth(replies, brief.reask), model=MODEL)

    def _round(self, number: int) -> dict[str, Any]:
        if number > len(self._rounds):
            raise SourceExhausted(whole_round=True)
        return self._rounds[number - 1]


def _nth(replies: list[str], reask: str | None) -> str:
    index = 0 if reask is None else 1
    if index >= len(replies):
        raise SourceExhausted
    return replies[index]
