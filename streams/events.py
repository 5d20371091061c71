"""The domain events: one frozen payload class per type and schema.

`EVENTS` maps (type, schema) to the class. Meanings are for ever: a new meaning is a new schema number with an
upcaster. Who writes which, and when: design section 4.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from streams.contract import (
    Citation,
    EvidenceKind,
    Frozen,
    GateResult,
    InvocationStatus,
    ParseStatus,
    RetrievalDetails,
    RuleEvaluation,
    ToolCall,
    Usage,
    Verdict,
    Verification,
    VerifierEvaluation,
)

Route = Literal["answer", "disclaimer", "extra_round", "degraded"]
Decision = Literal["accepted", "repair", "not_repairable", "exhausted"]
FallbackReason = Literal["cancelled", "deadline", "parked", "agent_failed", "evidence_insufficient", "rejected"]
AgentRole = Literal["planner", "executor", "verifier"]


class Payload(Frozen):
    """Base of all payloads; `TYPE` is the subject's last token, `SCHEMA` the payload's own schema number.

    `NULLS`: null fields are written, too. The channels of self_evaluation are, so that what a reader finds in the log,
    in the read model and in a report is the same object.
    `OPEN`: it holds no text of the session's question, evidence or answer, and is never sealed.
    """

    TYPE: ClassVar[str]
    SCHEMA: ClassVar[int] = 1
    NULLS: ClassVar[bool] = False
    OPEN: ClassVar[bool] = False


class Blob(Frozen):
    """A text kept in the blob stream because it is too large for an event."""

    sha256: str = Field(description="of the stored bytes")
    size_bytes: int = Field(description="of the stored bytes")
    chunks: int
    session: str | None = Field(None, description="sealed with this session's key")


class TurnOptions(Frozen):
    """What the asker fixed for this turn; a command line flag wins over a file."""

    max_attempts: int = Field(2, ge=0, le=5, description="bound of evaluations in a round (ruling 11)")
    on_exhausted: Literal["cap", "fallback"] = "cap"
    max_rounds: int = Field(2, ge=1, le=2)
    found_bindings: bool = Field(False, description="the answer had no bindings; ours were found (ruling 25)")
    external_repair_wait_s: float = Field(
        0.0, ge=0, description="seconds a foreign agent has to mend its answer or give a second round; 0: none"
    )


class ForeignTool(Frozen):
    """A tool of an MCP server as it was offered when the question was asked; how to reach the server is a setting."""

    server: str
    tool: str = Field(description="its name there")
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict, description="JSON Schema of an object")
    evidence_kind: EvidenceKind = "incident"


class Sources(Frozen):
    """Where the evidence tools of this turn look: paths and addresses, so that any process can go on with it."""

    logs: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    runbooks: tuple[str, ...] = ()
    tools: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="tool name -> recorded outputs")
    mcp: dict[str, ForeignTool] | None = Field(None, description="tool name -> tool of an MCP server")


class QuestionAsked(Payload):
    TYPE = "question-asked"
    question: str
    lang: Literal["zh-CN", "en"] = "zh-CN"
    options: TurnOptions = TurnOptions()
    deadline_s: float = Field(300.0, description="seconds from the event's time until the turn is ended (ruling 15)")
    owner: Literal["ours", "external"] = Field("ours", description="external: a foreign agent plans and executes")
    agents: str = Field("offline", description="which agents were asked to work: offline, openai, scripted")
    script: Blob | None = Field(None, description="scripted: the replies, so that any process can go on with the turn")
    sources: Sources = Sources()


class AgentReplied(Payload):
    """One model reply, stored before anything interprets it."""

    TYPE = "agent-replied"
    role: AgentRole
    ordinal: int = Field(description="counts this role's replies in the round, from 0; re-asks included")
    kind: Literal["first", "reask", "repair"] = Field("first", description="why it was asked for (ruling 23)")
    text: str = Field(description="raw, as it came; empty if the reply only asked for tools")
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    model: str = Field(description="model name, or `offline`, `scripted`")
    prompt_sha256: str | None = None
    usage: Usage | None = None
    latency_ms: float = 0.0
    details: dict[str, Any] | None = Field(None, description="endpoint facts: schema level used, retries, request id")


class PlannedStep(Frozen):
    """One intended tool call and why."""

    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    why: str = ""


class PlanMade(Payload):
    TYPE = "plan-made"
    steps: tuple[PlannedStep, ...] = ()
    planned_tools: tuple[str, ...] | None = Field(None, description="null: no plan was made (ruling 17)")
    narrow: bool = Field(False, description="the question asks to confirm one service, alert or symptom (EXE-7)")
    note: str = ""
    borrowed: bool = Field(False, description="a scripted source had run out: the round borrows (ruling 21)")
    retry_context: dict[str, Any] | None = Field(None, description="second round only (INP-2)")


class ToolInvoked(Payload):
    TYPE = "tool-invoked"
    invocation_id: str
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    status: InvocationStatus = "success"
    evidence_kind: EvidenceKind = "incident"
    topic: str | None = Field(None, description="the tool's own grouping key; unknown: never merged (ruling 20)")
    retrieval_details: RetrievalDetails | None = None
    error: str | None = Field(None, description="the tool's own error text")
    output_sha256: str | None = None
    output_size_bytes: int | None = None
    output_blob: Blob | None = None
    output_format: str | None = Field(None, description="how raw_paths of the full output are resolved")
    latency_ms: float = 0.0
    redactions: dict[str, int] | None = Field(None, description="kind -> how many were replaced before recording")


class AnswerDrafted(Payload):
    TYPE = "answer-drafted"
    parse_status: ParseStatus
    parse_error: str | None = Field(None, description="what was wrong, and where")
    reply_event: str | None = Field(None, description="id of the agent-replied it came from")
    raw_text: str = Field("", description="a foreign agent's text; ours stands in the agent-replied")
    structured: dict[str, Any] | None = Field(None, description="the contract as parsed; null unless usable")
    final_answer: str = Field("", description="what would be shown, without any think block (ruling 8)")
    prose: bool = Field(False, description="malformed, but natural language: no JSON and no cut JSON (TPL-5)")
    found: bool = Field(False, description="prose: its claims were cut out by rule, its bindings found (ruling 25)")
    notices: tuple[dict[str, Any], ...] = Field((), description="contract.* warnings {rule, claim_id, message}")


class GateJudged(Payload):
    TYPE = "gate-judged"
    result: GateResult


class RulesScored(Payload):
    TYPE = "rules-scored"
    NULLS = True
    evaluation: RuleEvaluation


class AnswerEvaluated(Payload):
    TYPE = "answer-evaluated"
    report: Verification
    decision: Decision


class FactsVerified(Payload):
    TYPE = "facts-verified"
    NULLS = True
    input: dict[str, Any] = Field(description="exactly what the Verifier was given (INP-1)")
    reply_event: str | None = None
    evaluation: VerifierEvaluation


class RoundRouted(Payload):
    TYPE = "round-routed"
    effective_verdict: Verdict | None = None
    score: float | None = None
    route: Route
    reason: str = ""


class AnswerGiven(Payload):
    TYPE = "answer-given"
    kind: Literal["answer", "disclaimer", "degraded"]
    text: str
    citations: tuple[Citation, ...] = ()
    gaps: tuple[str, ...] = ()
    missing_claims: tuple[str, ...] = ()
    fallback_reason: FallbackReason | None = None


class HandlerParked(Payload):
    TYPE = "handler-parked"
    consumer: str
    event_id: str
    event_seq: int
    error: str
    deliveries: int


class TurnFailed(Payload):
    TYPE = "turn-failed"
    reason: Literal["deadline", "agent_failed", "parked"]
    detail: str = ""


class TurnCancelled(Payload):
    TYPE = "turn-cancelled"
    who: str
    why: str = ""


class ParkedResolved(Payload):
    TYPE = "parked-resolved"
    who: str
    why: str = ""
    parked_event: str = Field(description="id of the `handler-parked` event that is closed")
    action: Literal["retry", "dismiss"]
    new_turn: int | None = Field(None, description="of a retry: the turn that asks the question anew")


class SessionForked(Payload):
    """The first event of a session that was made from another one; the copied events stand right behind it."""

    TYPE = "session-forked"
    who: str
    why: str = ""
    origin_session: str
    origin_n: int = Field(description="the origin's last event that counts for the fork")
    origin_hash: str = Field(description="that event's hash")
    copied: int = Field(0, ge=0, description="how many copied events follow: before they are all there, nobody works")


class TextErased(Payload):
    """The key of the session's sealed text was dropped."""

    TYPE = "text-erased"
    OPEN = True
    who: str
    why: str


class ChannelWritten(Payload):
    TYPE = "channel-written"
    channel: str
    value: Any = None
    who: str = ""


class ChainAnchored(Payload):
    TYPE = "chain-anchored"
    OPEN = True
    heads: dict[str, dict[str, Any]] = Field(description="session -> {n, hash}")
    merkle_root: str
    last_seq: int


EVENTS: dict[tuple[str, int], type[Payload]] = {
    (cls.TYPE, cls.SCHEMA): cls
    for cls in (
        QuestionAsked,
        AgentReplied,
        PlanMade,
        ToolInvoked,
        AnswerDrafted,
        GateJudged,
        RulesScored,
        AnswerEvaluated,
        FactsVerified,
        RoundRouted,
        AnswerGiven,
        HandlerParked,
        TurnFailed,
        TurnCancelled,
        ParkedResolved,
        SessionForked,
        TextErased,
        ChannelWritten,
        ChainAnchored,
    )
}
LATEST: dict[str, type[Payload]] = {cls.TYPE: cls for cls in EVENTS.values()}
