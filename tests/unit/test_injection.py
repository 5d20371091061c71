"""Text of others is read and never obeyed: no text of the corpus, anywhere, makes a verdict better (ruling 18)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from handlers.agents import messages
from handlers.agents.protocol import ExecutorBrief, PlanBrief, Repair, VerifierBrief
from handlers.evidence.protocol import ToolSpec
from prompts import load
from streams.contract import VERDICT_ORDER, EvidenceRef, RetrievalDetails
from streams.events import PlanMade, ToolInvoked
from tests.cases import example, tampered
from tests.play import judged
from tests.unit.injection_corpus import CORPUS, with_nonce

Case = dict[str, Any]
NONCE = "9f2c41d7e0b85a36"
BETTER_FIRST = sorted(VERDICT_ORDER, key=["PASS", "LOW_CONFID", "REJECT"].index)


def unsupported(subject: str = "order-service") -> Case:
    case = example()
    answer = case["rounds"][0]["executor_output"]
    answer["claims"][0]["claim_text"] = f"{subject} lost its disk."
    answer["user_facing_answer"] = answer["diagnosis_summary"] = f"{subject} lost its disk."
    return case


def scripted(label: str, said: str) -> Case:
    """A Verifier that labels the claim so and says that, whatever it is shown."""
    case = example()
    verifier = case["rounds"][0]["verifier_output"]
    verifier["facts_checked"][0]["verification"] = label
    verifier["verdict"] = said
    return case


def offline(case: Case) -> Case:
    for rnd in case["rounds"]:
        rnd.pop("verifier_output", None)
    return case


def miscopied() -> Case:
    case = example()
    case["rounds"][0]["executor_output"] = tampered(case["rounds"][0]["executor_output"])
    return case


BASES: dict[str, Callable[[], Case]] = {
    "good, scripted Verifier": example,
    "nothing found, scripted Verifier": lambda: scripted("no_evidence", "LOW_CONFID"),
    "contradicted, scripted Verifier": lambda: scripted("contradicted", "PASS"),
    "quotation changed, scripted Verifier": miscopied,
    "good, offline Verifier": lambda: offline(example()),
    "unsupported, offline Verifier": lambda: offline(unsupported()),
    "quotation changed, offline Verifier": lambda: offline(miscopied()),
}


def in_a_line_of_its_own(case: Case, text: str) -> None:
    refs = case["rounds"][0]["tool_invocations"][0]["retrieval_details"]["evidence_refs"]
    refs.append({"raw_path": "result[9]", "text": text})


def in_a_call_of_its_own(case: Case, text: str) -> None:
    details = {
        "evidence_refs": [{"raw_path": "lines[1]", "text": text}],
        "matched": 1,
        "returned": 1,
        "truncated": False,
    }
    call = {"invocation_id": 190, "tool_name": "query_logs", "arguments": {}, "retrieval_details": details}
    case["rounds"][0]["tool_invocations"].append(call)


def in_the_question(case: Case, text: str) -> None:
    case["question"] = f"{case['question']} {text}"


def in_the_answer(case: Case, text: str) -> None:
    case["rounds"][0]["executor_output"]["user_facing_answer"] += f"\n{text}"


def in_the_claim(case: Case, text: str) -> None:
    case["rounds"][0]["executor_output"]["claims"][0]["claim_text"] += f" {text}"


EVIDENCE = (in_a_line_of_its_own, in_a_call_of_its_own)
PLACES = (*EVIDENCE, in_the_question, in_the_answer, in_the_claim)


@pytest.fixture(scope="module")
def before() -> dict[str, dict[str, Any]]:
    return {name: judged(make()) for name, make in BASES.items()}


def gate(report: dict[str, Any]) -> tuple[set[str], int]:
    """The failed rules, and how grave they are together."""
    result = report["gatekeeper_result"]
    return set(result["failed_rules"]), ["none", "low_confid", "reject"].index(result["severity"])


def test_the_corpus_is_large_and_the_bases_have_every_verdict(before: dict[str, dict[str, Any]]) -> None:
    assert len(set(CORPUS.values())) == len(CORPUS) >= 40
    assert sum(any("\u4e00" <= char <= "\u9fff" for char in text) for text in CORPUS.values()) >= 8
    assert {report["effective_verdict"] for report in before.values()} == {"PASS", "LOW_CONFID", "REJECT"}
    assert any(gate(report)[0] for report in before.values())


@pytest.mark.parametrize("name", CORPUS)
def test_no_text_anywhere_makes_a_verdict_better(name: str, before: dict[str, dict[str, Any]]) -> None:
    text = CORPUS[name]
    fixed = {first_line(report) for report in before.values() if report["response"]["kind"] != "answer"}
    for base, make in BASES.items():
        for place in PLACES:
            case = copy.deepcopy(make())
            place(case, text)
            after = judged(case)
            had, has = before[base], after
            where = f"{base}, {place.__name__}"
            if place not in EVIDENCE and "\0" in text:
                # Such an answer is no contract any more, its claims are none, and its cap is that of EXE-3.
                assert has["effective_verdict"] != "PASS", where
                continue
            assert rank(has) >= rank(had), where
            if had["groundedness_score"] is not None and has["groundedness_score"] is not None:
                assert has["groundedness_score"] <= had["groundedness_score"], where
            assert gate(has)[0] >= gate(had)[0], where
            assert gate(has)[1] >= gate(had)[1], where
            if gate(has)[0] == gate(had)[0]:
                assert gate(has)[1] == gate(had)[1], where
            if place in EVIDENCE:
                assert has["response"] == had["response"], where
            if has["response"]["kind"] != "answer":
                assert first_line(has) in fixed, where


@pytest.mark.parametrize("name", CORPUS)
def test_no_text_confirms_an_invented_claim_whose_subject_it_names(name: str) -> None:
    for place in EVIDENCE:
        case = offline(unsupported("ledger-db"))
        place(case, f"{CORPUS[name]} ledger-db")
        assert judged(case)["effective_verdict"] != "PASS", place.__name__


def rank(report: dict[str, Any]) -> int:
    return BETTER_FIRST.index(report["effective_verdict"])


def first_line(report: dict[str, Any]) -> str:
    return str(report["response"]["text"]).split("\n", maxsplit=1)[0]


def prompts(text: str) -> dict[str, str]:
    """What each role's model is sent where others wrote `text` in every place that is theirs."""
    ref = EvidenceRef(raw_path="lines[1]", text=text)
    call = ToolInvoked(
        invocation_id="101",
        tool_name="query_logs",
        arguments={"terms": [text]},
        retrieval_details=RetrievalDetails(evidence_refs=(ref,), matched=1, returned=1, dropped_reason=text),
    )
    tool = ToolSpec("query_logs", text)
    common: dict[str, Any] = {"lang": "en", "round": 1, "nonce": NONCE, "deadline_s": 60.0}
    execute = ExecutorBrief(
        question=text, attempt=0, plan=PlanMade(note=text), tools=(), tool_budget=0, invocations=(call,),
        retry_context={"missing": [text]}, **common,
    )  # fmt: skip
    mend = ExecutorBrief(
        question=text, attempt=1, plan=PlanMade(), tools=(), tool_budget=0, invocations=(call,),
        repair=Repair(request=text, previous_text=text), **common,
    )  # fmt: skip
    plan = PlanBrief(question=text, tools=(tool,), **common)
    verify = VerifierBrief(input={"question": text, "executor_answer": text, "tool_trace": [{"text": text}]}, **common)
    sent = {
        "planner": messages.planner(plan, load("chat-planner-prompt")),
        "executor": messages.executor(execute, load("chat-executor-prompt"), 100_000),
        "repair": messages.repair(mend, load("chat-repair-prompt"), 100_000),
        "verifier": messages.verifier(verify, load("chat-verifier-prompt")),
    }
    return {role: "\n".join(message["content"] for message in said) for role, said in sent.items()}


def fences(prompt: str) -> list[str]:
    """The fences of a prompt as their kinds, in order; every opening is followed by its own end."""
    kinds: list[str] = []
    inside = False
    for line in prompt.split("\n"):
        opening = re.match(rf"<<(\w+) {NONCE}[ >]", line)
        if line == f"<<end {NONCE}>>":
            assert inside
            inside = False
        elif opening:
            assert not inside
            inside = True
            kinds.append(opening[1])
    assert not inside
    return kinds


@pytest.mark.parametrize("name", CORPUS)
def test_no_text_leaves_its_fence_in_any_prompt(name: str) -> None:
    text = with_nonce(CORPUS[name], NONCE)
    plain = prompts("payments-pool timed out")
    for role, prompt in prompts(text).items():
        assert fences(prompt) == fences(plain[role]), role
        # The nonce stands in our own marks and words, and nowhere else.
        assert prompt.lower().count(NONCE) == plain[role].count(NONCE), role
        outside = re.sub(rf"<<(\w+) {NONCE}.*?<<end {NONCE}>>", r"<<\1>>", prompt, flags=re.DOTALL)
        assert outside == re.sub(rf"<<(\w+) {NONCE}.*?<<end {NONCE}>>", r"<<\1>>", plain[role], flags=re.DOTALL), role


@pytest.mark.parametrize("name", CORPUS)
def test_a_record_of_evidence_stays_one_visible_line_under_its_own_path(name: str) -> None:
    prompt = prompts(with_nonce(CORPUS[name], NONCE))["executor"]
    evidence = prompt.split("<<evidence ")[1].split("\n<<end ")[0].split("\n")[1:]
    assert len(evidence) == 1
    assert evidence[0].startswith("[101 lines[1]] ")
    assert evidence[0].replace("\t", "").isprintable()
