"""PromQL as `query_metrics` writes it: selectors that mean what the same arguments mean over files, ranges, steps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from handlers.evidence.arguments import BadArgument
from handlers.evidence.series import Series, escaped

_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_SELECTOR = re.compile(r"[a-zA-Z_:][\w:]*\s*(?:\{[^{}]*\})?|\{[^{}]*\}")


def is_selector(query: str) -> bool:
    """Whether a query only names series, whose lines then need no other name."""
    return _SELECTOR.fullmatch(query.strip()) is not None


def selector(metric: str | None, labels: Mapping[str, Any]) -> str:
    """As the file tool reads it: a metric name in part and in any case, a label's value whole."""
    parts = [f'__name__=~"(?i:.*(?:{escaped(metric)}).*)"' if metric else '__name__!=""']
    for label, value in labels.items():
        if not _NAME.fullmatch(str(label)):
            raise BadArgument(f"labels: {str(label)!r} is no label name")
        parts.append(f'{label}=~"(?i:{escaped(str(value))})"')
    return f"{{{','.join(parts)}}}"


def exact(one: Series) -> str:
    """The selector of this one series."""
    parts = [f'__name__="{escaped(one.name)}"'] if one.name else []
    parts += [f'{label}="{escaped(value)}"' for label, value in one.labels.items()]
    return f"{{{','.join(parts)}}}"


def span(since: float, until: float) -> str:
    """The range behind a selector that reads its samples of a window."""
    # A millisecond more: newer servers leave a window's first moment out.
    return f"[{max(1, math.ceil((until - since) * 1000)) + 1}ms]"


def step_of(text: str | None) -> float | None:
    """Seconds of `30s` or `5m`; BadArgument for what is no span."""
    if text is None:
        return None
    hit = _SPAN.fullmatch(text)
    if hit is None or float(hit[1]) <= 0:
        raise BadArgument(f"step: {text!r} is no span such as 30s or 5m")
    return float(hit[1]) * _UNITS[hit[2] or "s"]


def least_step(seconds: float) -> float:
    """The least round step that is no shorter."""
    return next((float(step) for step in _STEPS if step >= seconds), math.ceil(seconds / 604800) * 604800.0)
