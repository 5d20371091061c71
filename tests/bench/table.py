"""A measured figure beside its bar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """`ok` null: not measured, and `note` says why. `details`: all figures it was made from, for the JSON."""

    bar: str
    what: str
    measured: float | None
    wanted: str
    ok: bool | None
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)


def not_measured(bar: str, what: str, wanted: str, why: str) -> Row:
    return Row(bar, what, None, wanted, None, f"not measured: {why}")


def printed(rows: list[Row]) -> str:
    """The rows as a table of text."""
    cells = [("bar", "what", "measured", "wanted", "")]
    for row in rows:
        state = {True: "ok", False: "MISSED", None: "not measured"}[row.ok]
        measured = "-" if row.measured is None else f"{row.measured:g}"
        cells.append((row.bar, row.what, measured, row.wanted, state))
    widths = [max(len(line[i]) for line in cells) for i in range(4)]
    lines = [
        "  ".join((*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[4])) for line in cells
    ]
    notes = [f"{row.bar}: {row.note}" for row in rows if row.note]
    return "\n".join([lines[0], *lines[1:], *([""] if notes else []), *notes])
