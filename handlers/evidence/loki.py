"""Loki's HTTP API: LogQL, time in nanoseconds, a limit always sent, both directions."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from handlers.evidence.backend import Answer, Backend, BackendFailed
from handlers.evidence.log_search import Query
from handlers.evidence.log_servers import Line, Page
from handlers.evidence.series import escaped

# Labels by which collectors name a service, the usual ones first.
SERVICE_LABELS = ("service_name", "service", "app", "app_kubernetes_io_name", "job", "container", "pod", "filename")


class Loki:
    """The dialect of one server."""

    language = "LogQL"

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def expression(self, query: Query, own: str | None) -> str:
        if own is not None:
            return own
        assert query.since is not None
        assert query.until is not None
        window = {"start": _nanos(query.since), "end": _nanos(query.until)}
        labels = _texts((await self._asked("/loki/api/v1/labels", window)).get("data"))
        usual = [label for label in SERVICE_LABELS if label in labels]
        selector = f'{{{(usual or labels or ["service_name"])[0]}=~".+"}}'
        filters = ""
        if query.service:
            wanted = query.service.casefold()
            for label in usual:
                values = _texts((await self._asked(f"/loki/api/v1/label/{label}/values", window)).get("data"))
                if any(wanted in value.casefold() for value in values):
                    selector = f'{{{label}=~"(?i).*{escaped(re.escape(query.service))}.*"}}'
                    break
            else:
                filters = f' |~ "(?i){escaped(re.escape(query.service))}"'
        if query.terms:
            filters += f' |~ "(?i){escaped("|".join(re.escape(term) for term in query.terms))}"'
        return f"{selector}{filters}"

    async def count(self, expression: str, since: float, until: float) -> int | None:
        span = max(1, math.ceil(until - since))
        form = {"query": f"sum(count_over_time({expression} [{span}s]))", "time": _nanos(until)}
        try:
            data = (await self._asked("/loki/api/v1/query", form)).get("data") or {}
        except BackendFailed as error:
            if error.status == 400:
                return None  # a query that reads lines but cannot be counted; reading it tells what is wrong
            raise
        values = [float(sample["value"][1]) for sample in data.get("result") or ()]
        return int(sum(values))

    async def read(self, expression: str, since: float, until: float, limit: int, forward: bool) -> Page:
        form = {
            "query": expression,
            "start": _nanos(since),
            "end": _nanos(until + 1e-3),  # the end itself is left out
            "limit": str(limit),
            "direction": "FORWARD" if forward else "BACKWARD",
        }
        data = (await self._asked("/loki/api/v1/query_range", form)).get("data") or {}
        if data.get("resultType") != "streams":
            raise BackendFailed(
                f"query: gives {data.get('resultType')}, not lines; leave out what counts or aggregates"
            )
        lines: list[Line] = []
        for stream in data.get("result") or ():
            labels = ",".join(f'{name}="{value}"' for name, value in sorted((stream.get("stream") or {}).items()))
            lines += [Line(int(entry[0]) / 1e9, entry[1], f"{{{labels}}}") for entry in stream.get("values") or ()]
        return Page([line for line in lines if since <= line.at <= until])

    async def _asked(self, path: str, form: dict[str, str]) -> dict[str, Any]:
        answer = await self._backend.get(path, form)
        body = _json(answer)
        if answer.status >= 300 or body is None or body.get("status") == "error":
            raise self._backend.failure(answer, str(body["error"]) if body is not None and "error" in body else None)
        return body


def _json(answer: Answer) -> dict[str, Any] | None:
    try:
        body = json.loads(answer.body)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _nanos(seconds: float) -> str:
    return str(round(seconds * 1_000_000) * 1_000)
