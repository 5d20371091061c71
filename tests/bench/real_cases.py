"""Bar J6: recorded outputs of real tools, asked offline as `verdictlog ask` asks, and probes of single excerpts.

The cases are not in this repository: `VERDICTLOG_BENCH_CASES` names their folder (default `../shared/cases`); where it
is absent the bench says `not measured`. A file of `query_logs` is loaded as `--logs`, of `query_metrics` as `--metrics`,
a page as `--runbooks`, all else, and what such a tool cannot read, as `--tool query_state=PATH`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handlers.evidence.files import tools_for
from handlers.evidence.protocol import BadSource
from handlers.excerpts import match
from handlers.report import turn_report
from streams.contract import VERDICT_ORDER
from streams.events import QuestionAsked, Sources
from tests.bench.table import Row, not_measured
from tests.play import Clock, Stage

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "cases"
OWN_TOOLS = {"query_logs": "logs", "query_metrics": "metrics", "lookup_knowledge": "runbooks"}
OTHERS = "query_state"


def folder() -> Path:
    return Path(os.environ.get("VERDICTLOG_BENCH_CASES") or DEFAULT)


def sources_of(case: Path) -> Sources:
    """The case's files as `ask` would be given them; an output without a body is nothing to load."""
    named: dict[str, list[str]] = {"logs": [], "metrics": [], "runbooks": [], OTHERS: []}
    for item in json.loads((case / "manifest.json").read_text(encoding="utf-8")):
        path = case / item["file"]
        if path.stat().st_size:
            option = OWN_TOOLS.get(item["tool"])
            named[option if option and _readable(option, path) else OTHERS].append(str(path))
    return Sources(
        logs=tuple(named["logs"]),
        metrics=tuple(named["metrics"]),
        runbooks=tuple(named["runbooks"]),
        tools={OTHERS: tuple(named[OTHERS])} if named[OTHERS] else {},
    )


def _readable(option: str, path: Path) -> bool:
    try:
        tools_for(Sources.model_validate({option: (str(path),)}), Clock())
    except BadSource:
        return False
    return True


def verdict_of(case: Path) -> str | None:
    """The effective verdict of the case's question with offline agents; null if the turn ended without one."""

    async def ask() -> dict[str, Any]:
        stage = Stage()
        question = (case / "question.txt").read_text(encoding="utf-8").strip()
        await stage.ask(QuestionAsked(question=question, lang="en", sources=sources_of(case)))
        state = await stage.run()
        return turn_report(state, state.turns[-1])

    verdict: str | None = asyncio.run(ask())["effective_verdict"]
    return verdict


def expected(cases: Path) -> dict[str, str]:
    """Case -> the verdict that the table of its README names first."""
    table = (cases / "README.md").read_text(encoding="utf-8")
    return {
        m[1]: m[2] for m in re.finditer(r"^\| (\S+) \|.*\|\s*(PASS|LOW_CONFID|REJECT)[^|]*\|\s*$", table, re.MULTILINE)
    }


def probes(case: Path) -> Iterator[tuple[str, str, bool]]:
    """(excerpt, what is expected, whether it is accepted): against each line of the file, and the file as one record."""
    path = case / "probes.json"
    for probe in json.loads(path.read_text(encoding="utf-8")) if path.exists() else ():
        text = (case / probe["file"]).read_text(encoding="utf-8", errors="replace")
        records = [*text.splitlines(), text]
        yield probe["excerpt"], probe["expect"], any(_clean(probe["excerpt"], record) for record in records)


def _clean(excerpt: str, record: str) -> bool:
    found = match(excerpt, record)
    return found.rule is None and not found.trivial


def run() -> list[Row]:
    cases = folder()
    if not (cases / "README.md").is_file():
        return [not_measured("J6", "real cases", "table's verdict or worse", f"no cases in {cases.name}")]
    wanted = expected(cases)
    rows, said, wrong = [], {}, []
    for name, verdict in wanted.items():
        got = verdict_of(cases / name)
        said[name] = {"expected": verdict, "verdict": got}
        if got is not None and VERDICT_ORDER.index(got) < VERDICT_ORDER.index(verdict):  # type: ignore[arg-type]
            wrong.append(name)
    same = sum(found["verdict"] == found["expected"] for found in said.values())
    told = ", ".join(f"{name.split('-')[0]} {found['verdict']}" for name, found in said.items())
    rows.append(
        Row(
            "J6",
            f"cases with a better verdict than the table's ({same} of {len(said)} equal)",
            len(wrong),
            "0",
            not wrong,
            told,
            {"cases": said, "better": wrong},
        )
    )
    checked = [(name, *probe) for name in wanted for probe in probes(cases / name)]
    missed = [
        {"case": name, "excerpt": excerpt[:80], "expected": expect, "accepted": accepted}
        for name, excerpt, expect, accepted in checked
        if (expect == "mismatch" and accepted) or (expect.startswith("supported") and not accepted)
    ]
    rows.append(Row("J6", f"probes not exact, of {len(checked)}", len(missed), "0", not missed, "", {"missed": missed}))
    return rows
