"""`verdictlog fork`: a new session from a moment of another one."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.main import NOT_FOUND, Refused
from handlers.cli.options import data_option, json_option, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from streams.envelope import Draft
    from streams.session import SessionState


@click.command()
@click.argument("session")
@click.option("--at", type=click.IntRange(min=1), required=True, metavar="N", help="After event N of the session.")
@click.option("--why", default="", help="What the fork is for; it is recorded.")
@click.option("--who", default="operator", envvar="USER", help="Who forks (default: $USER).")
@json_option
@data_option
def fork(session: str, at: int, why: str, who: str, as_json: bool, data: Path | None) -> int:
    """Make a new session from SESSION's first N events. A turn that was open there goes on; SESSION is left as it is."""
    return run(_fork(session, at, why, who, as_json, data))


async def _fork(session: str, at: int, why: str, who: str, as_json: bool, data: Path | None) -> int:
    from handlers import flow
    from handlers.cli.audit import state_of
    from handlers.cli.runtime import opened
    from handlers.fork import forked
    from handlers.report import exit_code, turn_report
    from streams.topology import ROLES

    async with opened(settings_from(data=data), ROLES) as station:
        whole = await state_of(station, session, None)
        if whole.hidden or whole.erased:
            raise Refused(f"the text of session {session} was erased, or its key is not here: there is nothing to copy")
        if at > whole.head.n:
            raise Refused(f"--at {at}: session {session} ends with event {whole.head.n}", NOT_FOUND)
        origin = whole.as_of(at)
        name = new_session()
        drafts = forked(origin.events, name, (session, origin.head), who, why)
        state = await append_all(station, name, drafts, whole.head.sealed)
        turn = state.open_turn
        if not as_json:
            click.echo(f"{name}: forked from {session} at event {at}")
        goes_on = turn is not None and not flow.external(turn)
        if goes_on:
            state = await _to_the_end(station, state, as_json)
    report = turn_report(state, state.turns[-1]) if goes_on else None
    if as_json:
        import orjson

        told = {"session": name, "origin": {"session": session, "n": at, "hash": origin.head.hash}, "report": report}
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
    elif goes_on:
        from handlers.cli.turn import print_answer

        print_answer(state, state.turns[-1])
    elif turn is not None:
        click.echo(f"its open turn waits for its agent: requests go to vl-in.{name}.<event-type>", err=True)
    else:
        click.echo(f"its last turn has ended: {program()} ask QUESTION --session {name}", err=True)
    return exit_code(state.turns[-1]) if goes_on else 0


async def _to_the_end(station: Station, state: SessionState, quiet: bool) -> SessionState:
    from handlers.cli.live import Live
    from handlers.cli.runtime import working
    from handlers.cli.turn import Watcher

    watcher = Watcher(station, state.session, Live(quiet))
    watcher.state = state
    async with working(station) as app:
        app.watch(state.session, watcher.on_append)
        return await watcher.until_answered(len(state.turns), app)


def new_session() -> str:
    """The id of a session that nobody else makes."""
    from handlers.cli.runtime import now
    from streams.identity import session_id

    return session_id(now(), secrets.token_hex(6))


async def append_all(station: Station, session: str, drafts: list[Draft], sealed: bool) -> SessionState:
    """A whole new session, appended; `sealed` whatever the setting is, because what it copies was."""
    from handlers.cli.runtime import now
    from streams.envelope import Head
    from streams.session import fold

    return fold(session, await station.log.append(session, drafts, Head(sealed=sealed), now()))
