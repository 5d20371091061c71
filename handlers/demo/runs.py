"""Five recorded answers to the bundled incident, each with the verdict it is announced to get.

The replies are literal text of a model; the tool calls run on the real tools, and all that follows is real: gate,
repair, judgement, route. A script is a case file with two more keys (`plan`, `tool_calls`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from streams.contract import Verdict
from streams.events import Route

QUESTION = "Why does payment-service time out?"
ORDER = ("good", "leak", "tampered", "injected", "extra-round")


@dataclass(frozen=True, slots=True)
class Announced:
    """What a run shows (`says`, one or two sentences) and how it must end."""

    verdict: Verdict
    route: tuple[Route, ...]
    says: str


@cache
def _file(name: str) -> str:
    return files("handlers.demo").joinpath("scripts", f"{name}.json").read_text(encoding="utf-8")


def scripts() -> dict[str, dict[str, Any]]:
    """Each run's script by its name, in the order they are played; the caller may change what it gets."""
    return {name: json.loads(_file(name))["script"] for name in ORDER}


def announced() -> dict[str, Announced]:
    """Each run's announcement by its name."""
    said = {name: json.loads(_file(name))["announced"] for name in ORDER}
    return {name: Announced(raw["verdict"], tuple(raw["route"]), raw["says"]) for name, raw in said.items()}
