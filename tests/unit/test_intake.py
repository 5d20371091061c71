"""Intake: what a foreign agent sends becomes one event or none, and its turn ends as any other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from handlers.dispatch import Again
from handlers.intake import Defaults
from handlers.redaction import Redactions
from handlers.report import exit_code, turn_report
from handlers.requests import REQUESTS, Refused, read_request, schema
from handlers.standing import standing
from streams.chain import verify
from streams.events import ToolInvoked, TurnOptions
from tests.foreign import CONTRACT, POOL_LINE, QUESTION, TOOL, miscopied, send
from tests.play import SESSION, Stage

pytestmark = pytest.mark.anyio


async def opened(wait_s: float = 0.0, **options: Any) -> Stage:
    stage = Stage()
    await send(stage, "question-asked", question=QUESTION, repair_wait_s=wait_s, **options)
    await send(stage, "tool-invoked", **TOOL)
    return stage


async def test_a_foreign_agents_answer_gets_its_verdict() -> None:
    stage = await opened()
    event = await send(stage, "answer-drafted", answer=CONTRACT)
    state = await stage.run()
    report = turn_report(state, state.turns[-1])
    assert (event.n, event.type) == (3, "answer-drafted")
    assert (report["effective_verdict"], report["response"]["kind"]) == ("PASS", "answer")
    assert report["response"]["citations"][0]["excerpt"] == POOL_LINE
    assert {e.actor for e in state.events} == {"intake", "gatekeeper", "evaluator", "verifier", "router"}
    assert verify(list(state.events)) is None


async def test_a_foreign_answer_as_text_is_read_by_the_same_parser() -> None:
    stage = await opened()
    await send(stage, "answer-drafted", answer='{"answer_version": "executor_evidence_v2", "answer_version": "x"}')
    state = await stage.run()
    draft = state.turns[-1].rounds[0].attempts[0].draft
    assert draft.parse_status == "malformed"
    assert "duplicate" in (draft.parse_error or "").lower()
    assert turn_report(state, state.turns[-1])["effective_verdict"] != "PASS"


@pytest.mark.parametrize(("question", "why"), [(" \n ", "is blank"), ("\u3000", "is blank"), ("?!", "has no words")])
def test_a_question_without_a_word_is_refused(question: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        read_request("question-asked", {"question": question})
    assert (refused.value.where, refused.value.why) == ("question", why)
    assert read_request("question-asked", {"question": "为什么？"}).model_dump()["question"] == "为什么？"


async def test_the_same_request_twice_is_one_event() -> None:
    stage = Stage()
    first = await send(stage, "question-asked", id="q1", question=QUESTION)
    assert (await send(stage, "question-asked", id="q1", question=QUESTION)).n == first.n
    tool = await send(stage, "tool-invoked", id="t1", **TOOL)
    assert (await send(stage, "tool-invoked", id="t1", **TOOL)).n == tool.n
    answer = await send(stage, "answer-drafted", id="a1", answer=CONTRACT)
    await stage.run()
    # Also when the turn has long ended.
    assert (await send(stage, "answer-drafted", id="a1", answer=CONTRACT)).n == answer.n
    assert (await send(stage, "question-asked", id="q1", question=QUESTION)).n == first.n
    assert len([e for e in await stage.log.read(SESSION) if e.actor == "intake"]) == 3


async def test_without_an_id_a_repeated_request_is_the_same_in_its_turn() -> None:
    stage = await opened()
    assert (await send(stage, "tool-invoked", **TOOL)).n == 2
    answer = await send(stage, "answer-drafted", answer=CONTRACT)
    await stage.run()
    assert (await send(stage, "answer-drafted", answer=CONTRACT)).n == answer.n
    again = await send(stage, "question-asked", question=QUESTION, repair_wait_s=0.0)
    assert again.turn == 2


async def test_an_id_stands_for_one_request_only() -> None:
    stage = Stage()
    await send(stage, "question-asked", id="a", question=QUESTION)
    await send(stage, "tool-invoked", id="a:b", **TOOL)
    with pytest.raises(Refused, match="id: 'a' was used for another request, event 1"):
        await send(stage, "tool-invoked", id="a", **{**TOOL, "invocation_id": "call-2"})


@pytest.mark.parametrize(
    ("kind", "body", "where"),
    [
        ("question-asked", {}, "question"),
        ("question-asked", {"question": ""}, "question"),
        ("question-asked", {"question": "Why?", "owner": "ours"}, "owner"),
        ("question-asked", {"question": "Why?", "max_attempts": "2"}, "max_attempts"),
        ("tool-invoked", {"invocation_id": 1, "tool_name": "query_logs", "output": "x"}, "invocation_id"),
        ("tool-invoked", {"invocation_id": "1", "output": "x"}, "tool_name"),
        ("tool-invoked", {"invocation_id": "1", "tool_name": "t", "status": "ok"}, "status"),
        (
            "tool-invoked",
            {"invocation_id": "1", "tool_name": "t", "retrieval_details": {}},
            "retrieval_details.evidence_refs",
        ),
        ("answer-drafted", {"answer": 3}, "answer.str"),
        ("channel-written", {"channel": "Human Review", "value": 1}, "channel"),
        ("turn-cancelled", {}, "who"),
        ("gate-judged", {}, "subject"),
        ("facts-verified", {"verdict": "PASS"}, "subject"),
    ],
)
def test_a_bad_request_is_one_line_that_says_where(kind: str, body: dict[str, Any], where: str) -> None:
    with pytest.raises(Refused) as refused:
        read_request(kind, body)
    assert refused.value.where == where
    assert "\n" not in refused.value.why


@pytest.mark.parametrize(
    ("kind", "body", "where"),
    [
        ("tool-invoked", {**TOOL, "output": "another"}, "invocation_id"),
        ("tool-invoked", {"invocation_id": "call-2", "tool_name": "query_logs"}, "output"),
        ("question-asked", {"question": "Something else?"}, "question"),
        ("answer-drafted", {"answer": "  "}, "answer"),
        ("channel-written", {"channel": "verifier_evaluation", "value": {"verdict": "PASS"}}, "channel"),
    ],
)
async def test_a_request_that_the_session_cannot_take_is_no_event(kind: str, body: dict[str, Any], where: str) -> None:
    stage = await opened()
    before = await stage.log.read(SESSION)
    with pytest.raises(Refused) as refused:
        await send(stage, kind, **body)
    assert refused.value.where == where
    assert await stage.log.read(SESSION) == before


async def test_nothing_is_taken_before_a_question_or_while_an_answer_is_judged() -> None:
    stage = Stage()
    with pytest.raises(Refused, match="question-asked first"):
        await send(stage, "tool-invoked", **TOOL)
    stage = await opened()
    await send(stage, "answer-drafted", answer=CONTRACT)
    with pytest.raises(Refused, match="being judged"):
        await send(stage, "tool-invoked", **{**TOOL, "invocation_id": "call-2"})
    with pytest.raises(Refused, match="being judged"):
        await send(stage, "answer-drafted", answer="Another answer.")


async def test_by_default_a_repair_ends_as_exhausted_at_once_and_the_request_stands_in_the_log() -> None:
    stage = await opened()
    await send(stage, "answer-drafted", answer=miscopied())
    state = await stage.run()
    decisions = [e.data.decision for e in state.events if e.type == "answer-evaluated"]  # type: ignore[attr-defined]
    report = turn_report(state, state.turns[-1])
    assert decisions == ["repair", "exhausted"]
    assert "c1" in report["evaluations"][0]["repair_request"]
    assert report["effective_verdict"] == "REJECT"


async def test_without_time_given_a_mended_answer_is_not_taken_whoever_is_quicker() -> None:
    stage = await opened()
    await send(stage, "answer-drafted", answer=miscopied())
    for role, n in (("gatekeeper", 3), ("evaluator", 4)):
        await stage.deliver(role, n)
    assert (await stage.state()).turns[-1].rounds[0].attempts[0].evaluation is not None
    with pytest.raises(Refused, match="being judged"):
        await send(stage, "answer-drafted", answer=CONTRACT)


async def test_a_foreign_agent_may_mend_its_answer_while_it_has_time() -> None:
    stage = await opened(wait_s=60.0)
    await send(stage, "answer-drafted", answer=miscopied())
    with pytest.raises(Again) as again:
        await stage.run()
    assert 59 < again.value.delay_s <= 60
    state = await stage.state()
    told = standing(state, stage.clock.now)
    assert (told["state"], told["round"], told["attempt"]) == ("repair", 1, 1)
    assert "c1" in told["repair_request"]
    mended = await send(stage, "answer-drafted", answer=CONTRACT)
    assert (mended.round, mended.attempt) == (1, 1)
    report = turn_report(state := await stage.run(), state.turns[-1])
    assert (report["effective_verdict"], report["attempts"]) == ("PASS", [2])
    assert [e["decision"] for e in report["evaluations"]] == ["repair", "accepted"]


async def test_a_repair_that_does_not_come_in_time_ends_as_exhausted_and_is_refused_later() -> None:
    stage = await opened(wait_s=60.0)
    await send(stage, "answer-drafted", answer=miscopied())
    with pytest.raises(Again):
        await stage.run()
    stage.clock.now += timedelta(seconds=61)
    state = await stage.run()
    assert turn_report(state, state.turns[-1])["effective_verdict"] == "REJECT"
    with pytest.raises(Refused, match="no open question"):
        await send(stage, "answer-drafted", answer=CONTRACT)


async def test_by_default_the_extra_round_borrows() -> None:
    stage = await opened(max_attempts=0)
    await send(stage, "answer-drafted", answer={**CONTRACT, "claims": []})
    state = await stage.run()
    report = turn_report(state, state.turns[-1])
    assert report["route"] == ["extra_round", "disclaimer"]
    assert report["attempts"] == [1, 0]
    assert "borrowed" in {cap["source"] for cap in report["verifier_evaluation"]["caps"]}


async def test_a_second_round_may_come_in_time() -> None:
    stage = await opened(wait_s=60.0, max_attempts=0)
    await send(stage, "answer-drafted", answer={**CONTRACT, "claims": []})
    with pytest.raises(Again):
        await stage.run()
    told = standing(await stage.state(), stage.clock.now)
    assert (told["state"], told["round"]) == ("extra_round", 2)
    assert told["retry_context"]["tried"][0]["invocation_id"] == "call-1"
    tool = await send(stage, "tool-invoked", **{**TOOL, "invocation_id": "call-2"})
    answer = await send(stage, "answer-drafted", answer=CONTRACT)
    assert (tool.round, answer.round, answer.attempt) == (2, 2, 0)
    state = await stage.run()
    report = turn_report(state, state.turns[-1])
    assert (report["route"], report["effective_verdict"]) == (["extra_round", "answer"], "PASS")


async def test_a_cancelled_turn_ends_degraded() -> None:
    stage = await opened()
    await send(stage, "turn-cancelled", who="on-call", why="solved")
    with pytest.raises(Refused, match="ending"):
        await send(stage, "answer-drafted", answer=CONTRACT)
    state = await stage.run()
    told = standing(state, stage.clock.now)
    assert (told["state"], told["response"]["fallback_reason"], told["exit_code"]) == ("answered", "cancelled", 1)


async def test_a_refused_answer_ends_the_turn_as_agent_failed() -> None:
    stage = await opened()
    await send(stage, "answer-drafted", answer="I cannot help with that.", finish_reason="content_filter")
    state = await stage.run()
    turn = state.turns[-1]
    assert turn.answer is not None
    assert turn.answer.fallback_reason == "agent_failed"
    assert exit_code(turn) == 1


async def test_a_third_partys_channel_stands_beside_ours() -> None:
    stage = await opened()
    await send(stage, "answer-drafted", answer=CONTRACT)
    state = await stage.run()
    await send(stage, "channel-written", channel="human_review", value={"useful": True}, who="on-call")
    channels = (await stage.state()).self_evaluation or {}
    assert channels["human_review"] == {"useful": True}
    assert channels["verifier_evaluation"] == (state.self_evaluation or {})["verifier_evaluation"]


async def test_secrets_are_replaced_before_anything_is_stored() -> None:
    stage, redactions = Stage(), Redactions()
    await send(stage, "question-asked", redactions, question=f"{QUESTION} (password=hunter2)")
    event = await send(
        stage,
        "tool-invoked",
        redactions,
        **{**TOOL, "output": f"{POOL_LINE}\npassword=hunter2", "arguments": {"q": "password: hunter2"}},
    )
    await send(stage, "answer-drafted", redactions, answer="payments-pool has 20 connections; password=hunter2.")
    assert isinstance(event.data, ToolInvoked)
    assert event.data.redactions == {"password": 2}
    assert all(b"hunter2" not in e.body for e in await stage.log.read(SESSION))
    assert all(b"[REDACTED:password#1]" in e.body for e in await stage.log.read(SESSION))


async def test_what_stands_for_a_request_gives_no_secret_away_and_knows_it_again() -> None:
    stage = Stage()
    first = await send(stage, "question-asked", Redactions(), question=f"{QUESTION} (password=hunter2)")
    again = await send(stage, "question-asked", Redactions(), question=f"{QUESTION} (password=hunter2)")
    assert again.id == first.id
    other = Stage()
    same = await send(other, "question-asked", Redactions(), question=f"{QUESTION} (password=hunter3)")
    assert same.cause == first.cause


async def test_defaults_are_the_servers() -> None:
    stage = Stage()
    defaults = Defaults("openai", 12.0, TurnOptions(max_attempts=1, external_repair_wait_s=3.0))
    await send(stage, "question-asked", question="payment-service 为什么超时？", defaults=defaults)
    asked = (await stage.state()).turns[-1].question
    assert (asked.owner, asked.lang, asked.agents, asked.deadline_s) == ("external", "zh-CN", "openai", 12.0)
    assert (asked.options.max_attempts, asked.options.external_repair_wait_s) == (1, 3.0)


def test_every_request_has_a_schema() -> None:
    for kind in REQUESTS:
        described = schema(kind)
        assert described["additionalProperties"] is False
        assert described["type"] == "object"


async def test_a_secret_goes_by_its_name_and_out_of_every_text_that_a_foreign_agent_sends() -> None:
    stage, redactions, secret = Stage(), Redactions(), "q7-ledger-Xk"
    said = f"password={secret}"
    await send(stage, "question-asked", redactions, question=QUESTION)
    event = await send(
        stage,
        "tool-invoked",
        redactions,
        invocation_id=f"call {said}",
        tool_name=f"query {said}",
        topic=said,
        arguments={"password": secret, "deep": [{"api_key": secret}]},
        output={"api_key": secret, "pool": "payments-pool"},
    )
    await send(stage, "answer-drafted", redactions, answer="payments-pool is full.", finish_reason=said)
    await stage.run()
    await send(stage, "channel-written", redactions, channel="human_review", value={"password": secret}, who=said)
    await send(stage, "question-asked", redactions, question="And ledger-db?")
    await send(stage, "turn-cancelled", redactions, who=said, why=said)
    assert isinstance(event.data, ToolInvoked)
    held = "[REDACTED:password#1]"
    assert (event.data.invocation_id, event.data.tool_name) == (f"call password={held}", f"query password={held}")
    assert event.data.arguments == {"password": held, "deep": [{"api_key": held}]}
    assert all(secret.encode() not in e.body for e in await stage.log.read(SESSION))


async def test_a_key_whose_lines_are_records_of_their_own_goes_from_a_foreign_agents_records() -> None:
    stage, line = Stage(), "Zx8+" * 16
    await send(stage, "question-asked", Redactions(), question=QUESTION)
    texts = ["-----BEGIN PRIVATE KEY-----", line, "-----END PRIVATE KEY-----"]
    refs = [{"raw_path": f"lines[{n}]", "text": text} for n, text in enumerate(texts)]
    event = await send(
        stage,
        "tool-invoked",
        Redactions(),
        invocation_id="call-1",
        tool_name="query_logs",
        retrieval_details={"evidence_refs": refs},
    )
    assert line.encode() not in event.body
    assert b"[REDACTED:private-key#1]" in event.body


async def test_a_text_that_grows_too_long_by_its_placeholders_is_refused() -> None:
    stage = await opened()
    with pytest.raises(Refused, match="once its secrets are replaced") as refused:
        await send(stage, "tool-invoked", Redactions(), **{**TOOL, "invocation_id": "password=abc " * 19})
    assert refused.value.where == "invocation_id"
