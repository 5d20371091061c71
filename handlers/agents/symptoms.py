"""What people ask about, in Chinese and English, and the words logs, metrics and states use for it.

General vocabulary of operations; a question's own words always count beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symptom:
    """A family: how a question names it (`asked`), and what to look for in records and in metric names."""

    name: str
    asked: re.Pattern[str]
    records: tuple[str, ...]
    metrics: tuple[str, ...]


def _family(name: str, asked: str, records: str, metrics: str = "") -> Symptom:
    return Symptom(name, re.compile(asked, re.IGNORECASE), tuple(records.split("|")), tuple(metrics.split()))


SYMPTOMS = (
    _family(
        "timeout",
        r"time[- ]?s? ?out|timed out|deadline|超时|等待过久",
        "timeout|timed out|time-out|deadline exceeded|超时",
        "timeout latency duration seconds connections pending active queue wait",
    ),
    _family(
        "latency",
        r"slow|latency|laten|delay|degrad|response time|hang|stuck|p9[59]|慢|延迟|耗时|响应时间|卡",
        "slow|latency|duration|took|completed in|seconds|response time|exceed|timeout|慢|耗时",
        "latency duration seconds p95 p99 wait time",
    ),
    _family(
        "connection",
        r"connection|pool|hikari|socket|连接|连接池|链接",
        "connection|pool|refused|reset by peer|unreachable|exhausted|connect|连接",
        "connection pool active pending max leaked sockets",
    ),
    _family(
        "error",
        r"error|fail|exception|broken|5\d\d|报错|错误|失败|异常|出错",
        "error|exception|fail|fatal|panic|错误|失败|异常",
        "error errors fail status 5xx exception",
    ),
    _family(
        "restart",
        r"restart|crash|reboot|backoff|kill|exit|重启|崩溃|退出|挂掉|反复",
        "restart|crash|exit|terminated|killed|oom|out of memory|backoff|back-off|fatal|panic|reason|is starting"
        "|shutting down|shutdown|sigterm|sigkill|重启|崩溃|启动",
        "restart crash oom memory",
    ),
    _family(
        "memory",
        r"memory|oom|heap|leak|内存|泄漏|泄露",
        "memory|oom|heap|leak|gc|allocat|内存|泄漏",
        "memory heap gc oom leaked rss",
    ),
    _family("cpu", r"\bcpu\b|throttl|\bload\b|处理器|负载", "cpu|throttl|load", "cpu load throttl"),
    _family(
        "disk",
        r"disk|storage|volume|\biops?\b|no space|磁盘|空间|存储|卷",
        "disk|space|volume|storage|i/o|iops|inode|磁盘",
        "disk filesystem storage iops volume",
    ),
    _family(
        "descriptors",
        r"descriptors?\b|\bfds?\b|open files|ulimit|文件描述符|句柄",
        "descriptor|open files|open_fds|max_fds|emfile|ulimit|文件描述符|句柄",
        "open_fds max_fds filefd descriptors",
    ),
    _family(
        "network",
        r"network|partition|dns|packet|unreachable|网络|分区|丢包|解析",
        "network|partition|unreachable|dns|packet|no route|reset|网络",
        "network tcp retransmit packet dns",
    ),
    _family(
        "database",
        r"database|\bdb\b|sql|query|postgres|mysql|rds|数据库|查询|慢查询",
        "database|sql|query|statement|lock|deadlock|duration|connections|数据库",
        "db database sql query connections lock",
    ),
    _family(
        "change",
        r"deploy(?!ment)|release|roll(?:ed)? ?back|rollout|upgrade|migration|change|version|发布|上线|部署|回滚|升级|变更|迁移",
        "deploy|release|rolled|rollback|rollout|upgrade|migration|applied|version|config|reload|changed|发布|回滚|变更",
        "version build deploy",
    ),
    _family(
        "scheduling",
        r"pending|schedul|unschedulable|evict|调度|驱逐",
        "pending|schedul|selector|affinity|taint|insufficient|evict|nodes are available",
        "pending unschedulable",
    ),
    _family(
        "access",
        r"forbidden|unauthor|permission|denied|\brbac\b|certificate|\btls\b|credential|secret|权限|证书|拒绝|认证|鉴权",
        "forbidden|unauthorized|denied|permission|certificate|x509|expired|credential|拒绝",
        "certificate expiry auth",
    ),
    _family(
        "queue",
        r"queue|lag|backlog|kafka|rabbit|consumer|积压|堆积|队列|消费",
        "queue|lag|backlog|consumer|partition|rebalance|积压",
        "queue lag backlog consumer",
    ),
    _family(
        "saturation",
        r"saturat|exhaust|full|limit|饱和|耗尽|打满|用尽|上限",
        "exhausted|full|limit|max|reject",
        "max active pending usage",
    ),
    _family(
        "traffic",
        r"traffic|spike|requests?\b|qps|rps|流量|突增|请求量",
        "request|rate|spike|流量",
        "requests rate qps rps",
    ),
    _family("alert", r"alert|alarm|firing|告警|报警|警报", "alert|firing|alarm|告警", "alert alerts"),
)

RESOURCES = frozenset({"cpu", "disk", "memory", "descriptors"})
HEALTH = re.compile(r"healthy|unhealthy|\bhealth\b|\bup\b|running|\bok\b|健康|正常|可用|存活", re.IGNORECASE)
PROBLEM = re.compile(
    r"out of memory|crashloopbackoff|imagepull\w*|errimage\w*|oomkill\w*|\boom\b|evicted|unhealthy|not ?ready|back-?off|failed\w*|failure|fail\b|"
    r"\berror\b|errors\b|exception|traceback|panic|fatal|critical|undefined|refused|denied|forbidden|unauthorized|unreachable|"
    r"time[d-]? ?out|timeout|exceed\w*|exhaust\w*|full\b|insufficient|unschedulable|pending\b|didn'?t match|not found|missing|"
    r"terminated|killed|deadlock|corrupt|partition\w*|degraded|unavailable|rejected|invalid|expired|too many|no space|leak\w*|"
    r"slow\b|warning|alerting|firing|unable|cannot|can't|could not|no available|approaching|suspected|"
    r"\"?running\"?: false|ready\W+false|错误|失败|异常|超时|拒绝|不可用|耗尽|告警",
    re.IGNORECASE,
)
FINE = re.compile(
    r"\b(?:running|healthy|ready\W+true|available\W+true|restart count\W+0|completed|succeeded|active \(running\)|ok|up)\b"
    r"|\b([1-9]\d*)/\1\b|\"(?:running|healthy|ready)\"\s*:\s*true|正常|健康",
    re.IGNORECASE,
)
# What names a problem without there being one: a zero, a null, a limit's name, a toleration, a script's own text.
NEUTRAL = re.compile(
    r"\bdelay=\S+ timeout=\S+ period=\S+(?: #\w+=\d+)*|\b0 [a-z]+|\bmax(?:imum)?[ _]?unavailable|\S+:No(?:Execute|Schedule)\S*"
    r"|[\"']?\b(?!running|ready|healthy|available|success)[\w.-]+[\"']?\s*[:=]\s*(?:0(?![\d.])|null\b|false\b|none\b|<none>|\"\"|\[\])",
    re.IGNORECASE,
)
RAISED = re.compile(
    r"[\"']?\w*(?:partition|alarm|fail|_down|degraded|detected|exceeded|_full|error|blocked|pressure)\w*[\"']?\s*[:=]\s*true\b"
    r"|\b(?:CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|Evicted)\b",
    re.IGNORECASE,
)
SCRIPT = re.compile(r"\becho\b|\$[({]|\bwhile (?:true|:)|;\s*(?:then|do|done|fi)\b")
_LITERAL = re.compile(
    r"(?:contain(?:s|ing)?|with|matching|match(?:es)?|say(?:s|ing)?|mention(?:s|ing)?|包含|含有|含|带有|匹配|出现)\s*[\"'`“‘「『](.{1,80}?)[\"'`”’」』]",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.:/][A-Za-z0-9]+)+")
_CONFIRM = re.compile(
    r"^\s*(?:is|are|was|were|does|do|did|has|have|can|could|confirm|check|verify|确认|检查|核实|是否)\b|^\s*(?:确认|检查|核实|是否)|[吗么]\s*[??]?\s*$|是否|有没有|是不是",
    re.IGNORECASE,
)
_WIDE = re.compile(
    r"\bwhy\b|root cause|\bhow come\b|what (?:is|are|went|happened|caused)|为什么|为何|原因|根因|怎么回事",
    re.IGNORECASE,
)


def symptoms_of(question: str) -> tuple[Symptom, ...]:
    return tuple(symptom for symptom in SYMPTOMS if symptom.asked.search(question))


def record_terms(found: Iterable[Symptom]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for symptom in found for term in symptom.records))


def metric_terms(found: Iterable[Symptom]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for symptom in found for term in symptom.metrics))


def literals_of(question: str) -> tuple[str, ...]:
    """Texts that the question wants to see verbatim: `logs that contain "ERROR"`."""
    return tuple(dict.fromkeys(hit.strip() for hit in _LITERAL.findall(question) if hit.strip()))


def names_of(question: str) -> tuple[str, ...]:
    """Compound names in the question: services, pods, namespaces."""
    return tuple(dict.fromkeys(_NAME.findall(question)))


def is_narrow(question: str) -> bool:
    """Whether it asks to confirm one thing rather than for a cause (EXE-7)."""
    return bool(_CONFIRM.search(question)) and not _WIDE.search(question)


def asks_why(question: str) -> bool:
    return _WIDE.search(question) is not None
