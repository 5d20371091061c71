"""A smolagents run: the steps of its memory, alone or under `steps` beside the `output`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from handlers.transcripts.blocks import called
from handlers.transcripts.endings import ends_a_run, handed_over
from handlers.transcripts.items import Called, Item, Returned, Said
from handlers.transcripts.outputs import text_of

# A code step repeats its last value, at the end the answer itself: what an agent says is no evidence for it.
_LAST_VALUE = "Last output from code snippet:"


def is_run(raw: Any) -> bool:
    """Whether a JSON value is a run: steps that are numbered and have observations."""
    return any("step_number" in step and ("observations" in step or "tool_calls" in step) for step in _steps(raw))


def items(raw: Any) -> Iterator[Item]:
    """The items of a run: its task, each step's calls with what was observed, and the answer."""
    told = raw.get("output") if isinstance(raw, dict) else None
    answer: Any = None
    where = "steps"
    for k, step in enumerate(_steps(raw)):
        where = f"steps[{k}]"
        if isinstance(step.get("task"), str):
            yield Said("user", step["task"], where)
        elif "step_number" in step:
            final = yield from _step(step, where)
            answer = final if final is not None else answer
        elif "output" in step:
            answer = step["output"] if step["output"] is not None else answer
    answer = told if told is not None else answer
    if answer is not None:
        yield Said("assistant", answer if isinstance(answer, str) else text_of(answer), where)


def _step(step: dict[str, Any], where: str) -> Generator[Item, None, Any]:
    given = step.get("tool_calls") if isinstance(step.get("tool_calls"), list) else []
    made = [called(call, f"{where}.tool_calls[{j}]") for j, call in enumerate(given or []) if isinstance(call, dict)]
    finals = [call for call in made if ends_a_run(call.name)]
    used = [call for call in made if call not in finals]
    seen = step.get("observations")
    text = seen.partition(_LAST_VALUE)[0] if isinstance(seen, str) and _ends(step, finals) else seen
    yield from used
    error = step.get("error")
    failed = error is not None and not text
    shown = error.get("message") if failed and isinstance(error, dict) else text
    # Calls of one step are observed as one text.
    if used and isinstance(shown, str) and shown.strip():
        yield Returned(used[0].call_id, used[0].name, shown, where, True if failed else None)
    if not _ends(step, finals):
        return None
    value = step.get("action_output")
    return (
        value if value is not None else handed_over(finals[-1].arguments, finals[-1].arguments_text) if finals else None
    )


def _ends(step: dict[str, Any], finals: list[Called]) -> bool:
    return step.get("is_final_answer") is True or bool(finals)


def _steps(raw: Any) -> list[dict[str, Any]]:
    given = raw.get("steps") if isinstance(raw, dict) else raw
    return [step for step in given if isinstance(step, dict)] if isinstance(given, list) else []
