"""What a foreign agent may request on `vl-in.<session>.<type>`: one strict model per type, and its JSON Schema.

An unknown key, a wrong type or a missing field is refused with the place and the reason: a bad request never becomes
an event. `id` makes a request safe to repeat: the same one gives the same event.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from handlers.strict_json import complaint, kind_name
from streams.contract import LONGEST_S, EvidenceKind, EvidenceRef, InvocationStatus

MAX_WAIT_S = 3600.0


class Refused(Exception):
    """A request that did not become an event: the field or thing it failed on, and why, in one line."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = " ".join(why.split())


class Request(BaseModel):
    """Base of all requests."""

    model_config = ConfigDict(extra="forbid", strict=True)
    TYPE: ClassVar[str]

    id: str | None = Field(
        None, min_length=1, max_length=128, description="the client's own key: the same request twice is one event"
    )


class AskRequest(Request):
    """A question that a foreign agent will answer; opens a turn, or joins the open one that has it."""

    TYPE = "question-asked"
    question: str = Field(min_length=1, description="has a letter or a digit")
    lang: Literal["zh-CN", "en"] | None = Field(None, description="none: zh-CN if the question has Han characters")
    deadline_s: float | None = Field(
        None, gt=0, le=LONGEST_S, description="seconds until the turn is ended; none: the server's"
    )
    max_attempts: int | None = Field(None, ge=0, le=5, description="evaluations in a round; none: the server's")
    on_exhausted: Literal["cap", "fallback"] | None = None
    repair_wait_s: float | None = Field(
        None, ge=0, le=MAX_WAIT_S, description="seconds in which a mended answer or a second round may come"
    )

    @field_validator("question")
    @classmethod
    def _asks(cls, question: str) -> str:
        if not any(map(str.isalnum, question)):
            raise ValueError("has no words" if question.strip() else "is blank")
        return question


class RefGiven(BaseModel):
    """One quotable record of the tool's output."""

    model_config = ConfigDict(extra="forbid", strict=True)

    raw_path: str = Field(min_length=1)
    text: str
    source: str | None = None


class DetailsGiven(BaseModel):
    """What the tool returned, as quotable records."""

    model_config = ConfigDict(extra="forbid", strict=True)

    evidence_refs: list[RefGiven]
    matched: int | None = Field(None, ge=0)
    returned: int | None = Field(None, ge=0)
    truncated: bool | None = None

    def refs(self) -> tuple[EvidenceRef, ...]:
        return tuple(EvidenceRef(raw_path=r.raw_path, text=r.text, source=r.source) for r in self.evidence_refs)


class ToolRequest(Request):
    """One ended tool call. Give its `output` (text, JSON, content parts: quotable as `lines[0]`, ...), or the records
    in `retrieval_details`, or an `error`."""

    TYPE = "tool-invoked"
    invocation_id: str = Field(min_length=1, max_length=256, description="unique in the session")
    tool_name: str = Field(min_length=1, max_length=256)
    arguments: dict[str, Any] = Field(default_factory=dict)
    status: InvocationStatus | None = Field(None, description="none: told by the output")
    evidence_kind: EvidenceKind | None = Field(None, description="none: by the tool's name, else incident")
    topic: str | None = None
    output: Any = None
    error: str | None = None
    retrieval_details: DetailsGiven | None = None
    latency_ms: float = Field(0.0, ge=0)


class AnswerRequest(Request):
    """The agent's answer: the contract as an object, or the model's raw text (a contract, or prose)."""

    TYPE = "answer-drafted"
    answer: str | dict[str, Any]
    finish_reason: str = "stop"


class CancelRequest(Request):
    """Ends the open turn without a judgement."""

    TYPE = "turn-cancelled"
    who: str = Field(min_length=1)
    why: str = ""


class ChannelRequest(Request):
    """A third party's own evaluation, kept as a channel of its own beside ours."""

    TYPE = "channel-written"
    channel: str = Field(min_length=1, max_length=128, pattern=r"^[a-z][a-z0-9_.-]*$")
    value: Any
    who: str = Field(
        "", max_length=128, description="who says so, in the third party's own words; kept beside the value"
    )


class AwaitRequest(Request):
    """Not an event: replies when the session's last turn is answered, or wants something of the agent."""

    TYPE = "await"
    timeout_s: float = Field(60.0, ge=0, le=MAX_WAIT_S)
    answer_only: bool = Field(False, description="wait for the answer, whatever the turn wants of the agent")


REQUESTS: dict[str, type[Request]] = {
    cls.TYPE: cls for cls in (AskRequest, ToolRequest, AnswerRequest, CancelRequest, ChannelRequest, AwaitRequest)
}


def read_request(kind: str, raw: Any) -> Request:
    """Validate the JSON value of a request of type `kind`; Refused names the first place that is wrong."""
    cls = REQUESTS.get(kind)
    if cls is None:
        raise Refused("subject", f"{kind[:60]!r} cannot be requested; there are: {', '.join(sorted(REQUESTS))}")
    if not isinstance(raw, dict):
        raise Refused("body", f"expected one JSON object, found {kind_name(raw)}")
    try:
        return cls.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        unknown = first["type"] == "extra_forbidden"
        raise Refused(where, f"unknown key of {kind}" if unknown else complaint(first)) from error


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a request; KeyError for a type that cannot be requested."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **REQUESTS[kind].model_json_schema()}
