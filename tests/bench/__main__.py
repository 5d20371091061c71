"""All bars in one table: `python -m tests.bench [NAME|BAR...] [--json FILE] [--quick]`. Ends with 1 if a bar is missed.

A bar (`S6`) measures what gives it, and shows that bar alone. `VERDICTLOG_BENCH_EVENTS` is the size of the log of S6 and S7.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import orjson

from tests.bench import (
    claims,
    excerpts,
    gate_mutations,
    hostile_replies,
    large_output,
    projection,
    real_cases,
    reliability,
    start,
    turns,
    verdict_algebra,
)
from tests.bench.table import Row, not_measured, printed


def _excerpts(_quick: bool) -> list[Row]:
    figures = excerpts.run()
    ours, times = figures["total"]["verdictlog"], figures["timings"]
    grave = "J1 none accepted of the grave classes"
    held = figures["bars"]
    accepted, refused = 100 * ours["honest_accepted"], 100 * ours["tampered_refused"]
    warned = 100 * figures["clipped_negation_warned"]
    return [
        Row("J1", f"honest excerpts accepted, %, of {figures['cases']} cases", round(accepted, 2), ">= 99", accepted >= 99, "", figures),
        Row("J1", "tampered excerpts refused, %", round(refused, 2), ">= 99.5", refused >= 99.5),
        Row("J1", "grave classes of which one was accepted", float(not held[grave]), "0", held[grave]),
        Row("J1", "clipped negations warned, %", round(warned, 2), "100", warned == 100),
        Row("S5", "excerpt check on a 64 KiB ref, p50, ms", times["p50_ms"], "<= 0.2", times["p50_ms"] <= 0.2, "", times),
        Row("S5", "excerpt check on a 64 KiB ref, p99, ms", times["p99_ms"], "<= 5", times["p99_ms"] <= 5),
    ]  # fmt: skip


def _gate(quick: bool) -> list[Row]:
    found = gate_mutations.run(*((5,) if quick else ()))
    wrong = found["faults"] - found["told_exactly"]
    return [
        Row("J2", f"{found['kinds']} kinds of fault x {found['answers']}: not told exactly", wrong, "0", not wrong, "", found),
        Row("J2", "false alarms on answers without a fault", found["false_alarms"], "0", not found["false_alarms"]),
    ]  # fmt: skip


def _algebra(_quick: bool) -> list[Row]:
    found = verdict_algebra.run()
    wrong = found["differ_from_reference"] + found["made_better_by_a_worse_input"]
    what = f"verdicts that differ from the reference, or are not monotone, of {found['cells']}"
    return [Row("J3", what, wrong, "0", found["ok"], "", found)]


def _hostile(quick: bool) -> list[Row]:
    found = hostile_replies.run(*((2_000,) if quick else ()))
    wrong = len(found["failed"]) + found["fuzz"]["wrong"]
    what = f"{found['kinds']} kinds of hostile reply, and {found['fuzz']['rounds']} fuzzed: taken wrongly"
    return [Row("J4", what, wrong, "0", found["ok"], "", found)]


def _claims(_quick: bool) -> list[Row]:
    below = "numbers changed: false flags"
    return [
        Row("J5", row["name"], row["value"], f"{'<=' if row['name'] == below else '>='} {row['bar']}", row["ok"], row.get("note", ""), row)
        for row in claims.run()["rows"]
    ]  # fmt: skip


def _projection(quick: bool) -> list[Row]:
    # The bars speak of 1,000,000 events: that takes minutes, and `VERDICTLOG_BENCH_EVENTS` asks for it.
    events = 20_000 if quick else int(os.environ.get("VERDICTLOG_BENCH_EVENTS", "200000"))
    rows = []
    for row in projection.run(events)["rows"]:
        bar, _, what = row["name"].partition(" ")
        sign = ">=" if what.startswith("rebuild") else "<="
        rows.append(Row(bar, what, row["value"], f"{sign} {row['bar']}", row["ok"], "", row))
    return rows


def _cases(_quick: bool) -> list[Row]:
    return real_cases.run()


BENCHES: dict[str, Callable[[bool], list[Row]]] = {
    "excerpts": _excerpts,
    "large_output": large_output.run,
    "gate_mutations": _gate,
    "verdict_algebra": _algebra,
    "hostile_replies": _hostile,
    "claims": _claims,
    "real_cases": _cases,
    "start": start.run,
    "turns": turns.run,
    "projection": _projection,
    "reliability": reliability.run,
}

BARS: dict[str, tuple[str, ...]] = {
    "J1": ("excerpts",),
    "J2": ("gate_mutations",),
    "J3": ("verdict_algebra",),
    "J4": ("hostile_replies",),
    "J5": ("claims",),
    "J6": ("real_cases",),
    "S1": ("turns",),
    "S1b": ("turns",),
    "S2": ("turns",),
    "S3": ("turns",),
    "S4": ("turns",),
    "S5": ("excerpts", "large_output"),
    "S6": ("projection",),
    "S7": ("projection",),
    "S8": ("turns",),
    "S9": ("turns",),
    "S10": ("projection",),
    "S11": ("start",),
    "R3": ("reliability",),
    "R5": ("reliability",),
}


def _chosen(asked: list[str]) -> tuple[list[str], set[str]]:
    """(benches to run, bars to show); no bar: all of them."""
    bars = {name for name in asked if name in BARS}
    benches = [name for name in BENCHES if name in asked or any(name in BARS[bar] for bar in bars)]
    return benches or list(BENCHES), bars if all(name in BARS for name in asked) else set()


def _measured(name: str, quick: bool) -> list[Row]:
    try:
        return BENCHES[name](quick)
    except Exception as error:
        # One bench that cannot run must not hide the others' figures.
        traceback.print_exc()
        return [not_measured("-", name, "-", f"{type(error).__name__}: {error}")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="All bars, measured, as one table.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*BENCHES, *BARS]))
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: for a look, not for a report")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHES) - set(BARS)
    if unknown:
        parser.error(f"no such bench or bar: {', '.join(sorted(unknown))}; there are {', '.join([*BENCHES, *BARS])}")
    benches, bars = _chosen(options.names)
    rows: list[Row] = []
    load = os.getloadavg()[0]
    for name in benches:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += [row for row in _measured(name, options.quick) if not bars or row.bar in {*bars, "-"}]
    print(printed(rows))
    print(
        f"\n{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} before and {os.getloadavg()[0]:.1f} after"
    )
    if options.json:
        figures = {"load_before": load, "load_after": os.getloadavg()[0], "rows": [dataclasses.asdict(r) for r in rows]}
        options.json.write_bytes(
            orjson.dumps(figures, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str)
        )
    return 1 if any(row.ok is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
