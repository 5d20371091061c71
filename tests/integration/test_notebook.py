"""The example notebook runs over a snapshot: every picture has its rows, and text of others is only shown."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import duckdb
from projection_sessions import STORIES, ListLog, in_log, recorded, sample_log

from projections.projector import Projector
from projections.snapshot import snapshot
from projections.store import Store
from streams.envelope import Event
from streams.events import AgentReplied

NOTEBOOK = Path(__file__).parents[2] / "infra" / "examples" / "notebook.py"


def taken(path: Path, events: list[Event]) -> Path:
    store = Store.open(Path(":memory:"))
    log: Any = ListLog(events)
    asyncio.run(Projector(store, log, duty=0).run(until=len(events)))
    snapshot(store, path)
    store.close()
    return path


def run(path: Path) -> tuple[dict[str, Any], str]:
    """(what the notebook's cells define, what they show)."""
    spec = spec_from_file_location("notebook", NOTEBOOK)
    assert spec is not None
    assert spec.loader is not None
    notebook = module_from_spec(spec)
    spec.loader.exec_module(notebook)
    outputs, defined = notebook.app.run(defs={"snapshot": str(path)})
    return dict(defined), "\n".join(output.text for output in outputs if hasattr(output, "text"))


def test_each_picture_shows_what_the_documented_question_answers(tmp_path: Path) -> None:
    path = taken(tmp_path / "verdicts.duckdb", sample_log())
    defined, shown = run(path)
    with duckdb.connect(str(path), read_only=True) as connection:
        judged = connection.execute("SELECT count(*) FROM v_verdict").fetchall()[0][0]
    assert (defined["judged"], defined["passed"]) == (judged, 4)
    assert sum(row["judged"] for row in defined["by_day"]) == judged == 5
    assert {row["model"] for row in defined["by_prompt"]} == {"model-0", "model-1"}
    assert defined["failing"][0]["failures"] >= 1
    assert [row["turns"] for row in defined["second_round"]] == [1, 1]
    bars = sum(len(defined[name]) for name in ("by_day", "by_prompt", "failing", "second_round"))
    assert shown.count("<rect") == bars


def test_text_of_others_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    events = in_log(recorded("e2611-hostile", STORIES[0](name).drafts))
    defined, shown = run(taken(tmp_path / "verdicts.duckdb", events))
    assert defined["by_prompt"][0]["model"] == name
    assert "<script>" not in shown


def test_replies_without_a_prompt_have_a_bar_too(tmp_path: Path) -> None:
    bare = [
        replace(draft, payload=draft.payload.model_copy(update={"prompt_sha256": None}))
        if isinstance(draft.payload, AgentReplied)
        else draft
        for draft in STORIES[0]().drafts
    ]
    _, shown = run(taken(tmp_path / "verdicts.duckdb", in_log(recorded("e2611-scripted", bare))))
    assert "no prompt" in shown


def test_without_verdicts_it_says_so(tmp_path: Path) -> None:
    events = [replace(event, seq=1) for event in recorded("e2611-open", STORIES[0]().drafts[:1])]
    defined, shown = run(taken(tmp_path / "verdicts.duckdb", events))
    assert defined["judged"] == 0
    assert "none yet" in shown


def test_it_becomes_a_page(tmp_path: Path) -> None:
    path, page = taken(tmp_path / "verdicts.duckdb", sample_log()), tmp_path / "page.html"
    # A copy: marimo leaves a folder of its own beside a notebook.
    notebook = shutil.copy(NOTEBOOK, tmp_path)
    command = [sys.executable, "-m", "marimo", "-q", "export", "html", notebook, "-o", str(page)]
    done = subprocess.run([*command, "--", "--snapshot", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "5 judged turns in 5 sessions" in page.read_text("utf-8")


def test_without_a_snapshot_it_says_how_to_make_one(tmp_path: Path) -> None:
    defined, shown = run(tmp_path / "none.duckdb")
    assert "verdictlog snapshot" in shown
    assert "judged" not in defined
