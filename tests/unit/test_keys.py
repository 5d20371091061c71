"""Keys of sealed sessions as files: one a session, gone for good once dropped, whichever process looks."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streams.keys import FileKeys
from streams.sealing import KEY_BYTES, NoKey

SESSION = "e2611-payment"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_key_is_made_once_and_everybody_finds_the_same(tmp_path: Path) -> None:
    one, other = FileKeys(tmp_path / "keys"), FileKeys(tmp_path / "keys")
    assert one.get(SESSION) is None
    key = one.make(SESSION)
    assert len(key) == KEY_BYTES
    assert other.make(SESSION) == other.get(SESSION) == one.get(SESSION) == key
    assert one.make("e2611-ledger") != key


def test_only_the_owner_may_read_keys(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    keys.make(SESSION)
    keys.salt()
    assert stat.S_IMODE(keys.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys.folder.iterdir()} == {0o600}


def test_a_dropped_key_is_gone_for_every_process_and_none_is_made_again(tmp_path: Path) -> None:
    one, other = FileKeys(tmp_path), FileKeys(tmp_path)
    key = one.make(SESSION)
    assert other.get(SESSION) == key
    assert one.drop(SESSION)
    assert not one.left(SESSION)
    assert one.destroyed(SESSION)
    assert one.get(SESSION) is other.get(SESSION) is None
    assert all(key not in content for content in files(tmp_path).values())
    for keys in (one, other, FileKeys(tmp_path)):
        with pytest.raises(NoKey):
            keys.make(SESSION)


def test_dropping_again_is_nothing(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path)
    keys.make(SESSION)
    keys.drop(SESSION)
    before = files(tmp_path)
    assert not keys.drop(SESSION)
    assert files(tmp_path) == before


def test_a_key_that_was_never_here_can_be_dropped_and_is_not_made_later(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    assert not keys.drop(SESSION)
    with pytest.raises(NoKey):
        keys.make(SESSION)


@pytest.mark.parametrize("killed", ["behind the tombstone", "behind the renaming"])
def test_an_interrupted_drop_is_seen_and_brought_to_its_end(tmp_path: Path, killed: str) -> None:
    keys = FileKeys(tmp_path)
    key = keys.make(SESSION)
    (tmp_path / f"{SESSION}.erased").touch()
    if killed == "behind the renaming":
        os.replace(tmp_path / f"{SESSION}.key", tmp_path / f"{SESSION}.going")
    again = FileKeys(tmp_path)
    assert again.left(SESSION)
    assert not again.destroyed(SESSION)
    assert again.drop(SESSION)
    assert not again.left(SESSION)
    assert all(key not in content for content in files(tmp_path).values())


def test_a_making_that_was_killed_leaves_no_half_key(tmp_path: Path) -> None:
    (tmp_path / ".0123456789abcdef").write_bytes(b"half")
    keys = FileKeys(tmp_path)
    assert keys.get(SESSION) is None
    assert len(keys.make(SESSION)) == KEY_BYTES


def test_a_key_that_two_drop_at_once_is_destroyed_by_one_of_them(tmp_path: Path) -> None:
    for k in range(40):
        session = f"e2611-race{k}"
        FileKeys(tmp_path).make(session)
        both = threading.Barrier(2)

        def drop(session: str = session, both: threading.Barrier = both) -> bool:
            keys = FileKeys(tmp_path)
            both.wait(10)
            return keys.drop(session)

        with ThreadPoolExecutor(2) as pool:
            found = [dropping.result() for dropping in (pool.submit(drop), pool.submit(drop))]
        assert any(found)
        assert FileKeys(tmp_path).destroyed(session)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".erased"]
