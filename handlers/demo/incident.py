"""Writes the bundled incident to a folder: a release makes a ledger query slow, and payment-service times out.

The same bytes on every machine, in well under a second. A folder that has it already is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from handlers.demo.records import all_records, cut_line
from handlers.demo.samples import open_metrics
from handlers.demo.timeline import HEALTHY, stamp

VERSION = "1"
MARKER = ".incident-version"
WINDOW = (stamp(60 * 60), stamp(HEALTHY))


@dataclass(frozen=True, slots=True)
class Incident:
    """Where the incident's evidence lies, and the time window it is about (RFC 3339)."""

    root: Path
    logs: Path
    metrics: Path
    runbooks: Path
    since: str = WINDOW[0]
    until: str = WINDOW[1]


def _log_files() -> Iterator[tuple[str, str]]:
    lines: dict[str, list[str]] = {}
    for _, record in all_records():
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        lines.setdefault(record["service"], []).append(line + "\n")
    lines["payment-service"].append(cut_line())
    for service, text in sorted(lines.items()):
        yield f"logs/{service}.ndjson", "".join(text)


def _metric_files() -> Iterator[tuple[str, str]]:
    yield "metrics/metrics.om", "\n".join(open_metrics()) + "\n"


def _runbook_files() -> Iterator[tuple[str, str]]:
    for book in sorted(files("handlers.demo").joinpath("runbooks").iterdir(), key=lambda entry: entry.name):
        if book.name.endswith(".md"):
            yield f"runbooks/{book.name}", book.read_text(encoding="utf-8")


def _write(root: Path, contents: Iterable[tuple[str, str]]) -> None:
    for name, text in contents:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Two commands may set the folder up at once: each file appears whole or not at all.
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_bytes(text.encode("utf-8"))
        draft.replace(path)


def generate(out: Path) -> Incident:
    """Writes `logs/*.ndjson`, `metrics/metrics.om` and `runbooks/*.md` under `out`, unless this version is there."""
    incident = Incident(root=out, logs=out / "logs", metrics=out / "metrics" / "metrics.om", runbooks=out / "runbooks")
    marker = out / MARKER
    if marker.is_file() and marker.read_text(encoding="utf-8").strip() == VERSION:
        return incident
    out.mkdir(parents=True, exist_ok=True)
    for contents in (_log_files(), _metric_files(), _runbook_files(), ((MARKER, VERSION + "\n"),)):
        _write(out, contents)
    return incident
