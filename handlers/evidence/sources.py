"""Files that serve as evidence: what a path stands for, how its bytes are read, and how it is named in a `raw_path`."""

from __future__ import annotations

import glob
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Generic, TypeVar

from handlers.evidence.protocol import BadSource
from handlers.evidence.records import clean_path

MAX_FILES = 2_000
BLOCK = 8 << 20
GZIP = b"\x1f\x8b"
UTF16 = frozenset({b"\xff\xfe", b"\xfe\xff"})
WHOLE_BYTES = 256 << 20
"""Of a file that is read whole, unpacked: metrics, recorded outputs, runbooks. Logs are read in blocks."""
KEPT_BYTES = 32 << 20
T = TypeVar("T")


class Damaged(OSError):
    """A file that can be read only up to a point; what came before it was given."""


class TooLarge(OSError):
    """A file that would not fit into memory."""

    def __init__(self, path: Path) -> None:
        room = WHOLE_BYTES >> 20
        super().__init__(f"{path.name}: more than {room} MiB, which is the most that is read whole; give a part of it")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, and its name in raw paths: empty where it is the tool's only one."""

    path: Path
    name: str

    def prefix(self) -> str:
        return f"{self.name}:" if self.name else ""


def expand(paths: Sequence[str], endings: tuple[str, ...] = ()) -> tuple[SourceFile, ...]:
    """The files behind paths, folders (searched through) and globs, each once. Raises BadSource.

    Names are the shortest endings of the paths that tell the files apart; hidden files of a folder are left out.
    """
    found: list[Path] = []
    for text in paths:
        found += _expand_one(text, endings)
    unique = list(dict.fromkeys(path.absolute() for path in found))
    if len(unique) > MAX_FILES:
        raise BadSource(paths[0], f"{len(unique)} files; at most {MAX_FILES} can be searched, name a smaller folder")
    if len(unique) == 1:
        return (SourceFile(unique[0], ""),)
    return tuple(SourceFile(path, clean_path(name)) for path, name in zip(unique, short_names(unique), strict=True))


def _expand_one(text: str, endings: tuple[str, ...]) -> list[Path]:
    path = Path(text).expanduser()
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path) and _fits(p, endings))
        if not inside:
            what = f" that end in {', '.join(endings)}" if endings else ""
            raise BadSource(text, f"the folder holds no files{what}; name another one")
        return inside
    if path.exists():
        if not path.is_file():
            raise BadSource(text, "is neither a file nor a folder; name a file, a folder or a pattern")
        try:
            with path.open("rb"):
                return [path]
        except OSError as error:
            raise BadSource(text, f"cannot be read ({error.strerror}); check its permissions") from error
    if glob.has_magic(text):
        hits = sorted(Path(p) for p in glob.glob(str(path), recursive=True) if Path(p).is_file())
        if hits:
            return hits
        raise BadSource(text, "the pattern matches no file; check it, or quote it for the shell")
    raise BadSource(text, "no such file or folder; check the path")


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _fits(path: Path, endings: tuple[str, ...]) -> bool:
    return not endings or path.name.lower().endswith(endings)


def short_names(paths: Sequence[Path]) -> list[str]:
    """For each path its shortest ending that no other path shares."""
    names: dict[Path, str] = {}
    depth = 1
    while len(names) < len(paths):
        tails = Counter(path.parts[-depth:] for path in paths)
        for path in paths:
            if path not in names and (tails[path.parts[-depth:]] == 1 or depth >= len(path.parts)):
                names[path] = "/".join(path.parts[-depth:])
        depth += 1
    return [names[path] for path in paths]


def blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The file's bytes in blocks that end at a line's end; gzip by its content, not its name; UTF-16 made UTF-8.

    Raises OSError, or Damaged after the readable part of a broken gzip file.
    """
    rest = b""
    started = False
    try:
        for chunk in _unpacked(path, size):
            if not started and chunk[:2] in UTF16:
                yield _from_utf16(path, size)
                return
            data = rest + (chunk.removeprefix(b"\xef\xbb\xbf") if not started else chunk)
            started = True
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if cut:
                yield data[:cut]
    except Damaged:
        if rest:
            yield rest
        raise
    if rest:
        yield rest


def whole(path: Path) -> tuple[bytes, str | None]:
    """All bytes of a file, unpacked and as UTF-8, and a note if some are missing. Raises OSError, TooLarge."""
    parts: list[bytes] = []
    size, note = 0, None
    try:
        for chunk in _unpacked(path, BLOCK):
            size += len(chunk)
            if size > WHOLE_BYTES:
                raise TooLarge(path)
            parts.append(chunk)
    except Damaged as error:
        note = str(error)
    raw = b"".join(parts)
    if raw[:2] in UTF16:
        raw = raw.decode("utf-16", "replace").encode("utf-8")
    return raw.removeprefix(b"\xef\xbb\xbf"), note


class Kept(Generic[T]):
    """What was read of files, each read again only once it has changed: a turn asks the same file several times.

    The files last asked for are kept, KEPT_BYTES on disk at most. One file is read at a time, so that calls made side
    by side do not each hold a copy. `of` raises what `read` raises.
    """

    def __init__(self, read: Callable[[Path], T]) -> None:
        self._read = read
        self._held: OrderedDict[Path, tuple[tuple[int, int], T]] = OrderedDict()
        self._lock = Lock()

    def of(self, path: Path) -> T:
        with self._lock:
            stat = path.stat()
            state = (stat.st_size, stat.st_mtime_ns)
            held = self._held.pop(path, None)
            found = held[1] if held is not None and held[0] == state else self._read(path)
            self._held[path] = (state, found)
            while sum(size for (size, _), _ in self._held.values()) > KEPT_BYTES:
                self._held.popitem(last=False)
            return found


def _from_utf16(path: Path, size: int) -> bytes:
    return b"".join(_unpacked(path, size)).decode("utf-16", "replace").encode("utf-8")


def _unpacked(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        head = file.read(2)
        file.seek(0)
        if head != GZIP:
            while chunk := file.read(size):
                yield chunk
            return
        yield from _gunzip(file, path.name, size)


def _gunzip(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(wbits=31)
    waiting, inside = b"", False
    try:
        while packed := waiting or file.read(1 << 16):
            inside = True
            if chunk := unpacker.decompress(packed, size):
                yield chunk
            waiting = unpacker.unconsumed_tail
            if unpacker.eof:
                waiting, inside = unpacker.unused_data, False
                if waiting and not waiting.startswith(GZIP[:1]):
                    return  # padding behind the last member
                unpacker = zlib.decompressobj(wbits=31)
    except zlib.error as error:
        raise Damaged(f"{name} is a damaged gzip file ({error}): read up to there") from error
    if inside:
        raise Damaged(f"{name} is a gzip file that was cut off: read up to there")
