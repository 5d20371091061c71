"""Think blocks of reasoning models: found in a reply, taken out of all that anyone reads or judges (ruling 8)."""

from __future__ import annotations

import re

TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def without_thinking(text: str) -> str:
    """`text` without think blocks, closed or not, and without white space around it.

    What stands before a closing tag that nothing opened is thinking too: servers leave out the opening tag
    where their template put it into the prompt.
    """
    kept: list[str] = []
    start, thinking = 0, False
    for tag in TAG.finditer(text):
        if tag[1]:
            if not thinking:
                kept.clear()
            start, thinking = tag.end(), False
        elif not thinking:
            kept.append(text[start : tag.start()])
            thinking = True
    if not thinking:
        kept.append(text[start:])
    return "".join(kept).strip()


def after_leading_block(text: str) -> str:
    """`text` behind its leading think block, if it begins with one that is closed; else `text` itself."""
    first = TAG.match(text)
    if first is None or first[1]:
        return text
    closing = next((tag for tag in TAG.finditer(text) if tag[1]), None)
    return text if closing is None else text[closing.end() :].strip()
