"""Rule scoring (ruling 17): the `rule_evaluation` channel. Deterministic, and kept apart from any judgement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from handlers.trace import has_hit
from streams.contract import Binding, Contract, GateResult, RuleEvaluation
from streams.events import ToolInvoked

WEIGHTS: Mapping[str, float] = {"coverage": 0.4, "precision": 0.2, "diversity": 0.2, "yield": 0.2}


def evaluate(
    contract: Contract | None,
    gate: GateResult,
    planned_tools: Sequence[str] | None,
    invocations: Sequence[ToolInvoked],
) -> RuleEvaluation:
    """Score an attempt from its contract (None if it was malformed), its gate result and the evidence calls.

    `planned_tools` None: no plan was made, diversity is taken over the tools that were called. Every part is 0 to 1;
    a share of nothing is 0. Without claims the score is 0.0 and `reason` is `no_claims`; the parts stay visible.
    """
    evidence = [call for call in invocations if call.evidence_kind != "helper"]
    hits = [call for call in evidence if has_hit(call)]
    passing = {result.claim_id for result in gate.checked_bindings if result.status == "pass"}
    confirmed = list(gate.confirmed_claims)
    backed = [claim_id for claim_id in confirmed if claim_id in passing]
    bindings = _bindings(contract)
    precise = [binding for binding in bindings if _names_a_call(binding) and binding.raw_path]
    wanted = _wanted(planned_tools, evidence, invocations)
    tools = sorted({call.tool_name for call in hits} & wanted)
    parts = {
        "coverage": _share(len(backed), len(confirmed)),
        "precision": _share(len(precise), len(bindings)),
        "diversity": _share(len(tools), len(wanted)),
        "yield": _share(len(hits), len(evidence)),
    }
    has_claims = contract is not None and bool(contract.claims)
    score = sum(WEIGHTS[name] * value for name, value in parts.items()) if has_claims else 0.0
    return RuleEvaluation(
        score=round(score, 4),
        **{name: round(value, 4) for name, value in parts.items()},
        weights=dict(WEIGHTS),
        inputs={
            "confirmed_claims": confirmed,
            "claims_with_passing_binding": backed,
            "bindings": len(bindings),
            "bindings_with_id_and_raw_path": len(precise),
            "planned_tools": None if planned_tools is None else sorted(set(planned_tools)),
            "tools_counted": sorted(wanted),
            "tools_with_hit": tools,
            "evidence_calls": len(evidence),
            "evidence_calls_with_hit": len(hits),
        },
        reason=None if has_claims else "no_claims",
    )


def _wanted(
    planned: Sequence[str] | None, evidence: Iterable[ToolInvoked], invocations: Iterable[ToolInvoked]
) -> frozenset[str]:
    if planned is None:
        return frozenset(call.tool_name for call in evidence)
    return frozenset(planned) - {call.tool_name for call in invocations if call.evidence_kind == "helper"}


def _bindings(contract: Contract | None) -> list[Binding]:
    if contract is None:
        return []
    of_claims = [binding for claim in contract.claims for binding in claim.evidence_bindings]
    return of_claims + [binding for action in contract.recommended_actions for binding in action.evidence_bindings]


def _names_a_call(binding: Binding) -> bool:
    """One plural id is read as the singular (EXE-6)."""
    return bool(binding.source_invocation_id) or len(set(binding.source_invocation_ids or ())) == 1


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
