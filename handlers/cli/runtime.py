"""The composition root: a log to stand on (local mode or NATS_URL), and roles at work on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from handlers.cli.archived import ArchivedLog
from handlers.cli.main import NOT_FOUND, Refused
from handlers.cli.process import program
from handlers.settings import Settings
from projections.shelf import Shelf
from streams import topology
from streams.events import Sources
from streams.jetstream import JetStreamLog, connect, disconnect, options
from streams.keys import FileKeys
from streams.local import announced, local_server, server_folder

if TYPE_CHECKING:
    from nats.aio.client import Client

    from handlers.agents.protocol import Agents
    from handlers.app import App
    from handlers.cli.archived import Told
    from handlers.evidence.protocol import Tool
    from handlers.workshop import TurnWorkshop


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Station:
    """An open log, and how it was reached."""

    settings: Settings
    url: str
    client: Client
    log: JetStreamLog

    @property
    def data(self) -> Path:
        return self.settings.data

    @property
    def read_model(self) -> Path:
        return self.settings.data / f"verdictlog{self.settings.of_server}.duckdb"

    @property
    def published(self) -> Path:
        """The snapshot that whoever writes the read model keeps for readers."""
        return self.settings.data / f"verdictlog{self.settings.of_server}.snapshot.duckdb"

    @property
    def shelf(self) -> Shelf:
        """Where the archives of dropped epochs are looked for."""
        return Shelf(self.settings.archives_folder)

    @property
    def keys(self) -> FileKeys:
        """Keys of sealed sessions: beside the log, never in it."""
        return FileKeys(self.settings.keys_folder)

    @property
    def salt(self) -> bytes | None:
        """What ids that are derived from text are made with, where text is sealed."""
        return self.keys.salt() if self.settings.seal else None


@asynccontextmanager
async def opened(settings: Settings, roles: Iterable[str] = (), *, begins: bool = False) -> AsyncIterator[Station]:
    """Connect to NATS_URL, or start or join the local server of the data folder; the streams exist, and the
    consumers of a process that runs `roles`. `begins`: where there is no local data yet it is begun; else Refused."""
    settings = at_home(settings)
    async with reached(settings, begins=begins) as (url, client):
        await topology.ensure(client.jetstream(), roles)
        bare = Station(settings, url, client, JetStreamLog(client))
        log = ArchivedLog(client, bare.shelf, _teller(), keys=bare.keys, seal=settings.seal)
        yield replace(bare, log=log)


def at_home(settings: Settings) -> Settings:
    """The settings; where NATS_URL is the address of the data folder's own running server, those of local mode: its
    keys, archives and read model are that log's."""
    given = urlsplit(settings.nats_url or "")
    own = (
        urlsplit(announced(server_folder(settings.data)) or "")
        if given.hostname in {"127.0.0.1", "localhost"}
        else None
    )
    try:
        same = own is not None and given.port is not None and given.port == own.port
    except ValueError:
        same = False
    return settings.model_copy(update={"nats_url": None}) if same else settings


@asynccontextmanager
async def reached(settings: Settings, *, begins: bool = False) -> AsyncIterator[tuple[str, Client]]:
    """(URL, connection) of NATS_URL or of the local server; what stands on it is as it is. `begins`: as in `opened`."""
    async with AsyncExitStack() as stack:
        url = settings.nats_url
        if url is None:
            if not begins:
                _there(settings.data)
            url = await stack.enter_async_context(local_server(settings.data))
        client = await connect(url, settings.nats_credentials)
        stack.push_async_callback(disconnect, client)
        yield url, client


def _there(data: Path) -> None:
    # A file in the folder's place is the server's to complain of.
    if not data.exists() or (data.is_dir() and not server_folder(data).exists()):
        raise Refused(
            f"no data in {data}: name its folder by --data or a server by NATS_URL; `{program()} demo`, `ask` or `judge` "
            "begin one",
            NOT_FOUND,
        )


def _teller() -> Told:
    """Says of each archive, once, that answers come from it."""
    told = set[Path]()

    def tell(session: str, archive: Path) -> None:
        if archive not in told:
            told.add(archive)
            why = "its epoch was dropped from the log, this is from the archive"
            click.echo(f"verdictlog: session {session}: {why} {archive}", err=True)

    return tell


@asynccontextmanager
async def working(
    station: Station,
    roles: Iterable[str] = topology.ROLES,
) -> AsyncIterator[App]:
    """Roles at work on the station's log, until the block ends; a fault of the topology ends it by an error."""
    # FastStream takes more than a second to import: in a thread, so that what is already on its way goes on.
    app_module = await asyncio.to_thread(_import_app)
    from handlers.react import Reactor

    reactor = Reactor(station.log, make_workshop(station), now)
    app: App = app_module.App(
        station.client,
        station.url,
        reactor,
        station.log,
        now,
        roles,
        connect_options=options(station.settings.nats_credentials),
    )
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


@asynccontextmanager
async def receiving(station: Station) -> AsyncIterator[None]:
    """Requests of foreign agents are answered until the block ends."""
    from handlers.intake import Defaults
    from handlers.reception import Reception
    from handlers.redaction import Redactions
    from streams.events import TurnOptions

    settings = station.settings
    options = TurnOptions(
        max_attempts=settings.max_attempts,
        on_exhausted=settings.on_exhausted,
        external_repair_wait_s=settings.external_repair_wait_s,
    )
    defaults = Defaults(settings.chosen_agents, settings.deadline_s, options)
    reception = Reception(station.client, station.log, now, Redactions() if settings.redact else None, defaults)
    await reception.start()
    try:
        yield
    finally:
        await reception.stop()


def _import_app() -> Any:
    from handlers import app

    return app


def make_workshop(station: Station) -> TurnWorkshop:
    """Agents and tools by the station's settings."""
    from handlers.owners import owners_of
    from handlers.workshop import TurnWorkshop

    kinds: dict[str, Callable[[], Agents]] = {
        "offline": _offline,
        "scripted": _offline,
        "openai": lambda: _openai(station.settings),
    }
    return TurnWorkshop(
        station.log,
        kinds,
        partial(open_tools, settings=station.settings),
        partial(owners_of, station.log),
        redact=station.settings.redact,
        now=now,
    )


def open_tools(sources: Sources, settings: Settings) -> dict[str, Tool]:
    """The evidence tools of a turn's sources; BadSource for a path or an address that cannot serve."""
    from handlers.evidence.files import tools_for

    return tools_for(sources, now, settings.accesses, settings.mcp)


def _offline() -> Agents:
    from handlers.agents.offline import OfflineAgents

    return OfflineAgents()


def _openai(settings: Settings) -> Agents:
    from handlers.agents.openai import OpenAIAgents, OpenAISettings

    return OpenAIAgents(OpenAISettings.of(settings))
