"""`verdictlog parked`: what a role gave up on, and what an operator does about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.main import NOT_FOUND, Refused, one_line
from handlers.cli.options import data_option, json_option, recorded_reason, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from streams.session import Parked, SessionState

QUOTED = 160
ALREADY = "nothing was changed"


@click.group(invoke_without_command=True)
@click.option("--all", "every", is_flag=True, help="Those that were closed, too.")
@json_option
@data_option
@click.pass_context
def parked(ctx: click.Context, every: bool, as_json: bool, data: Path | None) -> int:
    """List events that a role gave up on (its turn ended by that), with the error; --json: one object a line."""
    if ctx.invoked_subcommand is None:
        return run(_list(every, as_json, data))
    if every:
        raise click.UsageError(f"--all belongs behind `{ctx.invoked_subcommand}`")
    ctx.obj = {"as_json": as_json, "data": data}
    return 0


def closing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of the commands that close entries."""
    options: tuple[Callable[..., Any], ...] = (
        click.argument("names", nargs=-1, metavar="[SESSION|EVENT]..."),
        click.option("--all", "every", is_flag=True, help="Every open entry."),
        click.option("--reason", default="", help="Why; it is recorded."),
        click.option("--who", default="operator", envvar="USER", help="Who does it (default: $USER)."),
        json_option,
        data_option,
        click.pass_obj,
    )
    for option in options:
        command = option(command)
    return command


@parked.command("retry")
@closing
def retry(
    group: dict[str, Any], names: tuple[str, ...], every: bool, as_json: bool, data: Path | None, reason: str, who: str
) -> int:
    """Ask the question of a parked turn anew, as a new turn of its session, and wait for the answer.

    One: the answer, and exit code 0 PASS, 10 LOW_CONFID, 20 REJECT, 1 no judgement. Several: a line each; 0 if each was
    judged, whatever the verdicts, else 1.
    """
    from handlers.cli.retrying import retried

    _check(names, every)
    as_json, data = as_json or group["as_json"], data or group["data"]
    return run(retried(settings_from(data=data), names, every, who, reason, as_json))


@parked.command("dismiss")
@closing
def dismiss(
    group: dict[str, Any], names: tuple[str, ...], every: bool, as_json: bool, data: Path | None, reason: str, who: str
) -> int:
    """Close entries, and leave their turns as they are."""
    _check(names, every)
    return run(_dismiss(names, every, as_json or group["as_json"], data or group["data"], reason, who))


def _check(names: tuple[str, ...], every: bool) -> None:
    if bool(names) == every:
        raise click.UsageError("name sessions or events of the list, or give --all")


async def _list(every: bool, as_json: bool, data: Path | None) -> int:
    from handlers.cli.runtime import opened
    from handlers.cli.story import parked_object
    from handlers.parked import told

    async with opened(settings_from(data=data)) as station:
        states = await parked_states(station)
    shown = [(s, e) for s in states for e in s.parked if every or (e.open and not s.erased)]
    for state, entry in sorted(shown, key=lambda pair: pair[1].event.seq):
        if as_json:
            print_line({**parked_object(entry), "question": state.turn(entry.event.turn).question.question})
            continue
        tried, event = entry.data, entry.event
        gave_up = f"{tried.consumer}, {tried.deliveries} deliveries: {tried.error[:QUOTED]}"
        state_told = "its text was erased" if state.erased and entry.open else told(entry)
        click.echo(f"{event.time}  {event.session}  turn {event.turn}  {one_line(gave_up)}")
        click.echo(f"    {event.id}  {one_line(state_told)}")
    if not shown:
        click.echo("nothing is parked" if every else "no parked entry is open", err=True)
    return 0


async def parked_states(station: Station) -> list[SessionState]:
    """Every session in which something was parked; dropped epochs are not looked into."""
    from streams.directget import sessions_with
    from streams.inbox import Inbox
    from streams.session import fold
    from streams.topology import STREAM_NAME

    names = await sessions_with(Inbox(station.client), STREAM_NAME, "handler-parked")
    return [fold(name, await station.log.read(name)) for name in names]


async def named(station: Station, names: tuple[str, ...], every: bool) -> list[Parked]:
    """The entries that a command is about, in order of the log; Refused for a name that is none.

    A session stands for its open entries, or for all where none is open. An event is an entry's own id, or the id of the
    event that could not be handled.
    """
    from handlers.cli.audit import state_of
    from streams.identity import BadSessionId, check_session

    states: list[SessionState] | None = None
    if every:
        states = await parked_states(station)
        found = [e for s in states for e in s.parked if e.open and not s.erased]
        return sorted(found, key=lambda entry: entry.event.seq)
    chosen: dict[str, Parked] = {}
    for name in names:
        try:
            check_session(name)
        except BadSessionId:
            states = await parked_states(station) if states is None else states
            every_entry = [e for s in states for e in s.parked]
            these = [e for e in every_entry if e.event.id == name] or [
                e for e in every_entry if e.data.event_id == name
            ]
        else:
            whole = (await state_of(station, name, None)).parked
            these = [e for e in whole if e.open] or list(whole)
        if not these:
            raise Refused(f"{name}: nothing is parked by that name: `{program()} parked` lists what is", NOT_FOUND)
        chosen |= {entry.event.id: entry for entry in these}
    return sorted(chosen.values(), key=lambda entry: entry.event.seq)


async def _dismiss(names: tuple[str, ...], every: bool, as_json: bool, data: Path | None, reason: str, who: str) -> int:
    from functools import partial

    from handlers.cli.runtime import now, opened
    from handlers.parked import dismiss as decide
    from handlers.parked import resolve, told

    settings = settings_from(data=data)
    why = recorded_reason(reason, settings.redact)
    async with opened(settings) as station:
        entries = await named(station, names, every)
        for entry in entries:
            event = entry.event
            deciding = partial(decide, event_id=event.id, who=who, why=why)
            state, changed = await resolve(station.log, event.session, deciding, now())
            closed = next(one for one in state.parked if one.event.id == event.id)
            said = told(closed) if changed else f"{ALREADY}: {told(closed)}"
            outcome = {
                "session": event.session,
                "turn": event.turn,
                "event_ids": [event.id],
                "outcome": "dismissed" if changed else "already",
                "told": said,
            }
            if as_json:
                print_line(outcome)
            else:
                click.echo(one_line(f"{event.session} turn {event.turn}: {said}"))
    if not entries:
        click.echo("no parked entry is open", err=True)
    return 0


def print_line(value: dict[str, Any]) -> None:
    import orjson

    click.echo(orjson.dumps(value).decode())
