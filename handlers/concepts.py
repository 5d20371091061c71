"""What operations texts are about, across languages: a short list of general words, Chinese and English.

It says whether a statement and a record of another language can have to do with each other (REP-12). It only ever
compares; no word of it is evidence. A subject that stands in no row cannot be told.
"""

from __future__ import annotations

import re
from functools import lru_cache

from handlers.question import content_words, is_chinese, vocabulary

_ROWS = {
    "pool": "连接池|线程池|pool|hikari",
    "connection": r"连接|链接|connect|\bconn|socket|pool|hikari|\bdial",
    "lock": "锁|lock|ora-00060|40p01",
    "timeout": "超时|time[ds]?[-_ ]?out|timing out|deadline",
    "refused": "拒绝|不可达|连不上|无法连接|无法访问|refus|unreachable|no route|reject|reset by",
    "denied": r"拒绝|权限|禁止|无权|未授权|认证|鉴权|登录|密码|denied|forbid|unauthor|permission|auth|password|credential|login|\b40[13]\b",
    "missing": r"不存在|未找到|找不到|缺失|缺少|not[-_ ]?found|no such|not exist|missing|\b404\b|nxdomain",
    "exhausted": "耗尽|打满|用尽|满|饱和|不足|exhaust|full|saturat|insufficient|not available|max|limit|no space",
    "memory": r"内存|堆(?!积)|溢出|memory|\bmem|heap|oom|\brss|\b137\b",
    "cpu": r"cpu|处理器|负载|throttl|\bload\b",
    "disk": r"磁盘|硬盘|存储|空间|disk|storage|\bspace|volume|filesystem|inode|iops|/dev/",
    "lag": "积压|堆积|滞后|延迟|lag|backlog|queue|pending|latenc|delay|depth|behind",
    "slow": r"慢|延迟|耗时|响应|卡|slow|latenc|durat|took|\bp9|elapsed|\dms\b|_ms\b|seconds|delay|time[ds]?[-_ ]?out|response",
    "certificate": r"证书|cert|x509|\btls|\bssl",
    "expiry": "过期|到期|失效|expir|not[-_ ]?after|valid",
    "restart": r"重启|崩溃|退出|挂掉|挂了|杀|驱逐|终止|停止|restart|crash|\bexit|terminat|kill|reboot|back-?off|evict|oom|start",
    "retry": "重试|尝试|retr[iy]|attempt|tries",
    "error": r"错误|报错|失败|异常|出错|故障|error|fail|exception|fatal|panic|\b5\d\d\b|refus|time[ds]?[-_ ]?out|denied",
    "leak": "泄漏|泄露|leak|unclosed|not closed",
    "change": "发布|上线|部署|变更|升级|回滚|迁移|版本|deploy|release|rollout|version|upgrade|chang|roll(?:ed)?[- ]?back|migrat|revert",
    "approval": "审批|批准|approv",
    "network": r"网络|丢包|带宽|network|packet|route|dns|\btcp|unreachable|bandwidth|retransmi",
    "names": r"域名|解析|dns|resol|nxdomain|no such host|lookup",
    "database": r"数据库|慢查询|database|db\b|sql|postgres|oracle|jdbc|ora-|query|statement",
    "replica": "副本|复制|主从|备库|replic|slave|standby",
    "messages": "消费|队列|消息|consum|kafka|topic|queue|messag|broker|rabbit",
    "traffic": "流量|请求|并发|request|qps|rps|traffic|rate",
    "cache": "缓存|命中率|cache|redis|evict",
    "thread": "线程|thread",
    "collection": r"垃圾回收|停顿|\bgc|garbage|pause",
    "backup": "备份|快照|backup|snapshot|dump",
    "quota": "配额|限制|上限|限流|quota|limit|max|throttl|429",
    "alert": "告警|报警|警报|alert|alarm|firing",
    "schedule": "调度|schedul|pending|evict|taint|insufficient",
    "configuration": "配置|参数|config|setting|param|propert",
}
_PATTERNS = {name: re.compile(words) for name, words in _ROWS.items()}
_STATES = frozenset({"exhausted", "error", "alert"})
"""What is said of anything: they tell two texts apart only where a statement says nothing else."""
ACCESS = frozenset({"timeout", "refused", "denied", "missing"})
"""How an access fails."""
REACH = ACCESS | {"connection", "network", "names", "certificate", "expiry"}
"""What the error text of a failed call may tell of."""
_SUBJECT = re.compile(
    "[\u3400-\u9fff]*(?:服务|系统|应用|集群|节点|主机|实例|接口|消费组|组)|[并均都]?[未没无不][有曾]?(?:发现|查到|找到|出现|见)?|发现|日志"
)


@lru_cache(maxsize=4096)
def concepts(text: str) -> frozenset[str]:
    """The rows that `text` has a word of."""
    folded = text.casefold()
    return frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(folded))


@lru_cache(maxsize=65_536)
def _has(text: str, name: str) -> bool:
    # Of a record only the rows of a statement are looked for: there are many records and few statements.
    return _PATTERNS[name].search(text.casefold()) is not None


def topics(statement: str) -> frozenset[str]:
    """The rows that tell what a statement is about; a state such as "full" only where it says nothing else."""
    found = concepts(statement)
    return found - _STATES or found


def related(statement: str, record: str, among: frozenset[str] | None = None) -> bool:
    """Whether both speak of one thing of the list, or of `among`."""
    found = topics(statement)
    return any(_has(record, name) for name in (found if among is None else found & among))


def unrelated(statement: str, record: str) -> bool:
    """Whether the list says that they have nothing to do with each other.

    Only if it knows what the statement is about: each stretch of Chinese has a word of the list (a subject such as
    订单服务, or 未发现, need not), or, without Chinese, the statement has one; and the record has none of them. The Latin
    words of a Chinese statement are names, and stand in any language's record as they are.
    """
    if not _known(statement) or related(statement, record):
        return False
    return _names(statement).isdisjoint(vocabulary([record]))


def _names(statement: str) -> frozenset[str]:
    if not is_chinese(statement):
        return frozenset()
    return frozenset(word.stem for word in content_words(statement) if word.stem.isascii())


@lru_cache(maxsize=1024)
def _known(statement: str) -> bool:
    han = [word for word in content_words(statement) if not statement[word.start].isascii()]
    stretches: list[tuple[int, int]] = []
    for word in han:
        if stretches and word.start < stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], word.end)
        else:
            stretches.append((word.start, word.end))
    said = [_SUBJECT.sub("", statement[start:end]) for start, end in stretches]
    return bool(topics(statement) or _names(statement)) and all(concepts(text) for text in said if len(text) > 1)
