"""`verdictlog parked retry`: parked questions asked anew, and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from handlers import parked
from handlers.cli.live import Live
from handlers.cli.main import FAILED, one_line
from handlers.cli.options import recorded_reason
from handlers.cli.parked import ALREADY, named, print_line
from handlers.cli.runtime import now, opened, working
from handlers.cli.turn import Watcher, print_answer
from handlers.intake import SessionErased, TurnIsOpen
from handlers.report import exit_code, turn_report
from streams.log import EpochDropped
from streams.sealing import NoKey
from streams.session import SessionState
from streams.topology import ROLES

if TYPE_CHECKING:
    from handlers.app import App
    from handlers.cli.runtime import Station
    from handlers.settings import Settings

AT_ONCE = 16  # sessions; the turns of one follow one another
REFUSALS = (parked.NotRetried, TurnIsOpen, SessionErased, EpochDropped, NoKey)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one parked turn. `new_turn`: the one that asks it anew; `error`: why it could not be asked."""

    session: str
    turn: int
    state: SessionState | None = None
    changed: bool = False
    new_turn: int | None = None
    error: Exception | None = None
    waited: bool = False

    @property
    def waits(self) -> bool:
        """Whether an answer is still to come."""
        return self.state is not None and self.new_turn is not None and self.state.turn(self.new_turn).open

    @property
    def answered(self) -> bool:
        """Whether this command has an answer to show: it asked, or waited for what another one had asked."""
        return (self.changed or self.waited) and self.new_turn is not None

    @property
    def said(self) -> str:
        """In words, for a line."""
        if self.state is None:
            return str(self.error)
        closed = parked.entries(self.state, self.turn)[0]
        return parked.told(closed) if self.changed else f"{ALREADY}: {parked.told(closed)}"


async def retried(settings: Settings, names: tuple[str, ...], every: bool, who: str, reason: str, as_json: bool) -> int:
    """Ask anew what `names` mean, print what came of it, and return the exit code."""
    give = partial(parked.retry, who=who, why=recorded_reason(reason, settings.redact))
    async with opened(settings, ROLES) as station:
        entries = await named(station, names, every)
        turns: dict[str, list[int]] = {}
        for entry in entries:
            numbers = turns.setdefault(entry.event.session, [])
            if entry.event.turn not in numbers:
                numbers.append(entry.event.turn)
        single = sum(map(len, turns.values())) == 1
        code = 0
        async with aclosing(_outcomes(station, turns, give, quiet=as_json or not single)) as outcomes:
            async for outcome in outcomes:
                if single and outcome.error is not None:
                    raise outcome.error
                code = max(code, _print(outcome, as_json, single))
    if not entries:
        click.echo("no parked entry is open", err=True)
    return code


async def _outcomes(
    station: Station, turns: dict[str, list[int]], give: Any, quiet: bool
) -> AsyncGenerator[Outcome, None]:
    """Every turn's outcome, sessions side by side. Roles are at work here only if something is to be waited for."""
    # Asked before any role works: what is refused because a turn is open is not changed by this command's own roles.
    first = {session: await _asked(station, session, numbers[0], give) for session, numbers in turns.items()}
    limit = asyncio.Semaphore(AT_ONCE)
    async with AsyncExitStack() as stack:
        app = None
        if any(one.waits or len(turns[one.session]) > 1 for one in first.values()):
            app = await stack.enter_async_context(working(station))

        async def of_session(session: str) -> list[Outcome]:
            found = []
            async with limit:
                for number in turns[session]:
                    outcome = first.pop(session, None) or await _asked(station, session, number, give)
                    found.append(await _answered(station, app, outcome, quiet) if app and outcome.waits else outcome)
            return found

        work = [asyncio.ensure_future(of_session(session)) for session in turns]
        stack.callback(lambda: [one.cancel() for one in work])
        for one in work:
            for outcome in await one:
                yield outcome


async def _asked(station: Station, session: str, turn: int, give: Any) -> Outcome:
    try:
        state, changed = await parked.resolve(station.log, session, partial(give, turn=turn), now())
    except REFUSALS as error:
        return Outcome(session, turn, error=error)
    return Outcome(session, turn, state, changed, parked.asked_again(state, turn))


async def _answered(station: Station, app: App, outcome: Outcome, quiet: bool) -> Outcome:
    """The outcome with its answer. Who finds a turn open that another command asked waits for it, too."""
    assert outcome.state is not None
    assert outcome.new_turn is not None
    live = Live(quiet)
    live.note(f"session {outcome.session}, turn {outcome.turn}: {outcome.said}")
    watcher = Watcher(station, outcome.session, live)
    watcher.state = outcome.state
    app.watch(outcome.session, watcher.on_append)
    try:
        return replace(outcome, state=await watcher.until_answered(outcome.new_turn, app), waited=True)
    finally:
        app.unwatch(outcome.session)


def _print(outcome: Outcome, as_json: bool, single: bool) -> int:
    state, number = outcome.state, outcome.new_turn
    turn = state.turn(number) if state is not None and number is not None and outcome.answered else None
    report = turn_report(state, turn) if state is not None and turn is not None else None
    if as_json:
        kind = "refused" if state is None else "retried" if turn is not None else "already"
        ids = [] if state is None else [entry.event.id for entry in parked.entries(state, outcome.turn)]
        print_line(
            {
                "session": outcome.session,
                "turn": outcome.turn,
                "event_ids": ids,
                "outcome": kind,
                "told": outcome.said,
                "new_turn": number,
                "report": report,
            }
        )
    elif state is not None and turn is not None and single:
        print_answer(state, turn)
    else:
        verdict = "" if report is None else f"{report['effective_verdict'] or 'NO VERDICT'}, "
        click.echo(one_line(f"{outcome.session} turn {outcome.turn}: {verdict}{outcome.said}"))
    if turn is None:
        return FAILED if outcome.error is not None else 0
    code = exit_code(turn)
    return code if single else FAILED if code == FAILED else 0
