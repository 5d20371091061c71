"""Prompts and templates as files, each known by its SHA-256.

A prompt is one Markdown file beside this module. Templates are `templates/<lang>/<file>.md`: a file is a list of
sections `## key`, and a section is known as `<file>/<key>`. Placeholders are `$name` (`string.Template`); what is
filled in is never read for placeholders again. `PLACEHOLDERS` is the whole list of what a caller has to give.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

LANGUAGES = ("zh-CN", "en")
PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    # question, tools, retry_context: each fenced by the caller; language: its English name; nonce: of the run
    "chat-planner-prompt": frozenset({"language", "nonce", "question", "retry_context", "tools"}),
    # scope: `open` or `narrow` (EXE-7); evidence: results that are no tool message of this talk; tool_budget: of the round
    "chat-executor-prompt": frozenset(
        {"evidence", "language", "nonce", "plan", "question", "retry_context", "scope", "tool_budget"}
    ),
    # input: the blocks of INP-1, each fenced under its own name
    "chat-verifier-prompt": frozenset({"input", "language", "nonce"}),
    # previous: the whole answer of the attempt before; request: what the Evaluator asks for; both fenced
    "chat-repair-prompt": frozenset({"evidence", "language", "nonce", "previous", "question", "request"}),
}
_SECTION = re.compile(r"^## (?P<key>\S+)\s*$", re.MULTILINE)


class UnknownPrompt(LookupError):
    """No prompt or template of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no prompt or template {name!r}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text with placeholders, and the SHA-256 (hex) of the file's bytes."""

    text: str
    sha256: str

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset(Template(self.text).get_identifiers())

    def fill(self, **values: object) -> str:
        """The text with every placeholder replaced; KeyError names one that is missing."""
        return Template(self.text).substitute(values)


@cache
def load(name: str) -> Prompt:
    """The prompt `name` (`chat-executor-prompt`); UnknownPrompt if there is none."""
    if name not in PLACEHOLDERS:
        raise UnknownPrompt(name)
    raw = files(__name__).joinpath(f"{name}.md").read_bytes()
    return Prompt(raw.decode(), hashlib.sha256(raw).hexdigest())


@dataclass(frozen=True, slots=True)
class Templates:
    """Every sentence of one language, by `<file>/<key>`."""

    lang: str
    sections: Mapping[str, str]

    def __contains__(self, key: str) -> bool:
        return key in self.sections

    def __call__(self, key: str, **values: object) -> str:
        """The section filled; UnknownPrompt if there is none, KeyError for a value that is missing."""
        if key not in self.sections:
            raise UnknownPrompt(key)
        return Template(self.sections[key]).substitute(values)

    def placeholders(self, key: str) -> frozenset[str]:
        return frozenset(Template(self.sections[key]).get_identifiers())


@cache
def templates(lang: str) -> Templates:
    """The templates of a language; any other than `en` is read as the default, `zh-CN` (TPL-3)."""
    known = lang if lang in LANGUAGES else LANGUAGES[0]
    folder = files(__name__).joinpath("templates", known)
    sections: dict[str, str] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".md"):
            stem = file.name.removesuffix(".md")
            pieces = _SECTION.split(file.read_text(encoding="utf-8"))
            for key, text in zip(pieces[1::2], pieces[2::2], strict=True):
                sections[f"{stem}/{key}"] = text.strip()
    return Templates(known, sections)
