"""How well a text bears out a sentence of prose: a logistic over what can be counted. No model, no downloads.

The weights are fitted by `tests/bench/fit_claims.py` on half of the public sets of bar J5, split by document.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from handlers.evidence.ranking import STOP, stem

_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?|\d+(?:[.,]\d+)*%?")
_LEXEME_OR_WORD = re.compile(r"\d+(?:[.,]\d+)*[a-z]*|[a-z]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|without|cannot|nor|neither|nothing|nobody|lack\w*|fail\w*|unable)\b|n['’]t\b",
    re.IGNORECASE,
)
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    )
} | {
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
    "dozen": "12",
    "twice": "2",
    "half": "1/2",
}
_TENS = frozenset({"20", "30", "40", "50", "60", "70", "80", "90"})
_OPPOSITES = (
    "increase decrease|rise fall|more less|higher lower|high low|before after|first last|begin end|start finish|open close|"
    "accept reject|agree disagree|allow forbid|approve oppose|support oppose|include exclude|positive negative|success failure|"
    "succeed fail|win lose|gain loss|buy sell|best worst|better worse|good bad|early late|old new|young old|large small|big small|"
    "long short|strong weak|fast slow|hot cold|easy difficult|simple complex|cheap expensive|able unable|likely unlikely|"
    "possible impossible|happy unhappy|satisfied dissatisfied|enable disable|present absent|active inactive|always never|"
    "often rarely|many few|most least|all none|above below|inside outside|public private|remain leave|join leave|add remove|"
    "increase reduce|improve worsen|expand shrink|love hate|like dislike|interested uninterested|willing unwilling|safe dangerous|"
    "healthy unhealthy|major minor|maximum minimum|up down|left right|north south|east west|male female|man woman|husband wife|"
    "father mother|son daughter|brother sister|free paid|optimistic pessimistic|praise criticize|confident doubtful|"
    "necessary unnecessary|useful useless|clear unclear|known unknown|popular unpopular|similar different|same different"
)
NEAR = 2  # sentences that a window spans


@dataclass(frozen=True, slots=True)
class Read:
    """A text as word forms: `stems` in order, `numbers`, `names` (capitalised inside a sentence)."""

    stems: tuple[str, ...]
    numbers: frozenset[str]
    names: frozenset[str]


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _OPPOSITES.split("|"):
        one, other = (stem(word) for word in pair.split())
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITE = _opposites()


def read(text: str) -> Read:
    stems, numbers, names = [], set(), set()
    for sentence in _SENTENCE.split(text):
        for at, hit in enumerate(_WORD.finditer(sentence)):
            word = hit[0]
            folded = word.casefold().replace("’", "'").removesuffix("'s")
            if word[0].isdigit():
                numbers.add(word.replace(",", "").rstrip("%."))
            elif folded in _NUMBER_WORDS:
                numbers.add(_NUMBER_WORDS[folded])
            elif word[0].isupper() and at and folded not in STOP:
                names.add(folded)
            if folded not in STOP:
                stems.append(stem(folded))
    return Read(tuple(stems), frozenset(numbers), frozenset(names))


FEATURES = ("bias", "numbers", "names", "window", "negation", "turned", "length", "strange")


def features(claim: str, evidence: str) -> list[float]:
    """What is counted, each 0 to about 3, in the order of FEATURES."""
    said, given = read(claim), read(evidence)
    words = _all_words(evidence)
    known = frozenset(given.stems) | {stem(word) for word in words}
    heads = {word[:5] for word in known}
    strange = [word for word in dict.fromkeys(said.stems) if word[:5] not in heads and not word[0].isdigit()]
    plain = {word.removesuffix("'s") for word in words}
    shares, negations, turned = _by_sentence(claim, _windows(evidence))
    return [
        1.0,
        min(3.0, len(said.numbers - given.numbers)),
        min(3.0, len(said.names - plain)),
        sum(shares) / len(shares),
        negations,
        turned,
        math.log(1 + len(given.stems)) / 5,
        max((min(len(word), 12) for word in strange), default=0) / 6,
    ]


def strange_numbers(claim: str, evidence: str) -> tuple[str, ...]:
    """Numbers of the claim, with the letters written to them (`10bn`), that are nowhere in the evidence."""
    given = lexemes(evidence)
    return tuple(lexeme for lexeme in lexemes(claim) if lexeme not in given)


def _tokens(text: str) -> list[str]:
    """Words in order, number words as digits, `twenty five` as one."""
    tokens: list[str] = []
    tens = False
    for word in _LEXEME_OR_WORD.findall(text.casefold()):
        value = _NUMBER_WORDS.get(word)
        if value is not None and tens and len(value) == 1 and value != "0":
            tokens[-1] = tokens[-1][:-1] + value
        else:
            tokens.append(value or word)
        tens = value in _TENS
    return tokens


def lexemes(text: str) -> dict[str, None]:
    """Every number of a text as it is written, with the letters written to it, and number words as digits."""
    folded = re.sub(r"\b(?:one|half|twice)\b", " ", text.casefold())
    return dict.fromkeys(token.replace(",", "") for token in _tokens(folded) if token[0].isdigit())


def _all_words(text: str) -> list[str]:
    return [hit.casefold() for hit in _WORD.findall(text)]


def _windows(evidence: str) -> list[tuple[frozenset[str], int]]:
    """Stretches of a few sentences: their words, and how many negations they hold."""
    parts = [part for part in _SENTENCE.split(evidence) if part.strip()] or [evidence]
    out = []
    for at in range(len(parts)):
        text = " ".join(parts[at : at + NEAR])
        out.append((frozenset(read(text).stems), len(_NEGATION.findall(text))))
    return out


def _by_sentence(claim: str, windows: Sequence[tuple[frozenset[str], int]]) -> tuple[list[float], float, float]:
    """Shares of each sentence's words in its best window; negations that only one side has; words turned round."""
    shares, negations, turned = [], 0.0, 0.0
    for sentence in [part for part in _SENTENCE.split(claim) if part.strip()] or [claim]:
        words = frozenset(read(sentence).stems)
        if not words:
            continue
        best, denied = max(windows, key=lambda window: len(words & window[0]))
        shares.append(len(words & best) / len(words))
        mine = len(_NEGATION.findall(sentence))
        negations += 1.0 if mine and not denied else 0.3 if denied and not mine else 0.0
        turned += sum(bool(OPPOSITE.get(word, frozenset()) & best) for word in words - best)
    return shares or [0.0], min(2.0, negations), min(2.0, turned)


# By FEATURES. Excerpts are lines taken out of a text, as verified lines are; a document is whole.
EXCERPTS: tuple[float, ...] = (-0.029, -1.689, -0.727, 2.452, -1.765, -0.361, 0.031, 0.036)
DOCUMENT: tuple[float, ...] = (-0.967, -0.926, -1.115, -0.088, -0.791, -1.289, 0.104, 0.935)


def support(claim: str, lines: Sequence[str], document: bool = False) -> float:
    """0 to 1: how likely it is that the lines bear the sentence out; 0.5 is the line between."""
    weights = DOCUMENT if document else EXCERPTS
    total = sum(weight * value for weight, value in zip(weights, features(claim, "\n".join(lines)), strict=True))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def is_prose(lines: Sequence[str]) -> bool:
    """Whether lines read like sentences rather than records."""
    text = " ".join(lines)
    words = re.findall(r"[A-Za-z]{2,}", text)
    return len(words) >= 25 and len(re.findall(r"[={}\[\]|<>\"]", text)) * 12 < len(words)
