"""The JSON that `judge --json` prints has every key of the case format, with its type, however a turn ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ledger_case import case, checked, good, later, miscopied, rnd, unfounded, unplaced, verdict
from tests.play import judged

ENDS: dict[str, dict[str, Any]] = {
    "answer": case(rnd(good(), checked())),
    "disclaimer": case(rnd(unplaced(), checked(), repairs=[unplaced()])),
    "degraded": case(rnd(miscopied(), checked())),
    "second round": case(rnd(good(), unfounded()), later(rnd(good(), checked()))),
    "borrowed": case(rnd(good(), unfounded())),
    "prose": case(rnd("It is 3s.", verdict("LOW_CONFID")), later(rnd('{"claims": [', ["no", "no"]))),
    "fallback": case(rnd(unplaced(), checked()), on_exhausted="fallback"),
    "failed": case(rnd("", checked())),
    "failed in round 2": case(rnd(good(), unfounded()), later(rnd("", checked()))),
    "no loop": case(rnd(unplaced(), checked()), max_attempts=0),
}
TEXT, NUMBER, TRUTH, LIST, OBJECT = str, float | int, bool, list, dict
REPORT = {
    "session": TEXT,
    "turn": int,
    "rounds": int,
    "attempts": LIST,
    "route": LIST,
    "evaluations": LIST,
    "response": OBJECT,
}
MAYBE = {
    "gatekeeper_result": OBJECT,
    "verifier_evaluation": OBJECT,
    "rule_evaluation": OBJECT,
    "effective_verdict": TEXT,
    "groundedness_score": NUMBER,
    "self_evaluation": OBJECT,
}
GATE = {
    "status": TEXT,
    "severity": TEXT,
    "checked_bindings": LIST,
    "failed_rules": LIST,
    "warnings": LIST,
    "errors": LIST,
}
BINDING = {
    "claim_id",
    "index",
    "status",
    "severity",
    "failed_rules",
    "warnings",
    "source_invocation_id",
    "raw_path",
    "tier",
    "start",
    "end",
    "text",
    "ref_sha256",
    "nearest_miss",
}
JUDGEMENT = {
    "verdict",
    "groundedness_score",
    "facts_checked",
    "critical_fact_count",
    "rationale",
    "derived_verdict",
    "model_verdict",
    "model_score",
    "effective_verdict",
    "caps",
    "executor_output_parse_status",
    "executor_structured_output",
    "executor_final_answer",
    "traceability_version",
    "tool_trace_summary",
    "gatekeeper_result",
}
FACT = {"fact", "is_critical", "verification", "detail", "evidence_refs", "claim_id", "derivability", "fabricated"}
EVALUATION = {
    "round": int,
    "attempt": int,
    "supported": TRUTH,
    "complete": TRUTH,
    "citations_aligned": TRUTH,
    "missing_claims": LIST,
    "unsupported_citations": LIST,
    "repair_request": TEXT,
    "coverage": NUMBER,
    "decision": TEXT,
}
RULES = {"score", "coverage", "precision", "diversity", "yield", "weights", "inputs", "reason"}
RESPONSE = {"kind": TEXT, "text": TEXT, "citations": LIST, "gaps": LIST, "missing_claims": LIST}


def typed(value: dict[str, Any], shape: dict[str, Any]) -> None:
    for key, kind in shape.items():
        assert isinstance(value[key], kind), key


def gate_shape(gate: dict[str, Any]) -> None:
    typed(gate, GATE)
    assert all(set(b) >= BINDING for b in gate["checked_bindings"])
    assert gate["failed_rules"] == sorted(set(gate["failed_rules"]))
    assert all(set(n) >= {"rule", "claim_id", "message"} for n in (*gate["warnings"], *gate["errors"]))
    assert (gate["status"] == "pass") == (gate["severity"] == "none")


def judgement_shape(judgement: dict[str, Any]) -> None:
    assert set(judgement) >= JUDGEMENT
    assert judgement["verdict"] == judgement["effective_verdict"]
    assert judgement["critical_fact_count"] == sum(f["is_critical"] for f in judgement["facts_checked"])
    for fact in judgement["facts_checked"]:
        assert set(fact) == FACT
        for ref in fact["evidence_refs"]:
            assert set(ref) == {"trace_ref", "source_invocation_ids"}
            assert ref["source_invocation_ids"]
    assert all(set(cap) == {"source", "cap", "reason"} and cap["reason"] for cap in judgement["caps"])
    assert {cap["source"] for cap in judgement["caps"]} <= {"gate", "repair", "parse", "model", "found", "borrowed"}
    gate_shape(judgement["gatekeeper_result"])


@pytest.mark.scenario("GAT-10", "OUT-1", "OUT-3", "REP-1", "ROU-1", "SEV-6")
@pytest.mark.parametrize("end", list(ENDS))
def test_every_report_has_the_keys_of_the_case_format(end: str) -> None:
    report = judged(ENDS[end])
    typed(report, REPORT)
    for key, kind in MAYBE.items():
        assert report[key] is None or isinstance(report[key], kind)
    assert report["rounds"] == len(report["route"]) == len(report["attempts"])
    typed(report["response"], RESPONSE)
    assert "fallback_reason" in report["response"]
    citation = {"claim_id", "source_invocation_id", "raw_path", "excerpt"}
    assert all(set(c) == citation for c in report["response"]["citations"])
    for found in report["evaluations"]:
        typed(found, EVALUATION)
    for given, shape in ((report["gatekeeper_result"], gate_shape), (report["verifier_evaluation"], judgement_shape)):
        if given is not None:
            shape(given)
    if report["rule_evaluation"] is not None:
        assert set(report["rule_evaluation"]) == RULES
    unjudged = report["verifier_evaluation"] is None
    assert unjudged == (report["effective_verdict"] is None) == (report["groundedness_score"] is None)
    assert unjudged == (end in {"fallback", "failed", "failed in round 2"})
    for channel in report["self_evaluation"] or {}:
        assert unjudged or report["self_evaluation"][channel] == report[channel]
