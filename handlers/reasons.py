"""Why an answer has the verdict it has, in a few lines for people: what lowered it, each cause once. Pure.

The gate may find several faults with one cause: a digit that was changed is a quotation that differs, a number that no
line holds, and a claim without support. Faults are put together by claim, the one nearest to the evidence first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

FIRST: Final = ("contract.", "evidence.", "binding.", "claim.")  # what a rule of the next kind may follow from
MOST_RATIONALE_CHARS: Final = 600
SCORE_NOTE: Final = "of the facts alone: a cap lowers the verdict, never the score"


def score_told(report: dict[str, Any]) -> str:
    """The score, and that it is the facts' where a cap makes the verdict another than theirs. '' without a score."""
    evaluation, score = report["verifier_evaluation"], report["groundedness_score"]
    if score is None:
        return ""
    lowered = evaluation is not None and evaluation["effective_verdict"] != evaluation["derived_verdict"]
    return f"{score:.2f} ({SCORE_NOTE})" if lowered else f"{score:.2f}"


def reasons(report: dict[str, Any]) -> Iterator[str]:
    """A line for each claim that fails, for each critical fact that lowers the verdict, and for each cap that is not
    the gate's. `report` is `turn_report`'s object; nothing for an answer that passes."""
    gate, evaluation = report["gatekeeper_result"] or {}, report["verifier_evaluation"]
    yield from _failed([*gate.get("failures", ()), *gate.get("errors", ())])
    for fact in evaluation["facts_checked"] if evaluation is not None else ():
        if fact["is_critical"] and fact["verification"] in _LOWERS:
            said = _LOWERS[fact["verification"]]
            detail = f" ({fact['detail']})" if fact["detail"] else ""
            yield f"[{fact['claim_id'] or '-'}] {said}: {fact['fact']}{detail}"
    for cap in evaluation["caps"] if evaluation is not None else ():
        if cap["source"] == "model":
            yield f"{cap['cap']} at best by the Verifier's own word: {evaluation['rationale'][:MOST_RATIONALE_CHARS]}"
        elif cap["source"] != "gate":
            yield f"{cap['cap']} at best: {cap_told(cap)}"


def _failed(notices: list[dict[str, Any]]) -> Iterator[str]:
    by_claim: dict[str, list[dict[str, Any]]] = {}
    for notice in notices:
        by_claim.setdefault(notice["claim_id"] or "-", []).append(notice)
    for claim, found in by_claim.items():
        first, *rest = sorted(found, key=_nearness)
        also = [rule for rule in dict.fromkeys(notice["rule"] for notice in rest) if rule != first["rule"]]
        more = f"  (with it: {', '.join(also)})" if also else ""
        yield f"[{claim}] {first['rule']}: {first['message']}{more}"


def _nearness(notice: dict[str, Any]) -> int:
    return next((k for k, kind in enumerate(FIRST) if notice["rule"].startswith(kind)), len(FIRST))


def cap_told(cap: dict[str, Any]) -> str:
    """A cap in a sentence: what holds the verdict down."""
    return _CAPS.get((cap["source"], cap["reason"]), str(cap["reason"]))


def cap_lifted(cap: dict[str, Any]) -> str:
    """What would have to be different for there to be no such cap."""
    if (cap["source"], cap["reason"]) in _LIFTED:
        return _LIFTED[cap["source"], cap["reason"]]
    if cap["source"] == "model":
        return f"the Verifier's own verdict must not be worse than its facts: it was {cap['cap']}"
    return f"this must not hold: {cap['reason']}"


_LOWERS: Final = {
    "contradicted": "the evidence contradicts",
    "no_evidence": "no line shows",
    "indirect_support": "the lines support it only indirectly",
}
_CAPS: Final = {
    ("repair", "exhausted"): "the attempts to mend the answer ran out, and the last one was not accepted",
    ("repair", "not_repairable"): "the answer was not accepted, and its faults are none that another attempt mends",
    ("parse", "executor_output_malformed"): "the answer is not the JSON that the contract asks for",
    ("parse", "executor_output_truncated"): "the answer was cut off",
    ("parse", "executor_output_refused"): "the model refused to answer",
    ("parse", "executor_output_empty"): "the answer is empty",
    ("parse", "verifier_malformed"): "the Verifier gave no judgement that can be read",
    ("found", "found_bindings"): "the answer names no lines itself: they were found for it",
}
_LIFTED: Final = {
    ("repair", "exhausted"): "an attempt must be accepted: each fault above mended before the attempts run out",
    (
        "repair",
        "not_repairable",
    ): "the answer must be accepted: each of its statements bound to a line that supports it",
    ("parse", "executor_output_malformed"): "the answer must be one JSON object as the contract asks for",
    ("parse", "executor_output_truncated"): "the answer must be whole: it was cut off, so allow more tokens",
    ("parse", "executor_output_refused"): "the model must answer: it refused",
    ("parse", "executor_output_empty"): "the answer must not be empty",
    ("parse", "verifier_malformed"): "the Verifier must give a judgement that can be read",
    ("found", "found_bindings"): "the answer must name the lines itself that its statements rest on",
    ("borrowed", "no second round was recorded: the first one's answer stands"): (
        "the second round must be recorded: the case has only one"
    ),
}
