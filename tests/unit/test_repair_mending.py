"""REP-12 from both sides: one spoilt thing is mended as long as the session holds the record, and not without it."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.concepts import related, unrelated
from tests.ledger_case import Lang, answer, binding, case, claim, fact, rnd, verdict
from tests.mending_cases import (
    DENIED_ONLY,
    GOOD,
    LAG,
    LEAK,
    NONE_ORA,
    SPOILT,
    USED,
    Good,
    around,
    failed,
    records,
    spoilt,
)
from tests.play import judged

GRID = [
    pytest.param(good, how, id=f"{good.name}, {good.lang}, {how}")
    for good in GOOD
    for how in [*SPOILT, *(DENIED_ONLY if good.kind == "negative_observation" else ())]
    # Without a name or number of its own, the gate takes any failed call for a failed access.
    if (good.path, how) != ("error", "a failed call")
]


def decisions(report: dict[str, Any]) -> list[str]:
    return [e["decision"] for e in report["evaluations"] if e["round"] == 1]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: f"{good.name}, {good.lang}")
def test_the_good_answer_is_accepted_at_once(good: Good) -> None:
    report = judged(good.played(good.said(), (good.right, *around(good))))
    assert decisions(report) == ["accepted"], report["evaluations"]
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("REP-12", "REP-4")
@pytest.mark.parametrize(("good", "how"), GRID)
def test_what_the_session_holds_is_mended(good: Good, how: str) -> None:
    report = judged(good.played(spoilt(good, how), (good.right, *around(good))))
    assert decisions(report) == ["repair", "accepted"], report["evaluations"][0]
    assert report["attempts"] == [2]
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("REP-12")
@pytest.mark.parametrize(("good", "how"), GRID)
def test_what_the_session_does_not_hold_is_not_repairable(good: Good, how: str) -> None:
    report = judged(good.played(spoilt(good, how), around(good)))
    assert decisions(report) == ["not_repairable"], report["evaluations"][0]
    assert report["attempts"][0] == 1


BOTH = {
    "en": ("Does payment-service leak connections? Did ORA-00060 occur?", "No ORA-00060 was found."),
    "zh-CN": ("payment-service 有连接泄漏吗?是否出现过 ORA-00060?", "未发现 ORA-00060。"),
}
LEAKS = {
    "en": "payment-service leaks connections: 3 are held.",
    "zh-CN": "payment-service 存在连接泄漏，占用 3 个连接。",
}
HELD = records("1", "query_logs", "lines[0]", LEAK)
SEARCHED = records("2", "query_logs", "summary", NONE_ORA)


def two(lang: Lang) -> dict[str, Any]:
    texts = LEAKS[lang], BOTH[lang][1]
    return answer(
        claim("c1", texts[0], binding(LEAK, "lines[0]", "1")),
        claim("c2", texts[1], binding(NONE_ORA, "summary", "2"), kind="negative_observation"),
        user_facing_answer=" ".join(texts),
    )


def played_two(lang: Lang, spoilt_answer: dict[str, Any], *calls: dict[str, Any]) -> dict[str, Any]:
    facts = [
        fact(c["claim_text"], "direct_evidence", c["claim_id"], evidence_refs=[f"trace-{i + 1}"])
        for i, c in enumerate(two(lang)["claims"])
    ]
    loop = rnd(spoilt_answer, verdict("PASS", *facts), calls=list(calls), repairs=[two(lang)])
    return judged(case(loop, lang=lang, question=BOTH[lang][0]))


@pytest.mark.scenario("REP-12", "REP-9")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_an_unanswered_part_is_mended_where_a_search_answers_it(lang: Lang) -> None:
    said = two(lang)
    said["claims"].pop()
    said["user_facing_answer"] = LEAKS[lang]
    report = played_two(lang, said, HELD, SEARCHED)
    assert (decisions(report), report["attempts"]) == (["repair", "accepted"], [2])
    assert report["effective_verdict"] == "PASS"
    assert decisions(played_two(lang, said, HELD)) == ["not_repairable"]


@pytest.mark.scenario("REP-12", "EXE-5")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_a_number_of_the_text_or_of_a_claim_is_mended(lang: Lang) -> None:
    for place in ("text", "claim"):
        said = two(lang)
        if place == "text":
            said["user_facing_answer"] = said["user_facing_answer"].replace("3", "8")
        else:
            said["claims"][0]["claim_text"] = LEAKS[lang].replace("3", "8")
        report = played_two(lang, said, HELD, SEARCHED)
        assert (decisions(report), report["effective_verdict"]) == (["repair", "accepted"], "PASS"), place


@pytest.mark.scenario("REP-12")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_a_denial_bound_to_a_failed_call_is_mended_by_the_search_that_found_nothing(lang: Lang) -> None:
    said = two(lang)
    said["claims"][1]["evidence_bindings"] = [binding("timed out after 30s", "error", "3")]
    report = played_two(lang, said, HELD, SEARCHED, failed("3", "query_logs", "timed out after 30s"))
    assert (decisions(report), report["effective_verdict"]) == (["repair", "accepted"], "PASS")


LAGS = {
    "en": ("What is the lag of orders-cg? When does the certificate expire?", "The lag of orders-cg is 48213."),
    "zh-CN": ("orders-cg 的消费积压是多少?证书何时过期?", "消费组 orders-cg 的消费积压为 48213。"),
}


@pytest.mark.scenario("REP-12", "REP-9")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_a_part_that_no_record_speaks_of_is_not_repairable_in_either_language(lang: Lang) -> None:
    question, text = LAGS[lang]
    said = answer(claim("c1", text, binding(LAG, "result[0]", "1", "query_metrics")), user_facing_answer=text)
    loop = rnd(said, calls=[records("1", "query_metrics", "result[0]", LAG)], repairs=[said])
    report = judged(case(loop, lang=lang, question=question))
    assert (decisions(report), report["attempts"][0]) == (["not_repairable"], 1)


POOLS = {
    "en": (
        "Is the connection pool of payment-service exhausted?",
        "The connection pool of payment-service is exhausted.",
    ),
    "zh-CN": ("payment-service 的连接池是否耗尽?", "payment-service 的连接池已耗尽。"),
}


@pytest.mark.scenario("REP-12")
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
@pytest.mark.parametrize(("held", "decision"), [('cpu_usage{svc="order"} last=12', "not_repairable"), (USED, "repair")])
def test_an_unknown_id_is_mended_only_by_a_record_of_the_same_matter(lang: Lang, held: str, decision: str) -> None:
    question, text = POOLS[lang]
    said = answer(
        claim("c1", text, binding("pool exhausted", "result[0]", "99", "query_metrics")), user_facing_answer=text
    )
    loop = rnd(said, calls=[records("1", "query_metrics", "result[0]", held)], repairs=[said])
    assert decisions(judged(case(loop, lang=lang, question=question)))[0] == decision


@pytest.mark.scenario("REP-12")
def test_a_statement_that_the_list_does_not_know_cannot_be_told_and_is_left_to_the_repair() -> None:
    text = "payment-service 的优惠券被重复核销。"
    said = answer(claim("c1", text, binding("coupon", "lines[0]", "99")), user_facing_answer=text)
    loop = rnd(said, calls=[records("1", "query_logs", "lines[0]", "coupon redeemed again")], repairs=[said])
    assert decisions(judged(case(loop, lang="zh-CN", question="payment-service 怎么了?")))[0] == "repair"


@pytest.mark.parametrize(
    ("statement", "record"),
    [
        ("连接池已耗尽。", "HikariPool-1 active=20 max=20"),
        ("订单服务出现死锁。", "Lock wait: ORA-00060"),
        ("证书已过期。", "x509: notAfter=2026-03-01"),
        ("磁盘已满。", "write failed: No space left on device"),
        ("The disk is full.", "磁盘空间不足"),
        ("服务异常重启。", "Back-off restarting failed container"),
        ("内存溢出。", "OOMKilled, exit code 137"),
    ],
)
def test_words_of_two_languages_for_one_thing_are_related(statement: str, record: str) -> None:
    assert related(statement, record)
    assert not unrelated(statement, record)


@pytest.mark.parametrize(
    ("statement", "record", "told"),
    [
        ("磁盘已满。", "HikariPool-1 active=20 max=20", True),
        ("证书何时过期", LAG, True),
        ("未发现 ORA-00060。", "billing worker sent 14 invoices", True),
        ("优惠券被重复核销。", "billing worker sent 14 invoices", False),
        ("优惠券磁盘", "billing worker sent 14 invoices", True),
        ("优惠券核销使磁盘变满", "billing worker sent 14 invoices", True),
        ("优惠券被核销，磁盘已满", "billing worker sent 14 invoices", False),
        ("payment-service is unhealthy.", "磁盘空间不足", False),
    ],
)
def test_only_what_the_list_knows_is_told_apart(statement: str, record: str, told: bool) -> None:
    assert unrelated(statement, record) == told
