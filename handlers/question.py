"""The parts of a question, and the content words by which a part is found in an answer (ruling 12). Pure, no model.

A question is split only at clear joints: several question marks, numbered lists, `;`, `，以及`, `, and` before a
verb, and `、` before 分别. Latin words compare by a light stem, Chinese by pairs of characters; two texts in
different languages share only their Latin names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

MAX_CHARS = 32_000
"""Of a question that our own agents plan and answer: each statement found is held against every word of it."""

_VERB_WORDS = (
    "is are was were does do did has have had can could should will would may might must what which who whose when "
    "where why how whether list show tell explain confirm check find give name describe say state report identify "
    "suggest recommend compare estimate verify"
)
_JOINT = re.compile(
    rf"[?？]+|[;；]+|[,，、]\s*以及|[,，]\s*and\s+(?=(?:{_VERB_WORDS.replace(' ', '|')})\b)", re.IGNORECASE
)
_MARK = re.compile(
    r"(?:(?<=\s)|(?<=[:：,，;；。.?？])|^)(?:[(（]?(?P<digit>\d{1,2}|[一二三四五六七八九])(?:[)）、]|\.(?!\d))|(?P<ring>[①-⑨]))\s*"
)
_EACH = re.compile("各自|分别")
_BULLET = re.compile(r"^\s*[-*•]\s+", re.MULTILINE)
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_./:][A-Za-z0-9]+)*")
_PHRASAL = re.compile(r"(?<![A-Za-z])(?P<verb>[A-Za-z]{3,}) (?P<particle>out|up|down|off|over)\b(?! of\b)")
_SEPARATOR = re.compile(r"[-_./:]")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_STOP_WORDS = (
    "a an the this that these those it its they them their there here and or but not no nor if then than as of in "
    "on at to for from with without by about into over under between during since until after before per via is "
    "are was were be been being am do does did done has have had can could should shall will would may might must "
    "what which who whom whose when where why how whether any some all each every much many more most less please "
    "tell me us my our you your we i show explain confirm check find give list describe say know see let so just "
    "also too very really actually currently now last recently still yet ever happen happened happening going "
    "wrong problem problems issue issues reason cause causes get got right one out up down off"
)
_STOP = frozenset(_STOP_WORDS.split())
_STOP_HAN = re.compile(
    "为什么|什么时候|什么|有没有|是不是|能不能|会不会|是否|怎么样|怎么|怎样|如何|为何|何时|多少|几个|几次|哪个|哪些|哪里|哪儿|"
    "以及|还有|请告诉我|请确认|请检查|请问|告诉|确认|一下|现在|目前|当前|最近|情况|原因|问题|分别|各自|这个|那个|还是|出现|发生|"
    "[吗呢吧啊了的地得是在有和与及或请会能被把对从到也都又就我你它们这那个几]"
)


def too_long(question: str) -> str:
    """What to do about a question of more than MAX_CHARS."""
    return (
        f"the question has {len(question)} characters, {MAX_CHARS} at most: ask in a few sentences, and give what it "
        "quotes as evidence (a file of logs, or a recorded output of a tool)"
    )


@dataclass(frozen=True, slots=True)
class Word:
    """A content word: what it compares by, and where it stands."""

    stem: str
    start: int
    end: int


def parts(question: str) -> tuple[str, ...]:
    """The parts of a question, in order; the whole question where there is no clear joint."""
    pieces = [piece for item in _items(question) for piece in _JOINT.split(item)]
    kept = [piece.strip(" \t\r\n,，.。:：、") for piece in pieces]
    kept = [piece for piece in kept if re.search(r"\w", piece)]
    whole = question.strip()
    return tuple(kept) if len(kept) > 1 else (whole,) if whole else ()


def _items(question: str) -> list[str]:
    marks = [m for m in _MARK.finditer(question) if _ordinal(m) is not None]
    if len(marks) > 1 and [_ordinal(m) for m in marks] == list(range(1, len(marks) + 1)):
        ends = [m.start() for m in marks[1:]] + [len(question)]
        return [question[m.end() : end] for m, end in zip(marks, ends, strict=True)]
    bullets = list(_BULLET.finditer(question))
    if len(bullets) > 1:
        ends = [m.start() for m in bullets[1:]] + [len(question)]
        return [question[m.end() : end] for m, end in zip(bullets, ends, strict=True)]
    each = _EACH.search(question)
    if each and "、" in question[: each.start()]:
        listed = re.split(r"、|以及|[和与]", question[: each.start()])
        return [*listed[:-1], listed[-1] + question[each.start() :]]
    return [question]


def _ordinal(mark: re.Match[str]) -> int | None:
    if mark["ring"]:
        return "①②③④⑤⑥⑦⑧⑨".index(mark["ring"]) + 1
    if mark["digit"].isdigit():
        return int(mark["digit"])
    return "一二三四五六七八九".index(mark["digit"]) + 1


def content_words(text: str) -> tuple[Word, ...]:
    """The words of `text` that say what it is about, in order: no function words, no plain numbers."""
    found = [
        Word(_stem(_joined(m[0])), m.start(), m.end())
        for m in _LATIN.finditer(text)
        if m[0].lower() not in _STOP and len(m[0]) > 1
    ]
    found += [
        Word(stem, m.start(), m.end())
        for m in _PHRASAL.finditer(text)
        if m["verb"].lower() not in _STOP
        for stem in _phrasal(m["verb"].lower(), m["particle"].lower())
    ]
    for run in _HAN.finditer(text):
        for start, end in _between(run[0]):
            found += [Word(run[0][i : i + 2], run.start() + i, run.start() + i + 2) for i in range(start, end - 1)]
    return tuple(sorted(found, key=lambda word: word.start))


def _between(run: str) -> Iterable[tuple[int, int]]:
    start = 0
    for stop in _STOP_HAN.finditer(run):
        yield start, stop.start()
        start = stop.end()
    yield start, len(run)


def vocabulary(texts: Iterable[str]) -> frozenset[str]:
    """Every stem that `content_words` could be looking for in `texts`: whole words, their pieces, joined pairs."""
    return frozenset().union(*map(_stems, texts))


@lru_cache(maxsize=1024)  # the question, and what every statement is held against
def _stems(text: str) -> frozenset[str]:
    found: set[str] = set()
    plain: list[str] = []
    for match in _LATIN.finditer(text):
        word = match[0]
        pieces = [piece.lower() for piece in _PIECE.findall(word)]
        found.add(_stem(_joined(word)))
        found.update(_stem(piece) for piece in pieces)
        found.update(_stem(part.lower()) for part in _SEPARATOR.split(word))
        plain += pieces
    for first, second in pairwise(plain):
        found.update(_phrasal(first, second))
    for run in _HAN.findall(text):
        found.update(run[i : i + 2] for i in range(len(run) - 1))
    return frozenset(found)


def _phrasal(verb: str, particle: str) -> tuple[str, ...]:
    """`time out`, `times out`, `timed out` as one word, `timeout`."""
    return tuple({_stem(verb + particle), *((_stem(verb[:-1] + particle),) if verb[-1] in "sd" else ())})


def _joined(word: str) -> str:
    return _SEPARATOR.sub("", word).lower()


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    for suffix, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(suffix) and not word.endswith("ss") and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)] + instead
            if suffix in {"ing", "ed"} and word[-1] == word[-2] and word[-1] not in "aeiouls":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def is_chinese(text: str) -> bool:
    return _HAN.search(text) is not None


def comparable(one: str, other: str) -> bool:
    """Whether the words of two texts can be compared: both have Chinese, or neither."""
    return is_chinese(one) == is_chinese(other)


def own_words(all_parts: Sequence[str]) -> tuple[frozenset[str], ...]:
    """For each part its content words that no other part has; where it has none of its own, all of them."""
    words = [frozenset(word.stem for word in content_words(part)) for part in all_parts]
    shared = {stem for stem, count in Counter(stem for mine in words for stem in mine).items() if count > 1}
    return tuple(mine - shared or mine for mine in words)
