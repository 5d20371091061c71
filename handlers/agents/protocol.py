"""The protocol of agents: a brief in, one raw reply out. No agent writes to the log or interprets a reply.

A role asks for one reply at a time and appends it (`agent-replied`) before anything reads it, so a paid reply
is found again after a crash. An Executor reply either asks for tools (`tool_calls`) or is the answer's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from handlers.evidence.protocol import ToolSpec
from streams.contract import ToolCall, Usage
from streams.events import AgentReplied, PlanMade, ToolInvoked


class SourceExhausted(Exception):
    """A scripted source has no further reply; `whole_round`: not even the round. No failure: ruling 21."""

    def __init__(self, whole_round: bool = False) -> None:
        super().__init__("the script has run out")
        self.whole_round = whole_round


class AgentFailed(Exception):
    """The agent could not reply: endpoint down, time-out, refused by the server. `reason` is for people."""

    def __init__(self, reason: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details or {}


@dataclass(frozen=True, slots=True)
class AgentReply:
    """One reply, raw."""

    text: str = ""
    finish_reason: str = "stop"
    tool_calls: tuple[ToolCall, ...] = ()
    model: str = ""
    prompt_sha256: str | None = None
    usage: Usage | None = None
    latency_ms: float = 0.0
    details: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PlanBrief:
    """What the Planner is asked: reply text is `{"narrow": bool, "note": str, "steps": [{tool_name, arguments, why}]}`."""

    question: str
    lang: str
    round: int
    tools: tuple[ToolSpec, ...]
    nonce: str
    deadline_s: float
    retry_context: dict[str, Any] | None = None
    replies: tuple[AgentReplied, ...] = ()


@dataclass(frozen=True, slots=True)
class Repair:
    """What to mend in the answer of the attempt before: one targeted request (REP-4)."""

    request: str
    previous_text: str


@dataclass(frozen=True, slots=True)
class ExecutorBrief:
    """What the Executor is asked. `replies` are its own of this round, in order; `invocations` the session's.

    `reask` is the validation error of its last answer, `repair` the request after an evaluation; both null at first.
    `attempt` counts from 0. `tool_budget` is how many calls are left.
    """

    question: str
    lang: str
    round: int
    attempt: int
    plan: PlanMade
    tools: tuple[ToolSpec, ...]
    nonce: str
    deadline_s: float
    tool_budget: int
    round_invocations: tuple[ToolInvoked, ...] = ()
    invocations: tuple[ToolInvoked, ...] = ()
    replies: tuple[AgentReplied, ...] = ()
    reask: str | None = None
    repair: Repair | None = None
    retry_context: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class VerifierBrief:
    """What the Verifier is asked: exactly the blocks of INP-1 (`input`), and the error of a malformed first reply."""

    input: dict[str, Any]
    lang: str
    round: int
    nonce: str
    deadline_s: float
    reask: str | None = None
    replies: tuple[AgentReplied, ...] = ()


class Agents(Protocol):
    """The three model roles. Each call gives one reply, or raises SourceExhausted or AgentFailed."""

    kind: str

    async def plan(self, brief: PlanBrief) -> AgentReply: ...

    async def execute(self, brief: ExecutorBrief) -> AgentReply: ...

    async def verify(self, brief: VerifierBrief) -> AgentReply: ...
