"""`sessions`, `show`, `tail`: what happened, from the log itself, at any past moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.main import NOT_FOUND, Refused, one_line, pour, visible
from handlers.cli.options import Seconds, data_option, json_option, settings_from
from handlers.cli.process import run

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from streams.envelope import Event
    from streams.session import SessionState


@click.command()
@click.argument("session")
@click.option(
    "--as-of", "as_of", default=None, metavar="N|TIME", help="After event N of the session, or at a time (UTC)."
)
@json_option
@data_option
def show(session: str, as_of: str | None, as_json: bool, data: Path | None) -> int:
    """Show SESSION: its turns, evidence, checks, verdicts and answers."""
    return run(_show(session, as_of, as_json, data))


async def _show(session: str, as_of: str | None, as_json: bool, data: Path | None) -> int:
    from handlers.cli.runtime import opened
    from handlers.cli.story import session_object, session_text

    async with opened(settings_from(data=data)) as station:
        state = await state_of(station, session, as_of)
    if as_json:
        import orjson

        pour(orjson.dumps(session_object(state), option=orjson.OPT_INDENT_2).decode())
    else:
        pour(session_text(state))
    return 0


async def state_of(station: Station, session: str, as_of: str | None, argument: str = "--as-of") -> SessionState:
    """The session's state, whole or as of a moment, which came by `argument`; Refused if there is no such session or
    moment."""
    from projections import asof
    from streams.identity import BadSessionId
    from streams.session import fold

    try:
        events = await station.log.read(session)
    except BadSessionId as error:
        raise Refused(str(error), NOT_FOUND) from None
    if not events:
        raise Refused(f"there is no session {session}: `verdictlog sessions` lists them", NOT_FOUND)
    if as_of is None:
        return fold(session, events)
    try:
        known = asof.upto(events, asof.parse_moment(as_of))
    except asof.BadMoment as error:
        raise click.UsageError(f"{argument} {error}") from None
    except asof.NoSuchMoment as error:
        raise Refused(f"{argument} {as_of}: {error}", NOT_FOUND) from None
    if not known:
        raise Refused(f"{argument} {as_of}: the session begins with event 1 at {events[0].time}", NOT_FOUND)
    return fold(session, known)


@click.command()
@click.argument("session")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@json_option
@data_option
def diff(session: str, before: str, after: str, as_json: bool, data: Path | None) -> int:
    """Tell what changed in SESSION from moment A to moment B (event numbers or times); B may be the earlier one."""
    return run(_diff(session, before, after, as_json, data))


async def _diff(session: str, before: str, after: str, as_json: bool, data: Path | None) -> int:
    from handlers.cli.runtime import opened
    from handlers.difference import difference, told

    async with opened(settings_from(data=data)) as station:
        moments = [await state_of(station, session, at, named) for named, at in (("A", before), ("B", after))]
    changed = difference(*moments)
    print_object(changed, as_json, told(changed))
    return 0


@click.command()
@click.argument("session")
@click.option("--claim", default=None, help="Only this claim, by its id.")
@click.option("--turn", type=click.IntRange(min=1), default=None, help="Which turn (default: the last).")
@json_option
@data_option
def explain(session: str, claim: str | None, turn: int | None, as_json: bool, data: Path | None) -> int:
    """Explain why each claim of SESSION's answer stands or falls, and what PASS would need."""
    return run(_explain(session, claim, turn, as_json, data))


async def _explain(session: str, claim: str | None, number: int | None, as_json: bool, data: Path | None) -> int:
    from handlers import explain as explained
    from handlers.cli.runtime import opened

    async with opened(settings_from(data=data)) as station:
        state = await state_of(station, session, None)
    if not state.turns or (number or 1) > len(state.turns):
        raise Refused(f"session {session} has no turn {number or 1}", NOT_FOUND)
    try:
        found = explained.explain(state, state.turn(number or len(state.turns)), claim)
    except KeyError:
        raise Refused(f"--claim {claim}: the answer has no such claim", NOT_FOUND) from None
    print_object(found, as_json, explained.told(found))
    return 0


def print_object(value: dict[str, Any], as_json: bool, lines: Iterable[str]) -> None:
    """One JSON object, or its text; nothing in it is obeyed by a terminal."""
    if as_json:
        import orjson

        pour(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
        return
    for line in lines:
        click.echo(visible(line))


@click.command()
@click.option("--session", default=None, help="Only this session's events.")
@click.option(
    "--from", "after", type=click.IntRange(min=0), default=None, help="Begin after this position (0: the beginning)."
)
@click.option("--until-idle", type=Seconds(), default=None, help="End after so many seconds without an event.")
@json_option
@data_option
def tail(session: str | None, after: int | None, until_idle: float | None, as_json: bool, data: Path | None) -> int:
    """Follow events as they are recorded, until interrupted."""
    return run(_tail(session, after, until_idle, as_json, data))


async def _tail(
    session: str | None, after: int | None, until_idle: float | None, as_json: bool, data: Path | None
) -> int:
    from handlers.cli.live import describe
    from handlers.cli.runtime import opened

    def tell(event: Event) -> None:
        if as_json:
            click.echo(event.body.decode())
        else:
            click.echo(f"{event.time}  {event.session}  {event.n:>3}  {event.type:<17} {describe(event)}")

    async with opened(settings_from(data=data)) as station:
        if session is not None and (kept := await _archived(station, session)):
            for event in kept:
                if event.seq > (after or 0):
                    tell(event)
            return 0  # nothing can follow in an epoch that was dropped
        start = after if after is not None else 0 if session or until_idle else await station.log.last_seq()
        await _tell_of_archives(station, start)
        events = aiter(station.log.follow(start))
        while True:
            try:
                async with asyncio.timeout(until_idle):
                    event = await anext(events)
            except TimeoutError:
                return 0
            if session is None or event.session == session:
                tell(event)


async def _archived(station: Station, session: str) -> list[Event]:
    """A session's events where its epoch was dropped; [] for any other one."""
    from streams.identity import BadSessionId, epoch_of

    try:
        dropped = epoch_of(session) in await station.log.dropped_epochs()
    except BadSessionId:
        return []
    return await station.log.read(session) if dropped else []


async def _tell_of_archives(station: Station, start: int) -> None:
    """Say, an epoch a line, what is not in the log any more behind position `start`."""
    for note in (await station.log.state()).dropped:
        if note.last_seq <= start:
            continue
        folder = station.shelf.of(note.epoch)
        where = folder or f"not at {station.shelf.folder / note.epoch}"
        click.echo(
            f"verdictlog: epoch {note.epoch} was archived and dropped: its {note.messages} events of {note.sessions} sessions "
            f"(positions {note.first_seq} to {note.last_seq}) are left out; its archive, which --session reads: {where}",
            err=True,
        )


LISTED = (
    "session", "question", "asked_at", "ended_at", "turns", "rounds",
    "effective_verdict", "groundedness_score", "kind", "fallback_reason",
)  # fmt: skip


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The newest so many.")
@json_option
@data_option
def sessions(limit: int, as_json: bool, data: Path | None) -> int:
    """List sessions, newest first, with question, verdict and score. `show SESSION --json` has all of one."""
    from handlers.cli.readmodel import readable
    from projections.sessions import sessions as newest
    from projections.shelf import overlay
    from projections.store import check_schema, connect, damage_told

    path, archives = run(readable(settings_from(data=data)))
    with damage_told(path), connect(path, read_only=True) as connection:
        check_schema(connection, path)
        if archives:
            overlay(connection, archives)
        found = newest(connection, limit)
    for row in found:
        if as_json:
            import orjson

            click.echo(orjson.dumps({name: getattr(row, name) for name in LISTED}).decode())
            continue
        score = "" if row.groundedness_score is None else f"{row.groundedness_score:.2f}"
        verdict = row.effective_verdict or row.fallback_reason or "open"
        asked = one_line(row.question)[:80]
        click.echo(f"{row.session:<24} {row.asked_at}  {verdict:<12} {score:>5}  {asked}")
    return 0
