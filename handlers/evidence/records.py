"""How a tool keeps its full output, and how a `raw_path` finds its record there again.

Format `records`: one record after the other, `<raw_path> TAB <text> LF`; a line break inside a text is followed by
one TAB. A record begins where a line does not begin with a TAB, so a text can never pose as another record.
Looking a record up is one byte search: 24 MB in some 10 ms (bar S5).
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Sequence

from streams.contract import EvidenceRef

FORMAT = "records"
MAX_REF_CHARS = 16_000  # a longer record is shown in a slice that has a path of its own
MAX_REFS_BYTES = 120_000  # all refs of a result: they travel in an event of at most 256 KiB (design section 3)


def clean_path(path: str) -> str:
    """A path or file name without the two characters that the format uses."""
    return path.replace("\t", " ").replace("\n", " ")


def pack(records: Iterable[tuple[str, str]]) -> bytes:
    """The full output of (raw_path, text) pairs."""
    return b"".join(pack_one(path, text) for path, text in records)


def pack_one(path: str, text: str) -> bytes:
    return f"{path}\t{text}\n".encode("utf-8", "surrogatepass") if "\n" not in text else _multi(path, text)


def _multi(path: str, text: str) -> bytes:
    inner = text.replace("\n", "\n\t")
    return f"{path}\t{inner}\n".encode("utf-8", "surrogatepass")


def find(output: bytes, raw_path: str) -> str | None:
    """The text at `raw_path`, or None. A slice `path:chars[a-b]` is cut from its record."""
    whole, part = _split_slice(raw_path)
    key = f"{whole}\t".encode("utf-8", "surrogatepass")
    if output.startswith(key):
        start = len(key)
    else:
        at = output.find(b"\n" + key)
        if at < 0:
            return None
        start = at + 1 + len(key)
    end = start
    while True:
        end = output.find(b"\n", end)
        if end < 0:
            end = len(output)
            break
        if output[end + 1 : end + 2] != b"\t":
            break
        end += 1
    text = output[start:end].decode("utf-8", "surrogatepass").replace("\n\t", "\n")
    return text if part is None else text[part[0] : part[1]]


def _split_slice(raw_path: str) -> tuple[str, tuple[int, int] | None]:
    head, mark, tail = raw_path.rpartition(":chars[")
    if not mark or not tail.endswith("]"):
        return raw_path, None
    first, _, last = tail[:-1].partition("-")
    if not (first.isdigit() and last.isdigit()):
        return raw_path, None
    return head, (int(first), int(last))


def weight(ref: EvidenceRef) -> int:
    """Bytes the ref takes in an event."""
    return len(json.dumps(ref.text, ensure_ascii=False).encode("utf-8", "replace")) + len(ref.raw_path) + 120


def shown(path: str, text: str, terms: Sequence[str] = (), source: str | None = None) -> tuple[EvidenceRef, str | None]:
    """A ref for a record, and a note if only a slice of it is shown (around the first term; else its beginning)."""
    if len(text) <= MAX_REF_CHARS:
        return EvidenceRef(raw_path=path, text=text, source=source), None
    folded = text.casefold() if len(text.casefold()) == len(text) else text.lower()
    hits = [at for term in terms if (at := folded.find(term.casefold())) >= 0]
    middle = min(hits) if hits else 0
    start = max(0, middle - MAX_REF_CHARS // 4)
    end = min(len(text), start + MAX_REF_CHARS)
    part = f"{path}:chars[{start}-{end}]"
    note = f"{path} has {len(text)} characters; shown are {start} to {end} of it as {part}"
    return EvidenceRef(raw_path=part, text=text[start:end], source=source), note


def within_room(all_shown: Iterable[tuple[EvidenceRef, str | None]], notes: list[str]) -> list[EvidenceRef]:
    """The refs of `shown` records, in order, as many as an event holds; `notes` gets theirs, and that there were more."""
    refs: list[EvidenceRef] = []
    room = MAX_REFS_BYTES
    for ref, note in all_shown:
        if weight(ref) > room:
            notes.append("the records shown are bounded in size")
            break
        room -= weight(ref)
        notes += [note] if note else []
        refs.append(ref)
    return refs


def decode(raw: bytes) -> str:
    """Text of bytes: UTF-8 where it is, Windows-1252 for the rest, so that no byte is dropped silently."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "latin1_rest")


def _latin1_rest(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    bad = error.object[error.start : error.end]
    return bad.decode("cp1252", "replace"), error.end


codecs.register_error("latin1_rest", _latin1_rest)
