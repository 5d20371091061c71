"""What a recorded output amounts to: a tool's own failed access is an error, what a workload logged is content."""

from __future__ import annotations

import json

import pytest

from handlers.evidence.bodies import read_body

REFUSED = "dial tcp 10.0.0.9:5432: connect: connection refused"


@pytest.mark.parametrize(
    "text",
    [
        f"ERROR: {REFUSED}\nweb exiting: connect to ledger-db:5432: connection refused",
        f"payment-service: {REFUSED}",
        f"error: {REFUSED}",
        "2026-03-17T10:20:01Z ERROR payment-service connect to ledger-db:5432: connection refused",
        "Access denied for user 'payments'@'10.0.0.5' (using password: YES)",
        "open /var/lib/ledger/data: permission denied",
        "HTTP 500 on POST /pay after 30000 ms",
        "Error from server (Forbidden): pods is forbidden\npayment-service 1/1 Running",
        json.dumps({"level": "error", "error": REFUSED, "code": 500}),
        json.dumps({"status": "error", "timestamp": "2026-03-17T10:20:01Z", "message": REFUSED}),
    ],
)
def test_what_a_workload_logged_about_a_failure_is_content(text: str) -> None:
    assert read_body(text).status == "success"


@pytest.mark.parametrize(
    "text",
    [
        'Error from server (Forbidden): pods "orders-api" is forbidden',
        "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?",
        (
            'E0317 10:20:01.1 12 memcache.go:265] couldn\'t get API list: Get "https://x": dial tcp: refused\n'
            "The connection to the server localhost:8080 was refused - did you specify the right host or port?"
        ),
        'error: the server doesn\'t have a resource type "podz"',
        "curl: (7) Failed to connect to prometheus port 9090 after 2 ms: Connection refused",
        "HTTP 403 Forbidden",
        "403 Client Error: Forbidden for url: https://loki.example/query",
        "cat: /var/log/pay.log: No such file or directory",
        "An error occurred (AccessDeniedException) when calling the GetMetricData operation: no permission",
        json.dumps({"kind": "Status", "status": "Failure", "message": "pods is forbidden", "code": 403}),
        json.dumps({"error": {"message": "token expired", "code": 401}}),
        json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error"}),
    ],
)
def test_a_tools_own_failed_access_is_an_error(text: str) -> None:
    assert read_body(text).status == "error"
