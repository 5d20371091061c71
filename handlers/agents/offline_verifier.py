"""The Verifier without a model: labels every confirmed claim by what its verified lines say in so many words.

The reply is strict JSON of OUT-1 to OUT-4. It sees what a model would see (INP-1) and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from handlers.agents.lexical import Finding, cause, is_cause, judge, statement
from handlers.agents.offline_counts import asks_how_many, counts, says_number
from handlers.agents.offline_material import absent_text, terms_in
from handlers.agents.protocol import VerifierBrief
from handlers.agents.subject import asked_things, subjects
from handlers.guards import PROSE_LIMIT_CHARS, evidence_part
from handlers.verdicts import derive, worst
from handlers.wording import anchored, causal, sentences
from prompts import LANGUAGES
from streams.contract import Claim, Fact, Label

MOST_SENTENCES = 12
# A part of the question is no statement: that a line shares its words answers nothing.
UNANSWERED = Finding("no_evidence", "this part of the question has no answer with evidence")
NOT_WEIGHED = (
    "Whether one thing made another happen is left to a model or a reader, so the verdict is LOW_CONFID at best."
)
NOT_NAMED = (
    "The search found nothing of the name that the question gives, which is no news of it, and other lines may be about "
    "something else: the verdict is LOW_CONFID at best."
)
NOT_COUNTED = (
    "The question asks how many, and no verified line states a number of things: the verdict is LOW_CONFID at best."
)
_DERIVED: Mapping[Label, str] = {
    "direct_evidence": "direct_observation",
    "indirect_support": "derived",
    "no_evidence": "not_derivable",
    "contradicted": "not_derivable",
}
ModelFact = dict[str, Any]


def judgement_text(brief: VerifierBrief) -> str:
    """The judgement as JSON text."""
    given = brief.input
    question = str(given.get("original_query") or "")
    evidence = {entry["claim_id"]: entry["excerpts"] for entry in given.get("claim_evidence") or ()}
    claims = _claims(given)
    facts = [_claim_fact(claim, evidence.get(claim.claim_id, ()), question) for claim in claims]
    shown = [excerpt for excerpts in evidence.values() for excerpt in excerpts]
    judged = {claim.claim_text for claim in claims} | {claim.claim_id for claim in claims}
    # A missing claim may repeat the question's words: there the question exempts nothing.
    loose = {str(text): "" for text in given.get("missing_claims", ())}
    loose |= {str(text): question for text in given.get("extra_facts", ()) if str(text) not in loose}
    known = {i["trace_ref"] for i in given.get("tool_trace_summary") or () if i.get("evidence_level") == "indirect"}
    facts += [
        _fact(text, UNANSWERED, [], None) if text in question else _loose_fact(text, shown, exempting, known)
        for text, exempting in loose.items()
        if text not in judged
    ]
    if given.get("executor_structured_output") is None:
        facts += _prose_facts(str(given.get("executor_final_answer") or ""), given.get("tool_trace_summary") or ())
    causes = {claim.claim_text for claim in claims if is_cause(claim)} | {text for text in loose if causal(text)}
    weighed = all(fact["fact"] not in causes or fact["verification"] != "indirect_support" for fact in facts)
    doubts = [
        *((NOT_WEIGHED,) if not weighed else ()),
        *((NOT_NAMED,) if _unnamed(question, claims) else ()),
        *((NOT_COUNTED,) if _uncounted(question, claims, evidence) else ()),
    ]
    verdict = derive(_as_facts(facts))
    return json.dumps(
        {
            "verdict": worst(verdict, "LOW_CONFID") if doubts else verdict,
            "facts_checked": facts,
            "rationale": " ".join((_rationale(facts), *doubts)),
            "critical_fact_count": sum(fact["is_critical"] for fact in facts),
        },
        ensure_ascii=False,
    )


def _unnamed(question: str, claims: Iterable[Claim]) -> bool:
    """Whether the answer says that nothing has the name of what is asked about: whatever else it says is about other
    things, and that alone is no news of it."""
    denied = [claim.claim_text for claim in claims if claim.claim_type == "negative_observation"]
    if not denied:
        return False
    # A condition has one name, so that it is not there is an answer; a resource has more words than were searched for.
    resources = [terms for terms in asked_things(question) if len(terms) > 1]
    denials = {absent_text(terms_in(terms, lang), lang) for lang in LANGUAGES for terms in resources}
    denials |= {absent_text(subjects(question), lang) for lang in LANGUAGES}
    return not denials.isdisjoint(denied)


def _uncounted(question: str, claims: Sequence[Claim], evidence: Mapping[str, Sequence[Mapping[str, Any]]]) -> bool:
    """Whether quoted lines stand where a number was asked for: an answer that counts in its own words is weighed as it is."""
    quoted = [claim for claim in claims if claim.claim_type != "negative_observation"]
    if not quoted or not asks_how_many(question) or any(says_number(claim.claim_text) for claim in quoted):
        return False
    return not counts(str(one.get("lines") or "") for claim in quoted for one in evidence.get(claim.claim_id, ()))


def _claims(given: Mapping[str, Any]) -> list[Claim]:
    """The claims that the gate left confirmed, in their order."""
    structured = given.get("executor_structured_output") or {}
    confirmed = set((given.get("gatekeeper_result") or {}).get("confirmed_claims") or ())
    return [
        Claim.model_validate(claim)
        for claim in structured.get("claims") or ()
        if str(claim.get("claim_id")) in confirmed
    ]


def _claim_fact(claim: Claim, excerpts: Sequence[Mapping[str, Any]], question: str) -> ModelFact:
    usable = [one for one in excerpts if one.get("raw_path") != "summary" or claim.claim_type == "negative_observation"]
    found = judge(claim, _lines(usable), question)
    return _fact(claim.claim_text, found, _refs(usable), claim.claim_id)


def _loose_fact(text: str, shown: Sequence[Mapping[str, Any]], question: str, known: Collection[str]) -> ModelFact:
    """A statement that belongs to no claim, against every verified line of the answer; where all of them are
    knowledge (`known` has their trace_refs), it is indirect support at most (EXE-8)."""
    usable = [one for one in shown if one.get("raw_path") not in {"summary", "error"}]
    found = statement(text, _lines(usable), question) if usable else Finding("no_evidence", "no verified line")
    if causal(text):
        found = cause(found)
    if found.label == "direct_evidence" and all(one.get("trace_ref") in known for one in usable):
        found = Finding("indirect_support", f"knowledge only: {found.detail}")
    return _fact(text, found, _refs(usable) if found.label in {"direct_evidence", "indirect_support"} else [], None)


def _prose_facts(answer: str, trace: Iterable[Mapping[str, Any]]) -> list[ModelFact]:
    """Sentences of an answer without structure: the trace summary is all there is, so support is indirect at most."""
    items = [item for item in trace if item.get("success")]
    lines = [str(item.get("output_summary") or "") for item in items]
    refs = [{"trace_ref": item["trace_ref"]} for item in items]
    facts = []
    for sentence in [one for one in sentences(answer[:PROSE_LIMIT_CHARS]) if anchored(one)][:MOST_SENTENCES]:
        found = statement(sentence, lines) if lines else Finding("no_evidence", "no evidence was found")
        if found.label == "direct_evidence":
            found = Finding("indirect_support", f"only the trace summary was there to compare: {found.detail}")
        facts.append(_fact(sentence, found, refs if found.label == "indirect_support" else [], None))
    return facts


def _lines(excerpts: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        evidence_part(str(one.get("raw_path")), str(one.get("lines") or one.get("excerpt") or "")) for one in excerpts
    ]


def _refs(excerpts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    refs = dict.fromkeys(str(one["trace_ref"]) for one in excerpts if one.get("trace_ref"))
    return [{"trace_ref": ref} for ref in refs]


def _fact(text: str, found: Finding, refs: list[dict[str, Any]], claim_id: str | None) -> ModelFact:
    fact: ModelFact = {
        "fact": text,
        "is_critical": True,
        "verification": found.label,
        "detail": found.detail,
        "evidence_refs": refs,
        "derivability": _DERIVED[found.label],
    }
    return fact if claim_id is None else {**fact, "claim_id": claim_id}


def _as_facts(facts: Iterable[ModelFact]) -> list[Fact]:
    return [Fact(fact=f["fact"], is_critical=f["is_critical"], verification=f["verification"]) for f in facts]


def _rationale(facts: Sequence[ModelFact]) -> str:
    counts = {label: sum(fact["verification"] == label for fact in facts) for label in _DERIVED}
    said = ", ".join(f"{label} {count}" for label, count in counts.items() if count) or "no fact to check"
    return f"No language model was used: labels by numbers, identifiers, units, negation and shared words. {said}."
