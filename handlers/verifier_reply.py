"""The schema of the Verifier's reply: strict, and no other key (OUT-1 to OUT-4, ruling 8)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from handlers.strict_json import NotStrict, faults, id_text, read_object
from streams.contract import Verdict

ModelLabel = Literal["direct_evidence", "indirect_support", "no_evidence", "contradicted", "direct_observation"]
Id = Annotated[str, BeforeValidator(id_text)]
Said = Annotated[str, StringConstraints(pattern=r"\S")]


class Strict(BaseModel):
    """A part of the reply. A null optional key is an absent one: schemas for models make every key required."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class ModelRef(Strict):
    """What a fact points at; the runtime looks up the invocations itself."""

    trace_ref: str
    # Not strict: a validator before it has made the JSON array a Python list, which a strict tuple refuses.
    source_invocation_ids: Annotated[tuple[Id, ...], Field(strict=False)] | None = None


def _as_object(value: Any) -> Any:
    return {"trace_ref": value} if isinstance(value, str) else value


class ModelFact(Strict):
    """One fact as the model gave it."""

    fact: Said
    is_critical: bool
    verification: ModelLabel
    detail: str
    evidence_refs: tuple[Annotated[ModelRef, BeforeValidator(_as_object)], ...]
    claim_id: Id | None = None
    derivability: Literal["direct_observation", "derived", "not_derivable"] | None = None
    fabricated: bool | None = None


class ModelJudgement(Strict):
    """The whole reply. Its score and count are recorded and never used (OUT-1, OUT-5)."""

    verdict: Verdict
    facts_checked: tuple[ModelFact, ...]
    rationale: str
    groundedness_score: float | None = Field(None, ge=0, le=1)
    critical_fact_count: int | None = Field(None, ge=0, lt=2**63)


def read_judgement(text: str) -> ModelJudgement:
    """The judgement that `text` is, and nothing else than that; NotStrict says what is wrong and where."""
    read_object(text)
    try:
        return ModelJudgement.model_validate_json(text.encode())
    except ValidationError as error:
        raise NotStrict(faults(error)) from error
