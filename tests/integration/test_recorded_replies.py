"""What models reply, through the real agents, readers and roles.

In `tests/fixtures/replies` real small models, word for word, each one habit; in `tests/fixtures/turns` all that one
said, role by role, in one turn about the bundled incident. `make test-model KEEP=FOLDER` keeps such replies. In
`tests/fixtures/habits` what larger models and their servers are known to do, in words of our own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from handlers.agents.openai import OpenAIAgents, OpenAISettings
from handlers.agents.protocol import AgentReply, PlanBrief
from handlers.demo.incident import Incident, generate
from handlers.planner import read_plan
from handlers.replies import parse_answer, parse_verdict
from streams.events import PlanMade, QuestionAsked, Sources
from streams.session import SessionState
from tests.openai_case import LOGS, METRICS, NONCE, QUESTION, executor_brief, serving, verifier_brief
from tests.play import Stage
from tests.stub_openai import Answer, StubOpenAI, call, completion

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[1] / "fixtures"


def recorded(folder: str) -> dict[str, dict[str, Any]]:
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((FIXTURES / folder).glob("*.json"))
    }


REPLIES, TURNS = recorded("replies") | recorded("habits"), recorded("turns")


def answered(said: dict[str, Any]) -> Answer:
    calls = [call(made["name"], made["arguments"]) for made in said.get("tool_calls", ())]
    return completion(said["text"], said["finish_reason"], calls)


async def replied(said: dict[str, Any]) -> AgentReply:
    async with serving(answered(said)) as (agents, _):
        if said["role"] == "planner":
            return await agents.plan(PlanBrief(QUESTION, "en", 1, (LOGS, METRICS), NONCE, 20.0))
        if said["role"] == "verifier":
            return await agents.verify(verifier_brief())
        return await agents.execute(executor_brief(plan=PlanMade(), tool_budget=8 if said["tools_offered"] else 0))


def outcome(role: str, reply: AgentReply) -> dict[str, Any]:
    """What the role that reads `reply` makes of it."""
    if role == "planner":
        plan = read_plan(reply.text)
        return {"steps": [step.tool_name for step in plan.steps], "is_plan": "no plan" not in plan.note}
    if role == "verifier":
        judged = parse_verdict(reply.text, reply.finish_reason)
        return {"status": judged.status, "error": judged.error, "verdict": judged.verdict, "facts": len(judged.facts)}
    if reply.tool_calls:
        return {"calls": [[made.name, made.arguments] for made in reply.tool_calls]}
    parsed = parse_answer(reply.text, reply.finish_reason)
    claims = len(parsed.contract.claims) if parsed.contract else 0
    return {"status": parsed.status, "error": parsed.error, "claims": claims}


@pytest.mark.parametrize("name", REPLIES)
async def test_a_recorded_reply_comes_to_its_typed_outcome(name: str) -> None:
    said = REPLIES[name]
    reply = await replied(said)
    assert NONCE not in reply.text
    assert outcome(said["role"], reply) == said["outcome"]


# --- in a turn ---


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Incident:
    return generate(tmp_path_factory.mktemp("incident"))


async def played(incident: Incident, question: str, lang: str, *answers: Any) -> SessionState:
    sources = Sources(logs=(str(incident.logs),), metrics=(str(incident.metrics),))
    async with StubOpenAI(*answers) as stub:
        agents = OpenAIAgents(OpenAISettings(base_url=stub.base_url, model="stub-1"), known={})
        stage = Stage(lambda: agents)
        await stage.ask(QuestionAsked(question=question, lang=lang, agents="openai", sources=sources))
        state = await stage.run()
        await agents.aclose()
    return state


def role_of(request: dict[str, Any]) -> str:
    heading = request["messages"][0]["content"].split("\n")[0]
    return {"# Planner": "planner", "# Verifier": "verifier"}.get(heading, "executor")


class ByRole:
    """A model that says what was recorded of each role, in order, and its last again where more is asked."""

    def __init__(self, said: list[dict[str, Any]]) -> None:
        self.left = {role: [one for one in said if one["role"] == role] for role in ("planner", "executor", "verifier")}

    def __call__(self, request: dict[str, Any]) -> Answer:
        left = self.left[role_of(request)]
        return answered(left.pop(0) if len(left) > 1 else left[0])


class YesSayer:
    """A model with one recorded reply in one role, and otherwise the most willing one: it plans nothing, answers
    nothing, and finds every claim that it is shown proven by everything."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said

    def __call__(self, request: dict[str, Any]) -> Answer:
        prompt = request["messages"][0]["content"]
        role = role_of(request)
        if role == self.said["role"]:
            return answered(self.said)
        if role == "planner":
            return completion('{"narrow": false, "note": "", "steps": []}')
        if role == "executor":
            return completion('{"answer_version": "executor_evidence_v2", "diagnosis_summary": "", "claims": []}')
        claims = dict.fromkeys(re.findall(r'"claim_id": "([^"]+)"', prompt))
        refs = sorted(set(re.findall(r'"trace_ref": "([^"]+)"', prompt)))
        facts = [
            {"fact": "shown", "is_critical": True, "verification": "direct_evidence", "detail": "", "claim_id": claim}
            | {"evidence_refs": refs}
            for claim in claims
        ]
        return completion(json.dumps({"verdict": "PASS", "facts_checked": facts, "rationale": "all is shown"}))


@pytest.mark.parametrize("name", REPLIES)
async def test_no_recorded_reply_alone_makes_a_pass(name: str, incident: Incident) -> None:
    said = REPLIES[name]
    state = await played(incident, QUESTION, "en", YesSayer(said))
    turn = state.turns[-1]
    assert turn.answer is not None
    for rnd in turn.rounds:
        assert rnd.verification is None or rnd.verification.evaluation.effective_verdict != "PASS"


@pytest.mark.parametrize("name", TURNS)
async def test_what_a_model_said_in_a_turn_comes_to_its_typed_end(name: str, incident: Incident) -> None:
    told = TURNS[name]
    state = await played(incident, told["question"], told["lang"], ByRole(told["replies"]))
    assert ended(state) == told["outcome"]


def ended(state: SessionState) -> dict[str, Any]:
    """What the last turn came to."""
    turn = state.turns[-1]
    assert turn.answer is not None
    last = turn.rounds[-1]
    assert last.verification is not None
    judged = last.verification.evaluation
    return {
        "verdict": judged.effective_verdict,
        "model_verdict": judged.model_verdict,
        "verifier_parse_status": judged.verifier_parse_status,
        "parse_status": judged.executor_output_parse_status,
        "failed_rules": sorted(judged.gatekeeper_result.failed_rules),
        "answer": turn.answer.kind,
        "route": [rnd.routed.route if rnd.routed else None for rnd in turn.rounds],
        "invocations": [[i.tool_name, i.status, i.arguments] for i in state.invocations],
    }
