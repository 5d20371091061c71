"""What of an answer has evidence: its confirmed claims, and the parts of the question (REP-2, REP-9, ruling 12)."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

from handlers.anchors import Identifier, Quantity, absent_quantities, identifiers, joined, quantities, stands_in
from handlers.question import comparable, content_words, own_words, parts, vocabulary
from streams.contract import BindingResult, Claim, Contract, GateResult
from streams.events import ToolInvoked

PartStatus = Literal["answered", "unsupported", "unanswered", "not_judged"]
_CAUSES = frozenset({"root_cause", "contributing_factor"})
_ON_THE_ANSWER = re.compile(
    r"\W*(?:(?:and|please|also)\s+)*(?:give|show|provide|cite|quote|include|list|add|attach)\s+(?:(?:me|us|the|your|some|any|all|supporting|relevant)\s+)*"
    r"(?:evidence|proof|sources?|citations?|references?)(?:\s+(?:for|of)\s+(?:it|this|that|each|every|your)(?:\s+\w+)?)?\W*"
    r"|\W*(?:(?:and|please)\s+)*(?:answer|reply|respond|be)\s+(?:briefly|shortly|brief|concise(?:ly)?|short|in\s+\w+)\W*"
    r"|\W*[请并]*(?:给出|提供|附上|附|列出|引用|说明)(?:相关|具体|对应|你)?的?(?:证据|依据|理由|出处|引用)\W*"
    r"|\W*请?(?:用[中英]文|简要|简短|简洁)地?(?:回答|回复|作答|说明)\W*|\W*(?:thanks|thank\s+you|谢谢|多谢)\W*",
    re.IGNORECASE,
)
"""What a question says of the answer's form (give evidence, 请给出证据): nothing that a claim could answer."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """The numbers and identifiers of a text."""

    numbers: tuple[Quantity, ...]
    names: tuple[Identifier, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)


def anchors(text: str) -> Anchors:
    return Anchors(tuple(quantities(text)), tuple(identifiers(text)))


def absent(wanted: Anchors, lines: Sequence[str]) -> Anchors:
    """What of `wanted` stands in none of `lines`, which are evidence."""
    haystack = joined(lines)
    return Anchors(
        absent_quantities(wanted.numbers, lines),
        tuple(name for name in wanted.names if not stands_in(name, haystack)),
    )


@dataclass(frozen=True, slots=True)
class Support:
    """A confirmed claim, the bindings that support it, and the `claim.*` rules it breaks."""

    claim: Claim
    bindings: tuple[BindingResult, ...]
    rules: tuple[str, ...]

    @property
    def supporting(self) -> tuple[BindingResult, ...]:
        """Bindings with severity none, on a claim that breaks no `claim.*` rule (ruling 12)."""
        return () if self.rules else self.passing

    @property
    def passing(self) -> tuple[BindingResult, ...]:
        return tuple(b for b in self.bindings if passes(b))

    @property
    def lines(self) -> tuple[str, ...]:
        """The verified lines: the source's text around each passing excerpt."""
        return verified_lines(self.bindings)

    @property
    def words(self) -> frozenset[str]:
        lines = self.lines
        quoted = [b.evidence_excerpt or "" for b in self.claim.evidence_bindings]
        excerpts = [text for text in quoted if not any(text in line for line in lines)]
        return vocabulary([self.claim.claim_text, *excerpts, *lines])


def passes(binding: BindingResult) -> bool:
    return binding.status == "pass" and binding.severity == "none"


def verified_lines(bindings: Sequence[BindingResult]) -> tuple[str, ...]:
    return tuple(b.lines or b.text or "" for b in bindings if passes(b))


def broken_rules(gate: GateResult, claim_id: str) -> tuple[str, ...]:
    """The `claim.*` rules that failed on a claim; one that only warned is none."""
    return _broken(gate, claim_id, {n.rule for n in gate.warnings if n.claim_id == claim_id})


def _broken(gate: GateResult, claim_id: str, warned: Set[str]) -> tuple[str, ...]:
    fired = gate.claim_rules.get(claim_id, ())
    return tuple(rule for rule in fired if rule not in warned and rule in gate.failed_rules)


def supports(contract: Contract, gate: GateResult) -> tuple[Support, ...]:
    """The claims that stay confirmed, in their order. Of claims with one id each has its own bindings."""
    confirmed = frozenset(gate.confirmed_claims)
    warned = defaultdict[str | None, set[str]](set)
    bindings = defaultdict[str, deque[list[BindingResult]]](deque)
    for checked in gate.checked_bindings:
        if checked.index == 0 or not bindings[checked.claim_id]:
            bindings[checked.claim_id].append([])
        bindings[checked.claim_id][-1].append(checked)
    own = [
        bindings[c.claim_id].popleft() if c.evidence_bindings and bindings[c.claim_id] else [] for c in contract.claims
    ]
    for notice in gate.warnings:
        warned[notice.claim_id].add(notice.rule)
    return tuple(
        Support(
            claim,
            tuple(results),
            _broken(gate, claim.claim_id, warned[claim.claim_id]),
        )
        for claim, results in zip(contract.claims, own, strict=True)
        if claim.claim_id in confirmed and claim.evidence_bindings and claim.support_level != "none"
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the question and how it was answered. `not_judged` counts as answered: it cannot be told."""

    index: int
    text: str
    status: PartStatus
    claim_ids: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


def judge_parts(
    question: str,
    contract: Contract,
    confirmed: Sequence[Support],
    final_answer: str,
    invocations: Sequence[ToolInvoked],
) -> tuple[Part, ...]:
    """Each part of the question with its status.

    A claim answers the part whose own words it has, in its text or its lines. A part that only unsupported claims
    answer is `unsupported`; of several parts so is one that only claims without a place among the confirmed ones
    answer (REP-9). One that no claim answers is `unanswered` only if none of its words stands in answer,
    claims or their evidence; where words cannot be compared or stand in prose only, it is `not_judged`, and so is a
    question of one part that names nothing: other words may answer it (why did it restart? it was OOM-killed).
    Without a confirmed claim no part is answered.
    """
    asked = parts(question)
    texts = tuple(text for text in asked if not _ON_THE_ANSWER.fullmatch(text)) or asked
    prose = [final_answer, contract.user_facing_answer or "", contract.diagnosis_summary]
    words = [(s, s.words) for s in confirmed]
    sure = {s.claim.claim_id for s in confirmed}
    unsure = [(c.claim_id, vocabulary([c.claim_text])) for c in contract.claims if c.claim_id not in sure]
    shown = " ".join([*prose, *(s.claim.claim_text for s in confirmed)])
    known: frozenset[str] | None = None
    found = []
    for i, (text, own) in enumerate(zip(texts, own_words(texts), strict=True)):
        direct = [s for s, its in words if own & its]
        claimed = [claim_id for claim_id, its in unsure if own & its] if len(texts) > 1 and not direct else []
        status: PartStatus
        if not confirmed:
            status = "unanswered"
        elif claimed:
            status = "unsupported"
        elif direct:
            status = "answered" if any(s.supporting for s in direct) else "unsupported"
        else:
            every = frozenset(word.stem for word in content_words(text))
            if known is None:
                around = _around(confirmed, invocations) if len(texts) == 1 else frozenset()
                known = vocabulary(prose).union(around, *(its for _, its in words))
            told = bool(every) and comparable(text, shown) and not every & known
            if len(texts) == 1:
                told = told and bool(identifiers(text))
            cause = _asks_why(text) and any(s.claim.claim_type in _CAUSES for s in confirmed)
            status = "unanswered" if told and not cause else "not_judged"
        found.append(Part(i, text, status, (*(s.claim.claim_id for s in direct), *claimed), own))
    return tuple(found)


def _around(confirmed: Sequence[Support], invocations: Sequence[ToolInvoked]) -> frozenset[str]:
    # A question of one part is answered by what was looked for in it, even where the record repeats none of its words.
    bound = {b.source_invocation_id for s in confirmed for b in s.passing}
    calls = [call for call in invocations if call.invocation_id in bound]
    return vocabulary([str(value) for call in calls for value in call.arguments.values()])


def _asks_why(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in ("why", "cause", "reason", "为什么", "为何", "原因", "怎么回事"))
