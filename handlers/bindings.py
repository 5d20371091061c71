"""One binding against the session: the `evidence.*` rules of gate.md, in their order and with their stops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handlers import anchors
from handlers.excerpts import Match, match
from handlers.guards import echo, evidence_part
from handlers.wording import states_failed_access
from streams.contract import SEVERITY_ORDER, Binding, BindingResult, Claim, Severity
from streams.events import ToolInvoked

SUMMARY, ERROR = "summary", "error"
LINES_LIMIT_CHARS = 2048
REJECTING_WORDS = (
    "evidence.invocation_id evidence.session_scope evidence.tool_name evidence.raw_path evidence.excerpt_missing "
    "evidence.excerpt_mismatch evidence.failed_invocation"
)
REJECTING = frozenset(REJECTING_WORDS.split())
"""All other `evidence.*` rules are low_confid."""
_WARNED = {
    "evidence.excerpt_case": "the excerpt differs from the line in capital letters only; ids may be case-sensitive",
    "evidence.ambiguous_span": "the excerpt stands in several places of that ref; all of them are kept",
    "evidence.negation_clipped": "the excerpt is cut next to a negation; the whole line is shown to the Verifier",
}


@dataclass(frozen=True, slots=True)
class Trail:
    """What the session's tools returned, as the gate looks things up in it."""

    question: str
    by_id: Mapping[str, ToolInvoked]
    foreign_ids: frozenset[str]
    resolved: Mapping[tuple[str, str], str]
    texts: Mapping[tuple[str, str], tuple[str, ...]]  # by invocation id and raw_path, in the order of the refs

    @classmethod
    def of(
        cls,
        question: str,
        invocations: Sequence[ToolInvoked],
        foreign_ids: frozenset[str],
        resolved: Mapping[tuple[str, str], str],
    ) -> Trail:
        by_id: dict[str, ToolInvoked] = {}
        for call in invocations:
            by_id.setdefault(call.invocation_id, call)
        texts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for call in by_id.values():
            for ref in (call.retrieval_details.evidence_refs if call.retrieval_details else None) or ():
                texts[call.invocation_id, ref.raw_path].append(ref.text)
        return cls(question, by_id, foreign_ids, resolved, {place: tuple(said) for place, said in texts.items()})

    @property
    def calls(self) -> tuple[ToolInvoked, ...]:
        return tuple(self.by_id.values())

    def is_knowledge(self, invocation_id: str | None) -> bool:
        call = self.by_id.get(invocation_id or "")
        return call is not None and call.evidence_kind == "knowledge"

    def bears_evidence(self, invocation_id: str) -> bool:
        return invocation_id in self.by_id and self.by_id[invocation_id].evidence_kind != "helper"

    def queries(self, invocation_id: str | None) -> tuple[str, ...]:
        """What a call was asked: its arguments and the queries it says it ran."""
        if invocation_id is None or invocation_id not in self.by_id:
            return ()
        call = self.by_id[invocation_id]
        details = call.retrieval_details
        echoed = map(echo, self.texts.get((invocation_id, SUMMARY), ()))
        return (*_leaves(call.arguments), *((details.query_samples if details else None) or ()), *echoed)


@dataclass(frozen=True, slots=True)
class Checked:
    """A binding's result, with a sentence for each rule that failed or warned, worst news first where it stopped.

    `evidence` is what the guards may read: of a binding that passed, the full line or lines; of a `summary` only
    what stands before `query=`.
    """

    result: BindingResult
    failures: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    evidence: str = ""


def check(binding: Binding, claim_id: str, index: int, claim: Claim | None, trail: Trail) -> Checked:
    """All rules for one binding. `claim` is None for an action's binding.

    Of several plural ids (v1) each must exist; the call that the rest of the binding fits best is the one checked.
    """
    path = _given(binding.raw_path)
    named = tuple(dict.fromkeys(t for t in map(_given, (binding.source_invocation_id, *_plural(binding))) if t))
    unknown = [i for i in named if i not in trail.by_id and i not in trail.foreign_ids]
    foreign = [i for i in named if i not in trail.by_id and i in trail.foreign_ids]
    base = BindingResult(
        claim_id=claim_id,
        index=index,
        status="fail",
        severity="none",
        source_invocation_id=named[0] if named else None,
        raw_path=path,
        tool_name=_given(binding.tool_name),
    )
    if unknown:
        message = f"no tool call of this session has the id {_shown(unknown[0])}: bind a call that was made"
        return _stopped(base, unknown[0], "evidence.invocation_id", message)
    if foreign:
        message = f"the call {_shown(foreign[0])} belongs to another session, whose text counts for nothing here: bind a call of this session"
        return _stopped(base, foreign[0], "evidence.session_scope", message)
    warnings: list[tuple[str, str]] = []
    wanted = named if _given(binding.source_invocation_id) is None else named[:1]
    if not wanted:
        fitting = [c.invocation_id for c in trail.calls if c.tool_name == _given(binding.tool_name)]
        if len(fitting) != 1:
            why = (
                f"{len(fitting)} calls of {_shown(base.tool_name)} fit" if base.tool_name else "it names no tool either"
            )
            return _stopped(
                base, None, "evidence.invocation_id_missing", f"the binding has no source_invocation_id, and {why}"
            )
        wanted = (fitting[0],)
        message = f"source_invocation_id was absent: filled in with {_shown(fitting[0])}, the only call of {_shown(base.tool_name)}"
        warnings.append(("evidence.backfilled_invocation_id", message))
    elif _given(binding.source_invocation_id) is None and len(named) == 1:
        warnings.append(
            ("contract.plural_id", f"source_invocation_ids [{_shown(named[0])}] is read as source_invocation_id")
        )
    tried = [_against(binding, path, trail.by_id[i], claim, trail, base, warnings) for i in wanted]
    return min(tried, key=lambda checked: SEVERITY_ORDER.index(checked.result.severity))


def _against(
    binding: Binding,
    path: str | None,
    call: ToolInvoked,
    claim: Claim | None,
    trail: Trail,
    base: BindingResult,
    warned: Sequence[tuple[str, str]],
) -> Checked:
    failures = [*_tool_rules(base.tool_name, call)]
    place, texts = _place(path, call, trail)
    failures += place
    hit: Match | None = None
    evidence = ""
    if texts:
        assert path is not None
        hit, text = min(
            ((match(binding.evidence_excerpt, text), text) for text in texts), key=lambda tried: _weight(tried[0])
        )
        failures += _excerpt_rules(hit, call, path)
        evidence = evidence_part(path, text)[:LINES_LIMIT_CHARS] if path == SUMMARY else hit.lines or ""
    failures += _scope_rules(call, path if texts else None, claim, trail)
    warnings = [*warned, *((w, _WARNED.get(w, w)) for w in (hit.warnings if hit else ()))]
    severity: Severity = "none"
    for rule, _ in failures:
        severity = max(severity, _severity(rule), key=SEVERITY_ORDER.index)
    result = base.model_copy(
        update={
            "status": "fail" if failures else "pass",
            "severity": severity,
            "failed_rules": tuple(sorted({rule for rule, _ in failures})),
            "warnings": tuple(rule for rule, _ in warnings),
            "source_invocation_id": call.invocation_id,
            **(_found(hit) if hit else {}),
        }
    )
    return Checked(result, tuple(failures), tuple(warnings), "" if failures else evidence)


def _tool_rules(tool_name: str | None, call: ToolInvoked) -> list[tuple[str, str]]:
    if tool_name is None:
        return [
            (
                "evidence.tool_name_missing",
                f"the binding names no tool: {call.invocation_id} was a call of {call.tool_name}",
            )
        ]
    if tool_name != call.tool_name:
        message = f"{call.invocation_id} was a call of {call.tool_name}, not of {_shown(tool_name)}"
        return [("evidence.tool_name", message)]
    return []


def _place(path: str | None, call: ToolInvoked, trail: Trail) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """What is wrong with the path, and the texts that stand under it. The same path may stand there more than once:
    any of its texts may hold the excerpt. An error text of a call without refs is quotable as `error`."""
    refs = call.retrieval_details.evidence_refs if call.retrieval_details else None
    failures: list[tuple[str, str]] = []
    if path is None:
        failures.append(
            (
                "evidence.raw_path_missing",
                f"the binding has no raw_path: say which record of {call.invocation_id} it quotes",
            )
        )
    if path == ERROR and not refs and call.error:
        return failures, (call.error,)
    if refs is None:
        failures.append(
            (
                "evidence.refs_missing",
                f"{call.invocation_id} was recorded without evidence_refs: nothing of it can be checked",
            )
        )
    if path is None or refs is None:
        return failures, ()
    texts = trail.texts.get((call.invocation_id, path), ())
    if not texts and (call.invocation_id, path) in trail.resolved:
        texts = (trail.resolved[call.invocation_id, path],)
    if not texts:
        there = ", ".join(ref.raw_path for ref in refs[:3]) or "none"
        message = f"{call.invocation_id} has no record {_shown(path)}: its records are {there}{', ...' if len(refs) > 3 else ''}"
        failures.append(("evidence.raw_path", message))
    return failures, texts


def _excerpt_rules(hit: Match, call: ToolInvoked, path: str) -> list[tuple[str, str]]:
    where = f"record {_shown(path)} of {call.invocation_id}"
    sentences = {
        "evidence.excerpt_missing": f"the binding has no excerpt: quote the line of {where}",
        "evidence.excerpt_mismatch": f"the excerpt is not in {where}{_nearest(hit)}",
        "evidence.excerpt_paraphrase": f"the excerpt has the words of {where}, but is not its text: copy the line as it stands",
        "evidence.excerpt_stitched": f"the excerpt joins parts of different lines of {where}: bind each line by itself",
        "evidence.too_large": f"the excerpt (limit 2,000 characters) or {where} (limit 256 KiB) is too large to be checked: quote less",
    }
    if hit.rule is not None:
        return [(hit.rule, sentences[hit.rule])]
    if hit.trivial:
        return [("evidence.excerpt_trivial", f"the excerpt carries no information: quote the whole line of {where}")]
    return []


def _nearest(hit: Match) -> str:
    near = hit.nearest_miss
    return (
        f"; the nearest text there is {_shown(near.text)} (differs in a {near.difference})"
        if near
        else ": copy the line as it stands"
    )


def _scope_rules(call: ToolInvoked, path: str | None, claim: Claim | None, trail: Trail) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    negative = claim is not None and claim.claim_type == "negative_observation"
    if call.status == "error" and not (claim is not None and _about_failure(claim, call, trail)):
        what = "that something is absent" if negative else "anything but an observation of that very failure"
        found.append(("evidence.failed_invocation", f"{call.invocation_id} failed: it cannot support {what}"))
    if path == SUMMARY and not negative:
        message = f"the summary of {call.invocation_id} says how much was found, not what: bind a record, or claim a negative_observation"
        found.append(("evidence.summary_scope", message))
    if call.evidence_kind == "helper":
        found.append(
            (
                "evidence.helper_invocation",
                f"{call.tool_name} is a helper and bears no evidence: bind a call that looked at the incident",
            )
        )
    return found


def _about_failure(claim: Claim, call: ToolInvoked, trail: Trail) -> bool:
    """gate.md, under the table: an observation that states a failed access, whose numbers and identifiers stand in the
    error text (`error`, or what the failed call returned as refs), the arguments or the question."""
    if claim.claim_type != "observation" or not states_failed_access(claim.claim_text):
        return False
    details = call.retrieval_details
    texts = [call.error or "", *(ref.text for ref in (details.evidence_refs if details else None) or ())]
    texts += [*_leaves(call.arguments), call.tool_name, trail.question]
    haystack = anchors.joined(texts)
    return all(
        anchors.stands_in(i, haystack) for i in anchors.identifiers(claim.claim_text)
    ) and not anchors.absent_quantities(anchors.quantities(claim.claim_text), texts)


def _stopped(base: BindingResult, invocation_id: str | None, rule: str, message: str) -> Checked:
    result = base.model_copy(
        update={"severity": _severity(rule), "failed_rules": (rule,), "source_invocation_id": invocation_id}
    )
    return Checked(result, ((rule, message),))


def _severity(rule: str) -> Severity:
    return "reject" if rule in REJECTING else "low_confid"


def _weight(hit: Match) -> int:
    if hit.rule is None:
        return 1 if hit.trivial else 0
    return 1 + SEVERITY_ORDER.index(_severity(hit.rule))


def _found(hit: Match) -> dict[str, Any]:
    names = ("tier", "start", "end", "text", "lines", "spans", "ref_sha256", "nearest_miss")
    return {name: getattr(hit, name) for name in names}


def _given(text: str | None) -> str | None:
    """A blank string is as good as none."""
    return text if text is not None and text.strip() else None


def _plural(binding: Binding) -> tuple[str, ...]:
    return binding.source_invocation_ids or ()


def _leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in a call's arguments, as text."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield str(value)


def _shown(text: str | None) -> str:
    """A model's or source's text inside a sentence: one line, short."""
    flat = " ".join((text or "").split())
    return f'"{flat[:120]}..."' if len(flat) > 120 else f'"{flat}"'
