"""The Executor: gathers evidence with tools, then answers with the contract; mends its answer when asked."""

from __future__ import annotations

from typing import Final

from handlers import flow
from handlers.agents.protocol import ExecutorBrief, Repair
from handlers.evidence.protocol import ToolSpec
from handlers.replies import ParsedAnswer, parse_answer
from handlers.transcripts.prose import read_prose
from streams.contract import ToolCall
from streams.envelope import Draft, Event
from streams.events import AgentReplied, AnswerDrafted, AnswerEvaluated, PlanMade, TurnFailed
from streams.session import Attempt, Round, SessionState, Turn

ROLE: Final = "executor"


def decide(state: SessionState, trigger: Event, given: flow.Given) -> flow.Step:
    """The next step towards an answer: a tool call, a reply, or the draft."""
    turn = state.turn(trigger.turn)
    if flow.external(turn):
        return _foreign(turn, trigger)
    number = _attempt(trigger)
    if number is None:
        return []
    rnd = turn.round(trigger.round)
    if len(rnd.attempts) > number:
        return []
    mine = tuple(e for e in rnd.replies_of(ROLE) if e.attempt == number)
    if given.missing is not None:
        return _without(state, trigger, number, mine, given.missing)
    if mine:
        last = mine[-1]
        assert isinstance(last.data, AgentReplied)
        if not last.data.tool_calls:
            return _read(state, turn, trigger, number, mine, given.tools)
        calls = pending(state, last)
        if calls:
            return flow.Invoke(last, calls, trigger.round)
    return _ask(state, turn, trigger, number, given.tools, None)


def _foreign(turn: Turn, trigger: Event) -> flow.Step:
    """A foreign agent may mend its answer while it has time; the repair request stands in the log (ruling 11)."""
    data = trigger.data
    if not isinstance(data, AnswerEvaluated) or data.decision != "repair":
        return []
    last = turn.round(trigger.round).attempts[-1]
    if last.number > trigger.attempt or (last.evaluation is not None and last.evaluation.decision != "repair"):
        return []
    drafts = _exhausted(trigger, data)
    wait_s = turn.question.options.external_repair_wait_s
    return flow.Wait(trigger, wait_s, drafts) if wait_s > 0 else drafts


def _exhausted(trigger: Event, evaluated: AnswerEvaluated) -> list[Draft]:
    exhausted = AnswerEvaluated(report=evaluated.report, decision="exhausted")
    return [Draft(exhausted, ROLE, trigger.turn, trigger.round, trigger.attempt, cause=trigger.id)]


def _attempt(trigger: Event) -> int | None:
    data = trigger.data
    if isinstance(data, PlanMade):
        return None if data.borrowed else 0
    if isinstance(data, AnswerEvaluated) and data.decision == "repair":
        return trigger.attempt + 1
    return None


def pending(state: SessionState, reply: Event) -> tuple[tuple[int, ToolCall], ...]:
    """The calls of `reply` that have no event yet."""
    assert isinstance(reply.data, AgentReplied)
    done = {i.invocation_id for i in state.invocations}
    return tuple((k, call) for k, call in enumerate(reply.data.tool_calls) if call.call_id not in done)


def _ask(
    state: SessionState,
    turn: Turn,
    trigger: Event,
    number: int,
    tools: tuple[ToolSpec, ...],
    reask: str | None,
) -> flow.Ask:
    rnd = turn.round(trigger.round)
    assert rnd.plan is not None
    repair = _repair(rnd, trigger) if number > 0 else None
    brief = ExecutorBrief(
        question=turn.question.question,
        lang=turn.question.lang,
        round=trigger.round,
        attempt=number,
        plan=rnd.plan,
        tools=tools,
        nonce=turn.asked.hash[:16],
        deadline_s=turn.question.deadline_s,
        tool_budget=max(0, flow.TOOL_BUDGET - len(rnd.invocations)),
        round_invocations=rnd.invocations,
        invocations=state.invocations,
        replies=flow.replies(rnd.replies_of(ROLE)),
        reask=reask,
        repair=repair,
        retry_context=rnd.plan.retry_context,
    )
    kind: flow.AskKind = "reask" if reask is not None else "repair" if number > 0 else "first"
    return flow.Ask(ROLE, brief, kind, trigger.round, number, len(rnd.replies_of(ROLE)))


def _repair(rnd: Round, trigger: Event) -> Repair:
    assert isinstance(trigger.data, AnswerEvaluated)
    previous = _attempt_of(rnd, trigger.attempt)
    texts = [
        e.data.text for e in rnd.replies if e.id == previous.draft.reply_event and isinstance(e.data, AgentReplied)
    ]
    return Repair(trigger.data.report.repair_request, texts[0] if texts else previous.draft.raw_text)


def _attempt_of(rnd: Round, number: int) -> Attempt:
    return next(a for a in rnd.attempts if a.number == number)


def _read(
    state: SessionState,
    turn: Turn,
    trigger: Event,
    number: int,
    mine: tuple[Event, ...],
    tools: tuple[ToolSpec, ...],
) -> flow.Step:
    last = mine[-1]
    parsed = _parsed(state, turn, last)
    answers = [e for e in mine if isinstance(e.data, AgentReplied) and not e.data.tool_calls]
    if parsed.status in {"malformed", "truncated"} and len(answers) < 2:
        return _ask(state, turn, trigger, number, tools, parsed.error or parsed.status)
    return _drafted(trigger, number, last, parsed)


def _parsed(state: SessionState, turn: Turn, reply: Event) -> ParsedAnswer:
    assert isinstance(reply.data, AgentReplied)
    parsed = parse_answer(reply.data.text, reply.data.finish_reason)
    if not turn.question.options.found_bindings:
        return parsed
    return read_prose(parsed, turn.question.question, state.invocations)


def _drafted(trigger: Event, number: int, reply: Event, parsed: ParsedAnswer) -> list[Draft]:
    drafted = [_draft(answer_of(parsed, reply.id), trigger, number, reply.id)]
    if parsed.status in flow.ENDS_TURN:
        failed = TurnFailed(reason="agent_failed", detail=f"executor: the answer was {parsed.status}")
        drafted.append(_draft(failed, trigger, number, reply.id))
    return drafted


def _draft(payload: AnswerDrafted | TurnFailed | AnswerEvaluated, trigger: Event, attempt: int, cause: str) -> Draft:
    return Draft(payload, ROLE, trigger.turn, trigger.round, attempt, cause=cause)


def answer_of(parsed: ParsedAnswer, reply_event: str | None, raw_text: str = "") -> AnswerDrafted:
    """The event of a parsed answer."""
    return AnswerDrafted(
        parse_status=parsed.status,
        parse_error=parsed.error,
        reply_event=reply_event,
        raw_text=raw_text,
        structured=parsed.contract.model_dump(mode="json", exclude_none=True) if parsed.contract is not None else None,
        final_answer=parsed.final_answer,
        prose=parsed.is_prose,
        found=parsed.found,
        notices=tuple(n.model_dump(mode="json", exclude_none=True) for n in parsed.notices),
    )


def _without(
    state: SessionState, trigger: Event, number: int, mine: tuple[Event, ...], missing: flow.Missing
) -> list[Draft]:
    if missing.why == "failed":
        failed = TurnFailed(reason="agent_failed", detail=f"executor: {missing.detail}")
        return [_draft(failed, trigger, number, trigger.id)]
    if mine:
        return _drafted(trigger, number, mine[-1], _parsed(state, state.turn(trigger.turn), mine[-1]))
    if number == 0:
        failed = TurnFailed(reason="agent_failed", detail="executor: no answer was given")
        return [_draft(failed, trigger, number, trigger.id)]
    assert isinstance(trigger.data, AnswerEvaluated)
    return _exhausted(trigger, trigger.data)
