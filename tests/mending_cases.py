"""Good answers and what an Executor may spoil in them, for REP-12: what the session holds can be mended.

A case is a question, the session's calls, a claim that the gate and the evaluation accept, and where its record stands.
`noise` are records of other matters. The defects spoil one thing each; the good answer is the repair.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.ledger_case import Lang, answer, binding, case, claim, fact, rnd, verdict

Call = dict[str, Any]


@dataclass(frozen=True)
class Good:
    """A good answer of one claim; `right` is the call with the only record that shows it."""

    name: str
    lang: Lang
    question: str
    text: str
    path: str
    quote: str
    right: Call
    others: tuple[Call, ...] = ()
    kind: str = "observation"

    @property
    def bound(self) -> dict[str, Any]:
        return binding(self.quote, self.path, str(self.right["invocation_id"]), self.right["tool_name"])

    def said(self) -> dict[str, Any]:
        return answer(claim("c1", self.text, self.bound, kind=self.kind), user_facing_answer=self.text)

    def played(self, spoilt: dict[str, Any], calls: tuple[Call, ...]) -> dict[str, Any]:
        """The spoilt answer, with the good one as its repair."""
        trace = f"trace-{self.right['invocation_id']}"
        label = "direct_evidence" if self.kind != "negative_observation" else "direct_observation"
        judgement = verdict("PASS", fact(self.text, label, "c1", evidence_refs=[trace]))
        loop = rnd(spoilt, judgement, calls=list(calls), repairs=[self.said()])
        return case(loop, lang=self.lang, question=self.question)


def records(invocation_id: str, tool: str, path: str, *texts: str, **changes: Any) -> Call:
    paths = [path] if len(texts) == 1 else [f"{path}[{i}]" for i in range(len(texts))]
    refs = [{"raw_path": p, "text": t} for p, t in zip(paths, texts, strict=True)]
    details = {"evidence_refs": refs, "matched": len(refs), "returned": len(refs), "truncated": False}
    return {
        "invocation_id": invocation_id,
        "tool_name": tool,
        "arguments": {},
        "retrieval_details": details,
        **changes,
    }


def failed(invocation_id: str, tool: str, error: str) -> Call:
    return {"invocation_id": invocation_id, "tool_name": tool, "arguments": {}, "status": "error", "error": error}


NOISE = (
    records("31", "query_metrics", "result[0]", 'process_uptime{svc="report"} last=4711'),
    records("32", "query_logs", "lines[0]", "billing worker sent 14 invoices"),
)
CLOCK = records("9", "current_time", "now", "now 2026", evidence_kind="helper")
TIMED_OUT = failed("7", "query_logs", "timed out after 30s")
LEAK = "HikariPool-1 - Apparent connection leak detected: payment-service holds 3 connections"
USED = 'hikaricp_connections_active{pool="HikariPool-1"} last=20 max=20'
DEADLOCK = "ERROR order-svc Deadlock found when trying to get lock"
REFUSED = "connect: connection refused"
NONE_OOM = "hits=0 window=30m status=ok query=OOMKilled checkout-api"
NONE_ORA = "hits=0 window=30m status=ok query=ORA-00060"
SLOW = "slow query: SELECT * FROM orders took 4.2s"
EXPIRED = "x509: certificate has expired or is not yet valid"
LAG = "consumer-group=orders-cg topic=orders lag=48213 partition=7"
RUNBOOK = records(
    "41", "lookup_knowledge", "doc[0]", "runbook: a leak shows as growing wait time", evidence_kind="knowledge"
)

GOOD = (
    Good("log line", "en", "Does payment-service leak connections?", "payment-service leaks connections: 3 are held.",
         "lines[0]", LEAK, records("1", "query_logs", "lines[0]", LEAK)),
    Good("log line", "zh-CN", "payment-service 有连接泄漏吗?", "payment-service 存在连接泄漏，占用 3 个连接。",
         "lines[0]", LEAK, records("1", "query_logs", "lines[0]", LEAK)),
    Good("metric", "en", "Is the connection pool of payment-service full?", "20 of 20 connections are active.",
         "result[0]", USED, records("1", "query_metrics", "result[0]", USED)),
    Good("metric without a number", "en", "Has payment-service exhausted its connection pool?",
         "payment-service has exhausted its connection pool.",
         "result[0]", USED, records("1", "query_metrics", "result[0]", USED)),
    Good("metric", "zh-CN", "payment-service 的连接池是否耗尽?", "payment-service 的连接池已耗尽。",
         "result[0]", USED, records("1", "query_metrics", "result[0]", USED)),
    Good("lag", "zh-CN", "orders-cg 的消费积压是多少?", "消费组 orders-cg 的消费积压为 48213。",
         "result[0]", LAG, records("1", "query_metrics", "result[0]", LAG)),
    Good("deadlock", "zh-CN", "订单服务有什么异常?", "订单服务出现死锁。",
         "lines[0]", DEADLOCK, records("1", "query_logs", "lines[0]", DEADLOCK)),
    Good("deadlock", "en", "What is wrong with order-svc?", "order-svc ran into a deadlock.",
         "lines[0]", DEADLOCK, records("1", "query_logs", "lines[0]", DEADLOCK)),
    Good("failed access", "en", "Is the database connection ok?", "The database connection was refused.",
         "error", REFUSED, failed("1", "probe", REFUSED)),
    Good("failed access", "zh-CN", "数据库连接正常吗?", "数据库连接被拒绝。",
         "error", REFUSED, failed("1", "probe", REFUSED)),
    Good("nothing found", "en", "Was checkout-api OOMKilled?", "No OOMKilled was found for checkout-api.",
         "summary", NONE_OOM, records("1", "query_logs", "summary", NONE_OOM), kind="negative_observation"),
    Good("nothing found", "zh-CN", "checkout-api 有没有 OOMKilled?", "未发现 checkout-api 的 OOMKilled。",
         "summary", NONE_OOM, records("1", "query_logs", "summary", NONE_OOM), kind="negative_observation"),
    Good("no error code", "en", "Did ORA-00060 occur?", "No ORA-00060 was found.",
         "summary", NONE_ORA, records("1", "query_logs", "summary", NONE_ORA), kind="negative_observation"),
    Good("no error code", "zh-CN", "是否出现过 ORA-00060?", "未发现 ORA-00060。",
         "summary", NONE_ORA, records("1", "query_logs", "summary", NONE_ORA), kind="negative_observation"),
    Good("knowledge beside it", "en", "Does payment-service leak connections?",
         "payment-service leaks connections: 3 are held.",
         "lines[0]", LEAK, records("1", "query_logs", "lines[0]", LEAK), (RUNBOOK,)),
    Good("slow query", "en", "Is the order query slow?", "The order query takes 4.2 s.", "lines[0]", SLOW,
         records("1", "query_logs", "lines[0]", SLOW)),
    Good("certificate", "zh-CN", "网关证书是否过期?", "网关证书已过期。", "lines[0]", EXPIRED,
         records("1", "probe", "lines[0]", EXPIRED)),
)  # fmt: skip

Spoil = Callable[[Good, dict[str, Any]], None]


def _bound(**changes: Any) -> Spoil:
    def spoil(good: Good, of: dict[str, Any]) -> None:
        found = of["evidence_bindings"][0]
        for key, value in changes.items():
            found.pop(key) if value is None else found.update({key: value})

    return spoil


def _digit(good: Good, of: dict[str, Any]) -> None:
    of["evidence_bindings"][0]["evidence_excerpt"] = _next_digit(good.quote) or good.quote.replace("o", "a", 1)


def _next_digit(text: str) -> str:
    at = next((i for i, char in enumerate(text) if char.isdigit()), None)
    return "" if at is None else f"{text[:at]}{(int(text[at]) + 3) % 10}{text[at + 1 :]}"


def _unbound(good: Good, of: dict[str, Any]) -> None:
    of["evidence_bindings"] = []


def _elsewhere(call: Call, path: str, quote: str) -> Spoil:
    def spoil(good: Good, of: dict[str, Any]) -> None:
        of["evidence_bindings"] = [binding(quote, path, str(call["invocation_id"]), call["tool_name"])]

    return spoil


def _affirmed(good: Good, of: dict[str, Any]) -> None:
    of["claim_type"] = "observation"


SPOILT: dict[str, Spoil] = {
    "no path": _bound(raw_path=None),
    "wrong path": _bound(raw_path="lines[99]"),
    "wrong tool": _bound(tool_name="query_traces"),
    "unknown id": _bound(source_invocation_id="999"),
    "no excerpt": _bound(evidence_excerpt=None),
    "no binding": _unbound,
    "one digit": _digit,
    "another record's quotation": _bound(evidence_excerpt="billing worker sent 14 invoices"),
    "a failed call": _elsewhere(TIMED_OUT, "error", "timed out after 30s"),
    "a helper": _elsewhere(CLOCK, "now", "now 2026"),
    "a runbook": _elsewhere(RUNBOOK, "doc[0]", "runbook: a leak shows as growing wait time"),
}
DENIED_ONLY: dict[str, Spoil] = {"wrong type": _affirmed}


def spoilt(good: Good, how: str) -> dict[str, Any]:
    said = copy.deepcopy(good.said())
    {**SPOILT, **DENIED_ONLY}[how](good, said["claims"][0])
    return said


def around(good: Good) -> tuple[Call, ...]:
    """The session's calls without the right one."""
    return (*NOISE, CLOCK, TIMED_OUT, RUNBOOK, *(other for other in good.others if other is not RUNBOOK))
