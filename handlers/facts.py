"""What the runtime makes of the model's facts: whose they are, what they rest on, and the facts it adds itself.

A label is only ever lowered. Every change is noted, so that a reader sees both what the model
said and what counted; such notes stand beside the facts, whose keys are closed (OUT-3).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from handlers.verifier_reply import ModelFact
from handlers.wording import plain
from streams.contract import Claim, Contract, Fact, FactNote, FactRef, GateResult, Label, Notice, TraceItem

OBSERVED = frozenset({"observation", "negative_observation"})
SUPPORTING = frozenset({"direct_evidence", "indirect_support"})
# The gate's rules that bound a claim's facts at indirect_support (GAT-12).
INDIRECT_AT_MOST = ("claim.knowledge_only", "claim.causal_unsupported")
WORD = re.compile("[a-z0-9_]+|[\u3400-\u4dbf\u4e00-\u9fff]")
# A hostile reply may name one invocation in thousands of facts; nobody binds that many claims to one call.
COMPARED = 64


@dataclass(frozen=True, slots=True)
class Settled:
    """The facts that count, and what was recorded beside them."""

    facts: tuple[Fact, ...]
    notes: tuple[FactNote, ...]
    reasons: tuple[str, ...]


@dataclass(slots=True)
class _Owned:
    """Facts as they are settled, each with the place of the claim it is about."""

    facts: list[Fact] = field(default_factory=list)
    notes: list[FactNote] = field(default_factory=list)
    claims: list[int | None] = field(default_factory=list)
    taken: set[int | None] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)


def settle(
    said: Sequence[ModelFact],
    contract: Contract | None,
    gate: GateResult,
    trace: Sequence[TraceItem],
    missing_claims: Sequence[str] = (),
    extra_facts: Sequence[str] = (),
) -> Settled:
    """The model's facts after all corrections, then the runtime's own (VER-5, VER-8, AUD-1, AUD-2, EXE-5, REP-10).

    A claim, a missing claim or an extra fact is passed over unless a *critical* fact of the model's is about it:
    facts that are not critical change nothing (VER-1), so they cannot stand in for one.
    """
    ground = _Ground(contract, gate, trace, {plain(text) for text in (*missing_claims, *extra_facts)})
    owned = _Owned()
    for fact in said:
        _settle_one(fact, ground, owned)
    _add_contradictions(ground, owned)
    _add_passed_over(ground, owned, missing_claims, extra_facts)
    return Settled(tuple(owned.facts), tuple(owned.notes), tuple(owned.reasons))


class _Ground:
    """What facts are held against: claims by id, text and invocation, trace items by ref and invocation."""

    def __init__(
        self, contract: Contract | None, gate: GateResult, trace: Sequence[TraceItem], required: set[str]
    ) -> None:
        self.claims: tuple[Claim, ...] = contract.claims if contract is not None else ()
        self.gate = gate
        self.required = required
        self.confirmed = frozenset(gate.confirmed_claims)
        self.items = {item.trace_ref: item for item in trace}
        self.item_of = {call: item for item in trace for call in item.source_invocation_ids}
        self.verified: dict[str, dict[str, None]] = {}
        for binding in gate.checked_bindings:
            if binding.status == "pass" and binding.source_invocation_id is not None:
                self.verified.setdefault(binding.claim_id, {})[binding.source_invocation_id] = None
        self.by_id: dict[str, list[int]] = {}
        self.by_text: dict[str, list[int]] = {}
        self.by_invocation: dict[str, list[int]] = {}
        self.words = [_words(claim.claim_text) for claim in self.claims]
        self.plain = [plain(claim.claim_text) for claim in self.claims]
        for place, claim in enumerate(self.claims):
            self.by_id.setdefault(claim.claim_id, []).append(place)
            self.by_text.setdefault(self.plain[place], []).append(place)
            for call in dict.fromkeys((*_bound(claim), *self.verified.get(claim.claim_id, ()))):
                self.by_invocation.setdefault(call, []).append(place)

    def owner(self, fact: ModelFact, calls: Iterable[str], taken: Container[int | None]) -> int | None:
        """The claim that `fact` is about: by its id, else by equal text, else by a shared invocation (VER-8).

        A fact is about one claim. Where several fit, it is the one with the same text, then the one that shares
        the most words, then the first that no fact is about yet.
        """
        text = plain(fact.fact)
        fits = self.by_id.get(fact.claim_id or "", []) or self.by_text.get(text, [])
        if not fits and text not in self.required:
            sharing = (place for call in calls for place in self.by_invocation.get(call, ()))
            fits = list(dict.fromkeys(islice(sharing, COMPARED)))
        if len(fits) < 2:
            return fits[0] if fits else None
        words = _words(fact.fact)

        def nearness(place: int) -> tuple[bool, int, bool]:
            return self.plain[place] == text, len(words & self.words[place]), place not in taken

        return max(fits[:COMPARED], key=nearness)


def _settle_one(fact: ModelFact, ground: _Ground, owned: _Owned) -> None:
    recorded: list[str] = []
    refs = _known_refs(fact, ground, recorded)
    place = ground.owner(fact, [call for ref in refs for call in ref.source_invocation_ids], owned.taken)
    claim = None if place is None else ground.claims[place]
    if fact.claim_id is not None and fact.claim_id not in ground.by_id:
        recorded.append(f"claim_id {fact.claim_id[:80]} is no claim of the answer")
    # An action's bindings are checked as well, but an action is no claim: its fact keeps the refs, not the id.
    verified_under = claim.claim_id if claim is not None else fact.claim_id or ""
    refs = _merged(ground.verified.get(verified_under, ()), refs, ground)
    label = _label(fact, claim, ground, bool(refs), recorded)
    owned.facts.append(
        Fact(
            fact=fact.fact,
            is_critical=fact.is_critical or bool(fact.fabricated),
            verification=label,
            detail=fact.detail,
            evidence_refs=refs,
            claim_id=claim.claim_id if claim is not None else None,
            derivability=fact.derivability or _derivability(fact),
            fabricated=bool(fact.fabricated),
        )
    )
    owned.notes.append(FactNote(recorded=tuple(recorded)))
    owned.claims.append(place)
    owned.taken.add(place)
    owned.reasons.extend(f"fact {len(owned.facts)}: {note}" for note in recorded)


def _known_refs(fact: ModelFact, ground: _Ground, recorded: list[str]) -> tuple[FactRef, ...]:
    kept: dict[str, FactRef] = {}
    for ref in fact.evidence_refs:
        item = ground.items.get(ref.trace_ref)
        if item is None:
            recorded.append(f"ref_dropped: {ref.trace_ref[:80]} is not in the trace")
        else:
            kept[item.trace_ref] = _ref(item)
    return tuple(kept.values())


def _merged(calls: Iterable[str], refs: tuple[FactRef, ...], ground: _Ground) -> tuple[FactRef, ...]:
    """The refs of verified bindings first, then the model's own (ruling 6)."""
    items = (ground.item_of[call] for call in calls if call in ground.item_of)
    return tuple({ref.trace_ref: ref for ref in (*map(_ref, items), *refs)}.values())


def _ref(item: TraceItem) -> FactRef:
    return FactRef(trace_ref=item.trace_ref, source_invocation_ids=item.source_invocation_ids)


def _label(fact: ModelFact, claim: Claim | None, ground: _Ground, has_refs: bool, recorded: list[str]) -> Label:
    if fact.fabricated:
        recorded.append("fabricated: counts as a critical contradicted fact")
        return "contradicted"
    label: Label
    if fact.verification == "direct_observation":
        label = "direct_evidence" if claim is not None and claim.claim_type in OBSERVED else "indirect_support"
        recorded.append(f"direct_observation reads as {label}")
    else:
        label = fact.verification
    if claim is not None and label == "direct_evidence":
        fired = ground.gate.claim_rules.get(claim.claim_id, ())
        bound = next((rule for rule in INDIRECT_AT_MOST if rule in fired), None)
        if bound is not None:
            label = "indirect_support"
            recorded.append(f"{bound}: indirect_support at most")
    if label in SUPPORTING and not has_refs:
        recorded.append(f"{label} without any ref counts as no_evidence")
        return "no_evidence"
    return label


def _derivability(fact: ModelFact) -> Literal["direct_observation"] | None:
    return "direct_observation" if fact.verification == "direct_observation" else None


def _add_contradictions(ground: _Ground, owned: _Owned) -> None:
    """A critical contradicted fact for each identifier that is in no evidence of the session (ruling 5)."""
    for notice in _fabrications(ground.gate):
        claim_id = notice.claim_id if notice.rule.startswith("claim.") else None
        _add(ground, owned, None, notice.message, "contradicted", f"{notice.rule}: the runtime's own finding", claim_id)


def _fabrications(gate: GateResult) -> list[Notice]:
    found = [n for n in gate.failures if n.rule == "answer.identifier_absent"]
    if not found and "answer.identifier_absent" in gate.failed_rules:
        found = [Notice(rule="answer.identifier_absent", message="the answer names what is in no evidence")]
    return found + [n for n in gate.failures if n.rule == "claim.identifier_absent" and n.severity == "reject"]


def _add_passed_over(ground: _Ground, owned: _Owned, missing_claims: Sequence[str], extra_facts: Sequence[str]) -> None:
    covered = {place for place, fact in zip(owned.claims, owned.facts, strict=True) if fact.is_critical}
    for place, claim in enumerate(ground.claims):
        if claim.claim_id in ground.confirmed and place not in covered:
            detail = "claim_passed_over: no critical fact is about this claim"
            _add(ground, owned, place, claim.claim_text, "no_evidence", detail, claim.claim_id)
    # One text, a fact a line (`plain` leaves no line break): an answer may have thousands of them.
    judged = "\n".join(plain(fact.fact) for fact in owned.facts if fact.is_critical)
    for why, texts in (("missing_claim", missing_claims), ("extra_fact", extra_facts)):
        for text in dict.fromkeys(texts):
            wanted = plain(text)
            if wanted in judged or _is_claim_judged(wanted, ground, owned):
                continue
            _add(ground, owned, None, text, "no_evidence", f"{why}: no critical fact is about it", None)
            judged = f"{judged}\n{wanted}"


def _is_claim_judged(wanted: str, ground: _Ground, owned: _Owned) -> bool:
    places = {*ground.by_text.get(wanted, ()), *ground.by_id.get(wanted, ())}
    return any(p in places and f.is_critical for p, f in zip(owned.claims, owned.facts, strict=True))


def _add(
    ground: _Ground, owned: _Owned, place: int | None, text: str, label: Label, detail: str, claim_id: str | None
) -> None:
    owned.facts.append(
        Fact(
            fact=text,
            is_critical=True,
            verification=label,
            detail=detail,
            evidence_refs=_merged(ground.verified.get(claim_id or "", ()), (), ground),
            claim_id=claim_id,
        )
    )
    owned.notes.append(FactNote(added_by="runtime"))
    owned.claims.append(place)
    owned.reasons.append(f"fact {len(owned.facts)} added: {detail}")


def _bound(claim: Claim) -> Iterable[str]:
    for binding in claim.evidence_bindings:
        if binding.source_invocation_id is not None:
            yield binding.source_invocation_id
        yield from binding.source_invocation_ids or ()


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.casefold()))
