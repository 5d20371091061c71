"""Ids: deterministic event ids, and session ids that begin with their epoch."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from hashlib import sha1

NAMESPACE = uuid.UUID("6f1c3c1e-6a2e-5d0b-9a55-0c7b1f6f2b11")
_SESSION = re.compile(r"^e\d{4}-[a-z0-9]+(?:-[a-z0-9]+)*$")

_EPOCH = re.compile(r"^e\d{2}(?:0[1-9]|1[0-2])$")


class BadEpoch(ValueError):
    """No epoch."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:80]!r} is no epoch: expected e<yymm>, such as e2611")
        self.text = text


class BadSessionId(ValueError):
    """A session id outside the grammar `e<yymm>-[a-z0-9-]+`, at most 64 characters."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session id {session[:80]!r}: expected e<yymm>-<a-z, 0-9, ->, at most 64 characters")
        self.session = session


def event_id(
    session: str, turn: int, round_: int, attempt: int, actor: str, kind: str, cause: str, ordinal: int
) -> str:
    """The id of what `actor` decided because of `cause`: the same decision always has the same id.

    A UUID of version 5 (RFC 9562), built from the digest directly: `uuid.uuid5` costs ten times as much.
    """
    name = f"{session}|{turn}|{round_}|{attempt}|{actor}|{kind}|{cause}|{ordinal}"
    digest = sha1(NAMESPACE.bytes + name.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def epoch(now: datetime) -> str:
    """The epoch a new session belongs to: `e` and year and month in UTC, `e2611`."""
    return f"e{now.astimezone(UTC):%y%m}"


def epoch_of(session: str) -> str:
    """The epoch that a session's id begins with."""
    return check_session(session).partition("-")[0]


def check_epoch(text: str) -> str:
    """Return `text` or raise BadEpoch: `e` and year and month, two digits each."""
    if not _EPOCH.match(text):
        raise BadEpoch(text)
    return text


def session_id(now: datetime, token: str) -> str:
    """A new session id from the clock and a random `token` of [a-z0-9]."""
    return check_session(f"{epoch(now)}-{token}")


def check_session(session: str) -> str:
    """Return `session` or raise BadSessionId: it becomes a subject token, so its alphabet is closed."""
    if not is_session(session):
        raise BadSessionId(session)
    return session


def is_session(text: str) -> bool:
    """Whether it is a session id, of a session that is there or not."""
    return len(text) <= 64 and _SESSION.match(text) is not None
