"""What a model replied: its parse status, and what may be used of it. Never an exception (ruling 8, OUT-2).

Only lossless steps unwrap an Executor's answer. Nothing is mended: a mended excerpt would fail in the gate, and a
mended list of claims may have lost the unsupported one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from handlers.contract_reply import read_contract
from handlers.strict_json import NotStrict, read, read_object
from handlers.thinking import TAG, after_leading_block, without_thinking
from handlers.verifier_reply import ModelFact, read_judgement
from streams.contract import Contract, Notice, ParseStatus, Verdict

GOES_ON = frozenset({"stop", "tool_calls"})
REFUSALS = frozenset({"content_filter", "refusal"})
FENCE = re.compile(r"```[\w+-]{0,20}\s")
OPENS_JSON = re.compile(r'(?:```\w*\s*)?(?:\{|\[\s*[\[{"\]])')
CONTRACT_KEY = re.compile(
    r"""["'](?:answer_version|diagnosis_summary|claims|claim_id|claim_type|claim_text|support_level|evidence_bindings"""
    r"""|evidence_excerpt|source_invocation_id|raw_path|hypotheses|hypothesis_text|needed_evidence"""
    r"""|recommended_actions|action_text|missing_info|user_facing_answer)["']\s{0,9}:"""
)
JSON_OBJECT = re.compile(r'\{\s{0,20}"[^"\n]{1,80}"\s{0,9}:')
LETTER = re.compile(r"[^\W\d_]")
HAN = re.compile("[\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|‘[^’]*’|《[^》]*》|^>.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An Executor's answer. `contract` and `structured` only where the status is valid or repaired_wrapper.

    `structured` is the contract as read, so `Contract.model_validate(structured)` gives `contract` again.
    `final_answer` is what the answer says to a reader, never with a think block, closed or open: the user's
    text if the contract has one in prose, else the contract's own sentences; of an answer that did not parse, its text.
    `is_prose`: not usable, yet natural language, so that it may be shown behind the disclaimer (TPL-5).
    `found`: it was prose, its claims were cut out by rule and its bindings found (ruling 25).
    """

    status: ParseStatus
    error: str | None = None
    contract: Contract | None = None
    structured: dict[str, Any] | None = None
    final_answer: str = ""
    is_prose: bool = False
    found: bool = False
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """A Verifier's reply, as the model gave it. Malformed: nothing of it is used, `error` is for the re-ask."""

    status: Literal["valid", "malformed"]
    error: str | None = None
    verdict: Verdict | None = None
    facts: tuple[ModelFact, ...] = ()
    rationale: str = ""
    score: float | None = None
    critical_fact_count: int | None = None


def parse_answer(text: str, finish_reason: str = "stop") -> ParsedAnswer:
    """Read an Executor's answer. The finish reason comes first: what was cut or refused is never structure."""
    visible = _storable(without_thinking(text.removeprefix("\ufeff")))
    if finish_reason == "length":
        return _unusable("truncated", "the answer was cut at the length limit", visible)
    if finish_reason in REFUSALS:
        return _unusable("refused", f"the model did not answer: {finish_reason}", visible)
    if finish_reason not in GOES_ON:
        return _unusable("malformed", f"unknown finish reason {finish_reason[:40]!r}", visible)
    inner, was_wrapped = unwrapped(text)
    if not inner:
        return _unusable("empty", "the answer is empty", visible)
    try:
        given, from_string = _object_of(inner)
        contract, notices = read_contract(given)
    except NotStrict as fault:
        return _unusable("malformed", fault.why, visible)
    return ParsedAnswer(
        status="repaired_wrapper" if was_wrapped or from_string else "valid",
        contract=contract,
        structured=contract.model_dump(mode="json", exclude_unset=True),
        final_answer=_own_words(contract),
        notices=notices,
    )


def parse_verdict(text: str, finish_reason: str = "stop") -> ParsedVerdict:
    """Read a Verifier's reply: no unwrapping at all, no other key, no other label (OUT-2)."""
    if finish_reason not in GOES_ON:
        return ParsedVerdict("malformed", f"finish reason {finish_reason[:40]!r}")
    try:
        said = read_judgement(text)
    except NotStrict as fault:
        return ParsedVerdict("malformed", fault.why)
    return ParsedVerdict(
        status="valid",
        verdict=said.verdict,
        facts=said.facts_checked,
        rationale=said.rationale,
        score=said.groundedness_score,
        critical_fact_count=said.critical_fact_count,
    )


def usable_user_answer(contract: Contract, lang: str) -> str | None:
    """The contract's `user_facing_answer` if it may go out as it is, else None: render the contract (ruling 9).

    Quoted evidence, which an English answer may give in Chinese, is a text in quotes, code or a block quote that
    stands in an excerpt of the contract, or such an excerpt itself.
    """
    said = contract.user_facing_answer or ""
    if TAG.search(said):
        said = without_thinking(said)
    if not is_prose(said):
        return None
    if lang == "zh-CN":
        return said if HAN.search(said) else None
    return None if HAN.search(_without_quotes(said, contract)) else said


def is_prose(text: str) -> bool:
    """Whether `text` is natural language: words, no JSON, no cut JSON, no part of a contract."""
    text = text.strip()
    if not LETTER.search(text) or OPENS_JSON.match(text) or CONTRACT_KEY.search(text) or _mostly_json(text):
        return False
    try:
        read(text)
    except NotStrict:
        return True
    return False


def _mostly_json(text: str) -> bool:
    """A wrapped object that is more than half of the text; one log line quoted in a longer answer is not."""
    opening = JSON_OBJECT.search(text)
    if opening is None:
        return False
    end = text.rfind("}") + 1
    return ((end if end > opening.start() else len(text)) - opening.start()) * 2 > len(text)


def _storable(text: str) -> str:
    """`text` as the log can hold it: a lone surrogate or U+0000 reads as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def _unusable(status: ParseStatus, error: str, visible: str) -> ParsedAnswer:
    return ParsedAnswer(
        status=status,
        error=error,
        final_answer=visible,
        is_prose=status in {"malformed", "truncated"} and is_prose(visible),
    )


def unwrapped(text: str) -> tuple[str, bool]:
    """`text` without a BOM, one closed leading think block and one fence around all; whether any was there."""
    inner = after_leading_block(text.removeprefix("\ufeff").strip())
    if inner.startswith("```") and inner.endswith("```") and len(inner) >= 6:
        opening = FENCE.match(inner)
        inner = inner[opening.end() if opening else 3 : -3].strip()
    return inner, inner != text.strip()


def _object_of(inner: str) -> tuple[dict[str, Any], bool]:
    value = read(inner)
    if isinstance(value, str):
        return read_object(value), True
    return read_object(inner) if not isinstance(value, dict) else value, False


def _own_words(contract: Contract) -> str:
    said = (contract.user_facing_answer or "").strip()
    if is_prose(said):
        return said
    sentences = (contract.diagnosis_summary, *(claim.claim_text for claim in contract.claims))
    return "\n".join(sentence for sentence in sentences if sentence.strip())


def _without_quotes(said: str, contract: Contract) -> str:
    lists = [item.evidence_bindings for item in contract.claims]
    lists += [item.evidence_bindings for item in contract.recommended_actions]
    excerpts = [b.evidence_excerpt for bindings in lists for b in bindings if b.evidence_excerpt]
    for excerpt in sorted(excerpts, key=len, reverse=True):
        said = said.replace(excerpt, " ")
    quotable = " ".join(" ".join(excerpts).split())

    def drop(quote: re.Match[str]) -> str:
        inner = " ".join(quote[0].strip('`"“”「」『』‘’《》>').split())
        return " " if inner and inner in quotable else quote[0]

    return QUOTED.sub(drop, said)
