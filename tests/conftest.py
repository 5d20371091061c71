"""Shared by all tests: a real nats-server, logs on it, and the table of scenarios.

Fixtures: `nats_server` (one a worker, a plain NatsServer), `nats_url`, `fresh_server` (one a test, empty),
`client` and `jetstream_log` (asynchronous: mark the module with `pytest.mark.anyio`), `session_id` (unique in a run).
`pytest --scenarios` prints which tests hold which row of tests/scenarios.md; a row without a passing test fails the run.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from nats.aio.client import Client

from streams import topology
from streams.jetstream import JetStreamLog, connect, disconnect
from streams.server import NatsServer

# No property is a timed test: on a loaded machine hypothesis' own limit for one example fails at random.
settings.register_profile("verdictlog", deadline=None)
settings.load_profile("verdictlog")

SCENARIOS = Path(__file__).parent / "scenarios.md"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[NatsServer]:
    folder = tmp_path / "nats"
    folder.mkdir()
    server = NatsServer(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def nats_url(nats_server: NatsServer) -> str:
    return nats_server.url


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    connection = await connect(nats_url)
    await topology.ensure(connection.jetstream())
    yield connection
    await disconnect(connection)


@pytest.fixture
async def jetstream_log(client: Client) -> JetStreamLog:
    return JetStreamLog(client)


@pytest.fixture
def session_id() -> str:
    return f"e2611-{uuid.uuid4().hex[:12]}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scenarios", action="store_true", help="print scenario -> tests; fail for one without any")


def pytest_configure(config: pytest.Config) -> None:
    # Under xdist only the controller sees the reports of all workers.
    if config.getoption("--scenarios") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ScenarioTable(SCENARIOS.read_text(encoding="utf-8")), "scenario-table")


def pytest_itemcollected(item: pytest.Item) -> None:
    # User properties travel with the reports, markers do not.
    for marker in item.iter_markers("scenario"):
        item.user_properties += [("scenario", name) for name in marker.args]


class ScenarioTable:
    """Which tests hold which row, and how they went."""

    def __init__(self, text: str) -> None:
        self.rows = re.findall(r"^\| ([A-Z]+-\d+) \|", text, re.MULTILINE)
        self.outcomes: dict[str, dict[str, str]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, row in report.user_properties:
            if name == "scenario" and (report.when == "call" or not report.passed):
                self.outcomes[str(row)][report.nodeid] = report.outcome

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and (self.open_rows() or self.unknown_rows()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def open_rows(self) -> list[str]:
        return [row for row in self.rows if "passed" not in self.outcomes.get(row, {}).values()]

    def unknown_rows(self) -> list[str]:
        return sorted(set(self.outcomes) - set(self.rows))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        write("")
        for row in [*self.rows, *self.unknown_rows()]:
            tests = self.outcomes.get(row, {})
            failed = sorted(node for node, outcome in tests.items() if outcome == "failed")
            result = "FAILED" if failed else "passed" if row not in self.open_rows() else "NO PASSING TEST"
            if row not in self.rows:
                result = "NOT A ROW OF scenarios.md"
            functions = sorted({node.removeprefix("tests/").partition("[")[0] for node in tests})
            write(f"{row:8} {result:16} {', '.join(functions)}")
        held = len(self.rows) - len(self.open_rows())
        write(f"{held} of {len(self.rows)} scenarios held by a passing test")
