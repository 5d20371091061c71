"""Which facts may be printed although the answer is withheld, and in which words (ruling 14, TPL-2, ROU-7)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handlers.anchors import NAME_LIKE, fold, identifiers, joined, quantities, stands_in
from handlers.coverage import absent, anchors, broken_rules, passes, verified_lines
from handlers.question import comparable, content_words, vocabulary
from handlers.wording import plain, sentences
from streams.contract import BindingResult, Contract, Fact, GateResult, VerifierEvaluation

_PLAIN_ID = re.compile(r"[\w.:-]{1,64}")
_DIGITS = re.compile(r"\d(?:[\d.,:/-]*\d)?")
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_CODED = re.compile(r"[A-Z].*[A-Z]|[a-z][A-Z]|_")


def confirmed_facts(
    contract: Contract | None, gate: GateResult | None, evaluation: VerifierEvaluation | None, question: str
) -> tuple[Fact, ...]:
    """Facts that are `direct_evidence` about a claim all whose bindings passed and which breaks no rule.

    A fact's words are the Verifier's, and it may have them from the answer: one that states a number or a name
    that the claim's verified lines lack is not printed, nor is one of a claim that another fact contradicts, one that
    holds what an unconfirmed claim or a hypothesis says, or one with a sentence that is about something else.
    """
    if contract is None or gate is None or evaluation is None:
        return ()
    facts = evaluation.facts_checked
    refuted = {fact.claim_id for fact in facts if fact.verification == "contradicted"}
    loose = _unconfirmed(contract, gate)
    kept = []
    for fact in facts:
        if fact.verification != "direct_evidence" or fact.claim_id is None or fact.claim_id in refuted:
            continue
        bindings = [b for b in gate.checked_bindings if b.claim_id == fact.claim_id]
        lines = verified_lines(bindings)
        if (
            _holds(fact.claim_id, bindings, gate)
            and _is_label(fact.claim_id, contract, joined((*lines, question)))
            and _stands_in(fact.fact, lines, question)
            and not any(text in plain(fold(fact.fact)) for text in loose)
            and _keeps_to(fact.fact, (*lines, question, *_texts(fact.claim_id, contract)))
        ):
            kept.append(fact)
    return tuple(kept)


def _unconfirmed(contract: Contract, gate: GateResult) -> list[str]:
    said = [claim.claim_text for claim in contract.claims if claim.claim_id not in gate.confirmed_claims]
    said += [hypothesis.hypothesis_text for hypothesis in contract.hypotheses]
    failed = {b.claim_id for b in gate.checked_bindings if not passes(b)}
    said += [claim.claim_text for claim in contract.claims if claim.claim_id in failed]
    return [text for text in map(plain, map(fold, said)) if text]


def _texts(claim_id: str, contract: Contract) -> list[str]:
    return [claim.claim_text for claim in contract.claims if claim.claim_id == claim_id]


def _keeps_to(fact: str, known: Sequence[str]) -> bool:
    """Whether each sentence of a fact has half of its words or more from its claim, its lines or the question."""
    words = vocabulary(known)
    for sentence in sentences(fact):
        own = {word.stem for word in content_words(sentence)}
        if own and comparable(sentence, " ".join(known)) and 2 * len(own & words) < len(own):
            return False
    return True


def _holds(claim_id: str, bindings: Sequence[BindingResult], gate: GateResult) -> bool:
    passed = bool(bindings) and all(passes(b) for b in bindings)
    return passed and claim_id in gate.confirmed_claims and not broken_rules(gate, claim_id)


def _is_label(claim_id: str, contract: Contract, known: str) -> bool:
    """Whether a claim's id is a mere label: the Executor chose it, and it is printed with the citation."""
    said = joined(claim.claim_text for claim in contract.claims)
    smuggled = any(stands_in(i, said) and not stands_in(i, known) for i in identifiers(claim_id))
    return _PLAIN_ID.fullmatch(claim_id) is not None and not smuggled


def _stands_in(fact: str, lines: Sequence[str], question: str) -> bool:
    """Whether every number, identifier and coded word of a fact stands in the lines; names may stand in the question."""
    text = fold(fact)
    lacking = absent(anchors(text), lines)
    asked = fold(question)
    if lacking.numbers or any(i.kind not in NAME_LIKE or not stands_in(i, asked) for i in lacking.names):
        return False
    spans = [(i.start, i.end) for i in identifiers(text)] + [(q.start, q.end) for q in quantities(text)]
    haystack = joined(lines)
    loose = list(_DIGITS.finditer(text)) + [m for m in _WORD.finditer(text) if _CODED.search(m[0])]
    known = f"{haystack}\n{asked}".casefold()
    return all(
        any(start <= m.start() and m.end() <= end for start, end in spans)
        or (m[0] in haystack if m[0][0].isdigit() else m[0].casefold() in known)
        for m in loose
    )
