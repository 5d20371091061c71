"""`verdictlog erase` as a user runs it: the text is gone from every file, what is counted stays, the chain verifies."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from projections.erasure import holds_no_text
from streams import topology
from streams.envelope import Head
from streams.events import TextErased
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.keys import FileKeys
from streams.local import local_server
from streams.server import NatsServer
from tests.cases import long_case
from tests.e2e.home import WORDS, Home, command, foreign, held, request, until
from tests.foreign import QUESTION
from tests.integration.projection_sessions import passed

LOGS = "".join(
    f"2026-03-17T10:4{i}:02Z ERROR payment-service HikariPool-1 - Connection is not available, quetzal {i}\n"
    for i in range(8)
)
ASKED = "Why does payment-service time out for tenant quetzal?"


@pytest.fixture
def home(tmp_path: Path, fresh_server: NatsServer) -> Home:
    folder = tmp_path / "data"
    folder.mkdir()
    return Home(folder, fresh_server)


COUNTS = "SELECT effective_verdict, route, count(*) AS n FROM v_round GROUP BY ALL ORDER BY ALL"
LABELS = "SELECT session, verification, is_critical, count(*) AS n FROM facts GROUP BY ALL ORDER BY ALL"
RULES = "SELECT rule, severity, count(*) AS n FROM failed_rules GROUP BY ALL ORDER BY ALL"


@pytest.mark.timeout(900)
def test_after_an_erasure_the_text_is_nowhere_and_what_is_counted_is_as_it_was(home: Home, tmp_path: Path) -> None:
    logs = tmp_path / "app.log"
    logs.write_text(LOGS, encoding="utf-8")
    judged = home.judge(long_case(), "--seal")["session"]
    done = command(
        home.server.url, home.folder, "ask", ASKED, "--lang", "en", "--logs", str(logs), "--json",
        VERDICTLOG_SEAL="true",
    )  # fmt: skip
    asked = json.loads(done.stdout)["session"]
    assert "quetzal" in done.stdout
    assert home.words_in_log() == set()
    assert home.words_in_files() == set()

    home.level()
    counted = [home.sql(query) for query in (COUNTS, LABELS, RULES)]
    assert {"questions", "evidence_refs", "claims", "answers"} <= home.words_in_tables()
    published = home.read_model.with_suffix(".snapshot.duckdb")
    home.run("snapshot", str(published))
    assert "payments-pool" in home.run("show", judged, "--as-of", "4", "--json")
    bundle = home.folder / "bundle.zip"
    home.run("export", "session", judged, "--out", str(bundle))
    bundle.unlink()

    for session in (judged, asked):
        told = home.told("erase", session, "--reason", "request 4711", "--yes", "--json")
        assert (told["before"], told["key_destroyed"], told["read_model_held_by"]) == (False, True, None)

    assert home.words_in_log() == set()
    assert home.words_in_files() == set()
    assert home.words_in_tables() == set()
    assert home.words_in_tables(published) == set()
    assert [home.sql(query) for query in (COUNTS, LABELS, RULES)] == counted
    assert set(home.sql("SELECT question FROM questions")) == {("[erased]",)}
    assert home.sql("SELECT why FROM erasures") == [("request 4711",)] * 2
    assert "BAD" not in home.run("verify")
    assert "BAD" not in home.run("doctor")
    assert "the same" in home.run("rebuild")

    shown = home.run("show", judged)
    assert "request 4711" in shown
    assert "REJECT" in shown or "LOW_CONFID" in shown or "PASS" in shown
    assert "[erased]" in home.run("show", judged, "--as-of", "4")
    for arguments in (("explain", judged), ("diff", judged, "2", "9"), ("sessions",), ("tail", "--until-idle", "1")):
        assert not any(word in home.run(*arguments) for word in WORDS)
    assert "its text is erased" in home.run("rejudge", judged)
    home.run("export", "session", judged, "--out", str(bundle))
    offline = subprocess.run([sys.executable, "-I", "-S", str(bundle)], capture_output=True, text=True, check=False)
    assert offline.returncode == 0
    assert home.words_in_files() == set()
    assert "nothing to copy" in home.run("fork", judged, "--at", "3", code=1)
    assert "was erased" in home.run("ask", "and now?", "--session", judged, code=2)


@pytest.mark.timeout(600)
def test_what_cannot_be_erased_is_refused_in_one_line_and_nothing_changes(home: Home) -> None:
    plain = home.judge(long_case())["session"]
    assert home.words_in_log() == {plain}
    said = home.run("erase", plain, "--reason", "request 4711", "--yes", code=1)
    assert said.count("\n") == 1
    assert "was never sealed" in said
    assert "VERDICTLOG_SEAL" in said
    assert "there is no session" in home.run("erase", "e2611-none", "--reason", "x", "--yes", code=3)

    sealed = home.judge({**long_case(), "question": "Is the quetzal pool out of connections?"}, "--seal")["session"]
    assert "--yes" in home.run("erase", sealed, "--reason", "request 4711", code=2)
    assert "--reason" in home.run("erase", sealed, "--yes", code=2)
    elsewhere = str(home.folder / "other-keys")
    assert "other-keys" in home.run("erase", sealed, "--reason", "x", "--yes", code=1, VERDICTLOG_KEYS=elsewhere)
    assert "the key is not here" in home.run("show", sealed, VERDICTLOG_KEYS=elsewhere)
    assert "no key" in home.run("rejudge", sealed, VERDICTLOG_KEYS=elsewhere)
    assert "no key" in home.run("ask", "and now?", "--session", sealed, code=4, VERDICTLOG_KEYS=elsewhere)
    assert "quetzal" in home.run("show", sealed)


@pytest.mark.timeout(600)
def test_an_erasure_that_was_killed_is_told_and_brought_to_its_end(home: Home) -> None:
    session = home.judge(long_case(), "--seal")["session"]
    home.level()
    home.append(session, TextErased(who="dba", why="request 4711"))
    assert "unfinished" in home.run("verify", code=1)
    assert "unfinished" in home.run("doctor", code=1)
    again = home.run("erase", session)
    assert "by dba: request 4711" in again
    assert "destroyed now" in again
    assert home.words_in_tables() == set()
    assert "BAD" not in home.run("verify") + home.run("doctor")
    once_more = home.run("erase", session, "--reason", "another", "--yes")
    assert "by dba: request 4711" in once_more
    assert "destroyed now" not in once_more
    assert home.sql("SELECT count(*) FROM erasures") == [(1,)]


@pytest.mark.timeout(600)
def test_a_fork_of_a_sealed_session_is_sealed_and_named_when_its_origin_is_erased(home: Home) -> None:
    session = home.judge(long_case(), "--seal")["session"]
    count = home.told("show", session, "--json")["n"]
    fork = home.told("fork", session, "--at", str(count), "--json")["session"]
    assert home.words_in_log() == set()
    told = home.run("erase", session, "--reason", "request 4711", "--yes")
    assert f"erase {fork}" in told
    assert "payments-pool" in home.run("show", fork)
    home.run("erase", fork, "--reason", "request 4711", "--yes")
    assert home.words_in_tables() == set()


@pytest.mark.timeout(600)
def test_while_up_holds_the_read_model_a_foreign_session_is_sealed_and_erased_everywhere(home: Home) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("VERDICTLOG_", "OPENAI_"))}
    up = subprocess.Popen(
        [sys.executable, "-m", "handlers.cli.main", "up", "--seal", "--data", str(home.folder)],
        env={**clean, "NATS_URL": home.server.url}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert up.stderr is not None
        assert "intake" in up.stderr.readline()
        session = "e2611-foreign"
        said = asyncio.run(foreign(home.server.url, session))
        assert said["effective_verdict"] == "PASS"
        assert home.words_in_log() == set()
        published = home.read_model.with_suffix(".snapshot.duckdb")
        until(lambda: "answers" in held(home, published))
        told = home.told("erase", session, "--reason", "request 4711", "--yes", "--json")
        assert told["read_model_held_by"] is None
        assert holds_no_text(published, told["n"])
        assert home.words_in_tables(published) == set()
        late = asyncio.run(request(home.server.url, session, "channel-written", {"channel": "c", "value": 1}))
        assert "was erased" in late["error"]["why"]
        assert up.poll() is None
    finally:
        up.terminate()
        up.wait(30)
    assert home.words_in_tables() == set()
    assert home.words_in_files() == set()


@pytest.mark.timeout(300)
def test_a_session_whose_key_file_was_damaged_is_told_and_can_still_be_erased(home: Home) -> None:
    session = home.judge(long_case(), "--seal")["session"]
    [path] = home.folder.glob(f"keys*/{session}.key")
    path.write_bytes(path.read_bytes()[:10])
    assert f"key file {path} is 10 bytes long" in home.run("show", session, code=1)
    assert "--force" in home.run("erase", session, "--reason", "request 4711", "--yes", code=1)
    assert path.exists()
    home.run("erase", session, "--reason", "request 4711", "--yes", "--force")
    assert home.words_in_tables() == set()
    home.run("verify")


@pytest.mark.timeout(300)
def test_roles_that_meet_an_erased_session_leave_it_alone_and_stop_when_told(home: Home) -> None:
    session = home.judge(long_case(), "--seal")["session"]
    home.run("erase", session, "--reason", "request 4711", "--yes")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("VERDICTLOG_", "OPENAI_"))}
    up = subprocess.Popen(
        [sys.executable, "-m", "handlers.cli.main", "up", "--data", str(home.folder)],
        env={**clean, "NATS_URL": home.server.url}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert up.stderr is not None
    assert "intake" in up.stderr.readline()
    time.sleep(3)  # every old question is delivered to the deadline anew
    up.terminate()
    _, told = up.communicate(timeout=60)
    assert "NoKey" not in told
    assert up.returncode == 0


@pytest.mark.timeout(600)
def test_an_open_turn_is_ended_first_and_only_if_that_is_wanted(home: Home) -> None:
    session = "e2611-open"
    up = subprocess.Popen(
        [sys.executable, "-m", "handlers.cli.main", "worker", "intake", "--seal", "--data", str(home.folder)],
        env={**os.environ, "NATS_URL": home.server.url}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert up.stderr is not None
        assert "intake" in up.stderr.readline()
        asyncio.run(request(home.server.url, session, "question-asked", {"question": QUESTION}))
    finally:
        up.terminate()
        up.wait(30)
    assert "still open" in home.run("erase", session, "--reason", "request 4711", "--yes", code=1)
    home.run("erase", session, "--reason", "request 4711", "--yes", "--force")
    shown = home.told("show", session, "--json")
    assert [event["type"] for event in shown["events"]] == [
        "question-asked",
        "turn-cancelled",
        "round-routed",
        "answer-given",
        "text-erased",
    ]
    assert not shown["turns"][0]["open"]
    assert "BAD" not in home.run("verify") + home.run("doctor")


@pytest.mark.timeout(600)
def test_in_an_epoch_that_was_dropped_the_key_is_destroyed_and_the_archive_opens_no_more(tmp_path: Path) -> None:
    data, session = tmp_path / "data", "e2610-foreign"

    def told(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    async def recorded() -> None:
        async with local_server(data) as url:
            client = await connect(url)
            await topology.ensure(client.jetstream())
            log = JetStreamLog(client, keys=FileKeys(data / "keys"), seal=True)
            october = datetime(2026, 10, 14, 10, 42, tzinfo=UTC)
            await log.append(session, passed().drafts, Head(), october)
            await disconnect(client)

    asyncio.run(recorded())
    told("admin", "archive", "e2610", str(data / "archive" / "e2610"))
    told("admin", "drop", "e2610", "--archive", str(data / "archive" / "e2610"), "--yes")
    assert "why does payment" in told("show", session)
    assert "keep what is printed here" in told("erase", session, "--reason", "request 4711", "--yes")
    assert "why does payment" not in told("show", session)
    assert "was erased" in told("erase", session)
