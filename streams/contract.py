"""The shapes that events and roles share: the Executor's contract, evidence, the gate's result, facts.

All are frozen; unknown keys of a newer schema are kept (`extra="allow"`), so nothing is lost when an old
program reads a new event. Field lists: scenarios EXE-1, EXE-2, EXE-9, GAT-10, OUT-3, TRC-1 and case-format.md.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["PASS", "LOW_CONFID", "REJECT"]
Severity = Literal["none", "low_confid", "reject"]
ParseStatus = Literal["valid", "repaired_wrapper", "malformed", "truncated", "refused", "empty"]
SupportLevel = Literal["direct", "indirect", "none"]
ClaimType = Literal["observation", "negative_observation", "root_cause", "contributing_factor", "impact", "other"]
Label = Literal["direct_evidence", "indirect_support", "no_evidence", "contradicted"]
EvidenceKind = Literal["incident", "knowledge", "helper"]
InvocationStatus = Literal["success", "no_data", "error"]
Tier = Literal["exact", "normalized", "unescaped", "unwrapped", "elided", "casefolded"]

VERDICT_ORDER: tuple[Verdict, ...] = ("PASS", "LOW_CONFID", "REJECT")
LONGEST_S = 31_536_000  # a year in seconds: the longest deadline
SEVERITY_ORDER: tuple[Severity, ...] = ("none", "low_confid", "reject")


class Frozen(BaseModel):
    """A value that never changes; keys it does not know are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="null")


class EvidenceRef(Frozen):
    """One quotable record of an invocation's output."""

    raw_path: str = Field(description="where it stands in that output: `lines[12]`, `result[0]`, `summary`, `error`")
    text: str = Field(description="the record as the tool returned it (rendered for metrics)")
    source: str | None = Field(None, description="file, URL or document the record came from, for people")


class RetrievalDetails(Frozen):
    """What a search gave: the quotable refs, and how much there was beside them."""

    evidence_refs: tuple[EvidenceRef, ...] | None = Field(None, description="null in old data: `evidence.refs_missing`")
    matched: int | None = Field(None, description="records that matched the query")
    returned: int | None = Field(None, description="records that stand in evidence_refs, the summary not counted")
    truncated: bool | None = Field(None, description="true if matched > returned or the source was cut")
    order: str | None = Field(None, description="which records were kept: `first+last+rare`, `ranked`, ...")
    first_time: str | None = Field(None, description="earliest time stamp among the matches, as written there")
    last_time: str | None = Field(None, description="latest time stamp among the matches, as written there")
    dropped_reason: str | None = Field(None, description="why records were left out, in words")
    query_samples: tuple[str, ...] | None = None
    retrieval_layers: tuple[str, ...] | None = None
    relevance_levels: tuple[str, ...] | None = None
    source_documents: tuple[str, ...] | None = None


class Binding(Frozen):
    """A claim's pointer to an evidence ref: v2 (`source_invocation_id`, `raw_path`) or v1 (the plural ids).

    Absent parts are gate rules, never malformed (EXE-9). Ids are text, whatever the model wrote.
    """

    tool_name: str | None = None
    evidence_excerpt: str | None = None
    source_invocation_id: str | None = None
    raw_path: str | None = None
    source_type: str | None = Field(None, description="v1: `tool_trace`, `lookup_evidence_block` or another family")
    source_id: str | None = Field(None, description="v1: never supplies the invocation id (EXE-6)")
    source_invocation_ids: tuple[str, ...] | None = Field(None, description="v1: one is read as the singular")


class Claim(Frozen):
    """One statement about the incident, with the lines it rests on."""

    claim_id: str
    claim_type: ClaimType = "other"
    claim_text: str
    support_level: SupportLevel
    evidence_bindings: tuple[Binding, ...] = ()


class Hypothesis(Frozen):
    """A statement that is not confirmed, and what would confirm it."""

    hypothesis_text: str = ""
    basis: str = ""
    needed_evidence: tuple[str, ...] = ()


class Action(Frozen):
    """A recommended step; its bindings go through the gate as claim `action-<index>`."""

    action_text: str = ""
    reason: str = ""
    evidence_bindings: tuple[Binding, ...] = ()


class Contract(Frozen):
    """The Executor's structured answer (EXE-1)."""

    answer_version: Literal["executor_evidence_v1", "executor_evidence_v2"]
    diagnosis_summary: str = ""
    claims: tuple[Claim, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    recommended_actions: tuple[Action, ...] = ()
    missing_info: tuple[str, ...] = ()
    user_facing_answer: str | None = None


class Notice(Frozen):
    """A warning, or an error of a rule that could not run."""

    rule: str
    claim_id: str | None = None
    message: str
    severity: Severity | None = Field(
        None,
        exclude_if=lambda severity: severity is None,
        description="in `failures`: how bad this one finding is; `claim.identifier_absent` has two tiers",
    )


class NearestMiss(Frozen):
    """The closest text to an excerpt that failed: an audit detail and a repair hint, never a reason to accept."""

    text: str = Field(description="the source's text that comes closest")
    start: int = Field(description="offset in the ref's text, in characters")
    end: int
    difference: Literal["digit", "negation", "entity", "word"]
    ratio: float = Field(description="0 to 100, for people only")


class BindingResult(Frozen):
    """What the gate found for one binding."""

    claim_id: str
    index: int = Field(description="place among the claim's bindings, from 0")
    status: Literal["pass", "fail", "not_run"]
    severity: Severity
    failed_rules: tuple[str, ...] = ()
    warnings: tuple[str, ...] = Field((), description="rule ids; the sentences stand in the result's warnings")
    source_invocation_id: str | None = None
    raw_path: str | None = None
    tool_name: str | None = None
    tier: Tier | None = None
    start: int | None = Field(None, description="offset of the hit in the ref's text, in characters")
    end: int | None = None
    text: str | None = Field(None, description="the source's own text, never the model's")
    lines: str | None = Field(None, description="the full line or lines around the hit, at most 2 KB")
    spans: tuple[tuple[int, int], ...] = Field((), description="all places, where there are several")
    ref_sha256: str | None = None
    nearest_miss: NearestMiss | None = None


class GateResult(Frozen):
    """The Gatekeeper's result (GAT-10)."""

    status: Literal["pass", "fail"]
    severity: Severity
    checked_bindings: tuple[BindingResult, ...] = ()
    failed_rules: tuple[str, ...] = Field((), description="sorted, unique rule ids")
    warnings: tuple[Notice, ...] = ()
    errors: tuple[Notice, ...] = ()
    failures: tuple[Notice, ...] = Field((), description="one sentence for each rule that failed, with its claim")
    claim_rules: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="claim id -> the `claim.*` rules that fired on it, failed or warned"
    )
    confirmed_claims: tuple[str, ...] = Field((), description="ids of the claims that stay confirmed, in their order")


class FactRef(Frozen):
    """A fact's pointer into the trace summary (AUD-1)."""

    trace_ref: str
    source_invocation_ids: tuple[str, ...] = ()


class Fact(Frozen):
    """One fact checked, after the runtime's corrections (OUT-3)."""

    fact: str
    is_critical: bool
    verification: Label
    detail: str = ""
    evidence_refs: tuple[FactRef, ...] = ()
    claim_id: str | None = None
    derivability: Literal["direct_observation", "derived", "not_derivable"] | None = None
    fabricated: bool = False


class FactNote(Frozen):
    """What the runtime says of a fact; it stands beside the facts, whose keys are closed (OUT-3)."""

    added_by: Literal["runtime"] | None = Field(None, description="set for a fact that the model did not give")
    recorded: tuple[str, ...] = Field((), description="what the runtime changed in it, in words: dropped refs, caps")


class Cap(Frozen):
    """An upper bound on the verdict, with its reason (ruling 3)."""

    source: Literal["gate", "repair", "parse", "model", "found", "borrowed"]
    cap: Verdict
    reason: str


class TraceItem(Frozen):
    """One item of `tool_trace_summary` (TRC-1)."""

    trace_ref: str = Field(description="`trace-` and the first contributing invocation's id (ruling 19)")
    tool_name: str
    success: bool
    input_summary: str
    output_summary: str
    evidence_level: Literal["direct", "indirect", "none"]
    source_invocation_ids: tuple[str, ...]
    query_samples: tuple[str, ...] | None = None
    retrieval_layers: tuple[str, ...] | None = None
    relevance_levels: tuple[str, ...] | None = None
    source_documents: tuple[str, ...] | None = None
    repeated_count: int | None = None
    failed_count: int | None = None
    no_hit_count: int | None = None


class VerifierEvaluation(Frozen):
    """The `verifier_evaluation` channel: the judgement and all it rests on (SEV-6)."""

    verdict: Verdict = Field(description="the effective one")
    groundedness_score: float = Field(description="0 to 1, four decimals (ruling 1)")
    facts_checked: tuple[Fact, ...] = ()
    fact_notes: tuple[FactNote, ...] = Field((), description="one for each of facts_checked, in its order")
    critical_fact_count: int = Field(description="counted by the runtime")
    rationale: str = ""
    derived_verdict: Verdict
    model_verdict: Verdict | None = None
    effective_verdict: Verdict
    model_score: float | None = None
    model_critical_fact_count: int | None = None
    caps: tuple[Cap, ...] = ()
    reasons: tuple[str, ...] = Field((), description="words for what the runtime recorded: mismatch, dropped refs")
    executor_output_parse_status: ParseStatus
    executor_structured_output: dict[str, Any] | None = None
    executor_final_answer: str = ""
    traceability_version: str = "trace_summary_v1"
    tool_trace_summary: tuple[TraceItem, ...] = ()
    gatekeeper_result: GateResult
    verifier_parse_status: Literal["valid", "malformed"] = "valid"


class RuleEvaluation(Frozen):
    """The `rule_evaluation` channel (ruling 17). Every part is 0 to 1."""

    score: float
    coverage: float
    precision: float
    diversity: float
    yield_: float = Field(alias="yield")
    weights: dict[str, float]
    inputs: dict[str, Any]
    reason: str | None = None

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, serialize_by_alias=True)


class Verification(Frozen):
    """The repair report of one attempt (REP-1)."""

    supported: bool
    complete: bool
    citations_aligned: bool
    missing_claims: tuple[str, ...] = ()
    unsupported_citations: tuple[str, ...] = ()
    repair_request: str = ""
    coverage: float = Field(description="share of the important items that have evidence, 0 to 1 (ruling 12)")
    items: tuple[dict[str, Any], ...] = Field((), description="each important item with its evidence")
    parts: tuple[dict[str, Any], ...] = Field((), description="each part of the question and how it was answered")


class Citation(Frozen):
    """A line that the answer rests on, in the source's own text."""

    claim_id: str
    source_invocation_id: str
    raw_path: str
    excerpt: str


class Usage(Frozen):
    """What a model call cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 1


class ToolCall(Frozen):
    """A call that an agent asked for."""

    call_id: str = Field(description="becomes the invocation id")
    name: str
    arguments: dict[str, Any] | None = Field(None, description="null if the model's text did not parse")
    arguments_text: str | None = Field(None, description="the model's own text, where it did not parse")
