"""Briefs for the `openai` agents, and the agents on a stub server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import SecretStr

from handlers.agents.capability import Profile
from handlers.agents.openai import OpenAIAgents, OpenAISettings
from handlers.agents.protocol import ExecutorBrief, VerifierBrief
from handlers.evidence.protocol import ToolSpec
from streams.contract import EvidenceRef, RetrievalDetails, ToolCall
from streams.events import AgentReplied, PlanMade, PlannedStep, ToolInvoked
from tests.stub_openai import Queued, StubOpenAI

NONCE = "9f2c41d7e0b8"
KEY = "sk-test-0123456789abcdef"
QUESTION = "Why does payment-service time out?"
LOGS = ToolSpec("query_logs", "Searches log files.", {"type": "object", "properties": {"terms": {"type": "array"}}})
METRICS = ToolSpec("query_metrics", "Reads metrics.", {"type": "object", "properties": {"metric": {"type": "string"}}})
LINE = "payments-pool - Connection is not available, request timed out after 30000ms."


@asynccontextmanager
async def serving(
    *answers: Queued, known: dict[tuple[str, str], Profile] | None = None, **settings: Any
) -> AsyncIterator[tuple[OpenAIAgents, StubOpenAI]]:
    async with StubOpenAI(*answers) as stub:
        given = {"api_key": SecretStr(KEY), "model": "stub-1", "backoff_s": 0.01, "reply_timeout_s": 5.0, **settings}
        agents = OpenAIAgents(OpenAISettings(base_url=stub.base_url, **given), known={} if known is None else known)
        try:
            yield agents, stub
        finally:
            await agents.aclose()


def verifier_brief(**changes: Any) -> VerifierBrief:
    given: dict[str, Any] = {"input": {"original_query": QUESTION}, "lang": "en", "round": 1, "nonce": NONCE}
    return VerifierBrief(**{**given, "deadline_s": 20.0, **changes})


def executor_brief(**changes: Any) -> ExecutorBrief:
    given: dict[str, Any] = {
        "question": QUESTION,
        "lang": "en",
        "round": 1,
        "attempt": 0,
        "plan": PlanMade(steps=(PlannedStep(tool_name="query_logs", why="the error itself"),)),
        "tools": (LOGS, METRICS),
        "nonce": NONCE,
        "deadline_s": 20.0,
        "tool_budget": 8,
    }
    return ExecutorBrief(**{**given, **changes})


def invoked(invocation_id: str, *texts: str, **changes: Any) -> ToolInvoked:
    refs = tuple(EvidenceRef(raw_path=f"app.log:lines[{k}]", text=text) for k, text in enumerate(texts, 1))
    details = RetrievalDetails(evidence_refs=refs, matched=40, returned=len(refs), truncated=True)
    given = {"tool_name": "query_logs", "arguments": {"terms": ["timed out"]}, "retrieval_details": details}
    return ToolInvoked(invocation_id=invocation_id, **{**given, **changes})


def asked(*call_ids: str, text: str = "", **details: Any) -> AgentReplied:
    calls = tuple(ToolCall(call_id=i, name="query_logs", arguments={"terms": ["timed out"]}) for i in call_ids)
    return AgentReplied(
        role="executor", ordinal=0, text=text, tool_calls=calls, model="stub-1", details=details or None
    )


def sent_text(stub: StubOpenAI) -> str:
    return "\n".join(message["content"] for message in stub.requests[-1]["messages"])
