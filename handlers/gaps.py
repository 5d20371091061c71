"""How a gap is worded: by the part of the question and its subject, in the templates' words (ruling 22, ROU-7).

Nothing of a claim's or a fact's own text is ever printed. It only decides which words of the question name the
subject, and which kind of thing is lacking. The question's own numbers, codes, versions and ids are left out too:
an unverified answer may have repeated them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from handlers.anchors import NAME_LIKE, fold, identifiers, joined, quantities, stands_in, windows
from handlers.question import Word, content_words, own_words, parts, vocabulary
from prompts import Templates
from streams.contract import Claim, Contract

LEFT_OUT = "…"
_PART_CHARS = 120
_SUBJECT_CHARS = 40
_DIGITS = re.compile(r"\d(?:[\d.,:/%-]*\d)?%?")
_KINDS = {
    "root_cause": "cause",
    "contributing_factor": "cause",
    "impact": "impact",
    "negative_observation": "absence",
}


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap in words, and the kind that its next step is keyed by (`next-steps/gap.<kind>`)."""

    text: str
    kind: str


class Wording:
    """Words gaps for one question in one language."""

    def __init__(self, question: str, contract: Contract | None, say: Templates) -> None:
        self._say = say
        self._question = question
        self._parts = parts(question)
        self._own = own_words(self._parts)
        self._claims = contract.claims if contract is not None else ()

    def gap(self, statement: str, claim_id: str | None = None) -> Gap:
        """The gap that an unconfirmed statement leaves: a claim, a fact, a sentence, or a part of the question."""
        for part in self._parts:
            if _plain(part) == _plain(statement):
                return self.unanswered(part)
        claim = self._claim(statement, claim_id)
        text = f"{statement}\n{claim.claim_text}" if claim is not None else statement
        kind = self._kind(text, claim)
        place = self._place(text)
        part = self._parts[place] if place is not None else self._question
        subject = _subject(part, vocabulary([text]), placed=place is not None) or self._say("gaps/any_subject")
        shown = _safe(self._parts[place]) if place is not None else ""
        return Gap(self._say(f"gaps/{kind}", subject=subject, part=shown or self._say("gaps/any_part")), kind)

    def unanswered(self, part: str) -> Gap:
        return Gap(self._say("gaps/unanswered", part=_safe(part) or self._say("gaps/any_part")), "unanswered")

    def whole(self) -> tuple[Gap, ...]:
        """Every part of the question as a gap: of a turn that ended before anything was judged."""
        return tuple(self.unanswered(part) for part in self._parts)

    def _claim(self, statement: str, claim_id: str | None) -> Claim | None:
        by_id = (c for c in self._claims if claim_id is not None and c.claim_id == claim_id)
        by_text = (c for c in self._claims if _plain(c.claim_text) == _plain(statement))
        return next(by_id, None) or next(by_text, None)

    def _kind(self, text: str, claim: Claim | None) -> str:
        if claim is not None and claim.claim_type in _KINDS:
            return _KINDS[claim.claim_type]
        if set(quantities(text)) - set(windows(text)):
            return "value"
        asked = joined([self._question])
        if any(not stands_in(name, asked) for name in identifiers(text)):
            return "name"
        return "observation" if claim is not None else "statement"

    def _place(self, text: str) -> int | None:
        if len(self._parts) == 1:
            return 0
        said = vocabulary([text])
        shared = [len(own & said) for own in self._own]
        return shared.index(max(shared)) if any(shared) else None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .。!！;；?？")


def _hidden(text: str) -> list[tuple[int, int]]:
    """Spans of a folded text that may not be printed: numbers, and identifiers that are no mere names."""
    named = identifiers(text)
    kept = [(i.start, i.end) for i in named if i.kind in NAME_LIKE]
    spans = [(i.start, i.end) for i in named if i.kind not in NAME_LIKE]
    spans += [(q.start, q.end) for q in quantities(text)]
    spans += [m.span() for m in _DIGITS.finditer(text)]
    return [span for span in spans if not any(start <= span[0] and span[1] <= end for start, end in kept)]


def _safe(part: str) -> str:
    """A part of the question without what may not be printed; empty if nothing is left."""
    text = fold(part)
    letters = list(text)
    for start, end in _hidden(text):
        letters[start:end] = [LEFT_OUT, *[""] * (end - start - 1)]
    shown = " ".join("".join(letters).split()).strip(" ?？")
    if not re.search(r"\w", shown):
        return ""
    return shown if len(shown) <= _PART_CHARS else shown[: _PART_CHARS - 1] + LEFT_OUT


def _subject(part: str, said: frozenset[str], placed: bool) -> str:
    """The words of the question that a statement is about: the longest run of those it shares, else of its part's own.

    Not `placed`: it belongs to none of several parts, and none of their words may stand for it.
    """
    text = fold(part)
    hidden = _hidden(text)
    free = [w for w in content_words(text) if not any(w.start < end and start < w.end for start, end in hidden)]
    names = [(i.start, i.end) for i in identifiers(text)]
    plain = [w for w in free if not any(start <= w.start and w.end <= end for start, end in names)]
    shared = [[w for w in plain if w.stem in said], [w for w in free if w.stem in said]]
    for words in (*shared, plain, free) if placed else shared:
        run = _longest_run(text, words)
        if run:
            return run if len(run) <= _SUBJECT_CHARS else run[: _SUBJECT_CHARS - 1] + LEFT_OUT
    return ""


def _longest_run(text: str, words: Iterable[Word]) -> str:
    runs: list[tuple[int, int]] = []
    for word in words:
        if runs and not text[runs[-1][1] : word.start].strip():
            runs[-1] = (runs[-1][0], word.end)
        else:
            runs.append((word.start, word.end))
    return max((text[start:end] for start, end in runs), key=len, default="")
