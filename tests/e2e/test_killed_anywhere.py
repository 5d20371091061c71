"""kill -9 of the whole process after any event, then the same command again: the turn ends exactly once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from streams.chain import verify
from streams.envelope import Event, decode
from tests.cases import long_case

KILLED = Path(__file__).with_name("killed.py")
EVENTS = 31  # of the whole turn; a test below says so if that changes


class Runs:
    """`verdictlog judge` of the long case, once for each event it can be killed after, then each once more.

    Each has a data folder and so a local server of its own: a run works on every open turn that it finds.
    """

    def __init__(self, folder: Path) -> None:
        unset = {"NATS_URL", *(key for key in os.environ if key.startswith("VERDICTLOG_"))}
        self._env = {k: v for k, v in os.environ.items() if k not in unset} | {"PYTHONPATH": str(KILLED.parents[2])}
        self._folder = folder
        self._case = folder / "case.json"
        self._case.write_text(json.dumps(long_case()))
        every = range(1, EVENTS + 1)
        judge = ["judge", str(self._case), "--json"]
        self.undisturbed = self._run([0], "judged", judge)[0]
        self.killed = self._run(every, "killed", judge, kill=True)
        self.again = self._run(every, "judged", judge)
        self._run(range(EVENTS + 1), "events", ["tail", "--json", "--until-idle", "0.5"])

    def _run(self, which: Iterable[int], name: str, arguments: list[str], kill: bool = False) -> list[int]:
        jobs = [
            {
                "kill_after": k if kill else -1,
                "args": [*arguments, "--data", str(self._folder / f"data-{k}")],
                "out": str(self._folder / f"{name}-{k}"),
            }
            for k in which
        ]
        command = [sys.executable, str(KILLED), "6"]
        done = subprocess.run(
            command, input=json.dumps(jobs), capture_output=True, text=True, env=self._env, timeout=200, check=True
        )
        codes: list[int] = json.loads(done.stdout)
        return codes

    def report(self, k: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self._folder / f"judged-{k}").read_text())
        return told

    def events(self, k: int) -> list[Event]:
        session = self.report(k)["session"].rpartition("-")[0] + "-1"
        every = [decode(line) for line in (self._folder / f"events-{k}").read_bytes().splitlines()]
        return [event for event in every if event.session == session]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


def places(events: list[Event]) -> Counter[tuple[Any, ...]]:
    return Counter((e.type, e.actor, e.round, e.attempt) for e in events)


@pytest.mark.timeout(300)
def test_the_undisturbed_turn_has_every_kind_of_step(runs: Runs) -> None:
    assert runs.undisturbed == 0
    assert len(runs.events(0)) == EVENTS
    report = runs.report(0)
    assert (report["route"], report["attempts"]) == (["extra_round", "answer"], [2, 1])


@pytest.mark.scenario("ROU-8")
@pytest.mark.scenario("REP-11")
@pytest.mark.parametrize("k", range(1, EVENTS + 1))
def test_killed_after_event_the_turn_ends_exactly_once(k: int, runs: Runs) -> None:
    assert runs.killed[k - 1] == -9
    assert runs.again[k - 1] == 0
    # The last event is the answer: the command that comes after it asks anew, in a session of its own.
    assert runs.report(k)["session"].endswith("-2" if k == EVENTS else "-1")
    events = runs.events(k)
    assert places(events) == places(runs.events(0))
    assert verify(events) is None
