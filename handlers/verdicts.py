"""The verdict algebra: labels to score and verdict, verdict and bounds to what counts (rulings 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from streams.contract import VERDICT_ORDER, Cap, GateResult, Label, ParseStatus, Verdict

USABLE: frozenset[ParseStatus] = frozenset({"valid", "repaired_wrapper"})
TENTHS: dict[Label, int] = {"direct_evidence": 10, "indirect_support": 6, "no_evidence": 0}

BORROWED = Cap(
    source="borrowed", cap="LOW_CONFID", reason="no second round was recorded: the first one's answer stands"
)
"""The bound of a round that answers with the first round's answer (ruling 21)."""


class Labelled(Protocol):
    """All that the algebra knows of a fact."""

    @property
    def is_critical(self) -> bool: ...

    @property
    def verification(self) -> Label: ...


def score(facts: Iterable[Labelled]) -> float:
    """The groundedness score: 0 to 1, four decimals; 0.0 without a critical fact or with a contradicted one."""
    labels = _critical(facts)
    if not labels or "contradicted" in labels:
        return 0.0
    return round(sum(TENTHS[label] for label in labels) / (10 * len(labels)), 4)


def derive(facts: Iterable[Labelled]) -> Verdict:
    """The verdict that the critical facts give: from their labels, never from the score (VER-1 to VER-4, VER-6)."""
    labels = _critical(facts)
    if "contradicted" in labels:
        return "REJECT"
    if "no_evidence" in labels or "direct_evidence" not in labels:
        return "LOW_CONFID"
    return "PASS"


def worst(*verdicts: Verdict) -> Verdict:
    """The worst of them; of none, PASS."""
    return max(verdicts, key=VERDICT_ORDER.index, default="PASS")


def effective(derived: Verdict, model: Verdict | None, caps: Iterable[Cap]) -> Verdict:
    """What counts: the worst of the facts' verdict, the model's own if it gave one, and every cap (ruling 3)."""
    return worst(derived, *(() if model is None else (model,)), *(cap.cap for cap in caps))


def caps_for(
    gate: GateResult,
    repair_reason: str | None,
    parse_status: ParseStatus,
    verifier_status: Literal["valid", "malformed"],
    found: bool = False,
) -> tuple[Cap, ...]:
    """The bounds of a judgement, each with its reason; no cap where there is no bound.

    `repair_reason`: why the repair loop ended without acceptance (`exhausted`, `not_repairable`), or None.
    """
    caps: list[Cap] = []
    if gate.severity != "none":
        caps.append(Cap(source="gate", cap="REJECT" if gate.severity == "reject" else "LOW_CONFID", reason=_why(gate)))
    low: Sequence[tuple[Literal["repair", "parse", "found"], str | None]] = (
        ("repair", repair_reason),
        ("parse", None if parse_status in USABLE else f"executor_output_{parse_status}"),
        ("parse", "verifier_malformed" if verifier_status == "malformed" else None),
        ("found", "found_bindings" if found else None),
    )
    caps.extend(Cap(source=source, cap="LOW_CONFID", reason=reason) for source, reason in low if reason is not None)
    return tuple(caps)


def _critical(facts: Iterable[Labelled]) -> list[Label]:
    return [fact.verification for fact in facts if fact.is_critical]


def _why(gate: GateResult) -> str:
    rules = (*gate.failed_rules, *(f"{rule} not run" for rule in sorted({notice.rule for notice in gate.errors})))
    return ", ".join(rules) or f"severity {gate.severity}"
