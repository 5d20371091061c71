"""The report of an attempt and what follows from it: REP, rulings 11 and 12."""

from __future__ import annotations

import pytest

from streams.events import ToolInvoked
from tests.answers import CALLS, POOL, RETRIES, TIMEOUT, answer, call, claim, evaluated

TWO = "What is the time-out, and how many retries are allowed?"
THREE = "What is the time-out? How many retries are allowed? What is the pool's maximum?"
GOOD = claim("c1", "The time-out is 3s.", TIMEOUT)
RETRY = claim("c2", "There are at most 2 retries.", RETRIES, "lines[1]")
SAID = {"user_facing_answer": "The time-out is 3s, with at most 2 retries."}


@pytest.mark.scenario("REP-1")
@pytest.mark.scenario("REP-3")
def test_an_answer_with_evidence_for_every_item_is_accepted() -> None:
    report, decision = evaluated(TWO, answer(GOOD, RETRY, **SAID))
    assert (report.supported, report.complete, report.citations_aligned, report.coverage) == (True, True, True, 1.0)
    assert decision == "accepted"
    assert (report.missing_claims, report.unsupported_citations, report.repair_request) == ((), (), "")


@pytest.mark.scenario("REP-1")
def test_every_item_is_reported_with_its_evidence() -> None:
    report, _ = evaluated(TWO, answer(GOOD, RETRY, **SAID))
    assert [item["claim_id"] for item in report.items] == ["c1", "c2"]
    assert report.items[1]["evidence"] == [{"source_invocation_id": "101", "raw_path": "lines[1]", "excerpt": RETRIES}]
    assert [part["claim_ids"] for part in report.parts] == [["c1"], ["c2"]]


@pytest.mark.scenario("REP-2")
def test_one_of_two_claims_gives_half() -> None:
    wrong = claim(
        "c2", "There are at most 2 retries.", "retry policy of the ledger client: at most 5 retries", "lines[1]"
    )
    report, decision = evaluated(TWO, answer(GOOD, wrong, **SAID))
    assert report.coverage == 0.5
    assert not report.supported
    assert decision == "repair"


@pytest.mark.scenario("REP-2")
@pytest.mark.scenario("REP-9")
def test_three_parts_two_of_them_answered_give_two_thirds() -> None:
    report, _ = evaluated(THREE, answer(GOOD, RETRY, **SAID))
    assert report.coverage == 0.6667
    assert not report.complete
    assert not report.supported
    assert report.missing_claims == ("What is the pool's maximum",)
    assert [part["status"] for part in report.parts] == ["answered", "answered", "unanswered"]


def test_without_a_confirmed_claim_nothing_is_covered_and_the_question_is_what_is_missing() -> None:
    unbound = claim("c1", "The time-out is 3s.", None)
    report, decision = evaluated("What is the time-out?", answer(unbound))
    assert (report.coverage, report.supported, report.complete) == (0.0, False, False)
    assert report.missing_claims == ("What is the time-out?",)
    assert decision == "repair"


def test_a_failed_binding_of_an_action_is_enough_to_be_unsupported() -> None:
    bound = {"tool_name": "query_logs", "source_invocation_id": "101", "raw_path": "lines[9]", "evidence_excerpt": POOL}
    action = {"action_text": "Raise the limit.", "reason": "", "evidence_bindings": [bound]}
    report, decision = evaluated("What is the time-out?", answer(GOOD, recommended_actions=[action]))
    assert report.coverage == 1.0
    assert not report.supported
    assert report.unsupported_citations == ("action-0[0] 101 lines[9]: evidence.raw_path",)
    assert "action-0" in report.repair_request
    assert decision == "repair"


@pytest.mark.scenario("EXE-5")
def test_an_extra_fact_of_the_text_is_an_item_without_support() -> None:
    said = "The time-out is 3s. It happened 417 times."
    report, decision = evaluated("What is the time-out?", answer(GOOD, user_facing_answer=said))
    assert report.coverage == 0.5
    assert report.missing_claims == ("It happened 417 times.",)
    assert "It happened 417 times." in report.repair_request
    assert decision == "repair"


@pytest.mark.scenario("REP-4")
def test_the_request_names_the_binding_the_rule_and_the_nearest_text_and_leaves_the_rest_alone() -> None:
    miscopied = claim(
        "c2", "There are at most 2 retries.", "retry policy of ledger client: at most 2 retries", "lines[1]"
    )
    report, decision = evaluated(TWO, answer(GOOD, miscopied, **SAID))
    assert decision == "repair"
    lines = report.repair_request.splitlines()
    assert "leave the rest" in lines[0]
    assert any(all(word in line for word in ("c2", "binding 0", "101 lines[1]", RETRIES)) for line in lines)
    assert "c1" not in report.repair_request


@pytest.mark.scenario("REP-8")
@pytest.mark.parametrize(
    "quote", [RETRIES, RETRIES.replace("2", "3")], ids=["quoted as it stands", "quoted with the wrong number"]
)
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_a_wrong_number_is_named_with_the_right_one_and_the_source_to_keep(quote: str, lang: str) -> None:
    wrong = claim("c2", "There are 3 retries.", quote, "lines[1]")
    report, decision = evaluated(TWO, answer(GOOD, wrong, user_facing_answer="3s and 3 retries"), lang=lang)
    assert not report.supported
    assert decision == "repair"
    line = next(line for line in report.repair_request.splitlines() if "c2" in line)
    told = ("wrong", "gives", "Keep the source") if lang == "en" else ("有误", "给出", "保留来源")
    assert all(word in line for word in told)
    assert "3 retries" in line or "3" in line
    assert "2" in line
    assert "101 lines[1]" in line


@pytest.mark.scenario("REP-8")
def test_a_wrong_number_in_a_chinese_claim_is_held_against_an_english_line() -> None:
    wrong = claim("c1", "账本客户端最多重试 3 次", RETRIES, "lines[1]")
    said = answer(wrong, user_facing_answer="最多重试 3 次")
    report, decision = evaluated("最多重试几次？", said, lang="zh-CN")
    assert not report.supported
    assert decision == "repair"
    assert "3 次" in report.repair_request
    assert "2" in report.repair_request
    assert "101 lines[1]" in report.repair_request


@pytest.mark.scenario("REP-7")
def test_a_record_that_shows_another_claim_is_misaligned() -> None:
    timeout = claim("c1", "The time-out is 3s.", POOL, "lines[2]")
    pool = claim("c2", "HikariPool-1 has active=20 of max=20, waiting=37.", POOL, "lines[2]")
    report, decision = evaluated(
        "What is the time-out?", answer(timeout, pool, user_facing_answer="The time-out is 3s.")
    )
    assert not report.citations_aligned
    assert report.unsupported_citations == ("c1[0] 101 lines[2]: misaligned",)
    assert "c2" in next(line for line in report.repair_request.splitlines() if "c1, binding 0" in line)
    assert decision == "repair"


@pytest.mark.scenario("REP-7")
@pytest.mark.parametrize(
    "other",
    [
        claim("c2", "HikariPool-1 has active=20 of max=50.", POOL, "lines[2]"),
        claim("c2", "The pool is full.", POOL, "lines[2]"),
    ],
    ids=["the record lacks one of the other's numbers", "the other states no number or name"],
)
def test_a_record_that_does_not_show_all_of_another_claim_is_not_misaligned(other: dict) -> None:
    timeout = claim("c1", "The time-out is 3s.", POOL, "lines[2]")
    report, _ = evaluated("What is the time-out?", answer(timeout, other, user_facing_answer="The time-out is 3s."))
    assert report.citations_aligned


@pytest.mark.scenario("REP-7")
@pytest.mark.parametrize(
    ("question", "said", "names"),
    [
        ("Has payment-service exhausted its pool?", "payment-service has exhausted its connection pool.", ""),
        ("payment-service 的连接池是否耗尽？", "payment-service 的连接池已耗尽。", ""),
        ("Has payment-service exhausted its pool?", "payment-service has exhausted its pool.", "HikariPool-1: "),
        ("Was payment-service full in the last 30 minutes?", "payment-service was full in the last 30 minutes.", ""),
    ],
    ids=["en", "zh", "the other names what nobody asked about", "a window"],
)
def test_what_the_question_names_is_nothing_that_a_record_must_have(question: str, said: str, names: str) -> None:
    full = claim("c1", said, POOL, "lines[2]")
    used = claim("c2", f"{names}20 of 20 connections are active.", POOL, "lines[2]")
    report, decision = evaluated(question, answer(full, used, user_facing_answer=said))
    assert report.citations_aligned
    assert decision == "accepted"


SERVICES = (call("101", "payment-service restarted", "ledger-db ran out of disk"),)


@pytest.mark.scenario("REP-7")
@pytest.mark.parametrize("swapped", [True, False])
def test_records_of_two_services_that_are_asked_about_are_not_to_be_swapped(swapped: bool) -> None:
    lines = ["payment-service restarted", "ledger-db ran out of disk"]
    first, second = (1, 0) if swapped else (0, 1)
    restarted = claim("c1", "payment-service did restart.", lines[first], f"lines[{first}]")
    full = claim("c2", "The disk of ledger-db is full.", lines[second], f"lines[{second}]")
    asked = "What happened to payment-service and ledger-db?"
    report, decision = evaluated(asked, answer(restarted, full, user_facing_answer="See the claims."), SERVICES)
    assert report.citations_aligned != swapped
    assert decision == ("repair" if swapped else "accepted")


@pytest.mark.scenario("REP-7")
def test_a_swap_is_found_where_every_claim_names_the_service_and_no_record_does() -> None:
    timeout = claim("c1", "payment-service has a time-out of 3s.", POOL, "lines[2]")
    pool = claim("c2", "payment-service has active=20 of max=20, waiting=37.", TIMEOUT)
    report, decision = evaluated("What is wrong with payment-service?", answer(timeout, pool, user_facing_answer="3s"))
    assert not report.citations_aligned
    assert [c.rpartition(" ")[2] for c in report.unsupported_citations] == ["misaligned", "misaligned"]
    assert decision == "repair"


@pytest.mark.scenario("REP-9")
@pytest.mark.parametrize(
    "question",
    [
        "What is the time-out of ledger-db? Please give the evidence.",
        "ledger-db 的超时是多少？请给出证据",
        "What is the time-out of ledger-db; answer briefly",
    ],
)
def test_what_a_question_says_of_the_answer_s_form_is_no_part_of_it(question: str) -> None:
    report, decision = evaluated(question, answer(GOOD))
    assert (report.complete, decision) == (True, "accepted")


@pytest.mark.scenario("REP-9")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_a_part_answered_only_by_an_unsupported_claim_counts_as_not_answered(lang: str) -> None:
    wrong = claim("c2", "There are 3 retries.", RETRIES, "lines[1]")
    report, _ = evaluated(TWO, answer(GOOD, wrong, user_facing_answer="3s and 3 retries"), lang=lang)
    assert not report.complete
    assert report.coverage == 0.5, "a part and the claim that answers it are one item"
    assert report.missing_claims == ("There are 3 retries.",)
    assert report.parts[1] == {
        "index": 1,
        "text": "how many retries are allowed",
        "status": "unsupported",
        "claim_ids": ["c2"],
    }
    assert "how many retries are allowed" in report.repair_request


@pytest.mark.scenario("REP-9")
def test_a_part_that_only_the_text_speaks_of_is_not_judged_and_counts_as_answered() -> None:
    report, decision = evaluated(TWO, answer(GOOD, user_facing_answer="The time-out is 3s. Retries are not recorded."))
    assert report.parts[1]["status"] == "not_judged"
    assert report.complete
    assert decision == "accepted"


def test_words_of_two_languages_are_not_compared() -> None:
    said = answer(GOOD, user_facing_answer="The time-out is 3s.")
    report, _ = evaluated("超时时间是多少，以及最多重试几次？", said)
    assert [part["status"] for part in report.parts] == ["not_judged", "not_judged"]
    assert report.complete


def test_a_chinese_part_is_found_missing_in_a_chinese_answer() -> None:
    said = answer(claim("c1", "超时时间为 3s", TIMEOUT), user_facing_answer="超时时间为 3s。")
    report, decision = evaluated("超时时间是多少，以及连接池上限是多少？", said, lang="zh-CN")
    assert not report.complete
    assert report.missing_claims == ("连接池上限是多少",)
    assert decision == "repair", "the records are English: whether one fits cannot be told"


@pytest.mark.scenario("REP-12")
def test_a_part_whose_words_no_record_has_is_not_repairable() -> None:
    report, decision = evaluated(
        "What is the time-out? Who approved the rollout?", answer(GOOD, user_facing_answer="3s")
    )
    assert not report.complete
    assert decision == "not_repairable"


@pytest.mark.scenario("REP-12")
def test_a_part_whose_words_a_record_has_is_repairable() -> None:
    report, decision = evaluated(TWO, answer(GOOD, user_facing_answer="The time-out is 3s."))
    assert "101 lines[1]" in report.repair_request
    assert decision == "repair"


NOTHING = (
    call("101", retrieval_details=None),
    call("101"),
    call("101", POOL, status="error", error="refused"),
    call("101", POOL, tool="lookup_knowledge", evidence_kind="knowledge"),
    call("101", POOL, evidence_kind="helper"),
)


@pytest.mark.scenario("REP-12")
@pytest.mark.parametrize("only", NOTHING, ids=["old data", "no record", "failed", "runbook", "helper"])
def test_a_session_without_evidence_of_the_incident_is_not_repairable(only: ToolInvoked) -> None:
    said = answer(claim("c1", "The pool has max=20.", "HikariPool-1 max=20"), user_facing_answer="It has max=20.")
    _, decision = evaluated("What is the pool's maximum?", said, (only,))
    assert decision == "not_repairable"


@pytest.mark.scenario("REP-12")
def test_an_invented_claim_is_repairable_as_long_as_the_answer_stands_without_it() -> None:
    invented = claim("c2", "The disk of billing-service is full.", "No space left on device")
    alone, decision = evaluated("What about billing-service?", answer(invented, user_facing_answer="The disk is full."))
    assert not alone.supported
    assert decision == "not_repairable"
    _, decision = evaluated("What is the time-out?", answer(GOOD, invented, user_facing_answer="The time-out is 3s."))
    assert decision == "repair"


WRONG_PLACE = {
    "tool_name": "query_logs",
    "source_invocation_id": "101",
    "raw_path": "lines[0]",
    "evidence_excerpt": TIMEOUT,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"raw_path": "lines[7]"},
        {"raw_path": None},
        {"tool_name": "query_metrics"},
        {"source_invocation_id": "999"},
        {"raw_path": "lines[1]"},
        {"evidence_excerpt": ""},
    ],
    ids=["wrong path", "no path", "wrong tool", "unknown id", "another record", "no excerpt"],
)
def test_a_binding_is_mendable_where_the_session_has_the_record(changes: dict) -> None:
    bound = claim("c1", "The time-out is 3s.", TIMEOUT, evidence_bindings=[WRONG_PLACE | changes])
    report, decision = evaluated("What is the time-out?", answer(bound, user_facing_answer="The time-out is 3s."))
    assert not report.supported
    assert decision == "repair"
    assert TIMEOUT in report.repair_request


@pytest.mark.scenario("EXE-8")
def test_a_claim_from_a_runbook_is_no_item_and_is_named_in_the_request() -> None:
    runbook = call("102", "a leak shows as time-out after 3s", tool="lookup_knowledge", evidence_kind="knowledge")
    bound = WRONG_PLACE | {
        "tool_name": "lookup_knowledge",
        "source_invocation_id": "102",
        "evidence_excerpt": "a leak shows as time-out after 3s",
    }
    leak = claim("c2", "A leak shows as time-out after 3s.", "", evidence_bindings=[bound])
    report, _ = evaluated("What is the time-out?", answer(GOOD, leak, user_facing_answer="3s"), (*CALLS, runbook))
    assert [item["claim_id"] for item in report.items] == ["c1"]
    assert not report.supported
    assert "claim.knowledge_only" in report.repair_request


def test_the_same_input_gives_the_same_report() -> None:
    wrong = claim("c2", "There are 3 retries.", RETRIES, "lines[1]")
    said = answer(GOOD, wrong, user_facing_answer="3s and 3 retries")
    assert evaluated(TWO, said) == evaluated(TWO, said)
