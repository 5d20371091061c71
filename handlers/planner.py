"""The Planner: picks tools and queries at the start of a round. A plan is advice: a reply that is none costs nothing."""

from __future__ import annotations

from typing import Any, Final

import jiter

from handlers import flow
from handlers.agents.protocol import PlanBrief
from handlers.replies import unwrapped
from streams.envelope import Draft, Event
from streams.events import PlanMade, PlannedStep, QuestionAsked, RoundRouted, TurnFailed
from streams.session import SessionState, Turn

ROLE: Final = "planner"


def decide(state: SessionState, trigger: Event, given: flow.Given) -> flow.Step:
    """A plan for the round that `trigger` opens."""
    turn = state.turn(trigger.turn)
    number = _opens(trigger)
    if number is None or turn.round(number).plan is not None:
        return []
    context = flow.retry_context(turn) if number > 1 else None
    if flow.external(turn):
        return _foreign(turn, trigger, number, context)
    replied = turn.round(number).replies_of(ROLE)
    if given.missing is not None:
        return _without(trigger, number, given.missing, context)
    if not replied:
        brief = PlanBrief(
            question=turn.question.question,
            lang=turn.question.lang,
            round=number,
            tools=given.tools,
            nonce=turn.asked.hash[:16],
            deadline_s=turn.question.deadline_s,
            retry_context=context,
        )
        return flow.Ask(ROLE, brief, "first", number, 0, 0)
    plan = read_plan(flow.replies(replied)[-1].text, context)
    return [Draft(plan, ROLE, trigger.turn, number, cause=replied[-1].id)]


def _opens(trigger: Event) -> int | None:
    data = trigger.data
    if isinstance(data, QuestionAsked):
        return 1 if data.owner == "ours" else None
    if isinstance(data, RoundRouted) and data.route == "extra_round":
        return trigger.round + 1
    return None


def _foreign(turn: Turn, trigger: Event, number: int, context: dict[str, Any] | None) -> flow.Step:
    """A foreign agent may answer again in the second round; if it has not in its time, the round borrows (ruling 21)."""
    if turn.round(number).attempts:
        return []
    note = "the foreign agent gave no second round: it borrows the first"
    plan = PlanMade(note=note, borrowed=True, retry_context=context)
    drafts = [Draft(plan, ROLE, trigger.turn, number, cause=trigger.id)]
    wait_s = turn.question.options.external_repair_wait_s
    return flow.Wait(trigger, wait_s, drafts) if wait_s > 0 else drafts


def _without(trigger: Event, number: int, missing: flow.Missing, context: dict[str, Any] | None) -> list[Draft]:
    if missing.why == "failed":
        failed = TurnFailed(reason="agent_failed", detail=f"planner: {missing.detail}")
        return [Draft(failed, ROLE, trigger.turn, number, cause=trigger.id)]
    borrowed = missing.why == "exhausted_round"
    note = "the script has no such round: it borrows the first" if borrowed else "no plan was given"
    plan = PlanMade(note=note, borrowed=borrowed, retry_context=context)
    return [Draft(plan, ROLE, trigger.turn, number, cause=trigger.id)]


def read_plan(text: str, context: dict[str, Any] | None = None) -> PlanMade:
    """The plan in a reply's text, out of its think block and fence; a text that is none gives a plan without steps,
    and its note says so."""
    try:
        raw = jiter.from_json(unwrapped(text)[0].encode(), catch_duplicate_keys=True, allow_inf_nan=False)
        steps = tuple(
            PlannedStep(
                tool_name=str(step["tool_name"]),
                arguments=dict(step.get("arguments") or {}),
                why=str(step.get("why", "")),
            )
            for step in raw.get("steps", ())
        )
        tools = tuple(dict.fromkeys(step.tool_name for step in steps))
        return PlanMade(
            steps=steps,
            planned_tools=tools,
            narrow=raw.get("narrow") is True,
            note=str(raw.get("note", "")),
            retry_context=context,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # The types of Python say nothing to the people who read this: only a parser's words do.
        note = f"the reply was no plan{f': {str(error)[:200]}' if type(error) is ValueError else ''}"
        return PlanMade(note=note, retry_context=context)
