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
from itertools import islice

from handlers import coverage
from handlers.anchors import Stated, joined, same, stands_in, stated, windows
from handlers.excerpts import EXCERPT_LIMIT_CHARS, match
from handlers.guards import evidence_part
from handlers.identifiers import NAME_LIKE
from handlers.question import content_words, vocabulary
from handlers.replies import ParsedAnswer
from handlers.shapes import fold
from handlers.transcripts.cuts import Statement, own_words, statements
from handlers.wording import causal, negated, states_failed_access
from streams.contract import Action, Binding, Claim, Contract, Hypothesis
from streams.events import ToolInvoked

FOUND_BY = "matcher"
MAX_CLAIMS = 60
MAX_READ = 500  # records whose amounts are read for one sentence, those that look most like it
NARROW, WIDE = 400, 1_600  # characters: the parts of a record that is longer than an excerpt may be
_GAP = re.compile(r"[\s;|{}\[\]\"]")
_JOINED = re.compile(r"[A-Za-z0-9]+(?:[:/._@-]+[A-Za-z0-9]+)+")
_WORD = re.compile(r"[^\W_]{3,}")


class _Record:
    """One ref that a sentence may be bound to, or a window of a long one, with what it states read once.

    `whole` is the ref's own text: what a quotation is looked for in.
    """

    def __init__(self, call: ToolInvoked, raw_path: str, text: str, whole: str | None = None) -> None:
        self.call = call
        self.raw_path = raw_path
        self.text = text
        self.whole = text if whole is None else whole
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
    lines: tuple[_Record, ...]  # records, of long ones narrow parts
    wide: tuple[_Record, ...]  # wider parts, where no narrow one holds a statement
    quotable: tuple[_Record, ...]  # records as they are
    summaries: tuple[_Record, ...]
    failures: tuple[_Record, ...]


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
    stated = islice((s for s in said if s.kind == "claim"), MAX_CLAIMS)
    claims = [_claim(k, one, bench) for k, one in enumerate(stated, 1)]
    return Contract(
        answer_version="executor_evidence_v2",
        claims=tuple(claims),
        hypotheses=tuple(Hypothesis(hypothesis_text=s.text) for s in said if s.kind == "hypothesis"),
        recommended_actions=tuple(Action(action_text=s.text) for s in said if s.kind == "action"),
        user_facing_answer=answer,
    )


def _bench(question: str, invocations: Sequence[ToolInvoked]) -> _Bench:
    lines: list[_Record] = []
    wide: list[_Record] = []
    failures: list[_Record] = []
    summaries, quotable = [], []
    for call in invocations:
        if call.evidence_kind == "helper":
            continue
        refs = (call.retrieval_details.evidence_refs if call.retrieval_details is not None else None) or ()
        # A JSON body in one long line is there by its objects too: a part of the line would join several of them.
        by_objects = any(not ref.raw_path.startswith("lines[") for ref in refs)
        for ref in refs:
            record = _Record(call, ref.raw_path, ref.text)
            if ref.raw_path == "summary":
                summaries.append(record)
            elif call.status != "error":
                quotable.append(record)
                if len(ref.text) <= EXCERPT_LIMIT_CHARS or not (by_objects and ref.raw_path.startswith("lines[")):
                    lines += _windows(record, NARROW)
                    wide += _windows(record, WIDE) if len(ref.text) > EXCERPT_LIMIT_CHARS else ()
            elif ref.raw_path == "error":
                failures += _windows(record, WIDE)
        if call.status == "error" and not refs and call.error:
            failures += _windows(_Record(call, "error", call.error), WIDE)
    return _Bench(question, tuple(lines), tuple(wide), tuple(quotable), tuple(summaries), tuple(failures))


def _windows(record: _Record, size: int) -> list[_Record]:
    """A record as it is where it may be quoted whole; else its overlapping parts of `size`, cut between words."""
    text = record.text
    if len(text) <= EXCERPT_LIMIT_CHARS:
        return [record]
    found = []
    for at in range(0, max(len(text) - size // 2, 1), size // 2):
        start, end = at, min(at + size, len(text))
        if start > 0:
            gap = _GAP.search(text, start - 1, end)
            start = gap.end() if gap else end
        while end < len(text) and end > start and not _GAP.match(text, end):
            end -= 1
        part = text[start:end].strip()
        if part:
            found.append(_Record(record.call, record.raw_path, part, text))
    return found


def _claim(number: int, said: Statement, bench: _Bench) -> Claim:
    own = own_words(said.text)
    denies = negated(own)
    failure = _by_failure(said, bench)
    bindings = failure or _by_quotes(said, bench)
    if not failure and (not bindings or not _holds(said.text, bindings, bench)):
        bindings = bindings + [b for b in _by_anchors(said.text, denies, bench) if b not in bindings]
    because = causal(own)
    return Claim(
        claim_id=f"p{number}",
        claim_type="observation"
        if failure
        else "root_cause"
        if because
        else "negative_observation"
        if denies
        else "observation",
        claim_text=said.text,
        support_level="indirect" if because and not failure else "direct",
        evidence_bindings=tuple(bindings),
    )


def _by_quotes(said: Statement, bench: _Bench) -> list[Binding]:
    found: list[Binding] = []
    for quote in said.quotes:
        words = _WORD.findall(fold(quote))
        for record in bench.quotable:
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


def _by_failure(said: Statement, bench: _Bench) -> list[Binding]:
    """The error text that a statement about a failed access tells (ruling 7): it has all its numbers and identifiers,
    or the question, the call's arguments or its tool's name have the rest, and it shares its words."""
    if not bench.failures or not states_failed_access(said.text):
        return []
    words = {word.stem for word in content_words(said.text)}
    wanted = coverage.anchors(said.text)
    best: tuple[int, _Record] | None = None
    for record in bench.failures:
        around = [record.whole, record.asked, record.call.tool_name, bench.question]
        shared = len(words & record.words)
        quoted_there = any(match(quote, record.text).rule is None for quote in said.quotes)
        # An account or a path is no identifier by itself, but here it says whose access it was.
        known = joined(around)
        if any(fold(name) not in known for name in _JOINED.findall(own_words(said.text))):
            continue
        told = shared >= (1 if coverage.absent(wanted, [bench.question]) else 2) or quoted_there
        if told and not coverage.absent(wanted, around) and (best is None or shared > best[0]):
            best = (shared, record)
    return [_binding(best[1], best[1].text)] if best else []


def _by_anchors(text: str, denies: bool, bench: _Bench) -> list[Binding]:
    wanted = _wanted(text, bench.question) or coverage.anchors(text)
    words = {word.stem for word in content_words(text)}
    if wanted:
        # Without a number to compare, a name alone is no match: words must agree too.
        least = 1 if wanted.numbers else 2
        for records in (bench.lines, bench.wide):
            holding = [r for r in _likely(wanted, words, records) if _has(r, wanted)]
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


def _likely(wanted: coverage.Anchors, words: set[str], records: Sequence[_Record]) -> list[_Record]:
    """The records that have all the names, in their order; of too many those that write most numbers and words of the
    sentence as it does. A record's amounts are read in a thousandth of a second, and there may be 50,000."""
    named = [r for r in records if all(stands_in(name, r.folded) for name in wanted.names)]
    if len(named) <= MAX_READ:
        return named
    figures = [re.compile(rf"(?<![\d.]){re.escape(f'{number.digits:f}')}(?!\d)") for number in wanted.numbers]
    hints = [fold(word[:4]) for word in words]

    def likeness(record: _Record) -> tuple[int, int]:
        text = record.folded
        return sum(1 for figure in figures if figure.search(text)), sum(1 for hint in hints if hint in text)

    ranked = sorted(range(len(named)), key=lambda k: likeness(named[k]), reverse=True)
    return [named[k] for k in sorted(ranked[:MAX_READ])]


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
