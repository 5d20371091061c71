"""Words with an opposite, in both languages, and whether lines say the opposite of a claim: `unhealthy` of `healthy`,
没有超时 of 超时, `decreased` of `increased`. A negation in the same clause turns a word round."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handlers.agents.lexical_times import shares_time
from handlers.anchors import fold, identifiers, negated, stands_in
from handlers.question import content_words, vocabulary

# concept -> (one side, its opposite); an empty opposite is said by a negation alone
_POLES = {
    "available": (r"available|可用", r"unavailable|不可用|(?<![\d/])0/\d+ nodes? (?:is|are) available"),
    "reachable": (r"reachable|可达", r"unreachable|不可达"),
    "ready": (
        r"ready|就绪|(?<![\d/.])(?P<all>[1-9]\d?)/(?P=all)(?![\d/])",
        r"not\s?ready|unready|未就绪|(?<![\d/.])0/[1-9]\d?(?![\d/])",
    ),
    "healthy": (r"healthy|健康", r"unhealthy|不健康"),
    "up": (
        r"(?<=is )up|(?<=are )up|(?<=was )up|(?<=were )up|(?<=back )up|(?<=came )up|-[so]down",
        r"(?<=is )down|(?<=are )down|(?<=was )down|(?<=were )down|(?<=went )down|\+[so]down",
    ),
    "succeed": (
        r"succe(?:eds?|eded|ss|ssful|ssfully)|成功|exit(?:ed)?(?: with)?(?: code| status)?[ :=]{1,2}0(?!\d)",
        r"fail(?:s|ed|ing|ures?)?|unsuccessful(?:ly)?|失败|exit(?:ed)?(?: with)?(?: code| status)?[ :=]{1,2}[1-9]\d*",
    ),
    "rise": (
        r"increas(?:e|es|ed|ing)|r[io]se(?:s|n)?|rising|gr[eo]w(?:s|n|ing)?|(?:went|goes|going)\s+up|上升|升高|增加|增长|上涨|变大",
        r"decreas(?:e|es|ed|ing)|f[ae]ll(?:s|en|ing)?|drop(?:s|ped|ping)?|declin(?:e|es|ed|ing)|(?:went|goes|going)\s+down|下降|降低|减少|下跌|变小",
    ),
    "enabled": (r"enabled|已启用", r"disabled|已禁用"),
    "timeout": (r"tim(?:ed|es|ing)[ -]out|time[ -]?outs?|超时", ""),
    "alarm": (r"raised|triggered|(?:(?<=alarm )|(?<=alarm was )|(?<=alarm is ))set|触发", r"cleared|解除"),
    "connected": (r"(?:re-?)?established|reconnected|restored", r"lost|disconnected|断开|丢失"),
    "allowed": (
        r"accept(?:s|ed|ing)?|allowed|permitted|authori[sz]ed|granted|允许|接受",
        r"refus(?:es?|ed|ing)|reject(?:s|ed|ing)?|denied|forbidden|unauthori[sz]ed|拒绝|禁止",
    ),
    "clean": (r"normally|gracefully|cleanly|正常", r"abnormal(?:ly)?|unexpectedly|prematurely|killed|异常"),
    "start": (r"started|starting|启动", r"shut(?:ting)?[ -]?down|关闭"),
    "opened": (r"open(?:s|ed)?(?! files?)|打开", r"close[sd]?|关闭"),
    "enough": (r"enough|sufficient|足够|充足", r"insufficient|not enough|不足|不够"),
    "exists": (r"exists?|已存在", r"(?:does|do|did) not exist|doesn['’]t exist|no such file|不存在"),
    "active": (r"active(?: \(running\))?", r"inactive|(?<=active: )failed"),
    "later": (r"(?:is|are|was) after|later than|晚于", r"(?:is|are|was) before|earlier than|早于"),
    "exhausted": (r"exhaust(?:ed|ion)|耗尽", ""),
    "delay": (r"delay(?:s|ed)?|延迟", ""),
    "leak": (r"leak(?:s|ed|ing)?|泄[漏露]", ""),
    "crash": (r"crash(?:es|ed)?|崩溃", ""),
    "restart": (r"restart(?:s|ed)?|重启", ""),
}
_PATTERNS = {
    concept: tuple(
        (sign, re.compile(rf"(?:(?<![A-Za-z_])(?:{side})(?![A-Za-z_{{]))(?![\"']?\s?[:=])", re.IGNORECASE))
        for sign, side in ((-1, sides[1]), (1, sides[0]))
        if side
    )
    for concept, sides in _POLES.items()
}
_CLAUSE = re.compile(
    r"[,，;；。!！?？\n()（）]|\.(?=\s|$)|(?<![A-Za-z])(?:and|or|but|however|although|while)(?![A-Za-z])|但是?|却|然而|不过|[并且而]且?"
    r"|(?<=[\"'])\s+(?=[\w.-]+=)",
    re.IGNORECASE,
)
# What stands behind a colon says another thing than what stands before it: `no route: connect failed`.
_BEHIND_COLON = re.compile(r":\s|：")
_HUMP = re.compile(r"(?:(?<=Failed)|(?<=Not)|(?<=Already))(?=[A-Z])")
_EMPTY_CELL = re.compile(r"<\w+>")
_UNABLE = re.compile(
    r"无法|不能|(?<![A-Za-z])(?:cannot|can['’]t|could\s+not|couldn['’]t|unable)(?![A-Za-z])", re.IGNORECASE
)
_COULD_NOT = re.compile(
    r"无法|未能|(?<![A-Za-z])(?:could\s+not|couldn['’]t|unable\s+to|no\s+such|no\s+route|not\s+found|refused|denied|tim(?:ed|e)\s?out"
    r"|[A-Za-z]*Exception|(?<!no )(?<!0 )error(?=:|\s(?!rate|count|budget|code|total|handl|free|log)[a-z]))(?![A-Za-z])",
    re.IGNORECASE,
)
_CAN = re.compile(
    r"(?<![A-Za-z])(?P<not>cannot|can\s+not|can['’]t|(?:is|are|was|were)\s+(?:not\s+able|unable|not\s+allowed|not\s+permitted)\s+to"
    r"|unable\s+to|could\s+not)\s+(?P<verb>[a-z]+)"
    r"|(?<![A-Za-z])(?:can|could|(?:is|are|was|were)\s+(?:able|allowed|permitted)\s+to)\s+(?!not(?![a-z]))(?P<act>[a-z]+)",
    re.IGNORECASE,
)
_DO = "do "
_TRIED = re.compile(
    r"(?<![A-Za-z])(?:error|failed|failure|unable|could\s+not|couldn['’]t|cannot)\s+(?:to\s+|in\s+|while\s+|when\s+)?([a-z]{4,})(?![a-z])",
    re.IGNORECASE,
)
_PAST = re.compile(r"(?<![A-Za-z-])[a-z]{2,}ed(?![A-Za-z-])", re.IGNORECASE)
_FAILED = re.compile(r"(?<![A-Za-z])fail(?:s|ed|ing|ures?)?(?![A-Za-z])|失败", re.IGNORECASE)
_SAME_THING = 0.5


@dataclass(frozen=True, slots=True)
class Signs:
    """What lines say of a claim's words with an opposite: `opposite` is the clause that denies one, `agreed` is True
    if every one of them, and at least one, is said with the claim's sign."""

    opposite: str | None
    agreed: bool


@dataclass(frozen=True, slots=True)
class _Said:
    concept: str
    sign: int
    clause: str
    rest: frozenset[str]
    line: str


def signs(claim: str, lines: Sequence[str]) -> Signs:
    """The claim's words with an opposite against the lines. Opposite is only a clause about the same thing: it shares
    half of the claim's other words, a name, or the time; and no other clause may say it with the claim's sign."""
    records = [line for line in lines if not _is_header(line)]
    given = [said for line in records for said in (*_said(line), *_could_not(line), *_can(line), *_undone(line))]
    agreed: list[bool] = []
    undone = frozenset(said.concept for said in given if said.concept.startswith(_DO))
    given += [said for line in records for said in _did(line, undone)]
    for mine in (*_said(claim), *_can(claim), *_did(claim, undone)):
        theirs = [said for said in given if said.concept == mine.concept]
        theirs = _of_names(mine.clause, theirs) or theirs
        agreed.append(any(said.sign == mine.sign for said in theirs))
        if not agreed[-1]:
            for said in theirs:
                if _same_thing(claim, mine, said):
                    return Signs(said.clause.strip()[:160], False)
    return Signs(None, bool(agreed) and all(agreed))


def _said(text: str) -> Iterator[_Said]:
    for clause in _CLAUSE.split(_HUMP.sub(" ", _EMPTY_CELL.sub(_blank, fold(text)))):
        left, found = clause, []
        for concept, sides in _PATTERNS.items():
            own = clause
            for sign, pattern in sides:
                found += [(concept, sign, m.start()) for m in pattern.finditer(own)]
                own, left = pattern.sub(_blank, own), pattern.sub(_blank, left)
        if not found:
            continue
        # That something could not be done turns no word round: `could not connect, timed out`.
        plain = _UNABLE.sub(_blank, left)
        rest = frozenset(word.stem for word in content_words(left))
        for concept, sign, at in found:
            turned = -1 if negated(_segment(plain, clause, at)) else 1
            yield _Said(concept, sign * turned, clause, rest, text)


def _is_header(line: str) -> bool:
    """The head of a table: `NAME READY STATUS RESTARTS` says nothing."""
    return line.isupper() and not any(char.isdigit() for char in line) and "  " in line.strip()


def _can(text: str) -> Iterator[_Said]:
    """What can be done and what cannot: `user x cannot list pods`."""
    for clause in _CLAUSE.split(fold(text)):
        for m in _CAN.finditer(clause):
            verb = m["verb"] or m["act"]
            rest = frozenset(word.stem for word in content_words(clause))
            yield _Said(f"can {verb.lower()}", -1 if m["not"] else 1, clause, rest, text)


def _undone(line: str) -> Iterator[_Said]:
    """What a record says was tried and not done: `error acquiring the lock`, `could not extend file`."""
    for clause in _CLAUSE.split(fold(line)):
        rest = frozenset(word.stem for word in content_words(clause))
        yield from (_Said(f"{_DO}{_verb(m[1])}", -1, clause, rest, line) for m in _TRIED.finditer(clause))


def _did(text: str, undone: frozenset[str]) -> Iterator[_Said]:
    """What a text says was done, of what a record says was not."""
    for clause in _CLAUSE.split(fold(text)) if undone else ():
        if _TRIED.search(clause) or _COULD_NOT.search(clause) or negated(clause) or _FAILED.search(clause):
            continue
        rest = frozenset(word.stem for word in content_words(clause))
        done = {f"{_DO}{_verb(m[0])}" for m in _PAST.finditer(clause)} & undone
        yield from (_Said(concept, 1, clause, rest, text) for concept in sorted(done))


def _verb(word: str) -> str:
    return min(vocabulary([word.lower()]), key=len)


def _of_names(clause: str, theirs: list[_Said]) -> list[_Said]:
    """Of what lines say, that of the lines with the names of the claim's clause."""
    names = identifiers(clause)
    return [said for said in theirs if any(stands_in(name, fold(said.line)) for name in names)]


def _could_not(line: str) -> Iterator[_Said]:
    """That a record says something could not be done: it failed."""
    for clause in _CLAUSE.split(fold(line)):
        if _COULD_NOT.search(clause):
            yield _Said("succeed", -1, clause, frozenset(), line)


def _blank(m: re.Match[str]) -> str:
    return " " * len(m[0])


def _segment(plain: str, clause: str, at: int) -> str:
    """The part of `plain` between the colons of `clause` that stand around `at`."""
    ends = [m.end() for m in _BEHIND_COLON.finditer(clause)]
    return plain[max([e for e in ends if e <= at], default=0) : min([e for e in ends if e > at], default=len(plain))]


def _same_thing(claim: str, mine: _Said, said: _Said) -> bool:
    folded = fold(said.line)
    if any(stands_in(name, folded) for name in identifiers(claim)) or shares_time(claim, said.line):
        return True
    rest = mine.rest - {"存在", "出现", "发生"}
    return len(rest & vocabulary([said.clause])) >= _SAME_THING * len(rest)
