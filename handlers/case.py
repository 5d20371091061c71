"""The case file of `verdictlog judge`, read strictly; a script for demos and tests is the same file with two more keys.

`rounds[].plan` (a Planner's raw reply) and `rounds[].tool_calls` (calls that run on real tools, in place of recorded
`tool_invocations`) are ours; everything else is spec/case-format.md. A read case becomes a `Script`, plain JSON data
that is stored in the log, so that any process can go on with the turn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jiter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from handlers.strict_json import complaint, id_text, kind_name
from streams.contract import LONGEST_S, Contract, EvidenceKind, InvocationStatus, RetrievalDetails, ToolCall
from streams.events import ToolInvoked

KNOWN_HELPERS = frozenset(
    {"current_time", "get_current_time", "now", "clock", "format_time", "format", "calculator", "echo", "sleep"}
)
KNOWLEDGE_TOOLS = frozenset({"lookup_knowledge"})


class BadCase(ValueError):
    """A case that cannot be judged: where in the file, and why."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


Id = Annotated[str, BeforeValidator(id_text)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Ref(_Part):
    raw_path: str
    text: str


class _Details(_Part):
    evidence_refs: list[_Ref] | None = None
    matched: int | None = None
    returned: int | None = None
    truncated: bool | None = None
    query_samples: list[str] | None = None
    retrieval_layers: list[str] | None = None
    relevance_levels: list[str] | None = None
    source_documents: list[str] | None = None


class _Invocation(_Part):
    invocation_id: Id
    tool_name: str
    arguments: dict[str, Any] | None = None
    status: InvocationStatus | None = None
    evidence_kind: EvidenceKind | None = None
    topic: str | None = None
    retrieval_details: _Details | None = None
    output: Any = None
    error: str | None = None


class _Call(_Part):
    call_id: Id
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class _Round(_Part):
    tool_invocations: list[_Invocation] = Field(default_factory=list)
    tool_calls: list[_Call] = Field(default_factory=list)
    plan: Any = None
    executor_output: Any
    executor_finish_reason: str = "stop"
    repairs: list[Any] = Field(default_factory=list)
    verifier_output: Any = None


class Settings(BaseModel):
    """`settings` of a case: the four keys, no other."""

    model_config = ConfigDict(extra="forbid", strict=True)

    max_attempts: int | None = Field(None, alias="repair.max_attempts", ge=0, le=5)
    on_exhausted: Literal["cap", "fallback"] | None = Field(None, alias="repair.on_exhausted")
    agents: Literal["offline", "openai"] | None = None
    deadline_s: float | None = Field(None, gt=0, le=LONGEST_S)


class _Case(_Part):
    question: str = Field(min_length=1)
    lang: Literal["zh-CN", "en"] = "zh-CN"
    rounds: list[_Round] = Field(min_length=1)
    settings: Settings = Field(default_factory=Settings)


def case_schema() -> dict[str, Any]:
    """The JSON Schema of a case file; an executor's reply is raw text, the contract as an object, or a list of these."""
    told = _Case.model_json_schema()
    contract = Contract.model_json_schema()
    defs: dict[str, Any] = told["$defs"]
    defs |= {**contract.pop("$defs", {}), "Contract": contract}
    reply = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Contract"}]}
    replies = {"anyOf": [*reply["anyOf"], {"type": "array", "items": reply}]}
    judgement = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]}
    rounds = defs["_Round"]["properties"]
    rounds["executor_output"] = replies
    rounds["repairs"] = {"type": "array", "items": replies}
    rounds["verifier_output"] = judgement
    return told


@dataclass(frozen=True, slots=True)
class Case:
    """A case that can be judged. `notices`: what of a transcript was changed or left out, for people."""

    question: str
    lang: Literal["zh-CN", "en"]
    settings: Settings
    script: dict[str, Any]
    unknown_keys: tuple[str, ...] = ()
    found_bindings: bool = False
    notices: tuple[str, ...] = ()


def read_json(text: bytes, *, inf_nan: bool = False) -> Any:
    """JSON as strictly as the contract wants it: no duplicate key, NaN or infinity; BadCase says where.

    `inf_nan`: what others wrote may hold them, as Python's own writer does.
    """
    try:
        return jiter.from_json(text.removeprefix(b"\xef\xbb\xbf"), catch_duplicate_keys=True, allow_inf_nan=inf_nan)
    except ValueError as error:
        raise BadCase("file", f"not JSON: {error}") from error


def read_case(raw: Any) -> Case:
    """Validate one case; BadCase names the first place that is wrong.

    A call that a later round records again word for word is the same call; another call under the same id is an error.
    """
    if not isinstance(raw, dict):
        raise BadCase("file", f"expected one JSON object, found {kind_name(raw)}")
    try:
        case = _Case.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadCase(_where(first["loc"]), _why(first)) from error
    seen: dict[str, _Invocation | _Call] = {}
    rounds = []
    for k, rnd in enumerate(case.rounds):
        given: list[tuple[str, _Invocation | _Call]] = [(i.invocation_id, i) for i in rnd.tool_invocations]
        given += [(c.call_id, c) for c in rnd.tool_calls]
        for j, (name, call) in enumerate(given):
            if seen.setdefault(name, call) != call:
                raise BadCase(f"rounds[{k}].tool_invocations[{j}].invocation_id", f"{name!r} is two calls in this case")
        fresh = [i for i in rnd.tool_invocations if seen[i.invocation_id] is i]
        live = [c for c in rnd.tool_calls if seen[c.call_id] is c]
        rounds.append(_script_round(rnd.model_copy(update={"tool_invocations": fresh, "tool_calls": live}), k))
    extra = [
        *(case.model_extra or ()),
        *(f"rounds[{k}].{key}" for k, r in enumerate(case.rounds) for key in r.model_extra or ()),
    ]
    return Case(case.question, case.lang, case.settings, {"rounds": rounds}, tuple(extra))


def _where(loc: tuple[int | str, ...]) -> str:
    out = ""
    for part in loc:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out or "file"


def _why(error: Any) -> str:
    return "unknown setting" if error["type"] == "extra_forbidden" else complaint(error)


def _script_round(rnd: _Round, k: int) -> dict[str, Any]:
    where = f"rounds[{k}]"
    return {
        "plan": None if rnd.plan is None else _replies(rnd.plan, f"{where}.plan")[0],
        "invocations": [_recorded(call).model_dump(mode="json", exclude_none=True) for call in rnd.tool_invocations],
        "calls": [call.model_dump(mode="json") for call in rnd.tool_calls],
        "executor": _replies(rnd.executor_output, f"{where}.executor_output"),
        "finish_reason": rnd.executor_finish_reason,
        "repairs": [_replies(item, f"{where}.repairs[{i}]") for i, item in enumerate(rnd.repairs)],
        "verifier": None if rnd.verifier_output is None else _replies(rnd.verifier_output, f"{where}.verifier_output"),
    }


def _replies(value: Any, where: str) -> list[str]:
    """Replies in order, as raw text: a text as it is, an object as JSON, a list of either."""
    items = value if isinstance(value, list) else [value]
    if not items:
        raise BadCase(where, "an empty list holds no reply")
    for item in items:
        if not isinstance(item, str | dict):
            raise BadCase(where, f"expected text, an object or a list of them, found {kind_name(item)}")
    return [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items]


def kind_of(tool_name: str) -> EvidenceKind:
    """What a tool's results are where nobody says so (case-format.md)."""
    return "helper" if tool_name in KNOWN_HELPERS else "knowledge" if tool_name in KNOWLEDGE_TOOLS else "incident"


def storable(value: Any) -> Any:
    """`value` with integers beyond 64 bits as text, digit for digit: the log's JSON has no others."""
    if isinstance(value, dict):
        return {key: storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value


def _recorded(call: _Invocation) -> ToolInvoked:
    details = call.retrieval_details
    return ToolInvoked(
        invocation_id=call.invocation_id,
        tool_name=call.tool_name,
        arguments=storable(call.arguments or {}),
        status=call.status or ("error" if call.error else "success"),
        evidence_kind=call.evidence_kind or kind_of(call.tool_name),
        topic=call.topic,
        error=call.error,
        retrieval_details=None if details is None else RetrievalDetails.model_validate(details.model_dump()),
    )


def recorded_calls(script: dict[str, Any], number: int) -> dict[str, ToolInvoked]:
    """The recorded results of round `number` by invocation id."""
    rounds = script["rounds"]
    if number > len(rounds):
        return {}
    return {raw["invocation_id"]: ToolInvoked.model_validate(raw) for raw in rounds[number - 1]["invocations"]}


def calls_of(script_round: dict[str, Any]) -> tuple[ToolCall, ...]:
    """What the scripted Executor asks for first: its recorded invocations, then its live calls."""
    recorded = (
        ToolCall(call_id=raw["invocation_id"], name=raw["tool_name"], arguments=raw.get("arguments", {}))
        for raw in script_round["invocations"]
    )
    live = (
        ToolCall(call_id=raw["call_id"], name=raw["name"], arguments=raw["arguments"]) for raw in script_round["calls"]
    )
    return (*recorded, *live)
