"""The `openai` agents against a stub server that speaks the real HTTP shapes, kind ones and others."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from handlers.agents.capability import Profile
from handlers.agents.endpoint import retry_after
from handlers.agents.openai import OpenAIAgents, OpenAISettings
from handlers.agents.protocol import AgentFailed, PlanBrief
from streams.contract import Usage
from tests.openai_case import KEY, LOGS, NONCE, QUESTION, executor_brief, serving, verifier_brief
from tests.stub_openai import Answer, StubOpenAI, call, completion, error

pytestmark = pytest.mark.anyio


async def failure(agents: OpenAIAgents, **changes: Any) -> AgentFailed:
    with pytest.raises(AgentFailed) as caught:
        await agents.verify(verifier_brief(**changes))
    assert "\n" not in caught.value.reason
    assert KEY not in caught.value.reason + str(caught.value.details)
    return caught.value


# --- one request, one reply ---


async def test_a_reply_is_handed_on_with_its_cost_and_where_it_came_from() -> None:
    async with serving(completion('{"verdict": "PASS"}')) as (agents, stub):
        reply = await agents.verify(verifier_brief())
    assert (reply.text, reply.finish_reason, reply.model) == ('{"verdict": "PASS"}', "stop", "stub-1")
    assert reply.usage == Usage(input_tokens=1000, output_tokens=20)
    assert reply.latency_ms > 0
    assert re.fullmatch("[0-9a-f]{64}", reply.prompt_sha256 or "")
    assert reply.details is not None
    assert (reply.details["schema_level"], reply.details["tries"], reply.details["request_id"]) == (
        "json_schema",
        1,
        "req-7",
    )
    [request] = stub.requests
    assert (request["max_tokens"], request["temperature"], request["model"]) == (4096, 0, "stub-1")
    assert "stream" not in request
    assert stub.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(reply)


async def test_each_role_has_a_model_of_its_own_if_set() -> None:
    async with serving(completion("{}"), verifier_model="judge-1", planner_model="plan-1") as (agents, stub):
        await agents.verify(verifier_brief())
        await agents.plan(PlanBrief(QUESTION, "en", 1, (LOGS,), NONCE, 20.0))
        await agents.execute(executor_brief())
    assert [request["model"] for request in stub.requests] == ["judge-1", "plan-1", "stub-1"]


async def test_a_server_without_a_key_is_asked_all_the_same() -> None:
    async with serving(completion("{}"), api_key=None) as (agents, _):
        assert (await agents.verify(verifier_brief())).text == "{}"


async def test_a_strict_schema_closes_every_object_and_requires_every_key() -> None:
    async with serving(completion("{}")) as (agents, stub):
        await agents.verify(verifier_brief())
        await agents.execute(executor_brief(tool_budget=0))

    def check(schema: Any) -> int:
        if isinstance(schema, list):
            return sum(map(check, schema))
        if not isinstance(schema, dict):
            return 0
        closed = 0
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert set(schema["required"]) == set(schema["properties"])
            closed = 1
        assert not {"pattern", "minimum", "maximum", "format", "minLength"} & schema.keys()
        return closed + sum(map(check, schema.values()))

    judgement, answer = (request["response_format"]["json_schema"] for request in stub.requests)
    assert judgement["strict"] is answer["strict"] is True
    assert (check(judgement["schema"]), check(answer["schema"])) == (2, 6)


@pytest.mark.parametrize(
    ("answer", "text", "finish"),
    [
        (completion(None, refusal="I cannot help with that."), "I cannot help with that.", "refusal"),
        (completion('{"verdict": "PA', "length"), '{"verdict": "PA', "length"),
        (completion("", "content_filter"), "", "content_filter"),
        (completion(None, "content_filter"), "", "content_filter"),
        (completion("x", "insufficient_system_resource"), "x", "insufficient_system_resource"),
        (completion(None), "", "stop"),
        (completion("x", None), "x", "stop"),
        (completion([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab", "stop"),
        (completion("a\0b\ud800"), "a\ufffdb\ufffd", "stop"),
    ],
)
async def test_how_a_reply_ended_is_passed_through(answer: Answer, text: str, finish: str) -> None:
    async with serving(answer) as (agents, _):
        reply = await agents.verify(verifier_brief())
    assert (reply.text, reply.finish_reason) == (text, finish)
    json.dumps(reply.text).encode("utf-8")


async def test_characters_that_no_text_can_hold_are_counted() -> None:
    async with serving(completion("a\0b\ud800")) as (agents, _):
        details = (await agents.verify(verifier_brief())).details
    assert details is not None
    assert details["characters_replaced"] == 2


async def test_a_leaked_nonce_is_taken_out_of_text_and_calls_and_recorded() -> None:
    leaky = completion(f"a {NONCE} b", "tool_calls", [call("query_logs", json.dumps({"terms": [f"x{NONCE}"]}))])
    async with serving(leaky) as (agents, _):
        reply = await agents.execute(executor_brief())
    assert reply.text == "a  b"
    assert reply.tool_calls[0].arguments == {"terms": ["x"]}
    assert reply.details is not None
    assert reply.details["nonce_removed"] == 2


async def test_a_prompt_that_the_server_cut_is_noticed() -> None:
    body = completion("{}").body
    assert isinstance(body, dict)
    few = Answer({**body, "usage": {"prompt_tokens": 12, "completion_tokens": 1}})
    async with serving(few) as (agents, _):
        details = (await agents.verify(verifier_brief())).details
    assert details is not None
    assert details["prompt_seems_cut"]["tokens_read"] == 12


# --- what the server supports ---


def supporting(*formats: str) -> Callable[[dict[str, Any]], Answer]:
    def answer(request: dict[str, Any]) -> Answer:
        kind = request.get("response_format", {"type": "text"})["type"]
        if kind in formats:
            return completion("{}")
        return error(400, f"'response_format.type' {kind!r} is unavailable now")

    return answer


@pytest.mark.parametrize(
    ("formats", "level", "requests"),
    [
        (("json_schema", "json_object", "text"), "json_schema", 1),
        (("json_object", "text"), "json_object", 2),
        (("text",), "prompt", 3),
    ],
)
async def test_the_ladder_ends_at_what_the_server_supports_and_is_remembered(
    formats: tuple[str, ...], level: str, requests: int
) -> None:
    async with serving(supporting(*formats)) as (agents, stub):
        first = await agents.verify(verifier_brief())
        assert len(stub.requests) == requests
        second = await agents.verify(verifier_brief())
        assert len(stub.requests) == requests + 1
    for reply in (first, second):
        assert reply.details is not None
        assert reply.details["schema_level"] == level


async def test_a_server_that_knows_schemas_but_no_json_mode_keeps_its_schemas() -> None:
    async with serving(supporting("json_schema", "text")) as (agents, _):
        plan = await agents.plan(PlanBrief(QUESTION, "en", 1, (LOGS,), NONCE, 20.0))
        judged = await agents.verify(verifier_brief())
    assert [reply.details and reply.details["schema_level"] for reply in (plan, judged)] == ["prompt", "json_schema"]


async def test_what_one_endpoint_refuses_is_not_held_against_another() -> None:
    known: dict[tuple[str, str], Profile] = {}
    async with serving(supporting("text"), known=known) as (agents, _):
        await agents.verify(verifier_brief())
    async with serving(supporting("json_schema"), known=known) as (agents, _):
        reply = await agents.verify(verifier_brief())
    assert reply.details is not None
    assert reply.details["schema_level"] == "json_schema"


async def test_a_schema_that_the_server_cannot_compile_is_left_out() -> None:
    def answer(request: dict[str, Any]) -> Answer:
        kind = request.get("response_format", {}).get("type")
        return error(500, "failed to parse grammar of json_schema") if kind == "json_schema" else completion("{}")

    async with serving(answer, max_retries=1) as (agents, _):
        reply = await agents.verify(verifier_brief())
    assert reply.details is not None
    assert reply.details["schema_level"] == "json_object"


async def test_models_that_want_another_token_limit_and_no_temperature_get_them() -> None:
    def answer(request: dict[str, Any]) -> Answer:
        if "max_tokens" in request:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if "temperature" in request:
            return error(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        return completion("{}")

    async with serving(answer) as (agents, stub):
        await agents.verify(verifier_brief())
        await agents.verify(verifier_brief())
    assert len(stub.requests) == 4
    assert stub.requests[-1]["max_completion_tokens"] == 4096
    assert stub.requests[-1]["response_format"]["type"] == "json_schema"


# --- failures: one retry layer ---


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (error(400, "This model's maximum context length is 8192 tokens"), "400"),
        (error(401, f"Incorrect API key provided: {KEY}."), "401"),
        (error(403, "not allowed"), "403"),
        (error(404, "The model `stub-1` does not exist"), "404"),
        (error(429, "You exceeded your current quota", "insufficient_quota"), "429"),
    ],
)
async def test_what_will_not_pass_by_itself_is_asked_once(answer: Answer, told: str) -> None:
    async with serving(answer) as (agents, stub):
        failed = await failure(agents)
    assert len(stub.requests) == 1
    assert told in failed.reason
    assert stub.base_url in failed.reason


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_what_may_pass_is_tried_again(status: int) -> None:
    async with serving(error(status, "try later"), error(status, "try later"), completion("{}")) as (agents, stub):
        reply = await agents.verify(verifier_brief())
    assert reply.text == "{}"
    assert reply.details is not None
    assert reply.details["tries"] == 3
    assert len(stub.requests) == 3


async def test_an_endpoint_that_stays_down_fails_after_its_tries() -> None:
    async with serving(error(503, "down\nfor\nrepair"), max_retries=2) as (agents, stub):
        failed = await failure(agents)
    assert len(stub.requests) == 3
    assert "503" in failed.reason


async def test_retry_after_is_waited_for() -> None:
    async with serving(error(429, "slow down", retry_after="0.3"), completion("{}")) as (agents, _):
        began = time.monotonic()
        reply = await agents.verify(verifier_brief())
        assert time.monotonic() - began >= 0.3
    assert reply.details is not None
    assert reply.details["waited_s"] == 0.3


async def test_a_wait_that_the_turn_has_no_time_for_fails_at_once() -> None:
    async with serving(error(429, "slow down", retry_after="120"), completion("{}")) as (agents, stub):
        began = time.monotonic()
        failed = await failure(agents, deadline_s=10.0)
        assert time.monotonic() - began < 5
    assert len(stub.requests) == 1
    assert "120 s" in failed.reason


async def test_a_wait_is_told_in_whole_seconds() -> None:
    async with serving(error(429, "slow down", retry_after="3600")) as (agents, _):
        failed = await failure(agents, deadline_s=60.0)
    assert "the next try is due in 3600 s, " in failed.reason


async def test_a_secret_in_the_words_of_a_server_is_not_repeated() -> None:
    told = "proxy of ledger-db refused password=q7ledger at http://app:q8ledger@payment-service:8080"
    async with serving(error(400, told)) as (agents, _):
        failed = await failure(agents)
    assert "proxy of ledger-db refused password=[REDACTED:password]" in failed.reason
    assert "q7ledger" not in failed.reason
    assert "q8ledger" not in failed.reason


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_gets_no_prompt(status: int) -> None:
    async with serving(completion("{}")) as (_, elsewhere):
        moved = Answer(b"", status, headers={"location": f"{elsewhere.base_url}/chat/completions"})
        async with serving(moved) as (agents, stub):
            failed = await failure(agents)
        assert len(stub.requests) == 1
        assert not elsewhere.requests
        assert stub.base_url in failed.reason
        assert f"redirects to {elsewhere.base_url.removesuffix('/v1')}, which is not followed" in failed.reason
        assert "set OPENAI_BASE_URL" in failed.reason


async def test_a_hanging_server_is_left_in_time_and_not_asked_twice() -> None:
    async with serving(Answer(delay_s=30), reply_timeout_s=2.0) as (agents, stub):
        began = time.monotonic()
        failed = await failure(agents)
        assert time.monotonic() - began < 25
    assert len(stub.requests) == 1
    assert "no reply within 2 s" in failed.reason


async def test_the_deadline_bounds_the_call_whatever_the_settings_allow() -> None:
    async with serving(Answer(delay_s=30), reply_timeout_s=60.0) as (agents, _):
        began = time.monotonic()
        await failure(agents, deadline_s=0.3)
        assert time.monotonic() - began < 25


async def test_a_connection_that_breaks_is_opened_again() -> None:
    whole = completion("{}")
    async with serving(Answer(whole.raw(), cut_after=40), completion("{}")) as (agents, stub):
        reply = await agents.verify(verifier_brief())
    assert reply.text == "{}"
    assert len(stub.requests) == 2


async def test_a_connection_that_always_breaks_fails() -> None:
    async with serving(Answer(completion("{}").raw(), cut_after=40), max_retries=1) as (agents, stub):
        failed = await failure(agents)
    assert len(stub.requests) == 2
    assert "connection" in failed.reason


async def test_no_server_at_all_fails_with_its_address() -> None:
    async with StubOpenAI(completion("{}")) as stub:
        address = stub.base_url
    agents = OpenAIAgents(OpenAISettings(base_url=address, model="m", backoff_s=0.01, max_retries=1), known={})
    failed = await failure(agents)
    await agents.aclose()
    assert address in failed.reason


async def test_a_password_in_the_address_is_not_told() -> None:
    async with StubOpenAI(error(404, "no such page")) as stub:
        address = stub.base_url.replace("http://", "http://someone:hunter2@")
        agents = OpenAIAgents(OpenAISettings(base_url=address, model="m"), known={})
        failed = await failure(agents)
        await agents.aclose()
    assert "hunter2" not in failed.reason + str(failed.details)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(b"<html>\n<title>Bad gateway</title>", content_type="text/html"), "text/html"),
        (Answer(b'data: {"choices": []}\n\ndata: [DONE]\n\n', content_type="text/event-stream"), "text/event-stream"),
        (Answer({"choices": []}), "no choices"),
        (Answer({"id": "x"}), "no choices"),
        (Answer({"choices": [{"message": None}]}), "no message"),
        (Answer({"error": {"message": "upstream is down"}}), "upstream is down"),
        (Answer([]), "list"),  # type: ignore[arg-type]
        (Answer(b""), "not JSON"),
        (Answer(b"[" * 100_000), "not JSON"),
    ],
)
async def test_a_body_that_is_no_completion_fails_with_what_it_was(answer: Answer, told: str) -> None:
    async with serving(answer) as (agents, _):
        failed = await failure(agents)
    assert told in failed.reason


@pytest.mark.parametrize("status", [200, 400])
async def test_a_body_of_ten_megabytes_is_refused(status: int) -> None:
    big = completion("x" * 10_000_000)
    async with serving(Answer(big.raw(), status)) as (agents, _):
        failed = await failure(agents)
    assert "longer than 4194304 bytes" in failed.reason


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Tue, 17 Mar 2020 10:00:00 GMT"}, 0.0),
    ],
)
async def test_retry_after_is_read_as_seconds_milliseconds_or_a_date(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds
