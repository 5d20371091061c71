"""The output formats as strict JSON schemas: every object closed, every key required, no pattern or bound.

Servers that enforce a schema know only this much in common. What a reply may leave out (case-format.md, OUT-3)
is asked for all the same, nullable.
"""

from __future__ import annotations

from typing import Any, get_args

from streams.contract import ClaimType, Label, SupportLevel, Verdict


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _one_of(values: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_TEXT: dict[str, Any] = {"type": "string"}
_BOOL: dict[str, Any] = {"type": "boolean"}
_BINDING = _object(tool_name=_TEXT, source_invocation_id=_TEXT, raw_path=_TEXT, evidence_excerpt=_TEXT)

CONTRACT: dict[str, Any] = _object(
    answer_version=_one_of(("executor_evidence_v2",)),
    diagnosis_summary=_TEXT,
    claims=_list(
        _object(
            claim_id=_TEXT,
            claim_type=_one_of(get_args(ClaimType)),
            claim_text=_TEXT,
            support_level=_one_of(get_args(SupportLevel)),
            evidence_bindings=_list(_BINDING),
        )
    ),
    hypotheses=_list(_object(hypothesis_text=_TEXT, basis=_TEXT, needed_evidence=_list(_TEXT))),
    recommended_actions=_list(_object(action_text=_TEXT, reason=_TEXT, evidence_bindings=_list(_BINDING))),
    missing_info=_list(_TEXT),
    user_facing_answer=_TEXT,
)

JUDGEMENT: dict[str, Any] = _object(
    verdict=_one_of(get_args(Verdict)),
    facts_checked=_list(
        _object(
            fact=_TEXT,
            is_critical=_BOOL,
            verification=_one_of(get_args(Label)),
            detail=_TEXT,
            evidence_refs=_list(_TEXT),
            claim_id={"type": ["string", "null"]},
            derivability=_one_of(("direct_observation", "derived", "not_derivable")),
            fabricated=_BOOL,
        )
    ),
    rationale=_TEXT,
)
