"""An answer in prose cut into statements by rule: which are claims, which only guesses, advice or headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from handlers.wording import anchored, causal, negated, sentences, states_failed_access

Kind = Literal["claim", "hypothesis", "action"]
MAX_CHARS = 4_000  # of a sentence; what is longer is no sentence, and no claim
MAX_STATEMENTS = 1_000

_FENCE = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n]*\n(?P<inside>.*?)(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t].*$|^[ \t|:+-]{3,}$", re.MULTILINE)
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__")
# A quotation in other marks than its own begins anew at each of them: unclosed ones cost no more than their length.
_QUOTE = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^“”\n]+)”|「([^「」\n]+)」|『([^『』\n]+)』")
_ENDS = {ord(mark): chr(0xE000 + k) for k, mark in enumerate(".;!?。！？；")}
_BACK = {ord(stand_in): chr(mark) for mark, stand_in in _ENDS.items()}
_HEDGE = re.compile(
    r"(?<![A-Za-z])(?:may|might|could\s+be|could\s+have|possibl[ey]|perhaps|probabl[ey]|likely|presumably|suspect(?:s|ed)?"
    r"|appears?\s+to|seems?|suggests?|hypothes[ie]s\w*|not\s+(?:yet\s+)?(?:confirmed|certain|clear|known)|unclear)(?![A-Za-z])"
    r"|可能|也许|或许|大概|疑似|推测|猜测|怀疑|似乎|看起来|尚未确认|未确认|不确定",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"(?<![A-Za-z])(?:should|recommend(?:ed|ation|ations|s)?|consider|suggested\s+(?:fix|action)|next\s+steps?|let\s+me\s+know|please)(?![A-Za-z])"
    r"|^(?:increase|decrease|raise|lower|restart|roll\s*back|check|verify|review|add|set|enable|disable|fix|scale|monitor|investigate|upgrade|use|make\s+sure|ensure)\s"
    r"|建议|应该|应当|请(?!求)|推荐|^(?:检查|重启|回滚|扩容|调大|调小|升级|修复|增加|减少)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the answer, what kind it is, and the texts that it quotes."""

    text: str
    kind: Kind
    quotes: tuple[str, ...]


def statements(answer: str) -> tuple[Statement, ...]:
    """The statements of an answer in order, each once. A sentence is a claim if it holds a number or an identifier,
    states a cause or a failed access, denies something or quotes; a heading, a question, or a sentence without any of these is none.
    What is hedged is a hypothesis, what is advice an action. A fenced block is quoted by the sentence before it.

    No more than MAX_STATEMENTS are cut out: the prose as a whole is what the gate and the Evaluator read beside them.
    """
    found: dict[str, Statement] = {}
    at, last = 0, ""
    for block in [*_FENCE.finditer(answer), None]:
        for sentence in _sentences(answer[at : block.start() if block else len(answer)]):
            if len(found) == MAX_STATEMENTS:
                return tuple(found.values())
            kind = _kind(sentence) if len(sentence) <= MAX_CHARS else None
            quotes = quoted(sentence) if kind is not None else ()
            if kind is not None and (quotes or kind != "claim" or _stating(sentence)):
                last = sentence
                found.setdefault(sentence, Statement(sentence, kind, quotes))
            else:
                last = ""
        if block is None:
            break
        at = block.end()
        lines = tuple(line.strip() for line in block["inside"].splitlines() if line.strip())
        if last and lines:
            found[last] = Statement(last, found[last].kind, (*found[last].quotes, *lines))
    return tuple(found.values())


def quoted(sentence: str) -> tuple[str, ...]:
    """The texts in quotes or code marks that could be a line of evidence: more than one word."""
    texts = (next(group for group in m.groups() if group is not None).strip() for m in _QUOTE.finditer(sentence))
    return tuple(text for text in texts if re.search(r"[\s=:]", text) or len(text) >= 24)


def own_words(sentence: str) -> str:
    """The sentence without what it quotes: a negation in a quoted log line denies nothing."""
    return _QUOTE.sub(lambda m: m[0] if not quoted(m[0]) else " ", sentence)


def _sentences(text: str) -> tuple[str, ...]:
    # A full stop inside a quotation ends no sentence.
    shielded = _QUOTE.sub(lambda m: m[0].translate(_ENDS), _EMPHASIS.sub("", _HEADING.sub("\n", text)))
    return tuple(piece.translate(_BACK).strip(" |") for piece in sentences(shielded))


def _kind(sentence: str) -> Kind | None:
    if sentence.endswith(("?", "？", ":", "：")) and not quoted(sentence):
        return None if not anchored(sentence) or sentence.endswith(("?", "？")) else "claim"
    if _ADVICE.search(sentence):
        return "action"
    return "hypothesis" if _HEDGE.search(sentence) else "claim"


def _stating(sentence: str) -> bool:
    return anchored(sentence) or causal(sentence) or negated(sentence) or states_failed_access(sentence)
