"""The local nats-server process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streams.jetstream import connect
from streams.log import LogUnavailable
from streams.server import NatsServer, ServerFailed, greeting


def gone(pid: int) -> bool:
    """Whether the process has ended (one that nobody has waited for counts as ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_gone(pid: int, within_s: float = 5.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if gone(pid):
            return True
        time.sleep(0.02)
    return False


def test_server_answers_on_loopback_by_its_own_name(fresh_server: NatsServer) -> None:
    assert fresh_server.url.startswith("nats://127.0.0.1:")
    assert greeting(fresh_server.port) == fresh_server.name
    config = fresh_server.config_path.read_text()
    assert 'host: "127.0.0.1"' in config
    assert "sync_interval: always" in config


def test_server_killed_and_started_again_keeps_its_port(fresh_server: NatsServer) -> None:
    url, pid = fresh_server.url, fresh_server.pid
    fresh_server.kill()
    assert gone(pid)
    assert greeting(fresh_server.port) is None
    assert fresh_server.start() == url
    assert fresh_server.pid != pid


def test_stop_ends_the_process(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    server.start()
    pid = server.pid
    server.stop()
    assert gone(pid)
    server.stop()


def test_folder_name_with_any_character_is_served(tmp_path: Path) -> None:
    folder = tmp_path / 'pay "ment\\s 支付 # {x}'
    folder.mkdir()
    server = NatsServer(folder)
    try:
        server.start()
        assert (folder / "store").is_dir()
    finally:
        server.stop()


def test_port_that_somebody_else_holds_is_an_error_with_the_servers_reason(
    fresh_server: NatsServer, tmp_path: Path
) -> None:
    other = NatsServer(tmp_path)
    other.port = fresh_server.port
    with pytest.raises(ServerFailed, match="address already in use"):
        other.start()
    assert other.exited()


def test_unusable_store_is_an_error_with_the_servers_reason(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(ServerFailed) as raised:
        NatsServer(tmp_path).start()
    assert "\n" not in raised.value.why
    assert "storage directory" in raised.value.why


def test_server_does_not_outlive_whoever_started_it(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from streams.server import NatsServer\n"
        "server = NatsServer(Path(sys.argv[1])); server.start(); print(server.pid, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout as out:
        pid = int(out.readline())
    assert not gone(pid)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    assert wait_gone(pid)


@pytest.mark.anyio
async def test_no_server_is_a_clear_error_in_bounded_time(fresh_server: NatsServer) -> None:
    fresh_server.stop()
    started = time.monotonic()
    with pytest.raises(LogUnavailable, match=fresh_server.url):
        await connect(fresh_server.url, within_s=0.5)
    assert time.monotonic() - started < 3


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["nats://127.0.0.1:port", "nats://", "not an address", "nats://nowhere.invalid:4222"])
async def test_address_that_is_none_is_a_clear_error(url: str) -> None:
    with pytest.raises(LogUnavailable, match="cannot reach NATS"):
        await connect(url, within_s=0.5)


@pytest.mark.anyio
async def test_credentials_that_cannot_be_read_are_a_clear_error(nats_url: str, tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match="cannot reach NATS"):
        await connect(nats_url, tmp_path / "role.nk", within_s=0.5)
