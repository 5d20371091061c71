"""An answer in prose as a contract: claims cut out by rule, bindings found by the matcher or by anchors (ruling 25).

Nothing is invented: a binding is a record of this session that holds a quotation of the sentence, or all its numbers
and identifiers, and its excerpt is the record's own text. Each says `found_by: matcher`. A sentence without one stays
a claim without binding, and the gate says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from handlers import coverage
from handlers.anchors import Stated, joined, same, stands_in, stated, windows
from handlers.excerpts import EXCERPT_LIMIT_CHARS, match
from handlers.guards import evidence_part
from handlers.identifiers import NAME_LIKE
from handlers.question import content_words, vocabulary
from handlers.replies import ParsedAnswer
from handlers.shapes import fold
from handlers.transcripts.cuts import Statement, own_words, statements
from handlers.wording import causal, negated
from streams.contract import Action, Binding, Claim, Contract, Hypothesis
from streams.events import ToolInvoked

FOUND_BY = "matcher"
MAX_CLAIMS = 60
_WORD = re.compile(r"[^\W_]{3,}")


class _Record:
    """One ref that a sentence may be bound to, with what it states read once."""

    def __init__(self, call: ToolInvoked, raw_path: str, text: str) -> None:
        self.call = call
        self.raw_path = raw_path
        self.text = text
        self.evidence = evidence_part(raw_path, text)

    @cached_property
    def folded(self) -> str:
        return joined((self.evidence,))

    @cached_property
    def stated(self) -> Stated:
        return stated((self.evidence,))

    @cached_property
    def words(self) -> frozenset[str]:
        return vocabulary((self.evidence,))

    @cached_property
    def asked(self) -> str:
        """Of an empty search, what was searched for: a denial may name it (VER-5)."""
        return joined([str(value) for value in self.call.arguments.values()])


@dataclass(frozen=True, slots=True)
class _Bench:
    question: str
    lines: tuple[_Record, ...]
    summaries: tuple[_Record, ...]


def read_prose(parsed: ParsedAnswer, question: str, invocations: Sequence[ToolInvoked]) -> ParsedAnswer:
    """`parsed` with a contract made from it where it is a whole answer in natural language; else as it is."""
    if not parsed.is_prose or parsed.status != "malformed" or "unknown finish reason" in (parsed.error or ""):
        return parsed
    contract = contract_of(parsed.final_answer, question, invocations)
    return replace(
        parsed,
        status="valid",
        error=None,
        is_prose=False,
        found=True,
        contract=contract,
        structured=contract.model_dump(mode="json", exclude_unset=True),
    )


def contract_of(answer: str, question: str, invocations: Sequence[ToolInvoked]) -> Contract:
    """The contract that an answer in prose amounts to; the answer itself is its `user_facing_answer`."""
    bench = _bench(question, invocations)
    said = statements(answer)
    claims = [_claim(k, one, bench) for k, one in enumerate((s for s in said if s.kind == "claim"), 1)]
    return Contract(
        answer_version="executor_evidence_v2",
        claims=tuple(claims[:MAX_CLAIMS]),
        hypotheses=tuple(Hypothesis(hypothesis_text=s.text) for s in said if s.kind == "hypothesis"),
        recommended_actions=tuple(Action(action_text=s.text) for s in said if s.kind == "action"),
        user_facing_answer=answer,
    )


def _bench(question: str, invocations: Sequence[ToolInvoked]) -> _Bench:
    lines, summaries = [], []
    for call in invocations:
        if call.evidence_kind == "helper" or call.retrieval_details is None:
            continue
        for ref in call.retrieval_details.evidence_refs or ():
            if len(ref.text) > EXCERPT_LIMIT_CHARS:
                continue
            record = _Record(call, ref.raw_path, ref.text)
            if ref.raw_path == "summary":
                summaries.append(record)
            elif call.status != "error":
                lines.append(record)
    return _Bench(question, tuple(lines), tuple(summaries))


def _claim(number: int, said: Statement, bench: _Bench) -> Claim:
    own = own_words(said.text)
    denies = negated(own)
    bindings = _by_quotes(said, bench)
    if not bindings or not _holds(said.text, bindings, bench):
        bindings = bindings + [b for b in _by_anchors(said.text, denies, bench) if b not in bindings]
    because = causal(own)
    return Claim(
        claim_id=f"p{number}",
        claim_type="root_cause" if because else "negative_observation" if denies else "observation",
        claim_text=said.text,
        support_level="indirect" if because else "direct",
        evidence_bindings=tuple(bindings),
    )


def _by_quotes(said: Statement, bench: _Bench) -> list[Binding]:
    found: list[Binding] = []
    for quote in said.quotes:
        words = _WORD.findall(fold(quote))
        for record in bench.lines:
            # The matcher is exact and costs; a record without a word of the quotation is none.
            if not all(word in record.folded for word in words):
                continue
            hit = match(quote, record.text)
            if hit.rule is None and not hit.trivial and hit.text:
                found.append(_binding(record, hit.text))
                break
    return list(dict.fromkeys(found))


def _holds(text: str, bindings: Sequence[Binding], bench: _Bench) -> bool:
    bound = {(b.source_invocation_id, b.raw_path) for b in bindings}
    lines = [r.text for r in bench.lines if (r.call.invocation_id, r.raw_path) in bound]
    return not coverage.absent(_wanted(text, bench.question), lines)


def _wanted(text: str, question: str) -> coverage.Anchors:
    """The anchors that a record must hold: the question exempts its time windows and names of what is asked about."""
    own = coverage.anchors(text)
    asked = windows(question)
    known = joined((question,))
    mine = [w for w in windows(text) if any(same(w, a) for a in asked)]
    names = tuple(i for i in own.names if not (i.kind in NAME_LIKE and stands_in(i, known)))
    return coverage.Anchors(tuple(q for q in own.numbers if q not in mine), names)


def _by_anchors(text: str, denies: bool, bench: _Bench) -> list[Binding]:
    wanted = _wanted(text, bench.question) or coverage.anchors(text)
    words = {word.stem for word in content_words(text)}
    if wanted:
        holding = [r for r in bench.lines if _has(r, wanted)]
        # Without a number to compare, a name alone is no match: words must agree too.
        least = 1 if wanted.numbers else 2
        best = max(holding, key=lambda r: len(words & r.words), default=None)
        if best is not None and len(words & best.words) >= least:
            return [_binding(best, best.text)]
    if denies:
        names = coverage.anchors(text).names
        empty = [r for r in bench.summaries if all(stands_in(i, r.asked) for i in names)]
        best = max(empty, key=lambda r: len(words & vocabulary((r.asked,))), default=None)
        if best is not None and (names or words & vocabulary((best.asked,)) or len(bench.summaries) == 1):
            return [_binding(best, best.evidence.strip())]
    return []


def _has(record: _Record, wanted: coverage.Anchors) -> bool:
    # Numbers first: a record's are read once for all sentences, names are looked for anew.
    return all(record.stated.has(number) for number in wanted.numbers) and all(
        stands_in(name, record.folded) for name in wanted.names
    )


def _binding(record: _Record, excerpt: str) -> Binding:
    return Binding.model_validate(
        {
            "tool_name": record.call.tool_name,
            "source_invocation_id": record.call.invocation_id,
            "raw_path": record.raw_path,
            "evidence_excerpt": excerpt,
            "found_by": FOUND_BY,
        }
    )
