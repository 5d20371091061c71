"""What an answer without a model is made of: the question, what the tools returned, and a binding to a record of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prompts import Templates, templates
from streams.contract import EvidenceRef
from streams.events import ToolInvoked

Claim = dict[str, Any]
Spot = tuple[str, str]  # invocation id, raw_path


@dataclass(frozen=True, slots=True)
class Material:
    """What an answer is made of. `barred` are records that an evaluation objected to."""

    question: str
    lang: str
    narrow: bool
    invocations: tuple[ToolInvoked, ...]
    barred: frozenset[Spot] = frozenset()
    wanted: str = ""  # a repair request: records it names as `<invocation> <raw_path>` come first

    @property
    def say(self) -> Templates:
        return templates(self.lang)


def said_and_whence(ref: EvidenceRef) -> tuple[str, str, str]:
    """A record's text, and where it is from: lines of payment-service.log are of payment-service."""
    return ref.text, ref.source or "", ref.raw_path


def absent_text(terms: Sequence[str], lang: str) -> str:
    """That no record holds any of `terms`, as an answer without a model says it."""
    between = '", "' if lang == "en" else "”, “"
    return templates(lang)("offline/absent_terms", terms=between.join(terms))


def terms_in(terms: Sequence[str], lang: str) -> tuple[str, ...]:
    """Of search words in both languages those of the answer's, or all where it has none."""
    return tuple(term for term in terms if term.isascii() == (lang == "en")) or tuple(terms)


def binding(call: ToolInvoked, ref: EvidenceRef, excerpt: str) -> dict[str, Any]:
    return {
        "tool_name": call.tool_name,
        "source_invocation_id": call.invocation_id,
        "raw_path": ref.raw_path,
        "evidence_excerpt": excerpt,
    }
