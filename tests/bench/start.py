"""S11: how long the command line takes to answer, on the wall clock, the best of some tries."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.table import Row

VERDICTLOG = Path(sys.executable).parent / "verdictlog"


def help_s() -> float:
    began = time.perf_counter()
    subprocess.run([VERDICTLOG, "--help"], check=True, capture_output=True)
    return time.perf_counter() - began


def demo_s() -> tuple[float, float]:
    """Seconds until the first line of `demo` in an empty folder, and until its end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        began = time.perf_counter()
        with subprocess.Popen(
            [VERDICTLOG, "demo"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            first = 0.0
            for line in process.stdout:
                if not first and line.strip():
                    first = time.perf_counter() - began
        if process.returncode:
            raise RuntimeError(f"demo ended with {process.returncode}")
        return first, time.perf_counter() - began


def run(quick: bool = False) -> list[Row]:
    helps = [help_s() for _ in range(3 if quick else 7)]
    demos = [demo_s() for _ in range(1 if quick else 3)]
    first, whole = min(f for f, _ in demos), min(w for _, w in demos)
    return [
        Row("S11", "verdictlog --help, s", round(min(helps), 2), "<= 0.4", min(helps) <= 0.4, "", {"tries": helps}),
        Row("S11", "first line of demo, s", round(first, 2), "<= 2", first <= 2, "", {"tries": demos}),
        Row("S11", "whole demo, s", round(whole, 2), "<= 20", whole <= 20),
    ]
