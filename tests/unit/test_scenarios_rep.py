"""The repair loop through the real roles: every end of it, in both rounds and under both policies (REP, rulings 11, 12)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handlers.agents.offline import OfflineAgents
from handlers.agents.protocol import AgentFailed, AgentReply, Agents, ExecutorBrief
from handlers.agents.scripted import ScriptedAgents
from handlers.case import read_case
from handlers.react import Reactor
from handlers.report import turn_report
from handlers.roles import ROLES
from handlers.workshop import TurnWorkshop
from prompts import templates
from streams.events import AgentReplied, AnswerEvaluated, FactsVerified, QuestionAsked
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
from tests.play import SESSION, Stage, judged, play, question_of

INVENTED = {"en": "The disk of billing-service is full.", "zh-CN": "billing-service 的磁盘已满。"}
ABOUT_DISK = {"en": "Is the disk of billing-service full?", "zh-CN": "billing-service 的磁盘满了吗?"}


def invented(lang: Lang) -> dict[str, Any]:
    """One claim on something that no record of the session speaks of, and no other that could stand without it."""
    return answer(claim("c1", INVENTED[lang], binding("No space left on device", "lines[0]")))


def ends(lang: Lang) -> dict[str, tuple[Any, list[Any], list[str], str | None]]:
    """Every end of a loop that the runtime gives: the first answer, its repairs, the decisions, the cap's reason."""
    bad, wrong, mended = unplaced(lang), miscopied(lang), good(lang)
    return {
        "accepted": (mended, [wrong], ["accepted"], None),
        "repaired once": (bad, [mended], ["repair", "accepted"], None),
        "a mis-copied quotation is repaired": (wrong, [mended], ["repair", "accepted"], None),
        "bound": (bad, [bad, bad], ["repair", "repair"], "exhausted"),
        "the last repaired answer is good but is not evaluated": (
            bad,
            [bad, mended],
            ["repair", "repair"],
            "exhausted",
        ),
        "script exhausted at once": (bad, [], ["exhausted"], "exhausted"),
        "script exhausted after one": (bad, [bad], ["repair", "exhausted"], "exhausted"),
        "malformed repair": (bad, ["no JSON at all"], ["repair"], None),
        "malformed repair, then a good re-ask": (bad, [["no JSON at all", mended]], ["repair", "accepted"], None),
    }


def bound(report: dict[str, Any]) -> list[str]:
    return [cap["reason"] for cap in report["verifier_evaluation"]["caps"] if cap["source"] == "repair"]


def decisions(report: dict[str, Any], number: int) -> list[str]:
    found = [e for e in report["evaluations"] if e["round"] == number]
    assert [e["attempt"] for e in found] == list(range(len(found)))
    return [e["decision"] for e in found]


@pytest.mark.scenario("REP-3", "REP-4", "REP-5", "REP-10", "REP-11")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("end", list(ends("en")))
def test_every_end_under_policy_cap_is_judged(end: str, lang: Lang, number: int) -> None:
    first, repairs, expected, reason = ends(lang)[end]
    loop = rnd(first, checked(lang), repairs=repairs)
    rounds = [loop] if number == 1 else [rnd(good(lang), unfounded(lang)), later(loop)]
    report = judged(case(*rounds, lang=lang))
    assert report["rounds"] == len(report["route"]) == len(report["attempts"]) == number
    assert decisions(report, number) == expected
    drafted = 1 + len(repairs) if end != "accepted" else 1
    assert report["attempts"][-1] == drafted
    assert bound(report) == ([reason] if reason else [])
    insufficient = reason is not None
    assert (report["response"]["fallback_reason"] == "evidence_insufficient") == insufficient
    malformed = end == "malformed repair"
    assert (report["verifier_evaluation"]["executor_output_parse_status"] == "malformed") == malformed
    parse = [cap["source"] for cap in report["verifier_evaluation"]["caps"] if cap["source"] == "parse"]
    assert parse == (["parse"] if malformed else [])
    effective = "LOW_CONFID" if insufficient or malformed else "PASS"
    assert report["effective_verdict"] == effective
    assert report["response"]["kind"] == ("answer" if effective == "PASS" else "disclaimer")
    assert report["exit_code"] == {"PASS": 0, "LOW_CONFID": 10}[effective]


@pytest.mark.scenario("REP-6", "REP-10")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("end", list(ends("en")))
def test_every_end_without_acceptance_under_policy_fallback_ends_the_turn(end: str, lang: Lang, number: int) -> None:
    first, repairs, expected, reason = ends(lang)[end]
    loop = rnd(first, checked(lang), repairs=repairs)
    rounds = [loop] if number == 1 else [rnd(good(lang), unfounded(lang)), later(loop)]
    report = judged(case(*rounds, lang=lang, on_exhausted="fallback"))
    assert decisions(report, number) == expected
    if reason is None:
        assert report["response"]["fallback_reason"] is None
        assert report["effective_verdict"] is not None
        return
    response = report["response"]
    assert (response["kind"], response["fallback_reason"]) == ("degraded", "evidence_insufficient")
    assert report["route"][-1] == "degraded"
    assert report["exit_code"] == 20
    for name in ("effective_verdict", "groundedness_score", "verifier_evaluation"):
        assert report[name] is None
    # The last attempt was gated all the same; the channel keeps what an earlier round wrote.
    assert report["gatekeeper_result"]["severity"] == ("none" if "is good" in end else "low_confid")
    assert set(report["self_evaluation"]) == {"rule_evaluation", *(["verifier_evaluation"] if number == 2 else [])}
    assert templates(lang)("degraded/evidence_insufficient") in response["text"]
    assert response["gaps"] == response["missing_claims"]
    assert response["gaps"] and all(gap in response["text"] for gap in response["gaps"])


ELSEWHERE = {"en": POOL, "zh-CN": "连接池 HikariPool-1 等待=37"}


@pytest.mark.scenario("REP-12", "REP-6")
@pytest.mark.parametrize("policy", ["cap", "fallback"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("lang", LANGS)
def test_what_nothing_can_mend_stops_the_loop_and_spends_no_attempt(lang: Lang, number: int, policy: str) -> None:
    said = verdict("LOW_CONFID", fact(INVENTED[lang], "no_evidence", "c1"))
    loop = rnd(invented(lang), said, calls=[call("101", ELSEWHERE[lang])], repairs=[good(lang)])
    unread = rnd("no JSON at all", verdict("LOW_CONFID"), calls=[])
    rounds = [loop] if number == 1 else [unread, later(loop)]
    report = judged(case(*rounds, lang=lang, question=ABOUT_DISK[lang], on_exhausted=policy))
    assert decisions(report, number) == ["not_repairable"]
    assert report["attempts"] == [1] * number
    assert report["response"]["fallback_reason"] == "evidence_insufficient"
    assert templates(lang)("degraded/evidence_insufficient") in report["response"]["text"]
    assert report["response"]["kind"] == "degraded", "the gate says reject"
    if policy == "cap":
        assert bound(report) == ["not_repairable"]
        assert (report["effective_verdict"], report["exit_code"]) == ("REJECT", 20)
    else:
        assert (report["effective_verdict"], report["exit_code"]) == (None, 20)


@pytest.mark.scenario("REP-12")
@pytest.mark.parametrize("lang", LANGS)
def test_an_invented_number_is_not_repairable_whatever_language_the_records_are_in(lang: Lang) -> None:
    text = {"en": "payment-service gave up after 5 attempts.", "zh-CN": "payment-service 尝试 5 次后放弃。"}[lang]
    asked = {"en": "How many attempts did payment-service make?", "zh-CN": "payment-service 尝试了几次?"}[lang]
    said = answer(claim("c1", text, binding("gave up, attempt 5 of 5", "lines[0]")))
    judgement = verdict("LOW_CONFID", fact(text, "no_evidence", "c1"))
    report = judged(
        case(rnd(said, judgement, calls=[call("101", POOL)], repairs=[said, said]), lang=lang, question=asked)
    )
    assert decisions(report, 1) == ["not_repairable"]
    assert report["attempts"] == [1]


@pytest.mark.scenario("TPL-5", "REP-11")
@pytest.mark.parametrize("policy", ["cap", "fallback"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("lang", LANGS)
def test_an_empty_repair_is_the_agents_failure(lang: Lang, number: int, policy: str) -> None:
    loop = rnd(unplaced(lang), checked(lang), repairs=["", good(lang)])
    rounds = [loop] if number == 1 else [rnd(good(lang), unfounded(lang)), later(loop)]
    report = judged(case(*rounds, lang=lang, on_exhausted=policy))
    assert decisions(report, number) == ["repair"]
    assert report["response"]["kind"] == "degraded"
    assert report["response"]["fallback_reason"] == "agent_failed"
    assert report["effective_verdict"] is report["verifier_evaluation"] is report["groundedness_score"] is None
    assert report["route"] == (["degraded"] if number == 1 else ["extra_round", "degraded"])
    assert report["exit_code"] == 1


class Unwilling(ScriptedAgents):
    """A script's agents, whose Executor refuses or fails when it is asked for a repair."""

    def __init__(self, script: dict[str, Any], how: str) -> None:
        super().__init__(script, OfflineAgents())
        self.how = how

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        if brief.attempt == 0:
            return await super().execute(brief)
        if self.how == "failed":
            raise AgentFailed("the endpoint is down")
        return AgentReply("I cannot help with that.", finish_reason=self.how)


class UnwillingWorkshop(TurnWorkshop):
    how = ""

    async def agents(self, question: QuestionAsked) -> Agents:
        assert question.script is not None
        return Unwilling(await self._script(question.script), self.how)


class UnwillingStage(Stage):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def reactor(self) -> Reactor:
        workshop = UnwillingWorkshop(self.log, {}, lambda sources: {}, self.owners)
        workshop.how = self.how
        return Reactor(self.log, workshop, self.clock)


@pytest.mark.scenario("TPL-5")
@pytest.mark.parametrize("how", ["refusal", "content_filter", "failed"])
@pytest.mark.parametrize("policy", ["cap", "fallback"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_repair_that_is_refused_or_fails_is_the_agents_failure(how: str, policy: str, number: int) -> None:
    loop = rnd(unplaced(), checked())
    rounds = [loop] if number == 1 else [rnd(good(), unfounded()), later(loop)]
    report = judged(case(*rounds, on_exhausted=policy), UnwillingStage(how))
    assert decisions(report, number) == ["repair"]
    assert report["route"][-1] == "degraded"
    assert report["response"]["fallback_reason"] == "agent_failed"
    assert report["effective_verdict"] is None
    assert report["exit_code"] == 1
    assert ("verifier_evaluation" in report["self_evaluation"]) == (number == 2)


@pytest.mark.scenario("REP-10", "EXE-3")
@pytest.mark.parametrize("lang", LANGS)
def test_a_cap_belongs_to_its_round(lang: Lang) -> None:
    for first in (
        rnd(unplaced(lang), unfounded(lang)),
        rnd("no JSON at all", verdict("LOW_CONFID")),
        rnd(good(lang), ["no verdict", "still none"]),
    ):
        report = judged(case(first, later(rnd(good(lang), checked(lang))), lang=lang))
        assert report["route"] == ["extra_round", "answer"]
        assert report["verifier_evaluation"]["caps"] == []
        assert report["response"]["fallback_reason"] is None
        assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("REP-5")
@pytest.mark.parametrize("attempts", [0, 1, 2, 3, 5])
def test_the_bound_counts_evaluations(attempts: int) -> None:
    report = judged(case(rnd(unplaced(), checked(), repairs=[unplaced()] * 6), max_attempts=attempts))
    assert [e["decision"] for e in report["evaluations"]] == ["repair"] * attempts
    assert report["attempts"] == [attempts + 1]
    assert bound(report) == (["exhausted"] if attempts else [])
    assert report["response"]["fallback_reason"] == ("evidence_insufficient" if attempts else None)


@pytest.mark.scenario("REP-6")
@pytest.mark.parametrize("policy", ["cap", "fallback"])
def test_without_attempts_there_is_no_loop_and_no_bound(policy: str) -> None:
    report = judged(case(rnd(unplaced(), checked(), repairs=[good()]), max_attempts=0, on_exhausted=policy))
    assert (report["evaluations"], report["attempts"], bound(report)) == ([], [1], [])
    assert report["effective_verdict"] == "LOW_CONFID", "the gate's bound is still there"
    assert report["response"]["fallback_reason"] is None
    assert report["response"]["missing_claims"] == []
    assert judged(case(rnd(good(), checked()), max_attempts=0, on_exhausted=policy))["effective_verdict"] == "PASS"


@pytest.mark.scenario("REP-1")
@pytest.mark.parametrize("lang", LANGS)
def test_the_report_has_its_fields_and_evidence(lang: Lang) -> None:
    found = judged(case(rnd(miscopied(lang), checked(lang)), lang=lang))["evaluations"][0]
    assert {name: type(found[name]) for name in ("supported", "complete", "citations_aligned")} == {
        "supported": bool,
        "complete": bool,
        "citations_aligned": bool,
    }
    assert found["supported"] is False
    assert found["coverage"] == 0.5
    assert found["missing_claims"] == [TEXTS[lang]["c2"]]
    assert len(found["unsupported_citations"]) == 1
    assert all(
        word in found["unsupported_citations"][0] for word in ("c2", "101", "lines[1]", "evidence.excerpt_mismatch")
    )
    assert isinstance(found["repair_request"], str) and found["repair_request"]
    items = {item["text"]: item["evidence"] for item in found["items"]}
    assert items[TEXTS[lang]["c1"]] == [{"source_invocation_id": "101", "raw_path": "lines[0]", "excerpt": TIMEOUT}]
    assert items[TEXTS[lang]["c2"]] == []


THREE = {
    "en": "What is the time-out of ledger-db? How many retries are allowed? Who approved the rollout?",
    "zh-CN": "ledger-db 的超时是多少?最多重试几次?上线审批人是谁?",
}


@pytest.mark.scenario("REP-2", "REP-9")
@pytest.mark.parametrize("lang", LANGS)
def test_two_of_three_parts_give_two_thirds(lang: Lang) -> None:
    found = judged(case(rnd(good(lang), checked(lang)), lang=lang, question=THREE[lang]))["evaluations"][0]
    assert found["coverage"] == pytest.approx(2 / 3, abs=1e-4)
    assert (found["supported"], found["complete"]) == (False, False)
    unanswered = THREE[lang].rstrip("?").rpartition("?")[2].strip()
    assert found["missing_claims"] == [unanswered]
    assert unanswered in found["repair_request"]


@pytest.mark.scenario("REP-9")
@pytest.mark.parametrize("lang", LANGS)
def test_a_part_answered_by_an_unsupported_claim_alone_is_not_answered(lang: Lang) -> None:
    found = judged(case(rnd(unplaced(lang), checked(lang)), lang=lang))["evaluations"][0]
    assert found["complete"] is False
    assert found["coverage"] == 0.5, "the part and the claim are one item"
    assert QUESTION[lang].rstrip("?").rpartition("?")[2].strip() in found["repair_request"]


@pytest.mark.scenario("REP-9", "EXE-4")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("bound_too", [False, True])
def test_a_part_answered_by_a_claim_of_no_support_alone_is_not_answered(bound_too: bool, lang: Lang) -> None:
    said = good(lang)
    said["claims"][1]["support_level"] = "none"
    if not bound_too:
        said["claims"][1]["evidence_bindings"] = []
    found = judged(case(rnd(said, checked(lang)), lang=lang))["evaluations"][0]
    second = QUESTION[lang].rstrip("?").rpartition("?")[2].strip()
    assert (found["supported"], found["complete"]) == (False, False)
    assert found["coverage"] == 0.5, "two parts, one answered with evidence"
    assert found["missing_claims"] == [second]
    assert second in found["repair_request"]


@pytest.mark.scenario("REP-7")
@pytest.mark.parametrize("lang", LANGS)
def test_exchanged_citations_are_not_aligned(lang: Lang) -> None:
    said = good(lang)
    first, second = (c["evidence_bindings"] for c in said["claims"])
    said["claims"][0]["evidence_bindings"], said["claims"][1]["evidence_bindings"] = second, first
    report = judged(case(rnd(said, checked(lang)), lang=lang))
    found = report["evaluations"][0]
    assert found["citations_aligned"] is False
    cited = found["unsupported_citations"]
    assert any("c1" in text and "lines[1]" in text for text in cited)
    assert any("c2" in text and "lines[0]" in text for text in cited)
    assert found["supported"] is False


@pytest.mark.scenario("REP-7")
def test_a_citation_may_belong_to_a_claim_that_has_none() -> None:
    said = good()
    said["claims"][0]["evidence_bindings"] = said["claims"][1]["evidence_bindings"]
    said["claims"][1]["evidence_bindings"] = []
    found = judged(case(rnd(said, checked())))["evaluations"][0]
    assert found["citations_aligned"] is False
    assert any("c1" in text and "lines[1]" in text for text in found["unsupported_citations"])


@pytest.mark.scenario("REP-8")
@pytest.mark.parametrize("lang", LANGS)
def test_a_wrong_number_is_named_with_the_right_one_and_the_source(lang: Lang) -> None:
    wrong = TEXTS[lang]["c2"].replace("2", "3")
    said = good(lang)
    said["claims"][1]["claim_text"] = wrong
    said["user_facing_answer"] = f"{TEXTS[lang]['c1']} {wrong}"
    found = judged(case(rnd(said, checked(lang)), lang=lang))["evaluations"][0]
    assert found["supported"] is False
    assert found["missing_claims"] == [wrong]
    line = next(text for text in found["repair_request"].splitlines() if "c2" in text)
    assert "3" in line and "2" in line and "101 lines[1]" in line
    assert found["decision"] == "exhausted"


@pytest.mark.scenario("REP-8")
def test_a_tampered_quotation_names_both_numbers_and_the_source() -> None:
    found = judged(case(rnd(miscopied(), checked())))["evaluations"][0]
    assert "the number 9 is wrong" in found["repair_request"]
    assert "gives 2" in found["repair_request"]
    assert "Keep the source 101 lines[1]" in found["repair_request"]


@pytest.mark.scenario("REP-10")
@pytest.mark.parametrize("lang", LANGS)
def test_what_the_last_report_misses_is_an_input_and_a_fact_if_passed_over(lang: Lang) -> None:
    only_first = verdict("PASS", fact(TEXTS[lang]["c1"], claim_id="c1"))
    state = asyncio.run(play(case(rnd(unplaced(lang), only_first), lang=lang)))
    given = next(e.data for e in state.events if isinstance(e.data, FactsVerified))
    assert given.input["missing_claims"] == [TEXTS[lang]["c2"]]
    report = turn_report(state, state.turns[-1])
    facts = report["verifier_evaluation"]["facts_checked"]
    assert [f["verification"] for f in facts] == ["direct_evidence", "no_evidence"]
    assert facts[1]["is_critical"] and facts[1]["claim_id"] == "c2"
    assert report["groundedness_score"] == 0.5
    assert report["route"] == ["disclaimer"]
    assert len(report["response"]["gaps"]) == 1


@pytest.mark.scenario("REP-10")
def test_a_missing_claim_that_the_last_attempt_dropped_still_counts() -> None:
    dropped = answer(good()["claims"][0], user_facing_answer=TEXTS["en"]["c1"])
    report = judged(
        case(rnd(unplaced(), verdict("PASS", fact(TEXTS["en"]["c1"], claim_id="c1")), repairs=[unplaced(), dropped]))
    )
    facts = report["verifier_evaluation"]["facts_checked"]
    assert [(f["fact"], f["verification"]) for f in facts] == [
        (TEXTS["en"]["c1"], "direct_evidence"),
        (TEXTS["en"]["c2"], "no_evidence"),
    ]
    assert report["effective_verdict"] == "LOW_CONFID"


@pytest.mark.scenario("REP-10")
def test_the_verifier_labels_a_missing_claim_in_its_own_way() -> None:
    report = judged(case(rnd(unplaced(), checked("en", c2="indirect_support"))))
    assert [f["verification"] for f in report["verifier_evaluation"]["facts_checked"]] == [
        "direct_evidence",
        "indirect_support",
    ]
    assert report["response"]["gaps"] == []
    assert len(report["response"]["missing_claims"]) == 1
    assert report["response"]["missing_claims"][0] in report["response"]["text"], "REP-6: it names what is missing"


@pytest.mark.scenario("REP-6", "REP-12")
@pytest.mark.parametrize("lang", LANGS)
def test_a_rejected_answer_of_an_exhausted_loop_says_that_evidence_is_insufficient(lang: Lang) -> None:
    report = judged(case(rnd(miscopied(lang), checked(lang), repairs=[miscopied(lang)] * 2), lang=lang))
    assert report["effective_verdict"] == "REJECT"
    assert report["route"] == ["degraded"]
    assert report["response"]["fallback_reason"] == "evidence_insufficient"
    assert templates(lang)("degraded/evidence_insufficient") in report["response"]["text"]
    assert report["groundedness_score"] == 1.0, "a cap never changes the score"


@pytest.mark.scenario("REP-4", "REP-11")
def test_each_attempt_and_each_request_is_an_event() -> None:
    state = asyncio.run(play(case(rnd(unplaced(), checked(), repairs=[unplaced(), good()])), deliveries=2))
    kinds = [e.type for e in state.events]
    assert kinds.count("answer-drafted") == kinds.count("gate-judged") == kinds.count("rules-scored") == 3
    assert kinds.count("answer-evaluated") == 2
    asked = [e.data.kind for e in state.events if isinstance(e.data, AgentReplied) and e.data.role == "executor"]
    assert asked == ["first", "first", "repair", "repair"]
    requests = [e.data.report.repair_request for e in state.events if isinstance(e.data, AnswerEvaluated)]
    assert all("leave the rest of the answer as it is" in request for request in requests)
    assert all("101 lines[1]" in request and RETRIES in request for request in requests)


@pytest.mark.scenario("REP-11", "ROU-8")
def test_a_loop_goes_on_in_a_new_process_after_every_event_and_keeps_its_bound() -> None:
    raw = case(rnd(unplaced(), checked(), repairs=[unplaced()] * 4))
    whole = asyncio.run(play(raw))

    async def interrupted() -> SessionState:
        stage = Stage()
        await stage.ask(await question_of(stage, read_case(raw)))
        done = 0
        while done < len(events := await stage.log.read(SESSION)):
            done += 1
            for role in [
                r.name for r in ROLES.values() if events[done - 1].type in r.triggers and r.name != "deadline"
            ]:
                # Two workers race in processes of their own, and a third comes late.
                await asyncio.gather(stage.deliver(role, done), stage.deliver(role, done))
                await stage.deliver(role, done)
        return await stage.state()

    state = asyncio.run(interrupted())
    assert [e.type for e in state.events] == [e.type for e in whole.events]
    assert len({e.id for e in state.events}) == len(state.events)
