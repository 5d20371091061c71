"""The metrics of the bundled incident as OpenMetrics text with time stamps, one point every 15 seconds.

What a hasty answer claims, they contradict: nothing leaked, traffic flat, no retransmits, short collector pauses.
`ledger_db_cpu_ratio` was not scraped for three minutes in the middle of the incident.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from handlers.demo.chance import Chance
from handlers.demo.timeline import END, FULL, POOL_SIZE, epoch, strain

STEP = 15
GAP = range(FULL + 540, FULL + 720)
REQUESTS_PER_SECOND = 41
SHARE_FAILED = 0.38

Value = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family: its series as (labels, value at a second)."""

    name: str
    kind: str
    says: str
    series: tuple[tuple[str, Value], ...]
    gap: range = range(0)


def _families() -> Iterator[Family]:
    chance = Chance(53)
    payments = 'pool="payments-pool",service="payment-service"'
    reporting = 'pool="reporting-pool",service="payment-service"'
    service = 'service="payment-service"'
    yield Family(
        "hikaricp_connections_active",
        "gauge",
        "Connections in use",
        (
            (payments, lambda s: POOL_SIZE if strain(s) == 1.0 else int(4 + 16 * strain(s))),
            (reporting, lambda _: 2),
        ),
    )
    yield Family(
        "hikaricp_connections_max",
        "gauge",
        "Connections the pool may open",
        ((payments, lambda _: POOL_SIZE), (reporting, lambda _: 5)),
    )
    yield Family(
        "hikaricp_connections_pending",
        "gauge",
        "Threads waiting for a connection",
        ((payments, lambda s: chance.whole(37, 43) if strain(s) == 1.0 else 0), (reporting, lambda _: 0)),
    )
    yield Family(
        "hikaricp_connections_usage_seconds_p95",
        "gauge",
        "How long a connection is held, 95th percentile",
        ((payments, lambda s: round(0.012 + 8.4 * strain(s) + chance.between(0, 0.004), 4)),),
    )
    yield Family(
        "hikaricp_connections_leaked",
        "gauge",
        "Connections reported as leaked and not returned",
        ((payments, lambda _: 0),),
    )
    yield Family(
        "ledger_db_cpu_ratio",
        "gauge",
        "Processor use of the database",
        (('instance="ledger-db-0"', lambda s: round(0.22 + 0.71 * strain(s) + chance.between(0, 0.02), 3)),),
        GAP,
    )
    yield Family(
        "ledger_db_seq_scans_per_second",
        "gauge",
        "Sequential scans",
        (('table="ledger_entry"', lambda s: round(0.02 + 2.7 * strain(s), 3)),),
    )
    yield Family(
        "payment_requests_per_second",
        "gauge",
        "Requests that arrive",
        ((service, lambda s: round(REQUESTS_PER_SECOND + 2 * math.sin(s / 600) + chance.between(-0.6, 0.6), 2)),),
    )
    yield Family(
        "payment_latency_seconds_p99",
        "gauge",
        "Response time, 99th percentile",
        ((service, lambda s: round(0.31 + 29.6 * strain(s) + chance.between(0, 0.05), 3)),),
    )
    yield Family(
        "jvm_gc_pause_seconds_max",
        "gauge",
        "Longest collector pause",
        ((service, lambda _: round(chance.between(0.02, 0.06), 3)),),
    )
    yield Family(
        "network_tcp_retransmits_per_second",
        "gauge",
        "Retransmitted segments",
        (('az="eu-west-1b"', lambda _: round(chance.between(0.0, 0.3), 2)),),
    )


def _failed(second: int) -> int:
    return int(STEP * REQUESTS_PER_SECOND * SHARE_FAILED) if strain(second) == 1.0 else 0


def _counters() -> Iterator[str]:
    yield "# HELP http_server_requests Requests answered"
    yield "# TYPE http_server_requests counter"
    for status in ("200", "500"):
        total = 0
        for second in range(0, END, STEP):
            failed = _failed(second)
            total += failed if status == "500" else STEP * REQUESTS_PER_SECOND - failed
            labels = f'service="payment-service",status="{status}"'
            yield f"http_server_requests_total{{{labels}}} {total} {epoch(second)}"


def open_metrics() -> Iterator[str]:
    """The lines of the file, without their newlines, `# EOF` last."""
    for family in _families():
        yield f"# HELP {family.name} {family.says}"
        yield f"# TYPE {family.name} {family.kind}"
        for labels, value in family.series:
            for second in range(0, END, STEP):
                reading = value(second)
                if second not in family.gap:
                    yield f"{family.name}{{{labels}}} {reading} {epoch(second)}"
    yield from _counters()
    yield "# EOF"
