"""The bounded repair loop, judged: the report of an attempt and what follows from it (REP, rulings 11 and 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from handlers import guards
from handlers.anchors import NAME_LIKE, fold, same, stands_in, windows
from handlers.coverage import Anchors, Part, Support, absent, anchors, judge_parts, supports
from handlers.defects import defects
from handlers.mending import Findings
from prompts import templates
from streams.contract import BindingResult, Contract, GateResult, Verification
from streams.events import ToolInvoked

MISALIGNED = "misaligned"
_REQUEST_LINES = 40  # a request that names more mends nothing


@dataclass(frozen=True, slots=True)
class EvaluationInput:
    """One attempt of a round, gated; `invocations` are the session's."""

    question: str
    lang: str
    contract: Contract
    gate: GateResult
    invocations: tuple[ToolInvoked, ...]
    attempt: int
    max_attempts: int
    on_exhausted: str
    final_answer: str


def report(given: EvaluationInput) -> Verification:
    """The report on an attempt: coverage with each item's evidence, and the repair request if it is not accepted."""
    found = _findings(given)
    items = _items(found)
    held = sum(item["supported"] for item in items)
    coverage = held / len(items) if items and found.confirmed else 0.0
    broken = any(support.rules for support in found.confirmed)
    verification = Verification(
        supported=coverage == 1.0 and given.gate.severity == "none" and not broken,
        complete=bool(found.confirmed) and not any(part.status in _OPEN for part in found.parts),
        citations_aligned=not found.misaligned,
        missing_claims=_missing(items),
        unsupported_citations=_unsupported(found),
        coverage=round(coverage, 4),
        items=tuple(items),
        parts=tuple(
            {"index": p.index, "text": p.text, "status": p.status, "claim_ids": list(p.claim_ids)} for p in found.parts
        ),
    )
    if accepted(verification):
        return verification
    lines = [defect.line for defect in islice(defects(found), _REQUEST_LINES)]
    request = "\n- ".join([found.say("repair/opening"), *lines])
    return verification.model_copy(update={"repair_request": request})


def accepted(verification: Verification) -> bool:
    """REP-3."""
    return verification.supported and verification.complete and verification.citations_aligned


def decide(given: EvaluationInput, verification: Verification) -> Literal["accepted", "repair", "not_repairable"]:
    """What follows from a report. `not_repairable` only if no defect at all can be mended from the session's
    evidence (REP-12); a defect that cannot be told is left to the repair, which is bounded anyway."""
    if accepted(verification):
        return "accepted"
    return "repair" if any(defect.mendable for defect in defects(_findings(given))) else "not_repairable"


_OPEN = frozenset({"unanswered", "unsupported"})


def _findings(given: EvaluationInput) -> Findings:
    confirmed = supports(given.contract, given.gate)
    return Findings(
        question=given.question,
        contract=given.contract,
        gate=given.gate,
        confirmed=confirmed,
        parts=judge_parts(given.question, given.contract, confirmed, given.final_answer, given.invocations),
        extra_facts=tuple(e.text for e in guards.extra_facts(given.contract, given.question) if e.status == "extra"),
        misaligned=tuple(_misaligned(given.question, given.contract, confirmed)),
        invocations=given.invocations,
        say=templates(given.lang),
    )


def _items(found: Findings) -> list[dict[str, Any]]:
    items = [_claim_item(support, found.parts) for support in found.confirmed]
    items += [{"kind": "extra_fact", "text": text, "supported": False, "evidence": []} for text in found.extra_facts]
    confirmed = {support.claim.claim_id for support in found.confirmed}
    items += [
        {"kind": "part", "text": part.text, "part": part.index, "supported": False, "evidence": []}
        for part in found.parts
        if part.status in _OPEN and not confirmed & set(part.claim_ids)
    ]
    return items


def _claim_item(support: Support, parts: tuple[Part, ...]) -> dict[str, Any]:
    claim_id = support.claim.claim_id
    return {
        "kind": "claim",
        "text": support.claim.claim_text,
        "claim_id": claim_id,
        "parts": [part.index for part in parts if claim_id in part.claim_ids],
        "supported": bool(support.supporting),
        "rules": list(support.rules),
        "evidence": [
            {"source_invocation_id": b.source_invocation_id, "raw_path": b.raw_path, "excerpt": b.text}
            for b in support.supporting
        ],
    }


def _missing(items: list[dict[str, Any]]) -> tuple[str, ...]:
    """The items without evidence, by their own text. A part that only an unsupported claim answers is one item with
    that claim, so it stands here once, as the claim; the request and `parts` name the part (REP-9, ruling 12)."""
    return tuple(dict.fromkeys(item["text"] for item in items if not item["supported"]))


MOST_RIVALS = 500
"""Claims that a misplaced record is held against: each record of each claim is read for each of them."""


@dataclass(frozen=True, slots=True)
class _Stated:
    """The anchors of a claim: `own`, and `asked`, the names that the question gives. What is asked about stands in
    every claim and in few records, so it is exempt here as in VER-5."""

    own: Anchors
    asked: Anchors

    @classmethod
    def of(cls, text: str, question: str) -> _Stated:
        found, folded = anchors(text), fold(question)
        looked_at = [w for w in windows(text) if any(same(w, other) for other in windows(question))]
        names = [(name, name.kind in NAME_LIKE and stands_in(name, folded)) for name in found.names]
        numbers = tuple(number for number in found.numbers if number not in looked_at)
        own = Anchors(numbers, tuple(name for name, asked in names if not asked))
        return cls(own, Anchors((), tuple(name for name, asked in names if asked)))

    def lacks_all(self, record: list[str]) -> bool:
        whole = Anchors(self.own.numbers, self.own.names + self.asked.names)
        lacking = absent(whole, record)
        return bool(whole) and (lacking.numbers, lacking.names) == (whole.numbers, whole.names)

    def has_all(self, record: list[str], claim: _Stated) -> bool:
        """Whether the record shows this claim rather than `claim`. One that states nothing but what is asked about is
        told from another only by a record of something else that is asked about."""
        named = bool(self.asked) and not absent(self.asked, record)
        return (bool(self.own) or named) and not absent(self.own, record) and (bool(claim.own) or named)


def _misaligned(question: str, contract: Contract, confirmed: tuple[Support, ...]) -> list[tuple[BindingResult, str]]:
    """Passing bindings whose record lacks every number and identifier of its claim and has all of another's, be that
    one confirmed or not (ruling 12)."""
    stated = {claim.claim_id: _Stated.of(claim.claim_text, question) for claim in contract.claims}
    rivals = dict(islice(stated.items(), MOST_RIVALS))
    known: dict[tuple[str, str], str | None] = {}
    found = []
    for support in {support.claim.claim_id: support for support in confirmed}.values():
        claim_id = support.claim.claim_id
        for binding in support.passing:
            record = binding.lines or binding.text or ""
            if (claim_id, record) not in known:
                known[claim_id, record] = _rival(claim_id, [record], stated[claim_id], rivals)
            other = known[claim_id, record]
            if other is not None:
                found.append((binding, other))
    return found


def _rival(claim_id: str, record: list[str], claim: _Stated, rivals: Mapping[str, _Stated]) -> str | None:
    """The claim that a record shows in place of the one it is bound to."""
    if not claim.lacks_all(record):
        return None
    return next((i for i, other in rivals.items() if i != claim_id and other.has_all(record, claim)), None)


def _unsupported(found: Findings) -> tuple[str, ...]:
    misaligned = {(binding.claim_id, binding.index) for binding, _ in found.misaligned}
    cited = []
    for binding in found.gate.checked_bindings:
        rules = list(binding.failed_rules) or ([binding.status] if binding.severity != "none" else [])
        if (binding.claim_id, binding.index) in misaligned:
            rules.append(MISALIGNED)
        if rules:
            where = f"{binding.source_invocation_id or '-'} {binding.raw_path or '-'}"
            cited.append(f"{binding.claim_id}[{binding.index}] {where}: {', '.join(rules)}")
    return tuple(cited)
