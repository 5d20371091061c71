"""An answer written down: as text for people, JSON, CSV, Parquet."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from projections.query import Answer, one_line
from projections.store import connect, quoted

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
CELL_WIDTH = 60


class NotWritten(Exception):
    """Why a file of rows could not be written, in one line."""


def plain(value: Any, sql_type: str = "") -> Any:
    """The value as JSON knows it: times in ISO 8601, decimals as numbers, bytes in base64, NaN and infinities null."""
    if sql_type == "JSON" and isinstance(value, str):
        return orjson.loads(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else None
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value


def as_objects(answer: Answer) -> list[dict[str, Any]]:
    """One object a row; columns of one name get a number."""
    names = unique(answer.columns)
    return [
        {name: plain(value, kind) for name, kind, value in zip(names, answer.types, row, strict=True)}
        for row in answer.rows
    ]


def as_csv(answer: Answer) -> str:
    """CSV with a header, `\\n` line ends; null is empty, structures and truth values are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        writer.writerow([_cell(plain(value, kind)) for value, kind in zip(row, answer.types, strict=True)])
    return out.getvalue()


def as_text(answer: Answer) -> str:
    """A table for people: control characters shown, long cells cut with an ellipsis."""
    rows = [
        [_short(_cell(plain(value, kind))) for value, kind in zip(row, answer.types, strict=True)]
        for row in answer.rows
    ]
    header = [_short(name) for name in answer.columns]
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    text = "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)
    return text + ("\n... more rows were cut by the limit\n" if answer.truncated else "\n")


def write_parquet(answer: Answer, path: Path) -> None:
    """Write the rows to a Parquet file of the same column types. Raises NotWritten."""
    import duckdb

    with connect(":memory:") as connection:
        names = unique(answer.columns)
        columns = ", ".join(
            '"' + name.replace('"', '""') + '" ' + _storable(kind)
            for name, kind in zip(names, answer.types, strict=True)
        )
        connection.execute(f"CREATE TABLE answer ({columns})")
        with connection.appender("answer") as appender:
            for row in answer.rows:
                appender.append_row(*row)
        try:
            connection.execute(f"COPY answer TO {quoted(str(path))} (FORMAT parquet)")
        except duckdb.Error as error:
            raise NotWritten(one_line(str(error))) from error


def unique(names: tuple[str, ...]) -> list[str]:
    """The names, numbered where one comes again."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def _storable(kind: str) -> str:
    return "INTEGER" if kind in {'"NULL"', "NULL"} else kind


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return orjson.dumps(value).decode() if isinstance(value, dict | list | bool) else str(value)


def _short(text: str) -> str:
    shown = _CONTROL.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text)
    return shown if len(shown) <= CELL_WIDTH else shown[: CELL_WIDTH - 1] + "…"
