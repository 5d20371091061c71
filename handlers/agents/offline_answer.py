"""The contract of an answer without a model: quotes as observations, runbooks as hypotheses, nothing inferred."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from handlers.agents import symptoms
from handlers.agents.offline_absence import absence, failure, literal_absences, refs_of, unnamed, unseen
from handlers.agents.offline_counts import asks_how_many, counts
from handlers.agents.offline_evidence import Candidate, line_of, measured, pick, ranked
from handlers.agents.offline_material import Claim, Material, Spot, binding, said_and_whence
from handlers.agents.offline_quotes import excerpt_of, reading_form
from handlers.agents.subject import asked_things, named, subjects, told_in
from handlers.evidence.ranking import words
from prompts import Templates
from streams.contract import EvidenceRef

MOST_CLAIMS, MOST_NARROW, MOST_FINE = 5, 2, 3
MOST_BINDINGS = 3
TITLE_LINES = 8
MOST_HYPOTHESES = 3


def contract_of(material: Material, kept: Sequence[Claim] = ()) -> dict[str, Any]:
    """The contract: `kept` claims first, then new ones up to the bound (EXE-7: two for a narrow question)."""
    key, fresh = _claims(material)
    held = {spot for claim in kept for spot in spots(claim)}
    fresh = [claim for claim in (*_asked_for(material), *fresh) if not held & set(spots(claim))]
    most = MOST_NARROW if material.narrow else MOST_CLAIMS
    claims = [*kept, *fresh][: max(most, len(kept))]
    claims = _numbered(claims)
    hypotheses = _hypotheses(material)
    missing = _missing(material, bool(claims))
    return {
        "answer_version": "executor_evidence_v2",
        "diagnosis_summary": material.say(f"offline/{key}"),
        "claims": claims,
        "hypotheses": hypotheses,
        "recommended_actions": [],
        "missing_info": missing,
        "user_facing_answer": _text(material.say(f"offline/{key}"), claims, hypotheses),
    }


def _asked_for(material: Material) -> list[Claim]:
    found = [
        one
        for one in ranked(material.question, material.invocations)
        if f"{one.call.invocation_id} {one.ref.raw_path}" in material.wanted
        and (one.call.invocation_id, one.ref.raw_path) not in material.barred
    ]
    return _observed(found[:MOST_NARROW], material)


def spots(claim: Claim) -> list[Spot]:
    return [(b["source_invocation_id"], b["raw_path"]) for b in claim["evidence_bindings"]]


def _numbered(claims: Iterable[Claim]) -> list[Claim]:
    used: set[str] = set()
    numbered = []
    for claim in claims:
        name = claim.get("claim_id")
        if not name or name in used:
            name = next(f"c{at}" for at in range(1, 1000) if f"c{at}" not in used)
        used.add(name)
        numbered.append({**claim, "claim_id": name})
    return numbered


def _claims(material: Material) -> tuple[str, list[Claim]]:
    """Which summary fits, and the claims that can be made, the best first."""
    asked_for = literal_absences(material)
    if asked_for:
        return "summary_absent", asked_for
    candidates = [
        one
        for one in ranked(material.question, material.invocations)
        if (one.call.invocation_id, one.ref.raw_path) not in material.barred
    ]
    denied = unnamed(material)
    if denied and material.narrow:
        return "summary_absent", denied
    if denied:
        wrong = [one for one in candidates if one.problem]
        return "summary_unnamed", [*denied, *_observed(pick(wrong, MOST_FINE), material)]
    if material.narrow and (gone := unseen(material, asked_things(material.question))):
        return "summary_absent", gone[:MOST_NARROW]
    candidates = _of_subject(candidates, material)
    most = MOST_NARROW + MOST_BINDINGS if material.narrow else MOST_CLAIMS
    number = asks_how_many(material.question)
    wrong = [
        one
        for one in candidates
        if one.problem or one.family != "state" or one.keyed or (number and counts([one.ref.text]))
    ]
    chosen = pick(wrong, most)
    if chosen and (any(one.problem for one in chosen) or not symptoms.HEALTH.search(material.question)):
        if material.narrow:
            leaders = {one.family: one for one in reversed(chosen)}.values()
            chosen.sort(key=lambda one: (one not in leaders, -one.score))
        others = _named(chosen, candidates, material.question)
        if not material.narrow:
            chosen = chosen[: max(1, most - len(others))]
        beside = [*others, *_before([*chosen, *others], candidates, most)]
        return "summary", _observed([*chosen, *beside][:most], material)
    fine = [one for one in candidates if one.fine]
    if fine:
        best = sorted(fine, key=_fineness, reverse=True)
        return "summary_fine", _observed(_unlike(best, MOST_FINE), material)
    if candidates and candidates[0].score > 0:
        return "summary", _observed(_unlike(candidates, MOST_FINE), material)
    absences = [absence(call, ref, (), material) for call, ref in refs_of(material, "no_data", "summary")]
    if absences:
        return "summary_absent", absences[:MOST_NARROW]
    failures = [failure(call, ref, material) for call, ref in refs_of(material, "error", "error")]
    if failures:
        return "summary_failed", failures[:MOST_NARROW]
    knowledge = any(call.evidence_kind == "knowledge" and call.status == "success" for call in material.invocations)
    return ("summary_knowledge" if knowledge else "summary_nothing"), []


def _of_subject(candidates: list[Candidate], material: Material) -> list[Candidate]:
    """For a question of yes or no, or of how many, about something with a name: of each family the records that name it
    or are of an output about it, where there are any. What another service complains of says nothing about this one."""
    asked = subjects(material.question)
    if not asked or not (material.narrow or asks_how_many(material.question)):
        return candidates
    about = {one.origin for one in candidates if _titles(one) and told_in(asked, (one.ref.text,))}
    telling = [one for one in candidates if one.origin in about or told_in(asked, said_and_whence(one.ref))]
    families = {one.family for one in telling}
    return [one for one in candidates if one in telling or one.family not in families]


def _titles(one: Candidate) -> bool:
    """Whether a record is the title of an output: the `Name:` that begins what describes one thing."""
    return one.family == "state" and line_of(one.ref.raw_path) <= TITLE_LINES and _TITLE.match(one.ref.text) is not None


def _before(chosen: Sequence[Candidate], candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """How it was before: a quiet log record with the same measured field at half or less of the loudest one's."""
    if len(chosen) >= most or chosen[0].family != "log":
        return []
    loud = measured(chosen[0].ref.text)
    quiet = [one for one in candidates if one.call.tool_name == chosen[0].call.tool_name and not one.problem]
    for one in sorted(quiet, key=lambda one: (one.ref.source or "", line_of(one.ref.raw_path))):
        mine = measured(one.ref.text)
        if any(value > 0 and 2 * value <= loud.get(key, 0.0) for key, value in mine.items()):
            return [one]
    return []


def _named(chosen: Sequence[Candidate], candidates: Sequence[Candidate], question: str) -> list[Candidate]:
    """For each name of the question that no chosen record has, the best record with it: whose lines these are, and what
    the other half of a question asks of."""
    found: list[Candidate] = []
    for name in subjects(question):
        if not any(named(name, said_and_whence(one.ref)) for one in (*chosen, *found)):
            telling = [one for one in candidates if named(name, [one.ref.text])]
            found += sorted(telling, key=lambda one: not (one.problem or one.fine))[:1]
    return found


def _fineness(one: Candidate) -> float:
    return (
        0.6 * len(set(symptoms.FINE.findall(one.ref.text))) + one.score + (0.5 if _STATE.search(one.ref.text) else 0.0)
    )


_TITLE = re.compile(r"[\s\"]*name\"?\s*[:=]", re.IGNORECASE)
_STATE = re.compile(r"\b(?:status|ready|restarts?|restart count|available|healthy|running)\b", re.IGNORECASE)


def _unlike(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The first candidates that are no copies of each other."""
    chosen: list[Candidate] = []
    seen: list[frozenset[str]] = []
    for one in candidates:
        mine = frozenset(words(one.ref.text))
        if any(2 * len(mine & other) >= min(len(mine), len(other)) for other in seen):
            continue
        seen.append(mine)
        chosen.append(one)
        if len(chosen) == most:
            break
    return chosen


def _observed(chosen: Sequence[Candidate], material: Material) -> list[Claim]:
    """A claim for each record; series of one label set are one claim with a binding each."""
    groups: dict[str, list[Candidate]] = {}
    for at, one in enumerate(chosen):
        labels = one.ref.text.partition("{")[2].partition("}")[0] if one.family == "metric" else ""
        name = f"labels {labels}" if labels and not one.ref.text.startswith("ALERT") else f"record {at}"
        group = groups.setdefault(name, [])
        if len(group) < MOST_BINDINGS:
            group.append(one)
        else:
            groups[f"record {at}"] = [one]
    return [_observation(group, material) for group in groups.values()]


def _observation(group: Sequence[Candidate], material: Material) -> Claim:
    excerpts = [excerpt_of(one.ref.text) for one in group]
    quote = "; ".join(reading_form(excerpt) for excerpt in excerpts)
    return {
        "claim_type": "observation",
        "claim_text": material.say(f"offline/{group[0].family}", quote=quote),
        "support_level": "direct",
        "evidence_bindings": [
            binding(one.call, one.ref, excerpt) for one, excerpt in zip(group, excerpts, strict=True)
        ],
    }


def _hypotheses(material: Material) -> list[dict[str, Any]]:
    """The best section of each document that the look-ups found; obsolete documents last, and named so."""
    found: dict[str, tuple[bool, int, EvidenceRef]] = {}
    for call in material.invocations:
        if call.evidence_kind != "knowledge" or call.status != "success" or call.retrieval_details is None:
            continue
        for at, ref in enumerate(call.retrieval_details.evidence_refs or ()):
            document = ref.raw_path.partition("#")[0]
            found.setdefault(document, (ref.text.startswith("[OBSOLETE]"), at, ref))
    best = sorted(found.values(), key=lambda entry: entry[:2])[:MOST_HYPOTHESES]
    return [_hypothesis(ref, obsolete, material.say) for obsolete, _, ref in best]


def _hypothesis(ref: EvidenceRef, obsolete: bool, say: Templates) -> dict[str, Any]:
    banner, _, body = ref.text.partition("\n")
    title = banner.removeprefix("[OBSOLETE] ").partition(" | ")[0]
    said = [line.strip() for line in body.split("\n") if re.search(r"\w{2}", line) and not line.startswith("#")]
    return {
        "hypothesis_text": say("offline/hypothesis_obsolete" if obsolete else "offline/hypothesis", title=title),
        "basis": say("offline/basis", quote=reading_form(" ".join(said))),
        "needed_evidence": [say("offline/missing_incident")],
    }


def _missing(material: Material, answered: bool) -> list[str]:
    say = material.say
    found = []
    if answered and symptoms.asks_why(material.question):
        found.append(say("offline/missing_cause"))
    if any(call.status == "error" and call.evidence_kind == "incident" for call in material.invocations):
        found.append(say("offline/missing_failed"))
    details = [call.retrieval_details for call in material.invocations if call.retrieval_details is not None]
    if any((one.returned or 0) < (one.matched or 0) for one in details):
        found.append(say("offline/missing_cut"))
    if not answered:
        found.append(say("offline/missing_incident"))
    return found


def _text(summary: str, claims: Sequence[Claim], hypotheses: Sequence[dict[str, Any]]) -> str:
    lines = [summary, *(f"- {claim['claim_text']}" for claim in claims)]
    for hypothesis in hypotheses:
        basis = "" if claims else f" {hypothesis['basis']}"
        lines.append(f"- {hypothesis['hypothesis_text']}{basis}")
    return "\n".join(lines)


def as_text(contract: dict[str, Any]) -> str:
    return json.dumps(contract, ensure_ascii=False)
