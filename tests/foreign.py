"""A foreign agent in tests: requests validated and accepted as the intake does, over the log in memory."""

from __future__ import annotations

from typing import Any

from handlers.intake import Defaults, accept
from handlers.redaction import Redactions
from handlers.requests import read_request
from streams.envelope import Event
from tests.play import SESSION, Stage

QUESTION = "Is payment-service out of connections?"
POOL_LINE = 'hikaricp_connections_active{pool="payments-pool"} last=20 max=20'
CONTRACT = {
    "answer_version": "executor_evidence_v2",
    "diagnosis_summary": "The pool payments-pool is at 20 of 20 connections.",
    "claims": [
        {
            "claim_id": "c1",
            "claim_type": "observation",
            "claim_text": "payments-pool has 20 active connections of at most 20.",
            "support_level": "direct",
            "evidence_bindings": [
                {
                    "tool_name": "query_metrics",
                    "source_invocation_id": "call-1",
                    "raw_path": "lines[0]",
                    "evidence_excerpt": POOL_LINE,
                }
            ],
        }
    ],
    "user_facing_answer": "Yes: payments-pool has 20 active connections of at most 20.",
}
TOOL = {
    "invocation_id": "call-1",
    "tool_name": "query_metrics",
    "arguments": {"query": "hikaricp_connections_active"},
    "output": POOL_LINE,
}


def miscopied() -> dict[str, Any]:
    """The contract with a digit of its quotation changed."""
    claim = {**CONTRACT["claims"][0]}  # type: ignore[index, dict-item]
    binding = {**claim["evidence_bindings"][0], "evidence_excerpt": POOL_LINE.replace("last=20", "last=21")}
    return {**CONTRACT, "claims": [{**claim, "evidence_bindings": [binding]}]}


async def send(
    stage: Stage,
    kind: str,
    redactions: Redactions | None = None,
    session: str = SESSION,
    defaults: Defaults | None = None,
    **body: Any,
) -> Event:
    """One request; Refused as the intake raises it."""
    request = read_request(kind, body)
    return await accept(stage.log, session, request, stage.clock(), redactions, defaults or Defaults())
