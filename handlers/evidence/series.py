"""A time series and its one quotable line.

The line is rendered by us with numbers of nine significant digits, so that an excerpt matches whatever the backend
wrote: `hikaricp_connections_active{pool="payments-pool"} last=20 min=4 max=20 avg=14.2 n=181
2026-03-17T10:00Z..10:45Z step=15s gap=10:18..10:21`. A number that is none is said to be none.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

MAX_GAPS = 3


@dataclass(frozen=True, slots=True)
class Series:
    """`points` are (seconds since 1970 or None, value), by time. `path` is its place in its file."""

    path: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[tuple[float | None, float]] = ()
    kind: str = "unknown"
    note: str = ""

    def key(self) -> str:
        """`name{label="value"}`, escaped as Prometheus does."""
        inside = ",".join(f'{label}="{escaped(value)}"' for label, value in self.labels.items())
        return f"{self.name}{{{inside}}}" if inside else self.name or "{}"

    def within(self, since: float | None, until: float | None) -> Series | None:
        """The part in a window; None if nothing of it is there. Points without a time are kept."""
        if since is None and until is None:
            return self
        kept = [
            (at, value)
            for at, value in self.points
            if at is None or ((since is None or at >= since) and (until is None or at <= until))
        ]
        return Series(self.path, self.name, self.labels, kept, self.kind, self.note) if kept else None

    def finite(self) -> list[float]:
        return [value for _, value in self.points if math.isfinite(value)]

    def render(self) -> str:
        """The quotable line."""
        parts = [self.key()]
        if len(self.points) == 1:
            parts += _instant(*self.points[0])
        elif self.points:
            parts += self._range()
        if self.note:
            parts.append(self.note)
        return " ".join(parts)

    def _range(self) -> list[str]:
        values = [value for _, value in self.points]
        finite = self.finite()
        parts = [f"last={number(values[-1])}"]
        if finite:
            low, high = min(finite), max(finite)
            parts += [f"min={number(low)}", f"max={number(high)}", f"avg={number(math.fsum(finite) / len(finite), 6)}"]
        parts.append(f"n={len(values)}")
        parts += [f"nan={sum(math.isnan(v) for v in values)}"] if any(math.isnan(v) for v in values) else []
        parts += [f"inf={sum(math.isinf(v) for v in values)}"] if any(math.isinf(v) for v in values) else []
        times = [at for at, _ in self.points if at is not None]
        if len(times) == len(values):
            parts += _window(times)
        if not finite:
            return [*parts, "(no finite number: nothing was measured)"]
        if low != high:
            parts.append(f"first={number(values[0])}")
            peak = next(at for at, value in self.points if value == high)
            parts += [f"max_at={clock(peak)}"] if peak is not None else []
        if self.is_counter() and len(times) == len(values) and times[-1] > times[0]:
            parts += _counted(finite, times[-1] - times[0])
        return parts

    def is_counter(self) -> bool:
        return self.kind == "counter" or (self.kind == "unknown" and self.name.endswith(("_total", "_count")))


def _instant(at: float | None, value: float) -> list[str]:
    parts = [f"value={number(value)}"]
    parts += [f"at={clock(at)}"] if at is not None else []
    return parts if math.isfinite(value) else [*parts, "(no finite number: nothing was measured)"]


def _window(times: list[float]) -> list[str]:
    first, last = clock(times[0]), clock(times[-1])
    parts = [f"{first}..{last[11:] if first[:10] == last[:10] else last}"]
    steps = Counter(round(b - a, 3) for a, b in itertools.pairwise(times) if b > a)
    if not steps:
        return parts
    step = steps.most_common(1)[0][0]
    parts.append(f"step={number(step)}s")
    gaps = [(a + step, b) for a, b in itertools.pairwise(times) if b - a > 1.5 * step]
    if len(gaps) <= max(MAX_GAPS, len(times) // 20):
        parts += [f"gap={clock(a)[11:-1]}..{clock(b)[11:-1]}" for a, b in gaps[:MAX_GAPS]]
        parts += [f"gaps={len(gaps)}"] if len(gaps) > MAX_GAPS else []
    else:
        parts.append("(irregular steps)")
    return parts


def _counted(values: list[float], seconds: float) -> list[str]:
    grown = math.fsum(b - a if b >= a else b for a, b in itertools.pairwise(values))
    resets = sum(b < a for a, b in itertools.pairwise(values))
    parts = [f"increase={number(grown)}", f"rate={number(grown / seconds, 6)}/s"]
    return [*parts, f"resets={resets}"] if resets else parts


def number(value: float, digits: int = 9) -> str:
    """A number as we write it: no exponent for whole numbers, NaN, +Inf and -Inf by their names."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{digits}g}"


def clock(seconds: float) -> str:
    """`2026-03-17T10:00Z`, with seconds and milliseconds only where there are any."""
    moment = datetime.fromtimestamp(round(seconds, 3), UTC)
    form = "%Y-%m-%dT%H:%M" if not (moment.second or moment.microsecond) else "%Y-%m-%dT%H:%M:%S"
    millis = f".{moment.microsecond // 1000:03d}" if moment.microsecond else ""
    return f"{moment.strftime(form)}{millis}Z"


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
