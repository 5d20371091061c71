"""Which evidence of the session can mend an answer (REP-12).

A defect can be mended if a record of the session can stand in for what is bound wrongly (the record it quotes, or one
that fits the statement), or if taking the statement out leaves every part of the question to a claim that has
evidence. What a claim says and what its binding quotes are two statements: a wrong quotation speaks for another record,
never against the claim.

What fits depends on the record, as in gate.md: an error text a statement about a failed access (ruling 7), a `summary`
without a hit a statement that denies what was searched for, any other record a statement whose numbers and identifiers
or words it has. Words of two languages are compared by the list of `concepts`; where neither that list nor a number or
identifier says no, it cannot be told, and counts as yes (REP-12: conservative, the loop is bounded).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from handlers.anchors import NAME_LIKE, fold, identifiers, joined, negated, stands_in
from handlers.concepts import ACCESS, REACH, concepts, related, topics, unrelated
from handlers.coverage import Anchors, Part, Support, absent, anchors
from handlers.guards import echo, evidence_part
from handlers.identifiers import MASK
from handlers.question import comparable, content_words, vocabulary
from handlers.wording import states_failed_access
from prompts import Templates
from streams.contract import BindingResult, Claim, Contract, GateResult
from streams.events import ToolInvoked

_READ_CHARS = 2000
_MOST_READ = 400  # records compared with one statement
_LEAST_QUOTED = 8  # characters; less stands in any record


@dataclass(frozen=True, slots=True)
class Record:
    """A quotable record of the session; `asked` is what its call was asked for."""

    invocation_id: str
    raw_path: str
    text: str
    failed: bool
    incident: bool
    asked: str = ""

    @property
    def source(self) -> str:
        return f"{self.invocation_id} {self.raw_path}"

    @property
    def shown(self) -> str:
        return self.text[:_READ_CHARS]


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

    @cached_property
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
        details = call.retrieval_details
        refs = details.evidence_refs if details is not None else None
        shown = [(ref.raw_path, ref.text) for ref in refs or ()] or ([("error", call.error)] if call.error else [])
        if call.evidence_kind != "helper":
            incident, failed = call.evidence_kind == "incident", call.status == "error"
            queries = (details.query_samples if details is not None else None) or ()
            asked = "\n".join([call.tool_name, *map(str, call.arguments.values()), *queries])
            found += [Record(call.invocation_id, path, text, failed, incident, asked) for path, text in shown]
    return tuple(found)


@lru_cache(maxsize=1024)
def _words_of(text: str) -> frozenset[str]:
    # Every defect is held against every record.
    return vocabulary([text])


def fitting(statement: str, found: Findings, claim: Claim | None = None) -> Record | None:
    """The record that fits a statement best.

    The names that the question gives fit everything, so they do not count, nor do its words unless the statement has
    no others. Runbooks fit nothing about the present incident (EXE-8).
    """
    wanted = own_anchors(statement, found)
    bare = subjectless(statement, found)
    every_word = frozenset(w.stem for w in content_words(bare))
    own = every_word - vocabulary([found.question])
    negative = negated(statement) or (claim is not None and claim.claim_type == "negative_observation")
    about_failure = states_failed_access(statement)
    hints = {stem[:4] for stem in own or every_word} | {n.key.casefold() for n in wanted.names} | _digits_of(wanted)
    best: tuple[float, Record] | None = None
    for record in _likeliest(found.records, hints):
        if record.failed or record.raw_path == "summary":
            bears = (
                about_failure and _shows_failure(statement, record, found)
                if record.failed
                else negative and _searched_for(statement, record)
            )
            value = 5.0 if bears else 0.0
        else:
            value = _likeness(bare, wanted, own, every_word, hints, record.shown)
        if value and (best is None or value > best[0]):
            best = (value, record)
    return best[1] if best else None


def _likeliest(records: Iterable[Record], hints: set[str]) -> list[Record]:
    """The records of the incident, in their order; of too many plain ones those that have most of `hints`: each is
    read for a millisecond, for every defect, and one call may have returned 50,000."""
    of_incident = [record for record in records if record.incident]
    plain = [k for k, r in enumerate(of_incident) if not r.failed and r.raw_path != "summary"]
    if len(plain) <= _MOST_READ:
        return of_incident
    shown = {k: of_incident[k].shown.casefold() for k in plain}
    dropped = set(sorted(plain, key=lambda k: -sum(hint in shown[k] for hint in hints))[_MOST_READ:])
    return [record for k, record in enumerate(of_incident) if k not in dropped]


def _likeness(
    bare: str, wanted: Anchors, own: frozenset[str], every_word: frozenset[str], hints: set[str], text: str
) -> float:
    kin = related(bare, text)
    if not kin and not any(hint in text.casefold() for hint in hints):
        return 0.0
    lacking = absent(wanted, [text])
    every = bool(wanted) and not lacking
    shared = len(own & _words_of(text))
    alike = shared >= 2 or (shared * 2 >= len(own) if own else bool(every_word & _words_of(text)))
    return shared + 0.5 + (10.0 if every else 0.0) if every or alike or kin else 0.0


def own_anchors(statement: str, found: Findings) -> Anchors:
    """The numbers and identifiers of a statement that the question does not give."""
    return absent(anchors(statement), [found.question])


def subjectless(statement: str, found: Findings) -> str:
    """A statement without the names of what is asked about: they say nothing of what it states."""
    folded, question = fold(statement), fold(found.question)
    for name in identifiers(statement):
        if name.kind in NAME_LIKE and stands_in(name, question):
            folded = folded[: name.start] + MASK * (name.end - name.start) + folded[name.end :]
    return folded


def _shows_failure(statement: str, record: Record, found: Findings) -> bool:
    """Whether an error text may bear a statement about a failed access: gate.md, under the table of rules. Two ways of
    failing (refused, timed out) are no match."""
    if absent(anchors(statement), [record.text, record.asked, found.question]):
        return False
    said, shown = concepts(statement) & ACCESS, concepts(record.shown) & ACCESS
    return not said or not shown or bool(said & shown)


def _searched_for(statement: str, record: Record) -> bool:
    """Whether a search without a hit looked for what a statement denies: for its error codes and words before the
    names of services, which every search of the incident has."""
    hits = _HITS.search(evidence_part("summary", record.text))
    asked = f"{echo(record.text)}\n{record.asked}"
    if hits is not None and int(hits[1]) != 0:
        return False
    if not echo(record.text).strip() and "\n" not in record.asked:
        return True
    names = [i for i in identifiers(statement) if i.kind in NAME_LIKE]
    codes = [i for i in identifiers(statement) if i.kind not in NAME_LIKE]
    text = fold(statement)
    for name in names:
        text = text[: name.start] + MASK * (name.end - name.start) + text[name.end :]
    words = frozenset(w.stem for w in content_words(text)) - _OF_SEARCHES
    latin = frozenset(stem for stem in words if stem.isascii())
    there = joined([asked])
    if any(stands_in(code, there) for code in codes) or words & _words_of(asked) or related(text, asked):
        return True
    if codes or latin or topics(text):
        return False
    return not names or any(stands_in(name, there) for name in names)


_HITS = re.compile(r"(?<![A-Za-z])hits=(\d+)")
_OF_SEARCHES = vocabulary(
    (
        "found find seen occurred occurs appeared log logs hit hits record records match matches entry entries line",
        "search searches query result results returned event events observed reported message messages instance sign",
    )
)


def quoted(excerpt: str | None, statement: str, found: Findings) -> Record | None:
    """The record that a binding quotes wherever it says that stands, if it may bear the statement: what the
    statement's own numbers and identifiers all lack is another's record."""
    wanted = " ".join((excerpt or "").split())
    if len(wanted) < _LEAST_QUOTED:
        return None
    held = (r for r in found.usable if wanted in " ".join(r.shown.split()))
    return next((r for r in held if may_bear(statement, r, found)), None)


def may_bear(statement: str, record: Record, found: Findings) -> bool:
    """Whether nothing says that a record of the incident cannot show a statement."""
    own = own_anchors(statement, found)
    lacking = absent(own, [record.shown])
    if own and (lacking.numbers, lacking.names) == (own.numbers, own.names):
        return False
    return bool(own) or not unrelated(subjectless(statement, found), record.shown)


def untold(statement: str, found: Findings) -> bool:
    """Whether some record is in another language and nothing says that it does not fit: no number or identifier of
    the statement's own, and not the list of concepts."""
    if own_anchors(statement, found):
        return False
    return _untold(subjectless(statement, found), found)


def _untold(text: str, found: Findings) -> bool:
    return any(not comparable(text, r.text) and not unrelated(text, r.shown) for r in found.usable)


def _digits_of(wanted: Anchors) -> set[str]:
    # A cheap look first: the same amount in another unit (30 s, 30000 ms) begins with the same digit.
    return {number.text[0].casefold() for number in wanted.numbers}


def about(part: Part, found: Findings) -> Record | None:
    """A record that speaks of a part of the question: by its words, else by what a search without a hit looked for. A
    failed call tells nothing but what could not be reached."""
    text = subjectless(part.text, found)
    for record in sorted(found.records, key=lambda one: one.raw_path == "summary"):
        if not record.incident or (record.failed and record.raw_path != "error"):
            continue
        shown = f"{echo(record.text)}\n{record.asked}" if record.raw_path == "summary" else record.shown
        if related(text, shown, REACH if record.failed else None) or part.words & _words_of(shown):
            return record
    return None


def untold_part(part: Part, found: Findings) -> bool:
    """Whether no word of a part of the question can be held against some record."""
    return _untold(subjectless(part.text, found), found) if part.words else bool(found.usable)
