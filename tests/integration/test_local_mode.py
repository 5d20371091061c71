"""One server a data folder, as long as somebody uses it, whatever is killed."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer

import pytest

from handlers.cli.runtime import at_home
from handlers.settings import Settings
from streams import local
from streams.envelope import Draft, Head
from streams.events import QuestionAsked
from streams.jetstream import JetStreamLog, connect
from streams.local import BadDataFolder, LocalServerFailed, local_server
from streams.server import alone, greeting, keeper_lock, port_file
from streams.topology import ensure

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)
CLIENT = """
import asyncio, signal, sys
from pathlib import Path
from threading import Timer
from streams.local import local_server
# What a shell puts in the background inherits that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
async def main():
    async with local_server(Path(sys.argv[1])) as url:
        print(url, flush=True)
        await asyncio.sleep(float(sys.argv[2]))
asyncio.run(main())
"""


def command(data: Path, seconds: float) -> subprocess.Popen[str]:
    """Another command on the same data folder, in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", CLIENT, str(data), str(seconds)], stdout=subprocess.PIPE, text=True)


def unrelated() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def finish(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def record(data: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(port_file(data / "nats").read_text())
    return found


async def until(true: Callable[[], bool], within_s: float = 8.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if true():
            return True
        await asyncio.sleep(0.02)
    return False


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def serves(url: str) -> bool:
    return greeting(int(url.rpartition(":")[2])) is not None


async def test_server_ends_after_its_last_client(tmp_path: Path) -> None:
    async with local_server(tmp_path) as first:
        async with local_server(tmp_path) as second:
            assert first == second
        await asyncio.sleep(1.5)
        assert serves(first)
    assert await until(lambda: not serves(first))
    assert await until(lambda: not port_file(tmp_path / "nats").exists())


async def test_next_command_within_a_moment_gets_the_same_server(tmp_path: Path) -> None:
    async with local_server(tmp_path):
        pid = record(tmp_path)["server_pid"]
    async with local_server(tmp_path):
        assert record(tmp_path)["server_pid"] == pid


async def test_what_was_recorded_is_there_for_the_next_server(tmp_path: Path) -> None:
    stored = []
    for _ in range(2):
        async with local_server(tmp_path) as url:
            client = await connect(url)
            await ensure(client.jetstream())
            log = JetStreamLog(client)
            draft = Draft(QuestionAsked(question="为什么 payment-service 超时？"), "intake", turn=1)
            stored.append(await log.append("e2611-payments", [draft], Head(), NOW))
            await client.close()
        assert await until(lambda url=url: not serves(url))
    assert stored[0] == stored[1]


async def test_many_commands_at_once_share_one_server(tmp_path: Path) -> None:
    commands = [command(tmp_path, 60) for _ in range(3)]

    all_joined = asyncio.Event()

    async def here() -> str:
        async with local_server(tmp_path) as url:
            await all_joined.wait()
            return url

    try:
        joining = [asyncio.create_task(here()) for _ in range(8)]
        others = await asyncio.gather(*(asyncio.to_thread(first_line, process) for process in commands))
        all_joined.set()
        urls = [*others, *await asyncio.gather(*joining)]
    finally:
        for process in commands:
            finish(process)
    assert len(set(urls)) == 1


async def test_server_ends_after_its_last_client_was_killed(tmp_path: Path) -> None:
    process = command(tmp_path, 60)
    url = await asyncio.to_thread(first_line, process)
    assert serves(url)
    finish(process)
    assert await until(lambda: not serves(url))


async def test_ctrl_c_of_a_command_does_not_reach_the_server(tmp_path: Path) -> None:
    process = command(tmp_path, 60)
    url = await asyncio.to_thread(first_line, process)
    # A terminal signals the whole process group of the command: the server must not be in it.
    groups = {os.getpgid(record(tmp_path)[name]) for name in ("server_pid", "keeper_pid")}
    assert os.getpgid(process.pid) not in groups
    async with local_server(tmp_path) as same:
        os.kill(process.pid, signal.SIGINT)
        process.wait(10)
        assert same == url
        assert serves(url)
    finish(process)


async def test_killed_server_comes_back_on_its_port(tmp_path: Path) -> None:
    async with local_server(tmp_path) as url:
        client = await connect(url)
        await ensure(client.jetstream())
        pid = record(tmp_path)["server_pid"]
        log = JetStreamLog(client, ack_timeout_s=0.3)
        os.kill(pid, signal.SIGKILL)
        draft = Draft(QuestionAsked(question="why does payment-service time out?"), "intake", turn=1)
        assert await log.append("e2611-payments", [draft], Head(), NOW) == await log.read("e2611-payments")
        assert record(tmp_path)["server_pid"] != pid
        await client.close()


async def test_killed_keeper_takes_its_server_along_and_the_next_command_starts_anew(tmp_path: Path) -> None:
    async with local_server(tmp_path) as url:
        before = record(tmp_path)
        os.kill(before["keeper_pid"], signal.SIGKILL)
        assert await until(lambda: ended(before["keeper_pid"]))
        async with local_server(tmp_path) as again:
            after = record(tmp_path)
            assert after["keeper_pid"] != before["keeper_pid"]
            assert after["server_pid"] != before["server_pid"]
            assert serves(again)
        assert again == url or not serves(url)


async def test_orphaned_server_is_ended_only_if_it_is_ours(tmp_path: Path) -> None:
    """A stale port file names a process id that now belongs to somebody else."""
    bystander = unrelated()
    folder = tmp_path / "nats"
    folder.mkdir()
    stale = {"port": 1, "name": "verdictlog-gone", "server_pid": bystander.pid, "keeper_pid": bystander.pid}
    port_file(folder).write_text(json.dumps(stale))
    try:
        async with local_server(tmp_path) as url:
            assert serves(url)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


async def test_torn_port_file_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "nats").mkdir()
    port_file(tmp_path / "nats").write_text('{"port": 42')
    async with local_server(tmp_path) as url:
        assert serves(url)


async def test_data_folder_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("")
    with pytest.raises(BadDataFolder) as raised:
        async with local_server(data):
            pass
    assert str(data) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("data", ["/proc/verdictlog", "/dev/null/verdictlog"])
async def test_data_folder_that_cannot_be_made_is_one_clear_line(data: str) -> None:
    with pytest.raises(BadDataFolder, match=f"{data}: .*: name a folder that can be written to by --data"):
        async with local_server(Path(data)):
            pass


async def test_server_that_finds_no_room_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ROOM_BYTES", 2**62)
    (tmp_path / "nats").mkdir()
    (tmp_path / "nats" / "store").write_text("not a folder")
    with pytest.raises(LocalServerFailed, match="its disk is full: make room"):
        async with local_server(tmp_path):
            pass


async def test_server_that_cannot_start_is_one_clear_line_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "nats").mkdir()
    (tmp_path / "nats" / "store").write_text("not a folder")
    with pytest.raises(LocalServerFailed, match="storage directory") as raised:
        async with local_server(tmp_path):
            pass
    assert "\n" not in str(raised.value)


def test_many_commands_one_after_the_other_each_get_a_server(tmp_path: Path) -> None:
    """Whoever joins looks at the keeper's lock; a keeper that starts in that moment must not give up."""

    async def one() -> None:
        async with local_server(tmp_path) as url:
            assert url.startswith("nats://127.0.0.1:")

    folder = tmp_path / "nats"
    for _ in range(4):
        asyncio.run(one())
        keeper_pid = json.loads(port_file(folder).read_text())["keeper_pid"]
        os.kill(keeper_pid, signal.SIGTERM)
        while port_file(folder).exists():
            time.sleep(0.01)


def test_a_keeper_waits_for_one_who_only_looks(tmp_path: Path) -> None:
    looking = os.open(keeper_lock(tmp_path), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(looking, fcntl.LOCK_EX)
    Timer(0.2, os.close, (looking,)).start()
    with alone(tmp_path) as ours:
        assert ours


async def test_the_address_of_a_folder_s_own_server_is_local_mode_with_its_keys_and_read_model(tmp_path: Path) -> None:
    async with local_server(tmp_path) as url:
        own = Settings(data=tmp_path, nats_url=url)
        assert at_home(own).nats_url is None
        assert at_home(Settings(data=tmp_path, nats_url=url.replace("127.0.0.1", "localhost"))).nats_url is None
        assert at_home(own).keys_folder == Settings(data=tmp_path, nats_url=None).keys_folder
        for other in ("nats://127.0.0.1:1", "nats://ledger-db:4222", "nats://127.0.0.1:99999"):
            assert at_home(Settings(data=tmp_path, nats_url=other)).nats_url == other
    assert at_home(Settings(data=tmp_path / "elsewhere", nats_url=url)).nats_url == url
