"""The judgement of a round: what the Verifier is given, and what its reply comes to (INP-1, OUT-1, SEV-6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handlers.contract_reply import stated
from handlers.facts import settle
from handlers.replies import ParsedVerdict
from handlers.verdicts import caps_for, derive, effective, score, worst
from streams.contract import Cap, Contract, GateResult, ParseStatus, TraceItem, VerifierEvaluation

LINES_BYTES = 2048


@dataclass(frozen=True, slots=True)
class JudgementInput:
    """All that a judgement rests on, apart from the Verifier's reply.

    `missing_claims`: the last report's, where the repair loop ended by itself (REP-10), and `repair_reason` why.
    `extra_facts`: sentences of the prose that state what no claim has (EXE-5).
    """

    question: str
    lang: str
    contract: Contract | None
    parse_status: ParseStatus
    final_answer: str
    structured: dict[str, Any] | None
    gate: GateResult
    trace: tuple[TraceItem, ...] = ()
    missing_claims: tuple[str, ...] = ()
    extra_facts: tuple[str, ...] = ()
    repair_reason: str | None = None
    found: bool = False


def verifier_input(given: JudgementInput, retry_context: dict[str, Any] | None = None) -> dict[str, Any]:
    """The Verifier's input as named blocks; `retry_context` only in a second round (INP-2).

    `claim_evidence` has, for each claim and action, the records that its bindings were verified against: the
    source's text, never the model's, and at most 2 KB of the lines around it. A failed binding shows nothing
    (GAT-12). `missing_claims` and `extra_facts` are there only if there are any; each wants a fact of its own.
    """
    blocks: dict[str, Any] = {
        "original_query": given.question,
        "executor_final_answer": given.final_answer,
        "executor_structured_output": None if given.contract is None else stated(given.contract),
        "executor_output_parse_status": given.parse_status,
        "gatekeeper_result": given.gate.model_dump(mode="json", exclude_none=True),
        "claim_evidence": _claim_evidence(given),
        "tool_trace_summary": [item.model_dump(mode="json", exclude_none=True) for item in given.trace],
    }
    if given.missing_claims:
        blocks["missing_claims"] = list(given.missing_claims)
    if given.extra_facts:
        blocks["extra_facts"] = list(given.extra_facts)
    if retry_context is not None:
        blocks["retry_context"] = retry_context
    return blocks


def judge(given: JudgementInput, reply: ParsedVerdict) -> VerifierEvaluation:
    """The evaluation that `reply` comes to. A malformed reply gives no fact and no verdict of the model's (OUT-2)."""
    settled = settle(reply.facts, given.contract, given.gate, given.trace, given.missing_claims, given.extra_facts)
    derived = derive(settled.facts)
    caps = caps_for(given.gate, given.repair_reason, given.parse_status, reply.status, found=given.found)
    if reply.verdict is not None and worst(derived, reply.verdict) != derived:
        reason = f"the model's own verdict is worse than {derived}, which its facts give"
        caps = (*caps, Cap(source="model", cap=reply.verdict, reason=reason))
    counts = effective(derived, reply.verdict, caps)
    critical = sum(fact.is_critical for fact in settled.facts)
    return VerifierEvaluation(
        verdict=counts,
        groundedness_score=score(settled.facts),
        facts_checked=settled.facts,
        fact_notes=settled.notes,
        critical_fact_count=critical,
        rationale=reply.rationale if reply.status == "valid" else f"no usable reply of the Verifier: {reply.error}",
        derived_verdict=derived,
        model_verdict=reply.verdict,
        effective_verdict=counts,
        model_score=reply.score,
        model_critical_fact_count=reply.critical_fact_count,
        caps=caps,
        reasons=(*_reasons(reply, derived, critical), *settled.reasons),
        executor_output_parse_status=given.parse_status,
        executor_structured_output=given.structured,
        executor_final_answer=given.final_answer,
        tool_trace_summary=given.trace,
        gatekeeper_result=given.gate,
        verifier_parse_status=reply.status,
    )


def _reasons(reply: ParsedVerdict, derived: str, critical: int) -> list[str]:
    reasons = []
    if reply.status == "malformed":
        reasons.append(f"verifier_malformed: {reply.error}")
    if reply.verdict is not None and reply.verdict != derived:
        reasons.append(f"verdict_mismatch: the model says {reply.verdict}, the facts give {derived}")
    if critical == 0:
        reasons.append("no_critical_facts")
    return reasons


def _claim_evidence(given: JudgementInput) -> list[dict[str, Any]]:
    item_of = {call: item.trace_ref for item in given.trace for call in item.source_invocation_ids}
    evidence: dict[str, list[dict[str, Any]]] = {}
    for binding in given.gate.checked_bindings:
        shown = evidence.setdefault(binding.claim_id, [])
        if binding.status != "pass":
            continue
        shown.append(
            {
                "trace_ref": item_of.get(binding.source_invocation_id or ""),
                "source_invocation_id": binding.source_invocation_id,
                "raw_path": binding.raw_path,
                "excerpt": binding.text,
                "lines": _cut(binding.lines or binding.text or ""),
            }
        )
    for claim in given.contract.claims if given.contract is not None else ():
        evidence.setdefault(claim.claim_id, [])
    return [{"claim_id": claim_id, "excerpts": shown} for claim_id, shown in evidence.items()]


def _cut(lines: str) -> str:
    return lines.encode()[:LINES_BYTES].decode(errors="ignore")
