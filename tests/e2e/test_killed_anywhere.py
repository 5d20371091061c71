"""kill -9 of the whole process after any event, then the same command again: the turn ends exactly once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.chain import verify
from streams.envelope import Event, decode
from streams.server import NatsServer
from tests.cases import long_case

KILLED = Path(__file__).with_name("killed.py")
EVENTS = 31  # of the whole turn; a test below says so if that changes


class Runs:
    """`verdictlog judge` of the long case, once for each event it can be killed after, then each once more."""

    def __init__(self, server: NatsServer, folder: Path) -> None:
        self._env = {**os.environ, "NATS_URL": server.url, "PYTHONPATH": str(KILLED.parents[2])}
        self._folder = folder
        for k in range(EVENTS + 1):
            self._file(k).write_text(
                json.dumps({**long_case(), "question": f"Is payment-service no. {k} out of connections?"})
            )
        self.undisturbed = self._run([0], kill=False)[0]
        self.killed = self._run(range(1, EVENTS + 1), kill=True)
        self.again = self._run(range(1, EVENTS + 1), kill=False)

    def _file(self, k: int) -> Path:
        return self._folder / f"case-{k}.json"

    def _out(self, k: int) -> Path:
        return self._folder / f"out-{k}"

    def _run(self, which: Any, kill: bool) -> list[int]:
        jobs = [
            {
                "kill_after": k if kill else -1,
                "args": ["judge", str(self._file(k)), "--json", "--data", str(self._folder)],
                "out": str(self._out(k)),
            }
            for k in which
        ]
        # One at a time while they are killed: each run works on every open turn, also on those of others.
        command = [sys.executable, str(KILLED), "1" if kill else "8"]
        done = subprocess.run(
            command, input=json.dumps(jobs), capture_output=True, text=True, env=self._env, timeout=110, check=True
        )
        codes: list[int] = json.loads(done.stdout)
        return codes

    def report(self, k: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._out(k).read_text())
        return told

    def events(self, k: int) -> list[Event]:
        command = [sys.executable, "-m", "handlers.cli.main", "tail", "--json", "--until-idle", "0.5"]
        if not hasattr(self, "_all"):
            done = subprocess.run(
                [*command, "--data", str(self._folder)], capture_output=True, env=self._env, timeout=60, check=True
            )
            self._all = [decode(line) for line in done.stdout.splitlines()]
        session = self.report(k)["session"]
        return [event for event in self._all if event.session == session]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield Runs(server, tmp_path_factory.mktemp("runs"))
    server.stop()


def places(events: list[Event]) -> Counter[tuple[Any, ...]]:
    return Counter((e.type, e.actor, e.round, e.attempt) for e in events)


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
