"""The tools of one turn as a bench: a call in, what is recorded of it out. Nothing that a model asks can raise."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from handlers.deadline import remaining
from handlers.evidence.arguments import unused
from handlers.evidence.cleaning import clean_arguments, cleaned
from handlers.evidence.protocol import Tool, ToolResult, ToolSpec
from handlers.redaction import Redact, Redactions
from streams.contract import EvidenceKind, EvidenceRef, RetrievalDetails, ToolCall
from streams.events import ToolInvoked
from streams.log import EventLog, SessionKey
from streams.session import SessionState

IN_LOOP_BYTES = 256 << 10  # a larger output is searched for secrets in a thread of its own
SHARE = 3


@runtime_checkable
class Bounded(Protocol):
    """A tool whose call can be ended from outside, because it runs elsewhere."""

    async def invoke_within(self, arguments: Mapping[str, Any], seconds: float | None) -> ToolResult:
        """As Tool.invoke, ended as a failure after so many seconds."""
        ...


class ToolBench:
    """Runs calls on tools and keeps each full output as a blob beside the event; secrets are replaced before either.

    `redactions` None: nothing is replaced. `now`: by which a turn's deadline bounds calls of tools that run elsewhere.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        log: EventLog,
        redactions: Redactions | None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._now = now
        self._tools = tools
        self._log = log
        self._redactions = redactions
        self._cleaning = asyncio.Lock()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    def tool(self, name: str) -> Tool | None:
        return self._tools.get(name)

    async def invoke(self, call: ToolCall, state: SessionState) -> ToolInvoked:
        """Run `call`; a call that cannot run is a failed invocation that says why and what to do."""
        redact = self._redactions.redactor(state) if self._redactions is not None else None
        asked = call.arguments
        if redact is not None:
            text = None if call.arguments_text is None else redact(call.arguments_text)[0]
            arguments = None if asked is None else clean_arguments(asked, redact)
            call = call.model_copy(update={"arguments": arguments, "arguments_text": text})
        tool = self._tools.get(call.name)
        if tool is None:
            return _refused(
                call, f"there is no tool {call.name!r}; there are: {', '.join(sorted(self._tools)) or 'none'}"
            )
        kind = tool.spec.evidence_kind
        if asked is None:
            return _refused(call, f"the arguments are not a JSON object: {(call.arguments_text or '')[:300]!r}", kind)
        twin = _twin(call, state)
        if twin is not None:
            return _refused(call, f"this very call was made before: its result stands under invocation {twin}", kind)
        began = time.perf_counter()
        ran = tool.invoke_within(asked, self._share_s(state)) if isinstance(tool, Bounded) else tool.invoke(asked)
        result = _with_note(await ran, unused(asked, tool.spec.parameters))
        elapsed_ms = round((time.perf_counter() - began) * 1000, 3)
        key = self._log.key_after(state.session, state.head)
        return await self._recorded(call, kind, result, elapsed_ms, redact, key)

    def _share_s(self, state: SessionState) -> float | None:
        """Of what the turn has left, a part: an agent must be able to answer without this tool."""
        turn = state.open_turn
        return None if turn is None or self._now is None else remaining(turn.asked, self._now()) / SHARE

    async def _recorded(
        self,
        call: ToolCall,
        kind: EvidenceKind,
        result: ToolResult,
        elapsed_ms: float,
        redact: Redact | None,
        key: SessionKey | None,
    ) -> ToolInvoked:
        counts: dict[str, int] = {}
        if redact is not None:
            async with self._cleaning:  # numbers are given one call after the other
                if len(result.output or b"") < IN_LOOP_BYTES:
                    result, counts = cleaned(result, redact)
                else:
                    result, counts = await asyncio.to_thread(cleaned, result, redact)
        blob = await self._log.put_blob(result.output, key) if result.output else None
        return ToolInvoked(
            invocation_id=call.call_id,
            tool_name=call.name,
            arguments=call.arguments or {},
            status=result.status,
            evidence_kind=kind,
            topic=result.topic,
            retrieval_details=result.retrieval_details,
            error=result.error,
            output_sha256=hashlib.sha256(result.output).hexdigest() if result.output else None,
            output_size_bytes=len(result.output) if result.output is not None else None,
            output_blob=blob,
            output_format=result.output_format,
            latency_ms=elapsed_ms,
            redactions=counts or None,
        )


def _with_note(result: ToolResult, note: str | None) -> ToolResult:
    details = result.retrieval_details
    if note is None or details is None or result.status == "error":
        return result
    told = "; ".join(filter(None, (note, details.dropped_reason)))
    return replace(result, retrieval_details=details.model_copy(update={"dropped_reason": told}))


def _twin(call: ToolCall, state: SessionState) -> str | None:
    turn = state.open_turn
    made = [i for rnd in (turn.rounds if turn else ()) for i in rnd.invocations if i.status != "error"]
    same = (i.invocation_id for i in made if i.tool_name == call.name and _key(i.arguments) == _key(call.arguments))
    return next(same, None)


def _key(arguments: Mapping[str, object] | None) -> str:
    return json.dumps(arguments, sort_keys=True, default=str)


def _refused(call: ToolCall, why: str, kind: EvidenceKind = "helper") -> ToolInvoked:
    return ToolInvoked(
        invocation_id=call.call_id,
        tool_name=call.name,
        arguments=call.arguments or {},
        status="error",
        evidence_kind=kind,
        error=why,
        retrieval_details=RetrievalDetails(
            evidence_refs=(EvidenceRef(raw_path="error", text=why),), matched=0, returned=0
        ),
    )


class RecordedBench:
    """Results that stand in a script; for the rest, real tools."""

    def __init__(self, recorded: Mapping[str, ToolInvoked], live: ToolBench) -> None:
        self._recorded = recorded
        self._live = live

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._live.specs

    async def invoke(self, call: ToolCall, state: SessionState) -> ToolInvoked:
        return self._recorded.get(call.call_id) or await self._live.invoke(call, state)
