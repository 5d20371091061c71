"""From the defects of an answer to one targeted repair request: what is wrong, and from which evidence to mend it.

Each line names the claim, the binding by its place, the rule, and the record to go by; the rest of the answer stays
(REP-4, REP-8). The same findings say whether any defect can be mended at all (REP-12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handlers.anchors import Quantity, quantities, readings_of_line
from handlers.coverage import Part, Support, absent, anchors
from handlers.mending import Findings, Record, about, fitting, may_bear, quoted, untold, untold_part
from prompts import Templates
from streams.contract import Binding, BindingResult, Claim

_SHOWN_CHARS = 300
_NEAR = 60.0  # ratio of a nearest miss (0 to 100) from which on it is taken for the record that was meant
_BEARS_NOTHING = frozenset({"evidence.failed_invocation", "evidence.helper_invocation", "evidence.summary_scope"})
_POINTS_WRONG = frozenset({"evidence.tool_name", "evidence.tool_name_missing"})
_QUOTES_TOO_LITTLE = frozenset({"evidence.excerpt_trivial", "evidence.excerpt_paraphrase", "evidence.excerpt_stitched"})


@dataclass(frozen=True, slots=True)
class Defect:
    """One line of the repair request, and whether the session's evidence can mend what it names."""

    line: str
    mendable: bool


def defects(found: Findings) -> Iterator[Defect]:
    """Every defect of the answer once, in the order claims, text, question. Each is looked for in every record, so that
    who needs no more of them does not pay for them."""
    seen: set[Defect] = set()
    for defect in _every(found):
        if defect not in seen:
            seen.add(defect)
            yield defect


def _every(found: Findings) -> Iterator[Defect]:
    yield from (_of_binding(b, found) for b in found.gate.checked_bindings if b.severity != "none")
    for support in found.confirmed:
        yield from _of_claim(support, found)
    yield from _unconfirmed(found)
    yield from (_misaligned(binding, other, found) for binding, other in found.misaligned)
    yield from (_of_extra_fact(text, found) for text in found.extra_facts)
    yield from _of_prose(found)
    yield from (_of_part(part, found) for part in found.parts if part.status in {"unanswered", "unsupported"})
    if found.gate.errors:
        rules = ", ".join(sorted({e.rule for e in found.gate.errors}))
        yield Defect(found.say("repair/unchecked", rules=rules), False)


def _claim_of(claim_id: str, found: Findings) -> Claim | None:
    return next((c for c in found.contract.claims if c.claim_id == claim_id), None)


def _binding_of(result: BindingResult, found: Findings) -> Binding | None:
    claim = _claim_of(result.claim_id, found)
    if claim is not None:
        bindings = claim.evidence_bindings
    else:
        place = result.claim_id.removeprefix("action-")
        actions = found.contract.recommended_actions
        bindings = actions[int(place)].evidence_bindings if place.isdigit() and int(place) < len(actions) else ()
    return bindings[result.index] if result.index < len(bindings) else None


def _of_binding(result: BindingResult, found: Findings) -> Defect:
    say, rules = found.say, set(result.failed_rules)
    given = _binding_of(result, found)
    claim = _claim_of(result.claim_id, found)
    line = say(
        "repair/binding",
        claim=result.claim_id,
        index=result.index,
        source=_source(result, say),
        rules=", ".join(result.failed_rules) or result.status,
    )
    miss = result.nearest_miss
    if miss is not None and miss.ratio >= _NEAR and _can_serve(result, found):
        numbers = _wrong_numbers(given.evidence_excerpt if given is not None else None, [miss.text])
        hints = [_number_line(result.claim_id, wrong, right, _source(result, say), say) for wrong, right in numbers]
        return Defect(" ".join([line, say("repair/copy", text=_short(miss.text)), *hints]), True)
    if rules and rules <= _POINTS_WRONG | _QUOTES_TOO_LITTLE:
        shown = result.lines or result.text
        return Defect(f"{line} {say('repair/copy', text=_short(shown))}" if shown else line, True)
    excerpt = given.evidence_excerpt if given is not None else None
    statement = claim.claim_text if claim is not None else excerpt or ""
    record = _pointed_at(result, statement, found) or quoted(excerpt, statement, found)
    return _with_evidence(line, statement, found, claim, found.can_go(result.claim_id), record)


def _pointed_at(result: BindingResult, statement: str, found: Findings) -> Record | None:
    """The record at the place that a binding names, where all that is wrong is that it quotes nothing of it."""
    if set(result.failed_rules) != {"evidence.excerpt_missing"}:
        return None
    place = (result.source_invocation_id, result.raw_path)
    held = (r for r in found.records if (r.invocation_id, r.raw_path) == place and r.incident)
    return next((r for r in held if r.failed or r.raw_path == "summary" or may_bear(statement, r, found)), None)


def _can_serve(result: BindingResult, found: Findings) -> bool:
    """Whether the record that a binding points at may bear its claim at all."""
    if _BEARS_NOTHING & set(result.failed_rules):
        return False
    place = (result.source_invocation_id, result.raw_path)
    return not any((r.invocation_id, r.raw_path) == place and not r.incident for r in found.records)


def _of_claim(support: Support, found: Findings) -> list[Defect]:
    claim, say = support.claim, found.say
    lines: list[Defect] = []
    told = {rule for rule in support.rules if _told_by_binding(rule, support, found)}
    if "claim.number_absent" in support.rules and "claim.number_absent" not in told and support.passing:
        source = _source(support.passing[0], say)
        lines = [
            Defect(_number_line(claim.claim_id, wrong, right, source, say), True)
            for wrong, right in _wrong_numbers(claim.claim_text, support.lines)
        ]
        told |= {"claim.number_absent"} if lines else set()
    rest = [rule for rule in support.rules if rule not in told]
    if rest:
        messages = [n.message for n in found.gate.failures if n.claim_id == claim.claim_id and n.rule in rest]
        line = say("repair/claim", claim=claim.claim_id, rules="; ".join([*rest, *messages]))
        if support.passing:
            sources = ", ".join(_source(b, say) for b in support.passing)
            lines.append(
                Defect(f"{line} {say('repair/elsewhere', source=sources, text=_short(support.lines[0]))}", True)
            )
        else:
            lines.append(_with_evidence(line, claim.claim_text, found, claim, found.can_go(claim.claim_id)))
    return lines


def _told_by_binding(rule: str, support: Support, found: Findings) -> bool:
    # A quotation that is nearly right, or that belongs to another claim, is why the number is not in the lines.
    near = any(b.nearest_miss is not None and b.nearest_miss.ratio >= _NEAR for b in support.bindings)
    moved = any(binding.claim_id == support.claim.claim_id for binding, _ in found.misaligned)
    return rule == "claim.number_absent" and ((near and not support.passing) or moved)


def _unconfirmed(found: Findings) -> Iterator[Defect]:
    """Claims that lost their place among the confirmed ones by a rule, and an answer that has none left."""
    confirmed = {s.claim.claim_id for s in found.confirmed}
    for claim in found.contract.claims:
        rules = [r for r in found.gate.claim_rules.get(claim.claim_id, ()) if r in found.gate.failed_rules]
        if claim.claim_id not in confirmed and rules:
            line = found.say("repair/claim", claim=claim.claim_id, rules=", ".join(rules))
            yield _with_evidence(line, claim.claim_text, found, claim, bool(found.supported_ids))
    if not confirmed:
        statements = [c.claim_text for c in found.contract.claims]
        statements += [h.hypothesis_text for h in found.contract.hypotheses]
        tried = (_with_evidence(found.say("repair/none_confirmed"), said, found, None, False) for said in statements)
        nothing = Defect(f"{found.say('repair/none_confirmed')} {found.say('repair/nowhere')}", False)
        yield next((defect for defect in tried if defect.mendable), nothing)


def _misaligned(binding: BindingResult, other: str, found: Findings) -> Defect:
    line = found.say(
        "repair/misaligned",
        claim=binding.claim_id,
        index=binding.index,
        source=_source(binding, found.say),
        other=other,
    )
    return Defect(line, True)


def _of_extra_fact(text: str, found: Findings) -> Defect:
    line = found.say("repair/extra_fact", text=_short(text))
    return _with_evidence(line, text, found, None, bool(found.supported_ids))


def _of_prose(found: Findings) -> list[Defect]:
    messages = [n.message for n in found.gate.failures if n.rule == "answer.identifier_absent"]
    if "answer.identifier_absent" not in found.gate.failed_rules:
        return []
    rules = "; ".join(["answer.identifier_absent", *messages])
    return [Defect(found.say("repair/prose", rules=rules), bool(found.supported_ids))]


def _of_part(part: Part, found: Findings) -> Defect:
    line = found.say(f"repair/part_{part.status}", text=_short(part.text))
    held = about(part, found)
    if held is not None:
        return Defect(f"{line} {found.say('repair/elsewhere', source=held.source, text=_short(held.text))}", True)
    # A part that a confirmed claim answers stands and falls with that claim, whose own defects are told.
    answered = {support.claim.claim_id for support in found.confirmed} & set(part.claim_ids)
    return Defect(line, untold_part(part, found) and not answered)


def _with_evidence(
    line: str, statement: str, found: Findings, claim: Claim | None, can_go: bool, record: Record | None = None
) -> Defect:
    record = record or fitting(statement, found, claim)
    if record is not None:
        return Defect(f"{line} {found.say('repair/elsewhere', source=record.source, text=_short(record.text))}", True)
    return Defect(f"{line} {found.say('repair/nowhere')}", can_go or untold(statement, found))


def _wrong_numbers(said: str | None, lines: Sequence[str]) -> list[tuple[Quantity, list[Quantity]]]:
    """The numbers of `said` that `lines` do not have, each with those the lines give in its place."""
    given = [found for line in lines for found in quantities(line)] or [
        found for line in lines for found in readings_of_line(line)
    ]
    stated = quantities(said or "")
    wrong = absent(anchors(said or ""), lines).numbers
    free = [found for found in given if not any(_equal(found, other) for other in stated)] or given
    pairs = []
    for number in wrong:
        alike = [found for found in free if found.unit == number.unit] or free
        if len(stated) == len(given):
            alike = [given[stated.index(number)]]
        pairs.append((number, alike[:3]))
    return pairs


def _equal(one: Quantity, other: Quantity) -> bool:
    return (one.value, one.unit) == (other.value, other.unit)


def _number_line(claim_id: str, wrong: Quantity, right: Sequence[Quantity], source: str, say: Templates) -> str:
    if not right:
        return say("repair/number_absent", claim=claim_id, wrong=wrong.text, source=source)
    given = ", ".join(dict.fromkeys(found.text for found in right))
    return say("repair/number", claim=claim_id, wrong=wrong.text, right=given, source=source)


def _source(result: BindingResult, say: Templates) -> str:
    told = [text for text in (result.source_invocation_id, result.raw_path) if text]
    return " ".join(told) if told else say("repair/no_source")


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= _SHOWN_CHARS else folded[: _SHOWN_CHARS - 1] + "…"
