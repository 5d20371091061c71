"""Events of releases that never were: bytes with older schemas, and the steps by which today's program reads them.

The released tables stay as they are: `install` puts these steps in for one test.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from streams import events as ev
from streams import upcasts
from streams.envelope import ZERO_HASH, Event

Rewrite = Callable[[dict[str, Any]], dict[str, Any]]


class Asked(ev.QuestionAsked):
    """Schema 2 brought `owner`: before it, every question came from a foreign agent."""

    SCHEMA = 2


class Invoked(ev.ToolInvoked):
    """Schema 2 renamed `call_id`, schema 3 brought `evidence_kind`, which was told by the tool's name before."""

    SCHEMA = 3


def owned(data: dict[str, Any]) -> dict[str, Any]:
    return {"owner": "external", **data}


def renamed(data: dict[str, Any]) -> dict[str, Any]:
    return {("invocation_id" if key == "call_id" else key): value for key, value in data.items()}


def kinded(data: dict[str, Any]) -> dict[str, Any]:
    return {"evidence_kind": "knowledge" if data["tool_name"] == "lookup_knowledge" else "incident", **data}


def parted(data: dict[str, Any]) -> list[dict[str, Any]]:
    """`answer-checked` had the gate's result and the score by rule in one event."""
    return [{"result": data["gate"]}, {"evaluation": data["score"]}]


STEPS: dict[tuple[str, int], upcasts.Upcaster | upcasts.Split] = {
    ("question-asked", 1): owned,
    ("tool-invoked", 1): renamed,
    ("tool-invoked", 2): kinded,
    ("answer-checked", 1): upcasts.Split((("gate-judged", 1), ("rules-scored", 1)), parted),
}


def install(patch: pytest.MonkeyPatch) -> None:
    """Make this process the later program: its newest classes, and the steps from the old ones."""
    for cls in (Asked, Invoked):
        patch.setitem(ev.LATEST, cls.TYPE, cls)
    for old, step in STEPS.items():
        patch.setitem(upcasts.UPCASTERS, old, step)
    upcasts.check()


@dataclass(frozen=True)
class Old:
    """A stored message: what a log gives undecoded."""

    seq: int
    subject: str
    body: bytes
    headers: dict[str, str]


def stored(events: Sequence[Event], said: Sequence[tuple[int, str, int, dict[str, Any]]], first: int = 1) -> list[Old]:
    """A chain of old events: (index of the event that lends its place, type, schema, payload) each."""
    out: list[Old] = []
    before = ZERO_HASH
    for n, (i, kind, schema, data) in enumerate(said, 1):
        place = {key: value for key, value in orjson.loads(events[i].body).items() if key != "data"}
        session = place["session"]
        place |= {
            "type": f"verdictlog.{kind}",
            "dataschema": f"urn:verdictlog:{kind}:{schema}",
            "subject": f"{session}/{n}",
            "n": n,
            "prevhash": before,
        }
        body = orjson.dumps({**place, "data": data})
        before = hashlib.sha256(body).hexdigest()
        out.append(Old(first + n - 1, f"vl.{session}.{n}.{kind}", body, {"vl-hash": before}))
    return out


def aged(events: Sequence[Event], schema_of_tool: int = 1) -> list[Old]:
    """`events` as the first releases wrote them."""
    said: list[tuple[int, str, int, dict[str, Any]]] = []
    for i, event in enumerate(events):
        data = orjson.loads(event.body)["data"]
        if event.type == "question-asked":
            said.append((i, event.type, 1, {k: v for k, v in data.items() if k != "owner"}))
        elif event.type == "tool-invoked":
            old = {k: v for k, v in data.items() if k != "evidence_kind"}
            if schema_of_tool == 1:
                old = {("call_id" if key == "invocation_id" else key): value for key, value in old.items()}
            said.append((i, event.type, schema_of_tool, old))
        elif event.type == "gate-judged":
            said.append((i, "answer-checked", 1, {"gate": data["result"]}))
        elif event.type == "rules-scored":
            said[-1][3]["score"] = data["evaluation"]
        else:
            said.append((i, event.type, event.schema, data))
    return stored(events, said)
