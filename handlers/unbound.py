"""A claim that binds no line: which of its numbers and names stand in no evidence of the session, for the reader.

Pure. It words `claim.no_binding` and decides nothing: what such a claim is held to is that rule alone (EXE-4).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from handlers import anchors
from handlers.anchors import Identifier, Quantity, Stated
from handlers.guards import Session, absent_quantities, exempt
from streams.contract import Claim

READ_CHARS, READ_RECORDS = 64 * 1024, 1_000
"""Evidence beyond them is not read for amounts, a thousandth of a second a line: nothing is said of numbers then."""


def told(claim: Claim, session: Session) -> str:
    """What of a claim stands in no evidence, else that no one record has it all; '' where there is nothing to tell.

    What the claim denies may well be absent, and is not told.
    """
    if session.evidence is None:
        return ""
    spans = anchors.denied_spans(claim.claim_text)
    names = anchors.identifiers(claim.claim_text)
    standing = [i for i in names if anchors.stands_in(i, session.evidence)]
    absent: list[Identifier | Quantity] = [i for i in names if i not in standing and not exempt(i, session)]
    numbers: list[Quantity] = []
    readable = len(session.texts) <= READ_RECORDS and sum(map(len, session.texts)) <= READ_CHARS
    read = _stated(session.texts) if readable else ()
    if readable:
        wanted = absent_quantities(claim, (), session.question)
        numbers = [q for q in wanted if any(one.has(q) for one in read)]
        absent += [q for q in wanted if q not in numbers]
    invented = [one for one in absent if not anchors.within(one.start, one.end, spans)]
    if invented:
        return f"no evidence of this session has {_listed(invented, 'or')}"
    together = any(
        all(one.has(q) for q in numbers) and all(anchors.stands_in(i, anchors.fold(text)) for i in standing)
        for one, text in zip(read, session.texts, strict=False)
    )
    if not readable or together or len({i.key for i in standing}) + len(numbers) < 2:
        return ""
    return f"no one record of this session has {_listed([*standing, *numbers], 'and')}"


@lru_cache(maxsize=4)  # of each claim of an answer, and again when its repair is judged
def _stated(texts: tuple[str, ...]) -> tuple[Stated, ...]:
    return tuple(anchors.stated((text,)) for text in texts)


def _listed(found: Iterable[Identifier | Quantity], last: str) -> str:
    texts = list(dict.fromkeys(f'"{one.text}"' for one in found))
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
