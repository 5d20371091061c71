"""One part of a message, or one item of a list: a text, a tool call, what a tool returned, or something else.

Every vendor has names of its own for the same four things. They are told by what their names end with (`..._call`,
`..._tool_use`; `..._output`, `..._tool_result`), so that a kind that is new is read as what it says it is; what looks
like none of them and is not known to be silent is `Unread`, never dropped without a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from handlers.case import BadCase
from handlers.transcripts.items import Called, Item, Returned, Unread, arguments_of
from handlers.transcripts.outputs import text_of

# They say nothing that could be judged or quoted.
SILENT = frozenset(
    [
        "reasoning",
        "thinking",
        "redacted_thinking",
        "reasoning_content",
        "image",
        "image_url",
        "input_image",
        "document",
        "file",
        "input_file",
        "audio",
        "input_audio",
        "video",
        "media",
        "blob",
        "uri",
        "inline_data",
        "file_data",
        "step_start",
        "source_url",
        "source_document",
        "cache_point",
        "guard_content",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "tool_approval_request",
        "tool_approval_response",
        "item_reference",
        "compaction",
        "container_upload",
        "executable_code",
    ]
)
TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
_CALL = re.compile(r"(?:^|_)(?:tool_use|tool_?call|function_?call|call|tool_?invocation)$")
_RESULT = re.compile(
    r"(?:^|_)(?:tool_?result|function_?response|(?:call|tool)_(?:output|response|result)|tool_search_output)$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WRAPPED = (
    "toolUse",
    "toolResult",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "toolInvocation",
    "codeExecutionResult",
    "code_execution_result",
)
_SILENTLY = (
    "reasoningContent",
    "cachePoint",
    "guardContent",
    "image",
    "document",
    "video",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "executableCode",
    "executable_code",
)
_IDS = ("call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "tool_useId")
_GIVEN = ("arguments", "args", "input", "parameters", "action", "code", "queries", "operation", "server_tool_call")
_OUTPUTS = ("output", "outputs", "result", "results", "response", "content", "server_tool_call_response")
_TEXT_KEYS = (
    "text",
    "logs",
    "stdout",
    "stderr",
    "output",
    "snippet",
    "content",
    "source",
    "data",
    "value",
    "error_code",
)
_PLAIN_CALLS = frozenset({"tool_call", "function_call", "custom_tool_call"})
_VALUES = frozenset({"text", "json", "content", "error-text", "error-json", "execution-denied"})
_FAILED = frozenset({"error", "failed", "output-error", "output-denied"})


def kind_of(block: dict[str, Any]) -> str:
    """A block's type in small letters with underscores; of a block without one, the key that wraps its content."""
    given = block.get("type")
    if not isinstance(given, str):
        given = next((key for key in (*_WRAPPED, *_SILENTLY) if key in block), "")
    return _CAMEL.sub("_", given).lower().replace("-", "_")


def text_in(block: dict[str, Any]) -> str | None:
    """The text that a block says; None where it is no text."""
    kind = kind_of(block)
    if kind == "json":
        return json.dumps(block.get("json"), ensure_ascii=False)
    if kind and kind not in TEXTS:
        return None
    if block.get("thought") is True:
        return ""
    said = next((block[key] for key in ("text", "refusal", "content") if isinstance(block.get(key), str)), None)
    return said if said is not None or not kind else ""


def is_result(block: Any) -> bool:
    """Whether a block is what a tool returned."""
    return isinstance(block, dict) and (
        bool(_RESULT.search(kind_of(block))) or kind_of(block).endswith("code_execution_result")
    )


def is_tool(block: Any) -> bool:
    """Whether a block is a tool call, or what a tool returned."""
    return is_result(block) or (isinstance(block, dict) and (bool(_CALL.search(kind_of(block))) or _is_ui(block)))


def read_block(block: dict[str, Any], where: str) -> Iterator[Item]:
    """The items of a block that is no text. BadCase for a call or a result that does not say whose it is."""
    kind = kind_of(block)
    wrapped = next((block[key] for key in _WRAPPED if isinstance(block.get(key), dict)), None)
    held = block if wrapped is None or ("type" in block and kind != "tool_invocation") else wrapped
    if is_result(block):
        yield from _result(held, kind, where)
    elif _is_ui(block) or kind == "tool_invocation":
        yield from _ui(held, where)
    elif _CALL.search(kind):
        yield from _call(held, kind, where)
    elif kind not in SILENT and not kind.startswith("data_"):
        yield Unread(f"{kind or 'a part without a type'} is not known and was left out", where)


def _is_ui(block: dict[str, Any]) -> bool:
    # A tool's part of a UI message is named after its tool: `tool-query_logs`.
    given = block.get("type")
    named = isinstance(given, str) and given.startswith("tool-") and given not in {"tool-call", "tool-result"}
    return given == "dynamic-tool" or (named and ("toolCallId" in block or "state" in block))


def called(call: dict[str, Any], where: str, kind: str = "") -> Called:
    """A tool call in any vendor's words. `kind` names the tool of a vendor's own (`web_search_call`)."""
    held = call.get("function") if isinstance(call.get("function"), dict) else call.get("custom")
    inner: dict[str, Any] = held if isinstance(held, dict) else call
    own = re.sub(r"_call$", "", kind) if kind not in _PLAIN_CALLS else ""
    own = "" if own.endswith("tool_use") or own == "call" else own
    name = inner.get("name") or call.get("toolName") or call.get("tool_name") or own
    if not isinstance(name, str) or not name:
        raise BadCase(where, "the tool call names no tool")
    given = next((inner[key] for key in _GIVEN if inner.get(key) is not None), None)
    arguments, text = arguments_of(given)
    return Called(_id(call) or str(call.get("id") or ""), name, arguments, where, text)


def _id(block: dict[str, Any]) -> str:
    # Responses items have an id of their own beside the call's.
    return str(next((block[key] for key in _IDS if block.get(key) not in (None, "")), ""))


def _call(block: dict[str, Any], kind: str, where: str) -> Iterator[Item]:
    made = called(block, where, kind)
    yield made
    # A call that the vendor ran itself has its output inside.
    content = next(
        (block[key] for key in ("output", "outputs", "results", "result") if block.get(key) is not None), None
    )
    error = block.get("error")
    if content is None and error is None and kind == "web_search_call" and isinstance(block.get("action"), dict):
        content = block["action"].get("sources")
    if content is not None or error is not None:
        text = spoken(error if content is None else content)
        yield Returned(made.call_id, made.name, text, where, True if error or block.get("status") == "failed" else None)
    elif kind.endswith("_call") and kind not in _PLAIN_CALLS and not _id(block):
        yield Unread(f"{kind} holds no output that could be quoted", where)


def _result(block: dict[str, Any], kind: str, where: str) -> Iterator[Item]:
    call_id = _id(block) or str(block.get("id") or "")
    name = block.get("name") or block.get("toolName")
    if not call_id and not name and kind.endswith("code_execution_result"):
        name = "code_execution"
    if not call_id and not name:
        raise BadCase(where, "the tool result names no call")
    content = next((block[key] for key in _OUTPUTS if block.get(key) is not None), None)
    failed = block.get("is_error") is True or block.get("isError") is True or block.get("status") in _FAILED
    if isinstance(content, dict) and content.get("type") in _VALUES and set(content) <= {"type", "value", "reason"}:
        # `{"type": "error-text", "value": ...}`
        failed = failed or str(content["type"]).startswith(("error", "execution-denied"))
        content = content.get("value", content.get("reason"))
        content = content if isinstance(content, str | list) or content is None else text_of(content)
    elif kind == "function_response" and isinstance(content, dict) and len(content) == 1:
        # The vendor wants an object: a text is put under one key.
        failed = failed or "error" in content
        content = next((content[key] for key in ("result", "output", "content", "error") if key in content), content)
    elif isinstance(content, dict) and content.get("type") == "text":
        content = text_of(content)
    vendors = kind not in {"tool_result", "tool_call_response", "function_call_output", "function_response"}
    text = spoken(content) if vendors or _parts(content) else content
    if content is not None and _pictures(content):
        # No reply rather than an empty one, which would say that nothing was found.
        yield Unread("the tool's output is a picture or a file and cannot be quoted", where)
        return
    failed = failed or _errors(content)
    yield Returned(call_id, name if isinstance(name, str) else None, text, where, True if failed else None)


def _parts(content: Any) -> bool:
    """Whether this is a list of content parts that name no type: `[{"text": "..."}, {"json": {...}}]`."""
    return isinstance(content, list) and any(
        isinstance(item, dict) and "type" not in item and len(item) == 1 and {"text", "json"} & item.keys()
        for item in content
    )


def _pictures(content: Any) -> bool:
    items = content if isinstance(content, list) else [content]
    return bool(items) and all(
        isinstance(item, dict)
        and (kind_of(item) in {"computer_screenshot", "image", "input_image", "image_url", "document", "video"})
        and "text" not in item
        for item in items
    )


def quotable(content: Any) -> tuple[Any, bool]:
    """A tool's output without the pictures and files among its parts, and whether there were any."""
    if not isinstance(content, list):
        return content, False
    kept = [item for item in content if not (isinstance(item, dict) and "type" in item and _pictures(item))]
    return kept, len(kept) < len(content)


def _errors(content: Any) -> bool:
    return isinstance(content, dict) and str(content.get("type", "")).endswith("_error")


def _ui(block: dict[str, Any], where: str) -> Iterator[Item]:
    """A tool's part of a UI message: call, state and output in one."""
    given = str(block.get("type") or "")
    name = block.get("toolName") or given.removeprefix("tool-") or "tool"
    made = called({"toolName": name, **{k: v for k, v in block.items() if k != "type"}}, where)
    yield made
    state = str(block.get("state") or "")
    if state == "output-error" or block.get("errorText"):
        yield Returned(made.call_id, made.name, block.get("errorText"), where, True)
    elif "output" in block or "result" in block:
        content = block["output"] if "output" in block else block["result"]
        yield Returned(made.call_id, made.name, content, where, None)


def spoken(content: Any) -> str:
    """What a vendor's own tool put out: its texts line by line, and what else it says of each as JSON before them."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(spoken, content)))
    if not isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False)
    if set(content) == {"json"}:
        return json.dumps(content["json"], ensure_ascii=False)
    told = {k: v for k, v in content.items() if v not in (None, "", [], {}) and not k.startswith("encrypted")}
    texts = [spoken(told[key]) for key in _TEXT_KEYS if key in told]
    if not texts:
        return "" if kind_of(content) in SILENT else json.dumps(told, ensure_ascii=False)
    rest = {k: v for k, v in told.items() if k not in _TEXT_KEYS and k != "type"}
    return "\n".join([*([json.dumps(rest, ensure_ascii=False)] if rest else []), *texts])
