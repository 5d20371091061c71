"""What each role's model is sent, built anew from its brief every time: nothing is remembered outside the log.

The prompt is a user message, not a system message, because it carries text of others, which must not gain weight
by its place. Every text of others stands in a fence of the run's nonce, each record on a line of its own behind the
invocation's id and its raw_path, so that it can be cited and cannot pose as another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from handlers.agents.protocol import ExecutorBrief, PlanBrief, VerifierBrief
from handlers.fence import fenced, one_line, paragraphs
from prompts import Prompt
from streams.events import AgentReplied, ToolInvoked

Message = dict[str, Any]

RECORD_CHARS = 4_000
INVOCATION_CHARS = 40_000
LOST_ALLOWED = 2
CUT_REPLY_CHARS = 400
LANGUAGES = {"zh-CN": "Chinese", "en": "English"}
NOTHING = "(none)"


def planner(brief: PlanBrief, prompt: Prompt) -> list[Message]:
    """The question, the tools, and in a second round what the first one lacked."""
    text = prompt.fill(
        language=LANGUAGES[brief.lang],
        nonce=brief.nonce,
        question=_block("question", brief.nonce, brief.question),
        retry_context=_data("retry_context", brief.nonce, brief.retry_context),
        tools=_tools(brief),
    )
    return [_user(text)]


def executor(brief: ExecutorBrief, prompt: Prompt, room: int) -> list[Message]:
    """The tool loop while tools are offered; else one message with all evidence, and the answer to mend, if any.

    `room` bounds the evidence in characters; the newest is kept whole, older results are cut first.
    """
    looping = offers_tools(brief)
    before = len(brief.invocations) - len(brief.round_invocations) if looping else len(brief.invocations)
    shown = _evidence(brief.invocations, brief.nonce, room)
    text = prompt.fill(
        evidence="\n".join(shown[:before]) or NOTHING,
        language=LANGUAGES[brief.lang],
        nonce=brief.nonce,
        plan=_data("plan", brief.nonce, [step.model_dump(mode="json") for step in brief.plan.steps]),
        question=_block("question", brief.nonce, brief.question),
        retry_context=_data("retry_context", brief.nonce, brief.retry_context),
        scope="narrow" if brief.plan.narrow else "open",
        # The round's whole budget: a number that changed from call to call would spoil every server's prompt cache.
        tool_budget=brief.tool_budget + len(brief.round_invocations) if looping else 0,
    )
    if looping:
        return [
            _user(text),
            *_history(brief, dict(zip((i.invocation_id for i in brief.invocations), shown, strict=True))),
        ]
    return [_user(text), *_mended(brief.replies, brief.reask, brief.nonce)]


def repair(brief: ExecutorBrief, prompt: Prompt, room: int) -> list[Message]:
    """One targeted request on the answer of the attempt before; no tools (ruling 11)."""
    assert brief.repair is not None
    text = prompt.fill(
        evidence="\n".join(_evidence(brief.invocations, brief.nonce, room)) or NOTHING,
        language=LANGUAGES[brief.lang],
        nonce=brief.nonce,
        previous=_block("previous_answer", brief.nonce, brief.repair.previous_text),
        question=_block("question", brief.nonce, brief.question),
        request=_block("request", brief.nonce, brief.repair.request),
    )
    return [_user(text), *_mended(brief.replies, brief.reask, brief.nonce)]


def verifier(brief: VerifierBrief, prompt: Prompt) -> list[Message]:
    """The blocks of INP-1, each in a fence of its own name, and nothing else (INP-3)."""
    blocks = "\n".join(
        _block(name, brief.nonce, value) if isinstance(value, str) else _data(name, brief.nonce, value)
        for name, value in brief.input.items()
    )
    text = prompt.fill(input=blocks, language=LANGUAGES[brief.lang], nonce=brief.nonce)
    return [_user(text), *_mended(brief.replies, brief.reask, brief.nonce)]


def offers_tools(brief: ExecutorBrief) -> bool:
    """Whether this request lets the model call tools: not for mending, not without budget, not after a third call of
    the round that was malformed or of no tool, as of one that would take the answer."""
    known = {tool.name for tool in brief.tools}
    made = [call for reply in brief.replies for call in reply.tool_calls]
    lost = sum(call.arguments is None or call.name not in known for call in made)
    mending = brief.attempt > 0 or brief.reask is not None
    return bool(brief.tools) and brief.tool_budget > 0 and lost <= LOST_ALLOWED and not mending


def _history(brief: ExecutorBrief, shown: Mapping[str, str]) -> Iterable[Message]:
    messages: list[Message] = []
    left = brief.tool_budget + sum(len(reply.tool_calls) for reply in brief.replies)
    for reply in brief.replies:
        if not reply.tool_calls:
            messages += [{"role": "assistant", "content": reply.text}, _user("That answer could not be used.")]
            continue
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                # A server that reads the history back would stumble over arguments that are no JSON.
                "function": {"name": call.name, "arguments": json.dumps(call.arguments or {}, ensure_ascii=False)},
            }
            for call in reply.tool_calls
        ]
        # What stood beside calls that the plan made instead was an answer from nothing: it must not be built upon.
        said = "" if (reply.details or {}).get("calls_of_plan") else reply.text
        messages.append({"role": "assistant", "content": said, "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": call.call_id, "content": shown.get(call.call_id, "This call was not run.")}
            for call in reply.tool_calls
        ]
        left -= len(calls)
        dropped = (reply.details or {}).get("calls_dropped", 0)
        note = f"\n{dropped} more calls were not run." if dropped else ""
        messages[-1]["content"] += f"{note}\nTool calls left in this round: {left}."
    return messages


def _mended(replies: tuple[AgentReplied, ...], reask: str | None, nonce: str) -> list[Message]:
    if reask is None or not replies:
        return []
    last = replies[-1]
    told = fenced("error", nonce, [one_line(reask, 1000)])
    request = f"This reply cannot be used:\n{told}\nReply once more with one JSON object of the form asked for, and nothing else."
    said = last.text
    if last.finish_reason == "length":
        # A model that sees its own endless list goes on with it.
        said = f"{said[:CUT_REPLY_CHARS]} [...]"
        request += " It was too long: fewer entries, one short sentence in each text, and nothing said twice."
    return [{"role": "assistant", "content": said}, _user(request)]


def _evidence(invocations: tuple[ToolInvoked, ...], nonce: str, room: int) -> list[str]:
    shown: list[str] = []
    for invocation in reversed(invocations):
        text = evidence(invocation, nonce, max(0, min(room, INVOCATION_CHARS)))
        room -= len(text)
        shown.append(text)
    return shown[::-1]


def evidence(invocation: ToolInvoked, nonce: str, room: int = INVOCATION_CHARS) -> str:
    """One call's result in a fence: `[<invocation id> <raw_path>] <text>` for each ref, at most `room` characters."""
    details = invocation.retrieval_details
    refs = (details.evidence_refs or ()) if details else ()
    lines: list[str] = []
    for ref in refs:
        line = f"[{invocation.invocation_id} {one_line(ref.raw_path)}] {one_line(ref.text, RECORD_CHARS)}"
        if len(line) > room:
            break
        room -= len(line) + 1
        lines.append(line)
    hidden = len(refs) - len(lines)
    facts = {
        "invocation": invocation.invocation_id,
        "tool": invocation.tool_name,
        "kind": invocation.evidence_kind,
        "status": invocation.status,
        "matched": details.matched if details else None,
        "returned": details.returned if details else None,
        "truncated": details.truncated if details else None,
        "order": details.order if details else None,
        "first_time": details.first_time if details else None,
        "last_time": details.last_time if details else None,
        "left_out": details.dropped_reason if details else None,
        "records_not_shown_here": hidden or None,
    }
    if not refs and invocation.error:
        lines.append(one_line(invocation.error, RECORD_CHARS))
    return fenced("evidence", nonce, lines, {key: value for key, value in facts.items() if value is not None})


def _tools(brief: PlanBrief) -> str:
    lines = (
        f"{tool.name} ({tool.evidence_kind}): {one_line(tool.description)} "
        f"Parameters: {one_line(json.dumps(tool.parameters, ensure_ascii=False))}"
        for tool in brief.tools
    )
    return fenced("tools", brief.nonce, lines)


def _block(kind: str, nonce: str, text: str) -> str:
    return fenced(kind, nonce, [paragraphs(text)])


def _data(kind: str, nonce: str, value: Any) -> str:
    if value is None:
        return ""
    return fenced(kind, nonce, [paragraphs(json.dumps(value, ensure_ascii=False, indent=1, default=str))])


def _user(text: str) -> Message:
    return {"role": "user", "content": text}
