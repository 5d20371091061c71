"""Reads Prometheus and OpenMetrics text with time stamps into series."""

from __future__ import annotations

import re

from handlers.evidence.series import Series

_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:.]*|(?=\{))\s*(?:\{(?P<labels>(?:[^\"{}]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+"
    r"(?P<value>[-+]?(?:inf(?:inity)?|nan|[\d.]+(?:e[-+]?\d+)?))(?:\s+(?P<at>-?[\d.]+(?:e[-+]?\d+)?))?\s*(?:#.*)?$",
    re.IGNORECASE,
)
_LABEL = re.compile(r"\s*(?:([a-zA-Z_][\w.]*)|\"((?:[^\"\\]|\\.)*)\")\s*(?:=\s*\"((?:[^\"\\]|\\.)*)\")?\s*,?")
_ESCAPE = re.compile(r"\\(.)")


def looks_like_exposition(text: str) -> bool:
    """True if the first lines that say anything are samples or their `# TYPE` and `# HELP`."""
    said = [line for line in text[:20_000].splitlines()[:200] if line.strip()][:20]
    samples = sum(bool(_SAMPLE.match(line)) for line in said)
    meta = sum(line.startswith(("# HELP ", "# TYPE ", "# UNIT ", "# EOF")) for line in said)
    return bool(said) and samples > 0 and samples + meta >= 0.8 * len(said)


def parse(text: str) -> tuple[list[Series], int]:
    """The series of a text in the order of their first samples, and how many lines were no samples."""
    points: dict[tuple[str, str], list[tuple[float | None, float]]] = {}
    kinds: dict[str, str] = {}
    bad = 0
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.startswith("#"):
            words = line.split(maxsplit=3)
            if len(words) == 4 and words[1] == "TYPE":
                kinds[words[2]] = words[3].strip()
            continue
        hit = _SAMPLE.match(line)
        if hit is None:
            bad += 1
            continue
        at = float(hit["at"]) if hit["at"] else None
        if at is not None and abs(at) > 1e11:
            at /= 1000.0  # Prometheus text counts milliseconds, OpenMetrics seconds
        points.setdefault((hit["name"] or "", hit["labels"] or ""), []).append((at, float(hit["value"])))
    series = []
    for at_index, ((name, inside), values) in enumerate(points.items()):
        labels, quoted_name = _labels(inside)
        full = name or quoted_name
        ordered = sorted(values, key=lambda point: point[0] or 0.0)
        series.append(Series(f"result[{at_index}]", full, labels, ordered, _kind(full, kinds)))
    return series, bad


def _labels(inside: str) -> tuple[dict[str, str], str]:
    labels: dict[str, str] = {}
    name = ""
    for hit in _LABEL.finditer(inside):
        bare, quoted, value = hit.groups()
        if value is None:
            name = _unescaped(quoted) if quoted else name
        else:
            labels[bare or _unescaped(quoted)] = _unescaped(value)
    return labels, name


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda hit: "\n" if hit[1] == "n" else hit[1], text)


def _kind(name: str, kinds: dict[str, str]) -> str:
    if name in kinds:
        return kinds[name]
    for ending in ("_total", "_created", "_bucket", "_count", "_sum"):
        family = name.removesuffix(ending)
        if family != name and family in kinds:
            return "counter" if ending != "_created" else "gauge"
    return "unknown"
