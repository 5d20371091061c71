"""The read model's definition: each table, macro, view and question is one .sql file, with its documentation in it.

A file begins with `-- <what one row is>`; a table's second line, `-- from: <types>`, names the event types its
rows come from. A selected column that ends in `-- <text>` is documented by that text. The SELECT of a table is its
schema as well as its derivation: the live projector and a rebuild run the same one.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SCHEMA_VERSION = 3
"""Raised with every change of a table. A file of another version, or of other definitions, is not read but rebuilt."""

PLACE_COLUMNS = {
    "seq": "position of the event in the log, over all sessions",
    "session": "the session",
    "n": "place of the event in its session, from 1",
    "turn": "question in the session, from 1; 0 outside any",
    "round": "round in the turn, from 1; 0 outside any",
    "attempt": "answer in the round, from 0",
    "time": "the event's time, UTC",
}
_NUMBER = re.compile(r"^\d+_")  # where one file needs another, a number gives the order
_COLUMN = re.compile(r'^\s*(?:.*\bAS )?"?(\w+)"?,?\s+-- (.+)$')


@dataclass(frozen=True, slots=True)
class Definition:
    """One file: its name, what a row is, where rows come from (tables only), the statement, columns' meanings."""

    name: str
    doc: str
    types: frozenset[str]
    sql: str
    columns: dict[str, str]

    def derives_from(self, kinds: frozenset[str]) -> bool:
        """Whether a batch with these event types can give rows."""
        return "*" in self.types or not self.types.isdisjoint(kinds)


def parse(name: str, text: str) -> Definition:
    """Read one .sql file; ValueError where the first line does not document it."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("-- "):
        raise ValueError(f"{name}.sql: the first line must say what it is")
    types: frozenset[str] = frozenset()
    body = lines[1:]
    if body and body[0].startswith("-- from: "):
        types = frozenset(part.strip() for part in body[0].removeprefix("-- from: ").split(","))
        body = body[1:]
    columns = {found[1]: found[2] for line in body if (found := _COLUMN.match(line))}
    if any(line.strip().startswith("seq, session, n, turn, round, attempt, time,") for line in body):
        columns = {**PLACE_COLUMNS, **columns}
    return Definition(name, lines[0].removeprefix("-- "), types, "\n".join(body).strip(), columns)


@cache
def statement(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return files("projections").joinpath("sql", f"{name}.sql").read_text("utf-8")


@cache
def _folder(name: str) -> tuple[Definition, ...]:
    found = sorted(
        (entry for entry in files("projections").joinpath("sql", name).iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return tuple(parse(_NUMBER.sub("", entry.name.removesuffix(".sql")), entry.read_text("utf-8")) for entry in found)


def tables() -> tuple[Definition, ...]:
    """Every table, by name."""
    return _folder("tables")


def macros() -> tuple[Definition, ...]:
    """Every table macro, by name."""
    return _folder("macros")


def views() -> tuple[Definition, ...]:
    """Every view, by name; a view may use tables and macros, and views before it by name."""
    return _folder("views")


@cache
def definition() -> str:
    """SHA-256 over the statements of all tables, macros and views, without their comments and line breaks.

    It stands in each file beside the version: a change that forgot to raise that is found as well.
    """
    said = [statement("staged"), statement("batch")]
    said += [f"{item.name} {item.sql}" for item in (*tables(), *macros(), *views())]
    bare = " ".join(re.sub(r"--[^\n]*", "", text) for text in said)
    return hashlib.sha256(" ".join(bare.split()).encode()).hexdigest()


def questions() -> tuple[Definition, ...]:
    """Analytics questions: `doc` is the question, `sql` answers it."""
    return _folder("questions")
