"""All roles by name, each with the event types that its consumer is fed with."""

from __future__ import annotations

from handlers import deadline, evaluator, executor, gating, planner, router, verifier
from handlers.flow import Decide, Role
from streams.topology import TRIGGERS


def _role(name: str, decide: Decide, as_of_trigger: bool) -> Role:
    return Role(name, frozenset(TRIGGERS[name]), decide, as_of_trigger)


ROLES: dict[str, Role] = {
    role.name: role
    for role in (
        _role("planner", planner.decide, False),
        _role("executor", executor.decide, False),
        _role("gatekeeper", gating.decide, True),
        _role("evaluator", evaluator.decide, True),
        _role("verifier", verifier.decide, False),
        _role("router", router.decide, True),
        _role("deadline", deadline.decide, False),
    )
}
