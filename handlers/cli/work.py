"""`up` and `worker`: roles at work until told to stop."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.options import data_option, seal_option, settings_from
from handlers.cli.process import INTERRUPTED, run

if TYPE_CHECKING:
    from handlers.app import App

TELL_AGAIN_S = 30.0
ROLE_NAMES = ("planner", "executor", "gatekeeper", "evaluator", "verifier", "router", "deadline")


@click.command()
@seal_option
@data_option
def up(seal: bool | None, data: Path | None) -> int:
    """Run every role, the intake and the projector, on NATS_URL or on the local server of the data folder."""
    return run(_run((*ROLE_NAMES, "intake"), seal, data, project=True))


@click.command()
@click.argument("roles", nargs=-1, required=True, type=click.Choice([*ROLE_NAMES, "intake", "projector"]))
@seal_option
@data_option
def worker(roles: tuple[str, ...], seal: bool | None, data: Path | None) -> int:
    """Run ROLES, beside others elsewhere: any number of each."""
    chosen = tuple(role for role in roles if role != "projector")
    return run(_run(chosen, seal, data, project="projector" in roles))


async def _run(chosen: tuple[str, ...], seal: bool | None, data: Path | None, project: bool) -> int:
    from contextlib import AsyncExitStack

    from handlers.cli.runtime import opened, receiving, working

    roles = tuple(role for role in chosen if role != "intake")

    from streams.jetstream import without_secrets

    stopping = asyncio.Event()
    loop, code = asyncio.get_running_loop(), 0

    def interrupted() -> None:
        nonlocal code
        code = INTERRUPTED
        stopping.set()

    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_signal_handler(signal.SIGINT, interrupted)
    async with AsyncExitStack() as stack:
        station = await stack.enter_async_context(opened(settings_from(data=data, seal=seal), roles, begins=True))
        waiting: set[asyncio.Future[object]] = {asyncio.ensure_future(stopping.wait())}
        if roles:
            app = await stack.enter_async_context(working(station, roles))
            waiting.add(asyncio.ensure_future(app.fault))
            waiting.add(asyncio.ensure_future(_tell_full(app)))
        if project:
            from handlers.cli.projecting import projecting

            projector = await stack.enter_async_context(projecting(station, alone=not chosen))
            waiting.add(projector)
        if "intake" in chosen:
            await stack.enter_async_context(receiving(station))
        names = [*chosen, *(["projector"] if project else [])]
        click.echo(f"running {', '.join(names)} on {without_secrets(station.url)}; data in {station.data}", err=True)
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for finished in done:
            outcome = finished.result()
            if isinstance(outcome, Exception):
                raise outcome
    return code


async def _tell_full(app: App) -> None:
    """Say that the log has no room, for as long as it has none: work goes on when somebody makes some."""
    while True:
        click.echo(f"verdictlog: {await app.full_from_now()}", err=True)
        await asyncio.sleep(TELL_AGAIN_S)
