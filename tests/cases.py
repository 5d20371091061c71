"""Case files for tests, made from the example that the README judges."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[1] / "infra" / "examples" / "case.json"


def example() -> dict[str, Any]:
    """One round, one claim, one binding, `PASS`."""
    case: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return case


def second_round(case: dict[str, Any]) -> dict[str, Any]:
    """The example's round with ids of its own (102), as a second round."""
    text = json.dumps(case["rounds"][0]).replace("trace-101", "trace-102")
    rnd: dict[str, Any] = json.loads(text)
    rnd["tool_invocations"][0]["invocation_id"] = 102
    rnd["executor_output"]["claims"][0]["evidence_bindings"][0]["source_invocation_id"] = 102
    return rnd


def tampered(output: dict[str, Any]) -> dict[str, Any]:
    """An Executor output whose quotation has one number changed."""
    changed = copy.deepcopy(output)
    binding = changed["claims"][0]["evidence_bindings"][0]
    binding["evidence_excerpt"] = binding["evidence_excerpt"].replace("last=20", "last=21")
    return changed


def long_case() -> dict[str, Any]:
    """Two rounds; in the first a repair, a re-ask and a judgement that finds nothing: every kind of event."""
    case = example()
    first = case["rounds"][0]
    case["rounds"].append(second_round(case))
    good = first["executor_output"]
    first["repairs"] = [good]
    first["executor_output"] = ["no JSON at all", tampered(good)]
    fact = first["verifier_output"]["facts_checked"][0]
    judged = {
        **first["verifier_output"],
        "facts_checked": [{**fact, "verification": "no_evidence"}],
        "verdict": "LOW_CONFID",
    }
    first["verifier_output"] = ["```json\n{}\n```", judged]
    return case
