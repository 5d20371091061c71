"""When things happen in the bundled incident, and how bad it is at each second.

Times are seconds after `START`. At 10:02 ledger-service 4.12.0 goes out with a migration; from 10:05 the ledger
query gets slow, at 10:09 payments-pool is full, at 10:40 the release is rolled back, at 10:45 all is well again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 17, 9, 0, tzinfo=UTC)
RELEASE = 62 * 60
SLOW = 65 * 60
FULL = 69 * 60
ROLLBACK = 100 * 60
HEALTHY = 105 * 60
END = 120 * 60

POOL_SIZE = 20


def strain(second: float) -> float:
    """How far the ledger query is from normal: 0 healthy, 1 every statement a sequential scan."""
    if second < SLOW or second >= HEALTHY:
        return 0.0
    if second < FULL:
        return (second - SLOW) / (FULL - SLOW)
    if second < ROLLBACK:
        return 1.0
    return 1.0 - (second - ROLLBACK) / (HEALTHY - ROLLBACK)


def stamp(second: float) -> str:
    """RFC 3339 with milliseconds: `2026-03-17T10:02:00.000Z`."""
    moment = START + timedelta(milliseconds=round(second * 1000))
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def epoch(second: float) -> int:
    """Whole seconds since 1970, as OpenMetrics has them."""
    return int((START + timedelta(seconds=second)).timestamp())
