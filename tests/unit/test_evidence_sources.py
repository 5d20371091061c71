"""Files that serve as evidence: read whole within a bound, and read again only once they have changed."""

from __future__ import annotations

import asyncio
import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from handlers.evidence import sources
from handlers.evidence.recorded import RecordedOutputs
from handlers.evidence.sources import Kept, TooLarge, whole


def test_a_file_is_read_again_only_once_it_has_changed(tmp_path: Path) -> None:
    read: list[str] = []

    def text(path: Path) -> str:
        read.append(path.name)
        return path.read_text(encoding="utf-8")

    kept, file = Kept(text), tmp_path / "pods.txt"
    file.write_text("payment-service Running", encoding="utf-8")
    assert [kept.of(file), kept.of(file)] == ["payment-service Running"] * 2
    assert read == ["pods.txt"]
    file.write_text("payment-service Pending", encoding="utf-8")
    os.utime(file, ns=(1, 1))
    assert kept.of(file) == "payment-service Pending"
    assert read == ["pods.txt"] * 2


def test_what_is_kept_of_files_is_bounded_and_the_last_asked_for_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "KEPT_BYTES", 20)
    read: list[str] = []
    kept = Kept(lambda path: read.append(path.name))
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("0123456789", encoding="utf-8")
    for name in ("a", "b", "a", "c", "a", "b"):
        kept.of(tmp_path / name)
    assert read == ["a", "b", "c", "b"]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_file_too_large_for_memory_is_a_failed_access_that_says_what_to_do(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "WHOLE_BYTES", 1 << 20)
    monkeypatch.setattr(sources, "BLOCK", 1 << 16)
    file = tmp_path / "dump.txt"
    raw = b"payment-service timed out\n" * 50_000
    file.write_bytes(gzip.compress(raw) if packed else raw)
    with pytest.raises(TooLarge):
        whole(file)
    result = asyncio.run(RecordedOutputs("dump", [str(file)]).invoke({}))
    assert result.status == "error"
    assert result.error == "dump.txt: more than 1 MiB, which is the most that is read whole; give a part of it"


@pytest.mark.parametrize("encoded", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_whole_file_is_utf_8_whatever_it_was_written_in(encoded: str, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("支付超时 30 s", encoding=encoded)
    found: tuple[Any, Any] = whole(file)
    assert found == ("支付超时 30 s".encode(), None)
