"""Whole turns: the recorded answers on the real tools, and the same answer by the `openai` agents over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.agents.capability import Profile
from handlers.agents.openai import OpenAIAgents, OpenAISettings
from handlers.case import read_case
from handlers.demo.incident import Incident, generate
from handlers.demo.runs import ORDER, QUESTION, announced, scripts
from streams.contract import ToolCall
from streams.events import AgentReplied, QuestionAsked, Sources
from streams.session import SessionState
from tests.play import Stage, question_of
from tests.stub_openai import Answer, StubOpenAI, call, completion, error

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Incident:
    return generate(tmp_path_factory.mktemp("incident"))


def sources(incident: Incident) -> Sources:
    return Sources(logs=(str(incident.logs),), metrics=(str(incident.metrics),), runbooks=(str(incident.runbooks),))


def routes(state: SessionState) -> list[str | None]:
    return [rnd.routed.route if rnd.routed else None for rnd in state.turns[-1].rounds]


@pytest.mark.parametrize("name", ORDER)
async def test_every_recorded_answer_ends_as_announced(name: str, incident: Incident) -> None:
    stage = Stage()
    await stage.ask(await question_of(stage, read_case(scripts()[name]), sources(incident)))
    state = await stage.run()
    told, last = announced()[name], state.turns[-1].rounds[-1]
    assert last.verification is not None
    assert last.verification.evaluation.effective_verdict == told.verdict
    assert routes(state) == list(told.route)
    recorded = [said for note in last.verification.evaluation.fact_notes for said in note.recorded]
    assert recorded == []


async def test_the_tampered_answer_is_rejected_by_the_gate_over_the_models_pass(incident: Incident) -> None:
    stage = Stage()
    await stage.ask(await question_of(stage, read_case(scripts()["tampered"]), sources(incident)))
    [rnd] = (await stage.run()).turns[-1].rounds
    assert [a.gate.result.severity for a in rnd.attempts if a.gate] == ["reject"] * 3
    assert rnd.verification is not None
    judged = rnd.verification.evaluation
    assert (judged.derived_verdict, judged.model_verdict) == ("PASS", "PASS")
    assert "evidence.excerpt_mismatch" in judged.gatekeeper_result.failed_rules


# --- the same over HTTP ---


class Model:
    """A model that plays the recorded good answer, with the habits that `first` gives to its first tool reply."""

    def __init__(self, first: list[dict[str, Any]] | None = None) -> None:
        self.script = scripts()["good"]["rounds"][0]
        calls = self.script["tool_calls"]
        self.steps = [first] if first else []
        self.steps.append([call(c["name"], json.dumps(c["arguments"]), "call_0") for c in calls])

    def __call__(self, request: dict[str, Any]) -> Answer:
        prompt = request["messages"][0]["content"]
        if prompt.startswith("# Planner"):
            return completion(json.dumps(self.script["plan"]))
        if prompt.startswith("# Verifier"):
            return completion(json.dumps(self.script["verifier_output"]))
        if self.steps:
            return completion(None, "tool_calls", self.steps.pop(0))
        return completion(json.dumps(self.script["executor_output"]))


async def over_http(
    incident: Incident, *answers: Any, known: dict[tuple[str, str], Profile] | None = None
) -> tuple[SessionState, StubOpenAI]:
    known = {} if known is None else known
    async with StubOpenAI(*answers) as stub:
        agents = OpenAIAgents(OpenAISettings(base_url=stub.base_url, model="stub-1", backoff_s=0.01), known=known)
        stage = Stage(lambda: agents)
        await stage.ask(QuestionAsked(question=QUESTION, lang="en", agents="openai", sources=sources(incident)))
        state = await stage.run()
        await agents.aclose()
    return state, stub


def replies(state: SessionState) -> list[AgentReplied]:
    return [event.data for event in state.events if isinstance(event.data, AgentReplied)]


async def test_a_turn_over_http_ends_in_its_verdict_with_every_prompt_known(incident: Incident) -> None:
    state, stub = await over_http(incident, Model())
    last = state.turns[-1].rounds[-1]
    assert last.verification is not None
    assert last.verification.evaluation.effective_verdict == "PASS"
    assert routes(state) == ["answer"]
    told = replies(state)
    assert [reply.role for reply in told] == ["planner", "executor", "executor", "verifier"]
    assert all(reply.prompt_sha256 and reply.usage and reply.latency_ms > 0 for reply in told)
    assert len(stub.requests) == 4
    assert [i.invocation_id for i in state.invocations] == ["101", "102", "103", "104", "105", "106"]


async def test_an_identical_call_is_refused_and_the_model_is_told_where_the_result_stands(incident: Incident) -> None:
    model = Model()
    again = model.steps[0][0]
    model.steps.append([again])
    state, stub = await over_http(incident, model)
    assert [(i.invocation_id, i.status) for i in state.invocations][-1] == ("107", "error")
    assert "stands under invocation 101" in stub.requests[3]["messages"][-1]["content"]
    assert routes(state) == ["answer"]


async def test_malformed_arguments_are_told_while_their_siblings_run(incident: Incident) -> None:
    runbook = call("lookup_knowledge", '{"query": "connection pool"}')
    state, stub = await over_http(incident, Model([call("query_logs", '{"terms": ["x"'), runbook]))
    assert [(i.invocation_id, i.status) for i in state.invocations][:2] == [("101", "error"), ("102", "success")]
    told = [m["content"] for m in stub.requests[2]["messages"] if m["role"] == "tool"]
    assert "not a JSON object" in told[0]
    assert "RB-014" in told[1]
    [first] = [reply for reply in replies(state) if reply.ordinal == 0 and reply.role == "executor"]
    assert first.tool_calls[0] == ToolCall(
        call_id="101", name="query_logs", arguments=None, arguments_text='{"terms": ["x"'
    )


async def test_an_endpoint_that_is_down_ends_the_turn_with_its_reason(incident: Incident) -> None:
    state, _ = await over_http(incident, Answer(b"<html>", 200, content_type="text/html"))
    turn = state.turns[-1]
    assert turn.answer is not None
    assert (turn.answer.kind, turn.answer.fallback_reason) == ("degraded", "agent_failed")
    assert turn.failed is not None
    assert "text/html" in turn.failed.detail


# --- where the server lets no model call a tool ---


class Toolless(Model):
    """The same on a server without tools; its plan is `plan`, or the recorded calls."""

    def __init__(self, plan: dict[str, Any] | None = None) -> None:
        super().__init__()
        steps = [{"tool_name": c["name"], "arguments": c["arguments"]} for c in self.script["tool_calls"]]
        self.plan = {"steps": steps} if plan is None else plan
        self.steps = []

    def __call__(self, request: dict[str, Any]) -> Answer:
        if "tools" in request:
            return error(400, "stub-1 does not support tools")
        if request["messages"][0]["content"].startswith("# Planner"):
            return completion(json.dumps(self.plan))
        return super().__call__(request)


async def test_without_tools_the_plans_calls_carry_the_same_answer_to_the_same_verdict(incident: Incident) -> None:
    state, stub = await over_http(incident, Toolless())
    assert routes(state) == ["answer"]
    assert [i.invocation_id for i in state.invocations] == ["101", "102", "103", "104", "105", "106"]
    told = [reply for reply in replies(state) if reply.role == "executor"]
    assert [reply.details and reply.details["tool_level"] for reply in told] == ["plan", "plan"]
    assert ["tools" in request for request in stub.requests] == [False, True, False, False]
    shown = stub.requests[2]["messages"][0]["content"]
    assert all(f"invocation={i.invocation_id}" in shown for i in state.invocations)


@pytest.mark.parametrize("plan", [{"steps": []}, {"steps": [{"tool_name": "search_the_web"}]}])
async def test_without_tools_and_without_a_plan_evidence_is_gathered_by_the_questions_words(
    incident: Incident, plan: dict[str, Any]
) -> None:
    state, _ = await over_http(incident, Toolless(plan))
    made = next(reply for reply in replies(state) if reply.role == "executor").tool_calls
    assert {call.name for call in made} == {"query_logs", "query_metrics", "lookup_knowledge"}
    assert {i.invocation_id for i in state.invocations} >= {call.call_id for call in made}
    assert any(i.status == "success" for i in state.invocations)
    assert state.turns[-1].failed is None


class Forgetting(dict[tuple[str, str], Profile]):
    """What is known to one process after another, each of which makes one request."""

    def __setitem__(self, key: tuple[str, str], value: Profile) -> None:
        pass


async def test_processes_that_take_over_find_out_anew_and_make_no_call_twice(incident: Incident) -> None:
    state, stub = await over_http(incident, Toolless(), known=Forgetting())
    assert ["tools" in request for request in stub.requests] == [False, True, True, False, False]
    assert len(state.invocations) == 6
    assert routes(state) == ["answer"]


# --- a contract where a call should be ---


@pytest.mark.parametrize("name", ["executor_evidence_v2", "final_answer"])
async def test_a_contract_in_a_calls_arguments_is_told_apart_and_asked_for_in_its_place(
    incident: Incident, name: str
) -> None:
    model = Model()
    model.steps.append([call(name, json.dumps(model.script["executor_output"]))])
    state, stub = await over_http(incident, model)
    last = state.invocations[-1]
    assert (last.tool_name, last.status) == (name, "error")
    assert "there is no tool" in stub.requests[3]["messages"][-1]["content"]
    assert routes(state) == ["answer"]


async def test_a_model_that_only_ever_answers_by_such_a_call_is_asked_a_few_times_and_not_believed(
    incident: Incident,
) -> None:
    model = Model()
    contract = json.dumps(model.script["executor_output"])

    def always(request: dict[str, Any]) -> Answer:
        if request["messages"][0]["content"].startswith(("# Planner", "# Verifier")):
            return model(request)
        return completion(None, "tool_calls", [call("final_answer", contract)])

    state, _ = await over_http(incident, always)
    last = state.turns[-1].rounds[-1]
    assert last.verification is not None
    assert last.verification.evaluation.effective_verdict != "PASS"
    assert last.verification.evaluation.executor_output_parse_status == "malformed"
    for rnd in state.turns[-1].rounds:
        # Three calls of no tool, then the answer is asked for without tools, and once more.
        assert len(rnd.replies_of("executor")) == 5
