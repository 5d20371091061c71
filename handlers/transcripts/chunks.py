"""A reply that was recorded as it was streamed: its chunks put together into the message that they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def is_chunk(raw: Any) -> bool:
    """Whether a JSON value is one chunk of a streamed reply."""
    return isinstance(raw, dict) and (
        raw.get("object") == "chat.completion.chunk"
        or ("role" not in raw and isinstance(raw.get("delta"), dict) and "index" in raw)
    )


def put_together(messages: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The messages with their places; chunks that follow each other are one message, at the place of the first."""
    run: list[dict[str, Any]] = []
    for k, message in enumerate(messages):
        if is_chunk(message):
            run.append(message)
            continue
        if run:
            yield k - len(run), _message(run)
            run = []
        yield k, message
    if run:
        yield len(messages) - len(run), _message(run)


def _message(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One assistant message: texts joined, tool calls by their index, arguments joined."""
    texts: list[str] = []
    refused: list[str] = []
    calls: dict[Any, dict[str, Any]] = {}
    reason = None
    for choice in (choice for chunk in chunks for choice in _choices(chunk)):
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
        assert isinstance(delta, dict)
        texts += [delta["content"]] if isinstance(delta.get("content"), str) else []
        refused += [delta["refusal"]] if isinstance(delta.get("refusal"), str) else []
        for piece in delta.get("tool_calls") or ():
            if isinstance(piece, dict):
                _add(calls.setdefault(piece.get("index", len(calls)), {"name": "", "arguments": ""}), piece)
        reason = choice.get("finish_reason") or reason
    made = [{"id": call.pop("id", ""), "type": "function", "function": call} for call in calls.values()]
    message = {"role": "assistant", "content": "".join(texts), "finish_reason": reason}
    return {**message, "tool_calls": made, "refusal": "".join(refused) or None}


def _add(call: dict[str, Any], piece: dict[str, Any]) -> None:
    held = piece.get("function")
    function = held if isinstance(held, dict) else {}
    if piece.get("id"):
        call["id"] = piece["id"]
    for key in ("name", "arguments"):
        if isinstance(function.get(key), str):
            call[key] += function[key]


def _choices(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    given = chunk.get("choices") if "choices" in chunk else [chunk]
    return [c for c in given or () if isinstance(c, dict) and c.get("index", 0) == 0]
