"""Generated excerpts with what a matcher should say of them (bar J1).

All text is made from templates of the one example domain; the seed fixes every case.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.excerpt_texts import (
    CHINESE,
    MESSAGES,
    PROSE,
    filled,
    plain,
)
from tests.bench.honest_excerpts import HONEST, ref_with
from tests.bench.tampered_excerpts import TAMPERED

SEED = 20240501


@dataclass(frozen=True, slots=True)
class Case:
    """One excerpt against one ref. `kind` is its class; `honest` says whether it should be accepted."""

    kind: str
    honest: bool
    excerpt: str
    ref: str


def _negation_clipped(rng: random.Random) -> tuple[str, str]:
    message = filled(rng, rng.choice(MESSAGES[:1] + MESSAGES[2:3] + CHINESE[1:2] + PROSE[2:3] + MESSAGES[9:10]))
    spot = next(re.finditer(r"not |never |不", message))
    before, after = message[: spot.start()].rstrip(), message[spot.end() :]
    excerpt = before if after.count(" ") < 2 and after.isascii() else after
    return excerpt, ref_with(rng, plain(rng, message))


CLIPPED = "negation clipped"


def cases(seed: int = SEED, each: int = 110) -> Iterator[Case]:
    """`each` cases of every class. A tampered excerpt that happens to stand in its ref is drawn again."""
    rng = random.Random(seed)
    for kind, made in HONEST.items():
        for _ in range(each):
            yield Case(kind, True, *made(rng))
    for kind, made in TAMPERED.items():
        count = 0
        while count < each:
            case = Case(kind, False, *made(rng))
            if _is_tampered(case):
                count += 1
                yield case
    for _ in range(each):
        yield Case(CLIPPED, True, *_negation_clipped(rng))


def _is_tampered(case: Case) -> bool:
    """A drawn tampering may by chance give text of the ref: only cuts and trivial excerpts are meant to stand in it."""
    return case.kind in ("trivial", "boundary, start", "boundary, end") or " ".join(
        case.excerpt.split()
    ) not in " ".join(case.ref.split())
