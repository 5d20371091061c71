"""Reads answers of the Prometheus HTTP API, recorded in files: vectors, matrices, series, alerts, errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from handlers.evidence.json_records import Flat, scalar
from handlers.evidence.series import Series, escaped

_ERROR_KEYS = {"error", "errorType", "status", "message", "code", "error_type", "status_code", "data", "warnings"}


@dataclass(slots=True)
class Answer:
    """What a body holds: records in order, or an error's text. `empty` is a success without any data."""

    records: list[Series | Flat] = field(default_factory=list)
    error: str | None = None
    empty: bool = False
    notes: list[str] = field(default_factory=list)


def read(body: Any) -> Answer | None:
    """The answer in a JSON body; None if it is no such body."""
    if not isinstance(body, dict):
        return None
    if (error := error_of(body)) is not None:
        return Answer(error=error)
    if body.get("status") != "success" or "data" not in body:
        return None
    notes = [f"{kind}: {text}" for kind in ("warnings", "infos") for text in body.get(kind) or ()]
    data = body["data"]
    records = _result(data)
    if records is None:
        return None
    return Answer(records=records, empty=not records, notes=notes)


_LOGGED = frozenset({"level", "severity", "lvl", "ts", "time", "timestamp", "logger"})


def error_of(body: dict[str, Any]) -> str | None:
    """The text of a body that only says that something failed; a log line in JSON, with a level or a time, is none."""
    if not _LOGGED.isdisjoint(key.lower().lstrip("@") for key in body):
        return None
    if body.get("kind") == "Status" and body.get("status") == "Failure" and isinstance(body.get("message"), str):
        return str(body["message"])
    text = body.get("error")
    if isinstance(text, dict) and set(body) <= _ERROR_KEYS and isinstance(text.get("message"), str):
        return str(text["message"])
    if body.get("status") == "error" and isinstance(text or body.get("message"), str):
        kind = f"{body['errorType']}: " if body.get("errorType") else ""
        return f"{kind}{text or body.get('message')}"
    if isinstance(text, str) and text and set(body) <= _ERROR_KEYS and not body.get("data"):
        return text
    return None


def _result(data: Any) -> list[Series | Flat] | None:
    if isinstance(data, dict) and isinstance(data.get("alerts"), list):
        return [_alert(at, alert) for at, alert in enumerate(data["alerts"]) if isinstance(alert, dict)]
    if isinstance(data, dict) and data.get("resultType") in {"scalar", "string"}:
        return [_scalar(data)]
    if isinstance(data, dict) and isinstance(data.get("result"), list) and "resultType" in data:
        return [_sample(at, item) for at, item in enumerate(data["result"])]
    if isinstance(data, list) and all(isinstance(item, dict) and _is_metric(item) for item in data):
        return [_existing(at, item) for at, item in enumerate(data)]
    if isinstance(data, list) and all(isinstance(item, str) for item in data):
        return [Flat(f"data[{at}]", item) for at, item in enumerate(data)]
    return None


def _is_metric(item: dict[str, Any]) -> bool:
    return all(isinstance(value, str) for value in item.values())


def _sample(at: int, item: Any) -> Series:
    metric = dict(item.get("metric") or {})
    name = metric.pop("__name__", "")
    values = item.get("values") if "values" in item else [item["value"]] if "value" in item else []
    labels = {str(key): str(value) for key, value in metric.items()}
    note = "" if values else "(native histogram: not rendered)"
    points = [(_float(point[0]), _float(point[1])) for point in values]
    return Series(f"result[{at}]", name, labels, points, note=note)


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _scalar(data: dict[str, Any]) -> Series | Flat:
    at, value = data["result"]
    if data["resultType"] == "string":
        return Flat("result", scalar(value))
    return Series("result", "scalar", {}, [(_float(at), _float(value))])


def _existing(at: int, item: dict[str, Any]) -> Series:
    labels = {key: value for key, value in item.items() if key != "__name__"}
    return Series(
        f"data[{at}]", item.get("__name__", ""), labels, (), note="(this series exists; no value was asked for)"
    )


def _alert(at: int, alert: dict[str, Any]) -> Flat:
    labels = dict(alert.get("labels") or {})
    name = labels.pop("alertname", "alert")
    inside = ",".join(f'{key}="{escaped(str(value))}"' for key, value in labels.items())
    fields = [f"{key}={scalar(alert[key])}" for key in ("state", "activeAt", "value") if alert.get(key) is not None]
    fields += [f"{key}={scalar(text)}" for key, text in (alert.get("annotations") or {}).items()]
    return Flat(f"alerts[{at}]", f"ALERT {name}{{{inside}}} " + " ".join(fields))
