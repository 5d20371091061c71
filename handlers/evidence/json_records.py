"""Any JSON as quotable records: time series where it holds some, one line for each object's own values elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from handlers.evidence import log_lines
from handlers.evidence.series import Series

_TIME_KEYS = ("timestamp", "timestamps", "time", "times", "ts", "date", "datetime")
_NAME_KEYS = ("metric_name", "metricname", "metric", "label", "name", "id", "title")
MAX_TEXT = 2_000
_written = json.JSONEncoder(ensure_ascii=False).encode  # made once: a body may hold 100,000 values


@dataclass(frozen=True, slots=True)
class Flat:
    """An object's scalars as one line: `events[1] date="..." message="..."`."""

    path: str
    text: str


def walk(value: Any, path: str = "") -> Iterator[Series | Flat]:
    """Series and lines of a JSON value, in document order."""
    if isinstance(value, dict):
        yield from _object(value, path)
    elif isinstance(value, list):
        yield from _array(value, path)
    else:
        yield Flat(path or "$", f"{path or '$'}={scalar(value)}")


def _object(value: dict[str, Any], path: str) -> Iterator[Series | Flat]:
    series, used = _column_series(value, path)
    scalars = {key: item for key, item in value.items() if not isinstance(item, (dict, list)) and key not in used}
    short = {
        key: item
        for key, item in value.items()
        if isinstance(item, list) and key not in used and all(not isinstance(x, (dict, list)) for x in item)
    }
    if series:
        yield from series
    elif scalars or short:
        fields = [f"{key}={scalar(item)}" for key, item in scalars.items()]
        fields += [f"{key}={_written(item)}" for key, item in short.items()]
        head = f"{path} " if path else ""
        yield Flat(path or "$", head + " ".join(fields))
    for key, item in value.items():
        if key in used or key in short or not isinstance(item, (dict, list)):
            continue
        yield from walk(item, f"{path}.{key}" if path else key)


def _array(value: list[Any], path: str) -> Iterator[Series | Flat]:
    rows = _row_series(value, path)
    if rows:
        yield from rows
        return
    if value and all(not isinstance(item, (dict, list)) for item in value):
        yield Flat(path or "$", f"{path or '$'}={_written(value)}")
        return
    for at, item in enumerate(value):
        yield from walk(item, f"{path}[{at}]")


def _column_series(value: dict[str, Any], path: str) -> tuple[list[Series], set[str]]:
    """`{"timestamps": [...], "values": [...]}` beside scalars that become labels."""
    times_key = next((key for key in value if key.lower() in _TIME_KEYS and isinstance(value[key], list)), None)
    if times_key is None:
        return [], set()
    times = [_when(item) for item in value[times_key]]
    columns = [
        key
        for key, item in value.items()
        if key != times_key and isinstance(item, list) and len(item) == len(times) and times and _numeric(item)
    ]
    if not columns or None in times:
        return [], set()
    name, labels = _identity(value, path, {times_key, *columns})
    return [
        Series(
            path if len(columns) == 1 else f"{path}.{column}",
            name if len(columns) == 1 else f"{name}.{column}",
            labels,
            sorted(
                zip(times, (_float(item) for item in value[column]), strict=True), key=lambda point: point[0] or 0.0
            ),
        )
        for column in columns
    ], {times_key, *columns, *(key for key in value if key.lower() in {"dimensions", "metric"})}


def _row_series(value: list[Any], path: str) -> list[Series]:
    """`[{"Timestamp": ..., "Average": 1.0}, ...]`: one series for each number."""
    if len(value) < 2 or not all(isinstance(item, dict) for item in value):
        return []
    times_key = next((key for key in value[0] if key.lower() in _TIME_KEYS), None)
    if times_key is None:
        return []
    times = [_when(item.get(times_key)) for item in value]
    columns = [key for key in value[0] if key != times_key and all(_is_number(item.get(key)) for item in value)]
    constant = {k: v for k, v in value[0].items() if isinstance(v, str) and k != times_key}
    if None in times or not columns or any(item.get(k) != v for item in value for k, v in constant.items()):
        return []
    base = path.rsplit(".", 1)[-1] or "value"
    labels = {key: str(item) for key, item in constant.items()}
    return [
        Series(
            f"{path}.{column}",
            f"{base}.{column}",
            labels,
            sorted(zip(times, (float(item[column]) for item in value), strict=True), key=lambda point: point[0] or 0.0),
        )
        for column in columns
    ]


def _identity(value: dict[str, Any], path: str, used: set[str]) -> tuple[str, dict[str, str]]:
    lower = {key.lower(): key for key in value}
    name_key = next((lower[key] for key in _NAME_KEYS if key in lower and isinstance(value[lower[key]], str)), None)
    name = str(value[name_key]) if name_key else (path.rsplit(".", 1)[-1] or "value")
    labels: dict[str, str] = {}
    for key, item in value.items():
        if key == name_key or key in used or item == name:
            continue
        if isinstance(item, dict) and all(not isinstance(x, (dict, list)) for x in item.values()):
            labels.update({str(k): str(v) for k, v in item.items()})
        elif (
            isinstance(item, list) and item and all(isinstance(x, dict) and {"Name", "Value"} <= x.keys() for x in item)
        ):
            labels.update({str(x["Name"]): str(x["Value"]) for x in item})
        elif isinstance(item, str):
            labels[key] = item
    return labels.pop("__name__", name), labels


def _when(item: Any) -> float | None:
    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        return None
    if isinstance(item, str):
        return log_lines.epoch(item)
    return float(item) / 1000.0 if item > 1e11 else float(item)


def _numeric(items: list[Any]) -> bool:
    return all(_is_number(item) or item is None for item in items) and any(_is_number(item) for item in items)


def _is_number(item: Any) -> bool:
    return isinstance(item, (int, float)) and not isinstance(item, bool)


def _float(item: Any) -> float:
    return float("nan") if item is None else float(item)


def scalar(value: Any) -> str:
    """A JSON scalar as written there; long texts are cut with a word that says so."""
    text = _written(value)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… (cut, {len(text)} characters)"


def rendered(entry: Series | Flat) -> str:
    """The quotable line of an entry."""
    return entry.render() if isinstance(entry, Series) else entry.text
