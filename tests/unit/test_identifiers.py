"""Identifiers as they are found and looked for: what stands in a line is never reported as absent, what was swapped is."""

from __future__ import annotations

import pytest

from handlers.identifiers import identifiers, stands_in
from handlers.shapes import fold


def absent(text: str, line: str) -> list[str]:
    folded = fold(line)
    return [one.text for one in identifiers(text) if not stands_in(one, folded)]


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("10.0.0.12 refused the connection.", "dial tcp 10.0.0.12:80: connect: connection refused"),
        ("10.0.0.12 is the peer.", "peer:10.0.0.12 closed"),
        ("system:serviceaccount:payments:ledger-sa may not list pods.", 'User "system:serviceaccount:payments:ledger-sa" cannot list'),
        ("10.0.0.12:80 refused the connection.", "dial tcp 10.0.0.12:80: connect: connection refused"),
        ("GET /api/cart failed on the upstream.", 'upstream: "http://10.0.3.7:8080/api/cart" failed'),
        ("GET /api/cart failed on the upstream.", 'upstream: "https://shop.example.com/api/cart" failed'),
        ("Image registry.corp.example/pay:v2.14.1 is gone.", "Failed to pull image registry.corp.example/pay:v2.14.1"),
        ("The taint is node-role.kubernetes.io/control-plane.", "taint {node-role.kubernetes.io/control-plane: }"),
        ("The source is jdbc:postgresql://db-01:5432/shop.", "url jdbc:postgresql://db-01:5432/shop"),
        ("GET /openstack/2013-10-17/meta_data.json gave 200.", "GET /openstack/2013-10-17/meta_data.json HTTP/1.1"),
        ("kafka-0.kafka-headless:9092 is unreachable.", "connect kafka-0.kafka-headless:9092 failed"),
        ("R-SA-41.fareast.corp.example.test is up", "x R-SA-41.fareast.corp.example.test:9000"),
        ("Factory:0.0.0.0/0.0.0.0:2181 stopped", "NIOServerCxn.Factory:0.0.0.0/0.0.0.0:2181"),
        ("10.0.3.7/10.0.3.8 failed.", "10.0.3.7 and 10.0.3.8 failed"),
        ("Payments-pool has no free connection.", "payments-pool idle=0"),
        ("DB-01 is down", "host db-01 down"),
        ("The pool was full on 17.03.2026.", "2026-03-17T10:42:11Z pool full"),
        ("db-01–db-02 are hot.", "db-01 cpu=99 db-02 cpu=98"),
        ("config.yaml:42 is invalid.", "error parsing config.yaml: line 42: bad indent"),
        ("MySQL error 1045 was raised.", "ERROR 1045 (HY000): Access denied"),
        ("There was an error 300 times.", "errors seen"),
    ],
)  # fmt: skip
def test_what_stands_in_the_line_is_not_absent(text: str, line: str) -> None:
    assert absent(text, line) == []


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("MySQL error 1045", "ERROR 1040 (HY000)"),
        ("10.0.0.1 refused it", "dial tcp 10.0.0.12:80: connect: connection refused"),
        (
            "system:serviceaccount:payments:default may not list",
            'User "system:serviceaccount:payments:ledger-sa" cannot list',
        ),
        ("arn:aws:iam::123456789012:role/ledger-ro", "arn:aws:iam::123456789012:role/ledger-rw"),
        ("connection 7QLEDGER42PAYB", "connection 7QLEDGER42PAYA"),
        ("HY001 was returned", "ERROR 1040 (HY000)"),
        ("42P02", "42P01: relation does not exist"),
        ("SQLCODE -912", "SQLCODE -911"),
        ("It failed with PAY_DECLINED", "CARD_EXPIRED"),
        ("mysql02 is down", "mysql01 is down"),
        ("DB02 is down", "DB01 is down"),
        ("R28-M0-N5-C:J11-U11", "R27-M0-N5-C:J11-U11"),
        ("thread http-nio-8080-exec-8", "thread http-nio-8080-exec-7"),
        ("00:1a:2b:3c:4d:5f", "00:1a:2b:3c:4d:5e"),
        ("eth1 flaps", "eth0 flaps"),
        ("job_2026_0021 failed", "job_2026_0020 failed"),
        ("inventory-frontend", "checkout-frontend"),
        ("redis-replica", "redis-master"),
        ("billing-consumer", "orders-consumer"),
        ("GET /cart failed", "GET /api/cart failed"),
        ("config.yaml:43 is invalid", "config.yaml: line 42"),
        ("kafka-1.kafka-headless:9092", "kafka-0.kafka-headless:9092"),
    ],
)
def test_a_swapped_one_is_absent(text: str, line: str) -> None:
    assert len(absent(text, line)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "sha256 and utf8 over http2 with oauth2, k8s, p95, ipv4, log4j, base64, arm64",
        "the top-100 list, a read-replica, a batch-processor, step-by-step",
        "Use UTF-8 and java 17; see RFC 7231",
        "it failed with error 5 times",
        "the operating system: Linux, 20260317T1042Z, 100000000KB, the system:ready flag",
    ],
)
def test_common_words_are_no_identifiers(text: str) -> None:
    assert identifiers(text) == ()
