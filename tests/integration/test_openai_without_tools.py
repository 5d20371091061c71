"""The `openai` Executor where the server lets no model call a tool: the plan's calls are made instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from handlers.agents.capability import Profile
from handlers.agents.protocol import AgentFailed, Repair
from streams.contract import ToolCall
from streams.events import PlanMade, PlannedStep
from tests.openai_case import LINE, NONCE, asked, executor_brief, invoked, sent_text, serving, verifier_brief
from tests.stub_openai import Answer, call, completion, error

pytestmark = pytest.mark.anyio

LACK = "stub-1 does not support tools"
PLAN = PlanMade(
    steps=(
        PlannedStep(tool_name="query_logs", arguments={"terms": ["timed out"]}),
        PlannedStep(tool_name="search_the_web", arguments={"query": "HikariCP"}),
        PlannedStep(tool_name="query_metrics", arguments={"metric": "hikaricp_connections_active"}),
    )
)


def toolless(message: str = LACK, status: int = 400) -> Callable[[dict[str, Any]], Answer]:
    return lambda request: error(status, message) if "tools" in request else completion("{}")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, LACK),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (500, "Unsupported param: tools"),
        (404, "No endpoints found that support tool use. Try disabling one of them."),
        (404, "No endpoints found that support the provided 'tool_choice' value."),
        (400, "tools is not supported in this model. For a list of supported models, refer to the guide."),
        (400, "stub-1 does not support Function Calling"),
        (405, "Tool calling is not supported for model: stub-1"),
        (400, "Function calling is not enabled for this model"),
        (400, "This model doesn't support tool use."),
        (400, "UnsupportedParamsError: this provider does not support parameters: ['tools'], for model=stub-1"),
        (422, "[{'type': 'extra_forbidden', 'loc': ['body', 'tools'], 'msg': 'Extra inputs are not permitted'}]"),
        (400, "Unrecognized request argument supplied: tools"),
        (501, "Not implemented: tools"),
        (400, "该模型不支持工具调用"),
    ],
)
async def test_a_server_that_knows_no_tools_is_told_by_its_words_and_asked_once(status: int, message: str) -> None:
    async with serving(toolless(message, status)) as (agents, stub):
        reply = await agents.execute(executor_brief(plan=PLAN))
        assert len(stub.requests) == 1
        assert reply.details is not None
        assert message[:40] in reply.details["tools_refused"]
        again = await agents.execute(executor_brief(plan=PLAN))
        assert len(stub.requests) == 1
    assert reply.tool_calls == again.tool_calls
    assert again.details is not None
    assert "tools_refused" not in again.details


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens; 900 of them are not available: tools"),
        (404, "The model `stub-1` does not exist; tools are unavailable"),
        (400, "Invalid schema for function 'query_logs': 'oneOf' is not permitted; param tools[0].function"),
        (400, "Invalid 'tools[0].function.name': it matches no pattern"),
        (401, "tools are not allowed for this key"),
        (400, "something else is not supported"),
    ],
)
async def test_a_refusal_for_another_reason_stays_a_failure(status: int, message: str) -> None:
    known: dict[tuple[str, str], Profile] = {}
    async with serving(toolless(message, status), known=known) as (agents, stub):
        with pytest.raises(AgentFailed, match=str(status)):
            await agents.execute(executor_brief(plan=PLAN))
        assert len(stub.requests) == 1
    assert all(profile.tools for profile in known.values())


async def test_the_plans_calls_of_tools_that_there_are_are_made_with_the_level_told() -> None:
    async with serving(toolless()) as (agents, _):
        reply = await agents.execute(executor_brief(plan=PLAN))
    assert reply.tool_calls == (
        ToolCall(call_id="101", name="query_logs", arguments={"terms": ["timed out"]}),
        ToolCall(call_id="102", name="query_metrics", arguments={"metric": "hikaricp_connections_active"}),
    )
    # No model said it, and no prompt led to it.
    assert (reply.text, reply.finish_reason, reply.model, reply.prompt_sha256) == ("", "tool_calls", "offline", None)
    assert reply.details is not None
    assert (reply.details["tool_level"], reply.details["calls_of_plan"]) == ("plan", 2)


@pytest.mark.parametrize("plan", [PlanMade(), PlanMade(steps=PLAN.steps[1:2])])
async def test_a_plan_that_names_no_call_is_replaced_by_the_questions_words(plan: PlanMade) -> None:
    async with serving(toolless()) as (agents, _):
        reply = await agents.execute(executor_brief(plan=plan))
    first = reply.tool_calls[0]
    assert first.name == "query_logs"
    assert first.arguments is not None
    assert "timed out" in first.arguments["terms"]
    assert {made.name for made in reply.tool_calls} == {"query_logs", "query_metrics"}


async def test_the_plans_calls_keep_to_the_budget_and_have_no_twins() -> None:
    twice = PlanMade(steps=PLAN.steps[:1] * 2 + PLAN.steps[2:] * 3)
    async with serving(toolless()) as (agents, _):
        bounded = await agents.execute(executor_brief(plan=twice, tool_budget=1))
        whole = await agents.execute(executor_brief(plan=twice))
        none = await agents.execute(executor_brief(plan=twice, tool_budget=0))
    assert [len(reply.tool_calls) for reply in (bounded, whole, none)] == [1, 2, 0]


async def test_what_the_calls_found_is_shown_and_the_contract_is_asked_for() -> None:
    found = invoked("101", LINE)
    brief = executor_brief(plan=PLAN, replies=(asked("101"),), invocations=(found,), round_invocations=(found,))
    async with serving(toolless()) as (agents, stub):
        reply = await agents.execute(brief)
        request = stub.requests[-1]
        assert [message["role"] for message in request["messages"]] == ["user"]
        assert f"[101 app.log:lines[1]] {LINE}" in sent_text(stub)
    assert "tools" not in request
    assert request["response_format"]["type"] == "json_schema"
    assert (reply.text, reply.tool_calls, reply.prompt_sha256 is None) == ("{}", (), False)
    assert reply.details is not None
    assert (reply.details["schema_level"], reply.details["tool_level"]) == ("json_schema", "plan")
    assert LACK in reply.details["tools_refused"]


async def test_a_template_without_the_role_of_a_result_gets_results_as_text() -> None:
    """Some models call tools well enough, and their templates stumble over the history of it."""

    def answer(request: dict[str, Any]) -> Answer:
        if any(message["role"] == "tool" for message in request["messages"]):
            return error(400, "Conversation roles must alternate user/assistant/user/assistant/...")
        return completion("{}")

    found = invoked("101", LINE)
    brief = executor_brief(replies=(asked("101"),), invocations=(found,), round_invocations=(found,))
    async with serving(answer) as (agents, stub):
        reply = await agents.execute(brief)
        assert LINE in sent_text(stub)
    assert reply.text == "{}"
    assert len(stub.requests) == 2


async def test_both_ladders_are_climbed_down_together() -> None:
    def answer(request: dict[str, Any]) -> Answer:
        if "tools" in request:
            return error(400, LACK)
        if "response_format" in request:
            return error(400, "response_format is unavailable")
        return completion("{}")

    found = invoked("101", LINE)
    brief = executor_brief(invocations=(found,), round_invocations=(found,))
    async with serving(answer, format_with_tools=True) as (agents, stub):
        reply = await agents.execute(brief)
        await agents.execute(brief)
    assert len(stub.requests) == 5
    assert reply.details is not None
    assert (reply.details["schema_level"], reply.details["tool_level"]) == ("prompt", "plan")


async def test_an_error_in_a_200_body_counts_as_well() -> None:
    def answer(request: dict[str, Any]) -> Answer:
        return Answer({"error": {"message": LACK}}) if "tools" in request else completion("{}")

    async with serving(answer) as (agents, _):
        assert (await agents.execute(executor_brief(plan=PLAN))).finish_reason == "tool_calls"


async def test_tools_are_held_against_this_model_at_this_endpoint_only() -> None:
    known: dict[tuple[str, str], Profile] = {}
    async with serving(toolless(), known=known) as (agents, stub):
        await agents.execute(executor_brief(plan=PLAN))
        judged = await agents.verify(verifier_brief())
    assert judged.details is not None
    assert "tool_level" not in judged.details
    assert known == {(stub.base_url, "stub-1"): Profile(tools=False)}
    calls = completion("", "tool_calls", [call("query_logs", "{}")])
    async with serving(calls, known=known) as (agents, _):
        reply = await agents.execute(executor_brief(plan=PLAN))
    assert reply.details is not None
    assert (reply.details["tool_level"], reply.prompt_sha256 is None) == ("calls", False)


async def test_a_repair_and_a_re_ask_make_no_calls() -> None:
    before = asked(text="not json")
    async with serving(toolless()) as (agents, stub):
        await agents.execute(executor_brief(plan=PLAN))
        repaired = await agents.execute(executor_brief(plan=PLAN, attempt=1, repair=Repair("mend c1", "{}")))
        again = await agents.execute(executor_brief(plan=PLAN, reask="not JSON", replies=(before,)))
    assert (repaired.tool_calls, again.tool_calls) == ((), ())
    assert ["tools" in request for request in stub.requests] == [True, False, False]


async def test_a_second_round_makes_the_calls_of_its_own_plan() -> None:
    old = invoked("101", LINE)
    async with serving(toolless()) as (agents, _):
        reply = await agents.execute(executor_brief(round=2, plan=PLAN, invocations=(old,), round_invocations=()))
    assert [made.call_id for made in reply.tool_calls] == ["102", "103"]


async def test_a_nonce_in_the_plan_is_taken_out_of_its_calls() -> None:
    leaky = PlanMade(steps=(PlannedStep(tool_name="query_logs", arguments={"terms": [f"x{NONCE}"]}),))
    async with serving(toolless()) as (agents, _):
        reply = await agents.execute(executor_brief(plan=leaky))
    assert json.dumps(reply.tool_calls[0].arguments) == '{"terms": ["x"]}'
