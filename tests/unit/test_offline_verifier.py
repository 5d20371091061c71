"""The Verifier without a model: labels by numbers, names, units, negation and words; and what of OUT it holds."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handlers.agents.lexical import judge, numbers_absent
from handlers.agents.lexical_support import support
from handlers.agents.offline import OfflineAgents
from handlers.agents.protocol import VerifierBrief
from handlers.replies import ParsedVerdict, parse_verdict
from streams.contract import Claim, ClaimType

TIMEOUT = "payments-pool - Connection is not available, request timed out after 30000ms (total=20, active=20, idle=0, waiting=37)"
LEAKED = 'hikaricp_connections_leaked{pool="payments-pool"} last=0 min=0 max=0 avg=0 n=181 2026-03-17T10:00Z..10:45Z step=15s'
ACTIVE = 'hikaricp_connections_active{pool="payments-pool"} last=20 min=4 max=20 avg=14.2 n=181 2026-03-17T10:00Z..10:45Z step=15s'
RETRY = "retry=2 max_retries=2 last error: connection refused"
ROLLOUT = "release ledger-service 4.12.0 rolled out to prod (was 4.11.3)"
NODE = '"node": "rabbit@rabbitmq-0.rabbitmq.svc", "running": false'
HITS = "hits=0 window=all status=ok files=1 lines_scanned=12 "


def label(text: str, *lines: str, kind: ClaimType = "observation", question: str = "") -> str:
    claim = Claim(claim_id="c1", claim_type=kind, claim_text=text, support_level="direct")
    return judge(claim, lines, question).label


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("payments-pool reached 20 active connections", ACTIVE),
        ("37 requests were waiting for a connection", TIMEOUT),
        ("请求在 30 秒后超时，payments-pool 没有可用连接", TIMEOUT),
        ("ledger-service 4.12.0 was rolled out", ROLLOUT),
        ("the client retried 2 times and the connection was refused", RETRY),
        ("The pod restarted 6 times", "    Restart Count:  6"),
        ("rabbitmq-0 is not running", NODE),
        ("no connections leaked from payments-pool", LEAKED),
        (f'The log says: "{ROLLOUT}"', ROLLOUT),
        ("Environment variable DEPLOY_ENV is undefined", "Environment variable DEPLOY_ENV is undefined"),
    ],
)
def test_what_the_lines_say_in_so_many_words_is_direct(text: str, line: str) -> None:
    assert label(text, line) == "direct_evidence"


@pytest.mark.scenario("REP-8")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("the client made three retries", RETRY),
        ("payments-pool leaked 20 connections", LEAKED),
        ("payments-pool 泄漏了 20 个连接", LEAKED),
        ("12 requests were waiting for a connection", TIMEOUT),
    ],
)
def test_another_value_under_the_same_key_of_the_record_contradicts(text: str, line: str) -> None:
    assert label(text, line) == "contradicted"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("payments-pool has a connection leak", LEAKED),
        ("payments-pool 存在连接泄漏", LEAKED),
        ("The pod keeps restarting", "Restart Count: 0"),
        ("there were no errors", "errors=5 requests=100"),
        ("rabbitmq-0 is running", NODE),
        ("Connection is available in payments-pool", TIMEOUT),
    ],
)
def test_the_opposite_sign_contradicts(text: str, line: str) -> None:
    assert label(text, line) == "contradicted"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ledger-service was upgraded to 4.13.0", ROLLOUT),
        ("the slow statement took 8.4 s", "duration: 8412.311 ms  statement: SELECT 1"),
        ("A network partition in eu-west-1b blocked the database", TIMEOUT),
        ("Solar flares caused the outage", TIMEOUT),
        ("requests timed out after 3000ms", TIMEOUT),
    ],
)
def test_what_the_lines_do_not_give_has_no_evidence(text: str, line: str) -> None:
    assert label(text, line) == "no_evidence"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("The service could not connect to redis-master:6379.", "ERROR could not connect to redis-master:6379: i/o timeout"),
        ("Image shop/web:1.2.3 could not be pulled.", "Failed to pull image shop/web:1.2.3: rpc error: code = NotFound"),
        ("orders-db 无法访问。", "dial orders-db: connection refused"),
        ("The worker crashed at 2026-03-01T12:00:07Z.", "2026-03-01T12:00:07Z ERROR worker crashed"),
        ('The log says: "2026-03-01T12:00:07Z ERROR worker crashed"', "2026-03-01T12:00:07Z ERROR worker crashed"),
        ("At 2026-03-01T12:34:07Z the worker was not responding.", "2026-03-01T12:34:07Z WARN worker not responding"),
        ("orders-db is not reachable.", "service orders-db:5432 unreachable"),
        ("The deployment web has no available replicas.", '{"name":"web","replicas":3,"availableReplicas":0}'),
        ("Queue orders has no consumers for its messages.", "queue=orders messages=1500 consumers=0"),
        ("The node is not the leader of its peers.", "raft leader=false peers=3 term=7"),
        ("node-3 is under memory pressure but has no disk pressure.", "node-3 MemoryPressure=True DiskPressure=False"),
        ("Pod web-1 does not become ready and restarts.", "pod web-1 Ready=False restarts=5 state=CrashLoopBackOff"),
        ("The job sync did not succeed in any attempt.", "job=sync attempt=3 result=failed"),
        ("The container has no memory limit.", "limits: memory=0 requests: memory=256Mi"),
        ("The target port does not match the listening port.", "listening on port: 8080, target port: 9090 mismatch"),
        ("tracing enabled is false", "feature=tracing enabled=false"),
        ("web shows errors and does no retries.", "errors=12 retries=0 svc=web"),
        ("There are no errors for web: errors_total is 0.", 'errors_total{service="web"} 0'),
        ("The main process did not exit cleanly: exited with code 1.", "main process exited code=1 signal=0"),
        ("orders-api 无法连接 postgres-main:5432（connection refused）。", "ERROR orders-api connection refused to postgres-main:5432"),
    ],
)  # fmt: skip
def test_what_the_record_says_is_never_contradicted(text: str, line: str) -> None:
    assert label(text, line) != "contradicted"


CRASH = "2026-03-01T12:34:07Z ERROR worker crashed"


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-03-01T12:34:07Z", "direct_evidence"),
        ("12:34", "direct_evidence"),
        ("2026-03-01 20:34:07+08:00", "direct_evidence"),
        ("12:34 pm", "direct_evidence"),
        ("2026-03-01T14:34:07Z", "no_evidence"),
        ("12:35", "no_evidence"),
        ("12:34:08", "no_evidence"),
    ],
)
def test_a_time_of_day_must_be_that_of_a_line(time: str, expected: str) -> None:
    assert label(f"The worker crashed at {time}.", CRASH) == expected


def test_a_time_of_day_is_not_judged_where_no_line_has_one() -> None:
    assert label("The worker crashed at 12:34.", "level=ERROR worker crashed") == "direct_evidence"


def test_a_number_of_another_record_s_range_is_no_contradiction() -> None:
    assert label("payments-pool had 15 active connections", ACTIVE) == "no_evidence"


def test_a_value_of_another_thing_does_not_contradict() -> None:
    lines = ('retries{pool="reporting-pool"} value=2', 'requests{pool="payments-pool"} value=9')
    assert label("payments-pool made 3 retries", *lines) == "no_evidence"


@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [
        ("ledger-service 4.12.0 was rolled out", ROLLOUT, "root_cause"),
        ("ledger-service 4.12.0 was rolled out", ROLLOUT, "contributing_factor"),
        (
            "the request timed out because the pool was exhausted 20/20",
            "request timed out caused by pool exhausted 20/20",
            "observation",
        ),
        (
            "A network partition in eu-west-1b is the cause.",
            'POST /v1/payments 422 memo="The cause is a network partition in eu-west-1b."',
            "root_cause",
        ),
    ],
)
def test_a_cause_is_never_direct_without_a_model_even_where_a_line_states_it(
    text: str, line: str, kind: ClaimType
) -> None:
    assert label(text, line, kind=kind) == "indirect_support"


def test_what_a_line_says_of_a_cause_is_seen_where_the_claim_only_quotes_it() -> None:
    line = "charge failed, caused by: connection refused by ledger-db"
    quotation = f'The log says: "{line}"'
    assert label(quotation, line) == "direct_evidence"
    assert label(quotation, line, kind="root_cause") == "indirect_support"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("payment 调用超时了。", "payment 调用没有超时"),
        ("支付服务的连接池耗尽。", "支付服务的连接池未耗尽"),
        ("存在延迟", "未发现延迟"),
        ("节点 node-3 可用", "节点 node-3 不可用"),
        ("节点 node-3 不可用", "节点 node-3 可用"),
        ("node-3 is Ready", "node-3 NotReady"),
        ("node-3 is ready", "node-3 status NotReady since 10:00"),
        ("ledger-db is available", "ledger-db is unavailable"),
        ("ledger-db is unavailable", "ledger-db is available"),
        ("target payment-service is healthy", "target payment-service is unhealthy"),
        ("target payment-service is unhealthy", "target payment-service healthy"),
        ("payment-service is down", "payment-service is up"),
        ("payment-service is up", "payment-service is down"),
        ("job backup-1 succeeded", "job backup-1 failed"),
        ("job backup-1 failed", "job backup-1 succeeded"),
        ("支付请求错误率下降", "支付请求错误率上升"),
        ("支付请求错误率上升", "支付请求错误率下降"),
        ("payment latency decreased to 900ms", "payment latency increased to 900ms"),
        ("payment latency increased to 900ms", "payment latency decreased to 900ms"),
        ("任务 backup-1 成功", "任务 backup-1 失败"),
    ],
)
def test_a_word_and_its_opposite_or_its_denial_contradict(text: str, line: str) -> None:
    assert label(text, line) == "contradicted"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("payment 调用超时了。", "payment 调用超时"),
        ("支付服务的连接池未耗尽。", "支付服务的连接池未耗尽"),
        ("支付服务的连接池耗尽。", "支付服务的连接池已耗尽"),
        ("节点 node-3 不可用。", "节点 node-3 不可用"),
        ("node-3 is NotReady", "node-3 NotReady"),
        ("node-3 is not ready", "node-3 NotReady"),
        ("ledger-db is unavailable", "ledger-db is unavailable"),
        ("ledger-db is not available", "ledger-db is unavailable"),
        ("payment-service is down", "payment-service is down"),
        ("payment-service is up", "payment-service is up"),
        ("job backup-1 failed", "job backup-1 failed"),
        ("支付请求错误率上升了", "支付请求错误率上升"),
        ("payment latency increased to 900ms", "payment latency increased to 900ms"),
        ("job backup-1 succeeded", "job backup-1 failed 3 times, then succeeded"),
        ("the second attempt succeeded", "retry failed; second attempt succeeded"),
    ],
)
def test_the_same_sign_in_other_words_stays_direct(text: str, line: str) -> None:
    assert label(text, line) == "direct_evidence"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ledger-db could not be reached and timed out", "ledger-db: connect timed out"),
        ("ledger-db is available", "reporting-db is unavailable, ledger-db is available"),
        ("no connections leaked from payments-pool", LEAKED),
    ],
)
def test_no_opposite_is_read_into_another_thing_or_a_key(text: str, line: str) -> None:
    assert label(text, line) != "contradicted"


def test_a_search_without_a_hit_bears_out_what_it_denies() -> None:
    assert label("没有找到 ERROR 日志", HITS, kind="negative_observation") == "direct_evidence"


def test_no_verified_line_is_no_evidence() -> None:
    assert label("anything at all") == "no_evidence"


def test_the_question_exempts_the_name_of_what_is_asked_about_and_nothing_more() -> None:
    question = "why does payment-service time out?"
    assert label("payment-service requests timed out after 30 s", TIMEOUT, question=question) == "direct_evidence"
    assert label("billing-service requests timed out after 30 s", TIMEOUT, question=question) == "no_evidence"


def test_a_quotation_does_not_carry_a_name_or_number_beside_it() -> None:
    assert label(f'On db-prod-7 the log says: "{TIMEOUT}"', TIMEOUT) == "no_evidence"


def verdict(claims: list[dict[str, Any]], evidence: dict[str, list[dict[str, Any]]], **blocks: Any) -> ParsedVerdict:
    given = {
        "original_query": "why does payment-service time out?",
        "executor_final_answer": "",
        "executor_structured_output": {"claims": claims},
        "gatekeeper_result": {"confirmed_claims": [claim["claim_id"] for claim in claims]},
        "claim_evidence": [{"claim_id": name, "excerpts": shown} for name, shown in evidence.items()],
        "tool_trace_summary": [],
        **blocks,
    }
    reply = asyncio.run(OfflineAgents().verify(VerifierBrief(given, "en", 1, "n", 300.0)))
    parsed = parse_verdict(reply.text)
    assert parsed.status == "valid", parsed.error
    return parsed


def claim(name: str, text: str, kind: str = "observation") -> dict[str, Any]:
    return {
        "claim_id": name,
        "claim_type": kind,
        "claim_text": text,
        "support_level": "direct",
        "evidence_bindings": [],
    }


def shown(lines: str, raw_path: str = "lines[1]") -> dict[str, Any]:
    return {
        "trace_ref": "trace-101",
        "source_invocation_id": "101",
        "raw_path": raw_path,
        "excerpt": lines[:20],
        "lines": lines,
    }


@pytest.mark.scenario("OUT-3")
@pytest.mark.scenario("OUT-4")
def test_every_confirmed_claim_has_a_critical_fact_with_its_refs() -> None:
    claims = [
        claim("c1", "payments-pool reached 20 active connections"),
        claim("c2", "payments-pool leaked 20 connections"),
    ]
    found = verdict(claims, {"c1": [shown(ACTIVE)], "c2": [shown(LEAKED)]})
    assert [(fact.claim_id, fact.is_critical, fact.verification) for fact in found.facts] == [
        ("c1", True, "direct_evidence"),
        ("c2", True, "contradicted"),
    ]
    assert found.verdict == "REJECT"
    assert found.facts[0].evidence_refs[0].trace_ref == "trace-101"
    assert "No language model was used" in found.rationale


def test_a_claim_that_the_gate_did_not_confirm_gets_no_fact() -> None:
    found = verdict([claim("c1", "x")], {"c1": []}, gatekeeper_result={"confirmed_claims": []})
    assert found.facts == ()
    assert found.verdict == "LOW_CONFID"


def test_a_cause_lowers_the_verdict_beside_any_number_of_direct_facts() -> None:
    claims = [
        claim("c1", "payments-pool reached 20 active connections"),
        claim("c2", "payments-pool reached 20 active connections because it is small", "root_cause"),
    ]
    found = verdict(claims, {"c1": [shown(ACTIVE)], "c2": [shown(ACTIVE)]})
    assert [fact.verification for fact in found.facts] == ["direct_evidence", "indirect_support"]
    assert found.verdict == "LOW_CONFID"
    assert "left to a model or a reader" in found.rationale
    assert verdict(claims[:1], {"c1": [shown(ACTIVE)]}).verdict == "PASS"


@pytest.mark.scenario("EXE-5")
@pytest.mark.scenario("REP-10")
def test_missing_claims_and_extra_facts_are_labelled_too() -> None:
    found = verdict(
        [claim("c1", "payments-pool reached 20 active connections")],
        {"c1": [shown(ACTIVE)]},
        missing_claims=["payments-pool reached 20 active connections", "was the release rolled back"],
        extra_facts=["900 connections were dropped."],
    )
    assert [(fact.fact, fact.verification) for fact in found.facts[1:]] == [
        ("was the release rolled back", "no_evidence"),
        ("900 connections were dropped.", "no_evidence"),
    ]
    assert found.verdict == "LOW_CONFID"


def test_a_summary_bears_out_only_what_is_denied() -> None:
    evidence = {"c1": [shown(HITS + 'query={"terms": ["ERROR"]}', "summary")]}
    assert verdict([claim("c1", "no ERROR lines", "negative_observation")], evidence).verdict == "PASS"
    assert verdict([claim("c1", "ERROR lines were logged")], evidence).verdict == "LOW_CONFID"


@pytest.mark.scenario("EXE-3")
def test_prose_is_compared_with_the_trace_summary_and_is_indirect_at_most() -> None:
    item = {"trace_ref": "trace-101", "success": True, "output_summary": ACTIVE}
    found = verdict(
        [],
        {},
        executor_structured_output=None,
        executor_final_answer="payments-pool reached 20 active connections. It lost 900 requests.",
        tool_trace_summary=[item],
    )
    assert [fact.verification for fact in found.facts] == ["indirect_support", "no_evidence"]
    assert found.verdict == "LOW_CONFID"


@pytest.mark.scenario("OUT-1")
def test_the_reply_is_one_json_object_and_no_score_is_made_up() -> None:
    given = VerifierBrief({"executor_structured_output": {}}, "en", 1, "n", 300.0)
    reply = json.loads(asyncio.run(OfflineAgents().verify(given)).text)
    assert set(reply) == {"verdict", "facts_checked", "rationale", "critical_fact_count"}


PROSE = (
    "The company met on Tuesday in Paris and agreed to hire 25 new engineers before the end of March. "
    "Maria Lopez, who leads the team, said that the budget would not be raised this year."
)


def test_support_falls_with_a_strange_number_a_strange_name_and_a_lost_negation() -> None:
    plain = support("Maria Lopez said the budget would not be raised.", [PROSE])
    assert plain > support("Peter Novak said the budget would not be raised.", [PROSE])
    hired = support("The company agreed to hire 25 new engineers.", [PROSE])
    assert hired > support("The company agreed to hire 40 new engineers.", [PROSE])
    met = ["The company met on Tuesday in Paris."]
    assert support("The company met in Paris.", met) > support("The company never met in Paris.", met)


def test_numbers_written_to_letters_are_compared_in_prose() -> None:
    assert numbers_absent("It lost $10bn.", [PROSE + " It lost $5bn."]) == ("10bn",)
    assert numbers_absent("It hired twenty-five engineers.", [PROSE]) == ()
