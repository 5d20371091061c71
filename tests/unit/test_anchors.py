"""What is a number, a unit, an identifier, a denial, a cause: in both languages, and what is none."""

from __future__ import annotations

from itertools import combinations
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.anchors import (
    absent_quantities,
    causal,
    denied_spans,
    fold,
    identifiers,
    joined,
    negated,
    quantities,
    readings_of_line,
    same,
    sentences,
    stands_in,
    windows,
)
from handlers.connectives import Causation, causation
from handlers.identifiers import scan
from handlers.wording import states_failed_access


def amounts(text: str) -> list[tuple[float, str | None]]:
    return [(float(q.value), q.unit) for q in quantities(text)]


def kinds(text: str) -> list[tuple[str, str]]:
    return [(i.kind, i.key) for i in identifiers(text)]


EQUAL = [
    ["三次", "3 次", "3 times", "three times", "thrice", "3"],
    [
        "30 秒",
        "30秒钟",
        "30s",
        "30 s",
        "30000ms",
        "30,000 ms",
        "30 seconds",
        "thirty seconds",
        "0.5 min",
        "半分钟",
        "30-second",
        "３０秒",
    ],
    ["30,000", "30000", "3万", "三万个", "30 thousand", "3e4"],
    ["90s", "1m30s", "1 分 30 秒", "1 minute 30 seconds", "1.5 分钟", "1m 30s"],
    ["二十个", "20", "twenty", "20 个"],
    ["两次", "2 times", "twice", "two", "at most 2", "2 次"],
    ["50%", "百分之五十", "50 percent", "50 ％", "50 per cent"],
    ["100MiB", "100 MiB", "100Mi", "102400KiB"],
    ["2 GB", "2000MB", "2000000 KB"],
    ["半小时", "30 分钟", "half an hour", "1800s"],
    ["一百零五个", "105"],
    ["1.5 million", "1500000", "150万"],
    ["twenty-one", "21"],
    ["10⁶", "1000000"],
]
EQUAL[1].remove("半分钟")


@pytest.mark.parametrize("group", EQUAL, ids=lambda g: g[0])
def test_the_same_amount_is_equal_however_it_is_written(group: list[str]) -> None:
    for one, other in combinations(group, 2):
        a, b = quantities(one), quantities(other)
        assert len(a) == len(b) == 1, (one, a, other, b)
        assert same(a[0], b[0]), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("30 s", "30 ms"),
        ("30 秒", "30 分钟"),
        ("30", "30 s"),
        ("61", "61%"),
        ("100 MB", "100 MiB"),
        ("20", "2"),
        ("3 次", "3 秒"),
        ("5 Mb", "5 MB"),
        ("-5", "5"),
        ("0", "0 s"),
    ],
)
def test_another_unit_or_value_is_not_equal(one: str, other: str) -> None:
    assert not same(quantities(one)[0], quantities(other)[0])


def test_a_share_is_its_percentage() -> None:
    assert same(quantities("61 %")[0], quantities("0.61")[0])
    assert not same(quantities("100%")[0], quantities("1")[0])


@pytest.mark.parametrize(
    "text",
    [
        "4.12.0",
        "v1.2.3-rc1",
        "10.0.0.5",
        "10.0.0.5:5432",
        "2026-03-17T09:00:00.123Z",
        "2026/03/17 09:00",
        "17/Mar/2026:09:00:00 +0000",
        "10:42",
        "09:00:11.204",
        "9 am",
        "March 17, 2026",
        "3 月 17 日 10 点 30 分",
        "2026 年",
        "第三次",
        "第 2 个",
        "the 3rd attempt",
        "1. restart\n2. scale",
        "Steps: 1. restart 2. scale",
        "（1）重启（2）扩容",
        "CHG-20931",
        "ORA-00060",
        "payment-7c9d8b6f5-ax0",
        "lines[12]",
        "as said in [1]",
        "p99 of V87, UTF-8, SHA-256, x86-64, HTTP/1.1, TLS 1.2, 5xx, IPv4",
        "Java 17",
        "十几次",
        "二三十个",
        "20 多次",
        "几十次",
        "一个服务",
        "one of the nodes",
        "once the pool is full",
        "三次握手",
        "三分之二",
        "N+1 query",
        "UTC+8",
        "request id 88231",
        "0x80070005",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "123e4567-e89b-12d3-a456-426614174000",
        "dozens of errors",
        "twice as slow",
    ],
)
def test_digits_that_are_no_amount_give_no_number(text: str) -> None:
    assert amounts(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTP 503", [(503, None)]),
        ("exit code 137", [(137, None)]),
        ("20/20", [(20, None), (20, None)]),
        ("20 of 20", [(20, None), (20, None)]),
        ("last=20 max=20 min=3", [(20, None), (20, None), (3, None)]),
        ("timed out after 30000ms (total=20, idle=0)", [(30, "s"), (20, None), (0, None)]),
        ("3-5 秒", [(3, "s"), (5, "s")]),
        ("10 to 20 ms", [(0.01, "s"), (0.02, "s")]),
        ("active=20，300 个", [(20, None), (300, None)]),
        ("重试了一次", [(1, None)]),
        ("only once", [(1, None)]),
        ("-5", [(-5, None)]),
        ("reached 20. Then 3 failed", [(20, None), (3, None)]),
        ("1,234.5 MB", [(1234.5e6, "B")]),
    ],
)
def test_amounts_in_a_sentence(text: str, expected: list[tuple[float, str | None]]) -> None:
    assert amounts(text) == expected


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        ("8.4 s", 'hikaricp_connections_usage_seconds_p95{pool="p"} last=8.4 max=9'),
        ("8400 ms", 'hikaricp_connections_usage_seconds_p95{pool="p"} last=8.4 max=9'),
        ("3.012 秒", '{"duration_ms": 3012}'),
        ("60 秒", "retry_in_s=60"),
        ("端口 3333", "dial prod-db:3333 refused"),
        ("5 秒", "took 5s 30ms"),
        ("一个", "1 pod"),
        ("93%", "ledger_db_cpu_ratio last=0.93"),
        ("0 次", "no errors were found"),
        ("0 errors", "没有错误"),
        ("0", "hits=0"),
        ("1 次", "retried once"),
    ],
)
def test_evidence_states_an_amount_by_key_series_or_denial(claim: str, line: str) -> None:
    assert absent_quantities(quantities(claim), [line]) == ()


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        ("3 retries", "at most 2 retries"),
        ("12 次", "09:12:44 retry"),
        ("8.4 ms", "usage_seconds last=8.4"),
        ("5 s", "requests_seconds_count{} 5"),
        ("0 errors", "3 errors"),
        ("20", "10.0.0.20:443 of payments-20"),
    ],
)
def test_evidence_does_not_state_what_only_looks_alike(claim: str, line: str) -> None:
    assert absent_quantities(quantities(claim), [line])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("在payment-service中出现ORA-00060错误", [("name", "payment-service"), ("error_code", "ORA-00060")]),
        (
            "E11000, 0x80070005 and ERR_CONN_RESET",
            [("error_code", "E11000"), ("error_code", "0x80070005"), ("error_code", "ERR_CONN_RESET")],
        ),
        (
            "SQLSTATE 40001；错误码 1045；ECONNREFUSED",
            [("error_code", "40001"), ("error_code", "1045"), ("error_code", "ECONNREFUSED")],
        ),
        ("java.sql.SQLTransientConnectionException", [("exception", "java.sql.SQLTransientConnectionException")]),
        ("NullPointerException、IOException", [("exception", "NullPointerException"), ("exception", "IOException")]),
        ("ledger-db.prod.svc.cluster.local:5432", [("host", "ledger-db.prod.svc.cluster.local:5432")]),
        ("prod-db:3333 unreachable", [("host", "prod-db:3333")]),
        ("payment-7c9d8b6f5-ax0", [("pod", "payment-7c9d8b6f5-ax0")]),
        ("10.0.0.5:5432 和 2001:db8::1", [("ip", "10.0.0.5:5432"), ("ip", "2001:db8::1")]),
        ("123E4567-e89b-12d3-a456-426614174000", [("id", "123e4567-e89b-12d3-a456-426614174000")]),
        ("trace 4bf92f3577b34da6a3ce929d0e0e4736", [("id", "4bf92f3577b34da6a3ce929d0e0e4736")]),
        (
            "commit a1b2c3d, CHG-20931, #4821, 编号 88231",
            [("id", "a1b2c3d"), ("id", "CHG-20931"), ("id", "4821"), ("id", "88231")],
        ),
        ("v1.2.3-rc1 and 4.12.0, version 4.12", [("version", "1.2.3-rc1"), ("version", "4.12.0"), ("version", "4.12")]),
        (
            "payments-pool on rabbitmq-0 in eu-west-1b",
            [("name", "payments-pool"), ("name", "rabbitmq-0"), ("name", "eu-west-1b")],
        ),
        (
            "hikaricp_connections_active in /var/log/app.log",
            [("symbol", "hikaricp_connections_active"), ("symbol", "/var/log/app.log")],
        ),
        ("see https://grafana.acme.com/d/x?y=12", [("host", "grafana.acme.com")]),
        ("payments\u2011pool ORA-\u200b00060", [("name", "payments-pool"), ("error_code", "ORA-00060")]),
    ],
)
def test_identifiers_are_found(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "read-only long-running out-of-memory time-out root-cause well-known end-to-end slow-query",
        "a self-service connection-pool behind a micro-service and a web-server in-cluster",
        "CPU JVM SQL HTTP OOMKilled CrashLoopBackOff HikariCP payment JSON",
        "UTF-8 SHA-256 ISO-8601 HTTP-2 GPT-4 TOP-10 SEV-1 x86-64 IPv4 P99 K8s S3 EC2",
        "30-second timeouts, 5-minute windows, a 3-node cluster, top-5 queries, day-2 work",
        "an Exception and an Error; e.g. this, i.e. that; Node.js",
        "读写分离、超时重试、连接池/线程池",
        "deadbeef 20000000b 1234567 1e100000",
        "2026-03-17T09:00:00.123Z 10:42 20/20 2026.03.17",
        "and/or, TCP/IP, CPU/memory",
    ],
)
def test_ordinary_words_are_no_identifiers(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    ("name", "line", "there"),
    [
        ("payment-service", "pod payment-service-7c9d8b6f5-ax0 restarted", True),
        ("payment-service", "old-payment-service is down", False),
        ("ledger-db", "ledger-db.prod.svc:5432", True),
        ("rabbitmq-0", "rabbitmq-01 left", False),
        ("java.sql.SQLException", "SQLException: closed", True),
        ("java.sql.SQLException", "org.acme.SQLException: closed", False),
        ("SQLException", "java.sql.SQLException: closed", True),
        ("version 4.12", "ledger-service 4.12.0", True),
        ("version 4.1", "ledger-service 4.12.0", False),
        ("4.12.0", "ledger-service:v4.12.0", True),
        ("4.12.0", "ledger-service 4.12.0-rc1", False),
        ("4.12.0", "14.12.0", False),
        ("10.0.0.5", "from 10.0.0.5:443.", True),
        ("10.0.0.5", "from 10.0.0.50", False),
        ("10.0.0.5:443", "host 10.0.0.5 port 443", True),
        ("10.0.0.5:443", "host 10.0.0.5\nport 443", False),
        ("DB.acme.com", "db.acme.com refused", True),
        ("ORA-00060", "ora-00060", False),
        ("ORA-0006", "ORA-00060", False),
        ("a1b2c3d", "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", True),
        ("123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000", True),
    ],
)
def test_an_identifier_stands_whole_or_not_at_all(name: str, line: str, there: bool) -> None:
    assert stands_in(identifiers(name)[0], joined([line])) is there


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("No ORA-00060 was found", ["ORA-00060"]),
        ("No errors such as ORA-00060, ORA-00061 or E11000 were found", ["ORA-00060", "ORA-00061", "E11000"]),
        ("没有发现 ORA-00060、E11000，但出现 ERR_X_RESET", ["ORA-00060", "E11000"]),
        ("The pool is not healthy, ORA-00060 was thrown", []),
        ("ORA-00060 did not occur, but E11000 did", ["ORA-00060"]),
        ("共享池不断报 ORA-00060", []),
        ("ORA-00060: 0 hits", ["ORA-00060"]),
        ("ORA-00060 零命中。", ["ORA-00060"]),
        ("查询 ORA-00060，结果为 0。", ["ORA-00060"]),
        ("查询 ORA-00060，没有命中。", ["ORA-00060"]),
        ("针对 ORA-00060，最近 30 分钟内，0 条结果。", ["ORA-00060"]),
        ("The search for ORA-00060, over 30 minutes, returned no hits.", ["ORA-00060"]),
        ("We searched the log for ORA-00060, nothing was found.", ["ORA-00060"]),
        ("ORA-00060, in the last 30 minutes, the result is empty.", ["ORA-00060"]),
        ("The search for ORA-00060, in all files, gave no hits within the last 30 minutes.", ["ORA-00060"]),
        ("ORA-00060 was found, no ORA-00061", ["ORA-00061"]),
        ("ORA-00060 was logged, no other errors.", []),
        ("ORA-00060 is in the log, nothing was found for others", []),
        ("ORA-00060 was logged 3 times, there were no hits", []),
        ("查询到 ORA-00060 出现 3 次，没有命中。", []),
        ("The search for ORA-00060 found it, but no hits.", []),
        ("The search for ORA-00060 hit. No results for E11000.", ["E11000"]),
        ("ORA-00060 未出现；E11000 出现 3 次", ["ORA-00060"]),
    ],
)
def test_a_denial_covers_its_own_clause_only(text: str, denied: list[str]) -> None:
    spans = denied_spans(text)
    assert [i.key for i in identifiers(text) if any(a <= i.start and i.end <= b for a, b in spans)] == denied


def test_negations_in_both_languages() -> None:
    assert all(
        map(
            negated,
            [
                "not available",
                "isn't",
                "isn’t",
                "no hit",
                "0 hits",
                "没有",
                "未发现",
                "无法",
                "0 条",
                "hits=0",
                "零命中",
                "结果为 0",
                "命中数为零",
                "hits: 0",
                "the result is empty",
            ],
        )
    )
    assert not any(
        map(
            negated,
            [
                "notable",
                "knot",
                "10 hits",
                "无论如何",
                "不断增长",
                "未来",
                "node",
                "退出码为 0",
                "结果为 0.5",
                "hits=05",
            ],
        )
    )


def test_causal_wording_in_both_languages() -> None:
    said = [
        "because",
        "caused by X",
        "due to",
        "led to",
        "导致",
        "因为",
        "引起",
        "triggered by",
        "root cause is X",
        "results in",
    ]
    assert all(map(causal, said))
    assert not any(
        map(causal, ["the cause is unknown", "before the release", "no cause was found", "becausement", "超时 3 次"])
    )


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("A because of B", "B", "A"),
        ("由于慢查询，连接池耗尽", "慢查询", "连接池耗尽"),
        ("Because B, A", "B", "A"),
        ("慢查询导致超时", "慢查询", "超时"),
        ("The reason requests time out is the full pool", "the full pool", "The  requests time out"),
        ("The cause of the time-outs: a full pool", "a full pool", "The  the time-outs"),
        ("A full pool is the cause of the time-outs", "A full pool", "the time-outs"),
        ("The time-out is a consequence of B", "B", "The time-out"),
        ("请求超时，是连接池耗尽所致", "连接池耗尽", "请求超时，"),
        ("请求超时，连接池耗尽所致", "连接池耗尽", "请求超时"),
        ("请求超时是因连接池耗尽", "连接池耗尽", "请求超时"),
        ("请求超时归咎于连接池耗尽", "连接池耗尽", "请求超时"),
        ("连接池耗尽是请求超时的原因", "连接池耗尽", "请求超时"),
        ("该回滚由死锁触发", "死锁", "该回滚"),
    ],
)
def test_a_causal_sentence_has_cause_and_effect(text: str, cause: str, effect: str) -> None:
    found = causation(text)
    assert found is not None
    assert (found.cause.strip(), found.effect.strip()) == (cause, effect)


@pytest.mark.parametrize("text", ["导致", "plain", "because"])
def test_a_connective_alone_has_no_sides(text: str) -> None:
    assert causation(text) is None


def test_the_reason_is_a_value_of_a_field() -> None:
    assert causation("The termination reason is OOMKilled") == Causation(" OOMKilled", "The termination  ", field=True)


@pytest.mark.parametrize(
    "text",
    [
        "Searching for ORA-00060 gave 0 results in 30 minutes.",
        "The query returned results in 4 seconds.",
        "There are no results in the log.",
        "Alert HighErrorRate was triggered.",
        "Alert HighErrorRate triggered 3 times.",
        "告警 HighErrorRate 触发了 3 次。",
        "告警 HighErrorRate 于 10:42 触发。",
        "It is not known what led to the time-out.",
        "The log does not show what caused the rollback.",
        "Whether the release caused the time-outs is unknown.",
        "暂不清楚是什么导致了超时。",
        "是否由发布导致超时尚不清楚。",
        "The cause is still unclear.",
        "No cause of the time-outs was found.",
        "根因尚未确定。",
        "该问题的原因是什么尚不清楚",
        "The question is why payment-service timed out.",
        "It is unclear why the pod was killed, and nobody knows why it is slow.",
    ],
)
def test_what_says_no_cause_is_not_causal(text: str) -> None:
    assert not causal(text)


@pytest.mark.parametrize(
    "text",
    [
        "Timeouts result in errors.",
        "The release resulted in 3 errors.",
        "The deploy of v2.1.0 resulted in HTTP 503.",
        "The lock wait triggered a rollback.",
        "This is what caused the time-outs.",
        "错误率升高触发告警",
        "It is not known what led to the time-out. ORA-00060 caused the rollback.",
        "是因连接池耗尽",
        "连接池耗尽是超时的根因。",
        "Pool exhaustion was the most likely cause of the time-outs.",
        "The expired certificate is why payment-service could not reach ledger-db.",
        "The full pool explains why requests wait.",
        "The leak was to blame for the restart.",
    ],
)
def test_a_cause_is_seen_in_other_wordings(text: str) -> None:
    assert causal(text)


def test_failed_accesses_are_recognised() -> None:
    assert all(
        map(
            states_failed_access,
            ["was refused", "Forbidden", "not found", "timed out", "failed", "被拒绝", "超时", "失败", "不存在"],
        )
    )
    assert not states_failed_access("the pool is full")


def test_time_windows_are_those_durations_one_looks_over() -> None:
    wordings = ["last 30 minutes", "最近半小时", "过去 30 分钟", "a 30 min window", "30 分钟内", "within 30 minutes"]
    assert [[float(q.value) for q in windows(text)] for text in wordings] == [[1800.0]] * len(wordings)
    assert windows("timed out after 30 minutes, 3 times") == ()


def test_sentences_end_in_both_languages_and_not_inside_names() -> None:
    text = "A is 4.12.0. B at a.b.com! 好。是吗？ok\n- item one\n2. item two"
    assert sentences(text) == ("A is 4.12.0.", "B at a.b.com!", "好。", "是吗？", "ok", "item one", "item two")


@given(st.text(max_size=80))
def test_folding_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)


ODD = st.text(
    alphabet=st.sampled_from("0123456789.,-:/%秒次个十百万一两 smhkMBORA-E_ 第年月aé⁶\n()[]#@v\u200b\x1b"), max_size=40
)


@given(ODD)
def test_any_text_can_be_read_and_offsets_hold(text: str) -> None:
    folded = fold(text)
    for found in (*quantities(text), *identifiers(text)):
        assert folded[found.start : found.end] == found.text
    readings_of_line(text)
    denied_spans(text)
    sentences(text)


@given(ODD)
def test_a_text_states_its_own_amounts_and_identifiers(text: str) -> None:
    assert absent_quantities(quantities(text), [text]) == ()
    assert all(stands_in(i, fold(text)) for i in identifiers(text))


@pytest.mark.parametrize(
    "text",
    [
        "1e999999 s",
        "9" * 5000 + " MB",
        "10" + "⁹" * 5000,
        "123456789012345⁹⁹",
        "万" * 5000 + "个",
        "1e-99 ms",
        "二" * 5000,
    ],
)
def test_absurd_numbers_are_read_without_harm(text: str) -> None:
    assert len(quantities(text)) <= 1
    assert absent_quantities(quantities(text), [text]) == ()


@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "a-",
        "a_",
        "1,",
        "-1",
        "(1)",
        "1. ",
        "a/",
        "::",
        "k_ms=1 ",
        "no a-1,",
        "一",
        "root cause of ",
        "http://a",
        "Aa",
    ],
)
def test_reading_costs_no_more_than_the_length(piece: str) -> None:
    """Ten times the text may cost little more than ten times the work, so no shape backtracks over what it has read."""

    def cost(length: int) -> float:
        text = piece * (length // len(piece))
        start = process_time()
        scan.__wrapped__(text)
        denied_spans(text)
        readings_of_line(text)
        return process_time() - start

    cost(1000)
    assert cost(30_000) < 60 * max(cost(3000), 0.005)
