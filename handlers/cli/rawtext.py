"""The bytes of a file as JSON text: what is packed is told by name, other encodings are read, half characters replaced."""

from __future__ import annotations

import json
import re

from handlers.case import BadCase

# An escape in a JSON text; `half`: of one half of a pair.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"%PDF": "PDF",
    b"PAR1": "Parquet",
    b"SQLite format 3": "SQLite",
}
_SENT = re.compile(rb"^(?:data:[ \t]*(?:\[DONE\].*$)?|event:.*$|id:.*$|retry:.*$|:.*$)", re.MULTILINE)


_NEXT = re.compile(rb"^\}[ \t]*\r?\n\s*(?=\{)", re.MULTILINE)


def as_text(raw: bytes) -> bytes:
    """The bytes as UTF-8; UTF-16 and UTF-32 are told by how they begin. BadCase for what is packed: it says what it is."""
    packed = next((name for mark, name in _PACKED.items() if raw.startswith(mark)), None)
    if packed is not None:
        raise BadCase("file", f"not JSON but {packed}: unpack or export it, and give the JSON inside")
    written = json.detect_encoding(raw)
    if not written.startswith(("utf-16", "utf-32")):
        return raw
    try:
        return raw.decode(written, "surrogatepass").encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise BadCase("file", f"not JSON: it begins like {written.upper()} and is none: save it as UTF-8") from None


def unsent(raw: bytes) -> bytes:
    """Server-sent events as the lines of their data."""
    return _SENT.sub(b"", raw) if raw.lstrip()[:6].startswith((b"data:", b"event:", b"id:")) else raw


def apart(raw: bytes) -> list[tuple[int, bytes]]:
    """Indented objects that were printed one after the other, each with the number of its first line; empty where a
    file is something else."""
    if not raw.lstrip().startswith(b"{\n") or not _NEXT.search(raw):
        return []
    starts = [0, *(m.end() for m in _NEXT.finditer(raw))]
    return [(raw.count(b"\n", 0, at) + 1, raw[at:end]) for at, end in zip(starts, [*starts[1:], len(raw)], strict=True)]


def mended(raw: bytes) -> tuple[bytes, int]:
    """JSON text whose escapes of single surrogates and whose bytes that are no UTF-8 are U+FFFD, and how many were.

    Whoever cuts a log by UTF-16 units leaves half a character; the rest of a transcript is worth reading.
    """
    lost = 0

    def whole(match: re.Match[str]) -> str:
        nonlocal lost
        if match["half"] is None:
            return match[0]
        lost += 1
        return "\ufffd"

    text = raw.decode("utf-8", "surrogateescape")
    text, bad = re.subn("[\udc80-\udcff]+", "\ufffd", text)
    text = _ESCAPE.sub(whole, text)
    return (text.encode() if lost or bad else raw), lost + bad
