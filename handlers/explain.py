"""Why a claim stands or falls, in words: its bindings with the line around each excerpt, its rules, facts and caps,
and what would have to be different for `PASS`. Pure; the text is made from the object, so both say the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from handlers import flow
from handlers.gating import contract_of
from handlers.reasons import SCORE_NOTE, cap_lifted, cap_told
from streams.contract import BindingResult, Claim, Fact, FactNote, GateResult, VerifierEvaluation
from streams.session import SessionState, Turn

MARKS = ("»", "«")


def explain(state: SessionState, turn: Turn, claim_id: str | None = None) -> dict[str, Any]:
    """`{session, turn, verdict, score, caps, claims: [...], for_pass: [...]}`; KeyError for a claim that is not there.

    A claim: `{claim_id, claim_text, claim_type, support_level, confirmed, bindings, rules, facts, for_pass}`.
    """
    number = turn.rounds[-1].number if turn.rounds else 1
    rnd = flow.answered_round(turn, number)
    judged = flow.judged_round(turn) if turn.judged else None
    evaluation = judged.verification.evaluation if judged is not None and judged.verification is not None else None
    attempt = rnd.attempts[-1] if rnd.attempts else None
    gate = attempt.gate.result if attempt is not None and attempt.gate is not None else None
    contract = contract_of(attempt.draft) if attempt is not None else None
    claims = [claim for claim in (contract.claims if contract else ()) if claim_id in {None, claim.claim_id}]
    if claim_id is not None and not claims:
        raise KeyError(claim_id)
    told = [_claim(claim, gate, evaluation) for claim in claims]
    return {
        "session": state.session,
        "turn": turn.number,
        "verdict": evaluation.effective_verdict if evaluation is not None else None,
        "derived_verdict": evaluation.derived_verdict if evaluation is not None else None,
        "model_verdict": evaluation.model_verdict if evaluation is not None else None,
        "score": evaluation.groundedness_score if evaluation is not None else None,
        "caps": [cap.model_dump(mode="json") for cap in (evaluation.caps if evaluation is not None else ())],
        "claims": told,
        "answer_rules": _answer_rules(gate),
        "other_facts": [_fact(f, note) for f, note in _noted(evaluation) if f.claim_id is None],
        "for_pass": _for_pass(turn, attempt is not None and flow.usable(attempt.draft), gate, evaluation, told),
    }


def _claim(claim: Claim, gate: GateResult | None, evaluation: VerifierEvaluation | None) -> dict[str, Any]:
    results = [b for b in (gate.checked_bindings if gate is not None else ()) if b.claim_id == claim.claim_id]
    noted = [(f, note) for f, note in _noted(evaluation) if f.claim_id == claim.claim_id]
    facts = [f for f, _ in noted]
    failures = [n for n in (gate.failures if gate is not None else ()) if n.claim_id == claim.claim_id]
    warnings = [n for n in (gate.warnings if gate is not None else ()) if n.claim_id == claim.claim_id]
    confirmed = gate is not None and claim.claim_id in gate.confirmed_claims
    wanting = [f"{notice.rule}: {notice.message}" for notice in failures]
    wanting += [_shown(f) for f in facts if _lowers(f)]
    if not confirmed and not failures:
        wanting.append("it is a hypothesis: only a claim with a passing binding is confirmed")
    return {
        "claim_id": claim.claim_id,
        "claim_text": claim.claim_text,
        "claim_type": claim.claim_type,
        "support_level": claim.support_level,
        "confirmed": confirmed,
        "bindings": [_binding(result) for result in results],
        "rules": [
            *({"rule": n.rule, "result": "failed", "message": n.message} for n in failures),
            *({"rule": n.rule, "result": "warned", "message": n.message} for n in warnings),
        ],
        "facts": [_fact(f, note) for f, note in noted],
        "for_pass": wanting,
    }


def _shown(fact: Fact) -> str:
    if fact.verification == "contradicted":
        return f"the evidence contradicts “{fact.fact}”: leave it out, or say what the lines show"
    return f"a line must show “{fact.fact}”: none does"


def _lowers(fact: Fact) -> bool:
    return fact.is_critical and fact.verification in {"no_evidence", "contradicted"}


def _binding(result: BindingResult) -> dict[str, Any]:
    miss = result.nearest_miss
    return {
        "index": result.index,
        "status": result.status,
        "severity": result.severity,
        "source_invocation_id": result.source_invocation_id,
        "raw_path": result.raw_path,
        "tool_name": result.tool_name,
        "tier": result.tier,
        "line": _marked(result),
        "failed_rules": list(result.failed_rules),
        "warnings": list(result.warnings),
        "nearest_miss": None if miss is None else {"text": miss.text, "difference": miss.difference},
    }


def _marked(result: BindingResult) -> str | None:
    """The line in its context with the excerpt between marks."""
    if result.text is None:
        return None
    around = result.lines or result.text
    before, found, after = around.partition(result.text)
    return f"{before}{MARKS[0]}{found}{MARKS[1]}{after}" if found else around


def _noted(evaluation: VerifierEvaluation | None) -> list[tuple[Fact, FactNote | None]]:
    """The facts, each with what the runtime says of it."""
    return [] if evaluation is None else list(zip_longest(evaluation.facts_checked, evaluation.fact_notes))


def _fact(fact: Fact, note: FactNote | None) -> dict[str, Any]:
    return {
        "fact": fact.fact,
        "verification": fact.verification,
        "is_critical": fact.is_critical,
        "detail": fact.detail,
        "evidence_refs": [ref.trace_ref for ref in fact.evidence_refs],
        "added_by": note.added_by if note is not None else None,
        "recorded": list(note.recorded) if note is not None else [],
    }


def _answer_rules(gate: GateResult | None) -> list[dict[str, Any]]:
    if gate is None:
        return []
    found = [n for n in (*gate.failures, *gate.errors) if n.claim_id is None]
    return [{"rule": n.rule, "result": "failed", "message": n.message} for n in found]


def _for_pass(
    turn: Turn,
    usable: bool,
    gate: GateResult | None,
    evaluation: VerifierEvaluation | None,
    claims: list[dict[str, Any]],
) -> list[str]:
    if evaluation is None:
        reason = turn.answer.fallback_reason if turn.answer is not None else None
        return [f"the turn must end with a judgement; it ended by {reason}" if reason else "the turn must end"]
    if evaluation.effective_verdict == "PASS":
        return []
    wanting = [] if usable else [f"the answer must be readable: it was {evaluation.executor_output_parse_status}"]
    wanting += [f"{claim['claim_id']}: {text}" for claim in claims for text in claim["for_pass"]]
    wanting += [f"{n['rule']}: {n['message']}" for n in _answer_rules(gate)]
    wanting += [_shown(f) for f in evaluation.facts_checked if not f.claim_id and _lowers(f)]
    critical = [fact for fact in evaluation.facts_checked if fact.is_critical]
    if not critical:
        wanting.append("at least one fact must be critical, and shown by a line")
    elif all(fact.verification == "indirect_support" for fact in critical):
        wanting.append("at least one critical fact must be shown directly; all are indirect")
    wanting += [cap_lifted(cap.model_dump()) for cap in evaluation.caps if cap.source != "gate"]
    return list(dict.fromkeys(wanting))


def told(explained: dict[str, Any]) -> Iterator[str]:
    """The lines of the same explanation as text."""
    verdict = explained["verdict"] or "no verdict"
    lowered = explained["verdict"] != explained["derived_verdict"]
    score = "no score" if explained["score"] is None else f"score {explained['score']:.2f}"
    note = f" ({SCORE_NOTE})" if lowered else ""
    yield f"{explained['session']}, turn {explained['turn']}: {verdict}, {score}{note}"
    yield f"  from the facts {explained['derived_verdict'] or 'none'}, from the model {explained['model_verdict'] or 'none'}"
    for cap in explained["caps"]:
        yield f"  capped at {cap['cap']} by {cap['source']}: {cap_told(cap)}"
    for claim in explained["claims"]:
        yield ""
        standing = "claimed as fact" if claim["confirmed"] else "a hypothesis"
        yield f"{claim['claim_id']} ({claim['claim_type']}, {claim['support_level']}, {standing}): {claim['claim_text']}"
        for binding in claim["bindings"]:
            yield f"  [{binding['index']}] {binding['status']}: {binding['source_invocation_id']} {binding['raw_path']} ({binding['tier'] or '-'})"
            if binding["line"]:
                yield f"      {binding['line']}"
            if binding["nearest_miss"]:
                miss = binding["nearest_miss"]
                yield f"      nearest ({miss['difference']} differs): {miss['text']}"
        for rule in claim["rules"]:
            yield f"  {rule['result']} {rule['rule']}: {rule['message']}"
        for fact in claim["facts"]:
            yield f"  fact, {fact['verification']}{', critical' if fact['is_critical'] else ''}: {fact['fact']}"
            for note in fact["recorded"]:
                yield f"      {note}"
    for rule in explained["answer_rules"]:
        yield f"answer: {rule['rule']}: {rule['message']}"
    for fact in explained["other_facts"]:
        yield f"answer: fact, {fact['verification']}{', critical' if fact['is_critical'] else ''}: {fact['fact']}"
    if explained["for_pass"]:
        yield ""
        yield "For PASS:"
        yield from (f"  - {text}" for text in explained["for_pass"])
