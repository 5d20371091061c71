"""The peers' workload as roles of ours: five steps that return the payloads of the peers' `common.py`, nothing else.

A bench-only book of roles. Each step is an event of our envelope: hashed, chained, acknowledged by the broker with the
expected position, folded into the session and delivered to the next role by the durable that real turns use. The
payloads stand under the types that this durable is filtered by; the classes exist in the bench's process alone.
What is left out is what the peers do not have either: the gate, the evaluation, the Verifier's rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handlers import flow
from handlers.deadline import decide as at_deadline
from handlers.flow import Role
from streams.envelope import Draft, Event
from streams.events import EVENTS, LATEST, AnswerGiven, ChannelWritten
from streams.session import SessionState

Output = Callable[[str, int, int], dict[str, Any]]


class Planned(ChannelWritten):
    TYPE = "plan-made"


class Executed(ChannelWritten):
    TYPE = "answer-drafted"


class Gated(ChannelWritten):
    TYPE = "gate-judged"


class Verified(ChannelWritten):
    TYPE = "facts-verified"


class Again(ChannelWritten):
    TYPE = "round-routed"


STEPS: dict[str, type[ChannelWritten]] = {
    "planner": Planned,
    "executor": Executed,
    "gatekeeper": Gated,
    "verifier": Verified,
}
TRIGGERS = {
    "planner": {"question-asked", "round-routed"},
    "executor": {"plan-made"},
    "gatekeeper": {"answer-drafted"},
    "verifier": {"gate-judged"},
    "router": {"facts-verified"},
}


def question(number: int) -> str:
    return f"why does payment-service time out? #{number}"


def book(output: Output) -> dict[str, Role]:
    """Roles by name; `output(role, session number, round from 0)` is what a role returns."""
    for step in (*STEPS.values(), Again):
        EVENTS[step.TYPE, 1] = LATEST[step.TYPE] = step

    def role(name: str) -> Role:
        def decide(state: SessionState, trigger: Event, _given: flow.Given) -> flow.Step:
            number = int(state.turn(trigger.turn).question.question.rpartition("#")[2])
            rnd = trigger.round + (trigger.type in TRIGGERS["planner"])
            stored = payload(name, output(name, number, rnd - 1))
            return [Draft(stored, name, trigger.turn, rnd, 0, trigger.id)]

        return Role(name, frozenset(TRIGGERS[name]), decide, name in {"gatekeeper", "router"})

    return {
        **{name: role(name) for name in TRIGGERS},
        "evaluator": Role("evaluator", frozenset(), at_deadline, True),
        "deadline": Role("deadline", frozenset({"question-asked"}), at_deadline, False),
    }


def payload(name: str, out: dict[str, Any]) -> ChannelWritten | AnswerGiven:
    """The event that a role's output becomes."""
    if name in STEPS:
        return STEPS[name](channel=name, value=out)
    if out["action"] == "retry":
        return Again(channel=name, value=out)
    rest = {key: value for key, value in out.items() if key != "final_text"}
    return AnswerGiven.model_validate({"kind": "answer", "text": out["final_text"], "bench": rest})
