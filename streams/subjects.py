"""The subject grammar: `vl.<session>.<n>.<event-type>` in the log, `vl-in.<session>.<event-type>` for intake."""

from __future__ import annotations

from streams.identity import check_session

PREFIX = "vl"
INTAKE_PREFIX = "vl-in"
ALL = f"{PREFIX}.>"


def event_subject(session: str, n: int, kind: str) -> str:
    """Where event `n` of `session` is stored."""
    return f"{PREFIX}.{check_session(session)}.{n}.{kind}"


def session_filter(session: str) -> str:
    """All events of one session: the filter of reads and of the expected sequence."""
    return f"{PREFIX}.{check_session(session)}.>"


def type_filter(kind: str) -> str:
    """All events of one type, in every session: a consumer's filter."""
    return f"{PREFIX}.*.*.{kind}"


def parse(subject: str) -> tuple[str, int, str]:
    """(session, n, type) of a stored subject; ValueError for any other."""
    head, session, n, kind = subject.split(".")
    if head != PREFIX:
        raise ValueError(subject)
    return session, int(n), kind
