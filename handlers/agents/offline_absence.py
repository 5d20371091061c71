"""Claims of an answer without a model about what is not there: nothing found, nothing of that name, no access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from handlers.agents import symptoms
from handlers.agents.offline_material import Claim, Material, absent_text, binding, said_and_whence, terms_in
from handlers.agents.offline_quotes import EXCERPT_BYTES, excerpt_of, reading_form
from handlers.agents.subject import comparable, subjects, told_in
from streams.contract import EvidenceRef
from streams.events import ToolInvoked

MOST_SEARCHES = 3


def refs_of(material: Material, status: str, raw_path: str) -> list[tuple[ToolInvoked, EvidenceRef]]:
    return [
        (call, ref)
        for call in material.invocations
        if call.status == status and call.evidence_kind == "incident" and call.retrieval_details is not None
        for ref in call.retrieval_details.evidence_refs or ()
        if ref.raw_path == raw_path and (call.invocation_id, raw_path) not in material.barred
    ]


def literal_absences(material: Material) -> list[Claim]:
    """The question asked for lines that hold a text, and the search for it found none."""
    literals = symptoms.literals_of(material.question)
    if not literals:
        return []
    calls = [call for call in material.invocations if set(literals) <= set(call.arguments.get("terms") or ())]
    if any(call.status == "success" for call in calls):
        return []
    return [
        absence(call, ref, literals, material) for call, ref in refs_of(material, "no_data", "summary") if call in calls
    ][:1]


def unnamed(material: Material) -> list[Claim]:
    """What is asked about has a name that every search for it denied, and that no record and no source has."""
    asked = subjects(material.question)
    if not asked or symptoms.literals_of(material.question):
        return []
    searched = [call for call in material.invocations if set(asked) == set(call.arguments.get("terms") or ())]
    if not searched or any(call.status != "no_data" for call in searched):
        return []
    shown = [
        text
        for call in material.invocations
        if call.evidence_kind == "incident" and call.status == "success" and call.retrieval_details is not None
        for ref in call.retrieval_details.evidence_refs or ()
        for text in (call.tool_name, *said_and_whence(ref))
    ]
    if told_in(asked, shown) or not comparable(asked, shown):
        return []
    return _denial(searched, asked, material)


def unseen(material: Material, asked: Iterable[tuple[str, ...]]) -> list[Claim]:
    """What is asked for, a search for each: those that every search denied."""
    claims = []
    for terms in asked:
        calls = [call for call in material.invocations if terms == tuple(call.arguments.get("terms") or ())]
        if calls and all(call.status == "no_data" for call in calls):
            claims += _denial(calls, terms_in(terms, material.lang), material)
    return claims


def _denial(calls: Sequence[ToolInvoked], terms: Sequence[str], material: Material) -> list[Claim]:
    """One claim that `terms` stand nowhere, bound to each of the searches that say so."""
    found = [
        absence(call, ref, terms, material) for call, ref in refs_of(material, "no_data", "summary") if call in calls
    ][:MOST_SEARCHES]
    bound = [one for claim in found for one in claim["evidence_bindings"]]
    return [{**found[0], "evidence_bindings": bound}] if found else []


def absence(call: ToolInvoked, ref: EvidenceRef, terms: Sequence[str], material: Material) -> Claim:
    text = absent_text(terms, material.lang) if terms else material.say("offline/absent")
    return {
        "claim_type": "negative_observation",
        "claim_text": text,
        "support_level": "direct",
        "evidence_bindings": [binding(call, ref, ref.text.partition("query=")[0].strip()[:EXCERPT_BYTES])],
    }


def failure(call: ToolInvoked, ref: EvidenceRef, material: Material) -> Claim:
    excerpt = excerpt_of(ref.text)
    return {
        "claim_type": "observation",
        "claim_text": material.say("offline/failed", quote=reading_form(excerpt)),
        "support_level": "direct",
        "evidence_bindings": [binding(call, ref, excerpt)],
    }
