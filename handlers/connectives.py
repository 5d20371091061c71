"""How a text says that one thing made another: because, led to, the reason is, 导致, 是因, 所致; and what it names on
either side. Not causal is an alert that was triggered, `0 results in 30 minutes`, and a cause that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from handlers.identifiers import scan

_UNKNOWN = r"(?!\s+(?:(?:still|yet|as\s+yet|currently)\s+)?(?:not|un\w+|found|sought|being|under))"
_CHECKS = (
    r"(?!\s+(?:(?:a|an|the|this|that|our)\s+)?(?:quer|search|check|test|command|request|probe|call|scan|look-?up))"
)
_OF_CAUSE = (
    r"because(?:\s+of)?|caused\s+by|due\s+to|owing\s+to|as\s+a\s+(?:result|consequence)\s+of|resulting\s+from"
    r"|result(?:s|ed)?\s+from|stem(?:s|med|ming)?\s+from|attribut(?:ed|able)\s+to|blamed\s+on|triggered\s+by"
    r"|brought\s+(?:on|about)\s+by|on\s+account\s+of"
    rf"|(?:is|are|was|were)\s+(?:a|the)\s+(?:[\w-]+\s+)?(?:consequence|result|effect)\s+of{_CHECKS}"
)
_MADE = (
    r"caus(?:es|ed|ing)|lead(?:s|ing)?\s+to|led\s+to|result(?:s|ed|ing)?\s+in"
    r"|trigger(?:s|ing|ed(?!\s+(?:for|on|at|in|from|by|when|after|with)(?![A-Za-z])))|contribut(?:es|ed|ing)\s+to"
    r"|responsible\s+for|gave\s+rise\s+to|therefore|hence|for\s+(?:this|that)\s+reason"
    r"|(?<!question )(?<!problem )(?<!asked )(?:is|are|was|were)\s+(?:(?:exactly|precisely|probably|likely|also)\s+)?why(?=\s+\w)"
    r"|(?:is|are|was|were)\s+to\s+blame\s+for|explain(?:s|ed)\s+why"
    r"|(?:is|are|was|were|be|been|became)\s+(?:(?:the|a|an|one)\s+)?(?:[\w-]+\s+){0,3}?(?<!no )causes?(?:\s+(?:of|for|behind))?"
)
_REASON = (
    r"(?<!no )(?<!not )(?:(?:reasons?|causes?)(?:\s+(?:of|for|behind|why|that)\s+(?P<of>.{1,80}?))?"
    r"|reason\s+(?!codes?|fields?|phrases?|strings?|texts?|headers?|labels?|values?|is|was)(?P<clause>\w.{2,80}?))"
    rf"(?:\s+(?:is|was|are|were)(?![A-Za-z]){_UNKNOWN}(?:\s+(?:that|because)(?![A-Za-z]))?|\s?:(?=\s))"
)
_CAUSAL = re.compile(
    rf"(?<![A-Za-z])(?:(?P<effect_first>{_OF_CAUSE})|(?P<cause_first>{_MADE}))(?![A-Za-z])"
    rf"|(?<![A-Za-z])(?P<reason>{_REASON})"
    r"|(?P<han_reason>(?:根因|根本原因|原因|起因)(?:是|为|在于|：|:)(?!什么|啥|否|谁|何|不明|未知|空))"
    r"|(?P<han_effect>因为|由于|源于|归因于|归咎于|归结于|起因于|(?<![不])[是系皆]因(?![为素此])"
    r"|由(?!于)(?=[^，,。；;]{1,40}(?:触发|引起|引发|导致|造成|所致))|(?:(?<!不)是|系|为)(?=[^，,。；;]{1,40}所致))"
    r"|(?P<han_cause>导致|引起|引发|造成|致使|使得|触发(?!器|条件|阈值|时间|方式|规则|次数)|因此|因而|从而|所以"
    r"|(?<!不)是(?=[^，,。；;]{1,40}的(?:根因|根本原因|主要原因|直接原因|原因|起因|诱因|主因)(?:之一)?(?:[，,。；;]|\s*$)))"
    r"|(?P<han_last>所致)",
    re.IGNORECASE,
)
_REACH = 300
_SENTENCE = re.compile(r"[。；;！？!?\n]|\.(?=\s|$)")
_RESULTS = re.compile(
    r"(?:(?<![\w.])\d[\d,]*|(?<![A-Za-z])(?:no|any|zero|the|these|those|all|some|few|search|query|test|return(?:s|ed)?|gave|got|had|found|yield(?:s|ed)?"
    r"|show(?:s|ed)?|of))\s*$",
    re.IGNORECASE,
)
_SPAN_OF_TIME = re.compile(
    r"\s*(?:(?:the|a|this)\s+)?(?:last|past|previous|window|\d+\s?(?:s|ms|m|h|d|sec|min|hour|day|week)[a-z]*(?![A-Za-z]))",
    re.IGNORECASE,
)
_PASSIVE = re.compile(r"(?<![A-Za-z])(?:is|are|was|were|be|been|being|got|gets)\s+(?:\w+ly\s+)?$", re.IGNORECASE)
_TIMES = re.compile(
    r"\s*了?\s*(?:(?:\d+|[一二两三四五六七八九十百千]+)\s*(?:次|times?(?![A-Za-z]))|(?:once|twice|again)(?![A-Za-z]))",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"(?:(?<![A-Za-z])(?:what|which|who|whatever|how)(?:\s+\w+){0,3}\s*|(?:什么|哪[个些]?\w{0,6}|何事|啥)\s*)$",
    re.IGNORECASE,
)
_WHETHER = re.compile(r"(?<![A-Za-z])(?:whether|if)(?![A-Za-z])|是否|是不是", re.IGNORECASE)
_NOT_KNOWN = re.compile(
    r"(?<![A-Za-z])(?:not|no|nothing|cannot|nobody|un(?:known|clear|certain|determined|confirmed|explained))(?![A-Za-z])|n['’]t(?![A-Za-z])"
    r"|[不未无没]|尚|暂",
    re.IGNORECASE,
)
_VERB_AFTER = re.compile(
    r"(?:所)?(?:触发|引起|引发|导致|造成|所致)(?:了)?|的(?:根因|根本原因|主要原因|直接原因|原因|起因|诱因|主因)(?:之一)?"
)


@dataclass(frozen=True, slots=True)
class Causation:
    """What a text names as cause and as effect. `field` where the cause is given as a value: `the reason is ...`."""

    cause: str
    effect: str
    field: bool = False


def causal(text: str) -> bool:
    """True if `text` says that one thing made another: because, caused by, due to, led to, 导致, 因为, 引起, ..."""
    folded = scan(text).folded
    return next(_connectives(folded), None) is not None


def causation(text: str) -> Causation | None:
    """Cause and effect of the first connective that has something on either side; None if there is none.
    `由于 A，B` and `Because A, B` are cut at the comma."""
    folded = scan(text).folded
    for m in _connectives(folded):
        found = _sides(folded, m)
        if re.search(r"\w", found.cause) and re.search(r"\w", found.effect):
            return found
    return None


def _sides(folded: str, m: re.Match[str]) -> Causation:
    left, right = folded[: m.start()], folded[m.end() :]
    if m["reason"] or m["han_reason"]:
        return Causation(right, f"{left} {m['of'] or m['clause'] or ''}", field=True)
    if m["han_last"]:
        effect, _, cause = left.replace(",", "，").rpartition("，")
        return Causation(cause, effect)
    if m["han_effect"] or m["han_cause"]:
        right = _VERB_AFTER.sub(" ", right, count=1) if m[0] in {"由", "是", "系", "为"} else right
    if not re.search(r"\w", left):
        left, _, right = right.partition("，" if "，" in right else ",")
        return Causation(left, right)
    return Causation(left, right) if m["cause_first"] or m["han_cause"] else Causation(right, left)


def _connectives(folded: str) -> Iterator[re.Match[str]]:
    for m in _CAUSAL.finditer(folded):
        before = _SENTENCE.split(folded[max(0, m.start() - _REACH) : m.start()])[-1]
        after = _SENTENCE.split(folded[m.end() : m.end() + _REACH], maxsplit=1)[0]
        if not (_nothing_made(m[0].lower(), before, after) or _not_known(before, after)):
            yield m


def _nothing_made(said: str, before: str, after: str) -> bool:
    """A result is no making, and an alert that was triggered says not by what."""
    if said.startswith(("results", "result ")) and said.endswith("in"):
        return _RESULTS.search(before) is not None or _SPAN_OF_TIME.match(after) is not None
    if (said.startswith("trigger") and not said.endswith("by")) or said == "触发":
        return not re.search(r"\w", after) or bool(_PASSIVE.search(before) or _TIMES.match(after))
    return False


def _not_known(before: str, after: str) -> bool:
    asked = _ASKED.search(before)
    if asked is not None:
        return _NOT_KNOWN.search(before, 0, asked.start() + 1) is not None or _NOT_KNOWN.search(after) is not None
    return _WHETHER.search(before) is not None and _NOT_KNOWN.search(before + after) is not None
