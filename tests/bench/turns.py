"""S1 to S4, S8, S9: turns through log, fold, react loop and FastStream, beside the peers on the same workload.

Every figure comes from a process of its own (`turn_load`, or the peers' programs as they are). Ratios are made within one
pass, in which the programs take turns, and the median of the passes counts: on a noisy machine only that holds.
`VERDICTLOG_BENCH_PEERS` names the peers' folder (default `../shared/bench/peers`), `VERDICTLOG_BENCH_PEERS_PYTHON` a
Python that has their packages.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.table import Row, not_measured

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = ROOT.parent / "shared" / "bench" / "peers"
PEER = ("--concurrency", "100", "--repeat", "1")
SYNCS = ("always", "2m")
MODEL_S = 2.0
LIMIT_S = 900
Figures = dict[str, Any]


def folder() -> Path:
    return Path(os.environ.get("VERDICTLOG_BENCH_PEERS") or DEFAULT)


def ours(mode: str, *options: str) -> Figures:
    """One run of `turn_load`."""
    command = [sys.executable, "-m", "tests.bench.turn_load", "--mode", mode, "--peers", str(folder()), *options]
    return _figures(command, ROOT)


def _figures(command: list[str], where: Path) -> Figures:
    ended = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command[1:4])}: {(ended.stderr.strip() or 'no word').splitlines()[-1]}")
    figures: Figures = json.loads(ended.stdout.strip().splitlines()[-1])
    return figures


class Peers:
    """The peers' programs, run in a scratch folder; a peer that cannot run is remembered with its reason."""

    def __init__(self, sessions: int) -> None:
        self.python = os.environ.get("VERDICTLOG_BENCH_PEERS_PYTHON", "")
        self.missing: dict[str, str] = {}
        self._sessions = str(sessions)

    def run(self, program: str, *options: str) -> Figures | None:
        if program in self.missing:
            return None
        script = folder() / f"bench_{program}.py"
        if not script.is_file() or not self.python:
            self.missing[program] = "set VERDICTLOG_BENCH_PEERS and VERDICTLOG_BENCH_PEERS_PYTHON"
            return None
        try:
            with tempfile.TemporaryDirectory() as scratch:
                command = [self.python, str(script), "--sessions", self._sessions, *PEER, *options]
                found = _figures(command, Path(scratch))
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            self.missing[program] = str(error)
            return None
        return {
            "cpu_ms": found["cpu_ms_per_session"]["med"],
            "sessions_per_s": found["sessions_per_s"]["med"],
            "disk_bytes": found["disk_bytes_per_session"]["med"],
            "load": found["load1_after"],
        }


def one_pass(peers: Peers, sessions: int) -> dict[str, Figures | None]:
    """Everything once, in turn."""
    count = ("--sessions", str(sessions))
    here = (folder() / "common.py").is_file()
    found: dict[str, Figures | None] = {
        "langgraph": peers.run("langgraph", "--backend", "aiosqlite", "--durability", "sync"),
        "real always": ours("real", "--project", *count),
        "eventsourcing": peers.run("eventsourcing", "--backend", "sqlite"),
    }
    for sync in SYNCS if here else ():
        found[f"stub {sync}"] = ours("stub", "--sync", sync, *count)
        found[f"bare {sync}"] = ours("bare", "--sync", sync, *count)
    return found


class Ratio:
    """One figure of one program over the same figure of another, pass by pass."""

    def __init__(self, passes: list[dict[str, Figures | None]], peers: Peers) -> None:
        self._passes = passes
        self._peers = peers

    def row(self, bar: str, what: str, ours_: str, theirs: str, key: str, limit: float, more_is_better: bool) -> Row:
        pairs = [(p.get(ours_), p.get(theirs)) for p in self._passes]
        ratios = [a[key] / b[key] for a, b in pairs if a is not None and b is not None]
        wanted = f"{'>=' if more_is_better else '<='} {limit:.3g}x"
        if not ratios:
            why = self._peers.missing.get(theirs, "the peers' workload is not here")
            return not_measured(bar, what, wanted, why)
        value = statistics.median(ratios)
        note = f"{what}: {min(ratios):.3g} to {max(ratios):.3g} in {len(ratios)} passes"
        details = {"ratios": ratios, "ours": [a for a, _ in pairs], "theirs": [b for _, b in pairs]}
        return Row(
            bar, what, round(value, 3), wanted, value >= limit if more_is_better else value <= limit, note, details
        )


def compared(passes: list[dict[str, Figures | None]], peers: Peers) -> list[Row]:
    ratio = Ratio(passes, peers)
    rows = []
    for sync in SYNCS:
        mine = f"stub {sync}"
        told = f"sync {'always' if sync == 'always' else 'default'}"
        rows += [
            ratio.row("S1", f"CPU of a session / LangGraph's, {told}", mine, "langgraph", "cpu_ms", 1 / 3, False),
            ratio.row("S1", f"sessions/s / LangGraph's, {told}", mine, "langgraph", "sessions_per_s", 3, True),
            ratio.row(
                "S1", f"sessions/s / eventsourcing's, {told}", mine, "eventsourcing", "sessions_per_s", 1.2, True
            ),
        ]
    real = "real always"
    return [
        *rows,
        ratio.row(
            "S1b", "CPU of a whole real turn / LangGraph's five stub steps", real, "langgraph", "cpu_ms", 1, False
        ),
        ratio.row("S1b", "real turns/s / LangGraph's sessions/s", real, "langgraph", "sessions_per_s", 1, True),
        ratio.row(
            "S2", "CPU of S1 / a bare nats-py loop's, sync always", "stub always", "bare always", "cpu_ms", 2.5, False
        ),
    ]


def lag(passes: list[dict[str, Figures | None]]) -> Row:
    seen = [p["real always"] for p in passes if p.get("real always")]
    values = [figures["lag_p99_s"] for figures in seen if figures is not None]
    value = statistics.median(values)
    what = "projection lag behind an answer, p99, s, under 100 real turns at once"
    return Row("S8", what, value, "< 1", value < 1, "", {"passes": values})


def one_at_a_time(passes: int, sessions: int) -> Row:
    found = [ours("real", "--project", "--at-once", "1", "--sessions", str(sessions)) for _ in range(passes)]
    value = min(f["p50_ms"] for f in found)
    note = "p50 of the quietest pass; CPU of a round " + ", ".join(
        f"{f['cpu_ms']} ms (load {f['load']})" for f in found
    )
    return Row("S3", "one turn at a time, p50, ms", value, "<= 20", value <= 20, note, {"passes": found})


def wide_open(sessions: int, at_once: int) -> list[Row]:
    """Sessions with a slow model: what is measured is that nothing of ours stands in the way of waiting."""
    # --at-once of the load is the crowd; a turn cannot take less than its three calls.
    found = ours("real", "--at-once", str(at_once), "--sessions", str(sessions), "--model-s", str(MODEL_S))
    ideal = at_once / (3 * MODEL_S)
    share = found["sessions_per_s"] / ideal
    note = f"{found['sessions_per_s']} turns/s of {ideal:.0f}, {found['cpu_ms']} ms CPU a turn, load {found['load']}"
    return [
        Row("S4", f"{at_once} turns at once, three model calls of {MODEL_S:g} s: share of the ideal", round(share, 3), ">= 0.9", share >= 0.9, note, found),
        Row("S4", "memory of the process, MB", found["rss_mb"], "< 400", found["rss_mb"] < 400),
    ]  # fmt: skip


def disk(sessions: int) -> Row:
    what, wanted = "bytes on disk / bytes of payload JSON, S1's workload", "<= 1"
    if not (folder() / "common.py").is_file():
        return not_measured("S9", what, wanted, "the peers' workload is not here")
    found = ours("disk", "--sessions", str(sessions), "--sync", "2m")
    value = found["disk_per_payload"]
    note = f"{found['payload_bytes_per_session']} bytes of JSON a session, {sessions} sessions"
    return Row("S9", what, value, wanted, value <= 1, note, found)


def run(quick: bool = False) -> list[Row]:
    """Rows of all bars; `quick` takes one pass and fewer sessions."""
    passes_, sessions = (1, 100) if quick else (3, 200)
    peers = Peers(sessions)
    passes = [one_pass(peers, sessions) for _ in range(passes_)]
    return [
        *compared(passes, peers),
        one_at_a_time(passes_, 20 if quick else 60),
        *wide_open(*((300, 100) if quick else (3000, 1000))),
        lag(passes),
        disk(1000 if quick else 4000),
    ]
