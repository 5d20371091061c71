"""Which records of a session an answer without a model should quote: words, severity, rarity, extremes of metrics.

Nothing here knows any product or incident: a record counts by what it says, by how rare its kind is, and by whether
a number in it is at its limit.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from handlers.agents import symptoms
from handlers.agents.asked_time import span_of, within
from handlers.agents.lexical_keys import GLOSSARY
from handlers.agents.offline_counts import BONUS, asks_how_many, counts, tallies
from handlers.agents.offline_material import said_and_whence
from handlers.agents.subject import subjects, told_in
from handlers.evidence import log_lines
from handlers.evidence.ranking import Bm25, words
from handlers.quantities import readings_of_line
from streams.contract import EvidenceRef
from streams.events import ToolInvoked

MOST_WORDS = 400
READ_CHARS = 4000
FLOOR, SHARE = 1.2, 0.45
THEN = 0.8
_LOUDNESS = {log_lines.FATAL: 1.6, log_lines.ERROR: 1.2, log_lines.WARN: 0.7, log_lines.DEBUG: -0.3}
_KEY = re.compile(r"\b(last|min|max|avg|first|n|value|increase)=([-+]?[\d.]+(?:e[-+]?\d+)?)(?![\d.])", re.IGNORECASE)
_OF = re.compile(r"(?<![\d./])(\d+)\s?/\s?(\d+)(?![\d./])")
_MEASURE = re.compile(
    r"[\"']?(\w*(?:_ms|_seconds|_s|_percent|_ratio|_usage|_bytes|_count|connections|latency|duration|depth|lag|errors))[\"']?\s*[:=]\s*"
    r"(\d+(?:\.\d+)?)(?![\w.])",
    re.IGNORECASE,
)
_PAIR = re.compile(r"[\s\"]*([A-Za-z][\w -]{1,30}?)\"?\s*[:=]\s*\"?[\w.-]+\"?,?\s*")
_WELL = re.compile(r"(?:\w+_)?(?:up|success|healthy|ready|available|alive)(?=[\s{])")
_LINE = re.compile(r"lines\[(\d+)")
_ROW = re.compile(r"^templates\[\d+\]$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that can be quoted. `score` orders them; `problem` says whether it speaks of something wrong."""

    call: ToolInvoked
    ref: EvidenceRef
    score: float
    problem: bool
    fine: bool
    kind: bytes
    keyed: bool = False  # it states the value of a key that the question names: `Exit Code: 1`

    @property
    def family(self) -> str:
        """What sort of record it is: `metric`, `log` or `state`."""
        return family_of(self.call)

    @property
    def origin(self) -> tuple[str, str]:
        """Its family, and of what a recorded output shows, the output: `kubectl describe` and a saved log say different
        things of one incident."""
        return self.family, (self.ref.source or "") if self.family == "state" else ""


@dataclass(frozen=True, slots=True)
class Asked:
    """How a record stands to the question: `lexical` 0 to 2.2; whether its symptoms are known; whether it asks of
    time; `elsewhere`: it names none of the question's names, which many other records do; whether it asks how many;
    `then`: it is of the time that the question names."""

    lexical: float
    known: bool
    slow: bool
    elsewhere: bool
    number: bool = False
    then: bool = False


def family_of(call: ToolInvoked) -> str:
    if "metric" in call.tool_name:
        return "metric"
    return "log" if "log" in call.tool_name else "state"


def ranked(question: str, invocations: Iterable[ToolInvoked]) -> list[Candidate]:
    """The quotable records of successful incident calls, the best first; each record once."""
    tallied = tallies(question)
    found: dict[tuple[str, str, str], tuple[ToolInvoked, EvidenceRef]] = {}
    for call in invocations:
        if call.status != "success" or call.evidence_kind != "incident" or call.retrieval_details is None:
            continue
        for ref in call.retrieval_details.evidence_refs or ():
            row = _ROW.match(ref.raw_path) and not (tallied and _level(ref.text) >= log_lines.WARN)
            if ref.raw_path in {"summary", "error"} or row or not re.search(r"\w", ref.text):
                continue
            found.setdefault((call.tool_name, ref.raw_path, ref.text), (call, ref))
    entries = list(found.values())
    if not entries:
        return []
    texts = [words(ref.text)[:MOST_WORDS] for _, ref in entries]
    families = [family_of(call) for call, _ in entries]
    lexical = [0.0] * len(entries)
    for family in dict.fromkeys(families):
        members = [at for at, one in enumerate(families) if one == family]
        for at, share in zip(members, _lexical(question, [texts[at] for at in members]), strict=True):
            lexical[at] = share
    kinds = [log_lines.template(ref.text.encode("utf-8", "replace")) for _, ref in entries]
    frequency = Counter(zip((call.tool_name for call, _ in entries), kinds, strict=True))
    found_symptoms = symptoms.symptoms_of(question)
    slow = any(symptom.name in {"latency", "timeout"} for symptom in found_symptoms)
    elsewhere = _elsewhere(question, entries)
    number, span = asks_how_many(question), span_of(question)
    spoken = frozenset(words(question))
    candidates = [
        _candidate(
            call,
            ref,
            Asked(
                lexical[at],
                bool(found_symptoms),
                slow,
                elsewhere[at],
                number,
                span is not None and within(ref.text, span),
            ),
            kinds[at],
            frequency[call.tool_name, kinds[at]],
        )
        for at, (call, ref) in enumerate(entries)
    ]
    candidates = [
        replace(one, score=one.score + BONUS, keyed=True) if _keyed(one, spoken) else one for one in candidates
    ]
    return sorted(candidates, key=lambda one: (-one.score, one.ref.raw_path))


def _keyed(one: Candidate, spoken: frozenset[str]) -> bool:
    """Whether a record of a state is one pair whose key the question names in full."""
    pair = _PAIR.fullmatch(one.ref.text) if one.family == "state" else None
    key = frozenset(words(pair[1])) if pair else frozenset()
    return bool(key) and key <= spoken


def _lexical(question: str, texts: Sequence[Sequence[str]]) -> list[float]:
    """0 to 2.2: the question's own words, the words of its symptoms, and at less weight the names it gives.

    A name alone says little: every line about a service may have it.
    """
    collection = Bm25(texts)
    names = {word for name in symptoms.names_of(question) for word in words(name)}
    translated = [stem for word, stems in GLOSSARY.items() if word in question for stem in stems]
    own = _shares(collection.scores([*(word for word in words(question) if word not in names), *translated]))
    named = _shares(collection.scores(names))
    family = [word for term in symptoms.record_terms(symptoms.symptoms_of(question)) for word in words(term)]
    near = _shares(collection.scores(family))
    return [mine + 0.9 * theirs + 0.3 * called for mine, theirs, called in zip(own, near, named, strict=True)]


def _elsewhere(question: str, entries: Sequence[tuple[ToolInvoked, EvidenceRef]]) -> list[bool]:
    names = subjects(question)
    named = [told_in(names, said_and_whence(ref)) for _, ref in entries]
    logs = [at for at, (call, _) in enumerate(entries) if family_of(call) == "log"]
    if sum(named[at] for at in logs) * 5 < len(logs) or not names:
        return [False] * len(entries)
    return [not one for one in named]


def _shares(scores: Sequence[float]) -> list[float]:
    most = max(scores, default=0.0)
    return [score / most if most else 0.0 for score in scores]


def _candidate(call: ToolInvoked, ref: EvidenceRef, asked: Asked, kind: bytes, alike: int) -> Candidate:
    text = ref.text[:READ_CHARS]
    metric = family_of(call) == "metric"
    problem, weight = _problem(text, metric)
    if asked.known and asked.lexical < 0.35 and _level(text) < log_lines.FATAL:
        weight *= 0.5
    if metric:
        telling = metric_weight(text)
        weight += telling
        problem = problem or telling >= 1.0
    elif family_of(call) == "log":
        weight += slowness(text) if asked.slow else 0.0
        weight += THEN if asked.then else 0.0
        weight -= 0.6 if asked.elsewhere else 0.0
    if symptoms.SCRIPT.search(text) and log_lines.stamp(text.encode("utf-8", "replace")) is None:
        problem, weight = False, weight - 1.5
    weight += BONUS if asked.number and not metric and counts([text]) else 0.0
    fine = not problem and symptoms.FINE.search(text) is not None
    weight -= 0.6 if len(words(text)) < 2 else 0.0
    weight -= 0.15 * max(0.0, math.log2(len(text) / 300)) if family_of(call) == "state" else 0.0
    return Candidate(call, ref, asked.lexical + weight + 0.5 / alike, problem, fine, kind)


def _problem(text: str, metric: bool) -> tuple[bool, float]:
    """Whether a record speaks of something wrong, and how loudly: 0 to about 4."""
    plain = symptoms.NEUTRAL.sub(" ", text)
    said = {hit.casefold() for hit in symptoms.PROBLEM.findall(plain)}
    weight = 0.5 * min(3, len(said)) + (1.2 if symptoms.RAISED.search(text) else 0.0)
    level = _level(plain)
    if not metric:
        weight += _LOUDNESS.get(level, 0.0) + saturated(text)
    return bool(said) or (level >= log_lines.WARN and not metric), weight


def _level(text: str) -> int:
    return log_lines.level(text.encode("utf-8", "replace"))


def saturated(text: str) -> float:
    """1.0 if the text has a count at its limit: `100/100`, `98%`; small pairs such as `1/1` are replicas."""
    for have, limit in _OF.findall(text):
        if int(limit) >= 5 and have == limit:
            return 1.0
    return 0.0


def slowness(text: str) -> float:
    """0 to 1.5 by the longest duration the text states: 1 s is 0.5, 10 s is 1."""
    seconds = [float(found.value) for found in readings_of_line(text[:2000]) if found.unit == "s" and found.value > 0]
    return min(1.5, max(0.0, 0.5 + 0.5 * math.log10(max(seconds)))) if seconds else 0.0


def _down(text: str, last: float) -> float:
    """1.0 for a series that says 0 where 1 is well: `up`, `probe_success`, `..._ready`."""
    return 1.0 if last == 0 and _WELL.match(text) else 0.0


def metric_weight(text: str) -> float:
    """How much a rendered series says: 0 for a flat zero, up to 2 for one that alerts, changed or sits at its top."""
    if text.startswith("ALERT "):
        return 1.5 if "firing" in text else 0.5
    if text.startswith("ALERTS") or "(this series exists" in text:
        return -1.0
    values = {key.lower(): float(value) for key, value in _KEY.findall(text)}
    if "value" in values:
        return _down(text, values["value"]) or (0.5 if values["value"] else 0.1)
    if not {"last", "min", "max"} <= values.keys():
        return 0.0 if "nothing was measured" in text or "no value" in text else 0.2
    low, high, last = values["min"], values["max"], values["last"]
    if down := _down(text, last):
        return down
    if high == low:
        return 0.1 if high == 0 else 0.4
    changed = (high - low) / max(abs(high), abs(low))
    return min(1.0, changed) + (0.5 if last >= 0.95 * high else 0.0)


def pick(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The best records, unlike each other: the best of each origin first, then by score, none far weaker than the
    best of its origin."""
    best: dict[tuple[str, str], float] = {}
    kept: list[Candidate] = []
    said: list[frozenset[str]] = []
    for one in candidates:
        best.setdefault(one.origin, one.score)
        if one.score < max(FLOOR, SHARE * best[one.origin]) or any(one.kind == other.kind for other in kept):
            continue
        mine = frozenset(words(one.ref.text))
        if any(len(mine & other) >= 0.8 * min(len(mine), len(other)) for other in said if mine and other):
            continue
        kept.append(one)
        said.append(mine)
    leaders = {one.origin: one for one in reversed(kept)}.values()
    order = sorted(kept, key=lambda one: (one not in leaders, -one.score))
    return sorted(order[:most], key=lambda one: -one.score)


def measured(text: str) -> dict[str, float]:
    """The numbers that a record states under a key that names a unit or an amount."""
    return {key.lower(): float(value) for key, value in _MEASURE.findall(text[:READ_CHARS])}


def line_of(raw_path: str) -> int:
    """The number of the record's line in its file, 0 where its path has none."""
    hit = _LINE.search(raw_path)
    return int(hit[1]) if hit else 0
