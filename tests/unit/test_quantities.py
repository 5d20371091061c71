"""Numbers of a claim over the lines of many systems: the honest are clean, the tampered refused (gate.md, REP-8)."""

from __future__ import annotations

import re

import pytest

from handlers.anchors import Quantity, fold, quantities, windows
from handlers.guards import Session, claim_findings
from handlers.key_units import unit_of_key
from streams.contract import Claim

ABSENT, MISMATCH = "claim.number_absent", "claim.unit_mismatch"
POOL = "payments-pool active=20 max=20"


def rules(text: str, line: str, question: str = "?") -> list[str]:
    claim = Claim.model_validate(
        {
            "claim_id": "c1",
            "claim_type": "observation",
            "claim_text": text,
            "support_level": "direct",
            "evidence_bindings": [],
        }
    )
    return [found.rule for found in claim_findings(claim, [line], Session(question, line))]


def number_rules(text: str, line: str, question: str = "?") -> list[str]:
    return [rule for rule in rules(text, line, question) if rule in {ABSENT, MISMATCH}]


NUMBERED = {
    "Order 8812 failed.": [
        "order_id=8812 failed",
        "order-8812 failed",
        "order_8812 failed",
        "GET /orders/8812 500",
        "order id 8812",
        "订单号 8812",
        "订单编号：8812",
        "POST https://shop.example.com/orders/8812 500",
    ],
    "订单 8812 失败。": ["order_id=8812 failed", "order-8812 failed", "/orders/8812 failed", "订单编号：8812 失败"],
    "Request 99812 failed.": ["request_id=99812", "requestId=99812"],
    "Customer 4711 is blocked.": ["customer_id=4711"],
    "Job 5521 failed.": ["job #5521 failed"],
    "用户 8812 登录失败。": ["用户ID：8812 登录失败"],
    "Error 1040 was raised.": ["error code: 1040", "errno=1040", "error_code=1040"],
    "返回码 5003。": ["错误码：5003"],
    "PID 1234 exited.": ["nginx[1234]: exited"],
    "The index was 5 with a length of 3.": ["index out of range [5] with length 3"],
    "It was thrown in line 88.": ["at com.acme.LedgerService.post(LedgerService.java:88)"],
    "Line 42 is wrong.": ["config.yaml:42: wrong"],
    "Partition 3 lags.": ["orders-3 lag=15", "orders[3] lag=15"],
    "Broker 2 died.": ["broker-2 died", "broker2 died", "kafka-2 died"],
    "Attempt 3 failed.": ["attempt #3 failed", "3rd attempt failed", "[attempt-3] failed"],
    "重试三次均失败。": ["第三次重试失败", "第3次重试失败"],
    "The port is 8080.": ["GET http://api.example.com:8080/x refused", "10.0.0.1:8080 refused"],
    "It exited with 1.": ["exited abnormally with [1]"],
    "It began at 1773744131.": ["alert @1773744131"],
}


@pytest.mark.parametrize(("text", "line"), [(text, line) for text, lines in NUMBERED.items() for line in lines])
def test_digits_that_number_a_thing_in_evidence_support_the_number_of_a_claim(text: str, line: str) -> None:
    assert number_rules(text, line) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Order 8813 failed.", "order_id=8812 at /orders/8812"),
        ("Attempt 4 failed.", "attempt #3 failed"),
        ("重试四次均失败。", "第三次重试失败"),
        ("The port is 8081.", "GET http://api.example.com:8080/x refused"),
        ("Broker 3 died.", "kafka-2 died"),
    ],
)
def test_another_number_than_the_things_is_absent(text: str, line: str) -> None:
    assert number_rules(text, line) == [ABSENT]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("It failed 20 times.", "10.0.0.20:443 of payments-20"),
        ("3 retries", "span 123e4567-e89b-12d3-a456-426614174003 at 2026-03-17T03:03:03Z"),
        ("It retried 4 times.", "v4.12.0 on 10.4.4.4"),
        ("7 pods failed", "payment-7c9d8b6f5-ax7 4bf92f3577b34da6a3ce929d0e0e4736"),
        ("Partition 7 failed", "payment-7c9d8b6f5-ax7 4bf92f35-77b3-4da6-a3ce-929d0e0e4736"),
        ("2 brokers are down", "kafka-2 is down"),
    ],
)
def test_a_count_is_not_supported_by_a_name_a_hash_a_version_or_a_time(text: str, line: str) -> None:
    assert number_rules(text, line) == [ABSENT]


BESIDE = {
    "5 times over 10 minutes": ["2m (x5 over 10m) FailedMount"],
    "345 seconds behind": ["Seconds_Behind_Master: 345", "replication lag seconds=345"],
    "It took 250 ms.": [
        "duration.ms=250",
        "took(ms): 250",
        "duration [ms]: 250",
        "duration (ms) = 250",
        "durationMs=250",
        '{"elapsedMillis": 250}',
        "DURATION_MS=250",
    ],
    "It uses 512 MB.": ["Memory (MB): 512", "memory_mb=512", "memoryMB=512"],
    "12 GB are free.": ["free_gb=12"],
    "2 TiB are free.": ["free_tib=2"],
    "It times out after 5 minutes.": ["timeout_min=5", "max.poll.interval.ms=300000"],
    "300000（5 分钟）": ["max.poll.interval.ms (300000)"],
    "2147483648 bytes": ["Average=2147483648 Unit=Bytes", '{"Average": 2147483648,\n "Unit": "Bytes"}'],
    "最大堆为 4G。": ["-Xmx4g -XX:+UseG1GC"],
    "The heap is 2 GB.": ["-Xms512m -Xmx2g"],
    "The timeout is 30 s.": ["connectionTimeout...............30000 ms"],
    "3 s to 5 s": ["delay 3s..5s"],
    "It waited 30 000 ms.": ["took 30 s", "took 30\u202f000 ms", "took 30'000 ms"],
    "It waited 30\u2009000 ms.": ["took 30 s"],
    "It waited 30'000 ms.": ["took 30,000 ms"],
}


@pytest.mark.parametrize(("text", "line"), [(text, line) for text, lines in BESIDE.items() for line in lines])
def test_a_unit_may_stand_beside_the_number_in_evidence(text: str, line: str) -> None:
    assert number_rules(text, line) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("It waited 3 seconds.", "client gave up retries=3"),
        ("It waited 20 s.", "replicas=20"),
        ("耗时 57 秒。", "errors=57"),
        ("It took 12 s.", "hits=12"),
        ("It took 37 seconds.", "threads: 37"),
        ("It took 30 ms.", "items=30"),
        ("It took 30 ms.", "params=30"),
        ("It took 20 ns.", "connections=20"),
        ("It used 5 MB.", "numb=5"),
        ("It took 5 minutes.", "pool_min=5"),
        ("It took 3 ms.", "retries=3 duration_ms=250"),
        ("It retried 30 times.", "timeout=30s"),
        ("重试了 30 次。", "timeout=30s"),
        ("It took 8 s.", "8 requests_per_second"),
        ("Retries: 3.", "retries=2 backoff=3s"),
        ("The retries were 3.", "retries=2 backoff=3s"),
        ("重试次数为 3。", "重试 2 次，间隔 3s"),
    ],
)
def test_digits_of_another_unit_or_of_none_are_a_mismatch(text: str, line: str) -> None:
    assert number_rules(text, line) == [MISMATCH]


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("duration_ms", "ms"),
        ("timeoutSeconds", "seconds"),
        ("retry_in_s", "s"),
        ("sizeMB", "mb"),
        ("Seconds_Behind_Master", "seconds"),
        ("max.poll.interval.ms", "ms"),
        ("cpu_usage_percent", "percent"),
        ("timeout_min", "min"),
        ("pool_min", None),
        ("retries", None),
        ("s", None),
        ("min", None),
        ("requests_seconds_count", None),
        ("requests_per_seconds", None),
        ("params", None),
        ("pods", None),
    ],
)
def test_a_key_has_a_unit_as_a_piece_of_its_name(key: str, unit: str | None) -> None:
    assert unit_of_key(key) == unit


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("The timeout is 30000.", "connectionTimeout=30000ms"),
        ("The timeout is 30000 (ms).", "connectionTimeout=30000ms"),
        ("CPU is at 97.", "cpu=97%"),
        ("超时为 30000。", "connectionTimeout=30000ms"),
        ("It uses 12 millicores.", "cpu=12m"),
    ],
)
def test_a_number_without_a_unit_is_no_other_unit(text: str, line: str) -> None:
    assert number_rules(text, line) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Retries wait 1, 2 and 4 seconds.", "retry 1s, 2s, 4s"),
        ("Retries wait 1/2/4 seconds.", "retry 1s, 2s, 4s"),
        ("Retries wait 1 s, 2 s and 4 s.", "backoff 1/2/4 seconds"),
        ("p50/p95/p99 are 80/350/1200 ms.", "p50=80ms p95=350ms p99=1200ms"),
        ("The delay is between 3 and 5 seconds.", "delay min=3s max=5s"),
        ("延迟为 3 和 5 秒。", "delay min=3s max=5s"),
        ("It took 12 min 34 s.", "finished in 12m34s"),
        ("It took 5 min 30 s.", "finished in 330s"),
        ("Of 20 connections, 20 are in use, min 3.", "last=20 max=20 min=3"),
    ],
)
def test_numbers_in_a_row_share_the_last_ones_unit(text: str, line: str) -> None:
    assert number_rules(text, line) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Retries wait 1, 3 and 4 seconds.", "retry 1s, 2s, 4s"),
        ("The delay is between 2 and 5 seconds.", "delay min=3s max=5s"),
        ("It took 12 min 35 s.", "finished in 12m34s"),
        ("The timeout is 3 s.", "connectionTimeout...............30000 ms"),
        ("It waited 30 001 ms.", "took 30 s"),
        ("It failed 6 times.", "2m (x5 over 10m)"),
        ("The heap is 3 GB.", "-Xms512m -Xmx2g"),
        ("It waited half a minute.", "took 90 seconds"),
        ("请求等待了半分钟。", "took 90 seconds"),
        ("It took 8 s.", "status=200, 30 ms"),
    ],
)
def test_a_wrong_number_is_absent_however_it_is_written(text: str, line: str) -> None:
    assert number_rules(text, line) == [ABSENT]


def test_a_comma_alone_shares_no_unit_in_evidence() -> None:
    assert number_rules("It took 200 ms.", "status=200, 30 ms") == [MISMATCH]


@pytest.mark.parametrize(
    "text",
    [
        "In 2026 the pool was full.",
        "In March 2026 the pool was full.",
        "Since the start of 2026 the pool was full.",
        "At 10:42 UTC+8 it was full.",
        "At 10.42 a.m. it was full.",
        "上午十点四十二分连接池已满。",
        "三月十七日连接池已满。",
        "20 connections are active [1].",
        "20 connections are active [1][2].",
        "Invocation 101 shows 20 active.",
        "Tool call 101 shows 20 active.",
        "调用 101 显示 20 个连接。",
        "请求十分缓慢。",
        "99 分位很高。",
        "The 99th percentile is high.",
        "四处查找后发现连接池已满。",
        "上百个请求在等待。",
        "成千上万个请求在等待。",
        "有一天连接池已满。",
        "一分为二看，连接池已满。",
        "连接池百分之百占满。",
        "A three-tier app with two-factor login.",
        "payments-pool has one idle connection.",
        "有一个空闲连接。",
        "这一次连接池已满。",
        "每一次请求都超时。",
        "每隔一段时间重试一次。",
    ],
)
def test_dates_times_citations_and_idioms_are_no_numbers(text: str) -> None:
    assert number_rules(text, POOL) == []


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2048 connections, of 2048", 2048),
        ("in 2000 ms", 2),
        ("调用 101 次", 101),
        ("一小时十分", 4200),
        ("用时十分钟", 600),
        ("half a million", 500_000),
        ("two and a half minutes", 150),
        ("一个半小时", 5400),
        ("半分钟", 30),
        ("half a second", 0.5),
        ("x5", 5),
    ],
)
def test_what_looks_like_a_date_or_an_idiom_may_be_an_amount(text: str, amount: float) -> None:
    assert float(quantities(text)[0].value) == amount


@pytest.mark.parametrize(
    "text",
    [
        "Only one is idle.",
        "Exactly one connection is idle.",
        "Just one is idle.",
        "It failed a single time.",
        "It failed exactly one time.",
        "It failed once.",
        "只有一个空闲连接。",
        "失败一次。",
        "只失败了一次。",
    ],
)
def test_one_counts_where_it_clearly_counts(text: str) -> None:
    assert number_rules(text, "idle=3, failed 3 times") == [ABSENT]
    assert number_rules(text, "idle=1, failed 1 time") == []


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What happened in the last hour?", "In the last 60 minutes payments-pool was full."),
        ("errors of the last day?", "Over the last 24 hours payments-pool was full."),
        ("in the past week?", "In the last 7 days payments-pool was full."),
        ("errors in the past 15m?", "Over 15 minutes payments-pool was full."),
        ("errors in the past 15m?", "payments-pool was full over 15 minutes."),
        ("最近 30 分钟发生了什么？", "这 30 分钟里 payments-pool 已满。"),
        ("过去一小时？", "最近 60 分钟 payments-pool 已满。"),
    ],
)
@pytest.mark.scenario("VER-5")
def test_a_window_of_the_question_is_exempt_however_both_say_it(question: str, text: str) -> None:
    assert number_rules(text, POOL, question) == []


@pytest.mark.parametrize(
    "text", ["The call took over 15 minutes.", "It waited 15 minutes.", "Over 16 minutes it hung."]
)
def test_a_duration_is_no_window(text: str) -> None:
    assert number_rules(text, POOL, "errors in the past 15m?") == [ABSENT]


def test_a_window_without_a_number_is_one_of_its_unit() -> None:
    (window,) = windows("in the last hour")
    assert (float(window.value), window.unit, window.text) == (3600, "s", "hour")


LINES = """\
payments-pool - Connection is not available, request timed out after 30000ms (total=20, active=20, idle=0, waiting=37)
hikaricp_connections_active{pool="payments-pool"} last=20 max=20
Warning  BackOff  5m (x14 over 7m)  kubelet  Back-off restarting failed container ledger in pod ledger-0
Last State: Terminated Reason: OOMKilled Exit Code: 137 Restart Count: 42
0/6 nodes are available: 2 node(s) had untolerated taint, 4 Insufficient memory
deployment.apps/payment-service   3/5     5            3           12d
limits: cpu: 500m memory: 512Mi
LOG:  duration: 8412.337 ms  statement: SELECT * FROM ledger_entry WHERE account_id = $1
DETAIL:  Process 4711 waits for ShareLock on transaction 889123; blocked by process 4720.
checkpoint complete: wrote 16384 buffers (12.5%); 33 recycled
ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction
Query_time: 12.345678  Lock_time: 0.000123 Rows_sent: 10  Rows_examined: 4200000
Seconds_Behind_Master: 345 Last_SQL_Errno: 1062
used_memory_human:3.90G maxmemory_human:4.00G evicted_keys:1523
rejected_connections:12 connected_clients:9988
payments-consumer payments  3          881230          1033570         152340
consumer poll timeout has expired: longer than max.poll.interval.ms (300000)
Expiring 5 record(s) for payments-0:120000 ms has passed since batch creation
delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms
name=payments.dlq messages=1500 consumers=0 state=running
{"cluster_name":"logs","status":"red","unassigned_shards":7,"active_primary_shards":112}
Data too large: would be [34293838912/31.9gb], which is larger than the limit of [33151572377/30.8gb]
flood stage disk watermark [95%] exceeded on [es-data-2] free: 18.2gb[3.6%]
upstream timed out (110: Connection timed out) upstream_response_time=60.000 upstream_status=504
"POST /api/pay HTTP/1.1" 502 559 "-" "curl/8.5.0" rt=60.001
GC(812) Pause Full (Allocation Failure) 4012M->3998M(4096M) 4200.123ms
panic: runtime error: index out of range [5] with length 3
goroutine 42 [running]: main.post(0xc000010000) /app/ledger.go:118
Read timed out. (read timeout=10) port=443
Out of memory: Killed process 12345 (java) total-vm:12582912kB, anon-rss:7800000kB
/dev/sda1       100G   97G  3.0G  97% /
blk_update_request: I/O error, dev sda, sector 123456789
Main process exited, code=exited, status=203/EXEC
Task timed out after 3.00 seconds
Duration: 3000.00 ms Billed Duration: 3000 ms Memory Size: 128 MB Max Memory Used: 96 MB
Average=2147483648 Unit=Bytes Timestamp=2026-03-17T10:42:00Z
Quota 'CPUS' exceeded. Limit: 24.0 in region europe-west4.
checkout_latency_seconds{quantile="0.99"} last=2.3 max=2.9
jvm_memory_used_bytes{area="heap"} last=1610612736
level=error msg="giving up" attempts=3 elapsed_ms=5210
{"level":"error","msg":"payment failed","order_id":8812,"retries":3,"durationMs":30012}
nginx[1234]: exited with status 1
job #5521 failed after 12m34s, 3rd attempt
load average: 32.50, 28.11, 20.07
-Xms512m -Xmx4g -XX:MaxMetaspaceSize=256m
connectionTimeout...............30000
thread pool [ledger-exec] full, core=50 max=200 active=200 queue=500
retry in 1s, 2s, 4s then give up after 7 attempts
p50=80ms p95=350ms p99=1200ms rps=1450
CircuitBreaker ledger OPEN failureRate=61.0% threshold=50.0%
eth0: RX dropped 1,024 packets, 2,048 errors
replication slot lag 1.5GB, 3 standbys
timeout_min=5 retries=17 free_gb=12
took(ms): 250 size [KB]: 64
ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0 lag 15000
调用风控接口耗时5200ms，超过阈值3000ms，已重试3次
线程池已满，核心=50 最大=200 活跃=200 队列=500
主从延迟 120 秒，积压 3 万条消息
第3次重试失败，错误码：5003，共 57 个错误
连接数 100/100，使用率 97%，等待 12 个
用户ID：8812 登录失败 5 次，锁定 30 分钟
backup took 1 h 30 min and wrote 250 GB
lag is between 3 and 5 seconds, 99 of 100 partitions
alert @1773744131 value=0.97 for 15m
RSS 1.2 GiB of 2 GiB, 12345 page faults/s
SSL handshake failed after 10s: alert 40 from 10.0.0.12:8443
queue depth rose from 1,200 to 15,000 in 90 s
Pause Full (G1) 1900.5 (2048.0) -> 1200.4 (1536.0) MB, 812 ms
""".splitlines()


@pytest.mark.parametrize("line", LINES)
def test_a_line_says_what_it_says(line: str) -> None:
    assert rules(line, line) == []


def tampered(line: str, number: Quantity) -> list[str]:
    """`line` with one digit of `number` changed, where that changes the amount: first digit, then last."""
    folded, texts = fold(line), []
    places = [number.start + m.start() for m in re.finditer(r"\d", number.text)]
    for at in dict.fromkeys(places[:1] + places[-1:]):
        for digit in ("7", "8", "6"):
            text = folded[:at] + digit + folded[at + 1 :]
            written = re.sub(r"(?<=\d),(?=\d)", "", text[number.start : number.end])
            run = re.findall(r"\d+(?:\.\d+)?", written)
            if digit != folded[at] and not any(
                re.search(rf"(?<![\d.]){re.escape(one)}(?!\d)", line) for one in run[:1]
            ):
                texts.append(text)
                break
    return texts


@pytest.mark.scenario("REP-8")
@pytest.mark.parametrize("line", LINES)
def test_one_digit_changed_is_a_number_that_the_line_does_not_have(line: str) -> None:
    changed = [text for number in quantities(line) for text in tampered(line, number)]
    assert changed or not quantities(line)
    assert [text for text in changed if ABSENT not in number_rules(text, line)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the heap went from 1900.5 MB to 1200.4 MB", []),
        ("the heap went from 1900.5 GB to 1200.4 MB", [MISMATCH]),
        ("200 s later", [MISMATCH]),
    ],
)
def test_the_unit_behind_a_change_is_that_of_all_its_numbers(text: str, found: list[str]) -> None:
    assert rules(text, "Pause Full 1900.5 (2048.0) -> 1200.4 (2048.0) MB, then 200 (30 ms)") == found


@pytest.mark.parametrize(
    ("text", "found"), [("its RSS was 2 GiB", []), ("its RSS was 2 MiB", [MISMATCH]), ("its RSS was 3 GiB", [ABSENT])]
)
def test_kb_of_the_kernel_counts_in_1024(text: str, found: list[str]) -> None:
    assert rules(text, "Killed process 4242 (java) anon-rss:2097152kB") in (found, [ABSENT] if found else [])


def test_a_clock_time_may_end_at_a_colon() -> None:
    assert quantities("at 10:42:11: 37 requests wait")[0].text == "37"
