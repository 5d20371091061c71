"""Which evidence of the session can mend an answer (REP-12).

A defect can be mended if a record of the session can stand in for what is bound wrongly (the record it meant, or one
that fits the statement), or if taking the statement out leaves every part of the question to a claim that has
evidence. Whether words of two languages fit cannot be told, and counts as yes (REP-12: conservative).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from handlers.coverage import Anchors, Part, Support, absent, anchors
from handlers.question import content_words, vocabulary
from prompts import Templates
from streams.contract import BindingResult, Claim, Contract, GateResult
from streams.events import ToolInvoked

_READ_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Record:
    """A quotable record of the session."""

    invocation_id: str
    raw_path: str
    text: str
    failed: bool
    incident: bool

    @property
    def source(self) -> str:
        return f"{self.invocation_id} {self.raw_path}"


@dataclass(frozen=True)
class Findings:
    """What an evaluation found, for the request to be made of."""

    question: str
    contract: Contract
    gate: GateResult
    confirmed: tuple[Support, ...]
    parts: tuple[Part, ...]
    extra_facts: tuple[str, ...]
    misaligned: tuple[tuple[BindingResult, str], ...]
    invocations: tuple[ToolInvoked, ...]
    say: Templates

    @cached_property
    def records(self) -> tuple[Record, ...]:
        return records(self.invocations)

    @property
    def usable(self) -> tuple[Record, ...]:
        """The records that can show a fact of the incident."""
        return tuple(r for r in self.records if r.incident and not r.failed and r.raw_path != "summary")

    @property
    def supported_ids(self) -> frozenset[str]:
        return frozenset(s.claim.claim_id for s in self.confirmed if s.supporting)

    def can_go(self, claim_id: str) -> bool:
        """Whether the answer still answers every part once this claim is taken out."""
        left = self.supported_ids - {claim_id}
        needed = [part for part in self.parts if claim_id in part.claim_ids]
        return bool(left) and all(left & set(part.claim_ids) for part in needed)


def records(invocations: Iterable[ToolInvoked]) -> tuple[Record, ...]:
    """Every record that an answer may quote; helpers bear no evidence."""
    found = []
    for call in invocations:
        refs = call.retrieval_details.evidence_refs if call.retrieval_details is not None else None
        shown = [(ref.raw_path, ref.text) for ref in refs or ()] or ([("error", call.error)] if call.error else [])
        if call.evidence_kind != "helper":
            incident, failed = call.evidence_kind == "incident", call.status == "error"
            found += [Record(call.invocation_id, path, text, failed, incident) for path, text in shown]
    return tuple(found)


@lru_cache(maxsize=1024)
def _words_of(text: str) -> frozenset[str]:
    # Every defect is held against every record.
    return vocabulary([text])


def fitting(statement: str, found: Findings, claim: Claim | None = None) -> Record | None:
    """The record that fits a statement best: it has all its numbers and identifiers, or shares its words.

    The names that the question gives fit everything, so they do not count. A `summary` fits only a negative
    observation; runbooks fit nothing about the present incident (EXE-8).
    """
    wanted = absent(anchors(statement), [found.question])
    asked = vocabulary([found.question])
    words = frozenset(w.stem for w in content_words(statement)) - asked
    negative = claim is not None and claim.claim_type == "negative_observation"
    hints = {stem[:4] for stem in words} | {n.key.casefold() for n in wanted.names} | _digits_of(wanted)
    best: tuple[float, Record] | None = None
    for record in found.records:
        if not record.incident or record.failed or (record.raw_path == "summary") != negative:
            continue
        text = record.text[:_READ_CHARS]
        if not any(hint in text.casefold() for hint in hints):
            continue
        lacking = absent(wanted, [text])
        every = bool(wanted) and not lacking
        shared = len(words & _words_of(text))
        if every or shared >= 2 or (words and shared * 2 >= len(words)):
            value = shared + (10.0 if every else 0.0)
            if best is None or value > best[0]:
                best = (value, record)
    return best[1] if best else None


def _digits_of(wanted: Anchors) -> set[str]:
    # A cheap look first: the same amount in another unit (30 s, 30000 ms) begins with the same digit.
    return {number.text[0].casefold() for number in wanted.numbers}


def about(part: Part, found: Findings) -> Record | None:
    """A record that speaks of a part of the question."""
    return next((r for r in found.usable if part.words & _words_of(r.text[:_READ_CHARS])), None)
