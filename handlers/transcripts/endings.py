"""Tools that do nothing but take what the agent says: its answer, or its own notes. What they return is no evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_ENDS = re.compile(
    r"(?:submit|give|return)?_?(?:the_)?final_?(?:answer|result|output|response|report)|(?:submit|give|return)_?(?:answer|result|report|diagnosis)"
    r"|submit|finish|attempt_?completion|complete_?task|task_?complete"
)
_NOTES = re.compile(
    r"think(?:ing)?|sequential_?thinking|reflect|todo_?(?:write|read)|write_?todos|update_?plan|exit_?plan_?mode"
)
_ANSWER_KEYS = ("answer", "final_answer", "response", "result", "output", "text", "message", "content", "summary")


def ends_a_run(name: str) -> bool:
    """Whether a tool of this name takes the agent's answer."""
    return _ENDS.fullmatch(_bare(name)) is not None


def takes_notes(name: str) -> bool:
    """Whether a tool of this name takes what the agent thinks or plans."""
    return _NOTES.fullmatch(_bare(name)) is not None


def _bare(name: str) -> str:
    # `mcp__notes__think`, `functions.final_answer`, `FinalAnswer`
    last = re.split(r"__|[./:]", name)[-1]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", last).lower().replace("-", "_")


def handed_over(arguments: Mapping[str, Any] | None, text: str = "") -> str:
    """The answer that a call hands over: its one text, or its arguments as JSON where they are more than that. `text`
    are arguments that did not parse."""
    if not arguments:
        return text
    texts = [value for value in arguments.values() if isinstance(value, str)]
    if len(arguments) == 1 and texts:
        return texts[0]
    named = None if "claims" in arguments else next((arguments[key] for key in _ANSWER_KEYS if key in arguments), None)
    return named if isinstance(named, str) else json.dumps(dict(arguments), ensure_ascii=False)
