"""What a claim or an answer states that its evidence does not: numbers, units, identifiers, causes, extra facts."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.guards import (
    Session,
    absent_from_answer,
    claim_findings,
    denials,
    echo,
    evidence_part,
    extra_facts,
)
from streams.contract import Action, Binding, Claim, Contract, Hypothesis

POOL = "payments-pool - Connection is not available, request timed out after 30000ms (total=20, active=20, idle=0, waiting=37)"
GAUGE = 'hikaricp_connections_active{pool="payments-pool"} last=20 max=20'
QUESTION = "why does payment-service time out in the last 30 minutes?"


def claim(text: str, kind: str = "observation", level: str = "direct", *bindings: Binding) -> Claim:
    return Claim.model_validate(
        {
            "claim_id": "c1",
            "claim_type": kind,
            "claim_text": text,
            "support_level": level,
            "evidence_bindings": bindings,
        }
    )


def session(*evidence: str, question: str = QUESTION, tools: frozenset[str] = frozenset()) -> Session:
    return Session(question, "\n".join(evidence) if evidence else None, tools)


def rules(
    text: str, *lines: str, kind: str = "observation", level: str = "direct", queries: tuple[str, ...] = ()
) -> list[str]:
    found = claim_findings(claim(text, kind, level), lines, session(POOL, GAUGE, *lines), queries)
    return [f.rule for f in found]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("active reached its maximum of 20", GAUGE),
        ("payments-pool is full: 20/20", GAUGE),
        ("20 of 20 connections of payments-pool are in use", GAUGE),
        ("请求在 30 秒后超时，等待 37", POOL),
        ("a request timed out after 30s with 37 waiting", POOL),
        ("空闲连接为零个", POOL),
        ("no connection was idle: 0 idle", POOL),
        ("重试最多两次", "retry policy: at most 2 attempts"),
        ("failure rate 61%", "circuit-breaker ledger OPEN failureRate=61.0% threshold=50.0%"),
        ("at 10:42 on 2026-03-17 payments-pool was full", GAUGE),
        ("over the last 30 minutes payments-pool was full", GAUGE),
        ("最近半小时 payments-pool 已满", GAUGE),
        ("payment-service: payments-pool was full", GAUGE),
    ],
)
def test_a_claim_in_the_words_of_its_line_is_not_objected_to(text: str, line: str) -> None:
    assert rules(text, line) == []


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("重试了三次", "retry policy: at most 2 attempts", "claim.number_absent"),
        ("3 retries were made", "retry policy: at most 2 attempts", "claim.number_absent"),
        ("active reached 30", GAUGE, "claim.number_absent"),
        ("timed out after 3 s", POOL, "claim.number_absent"),
        ("timed out after 30 minutes", "timed out after 30s", "claim.unit_mismatch"),
        ("30 秒超时", "timed out after 30ms", "claim.unit_mismatch"),
        ("20% of the pool is in use", GAUGE, "claim.unit_mismatch"),
        ("memory limit 100MB", "limits: memory: 100Mi", "claim.unit_mismatch"),
        ("over the last 20 minutes it was full: 20", GAUGE, "claim.unit_mismatch"),
        ("idle for 30 minutes", GAUGE, "claim.number_absent"),
        ("reporting-pool has 20 active", GAUGE, "claim.identifier_absent"),
    ],
)
def test_a_claim_that_says_more_than_its_line_is(text: str, line: str, rule: str) -> None:
    assert rules(text, line) == [rule]


@pytest.mark.scenario("REP-8")
def test_the_sentence_names_the_wrong_number_and_what_the_evidence_gives() -> None:
    (found,) = claim_findings(claim("重试了三次"), ["retry policy: at most 2 attempts"], session("x"))
    assert (found.anchor, found.instead) == ("三次", ("2",))
    assert '"三次"' in found.message
    assert '"2"' in found.message


def test_a_claim_without_a_verified_line_has_none_of_its_numbers_there() -> None:
    assert rules("active reached 20 in payments-pool") == ["claim.number_absent", "claim.identifier_absent"]


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The deployment is pay-ledger-blue.", ["claim.identifier_absent"]),
        ("The deployment is pay-ledger-green.", []),
        ("The deployment ran out-of-memory, state-of-the-art as it is.", []),
        ("It uses write-ahead-logging.", []),
    ],
)
def test_a_compound_is_a_name_where_the_evidence_has_one_that_differs_in_one_part(text: str, found: list[str]) -> None:
    assert rules(text, "deployment pay-ledger-green keeps a write-ahead-log") == found


def test_any_of_the_claims_lines_may_have_it() -> None:
    assert rules("37 waiting, max 20 in payments-pool", GAUGE, POOL) == []


@pytest.mark.scenario("VER-5")
def test_an_identifier_of_another_line_is_low_and_one_of_no_evidence_is_reject() -> None:
    known = session(GAUGE, "ERROR ORA-00060 deadlock")
    assert [(f.rule, f.severity) for f in claim_findings(claim("ORA-00060 at 20"), [GAUGE], known)] == [
        ("claim.identifier_absent", "low_confid")
    ]
    assert [(f.rule, f.severity) for f in claim_findings(claim("ORA-00061 at 20"), [GAUGE], known)] == [
        ("claim.identifier_absent", "reject")
    ]


@pytest.mark.scenario("VER-5")
def test_without_evidence_text_the_reject_tier_is_not_run() -> None:
    found = claim_findings(claim("ORA-00061 was logged"), [], session())
    assert [(f.rule, f.severity, f.not_run) for f in found] == [
        ("claim.identifier_absent", "low_confid", False),
        ("claim.identifier_absent", "low_confid", True),
    ]


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("text", "question", "exempt"),
    [
        ("orders-pool is fine", "is orders-pool healthy?", True),
        ("ledger-db.prod.svc is up", "is ledger-db.prod.svc up?", True),
        ("orders-6d9f7c8b5d-k2m4x is up", "what about orders-6d9f7c8b5d-k2m4x?", True),
        ("ORA-00061 was logged", "did ORA-00061 occur?", False),
        ("4.13.0 is deployed", "is 4.13.0 deployed?", False),
        ("CHG-1 was rolled out", "was CHG-77 rolled out?", False),
        ("CHG-77 was rolled out", "was CHG-77 rolled out?", False),
        ("SQLException was thrown", "was SQLException thrown?", False),
        ("10.0.0.5 refused", "does 10.0.0.5 refuse?", False),
        ("it failed 5 times", "did it fail 5 times?", False),
    ],
)
def test_the_question_exempts_names_and_nothing_else(text: str, question: str, exempt: bool) -> None:
    found = claim_findings(claim(text), [GAUGE], session(GAUGE, question=question))
    assert (not found) is exempt


def test_the_name_of_a_tool_that_was_called_is_no_identifier() -> None:
    known = session(GAUGE, tools=frozenset({"query_metrics"}))
    assert claim_findings(claim("query_metrics shows 20"), [GAUGE], known) == ()
    assert claim_findings(claim("query_traces shows 20"), [GAUGE], known) != ()


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("text", "kind", "queries", "objected"),
    [
        ("no ORA-00060 was logged", "negative_observation", ("ORA-00060",), False),
        ("没有发现 ORA-00060", "negative_observation", ("ORA-00060",), False),
        ("no request took over 45 s", "negative_observation", ("duration > 45s",), False),
        ("no ORA-00060 was logged", "negative_observation", ("ORA-1",), True),
        ("no ORA-00060 was logged", "observation", ("ORA-00060",), True),
        ("no timeouts, ORA-00060 was logged", "negative_observation", ("ORA-00060",), True),
        ("ORA-00060 was logged", "negative_observation", ("ORA-00060",), True),
    ],
)
def test_a_negative_observation_may_name_what_it_denies(
    text: str, kind: str, queries: tuple[str, ...], objected: bool
) -> None:
    assert bool(rules(text, "hits=0 window=09:00..10:00 status=ok", kind=kind, queries=queries)) is objected


def test_what_a_negative_observation_denies_may_stand_in_the_question() -> None:
    assert denials(claim("no E11000", "negative_observation"), "any E11000?", ()).keys == {"E11000"}
    assert denials(claim("no E11000", "negative_observation"), "any errors?", ()).keys == frozenset()


@pytest.mark.scenario("GAT-12")
@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("requests time out because payments-pool has no connection available", "observation", POOL),
        ("requests time out because the pool is exhausted", "observation", "pool exhausted, so requests time out"),
        ("the slow query led to timeouts", "observation", "timeout caused by slow query on ledger_entry"),
        ("慢查询导致请求超时", "observation", "请求超时，慢查询耗时 9 秒"),
        ("slow statements on ledger_entry", "root_cause", "Caused by: slow statement on ledger_entry"),
        ("由于慢查询，连接池耗尽", "observation", "pool exhausted due to slow query"),
        ("ORA-00060 caused 41 s of waiting", "observation", "waited 41 s after ORA-00060"),
        ("ORA-00060 导致等待 41 秒", "observation", "waited 41 s after ORA-00060"),
        ("leaks", "root_cause", "Caused by: leak"),
        (
            "the pod was evicted because the node was low on memory",
            "observation",
            "Evicted: The node was low on resource: memory.",
        ),
        (
            "the query was cancelled because of a statement timeout",
            "observation",
            "canceling statement due to statement timeout",
        ),
        (
            "nginx returned 502 because upstream 10.0.3.7:8080 refused the connection",
            "observation",
            'connect() failed (111: Connection refused) while connecting to upstream, upstream: "http://10.0.3.7:8080/", status 502',
        ),
        (
            "the container was killed because it failed its liveness probe",
            "observation",
            "Container app failed liveness probe, will be restarted",
        ),
        (
            "the lock wait on orders triggered a rollback",
            "observation",
            "Lock wait timeout exceeded on orders; transaction rolled back",
        ),
        ("磁盘写满导致写入失败", "observation", "写入失败：磁盘已满"),
        ("the upgrade resulted in HTTP 503", "observation", "deploy v2.1.0 resulted in HTTP 503"),
        (
            "the termination reason is OOMKilled",
            "observation",
            "Last State: Terminated Reason: OOMKilled Exit Code: 137",
        ),
        ("退出原因是 OOMKilled。", "observation", "Last State: Terminated Reason: OOMKilled Exit Code: 137"),
        (
            "the SQLException was caused by a SocketTimeoutException",
            "observation",
            "x.JDBCConnectionException: y\nCaused by: java.sql.SQLException: z\nCaused by: java.net.SocketTimeoutException: Read timed out",
        ),
    ],
)
def test_a_line_that_shows_cause_and_effect_together_supports_a_cause(text: str, kind: str, line: str) -> None:
    assert "claim.causal_unsupported" not in rules(text, line, kind=kind)


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("requests time out because of a connection leak", "observation", POOL),
        ("connections leak", "root_cause", POOL),
        ("payments-pool is full because payments-pool leaks", "observation", GAUGE),
        ("慢查询导致请求超时", "observation", "请求超时"),
        ("由于慢查询，连接池耗尽", "observation", "pool exhausted, slow query"),
        ("a leak led to timeouts", "other", "retry caused by dns"),
        ("a leak led to timeouts", "other", "timeouts caused by dns"),
        ("slow statements", "root_cause", "Caused by: dns"),
        ("ORA-00060 导致等待 41 秒", "observation", "waited 42 s after ORA-00060"),
        ("ORA-00060 导致等待 41 秒", "observation", "waited 41 s"),
        ("20 leaked of 20 because 20 sockets", "observation", "20 connections"),
        ("the termination reason is OOMKilled", "observation", "Last State: Terminated Reason: Completed Exit Code: 0"),
        ("a full pool is the cause of the time-outs", "observation", GAUGE),
        ("the cause of the time-outs: a full pool", "observation", "time-outs"),
        ("the reason requests time out is the full pool", "observation", GAUGE),
        ("the time-out is a consequence of pool exhaustion", "observation", GAUGE),
        ("请求超时，是连接池耗尽所致", "observation", "请求超时"),
        ("请求超时是因连接池耗尽", "observation", "请求超时"),
        ("请求超时归咎于连接池耗尽", "observation", "请求超时"),
        ("连接池泄漏导致请求超时", "observation", "连接池请求超时"),
    ],
)
def test_a_symptom_alone_supports_no_cause(text: str, kind: str, line: str) -> None:
    assert "claim.causal_unsupported" in rules(text, line, kind=kind)


def test_an_unsupported_cause_is_low_only_under_direct_support() -> None:
    severities = {
        level: [f.severity for f in claim_findings(claim("a leak caused it", level=level), [GAUGE], session(GAUGE))]
        for level in ("direct", "indirect")
    }
    assert severities == {"direct": ["low_confid"], "indirect": ["none"]}


def test_cause_and_effect_must_stand_in_one_line() -> None:
    apart = "request timed out\nslow query on ledger_entry"
    assert "claim.causal_unsupported" in rules(
        "the slow query made the request time out because of ledger_entry", apart
    )


def answer(text: str, **parts: Any) -> Contract:
    return Contract(answer_version="executor_evidence_v2", user_facing_answer=text, **parts)


def invented(
    text: str, *, question: str = QUESTION, denied: frozenset[str] = frozenset(), contract: bool = True
) -> list[str]:
    found = absent_from_answer(
        [text], session(POOL, GAUGE, question=question), answer(text) if contract else None, denied
    )
    return [i.key for i in found]


@pytest.mark.scenario("VER-5")
def test_prose_may_name_only_what_stands_in_evidence_or_question() -> None:
    assert invented("payment-service 的 payments-pool 已满（20/20），30 秒后超时。") == []
    assert invented("payments-pool hit ORA-00060 on 10.1.2.3, twice ORA-00060.") == ["ORA-00060", "10.1.2.3"]
    assert invented("orders-service is down; SocketTimeoutException") == ["orders-service", "SocketTimeoutException"]


def test_prose_may_advise_a_setting_that_no_evidence_has() -> None:
    assert invented("set leak_detection_threshold in /etc/app.yaml, HikariCP maximumPoolSize") == []


@pytest.mark.scenario("VER-5")
def test_prose_may_repeat_a_denial_but_not_affirm_what_was_denied() -> None:
    denied = frozenset({"ORA-00060"})
    assert invented("没有发现 ORA-00060。", denied=denied) == []
    assert invented("ORA-00060 caused it.", denied=denied) == ["ORA-00060"]
    assert invented("没有发现 ORA-00061。", denied=denied) == ["ORA-00061"]


def test_malformed_prose_may_deny_what_the_question_asks_for() -> None:
    question = "did ORA-00060 occur?"
    assert invented("No ORA-00060 was found.", question=question, contract=False) == []
    assert invented("No ORA-00060 was found.", question=question) == ["ORA-00060"]
    assert invented("Yes, ORA-00060 occurred.", question=question, contract=False) == ["ORA-00060"]


@pytest.mark.scenario("EXE-5")
@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("payments-pool 已满（20/20）。", "ok"),
        ("The pool has 20 connections.", "ok"),
        ("过去 30 分钟 payment-service 超时。", "ok"),
        ("另外有 37 个请求在等待。", "extra"),
        ("The pool waits 20 ms.", "extra"),
        ("ledger-db was slow.", "extra"),
        ("ERR_CONN_RESET was seen.", "extra"),
        ("The pool is full.", "not_judged"),
        ("连接池已满。", "not_judged"),
        ("Raise leak_threshold to 5 s.", "ok"),
        ("需要 E11000 的日志。", "ok"),
        ("CHG-1 is a guess.", "ok"),
        ("query_metrics says so.", "ok"),
    ],
)
def test_a_sentence_with_an_anchor_that_the_contract_lacks_is_an_extra_fact(sentence: str, status: str) -> None:
    contract = answer(
        f"1. {sentence}",
        claims=(claim("payments-pool active 20 of 20", "observation", "direct", Binding(tool_name="query_metrics")),),
        hypotheses=(Hypothesis(hypothesis_text="perhaps CHG-1", needed_evidence=("rollout log",)),),
        recommended_actions=(Action(action_text="raise leak_threshold", reason="to 5 s"),),
        missing_info=("logs of E11000",),
    )
    (fact,) = extra_facts(contract, "why does payment-service time out in the last 30 minutes?")
    assert (fact.text, fact.status) == (sentence, status)


@pytest.mark.scenario("EXE-5")
def test_both_texts_are_judged_and_a_repeated_sentence_once() -> None:
    contract = answer("37 waited. It is full.", diagnosis_summary="37 waited. 41 failed.")
    facts = [(f.text, f.field, f.status, f.anchors) for f in extra_facts(contract, "?")]
    assert facts == [
        ("37 waited.", "user_facing_answer", "extra", ("37",)),
        ("It is full.", "user_facing_answer", "not_judged", ()),
        ("41 failed.", "diagnosis_summary", "extra", ("41",)),
    ]


def test_of_a_summary_only_what_stands_before_the_query_is_evidence() -> None:
    summary = 'hits=0 window=1h status=ok query={"terms": ["ORA-00060"]}'
    assert evidence_part("summary", summary) == "hits=0 window=1h status=ok "
    assert evidence_part("lines[1]", summary) == summary
    assert echo(summary) == '{"terms": ["ORA-00060"]}'
    assert evidence_part("summary", "subquery=3 hits=0") == "subquery=3 hits=0"
    assert echo("hits=0 query=a query=b") == "a query=b"
    assert echo("hits=0") == ""


def test_the_sentences_of_the_guards_name_what_they_object_to() -> None:
    known = session(GAUGE, "ERROR ORA-00060 deadlock")
    said = [f.message for f in claim_findings(claim("ORA-00060, ORA-00061, 20 s and 33"), [GAUGE], known)]
    assert said == [
        'the claim says "33", which is in none of its verified lines; they give "20"',
        "the claim names the error code ORA-00060, which is in none of its verified lines: bind the line that has it",
        "the claim names the error code ORA-00061, which is in no evidence of this session",
        'the claim says "20 s", its verified lines say "20": same digits, another unit',
    ]
    said = [f.message for f in claim_findings(claim("ORA-00060 of 7"), [], session())]
    assert said == [
        'the claim says "7", and has no verified line that could say so',
        "the claim names the error code ORA-00060, and has no verified line that could say so",
        "whether the error code ORA-00060 is invented could not be checked: the session has no evidence text",
    ]
