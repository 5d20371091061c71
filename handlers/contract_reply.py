"""From a reply's JSON object to the Executor's contract: which liberties are taken, and which are not (EXE-9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from handlers.strict_json import NotStrict, faults, id_text
from handlers.thinking import TAG, without_thinking
from streams.contract import Action, Binding, Claim, ClaimType, Contract, Frozen, Hypothesis, Notice

CLAIM_TYPES = frozenset(get_args(ClaimType))
IDS = ("claim_id", "source_invocation_id", "source_id")
WITHIN = ("claims", "hypotheses", "recommended_actions", "evidence_bindings")
SENTENCES = (
    "diagnosis_summary",
    "user_facing_answer",
    "claim_text",
    "hypothesis_text",
    "basis",
    "action_text",
    "reason",
)
SENTENCE_LISTS = ("needed_evidence", "missing_info")
KNOWN = frozenset(name for part in (Contract, Claim, Hypothesis, Action, Binding) for name in part.model_fields)


def read_contract(given: dict[str, Any]) -> tuple[Contract, tuple[Notice, ...]]:
    """The contract that `given` states, and what was read with a warning.

    Ids become text. A null list or a null optional text reads as absent, since schemas for models make every key
    required and optional ones nullable. An unknown key is kept with a warning, an unknown or absent
    `claim_type` reads as `other`, `support_level` `contradicted` as `none` (ruling 10). All else that is not of
    the schema raises NotStrict: ruling 8 lists what is malformed. A blank `claim_id` or `claim_text` is absent.
    """
    notices: list[Notice] = []
    plain = _normalised(given)
    _name_types(plain, notices)
    try:
        contract = Contract.model_validate_json(orjson.dumps(plain), strict=True)
    except ValidationError as error:
        raise NotStrict(faults(error)) from error
    except orjson.JSONEncodeError as error:
        raise NotStrict(f"an unknown key's number cannot be kept: {error}") from error
    blank = [i for i, c in enumerate(contract.claims) if not c.claim_id.strip() or not c.claim_text.strip()]
    if blank:
        raise NotStrict("; ".join(f"claims[{i}]: claim_id and claim_text may not be blank" for i in blank[:5]))
    notices.extend(_unknown_keys(contract))
    return contract, tuple(notices)


def stated(part: Frozen) -> dict[str, Any]:
    """What `part` states in keys of the schema; unknown keys, where a model may have left its reasoning, are not
    shown to the Verifier (INP-3)."""
    named = ((name, getattr(part, name)) for name in type(part).model_fields if name in part.model_fields_set)
    return {name: _plain(value) for name, value in named if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Frozen):
        return stated(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _normalised(given: dict[str, Any]) -> dict[str, Any]:
    """`given` with ids as text, without nulls and think blocks, at every place where the contract has objects."""
    plain: dict[str, Any] = {}
    for key, value in given.items():
        if value is None and key in KNOWN:
            continue
        if key in IDS:
            plain[key] = id_text(value)
        elif key == "source_invocation_ids" and isinstance(value, list):
            plain[key] = [id_text(item) for item in value]
        elif key in WITHIN and isinstance(value, list):
            plain[key] = [_normalised(item) if isinstance(item, dict) else item for item in value]
        elif key in SENTENCES and isinstance(value, str) and TAG.search(value):
            plain[key] = without_thinking(value)
        elif key in SENTENCE_LISTS and isinstance(value, list):
            plain[key] = [without_thinking(item) if isinstance(item, str) else item for item in value]
        else:
            plain[key] = value
    return plain


def _name_types(plain: dict[str, Any], notices: list[Notice]) -> None:
    claims = plain.get("claims")
    for claim in claims if isinstance(claims, list) else ():
        if not isinstance(claim, dict):
            continue
        claim_id = claim.get("claim_id") if isinstance(claim.get("claim_id"), str) else None
        kind = claim.get("claim_type", "")
        if isinstance(kind, str) and kind not in CLAIM_TYPES:
            claim["claim_type"] = "other"
            what = f"claim_type {kind[:40]!r} is unknown" if kind else "no claim_type"
            notices.append(Notice(rule="contract.claim_type", claim_id=claim_id, message=f"{what}: read as other"))
        if claim.get("support_level") == "contradicted":
            claim["support_level"] = "none"
            message = "support_level contradicted is not the Executor's to say: read as none"
            notices.append(Notice(rule="contract.support_level", claim_id=claim_id, message=message))


def _unknown_keys(contract: Contract) -> Iterator[Notice]:
    yield from _extras(contract, "", None)
    for i, claim in enumerate(contract.claims):
        yield from _extras(claim, f"claims[{i}].", claim.claim_id)
        for j, binding in enumerate(claim.evidence_bindings):
            yield from _extras(binding, f"claims[{i}].evidence_bindings[{j}].", claim.claim_id)
    for i, hypothesis in enumerate(contract.hypotheses):
        yield from _extras(hypothesis, f"hypotheses[{i}].", None)
    for i, action in enumerate(contract.recommended_actions):
        yield from _extras(action, f"recommended_actions[{i}].", f"action-{i}")
        for j, binding in enumerate(action.evidence_bindings):
            yield from _extras(binding, f"recommended_actions[{i}].evidence_bindings[{j}].", f"action-{i}")


def _extras(value: Frozen, path: str, claim_id: str | None) -> Iterator[Notice]:
    for key in value.model_extra or {}:
        message = f"unknown key {path}{key[:80]}: kept, and used for nothing"
        yield Notice(rule="contract.unknown_key", claim_id=claim_id, message=message)
