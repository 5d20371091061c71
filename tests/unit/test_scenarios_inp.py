"""The Verifier's input as it stands in the log, through the real roles (INP)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handlers.agents import messages
from handlers.agents.protocol import VerifierBrief
from handlers.trace import summarise
from prompts import load
from streams.events import AgentReplied, FactsVerified, GateJudged
from streams.session import SessionState
from tests.ledger_case import (
    LANGS,
    POOL,
    QUESTION,
    RETRIES,
    TEXTS,
    TIMEOUT,
    Lang,
    answer,
    binding,
    call,
    case,
    checked,
    claim,
    fact,
    good,
    later,
    miscopied,
    rnd,
    unfounded,
    unplaced,
    verdict,
)
from tests.play import play

BLOCKS = [
    "original_query",
    "executor_final_answer",
    "executor_structured_output",
    "executor_output_parse_status",
    "gatekeeper_result",
    "claim_evidence",
    "tool_trace_summary",
]


def played(raw: dict[str, Any]) -> SessionState:
    return asyncio.run(play(raw))


def inputs(state: SessionState) -> list[dict[str, Any]]:
    return [e.data.input for e in state.events if isinstance(e.data, FactsVerified)]


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.scenario("INP-1")
@pytest.mark.parametrize("lang", LANGS)
def test_the_exact_input_stands_in_the_event_as_named_blocks(lang: Lang) -> None:
    state = played(case(rnd(good(lang), checked(lang)), lang=lang))
    (given,) = inputs(state)
    assert list(given) == BLOCKS
    assert given["original_query"] == QUESTION[lang]
    assert given["executor_final_answer"] == good(lang)["user_facing_answer"]
    assert given["executor_structured_output"] == good(lang)
    assert given["executor_output_parse_status"] == "valid"
    gate = next(e.data.result for e in state.events if isinstance(e.data, GateJudged))
    assert given["gatekeeper_result"] == gate.model_dump(mode="json", exclude_none=True)
    assert [(c["claim_id"], [x["excerpt"] for x in c["excerpts"]]) for c in given["claim_evidence"]] == [
        ("c1", [TIMEOUT]),
        ("c2", [RETRIES]),
    ]
    assert [i["trace_ref"] for i in given["tool_trace_summary"]] == ["trace-101"]


@pytest.mark.scenario("INP-1")
def test_a_malformed_answer_is_given_as_text_with_its_status() -> None:
    (given,) = inputs(played(case(rnd("It is 3s.", checked()))))
    assert given["executor_final_answer"] == "It is 3s."
    assert given["executor_structured_output"] is None
    assert given["executor_output_parse_status"] == "malformed"
    assert given["claim_evidence"] == []


@pytest.mark.scenario("INP-1")
def test_the_last_attempt_is_what_the_verifier_is_given() -> None:
    (given,) = inputs(played(case(rnd(miscopied(), checked(), repairs=[good()]))))
    assert given["executor_structured_output"] == good()
    assert given["gatekeeper_result"]["severity"] == "none"
    assert "missing_claims" not in given


@pytest.mark.scenario("INP-1", "INP-3")
@pytest.mark.parametrize("at", [0, 20_000, 60_000])
@pytest.mark.parametrize("filler", ["x", "连"])
def test_a_long_line_is_cut_around_the_excerpt(at: int, filler: str) -> None:
    line = f"{filler * at} {TIMEOUT} {filler * (60_000 - at)}"
    said = answer(claim("c1", TEXTS["en"]["c1"], binding(TIMEOUT, "lines[0]")), user_facing_answer=TEXTS["en"]["c1"])
    raw = case(rnd(said, checked(), calls=[call("101", line)]), question="What is the time-out of ledger-db?")
    state = played(raw)
    (given,) = inputs(state)
    (shown,) = given["claim_evidence"][0]["excerpts"]
    assert shown["excerpt"] == TIMEOUT
    assert TIMEOUT in shown["lines"]
    assert len(shown["lines"].encode()) <= 2048
    assert len(text(given).encode()) < 16_000


@pytest.mark.scenario("INP-2")
@pytest.mark.parametrize("lang", LANGS)
def test_what_the_first_round_lacked_is_there_in_the_second_only(lang: Lang) -> None:
    state = played(
        case(rnd(unplaced(lang), unfounded(lang)), later(rnd(good(lang), checked(lang))), lang=lang, max_attempts=0)
    )
    first, second = inputs(state)
    assert "retry_context" not in first
    context = second["retry_context"]
    assert context["critical_gaps"] == [TEXTS[lang]["c1"], TEXTS[lang]["c2"]]
    assert context["failed_rules"] == ["claim.number_absent", "evidence.raw_path_missing"]
    assert [(t["invocation_id"], t["tool_name"], t["arguments"]) for t in context["tried"]] == [
        ("101", "query_logs", {"q": "ledger"})
    ]
    assert [i["trace_ref"] for i in second["tool_trace_summary"]] == ["trace-101", "trace-201"]


@pytest.mark.scenario("INP-2")
@pytest.mark.parametrize("attempts", [0, 2])
def test_no_end_of_the_first_rounds_loop_brings_it_forward(attempts: int) -> None:
    raw = case(rnd(miscopied(), ["no verdict", checked()], repairs=["no JSON"]), max_attempts=attempts)
    for given in inputs(played(raw)):
        assert "retry_context" not in given


def secretive() -> dict[str, Any]:
    """An answer with SECRET wherever a model may leave its reasoning."""
    said = good()
    said["reasoning"] = "SECRET"
    said["claims"][0]["chain_of_thought"] = "SECRET"
    said["claims"][0]["evidence_bindings"][0]["why"] = "SECRET"
    said["claims"][0]["basis"] = "SECRET"
    said["hypotheses"] = [
        {
            "hypothesis_text": "<think>SECRET</think>a",
            "basis": "b<think>SECRET",
            "needed_evidence": [],
            "scratch": "SECRET",
        }
    ]
    said["hypotheses"][0]["needed_evidence"] = ["<think>SECRET</think>max=20"]
    said["missing_info"] = ["<thinking>SECRET</thinking>max=20"]
    said["recommended_actions"] = [
        {"action_text": "<think>SECRET</think>look", "reason": "r", "evidence_bindings": [], "thought": "SECRET"}
    ]
    said["diagnosis_summary"] = f"<think>SECRET</think>{TEXTS['en']['c1']}"
    said["user_facing_answer"] = f"<think>SECRET</think>{said['user_facing_answer']}"
    return said


@pytest.mark.scenario("INP-3")
def test_no_reasoning_and_no_raw_conversation_reaches_the_verifier() -> None:
    plan = json.dumps({"note": "SECRET", "steps": [{"tool_name": "query_logs", "arguments": {}, "why": "SECRET"}]})
    replies = ["SECRET, no JSON", f"<think>SECRET</think>\n{json.dumps(secretive())}"]
    calls = [call("101", TIMEOUT, RETRIES, POOL, output="SECRET " * 50)]
    first = rnd(replies, ["SECRET, no verdict", unfounded()], calls=calls, plan=plan)
    second = later(rnd([*replies], checked(), calls=calls, plan=plan, repairs=["SECRET"]))
    state = played(case(first, second))
    given = inputs(state)
    assert len(given) == 2
    for blocks in given:
        assert "SECRET" not in text(blocks)
        assert "think" not in text(blocks["executor_structured_output"])
        assert blocks["executor_structured_output"]["claims"][0]["claim_text"] == TEXTS["en"]["c1"]
    assert "SECRET" in text([e.data.text for e in state.events if isinstance(e.data, AgentReplied)])


@pytest.mark.scenario("INP-3")
def test_no_full_output_and_no_failed_excerpt_reaches_the_verifier() -> None:
    lines = [TIMEOUT, RETRIES, *(f"line {i} UNQUOTED of ledger-db" for i in range(400))]
    state = played(case(rnd(miscopied(), checked(), calls=[call("101", *lines)], repairs=[miscopied()] * 2)))
    (given,) = inputs(state)
    assert text(given).count("UNQUOTED") <= 3
    assert RETRIES.replace("2", "9") not in text(given["claim_evidence"])
    assert {c["claim_id"]: len(c["excerpts"]) for c in given["claim_evidence"]} == {"c1": 1, "c2": 0}


@pytest.mark.scenario("INP-3")
def test_the_verifier_asks_for_no_tools_and_invokes_none() -> None:
    state = played(case(rnd(good(), unfounded()), later(rnd(good(), checked()))))
    replies = [e.data for e in state.events if isinstance(e.data, AgentReplied) and e.data.role == "verifier"]
    assert len(replies) == 2
    assert all(reply.tool_calls == () for reply in replies)
    assert {e.actor for e in state.events if e.type == "tool-invoked"} == {"executor"}


@pytest.mark.scenario("INP-4")
def test_messages_hold_the_input_whole_and_nothing_of_an_earlier_conversation() -> None:
    (given,) = inputs(played(case(rnd(unplaced(), checked()))))
    brief = VerifierBrief(input=given, lang="en", round=1, nonce="0f" * 8, deadline_s=60.0)
    sent = messages.verifier(brief, load("chat-verifier-prompt"))
    assert len(sent) == 1
    for name, value in given.items():
        assert f"<<{name} {brief.nonce}>>" in sent[0]["content"]
        if isinstance(value, str):
            assert value in sent[0]["content"]
    for item in given["tool_trace_summary"]:
        assert item["trace_ref"] in sent[0]["content"]
    earlier = AgentReplied(role="verifier", ordinal=0, text="an earlier reply", model="m")
    assert (
        messages.verifier(
            VerifierBrief(given, "en", 1, brief.nonce, 60.0, replies=(earlier,)), load("chat-verifier-prompt")
        )
        == sent
    )


@pytest.mark.scenario("INP-5")
def test_the_summary_is_what_the_invocation_events_give() -> None:
    state = played(case(rnd(good(), unfounded()), later(rnd(good(), checked(), calls=[call(), call("301", POOL)]))))
    rounds = [r.invocations for r in state.turns[-1].rounds]
    for number, given in enumerate(inputs(state), 1):
        expected = [i.model_dump(mode="json", exclude_none=True) for i in summarise(rounds[:number])]
        assert given["tool_trace_summary"] == expected
    talk = case(rnd([f"{POOL} trace-999", good()], checked(), calls=[call("101", TIMEOUT, RETRIES, POOL)]))
    plain = case(rnd(good(), checked()))
    assert inputs(played(talk))[0]["tool_trace_summary"] == inputs(played(plain))[0]["tool_trace_summary"]


@pytest.mark.scenario("INP-1", "REP-10", "EXE-5")
def test_what_wants_a_fact_of_its_own_is_named() -> None:
    said = unplaced()
    said["user_facing_answer"] += " HikariPool-1 has 37 waiting."
    given = inputs(played(case(rnd(said, verdict("PASS", fact(TEXTS["en"]["c1"], claim_id="c1"))))))[0]
    assert given["extra_facts"] == ["HikariPool-1 has 37 waiting."]
    assert TEXTS["en"]["c2"] in given["missing_claims"]
