"""The public claim sets of bar J5, read from where they are; absent ones are None. Split by document, always alike."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "claims"


@dataclass(frozen=True, slots=True)
class Row:
    """A statement, the text it is held against, and whether that bears it out."""

    group: str
    document: str
    claim: str
    evidence: str
    supported: bool
    original: str = ""

    @property
    def tuning(self) -> bool:
        """Half of the documents is for fitting, the other for the report."""
        return hashlib.sha256(self.document.encode()).digest()[0] % 2 == 0


def folder() -> Path:
    return Path(os.environ.get("VERDICTLOG_BENCH_DATA") or DEFAULT)


def summedits() -> list[Row] | None:
    files = sorted(folder().glob("summedits_*.json.gz"))
    if not files:
        return None
    rows = []
    for path in files:
        group = path.name.removeprefix("summedits_").removesuffix(".json.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows += [
                Row(group, r["doc"], r["summary"], r["doc"], r["label"] == 1, r["original_summary"])
                for r in json.load(file)
            ]
    return rows


def wice() -> list[Row] | None:
    files = sorted(folder().glob("oracle_claim_*.jsonl.gz"))
    if not files:
        return None
    rows = []
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                r = json.loads(line)
                supported = r["label"] == "supported"
                rows.append(Row("wice", r["meta"]["claim_title"], r["claim"], "\n".join(r["evidence"]), supported))
    return rows


def balanced(found: list[tuple[bool, bool]]) -> float:
    """Balanced accuracy of (truth, said) pairs."""
    shares = []
    for truth in (True, False):
        said = [s for t, s in found if t is truth]
        shares.append(sum(s is truth for s in said) / len(said))
    return sum(shares) / 2
