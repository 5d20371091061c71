"""The claim guards: what a claim or an answer states that its evidence does not (gate.md, VER-5, EXE-5).

Pure. Guards only ever lower a verdict: they object to numbers, units, identifiers and causes; they prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from handlers import anchors, causes
from handlers.anchors import NAME_LIKE, NAMED_IN_PROSE, Identifier, Quantity
from handlers.near_names import near_names
from streams.contract import Claim, Contract, Severity

_QUERY_MARK = re.compile(r"(?<![A-Za-z0-9_])query=")


PROSE_LIMIT_CHARS = 256 * 1024
"""Prose beyond it is not read for identifiers and extra facts; the gate says so (`answer.identifier_absent` not run)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One objection. `severity` none is a warning; `not_run` is a rule that had nothing to look at (gate.md: it counts
    as low_confid). `anchor` is what was objected to, `instead` what the evidence has in its place."""

    rule: str
    severity: Severity
    message: str
    anchor: str = ""
    instead: tuple[str, ...] = ()
    not_run: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """What the guards may know of a session: its evidence text (folded), its tools' names, the question; `texts` are
    the records behind that text as they were written.

    `evidence` is None where the session has no evidence ref text at all: then nothing can be said to be absent.
    """

    question: str
    evidence: str | None
    tool_names: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()


def evidence_part(raw_path: str, text: str) -> str:
    """The part of a ref's text that is evidence: of a `summary`, what stands before `query=` (ruling 7)."""
    return _QUERY_MARK.split(text, maxsplit=1)[0] if raw_path == "summary" else text


def echo(summary: str) -> str:
    """What a `summary` says it was asked: what stands behind `query=`."""
    return "".join(_QUERY_MARK.split(summary, maxsplit=1)[1:])


def claim_findings(
    claim: Claim, verified_lines: Sequence[str], session: Session, queries: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """The objections to a confirmed claim, in the order of gate.md.

    `verified_lines` are the full lines around the excerpts of the claim's passing bindings, as the Verifier sees
    them; `queries` the arguments of the searches it binds, which count only for what a `negative_observation` denies.
    A claim without any verified line has all its numbers and identifiers absent: they are in none of them.
    """
    denied = denials(claim, session.question, queries)
    return (
        *_numbers(claim, verified_lines, session, denied),
        *_identifiers(claim, verified_lines, session, denied),
        *_units(claim, verified_lines, session, denied),
        *_cause(claim, verified_lines),
    )


@dataclass(frozen=True, slots=True)
class Denials:
    """What a negative observation may name because it denies it, and question or query asked for it (VER-5)."""

    keys: frozenset[str] = frozenset()
    quantities: tuple[Quantity, ...] = ()


def denials(claim: Claim, question: str, queries: Sequence[str]) -> Denials:
    """Identifiers and numbers in the denied parts of a `negative_observation` that question or query asked for."""
    if claim.claim_type != "negative_observation":
        return Denials()
    asked = (question, *queries)
    spans = anchors.denied_spans(claim.claim_text)
    haystack = anchors.joined(asked)
    keys = frozenset(
        i.key
        for i in anchors.identifiers(claim.claim_text)
        if anchors.within(i.start, i.end, spans) and anchors.stands_in(i, haystack)
    )
    inside = [q for q in anchors.quantities(claim.claim_text) if anchors.within(q.start, q.end, spans)]
    not_asked = anchors.absent_quantities(inside, asked)
    return Denials(keys, tuple(q for q in inside if q not in not_asked))


def absent_quantities(
    claim: Claim, lines: Sequence[str], question: str, denied: Denials = Denials()
) -> tuple[Quantity, ...]:
    """The claim's numbers that none of `lines` states. A time window that the question names is exempt."""
    asked = anchors.windows(question)
    windows = [w for w in anchors.windows(claim.claim_text) if any(anchors.same(w, a) for a in asked)]
    wanted = [q for q in anchors.quantities(claim.claim_text) if q not in windows and q not in denied.quantities]
    first: dict[tuple[object, str | None], Quantity] = {}
    for quantity in anchors.absent_quantities(wanted, lines):
        first.setdefault((quantity.value, quantity.unit), quantity)
    return tuple(first.values())


def _look_alikes(quantity: Quantity, lines: Sequence[str]) -> tuple[str, ...]:
    """What the lines write with the same digits and another unit."""
    given = [q for line in lines for q in anchors.readings_of_line(line)]
    return tuple(dict.fromkeys(q.text for q in given if q.digits == quantity.digits))


def _others(quantity: Quantity, lines: Sequence[str]) -> tuple[str, ...]:
    given = [q for line in lines for q in anchors.readings_of_line(line)]
    return tuple(dict.fromkeys(q.text for q in given if q.unit == quantity.unit))[:5]


def _numbers(claim: Claim, lines: Sequence[str], session: Session, denied: Denials) -> Iterable[Finding]:
    for quantity in absent_quantities(claim, lines, session.question, denied):
        if not _look_alikes(quantity, lines):
            instead = _others(quantity, lines)
            yield Finding(
                "claim.number_absent",
                "low_confid",
                f'the claim says "{quantity.text}"{_nowhere(lines)}{_they_give(instead)}',
                quantity.text,
                instead,
            )


def _units(claim: Claim, lines: Sequence[str], session: Session, denied: Denials) -> Iterable[Finding]:
    for quantity in absent_quantities(claim, lines, session.question, denied):
        alike = _look_alikes(quantity, lines)
        if alike:
            yield Finding(
                "claim.unit_mismatch",
                "low_confid",
                f'the claim says "{quantity.text}", its verified lines say {_quoted(alike)}: same digits, another unit',
                quantity.text,
                alike,
            )


def _identifiers(claim: Claim, lines: Sequence[str], session: Session, denied: Denials) -> Iterable[Finding]:
    rule = "claim.identifier_absent"
    haystack = anchors.joined(lines)
    near = near_names(claim.claim_text, session.evidence) if session.evidence is not None else ()
    for found in _once([*anchors.identifiers(claim.claim_text), *near]):
        if found.key in denied.keys or exempt(found, session) or anchors.stands_in(found, haystack):
            continue
        name = f"{_KINDS[found.kind]} {found.text}"
        if session.evidence is None:
            message = f"the claim names the {name}{_nowhere(lines)}"
            yield Finding(rule, "low_confid", message, found.text)
            message = f"whether the {name} is invented could not be checked: the session has no evidence text"
            yield Finding(rule, "low_confid", message, found.text, not_run=True)
        elif anchors.stands_in(found, session.evidence):
            message = f"the claim names the {name}{_nowhere(lines)}: bind the line that has it"
            yield Finding(rule, "low_confid", message, found.text)
        else:
            message = f"the claim names the {name}, which is in no evidence of this session"
            yield Finding(rule, "reject", message, found.text)


def _cause(claim: Claim, lines: Sequence[str]) -> Iterable[Finding]:
    if not causes.is_causal(claim) or any(causes.shown_by(claim, line) for line in lines):
        return
    yield Finding(
        "claim.causal_unsupported",
        "low_confid" if claim.support_level == "direct" else "none",
        "the claim names a cause, and no verified line shows cause and effect together: it is indirect support at most",
    )


def absent_from_answer(
    prose: Iterable[str], session: Session, contract: Contract | None, denied: frozenset[str] = frozenset()
) -> tuple[Identifier, ...]:
    """Identifiers that the answer's prose names and no evidence of the session has (VER-5), each once.

    `denied` are the keys that negative observations deny (see `denials`): prose that repeats the denial may name
    them. An answer without a contract is its own claim: there a denied part may name what the question asked for.
    """
    assert session.evidence is not None, "with no evidence text the rule is not_run"
    found: list[Identifier] = []
    question = anchors.fold(session.question)
    for text in prose:
        spans = anchors.denied_spans(text)
        for identifier in anchors.identifiers(text):
            if identifier.kind not in NAMED_IN_PROSE or exempt(identifier, session):
                continue
            if anchors.stands_in(identifier, session.evidence):
                continue
            asked = identifier.key in denied or (contract is None and anchors.stands_in(identifier, question))
            if not (asked and anchors.within(identifier.start, identifier.end, spans)):
                found.append(identifier)
    return tuple(_once(found))


def answer_finding(identifier: Identifier) -> Finding:
    """The sentence of `answer.identifier_absent`."""
    message = (
        f"the answer names the {_KINDS[identifier.kind]} {identifier.text}, which is in no evidence of this session"
    )
    return Finding("answer.identifier_absent", "reject", message, identifier.text)


@dataclass(frozen=True, slots=True)
class ExtraFact:
    """A sentence of the answer, and whether it states more than the contract: `extra` with the anchors that stand
    in no claim, hypothesis, action or missing_info; `not_judged` without any anchor."""

    text: str
    field: str
    status: Literal["extra", "ok", "not_judged"]
    anchors: tuple[str, ...] = ()


@lru_cache(maxsize=256)  # the Evaluator asks for it, and the Verifier before and after its model's reply
def extra_facts(contract: Contract, question: str) -> tuple[ExtraFact, ...]:
    """The sentences of `user_facing_answer` and `diagnosis_summary`, judged by EXE-5, each sentence once.

    Numbers and identifiers are compared in any language, words not at all. The question exempts names and time windows.
    """
    said = _said(contract)
    there = anchors.stated(said)
    pool = anchors.joined(said)
    known = anchors.joined((question,))
    windows = anchors.windows(question)
    tools = {b.tool_name for c in contract.claims for b in c.evidence_bindings if b.tool_name}
    facts: dict[str, ExtraFact] = {}
    for field, text in (
        ("user_facing_answer", contract.user_facing_answer or ""),
        ("diagnosis_summary", contract.diagnosis_summary),
    ):
        for sentence in anchors.sentences(text) if len(text) <= PROSE_LIMIT_CHARS else ():
            if sentence in facts:
                continue
            names, numbers = anchors.identifiers(sentence), anchors.quantities(sentence)
            asked = [w for w in anchors.windows(sentence) if any(anchors.same(w, a) for a in windows)]
            missing = [
                i.text
                for i in names
                if not anchors.stands_in(i, pool)
                and not (i.kind in NAME_LIKE and anchors.stands_in(i, known))
                and i.text not in tools
            ]
            missing += [q.text for q in numbers if not there.has(q) and q not in asked]
            status: Literal["extra", "ok", "not_judged"] = (
                "extra" if missing else "ok" if names or numbers else "not_judged"
            )
            facts[sentence] = ExtraFact(sentence, field, status, tuple(dict.fromkeys(missing)))
    return tuple(facts.values())


def _said(contract: Contract) -> tuple[str, ...]:
    return (
        *(claim.claim_text for claim in contract.claims),
        *(text for h in contract.hypotheses for text in (h.hypothesis_text, h.basis, *h.needed_evidence)),
        *(text for action in contract.recommended_actions for text in (action.action_text, action.reason)),
        *contract.missing_info,
    )


def exempt(identifier: Identifier, session: Session) -> bool:
    """The question exempts names of what is asked about; the name of a tool that was called is no claim."""
    if identifier.text in session.tool_names:
        return True
    return identifier.kind in NAME_LIKE and anchors.stands_in(identifier, anchors.fold(session.question))


def _once(found: Iterable[Identifier]) -> list[Identifier]:
    first: dict[str, Identifier] = {}
    for identifier in found:
        first.setdefault(identifier.key, identifier)
    return list(first.values())


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def _nowhere(lines: Sequence[str]) -> str:
    return ", which is in none of its verified lines" if lines else ", and has no verified line that could say so"


def _they_give(instead: Sequence[str]) -> str:
    return f"; they give {_quoted(instead)}" if instead else ""


_KINDS = {
    "error_code": "error code",
    "exception": "exception",
    "host": "host",
    "pod": "pod",
    "ip": "IP address",
    "id": "id",
    "version": "version",
    "name": "name",
    "symbol": "symbol",
}
