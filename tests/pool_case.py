"""One small case for tests of replies and judgements: payment-service, its HikariCP pool, two claims, two calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from handlers.judgement import JudgementInput
from handlers.replies import parse_answer
from handlers.trace import summarise
from streams.contract import BindingResult, EvidenceRef, GateResult, RetrievalDetails, TraceItem
from streams.events import ToolInvoked

POOL_LINE = "2026-03-17T10:09:12Z ERROR HikariPool-1 - Connection is not available, request timed out after 30000ms"
POOL_METRIC = 'hikaricp_connections_active{pool="payments-pool"} last=20 max=20'
QUESTION = "payment-service 为什么超时?"


def call(invocation_id: str, tool: str = "query_logs", text: str = POOL_LINE, **changes: Any) -> ToolInvoked:
    """A successful call with one record, unless `changes` say otherwise."""
    details = RetrievalDetails(
        evidence_refs=(EvidenceRef(raw_path="lines[0]", text=text),), matched=1, returned=1, truncated=False
    )
    given = {"arguments": {"service": "payment-service"}, "retrieval_details": details, **changes}
    return ToolInvoked(invocation_id=invocation_id, tool_name=tool, **given)


def claim(claim_id: str, text: str, kind: str = "observation", call_id: str = "101", quote: str = POOL_LINE) -> dict:
    return {
        "claim_id": claim_id,
        "claim_type": kind,
        "claim_text": text,
        "support_level": "direct",
        "evidence_bindings": [
            {
                "tool_name": "query_logs",
                "source_invocation_id": call_id,
                "raw_path": "lines[0]",
                "evidence_excerpt": quote,
            }
        ],
    }


CLAIMS = (
    claim("c1", "HikariPool-1 等待连接 30000ms 后超时"),
    claim("c2", "payments-pool 的 20 个连接全部占用", call_id="102", quote=POOL_METRIC),
)


def contract(claims: Sequence[dict] = CLAIMS, **changes: Any) -> dict[str, Any]:
    return {
        "answer_version": "executor_evidence_v2",
        "diagnosis_summary": "连接池耗尽",
        "claims": list(claims),
        "hypotheses": [],
        "recommended_actions": [],
        "missing_info": [],
        "user_facing_answer": "payment-service 的连接池已耗尽。",
        **changes,
    }


def fact(text: str = CLAIMS[0]["claim_text"], label: str = "direct_evidence", **changes: Any) -> dict[str, Any]:
    return {
        "fact": text,
        "is_critical": True,
        "verification": label,
        "detail": "as the line says",
        "evidence_refs": ["trace-101"],
        **changes,
    }


FACTS = (
    fact(claim_id="c1"),
    fact(CLAIMS[1]["claim_text"], claim_id="c2", evidence_refs=[{"trace_ref": "trace-102"}]),
)


def verdict(facts: Sequence[dict] = FACTS, said: str = "PASS", **changes: Any) -> dict[str, Any]:
    return {"verdict": said, "facts_checked": list(facts), "rationale": "两条都有原文", **changes}


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def trace() -> tuple[TraceItem, ...]:
    return summarise([[call("101"), call("102", "query_metrics", POOL_METRIC)]])


def gate(**changes: Any) -> GateResult:
    """The gate's result where both claims' bindings pass."""
    passed = tuple(
        BindingResult(
            claim_id=claim_id,
            index=0,
            status="pass",
            severity="none",
            source_invocation_id=call_id,
            raw_path="lines[0]",
            tier="exact",
            text=line,
            lines=line,
        )
        for claim_id, call_id, line in (("c1", "101", POOL_LINE), ("c2", "102", POOL_METRIC))
    )
    given = {"status": "pass", "severity": "none", "checked_bindings": passed, "confirmed_claims": ("c1", "c2")}
    return GateResult(**{**given, **changes})


def rests_on(answer: str | None = None, **changes: Any) -> JudgementInput:
    """What a judgement of `answer` rests on, by default the case's own good answer."""
    parsed = parse_answer(text(contract()) if answer is None else answer)
    given: dict[str, Any] = {
        "question": QUESTION,
        "lang": "zh-CN",
        "contract": parsed.contract,
        "parse_status": parsed.status,
        "final_answer": parsed.final_answer,
        "structured": parsed.structured,
        "gate": gate() if parsed.contract is not None else NOTHING_CONFIRMED,
        "trace": trace(),
    }
    return JudgementInput(**{**given, **changes})


NOTHING_CONFIRMED = GateResult(status="fail", severity="low_confid", failed_rules=("claim.none_confirmed",))
