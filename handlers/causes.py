"""Causal claims: whether one record shows cause and effect together (`claim.causal_unsupported`).

A record is a line with its stack trace. It shows both if it holds more than half of what is particular to the claim's
cause, and half of what is particular to the effect: identifiers, numbers and content words. A record with a connective
of its own (`Caused by:`, 导致) needs one of them on each side; a field (`Reason: OOMKilled`) shows what a claim gives as
the reason. Words are compared only within one language; across languages a side without anchors can only be shown by a
record that has a connective. A `root_cause` claim without a connective has no sides: only such a record shows it.
"""

from __future__ import annotations

import re
from itertools import pairwise

from handlers import anchors
from handlers.connectives import causal, causation
from handlers.excerpt_source import records
from handlers.question import comparable, content_words, vocabulary
from streams.contract import Claim

_FIELD = re.compile(
    r"(?<![A-Za-z])(?:[a-z]+_)?(?:reason|cause)[\"']?\s?[:=]\s*|(?:原因|根因)\s?[:=：]\s*", re.IGNORECASE
)
_REPORTED = vocabulary(
    ["return returned give gave got get see saw reach reached say said show log logged report reported http"]
)
_ALIKE_TEXT = (
    "upgrade deploy deployment rollout release update|restart reboot|timeout deadline|refuse reject deny|"
    "exhaust exhaustion full|terminate termination kill|crash crashed abort|shortage insufficient lack"
)
_ALIKE = {word: group for group in (vocabulary([words]) for words in _ALIKE_TEXT.split("|")) for word in group}
_HAN_CHARS_SHOWN = 0.8


def is_causal(claim: Claim) -> bool:
    """True for type root_cause and for causal wording."""
    return claim.claim_type == "root_cause" or causal(claim.claim_text)


def shown_by(claim: Claim, lines: str) -> bool:
    """True if one record of `lines` shows the claim's cause and effect together."""
    return any(_shown(claim.claim_text, record) for record in records(lines) if record.strip())


def _shown(text: str, record: str) -> bool:
    said = causation(text)
    field = _FIELD.search(record)
    if said is None:
        held, of = _held(text, "", record)
        return (causal(record) or field is not None) and (held > 0 or of == 0)
    if field is not None and said.field:
        held, of = _held(said.cause, "", record[field.end() :])
        if held * 2 > of > 0:
            return True
    cause, of_cause = _held(said.cause, said.effect, record)
    effect, of_effect = _held(said.effect, said.cause, record)
    if causal(record):
        return (cause > 0 or of_cause == 0) and (effect > 0 or of_effect == 0)
    return cause * 2 > of_cause > 0 and effect * 2 >= of_effect > 0


def _held(side: str, other: str, record: str) -> tuple[int, int]:
    """How many of the things particular to `side` the record holds, and how many there are to compare."""
    folded, across = anchors.fold(record), anchors.fold(other)
    names = [i for i in anchors.identifiers(side) if not anchors.stands_in(i, across)]
    numbers = [q for q in anchors.quantities(side) if q in anchors.absent_quantities([q], [other])]
    held = (
        sum(anchors.stands_in(i, folded) for i in names)
        + len(numbers)
        - len(anchors.absent_quantities(numbers, [record]))
    )
    of = len(names) + len(numbers)
    named = [(i.start, i.end) for i in anchors.identifiers(side)]
    own = [w.stem for w in content_words(side) if not any(a <= w.start < b for a, b in named)]
    if comparable(side, record) or all(stem.isascii() for stem in own):
        words = {_even(stem) for stem in own} - _stems(other) - {_even(stem) for stem in _REPORTED}
        held += len(_words_held(words, record))
        of += len(words)
    return held, of


def _words_held(words: set[str], record: str) -> set[str]:
    known = _stems(record)
    held = {word for word in words if word in known or not known.isdisjoint(_ALIKE.get(word, ()))}
    han = {word for word in words if not word.isascii()}
    chars = set("".join(han))
    return held | han if han and sum(char in record for char in chars) >= _HAN_CHARS_SHOWN * len(chars) else held


def _stems(text: str) -> frozenset[str]:
    """The stems of a text, and those of two words that another writes as one (`rolled back`, `rollback`)."""
    plain = [word.stem for word in content_words(text)]
    joined = {first + second for first, second in pairwise(plain) if (first + second).isascii()}
    return frozenset(_even(stem) for stem in vocabulary([text]) | joined)


def _even(stem: str) -> str:
    """`cancelled` and `canceled` are one word."""
    return stem[:-1] if stem.endswith("ll") else stem
