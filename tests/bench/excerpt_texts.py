"""Texts of the one example domain from which excerpt cases are drawn: messages, and the layouts they stand in."""

from __future__ import annotations

import json
import random

SERVICES = ("payment-service", "order-service", "checkout-gateway", "invoice-worker", "ledger-writer", "refund-api")
STORES = ("ledger-db", "orders-db", "session-cache", "audit-store")
MESSAGES = (
    "HikariPool-{n} - Connection is not available, request timed out after {ms}ms (total={t}, active={t}, idle=0, waiting={w})",
    "{svc} could not reach {db}: connection refused by 10.{a}.{b}.{c}:5432 after {n} attempts",
    "Slow query on {db} took {ms} ms, returned {w} rows and was not cached",
    "Circuit breaker for {db} opened, error rate {p}.{n}% over {w} requests",
    "Heap usage is high at {p}% of {mb}MB, collection paused {svc} for {ms}ms",
    "Deployment {svc} v{n}.{a}.{b} started with {t} replicas, readiness probe failed {n} times",
    "Retry {n} of 5 for transaction tx-{hex} failed because {db} was unavailable",
    "Disk usage on {db}-{n} reached {p}%, writes are no longer accepted",
    "Request {hex} to {svc} completed with status 503 in {ms} ms, latency increased by {p}.{n}%",
    "Replica {db}-{n} is lagging {w} seconds behind, failover was never triggered",
    "Node 10.{a}.{b}.{c} joined the cluster without a lease, quorum is {n} of {t}",
)
CHINESE = (
    "{svc} 连接池已耗尽，等待线程 {w} 个，请求在 {ms} 毫秒后超时",
    "数据库 {db} 当前不可用，重试 {n} 次后仍然失败，错误码 {a}{b}",
    "服务 {svc} 的平均延迟升高到 {ms}ms，错误率为 {p}.{n}%，没有触发自动扩容",
    "磁盘使用率达到 {p}%，写入请求已被拒绝，受影响的实例共 {t} 个",
)
PROSE = (
    "When the pool of {svc} is exhausted, raise maximumPoolSize to {t} and restart one replica at a time.",
    "Do not restart {db} while a failover is running; wait at least {w} seconds for the lease to expire.",
    "An error rate above {p}% over {n} minutes is not normal and should page the owner of {svc}.",
    "Latency of {db} increased after the index on transfers was dropped, which blocked {w} sessions.",
)
TRACE = (
    "java.sql.SQLTransientConnectionException: HikariPool-{n} - Connection is not available, request timed out after {ms}ms.\n"
    "\tat com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:{w})\n"
    "\tat com.example.payment.LedgerDao.insertTransfer(LedgerDao.java:{t})\n"
    "Caused by: org.postgresql.util.PSQLException: FATAL: remaining connection slots are reserved on {db}"
)


def filled(rng: random.Random, template: str) -> str:
    return template.format(
        svc=rng.choice(SERVICES), db=rng.choice(STORES), n=rng.randint(1, 9), t=rng.choice((10, 20, 32, 50)),
        w=rng.randint(11, 480), ms=rng.choice((1250, 3000, 5400, 30000, 12750)), p=rng.randint(51, 98), mb=rng.choice((512, 2048)),
        a=rng.randint(10, 250), b=rng.randint(10, 250), c=rng.randint(1, 250), hex=f"{rng.getrandbits(40):010x}",
    )  # fmt: skip


def _stamp(rng: random.Random) -> str:
    return f"2024-05-{rng.randint(10, 28)}T{rng.randint(10, 23)}:{rng.randint(10, 59)}:{rng.randint(10, 59)}.{rng.randint(100, 999)}Z"


def plain(rng: random.Random, text: str) -> str:
    return f"{_stamp(rng)} {rng.choice(('ERROR', 'WARN', 'INFO'))}  [pool-{rng.randint(1, 8)}] c.e.Ledger - {text}"


def ndjson(rng: random.Random, text: str) -> str:
    fields = {
        "ts": _stamp(rng),
        "level": rng.choice(("error", "warn")),
        "pod": f"{rng.choice(SERVICES)}-{rng.getrandbits(20):05x}",
        "msg": text,
    }
    return json.dumps(fields, ensure_ascii=False)


def logfmt(rng: random.Random, text: str) -> str:
    return f'ts={_stamp(rng)} level=error svc={rng.choice(SERVICES)} msg="{text}" attempt={rng.randint(1, 9)}'


def metric(rng: random.Random, text: str) -> str:
    pool = rng.choice(SERVICES)
    return f'hikaricp_connections_active{{pool="{pool}"}} first={rng.randint(1, 9)} max={rng.randint(10, 50)} last={rng.randint(10, 50)} note="{text}"'


def table(rng: random.Random, text: str) -> str:
    return f"| {rng.choice(SERVICES)} | Running | {rng.randint(1, 9)}/{rng.randint(10, 20)} | {rng.randint(10, 99)}d | {text} |"


def bare(rng: random.Random, text: str) -> str:
    return text


_LAYOUTS = (plain, plain, ndjson, logfmt, metric, table, bare)


def record(rng: random.Random, pool: tuple[str, ...] = MESSAGES + PROSE + CHINESE[:2]) -> tuple[str, str]:
    """A message, and the line it stands in."""
    message = filled(rng, rng.choice(pool))
    return message, rng.choice(_LAYOUTS)(rng, message)


def log_of(size: int, seed: int) -> str:
    """A plain log of about `size` characters, for the timings."""
    rng = random.Random(seed)
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(plain(rng, filled(rng, rng.choice(MESSAGES))))
        length += len(lines[-1]) + 1
    return "\n".join(lines)[:size]
