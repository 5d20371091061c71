"""Words of English and Chinese text, and BM25 over small collections.

English words are folded and lightly stemmed; Chinese, which has no blanks, is read in pairs of characters; a
compound such as `payments-pool` or `HikariPool` counts as a whole and by its parts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

K1 = 1.2
B = 0.75

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[._/:@-][A-Za-z0-9]+)*|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
# Words and pairs of characters that carry no meaning of their own in a question.
STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been being but by can could did do does for from had has have how i if in into is it its"
        " me my no not of on or our out over please post should show so such tell than that the their then there these"
        " they this to up was we were what whats when where which who why will with would you your s t list figure last"
        " give get right now",
    )
)
_STOP_HAN = frozenset(
    re.findall(
        r"\w+",
        "为什 什么 怎么 如何 是否 有没 没有 请问 请查 哪些 哪个 这个 那个 的时 时候 一下 现在 目前 出现 发生 问题 原因"
        " 么会 会不 是什 么原 的原 了吗 了么 请帮 帮我",
    )
)


def words(text: str) -> list[str]:
    """The words of a text that carry meaning, in order, repeated as they occur."""
    found: list[str] = []
    for hit in _TOKEN.finditer(text):
        token = hit[0]
        if _HAN.match(token):
            found += _pairs(token)
            continue
        whole = token.casefold()
        if whole not in STOP:
            found.append(stem(whole))
        parts = [part.casefold() for part in _PART.findall(token)]
        if len(parts) > 1:
            found += [stem(part) for part in parts if part not in STOP and len(part) > 1]
    return found


def _pairs(text: str) -> list[str]:
    if len(text) == 1:
        return [text]
    pairs = (text[at : at + 2] for at in range(len(text) - 1))
    return [pair for pair in pairs if pair not in _STOP_HAN]


def stem(word: str) -> str:
    """A plain ending off, so that `timeouts`, `timeout` and `restarting`, `restarts` meet."""
    if len(word) < 5 or not word.isalpha():
        return word
    for ending, least in (
        ("ations", 5),
        ("ation", 5),
        ("ingly", 4),
        ("ings", 4),
        ("ing", 4),
        ("ies", 3),
        ("ied", 3),
        ("edly", 4),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)] + ("y" if ending in {"ies", "ied"} else "")
    for ending in ("es", "ed", "er", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 and not word.endswith("ss"):
            return word[: -len(ending)]
    return word


class Bm25:
    """A collection of texts as word lists, scored against query words."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._counts = [Counter(document) for document in documents]
        self._lengths = [len(document) for document in documents]
        self._mean = (sum(self._lengths) / len(self._lengths)) if documents else 0.0
        self._frequency = Counter(word for count in self._counts for word in count)

    def idf(self, word: str) -> float:
        total, having = len(self._counts), self._frequency[word]
        return math.log(1 + (total - having + 0.5) / (having + 0.5))

    def scores(self, query: Iterable[str]) -> list[float]:
        """A score for each document; 0.0 where no query word occurs."""
        wanted = list(dict.fromkeys(query))
        return [self._score(at, wanted) for at in range(len(self._counts))]

    def _score(self, at: int, wanted: list[str]) -> float:
        counts, length = self._counts[at], self._lengths[at]
        norm = K1 * (1 - B + B * length / self._mean) if self._mean else K1
        return sum(self.idf(word) * counts[word] * (K1 + 1) / (counts[word] + norm) for word in wanted if counts[word])
