"""Real Prometheus and VictoriaMetrics for tests, each with the bundled incident's samples in it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

WAIT_S = 30.0


def binary(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install prometheus victoria-metrics")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], log: Path, ready: str) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        _until(lambda: httpx.get(ready, trust_env=False).status_code == 200, log)
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


def _until(there: object, log: Path) -> None:
    ends = time.monotonic() + WAIT_S
    while time.monotonic() < ends:
        try:
            if callable(there) and there():
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise TimeoutError(log.read_text(encoding="utf-8", errors="replace")[-2000:])


@contextmanager
def prometheus(folder: Path, samples: Path) -> Iterator[str]:
    """`samples`: OpenMetrics text with time stamps. Gives the address."""
    data, config = folder / "tsdb", folder / "prometheus.yml"
    config.write_text("global: {}\n", encoding="utf-8")
    blocks = [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(samples), str(data)]
    subprocess.run(blocks, check=True, capture_output=True)
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        binary("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address={url.removeprefix('http://')}",
        "--storage.tsdb.retention.time=100y",
    ]
    with running(command, folder / "prometheus.log", f"{url}/-/ready"):
        yield url


@contextmanager
def victoria_metrics(folder: Path, samples: Path) -> Iterator[str]:
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        binary("victoria-metrics"),
        f"-httpListenAddr={url.removeprefix('http://')}",
        f"-storageDataPath={folder / 'vm'}",
        "-retentionPeriod=100y",
        "-search.latencyOffset=0s",  # as shipped, the last 30 s are hidden
    ]
    with running(command, folder / "victoria-metrics.log", f"{url}/health"):
        lines = []
        for line in samples.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                sample, _, at = line.rpartition(" ")
                lines.append(f"{sample} {int(float(at) * 1000)}\n")  # its import counts milliseconds
        httpx.post(f"{url}/api/v1/import/prometheus", content="".join(lines), trust_env=False).raise_for_status()
        httpx.get(f"{url}/internal/force_flush", trust_env=False).raise_for_status()
        yield url
