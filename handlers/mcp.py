"""Verdictlog as an MCP server, so that another agent can have its answer judged before it speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any, Literal, Protocol, cast

import orjson
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from handlers.case import BadCase, Case, read_case, read_json
from handlers.question import MAX_CHARS, too_long
from streams.log import LogUnavailable

INSTRUCTIONS = (
    "Verdictlog binds every statement of a diagnosis to the line of tool output that it rests on, and checks the bindings. "
    "Before you give an answer about an incident, call judge_answer with the question, your tool calls with their outputs, "
    "and your answer; give it only if the verdict is PASS, else mend what `failures` names. Its verdict is never yours to change."
)
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
_RECORDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


class Desk(Protocol):
    """What the tools stand on: a log, and roles at work on it. Errors are ValueError or LookupError, in words."""

    async def ask(self, question: str, lang: Literal["zh-CN", "en"] | None, session: str | None) -> dict[str, Any]: ...

    async def judge(self, case: Case) -> dict[str, Any]: ...

    async def show(self, session: str, at: int | None) -> dict[str, Any]: ...


def server_of(desk: Desk) -> MCPServer:
    """The server with its three tools; what goes wrong in a call is that call's error."""
    server = MCPServer("verdictlog", version=version("verdictlog"), instructions=INSTRUCTIONS, log_level="WARNING")
    for tool, hints, text in (
        (_ask(desk), _RECORDS, ASK),
        (_judge(desk), _RECORDS, JUDGE),
        (_show(desk), _READS, SHOW),
    ):
        server.add_tool(tool, name=tool.__name__, description=text, annotations=hints)
    return server


ASK = (
    "Ask why a system misbehaves. Verdictlog plans, searches the evidence it was started with (logs, metrics, runbooks), "
    "answers, and judges its own answer. Gives the report: `effective_verdict` (PASS, LOW_CONFID, REJECT), "
    "`response.text`, `response.citations`, `session`. May take minutes. `session` goes on in an earlier one."
)
JUDGE = (
    "Judge an answer that you or another agent made. `case` is one object of Verdictlog's case format: {question, lang, rounds: "
    "[{tool_invocations: [{invocation_id, tool_name, arguments, status, retrieval_details: {evidence_refs: [{raw_path, text}]}}], "
    "executor_output: {answer_version: executor_evidence_v2, diagnosis_summary, claims: [{claim_id, claim_type, claim_text, "
    "support_level, evidence_bindings: [{source_invocation_id, raw_path, evidence_excerpt}]}], user_facing_answer, ...}}]}. "
    "Gives the report: `effective_verdict` (PASS, LOW_CONFID, REJECT), `gatekeeper_result.failures`, `session`, as "
    "`verdictlog judge --json` prints it."
)
SHOW = (
    "Show what is recorded of a session, all of it or as of event number `at`: questions, tool calls, verdicts, events."
)

Call = Callable[..., Awaitable[dict[str, Any]]]


async def _told(answer: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    try:
        return await asyncio.to_thread(_sendable, await answer)
    except (ValueError, LookupError, LogUnavailable) as error:
        raise ToolError(_text(str(error) or type(error).__name__)) from None


def _sendable(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer as UTF-8 can hold it: what others wrote may hold halves of characters, which end the whole connection."""
    try:
        orjson.dumps(answer)
    except TypeError:
        return cast("dict[str, Any]", _clean(answer))
    return answer


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _ask(desk: Desk) -> Call:
    async def ask(
        question: str, lang: Literal["zh-CN", "en"] | None = None, session: str | None = None
    ) -> dict[str, Any]:
        if not any(map(str.isalnum, question)):
            raise ToolError("question: has no words" if question.strip() else "question: is empty")
        if len(question) > MAX_CHARS:
            raise ToolError(too_long(question))
        return await _told(desk.ask(question, lang, session))

    return ask


def _judge(desk: Desk) -> Call:
    async def judge_answer(case: dict[str, Any] | str | None = None) -> dict[str, Any]:
        if case is None:
            raise ToolError("case: is missing; give the whole object as one argument of that name")
        try:
            read = await asyncio.to_thread(_read, case)
        except BadCase as error:
            raise ToolError(_text(f"{error.where}: {error.why}")) from None
        return await _told(desk.judge(read))

    return judge_answer


def _read(case: dict[str, Any] | str) -> Case:
    return read_case(read_json(case.encode("utf-8", "replace")) if isinstance(case, str) else case)


def _show(desk: Desk) -> Call:
    async def show_session(session: str, at: int | None = None) -> dict[str, Any]:
        return await _told(desk.show(session, at))

    return show_session
