"""Case files about ledger-db's time-out and retries, in both languages, for the rows of repair, routing and texts.

Invocation 101 has three records: TIMEOUT, RETRIES, POOL. `good` answers both parts of the question; `unplaced` leaves
out where its second line stands (severity low_confid, mendable); `miscopied` changes a number in the quotation
(severity reject, mendable). `checked` is a Verifier's reply on c1 and c2.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Literal

Lang = Literal["en", "zh-CN"]
LANGS: tuple[Lang, ...] = ("en", "zh-CN")
TIMEOUT = "ledger-db call: time-out after 3s"
RETRIES = "retry policy of the ledger client: at most 2 retries"
POOL = "HikariPool-1 active=20 max=20 waiting=37"
QUESTION = {
    "en": "What is the time-out of ledger-db? How many retries are allowed?",
    "zh-CN": "ledger-db 的超时是多少?最多重试几次?",
}
TEXTS = {
    "en": {"c1": "The time-out of ledger-db is 3s.", "c2": "At most 2 retries are allowed."},
    "zh-CN": {"c1": "ledger-db 的超时为 3s。", "c2": "最多重试 2 次。"},
}


def call(invocation_id: str = "101", *texts: str, tool: str = "query_logs", **changes: Any) -> dict[str, Any]:
    lines = texts or (TIMEOUT, RETRIES, POOL)
    refs = [{"raw_path": f"lines[{i}]", "text": text} for i, text in enumerate(lines)]
    details = {"evidence_refs": refs, "matched": len(refs), "returned": len(refs), "truncated": False}
    given = {"invocation_id": invocation_id, "tool_name": tool, "arguments": {"q": "ledger"}}
    return {**given, "retrieval_details": details, **changes}


def binding(quote: str, path: str | None, invocation_id: str = "101", tool: str = "query_logs") -> dict[str, Any]:
    bound = {"tool_name": tool, "source_invocation_id": invocation_id, "evidence_excerpt": quote}
    return bound if path is None else {**bound, "raw_path": path}


def claim(claim_id: str, text: str, *bindings: dict[str, Any], kind: str = "observation") -> dict[str, Any]:
    return {
        "claim_id": claim_id,
        "claim_type": kind,
        "claim_text": text,
        "support_level": "direct",
        "evidence_bindings": list(bindings),
    }


def answer(*claims: dict[str, Any], **changes: Any) -> dict[str, Any]:
    given = {
        "answer_version": "executor_evidence_v2",
        "diagnosis_summary": "",
        "claims": list(claims),
        "hypotheses": [],
        "recommended_actions": [],
        "missing_info": [],
        "user_facing_answer": "".join(c["claim_text"] for c in claims),
    }
    return {**given, **changes}


def good(lang: Lang = "en", invocation_id: str = "101") -> dict[str, Any]:
    first, second = TEXTS[lang]["c1"], TEXTS[lang]["c2"]
    return answer(
        claim("c1", first, binding(TIMEOUT, "lines[0]", invocation_id)),
        claim("c2", second, binding(RETRIES, "lines[1]", invocation_id)),
        user_facing_answer=f"{first} {second}",
    )


def unplaced(lang: Lang = "en", invocation_id: str = "101") -> dict[str, Any]:
    said = good(lang, invocation_id)
    del said["claims"][1]["evidence_bindings"][0]["raw_path"]
    return said


def miscopied(lang: Lang = "en", invocation_id: str = "101") -> dict[str, Any]:
    said = good(lang, invocation_id)
    said["claims"][1]["evidence_bindings"][0]["evidence_excerpt"] = RETRIES.replace("2", "9")
    return said


def unmendable(lang: Lang = "en") -> dict[str, Any]:
    """Answers the first part only; no record has a word of the second in `asked_of_rollout`."""
    text = TEXTS[lang]["c1"]
    return answer(claim("c1", text, binding(TIMEOUT, "lines[0]")), user_facing_answer=text)


def fact(text: str, label: str = "direct_evidence", claim_id: str | None = None, **changes: Any) -> dict[str, Any]:
    given = {
        "fact": text,
        "is_critical": True,
        "verification": label,
        "detail": "",
        "evidence_refs": ["trace-101"],
        **changes,
    }
    return given if claim_id is None else {**given, "claim_id": claim_id}


def verdict(said: str, *facts: dict[str, Any], rationale: str = "checked") -> dict[str, Any]:
    return {"verdict": said, "facts_checked": list(facts), "rationale": rationale}


def checked(lang: Lang = "en", c1: str = "direct_evidence", c2: str = "direct_evidence", said: str = "PASS") -> Any:
    return verdict(said, fact(TEXTS[lang]["c1"], c1, "c1"), fact(TEXTS[lang]["c2"], c2, "c2"))


def unfounded(lang: Lang = "en") -> Any:
    """A judgement that finds nothing: score 0.0, so the first round is followed by another."""
    return checked(lang, "no_evidence", "no_evidence", "LOW_CONFID")


def rnd(executor: Any, verifier: Any = None, *, calls: Any = None, repairs: Any = (), **more: Any) -> dict[str, Any]:
    """A round of a case; `verifier` None: absent."""
    given = {"tool_invocations": [call()] if calls is None else calls, "executor_output": executor, **more}
    if repairs:
        given["repairs"] = list(repairs)
    return given if verifier is None else {**given, "verifier_output": verifier}


def case(*rounds: dict[str, Any], lang: Lang = "en", question: str | None = None, **settings: Any) -> dict[str, Any]:
    """A case; settings by their last name: `max_attempts`, `on_exhausted`, `deadline_s`."""
    keys = {"max_attempts": "repair.max_attempts", "on_exhausted": "repair.on_exhausted"}
    return {
        "question": question or QUESTION[lang],
        "lang": lang,
        "rounds": copy.deepcopy(list(rounds)),
        "settings": {keys.get(name, name): value for name, value in settings.items()},
    }


def later(round_of_case: dict[str, Any]) -> dict[str, Any]:
    """The same round as a second one: its call is 201, and everything that names 101 names 201."""
    moved: dict[str, Any] = json.loads(json.dumps(round_of_case).replace("101", "201"))
    return moved
