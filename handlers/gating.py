"""The Gatekeeper's place in a turn: what it is given from the session, and when."""

from __future__ import annotations

from typing import Final

from handlers import flow
from handlers.gatekeeper import GateInput, judge
from streams.contract import Binding, Contract, Notice
from streams.envelope import Draft, Event
from streams.events import AnswerDrafted, GateJudged
from streams.session import Attempt, Round, SessionState

ROLE: Final = "gatekeeper"


def decide(state: SessionState, trigger: Event, given: flow.Given) -> flow.Step:
    """The gate's result for the attempt that `trigger` drafted."""
    assert isinstance(trigger.data, AnswerDrafted)
    turn = state.turn(trigger.turn)
    attempt = _attempt(turn.round(trigger.round), trigger.attempt)
    if attempt is None or attempt.gate is not None or attempt.draft.parse_status in flow.ENDS_TURN:
        return []
    contract = contract_of(attempt.draft)
    wanted = missing(state, contract)
    if given.found is None and (wanted.ids or wanted.records):
        return wanted
    found = given.found or flow.Found()
    gate_input = GateInput(
        question=turn.question.question,
        parse_status=attempt.draft.parse_status,
        contract=contract,
        prose=prose_of(attempt.draft, contract),
        invocations=state.invocations,
        foreign_ids=found.foreign_ids,
        resolved=found.resolved,
        notices=tuple(Notice.model_validate(n) for n in attempt.draft.notices),
    )
    return [Draft(GateJudged(result=judge(gate_input)), ROLE, trigger.turn, trigger.round, trigger.attempt, trigger.id)]


def _attempt(rnd: Round, number: int) -> Attempt | None:
    return next((a for a in rnd.attempts if a.number == number), None)


def contract_of(draft: AnswerDrafted) -> Contract | None:
    """The contract of a usable answer."""
    if not flow.usable(draft) or draft.structured is None:
        return None
    return Contract.model_validate(draft.structured)


def prose_of(draft: AnswerDrafted, contract: Contract | None) -> tuple[str, ...]:
    """The texts that a reader would take for the answer (gate.md: prose)."""
    if contract is not None:
        return tuple(t for t in (contract.user_facing_answer, contract.diagnosis_summary) if t)
    return (draft.final_answer,) if draft.prose and draft.final_answer else ()


def missing(state: SessionState, contract: Contract | None) -> flow.LookUp:
    """What the gate cannot see in the session's events: unknown ids, and paths of full outputs not shown."""
    known = {i.invocation_id: i for i in state.invocations}
    ids, records = set(), set()
    for binding in bindings_of(contract):
        for given in {binding.source_invocation_id, *(binding.source_invocation_ids or ())} - {None}:
            assert given is not None
            if given not in known:
                ids.add(given)
                continue
            call = known[given]
            if not binding.raw_path or call.output_blob is None or call.retrieval_details is None:
                continue
            shown = {ref.raw_path for ref in call.retrieval_details.evidence_refs or ()}
            if binding.raw_path not in shown:
                records.add((given, binding.raw_path))
    return flow.LookUp(frozenset(ids), frozenset(records))


def bindings_of(contract: Contract | None) -> tuple[Binding, ...]:
    """Every binding of a contract, of claims and of actions."""
    if contract is None:
        return ()
    of_claims = (binding for claim in contract.claims for binding in claim.evidence_bindings)
    of_actions = (binding for action in contract.recommended_actions for binding in action.evidence_bindings)
    return (*of_claims, *of_actions)
