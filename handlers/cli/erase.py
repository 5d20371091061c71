"""`verdictlog erase`: a sealed session's text made unreadable for good, wherever this installation keeps it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.main import FAILED, USAGE, Refused, one_line
from handlers.cli.options import data_option, json_option, recorded_reason, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from streams.envelope import Event
    from streams.session import SessionState

HOLDER_S = 60.0  # for the process that holds the read model to make it anew
LOOK_EVERY_S = 0.5
ROLE = "operator"
ELSEWHERE = (
    "what was exported before (bundles, Parquet, snapshots) and copies of the keys folder still hold the text, or open "
    "it: export again, and destroy the old ones"
)


@click.command()
@click.argument("session")
@click.option("--reason", default=None, help="Why; it is recorded in the clear, and stays.")
@click.option("--who", default="operator", envvar="USER", help="Who erases (default: $USER).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Cancel a turn that is open; record it also where the key is not here.")
@json_option
@data_option
def erase(session: str, data: Path | None, as_json: bool, **given: Any) -> int:
    """Erase the text of SESSION: its key is destroyed, the read model made anew. Verdicts and the chain stay.

    For sessions that were sealed (VERDICTLOG_SEAL). Safe to repeat: an erasure that was cut is brought to its end.
    """
    return run(_erase(session, data=data, as_json=as_json, **given))


async def _erase(
    session: str, reason: str | None, who: str, yes: bool, force: bool, as_json: bool, data: Path | None
) -> int:
    from handlers.cli.runtime import opened
    from streams.identity import epoch_of

    settings = settings_from(data=data)
    async with opened(settings) as station:
        state = await _read(station, session, force)
        before = _erasure(state)
        archived = epoch_of(session) in await station.log.dropped_epochs()
        # No event can follow in an epoch that was dropped: there only the key's tombstone tells.
        done = archived and station.keys.destroyed(session)
        said = None
        if before is None and not done:
            _check(station, state, force)
            said = _reason(reason, settings.redact)
            _confirm(session, yes)
            if not archived:
                state = await _recorded(station, session, said, who, force)
        erasure = _erasure(state)
        found = await asyncio.to_thread(station.keys.drop, session)
        holder = await _forgotten(station, erasure.seq if erasure is not None else 0)
        told = {
            "session": session,
            "erased_at": erasure.time if erasure is not None else None,
            "n": erasure.n if erasure is not None else None,
            **(
                erasure.data.model_dump(mode="json")
                if erasure is not None
                else {"who": None if done else who, "why": said}
            ),
            "before": before is not None or done,
            "key_destroyed": found,
            "read_model_held_by": holder,
            "forks": await _forks(station, session),
        }
    _print(told, as_json)
    return 0 if holder is None else FAILED


async def _read(station: Station, session: str, force: bool) -> SessionState:
    """The session; where its key file is no key of it, without: then nobody can read it, and it can be erased."""
    from handlers.cli.audit import state_of
    from streams.session import BrokenChain

    try:
        return await state_of(station, session, None)
    except BrokenChain as broken:
        if not force:
            raise Refused(f"{broken}: erase it all the same with --force") from None
    await asyncio.to_thread(station.keys.drop, session)
    return await state_of(station, session, None)


def _check(station: Station, state: SessionState, force: bool) -> None:
    name = state.session
    if not state.head.sealed:
        raise Refused(
            f"session {name} was never sealed, its text is part of the log for good: VERDICTLOG_SEAL=true seals "
            "sessions that begin from then on"
        )
    if station.keys.get(name) is None and not force:
        raise Refused(
            f"the key of session {name} is not in {station.keys.folder}: erase where it is (VERDICTLOG_KEYS), or "
            "record with --force that it is gone"
        )
    if state.open_turn is not None and not force:
        raise Refused(
            f"turn {state.open_turn.number} of session {name} is still open: wait for its answer, or cancel it with --force"
        )


def _reason(reason: str | None, redact: bool) -> str:
    if reason is None or not reason.strip():
        raise click.UsageError("--reason: say why; it is recorded in the clear, and stays")
    return recorded_reason(reason, redact)


def _confirm(session: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused("nobody can be asked here: give --yes", USAGE)
    click.confirm(f"The text of {session} can never be read again. Erase it?", abort=True, err=True)


async def _recorded(station: Station, session: str, why: str, who: str, force: bool) -> SessionState:
    """The session with its erasure recorded, whoever recorded it; an open turn is ended before."""
    from handlers.cli.runtime import now
    from streams.envelope import Draft
    from streams.events import TextErased
    from streams.log import WrongExpectedVersion
    from streams.session import fold

    while True:
        state = fold(session, await station.log.read(session))
        if state.erased:
            return state
        try:
            if state.open_turn is not None and not state.hidden:
                _check(station, state, force)
                await _cancelled(station, state, who)
                continue
            draft = Draft(TextErased(who=who, why=why), ROLE)
            return fold(session, [*state.events, *await station.log.append(session, [draft], state.head, now())])
        except WrongExpectedVersion:
            continue


async def _cancelled(station: Station, state: SessionState, who: str) -> None:
    """The open turn cancelled and answered for, by the Router of this process or of another one."""
    from handlers import flow
    from handlers.cli.runtime import make_workshop, now
    from handlers.react import Reactor
    from handlers.roles import ROLES
    from streams.envelope import Draft
    from streams.events import TurnCancelled

    turn = state.open_turn
    assert turn is not None
    ended = [e for e in state.events if e.turn == turn.number and e.type in {"turn-cancelled", "turn-failed"}]
    if not ended:
        cancelled = TurnCancelled(who=who, why="its text is to be erased")
        draft = Draft(cancelled, ROLE, turn.number, flow.current_round(turn))
        ended = await station.log.append(state.session, [draft], state.head, now())
    await Reactor(station.log, make_workshop(station), now).react(ROLES["router"], ended[-1])


async def _forgotten(station: Station, seq: int) -> str | None:
    """Read model and snapshot made anew, here or by the process that holds them; who still holds them after a while."""
    from projections.erasure import forget, holds_no_text
    from projections.store import StoreBusy

    ends = asyncio.get_running_loop().time() + HOLDER_S
    while True:
        try:
            await forget(station.read_model, station.published, station.log)
        except StoreBusy as busy:
            if await asyncio.to_thread(holds_no_text, station.published, seq):
                return None
            if asyncio.get_running_loop().time() >= ends:
                return busy.holder
            await asyncio.sleep(LOOK_EVERY_S)
        else:
            return None


async def _forks(station: Station, session: str) -> list[str]:
    from handlers.cli.readmodel import levelled
    from projections.erasure import forks_of
    from projections.store import StoreBusy, connect

    try:
        async with levelled(station) as store:
            return forks_of(store.cursor(), session)
    except StoreBusy:
        if not station.published.exists():
            return []
        with connect(station.published, read_only=True) as connection:
            return forks_of(connection, session)


def _erasure(state: SessionState) -> Event | None:
    return next((event for event in state.events if event.type == "text-erased"), None)


def _print(told: dict[str, Any], as_json: bool) -> None:
    holder = told["read_model_held_by"]
    if as_json:
        import orjson

        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
    else:
        when = ("was erased" if told["before"] else "erased") + (f" at {told['erased_at']}" if told["n"] else "")
        by = "" if told["who"] is None else f" by {told['who']}: {told['why']}"
        click.echo(one_line(f"{told['session']}: text {when}{by}"))
        if not told["n"]:
            click.echo("its epoch was dropped from the log, so no event says so: keep what is printed here")
        if told["before"] and told["key_destroyed"]:
            click.echo("its key was still there: destroyed now")
        if holder is None:
            click.echo("read model made anew; verdicts, counts and the chain are as they were")
        for fork in told["forks"]:
            click.echo(f"a fork holds a copy: {program()} erase {fork}")
        click.echo(ELSEWHERE, err=True)
    if holder is not None:
        click.echo(
            f"verdictlog: {one_line(holder)} holds the read model, and has not made it anew: end it, then erase again",
            err=True,
        )
