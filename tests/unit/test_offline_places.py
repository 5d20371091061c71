"""The Verifier without a model: a number, a name, a level or a date of another thing in the same lines bears nothing out."""

from __future__ import annotations

import pytest

from handlers.agents.lexical import judge, statement
from streams.contract import Claim, ClaimType

PODS = """NAME                               READY   STATUS             RESTARTS   AGE
payment-service-6c9f7d8b54-k2x9p   0/1     CrashLoopBackOff   7          40m
payment-gateway-5b7c9d6f48-m4q8z   1/1     Running            0          12d"""
TIMEOUTS = "ledger_read_timeout 45s;\nledger_connect_timeout 3s;"
MEMORY = 'process_resident_memory_bytes{job="payment-service"} last=1073741824 max=2147483648'
LIMITS = "limits:\n  memory: 512Mi\nrequests:\n  memory: 128Mi"
RATE = "pool guard: failure rate 61% exceeds threshold 40%"
BATCH = "ledger batch: 4 failed, 310 settled"
GC = "payment-service Pause Full 1900M->1200M(2048M) 812ms"
STATE = "breaker ledger-db changed state from CLOSED to OPEN"
NEW_MASTER = "+switch-master ledger 10.7.0.21 6379 10.7.0.22 6379"
WARNED = "2026-03-17T10:20:00Z WARN  payments-pool is at 20 of 20 connections"
PROBE = "kubelet Liveness probe failed for payment-service: connection refused"
RBAC = 'pods is forbidden: User "system:serviceaccount:payments:ledger-sa" cannot list resource "pods" in API group "" in the namespace "prod"'
ACCESS = '10.7.0.9 - - [17/Mar/2026:10:20:00 +0000] "POST /v1/charge HTTP/1.1" 502 41'
QUEUES = "name\tmessages\tconsumers\tstate\nledger-in\t88012\t0\trunning\npayments\t15\t6\trunning"
PENDING = "Name:    payment-service-0\nStatus:  Pending"
TRIED = "Error acquiring the migration lock of ledger-db: lock table is busy"
PEERS = "payment-service-0   0/1   ImagePullBackOff   0\npayment-service-1   1/1   Running   0"
HEAP = "java.lang.OutOfMemoryError: Java heap space in LedgerBatch"
IDLE = "sessions idle: 17\nsessions active: 3"


def label(text: str, *records: str, kind: ClaimType = "observation") -> str:
    claim = Claim(claim_id="c1", claim_type=kind, claim_text=text, support_level="direct")
    return judge(claim, records).label


FULL = "10:41:58.000 # Out of memory allocating 67108864 bytes!"
USED = "10:41:57 WARN heap_used 1900MB exceeds 90% of heap_max 2048MB"
BREAKER = '{"level": "WARN", "msg": "circuit breaker ledger-db OPEN after 25 failures"}'


def test_one_shared_number_and_a_few_shared_words_do_not_make_another_thing_direct() -> None:
    assert label("The reporting database ran out of memory allocating 67108864 bytes.", FULL) == "indirect_support"
    assert label("It ran out of memory allocating 67108864 bytes.", FULL) == "direct_evidence"


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("payment-gateway-5b7c9d6f48-m4q8z is in CrashLoopBackOff with 7 restarts.", PODS),
        ("payment-service-6c9f7d8b54-k2x9p is 12 days old.", PODS),
        ("ledger_read_timeout is 3 s, ledger_connect_timeout is 45 s.", TIMEOUTS),
        ("ledger_read_timeout 为 3 秒，ledger_connect_timeout 为 45 秒。", TIMEOUTS),
        ("payment-service uses 2 GiB of resident memory now and peaked at 1 GiB.", MEMORY),
        ("The memory limit is 128 MiB and the request is 512 MiB.", LIMITS),
        ("The failure rate reached 40%, above the threshold of 61%.", RATE),
        ("In the ledger batch 310 failed and 4 settled.", BATCH),
        ("A full GC brought payment-service from 1200M up to 1900M.", GC),
        ("The breaker of ledger-db changed state from OPEN to CLOSED.", STATE),
        ("The master of ledger was switched from 10.7.0.22 to 10.7.0.21.", NEW_MASTER),
        ("The 20 connections of payments-pool were logged at level ERROR.", WARNED),
        ("It was logged as a critical event that payments-pool is at 20 of 20 connections.", WARNED),
        ("payments-pool 的 20 个连接以错误级别记录。", WARNED),
        ("The readiness probe failed for payment-service: connection refused.", PROBE),
        ("POST /v1/charge from 10.7.0.9 returned 502 at 10:20:00 UTC on 16 Mar 2026.", ACCESS),
        ("payments-pool was at 20 of 20 connections on 2026-03-19 at 10:20:00Z.", WARNED),
        ("All sessions are idle.", IDLE),
        ("Queue payments holds 88012 messages.", QUEUES),
        ("payment-service-0 is Running.", PENDING),
        ("OutOfMemoryError in LedgerBatch: Metaspace is full.", HEAP),
        ("The RefundBatch call failed: OutOfMemoryError, Java heap space.", HEAP),
        ("payments-pool 尚未达到连接上限。", WARNED),
        ("payment-service-6c9f7d8b54-k2x9p is in ImagePullBackOff with 7 restarts.", PODS),
        ("The heap_used 2048MB exceeds 90% of heap_max 1900MB.", USED),
    ],
)
def test_what_the_lines_say_of_another_thing_is_no_evidence(text: str, record: str) -> None:
    assert label(text, record) == "no_evidence"


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("payment-gateway-5b7c9d6f48-m4q8z is running with 0 restarts, for 12 days.", PODS),
        ("payment-service-6c9f7d8b54-k2x9p is in CrashLoopBackOff with 7 restarts.", PODS),
        ("ledger_read_timeout is 45 s, ledger_connect_timeout is 3 s.", TIMEOUTS),
        ("payment-service uses 1 GiB of resident memory now and peaked at 2 GiB.", MEMORY),
        ("The memory limit is 512 MiB and the memory request is 128 MiB.", LIMITS),
        ("The failure rate reached 61%, above the threshold of 40%.", RATE),
        ("In the ledger batch 4 failed and 310 settled.", BATCH),
        ("A full GC pause brought payment-service from 1900M down to 1200M.", GC),
        ("The breaker of ledger-db changed state from CLOSED to OPEN.", STATE),
        ("The master of ledger was switched from 10.7.0.21 to 10.7.0.22.", NEW_MASTER),
        ("payments-pool is at 20 of 20 connections, logged as a warning.", WARNED),
        ("The liveness probe failed for payment-service: connection refused.", PROBE),
        ("On 17 March 2026 at 10:20 UTC POST /v1/charge from 10.7.0.9 returned 502.", ACCESS),
        ("payments-pool was at 20 of 20 connections at 18:20 (2026-03-17T18:20:00+08:00).", WARNED),
        ("Queue payments holds 15 messages and has 6 consumers.", QUEUES),
        ("Queue ledger-in holds 88012 messages and has 0 consumers.", QUEUES),
        ("payment-service-0 is Pending.", PENDING),
        ("17 sessions are idle and 3 are active.", IDLE),
        ("The heap_used 1900MB exceeds 90% of heap_max 2048MB.", USED),
        ("The circuit breaker of ledger-db opened after 25 failures.", BREAKER),
    ],
)
def test_what_the_lines_say_of_the_same_thing_stays_direct(text: str, record: str) -> None:
    assert label(text, record) == "direct_evidence"


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("User system:serviceaccount:payments:ledger-sa can list pods in the namespace prod.", RBAC),
        ("ledger-db did not time out.", "ledger-db call: operation timed out"),
        ("The alarm was cleared on ledger-db.", "memory alarm set on ledger-db"),
        ("payment-service re-established its connection to ledger-db.", "payment-service: connection to ledger-db lost, retrying"),
        ("payment-service is ready.", "payment-service   0/1   Running   4"),
        ("ledger-backup.service has not failed since 2026-03-17 10:28:11.", "Active: failed (Result: exit-code) since Tue 2026-03-17 10:28:11 UTC"),
        ("The lookup of ledger-db.prod.svc.cluster.local succeeded.", "dial tcp: lookup ledger-db.prod.svc.cluster.local: no such host"),
        ("ledger-db 的备份没有失败。", "backup of ledger-db: could not extend file: no space left"),
        ("The migration lock of ledger-db was acquired.", TRIED),
        ("payment-service-0 is ready.", PEERS),
        ("payment-service-0 已就绪。", PEERS),
        ("payment-service exited normally.", "payment-service: main process exited, code=killed, status=9/KILL"),
        ("payment-service-6c9f was scheduled successfully.", "FailedScheduling pod/payment-service-6c9f"),
        ("The circuit breaker of ledger-db CLOSED after 25 failures.", BREAKER),
    ],
)  # fmt: skip
def test_the_opposite_is_seen_behind_colons_between_keys_and_in_reasons(text: str, record: str) -> None:
    assert label(text, record) == "contradicted"


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("payments-pool had no connection available and the request timed out after 30 s.", "payments-pool - Connection is not available, request timed out after 30000ms"),
        ("The volume of ledger-db cannot be attached as payment-service-1 uses it.", "FailedAttachVolume: the volume of ledger-db is attached, as payment-service-1 uses it"),
        ("payment-service has not restarted.", "NAME              READY   STATUS    RESTARTS\npayment-service   1/1     Running   0"),
        ("User system:serviceaccount:payments:ledger-sa cannot list pods in the namespace prod.", RBAC),
        ("Compaction of ledger-db failed: the entry does not exist.", 'msg="compaction of ledger-db failed" err="entry does not exist"'),
        ("ledger-db 写入失败：no space left on device。", "ledger-db: could not extend file: No space left on device"),
    ],
)  # fmt: skip
def test_a_denial_in_another_part_of_the_line_turns_nothing_round(text: str, record: str) -> None:
    assert label(text, record) != "contradicted"


def test_a_claim_of_pages_is_not_weighed() -> None:
    assert label("payment-service is ready. " * 400, "payment-service   1/1   Running   0") == "no_evidence"


def test_a_search_says_nothing_of_another_window() -> None:
    record = "hits=0 window=2026-03-17T10:00:00Z/2026-03-17T11:00:00Z status=ok "
    denied: ClaimType = "negative_observation"
    assert label("No ERROR lines were found between 10:00 and 11:00.", record, kind=denied) == "direct_evidence"
    assert label("No ERROR lines were found between 12:00 and 13:00.", record, kind=denied) == "no_evidence"


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("The certificate expired at midnight UTC on 17 March 2026.", {"direct_evidence", "indirect_support"}),
        ("The certificate has expired.", {"direct_evidence", "indirect_support"}),
        ("The certificate has not expired.", {"contradicted"}),
    ],
)
def test_a_denial_behind_an_or_denies_nothing_before_it(claim: str, label: set[str]) -> None:
    line = (
        "certificate has expired or is not yet valid: current time 2026-03-17T10:05:00Z is after 2026-03-17T00:00:00Z"
    )
    assert statement(claim, [line]).label in label


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("payment-service lags by about 48k messages.", "no_evidence"),
        ("payment-service lags by about 58k messages.", "contradicted"),
        ("payment-service has a lag of 48k messages.", "contradicted"),
    ],
)
def test_a_number_rounded_as_it_is_said_is_no_contradiction(claim: str, label: str) -> None:
    assert statement(claim, ["lag=48211 group=payment-service"]).label == label
