"""Sessions as the read model has them: the list, and one as of a moment."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

import orjson

from projections.asof import Moment, NoSuchMoment, Summary
from streams.envelope import iso

if TYPE_CHECKING:
    import duckdb

_COLUMNS = ", ".join(Summary.__dataclass_fields__)
_LIST = f"SELECT {_COLUMNS} FROM diagnosis_session ORDER BY seq DESC LIMIT ? OFFSET ?"  # noqa: S608  our own names
_ONE = f"SELECT {_COLUMNS} FROM diagnosis_session_as_of(?, utc(?)) WHERE session = ?"  # noqa: S608  our own names
_LAST = 2**63 - 1


def sessions(connection: duckdb.DuckDBPyConnection, limit: int = 50, skip: int = 0) -> list[Summary]:
    """Sessions, the one that changed last first."""
    return [_summary(row) for row in connection.execute(_LIST, [limit, skip]).fetchall()]


def session_at(connection: duckdb.DuckDBPyConnection, session: str, moment: Moment | None = None) -> Summary | None:
    """The session as of `moment`, now without one; None if it had no event then. NoSuchMoment for an unknown `n`."""
    moment = moment or Moment()
    seq = _LAST if moment.seq is None else moment.seq
    if moment.n is not None:
        seq = _position(connection, session, moment.n)
    found = connection.execute(_ONE, [seq, moment.time or "infinity", session]).fetchall()
    return _summary(found[0]) if found else None


def _position(connection: duckdb.DuckDBPyConnection, session: str, n: int) -> int:
    if n == 0:
        return 0
    found = connection.execute("SELECT n, seq FROM events WHERE session = ?", [session]).fetchall()
    positions = dict(found)
    if n not in positions:
        raise NoSuchMoment(session, n, max(positions, default=0))
    return int(positions[n])


def _summary(row: tuple[Any, ...]) -> Summary:
    values = dict(zip(Summary.__dataclass_fields__, row, strict=True))
    for name in ("started_at", "asked_at", "ended_at", "changed_at"):
        if values[name] is not None:
            values[name] = iso(values[name].replace(tzinfo=UTC))
    if values["self_evaluation"] is not None:
        values["self_evaluation"] = orjson.loads(values["self_evaluation"])
    return Summary(**values)
