"""What a question is about, by name: what a record, or the call that returned it, has to name to answer it.

A name is a compound (`ledger-db`), or a single word where a question puts its subject: after `why is`, after `what is
wrong with`, as the last `of` or `in` phrase; in a Chinese question any Latin word. General words of the trade name
nothing in particular: a website that is down may be any line's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from handlers.agents import symptoms

_GENERAL = frozenset(
    re.findall(
        r"[a-z']+",
        "the our my your their his her its this that these those a an any all some each every no so many much more most"
        " few several new old own other same such only both"
        " it we they you he she i there here who someone somebody anyone anybody everyone nobody people team teams"
        " everything anything something nothing thing things stuff one ones"
        " user users customer customers client clients visitor visitors caller callers consumer consumers producer"
        " producers developer developers admin admins engineer engineers operator operators agent agents"
        " system systems platform platforms infrastructure environment environments production prod staging stage dev"
        " test tests testing qa cluster clusters host hosts node nodes machine machines server servers vm vms instance"
        " instances container containers pod pods deployment deployments replica replicas namespace namespaces"
        " workload workloads image images process processes thread threads worker workers service services"
        " microservice microservices svc api apis endpoint endpoints gateway proxy balancer loadbalancer backend"
        " backends frontend frontends app apps application applications site sites website websites web page pages"
        " portal dashboard ui job jobs task tasks cron cronjob cronjobs batch script scripts pipeline pipelines"
        " build builds function functions lambda lambdas module modules component components library plugin program"
        " request requests response responses call calls query queries transaction transactions message messages"
        " event events topic topics queue queues stream streams connection connections pool pools session sessions"
        " database databases db table tables index cache caches store storage bucket disk disks volume volumes file"
        " files folder directory data dataset record records row rows log logs line lines metric metrics trace traces"
        " alert alerts alarm alarms dashboard dashboards monitor monitors monitoring probe probes check checks"
        " network traffic route routes dns domain port ports firewall certificate certificates cert certs token tokens"
        " secret secrets config configs configuration configmap setting settings flag flags variable variables"
        " cpu memory ram heap gc io load usage utilization utilisation throughput latency capacity quota rate rates"
        " number count counts size amount level levels value values percentage ratio cost costs time times duration"
        " error errors exception exceptions failure failures fault faults crash crashes outage outages incident"
        " incidents problem problems issue issues bug bugs symptom symptoms status state health performance behaviour"
        " behavior condition cause causes reason reasons root change changes release releases version versions rollout"
        " upgrade migration update updates deploy deploys commit"
        " second seconds minute minutes hour hours day days week weeks month months morning afternoon evening night"
        " midnight noon today yesterday tomorrow monday tuesday wednesday thursday friday saturday sunday january"
        " february march april may june july august september october november december utc am pm"
        " last past first next previous current recent now then ago still yet again always sometimes often never"
        " not really actually suddenly currently recently constantly continuously repeatedly intermittently"
        " high higher low lower up down out off slow slower fast bad worse big small large long short full empty"
        " unhealthy healthy unavailable available unreachable broken stuck dead alive idle busy ready unready stale"
        " begin begins began occur occurs occurred appear appears become becomes change changes end ends recover recovers"
        " reachable accessible responsive overloaded affected involved"
        " wrong right ok okay fine normal abnormal green red able unable"
        " is are was were be been being am do does did done has have had can could should will would might must"
        " and or but if when where which what why how whose than as at on in of for from to with by about into over"
        " after before during since until between under because while via per"
        " get gets got go goes going come comes keep keeps kept take takes took see sees saw show shows say says make"
        " makes made give gives need needs want wants use uses used run runs ran work works look looks seem seems feel"
        " fail fails start starts stop stops drop drops rise rises fall falls grow grows return returns respond responds"
        " receive receives send sends hit hits happen happens contain contains exist exists lag lags restart restarts"
        " reject rejects refuse refuses abort aborts block blocks wait waits evict evicts throttle throttles retry retries"
        " skip skips throw throws create creates delete deletes write writes read reads connect connects reach reaches"
        " serve serves save saves load loads open opens close closes deny denies allow allows accept accepts scale scales"
        " mount mounts pull pulls push pushes freeze freezes reset resets print prints process processes handle handles"
        " cost pass passes lose loses lost spike spikes hang hangs die dies"
        " eks gke aks kubernetes k8s aws gcp azure cloud linux docker http https rest grpc json sql url ip tcp ssl tls"
        " login logins signup logon customer's user's",
    )
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9']*(?:[-_.:/][A-Za-z0-9]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_AUXILIARY = r"(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|must|might)(?:n't|n’t)?"
_LEAD = re.compile(
    rf"\b(?:why|how come|how(?: many times| often)?|when)\s+{_AUXILIARY}\s+|^\s*{_AUXILIARY}\s+|\bwrong with\s+|\bhappen(?:s|ed|ing)? (?:to|with|in|on)\s+"
    r"|\b(?:status|state|health) of\s+|\bwhat (?:is|was)\s+(?=\w+ (?:doing|waiting)\b)",
    re.IGNORECASE,
)
_LAST = re.compile(r"\b(?:in|on|of|for|from|by|with)\s+((?:[\w./:-]+\s+){0,3}[\w./:-]+)\s*[?.!]*\s*$", re.IGNORECASE)
_INFLECTED = re.compile(r"(?:ing|ed)$")
_PRODUCT = re.compile(r"kafka|rabbit(?:mq)?|hikari(?:cp)?|postgres(?:ql)?|mysql|rds")
_PART_OF_SYSTEM = frozenset(
    re.findall(
        r"\w+",
        "service job api app application worker task pipeline database db server deployment cluster topic gateway engine"
        " backend frontend system pod queue site page",
    )
)
_OF_SYSTEM = "服务|系统|模块|网关"
_HAN_NAME = re.compile(rf"([\u3400-\u9fff]{{2,12}}?)(?:{_OF_SYSTEM})")
_HAN_LEAD = re.compile(
    r".*(?:为什么|为何|怎么|请问|查一下|检查|确认|核实|是否|是不是|有没有|我们|这个|那个|哪个|哪些|什么|目前|现在|昨天|今天|调用|访问|连接"
    r"|[的和与在把被由到从该某])"
)
_HAN_GENERAL = frozenset(
    "后端 前端 线上 生产 所有 全部 整个 业务 核心 上游 下游 依赖 外部 内部 应用 其他 操作 文件 监控 告警 日志 数据库 缓存 消息"  # noqa: SIM905
    " 测试 相关 多个 几个 两个 每个 一个 第三方 分布式".split()
)
_CONDITION = re.compile(r"(?:[A-Z]+[a-z]+){2,}|[A-Z]{2,}[A-Z][a-z]+")
_SEPARATOR = re.compile(r"[-_./: ]")
MOST_IN_PHRASE = 4
LEAST_CHARS = 2
SHORT = 4  # a shorter name counts only as a word of its own


def subjects(question: str) -> tuple[str, ...]:
    """The names that the question gives its subject, folded to lower case; none where it names nothing."""
    compound = symptoms.names_of(question)
    if _HAN.search(question):
        single = [word for word in _WORD.findall(question) if _names(word)]
    else:
        phrases = [question[hit.end() :] for hit in _LEAD.finditer(question)]
        phrases += [hit[1] for hit in _LAST.finditer(question)]
        single = [word for phrase in phrases for word in _phrase(phrase)]
    return tuple(dict.fromkeys(word.casefold() for word in (*compound, *single, *_han_names(question))))


def _han_names(question: str) -> Iterator[str]:
    """Systems by their Chinese names: `支付服务` in 为什么支付服务超时."""
    for hit in _HAN_NAME.finditer(question):
        name = _HAN_LEAD.sub("", hit[1])
        if len(name) > 1 and name not in _HAN_GENERAL:
            yield f"{name}{hit[0][len(hit[1]) :]}"


def comparable(subjects_asked: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether the names could stand in the texts: a Chinese one only where some system there has a Chinese name."""
    shown = tuple(texts)
    return all(name.isascii() or any(_HAN_NAME.search(text) for text in shown) for name in subjects_asked)


def told_in(subjects_asked: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether one of the names stands in the texts."""
    shown = tuple(texts)
    return any(named(subject, shown) for subject in subjects_asked)


def conditions(question: str) -> tuple[str, ...]:
    """Names of conditions in the trade's own spelling, `OOMKilled` or `OutOfMemoryError`: words with inner capitals that
    speak of a symptom."""
    found = (word for word in re.findall(r"[A-Za-z]+", question) if _CONDITION.fullmatch(word))
    return tuple(dict.fromkeys(word for word in found if symptoms.symptoms_of(word) or symptoms.PROBLEM.search(word)))


def asked_things(question: str) -> tuple[tuple[str, ...], ...]:
    """What a question of yes or no asks for: a condition by its name, or the words of a resource. Each is a search of its
    own, so that one without a hit can be told."""
    found = tuple((name,) for name in conditions(question))
    return found or tuple(one.records for one in symptoms.symptoms_of(question) if one.name in symptoms.RESOURCES)


def _phrase(text: str) -> Iterator[str]:
    """The names of the noun phrase that begins `text`: up to its verb, or to what it complains of."""
    spoken = [hit[0].casefold().removesuffix("'s") for hit in _WORD.finditer(re.split(r"[,;?!]", text, maxsplit=1)[0])]
    for at, word in enumerate(spoken[:MOST_IN_PHRASE]):
        of_system = spoken[at + 1 : at + 2] and spoken[at + 1] in _PART_OF_SYSTEM
        if _names(word) and (of_system or not _INFLECTED.search(word)):
            yield word
        elif word not in _GENERAL and not word.endswith("ly"):
            return


def _names(word: str) -> bool:
    """Whether a word can be a name: neither general nor a symptom's word."""
    folded = word.casefold()
    if folded in _GENERAL or len(folded) < LEAST_CHARS or folded.endswith("ly"):
        return False
    return _PRODUCT.fullmatch(folded) is not None or not symptoms.symptoms_of(folded)


def named(subject: str, texts: Iterable[str]) -> bool:
    """Whether one of `texts` has the name: blind to case, to separators in a compound, and to a plural's `s`."""
    parts = [re.escape(part) for part in _SEPARATOR.split(subject) if part]
    plain = subject.removesuffix("s") if len(parts) == 1 and len(subject) > SHORT else subject
    bounded = len(parts) == 1 and subject.isascii()
    single = re.compile(rf"(?<![A-Za-z0-9]){re.escape(plain)}(?![A-Za-z0-9])", re.IGNORECASE) if bounded else None
    # A short name stands inside too many words: `pg` in `pgtables`.
    whole = None if bounded and len(subject) < SHORT else re.compile("[-_./: ]?".join(parts), re.IGNORECASE)
    return any((whole and whole.search(text)) or (single and single.search(text)) for text in texts)
