"""Claims that share an id: each is judged by its own bindings, however many there are."""

from __future__ import annotations

from handlers.coverage import supports
from streams.contract import Binding, BindingResult, Claim, Contract, GateResult


def claim(*paths: str, name: str = "c1") -> Claim:
    bindings = tuple(
        Binding(tool_name="query_metrics", source_invocation_id="101", raw_path=path, evidence_excerpt=path)
        for path in paths
    )
    return Claim(
        claim_id=name,
        claim_type="observation",
        claim_text=f"payments-pool, by {', '.join(paths) or 'nothing'}",
        support_level="direct",
        evidence_bindings=bindings,
    )


def judged(*claims: Claim) -> GateResult:
    checked = tuple(
        BindingResult(
            claim_id=one.claim_id,
            index=index,
            status="pass",
            severity="none",
            source_invocation_id="101",
            raw_path=binding.raw_path,
            text=binding.evidence_excerpt,
        )
        for one in claims
        for index, binding in enumerate(one.evidence_bindings)
    )
    return GateResult(
        status="pass", severity="none", checked_bindings=checked, confirmed_claims=tuple(c.claim_id for c in claims)
    )


def test_each_of_two_claims_with_one_id_has_its_own_bindings() -> None:
    claims = (claim("result[0]", "result[1]"), claim(), claim("result[2]", name="c2"), claim("result[3]"))
    found = supports(
        Contract(answer_version="executor_evidence_v2", diagnosis_summary="", claims=claims), judged(*claims)
    )
    assert [[b.raw_path for b in one.bindings] for one in found] == [
        ["result[0]", "result[1]"],
        ["result[2]"],
        ["result[3]"],
    ]
