"""The Planner without a model: tools and search words from the question's own words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from handlers.agents import symptoms
from handlers.agents.protocol import PlanBrief
from handlers.agents.subject import asked_things, subjects
from handlers.evidence.protocol import ToolSpec
from handlers.evidence.ranking import words

MOST_STEPS = 16
MOST_FILES = 10
MOST_NAMING = 20  # records enough to see that the subject is known at all, and to quote one
Step = dict[str, Any]


def plan_text(brief: PlanBrief) -> str:
    """The plan as JSON: `{"narrow", "note", "steps": [{tool_name, arguments, why}]}`. A second round looks wider."""
    tried = _tried(brief.retry_context)
    steps: list[Step] = []
    for spec in brief.tools:
        if spec.evidence_kind == "helper":
            continue
        for step in _steps(spec, brief):
            key = (spec.name, json.dumps(step["arguments"], sort_keys=True, ensure_ascii=False))
            if key not in tried and len(steps) < MOST_STEPS:
                tried.add(key)
                steps.append(step)
    return json.dumps(
        {"narrow": symptoms.is_narrow(brief.question), "note": _note(brief), "steps": steps}, ensure_ascii=False
    )


def _note(brief: PlanBrief) -> str:
    found = ", ".join(symptom.name for symptom in symptoms.symptoms_of(brief.question)) or "none known"
    names = ", ".join(symptoms.names_of(brief.question)) or "none"
    scope = "wider than before" if brief.retry_context else "first look"
    return f"without a model; symptoms: {found}; names: {names}; {scope}"


def _tried(context: dict[str, Any] | None) -> set[tuple[str, str]]:
    return {
        (str(call.get("tool_name")), json.dumps(call.get("arguments") or {}, sort_keys=True, ensure_ascii=False))
        for call in (context or {}).get("tried", ())
    }


def _steps(spec: ToolSpec, brief: PlanBrief) -> Iterator[Step]:
    properties = spec.parameters.get("properties", {})
    if spec.evidence_kind == "knowledge":
        yield from _knowledge(spec, brief, properties)
    elif "metric" in properties:
        yield from _metrics(spec, brief, properties)
    elif "file" in properties:
        yield from _recorded(spec, brief, properties)
    elif "terms" in properties:
        yield from _logs(spec, brief, properties)
    else:
        yield from _unknown(spec, brief, properties)


def _logs(spec: ToolSpec, brief: PlanBrief, properties: dict[str, Any]) -> Iterator[Step]:
    literals = symptoms.literals_of(brief.question)
    if literals:
        yield _step(spec, {"terms": list(literals)}, "the question asks for lines that hold this text")
        if brief.round == 1:
            return
    found = symptoms.symptoms_of(brief.question)
    terms = symptoms.record_terms(found)
    if brief.round == 1:
        if terms:
            yield _step(spec, {"terms": list(terms)}, f"words of the symptoms: {_named(found)}")
        yield _step(spec, {}, "the first, the last, the rare and the most severe lines of all")
        yield from _naming(spec, brief)
        return
    gaps = _gap_terms(brief)
    if gaps:
        yield _step(spec, {"terms": gaps, "limit": 120}, "words of what was not confirmed")
    if "level" in properties:
        yield _step(spec, {"level": "warn", "limit": 150}, "every kind of warning and error")
    yield _step(spec, {"limit": 200}, "more lines of all kinds")


def _metrics(spec: ToolSpec, brief: PlanBrief, properties: dict[str, Any]) -> Iterator[Step]:
    found = symptoms.symptoms_of(brief.question)
    own = [word for word in words(brief.question) if len(word) > 2 and word.isascii()]
    terms = list(dict.fromkeys((*symptoms.metric_terms(found), *own)))
    if brief.round == 1:
        if terms and "terms" in properties:
            yield _step(spec, {"terms": terms}, f"series named after the question: {_named(found)}")
        yield _step(spec, {}, "the series that changed most")
        if "terms" in properties:
            yield from _naming(spec, brief)
        return
    yield _step(spec, {"limit": 100}, "more series of all kinds")


def _recorded(spec: ToolSpec, brief: PlanBrief, properties: dict[str, Any]) -> Iterator[Step]:
    files = properties["file"].get("enum") or []
    if brief.round > 1:
        yield _step(spec, {"limit": 400}, "more lines of all recorded outputs")
        return
    if 1 < len(files) <= MOST_FILES:
        for file in files:
            yield _step(spec, {"file": file}, "each recorded output by itself")
    else:
        yield _step(spec, {}, "all recorded outputs")
    if "terms" in properties:
        yield from _naming(spec, brief)


def _naming(spec: ToolSpec, brief: PlanBrief) -> Iterator[Step]:
    """Whether any record names what is asked about: an answer that knows it does not can say so."""
    asked = list(subjects(brief.question))
    if asked:
        yield _step(spec, {"terms": asked, "limit": MOST_NAMING}, "records that name what is asked about")
    if not symptoms.is_narrow(brief.question):
        return
    for terms in asked_things(brief.question):
        yield _step(spec, {"terms": list(terms), "limit": MOST_NAMING}, "records of the condition that is asked about")


def _knowledge(spec: ToolSpec, brief: PlanBrief, properties: dict[str, Any]) -> Iterator[Step]:
    if "query" not in properties:
        yield from _unknown(spec, brief, properties)
    elif brief.round == 1:
        yield _step(spec, {"query": brief.question}, "runbooks for this question: background, no evidence")
    else:
        terms = symptoms.record_terms(symptoms.symptoms_of(brief.question))
        yield _step(spec, {"query": " ".join((brief.question, *terms)), "limit": 12}, "runbooks by the symptoms' words")


def _unknown(spec: ToolSpec, brief: PlanBrief, properties: dict[str, Any]) -> Iterator[Step]:
    """A tool of somebody else's: called if everything it requires is one search text, or nothing."""
    required = list(spec.parameters.get("required", ()))
    text = next((name for name in ("query", "q", "text", "search", "question") if name in properties), None)
    if not required:
        yield _step(spec, {}, "this tool needs no arguments")
    elif text is not None and required == [text]:
        yield _step(spec, {text: brief.question}, "the question as the search text")


def _gap_terms(brief: PlanBrief) -> list[str]:
    gaps: Iterable[str] = (brief.retry_context or {}).get("critical_gaps", ())
    found = [word for gap in gaps for word in words(str(gap)) if len(word) > 3 or not word.isascii()]
    return list(dict.fromkeys((*symptoms.names_of(brief.question), *found)))[:40]


def _named(found: Iterable[symptoms.Symptom]) -> str:
    return ", ".join(symptom.name for symptom in found) or "its own words"


def _step(spec: ToolSpec, arguments: dict[str, Any], why: str) -> Step:
    return {"tool_name": spec.name, "arguments": arguments, "why": why}
