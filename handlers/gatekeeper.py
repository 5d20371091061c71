"""The Gatekeeper: every binding of an answer against what this session's tools returned. Deterministic and pure.

The rules, their order and their stops are the table of gate.md; `handlers.bindings` has those of one binding,
`handlers.guards` those of claims and prose; here they are put together into one result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from handlers import anchors, guards, unbound
from handlers.bindings import Checked, Trail, check
from handlers.guards import Finding, Session
from streams.contract import (
    SEVERITY_ORDER,
    Binding,
    BindingResult,
    Claim,
    Contract,
    GateResult,
    Notice,
    ParseStatus,
    Severity,
)
from streams.events import ToolInvoked

USABLE: frozenset[ParseStatus] = frozenset({"valid", "repaired_wrapper"})


@dataclass(frozen=True, slots=True)
class GateInput:
    """All that the gate may see. `invocations` are the session's, of every round; an id that stands there twice means
    the first (what was recorded cannot be replaced by a later event).

    `contract` is None unless the parse status is `valid` or `repaired_wrapper`. `prose` is `user_facing_answer` and
    `diagnosis_summary`, or a malformed answer's text where that is prose (EXE-3). `foreign_ids` are ids which the
    look-up found in other sessions: ids only, never text. `resolved` has the text of records of a full output that
    were not shown, by invocation id and raw_path. `notices` are the parser's `contract.*` warnings.
    """

    question: str
    parse_status: ParseStatus
    contract: Contract | None
    prose: tuple[str, ...] = ()
    invocations: tuple[ToolInvoked, ...] = ()
    foreign_ids: frozenset[str] = frozenset()
    resolved: Mapping[tuple[str, str], str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def evidence_texts(invocations: Sequence[ToolInvoked]) -> tuple[str, ...]:
    """What counts as evidence text of a session (VER-5): the texts of its refs, of a `summary` what stands before
    `query=` (ruling 7), and the error text of a call without refs, which is quotable as `error`.

    Arguments and echoed queries are not; helpers (the time, formatting) bear no evidence.
    """
    texts: list[str] = []
    for call in invocations:
        if call.evidence_kind == "helper":
            continue
        refs = call.retrieval_details.evidence_refs if call.retrieval_details else None
        texts += [guards.evidence_part(ref.raw_path, ref.text) for ref in refs or ()]
        if not refs and call.error:
            texts.append(call.error)
    return tuple(text for text in texts if text.strip())


def judge(given: GateInput) -> GateResult:
    """The gate's result. Never raises; a fault in the input only ever makes the severity worse."""
    contract = given.contract if given.parse_status in USABLE else None
    trail = Trail.of(given.question, given.invocations, given.foreign_ids, given.resolved)
    ledger = _Ledger(list(given.notices))
    session = _session(given, trail)
    denied: set[str] = set()
    confirmed: list[str] = []
    for claim in contract.claims if contract else ():
        results = _bindings(claim.claim_id, claim.evidence_bindings, claim, trail, ledger)
        queries = [text for r in results for text in trail.queries(r.result.source_invocation_id)]
        denied |= guards.denials(claim, given.question, queries).keys
        if _confirmed(claim, results, trail, session, ledger):
            confirmed.append(claim.claim_id)
            lines = [r.evidence for r in results if r.result.status == "pass" and r.evidence]
            ledger.findings(claim.claim_id, guards.claim_findings(claim, lines, session, queries))
    for index, action in enumerate(contract.recommended_actions if contract else ()):
        _bindings(f"action-{index}", action.evidence_bindings, None, trail, ledger)
    if not confirmed:
        message = "no confirmed claim is left: nothing in the answer is bound to evidence of the incident"
        ledger.failed("claim.none_confirmed", None, "low_confid", message)
    _answer(given.prose, contract, session, frozenset(denied), ledger)
    return ledger.result(tuple(dict.fromkeys(confirmed)))


def _session(given: GateInput, trail: Trail) -> Session:
    texts = [
        *evidence_texts(trail.calls),
        *(t for (call, _), t in given.resolved.items() if trail.bears_evidence(call)),
    ]
    tools = frozenset(call.tool_name for call in trail.calls)
    return Session(given.question, anchors.joined(texts) if texts else None, tools, tuple(dict.fromkeys(texts)))


def _bindings(
    claim_id: str, bindings: Sequence[Binding], claim: Claim | None, trail: Trail, ledger: _Ledger
) -> list[Checked]:
    """The results of a claim's or an action's (`claim` is None) bindings, entered in the ledger."""
    results = [check(binding, claim_id, index, claim, trail) for index, binding in enumerate(bindings)]
    for checked in results:
        ledger.binding(checked)
    return results


def _confirmed(claim: Claim, results: Sequence[Checked], trail: Trail, session: Session, ledger: _Ledger) -> bool:
    """Whether the claim stays confirmed: it says so, has a binding, and does not rest on knowledge alone (EXE-4, EXE-8)."""
    if claim.support_level == "none":
        return False
    if not results:
        counts = "the claim says that it is supported and binds no line: it counts as a hypothesis"
        message = "; ".join(filter(None, (counts, unbound.told(claim, session))))
        ledger.failed("claim.no_binding", claim.claim_id, "low_confid", message)
        return False
    passing = [r.result.source_invocation_id for r in results if r.result.status == "pass"]
    if passing and all(trail.is_knowledge(call) for call in passing):
        message = "all that supports the claim is knowledge (runbook, skill, past case): it is a hypothesis about this incident"
        ledger.failed("claim.knowledge_only", claim.claim_id, "low_confid", message)
        return False
    return True


def _answer(
    prose: Sequence[str], contract: Contract | None, session: Session, denied: frozenset[str], ledger: _Ledger
) -> None:
    rule = "answer.identifier_absent"
    if not any(text.strip() for text in prose):
        return
    if session.evidence is None:
        message = "whether the answer names something invented could not be checked: the session has no evidence text"
        ledger.not_run(rule, None, message)
        return
    if sum(map(len, prose)) > guards.PROSE_LIMIT_CHARS:
        limit = f"{guards.PROSE_LIMIT_CHARS:,} characters"
        message = f"whether the answer names something invented could not be checked: it is longer than {limit}"
        ledger.not_run(rule, None, message)
        return
    absent = guards.absent_from_answer(prose, session, contract, denied)
    ledger.findings(None, tuple(guards.answer_finding(identifier) for identifier in absent))


class _Ledger:
    """What fired so far, in order."""

    def __init__(self, warnings: list[Notice]) -> None:
        self._checked: list[BindingResult] = []
        self._failures: list[Notice] = []
        self._warnings = warnings
        self._errors: list[Notice] = []
        self._claim_rules: dict[str, list[str]] = {}
        self._worst: Severity = "none"

    def failed(self, rule: str, claim_id: str | None, severity: Severity, message: str) -> None:
        self._raise_to(severity)
        self._failures.append(Notice(rule=rule, claim_id=claim_id, message=message, severity=severity))
        self._note(rule, claim_id)

    def not_run(self, rule: str, claim_id: str | None, message: str) -> None:
        self._raise_to("low_confid")
        self._errors.append(Notice(rule=rule, claim_id=claim_id, message=message))

    def findings(self, claim_id: str | None, found: Sequence[Finding]) -> None:
        for finding in found:
            if finding.not_run:
                self.not_run(finding.rule, claim_id, finding.message)
            elif finding.severity == "none":
                self._warn(finding.rule, claim_id, finding.message)
                self._note(finding.rule, claim_id)
            else:
                self.failed(finding.rule, claim_id, finding.severity, finding.message)

    def binding(self, checked: Checked) -> None:
        claim_id = checked.result.claim_id
        self._checked.append(checked.result)
        self._raise_to(checked.result.severity)
        for rule, message in checked.failures:
            self._failures.append(Notice(rule=rule, claim_id=claim_id, message=message))
        for rule, message in checked.warnings:
            self._warn(rule, claim_id, message)

    def result(self, confirmed: tuple[str, ...]) -> GateResult:
        return GateResult(
            status="pass" if self._worst == "none" else "fail",
            severity=self._worst,
            checked_bindings=tuple(self._checked),
            failed_rules=tuple(sorted({failure.rule for failure in self._failures})),
            warnings=tuple(self._warnings),
            errors=tuple(self._errors),
            failures=tuple(self._failures),
            claim_rules={claim: tuple(dict.fromkeys(rules)) for claim, rules in self._claim_rules.items()},
            confirmed_claims=confirmed,
        )

    def _warn(self, rule: str, claim_id: str | None, message: str) -> None:
        self._warnings.append(Notice(rule=rule, claim_id=claim_id, message=message))

    def _note(self, rule: str, claim_id: str | None) -> None:
        if claim_id is not None and rule.startswith("claim."):
            self._claim_rules.setdefault(claim_id, []).append(rule)

    def _raise_to(self, severity: Severity) -> None:
        self._worst = max(self._worst, severity, key=SEVERITY_ORDER.index)
