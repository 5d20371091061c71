"""Sessions as the read model has them: the list, and one as of a moment."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

import orjson

from projections.asof import Moment, NoSuchMoment, Summary, state_at, summary
from streams.envelope import Event, decode, iso

if TYPE_CHECKING:
    import duckdb

_COLUMNS = ", ".join(Summary.__dataclass_fields__)
_LIST = f"SELECT {_COLUMNS} FROM diagnosis_session ORDER BY seq DESC LIMIT ? OFFSET ?"  # noqa: S608  our own names
_AT = f"SELECT {_COLUMNS} FROM diagnosis_session_as_of(?, utc(?))"  # noqa: S608  our own names
_EVENTS = "SELECT n, seq, body, payload FROM events WHERE session = ?"
_LAST = 2**63 - 1


def sessions(connection: duckdb.DuckDBPyConnection, limit: int = 50, skip: int = 0) -> list[Summary]:
    """Sessions, the one that changed last first."""
    return [_summary(row) for row in connection.execute(_LIST, [limit, skip]).fetchall()]


def sessions_at(connection: duckdb.DuckDBPyConnection, moment: Moment) -> list[Summary]:
    """Every session as of a position or a time, in order of the log."""
    bounds = [_LAST if moment.seq is None else moment.seq, moment.time or "infinity"]
    return sorted((_summary(row) for row in connection.execute(_AT, bounds).fetchall()), key=lambda row: row.seq)


def session_events(connection: duckdb.DuckDBPyConnection, session: str) -> list[Event]:
    """The session's events as the read model has them, in order, [] if it has none."""
    rows = connection.execute(_EVENTS, [session]).fetchall()
    return [
        decode(body.encode(), seq, None if payload is None else payload.encode())
        for _, seq, body, payload in sorted(rows)
    ]


def session_at(connection: duckdb.DuckDBPyConnection, session: str, moment: Moment | None = None) -> Summary | None:
    """The session as of `moment`, now without one; None if it had no question then. NoSuchMoment for an unknown `n`.

    One session is folded from its own rows, which takes a tenth of the time that the macros need to be planned;
    for many sessions at once `diagnosis_session_at` is the way, and both give the same row.
    """
    events = session_events(connection, session)
    if not events and moment is not None and moment.n:
        raise NoSuchMoment(session, moment.n, 0)
    return summary(state_at(session, events, moment))


def _summary(row: tuple[Any, ...]) -> Summary:
    values = dict(zip(Summary.__dataclass_fields__, row, strict=True))
    for name in ("started_at", "asked_at", "ended_at", "changed_at"):
        if values[name] is not None:
            values[name] = iso(values[name].replace(tzinfo=UTC))
    if values["self_evaluation"] is not None:
        values["self_evaluation"] = orjson.loads(values["self_evaluation"])
    return Summary(**values)
