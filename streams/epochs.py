"""What an epoch that was dropped leaves behind: a note in the stream's metadata of what was there, and where.

A stream's metadata can be changed only by whoever may update streams, which no role may (design section 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields

import orjson

_KEY = "verdictlog-dropped-"


@dataclass(frozen=True, slots=True)
class Dropped:
    """One epoch taken out of a stream.

    `messages` of it stood between the positions `first_seq` and `last_seq`. `head_digest` is that of the archive's
    manifest. When it was dropped, the stream ended at `position`, and no turn at all was open.
    """

    epoch: str
    messages: int
    sessions: int
    first_seq: int
    last_seq: int
    head_digest: str
    position: int


def noted(metadata: Mapping[str, str] | None, dropped: Dropped) -> dict[str, str]:
    """`metadata` with the note on `dropped` in it."""
    return {**(metadata or {}), f"{_KEY}{dropped.epoch}": orjson.dumps(asdict(dropped)).decode()}


def dropped_of(metadata: Mapping[str, str] | None) -> tuple[Dropped, ...]:
    """The notes in a stream's metadata, oldest epoch first."""
    found = [orjson.loads(value) for key, value in (metadata or {}).items() if key.startswith(_KEY)]
    known = [field.name for field in fields(Dropped)]
    return tuple(Dropped(**{name: raw[name] for name in known}) for raw in sorted(found, key=lambda raw: raw["epoch"]))


def settled(dropped: Iterable[Dropped]) -> int:
    """The position up to which nothing is left to do for any role: it was so when the newest drop was made."""
    return max((one.position for one in dropped), default=0)


def covers(dropped: Iterable[Dropped], first: int, last: int) -> bool:
    """Whether the missing positions `first` to `last` all lie where something was dropped."""
    ranges = [(one.first_seq, one.last_seq) for one in dropped]
    at = first
    while at <= last:
        ends = [end for begin, end in ranges if begin <= at <= end]
        if not ends:
            return False
        at = max(ends) + 1
    return True
