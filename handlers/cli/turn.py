"""One turn from the command line: which session it belongs to, its events live, its answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.live import Live
from handlers.cli.main import one_line, visible
from handlers.cli.process import program
from handlers.cli.runtime import Station, now, working
from handlers.intake import ask
from handlers.reasons import reasons, score_told
from handlers.redaction import Redactions
from handlers.report import turn_report
from streams.envelope import Head
from streams.events import QuestionAsked
from streams.identity import epoch
from streams.sealing import digest
from streams.session import SessionState, Turn, evolve, fold

if TYPE_CHECKING:
    from handlers.app import App
    from streams.envelope import Event

POLL_S = 0.5  # for what another process appends; what this one does is seen at once


@dataclass(frozen=True, slots=True)
class Place:
    """The session of a command's question. `turn` is the open one that this very command asked before it was cut."""

    session: str
    turn: int | None = None


async def place_for(station: Station, asked: QuestionAsked) -> Place:
    """The newest session that this very command made if its turn is still open (the command was cut, and goes on where
    it stood), else the next one."""
    fingerprint = digest(station.salt, asked.model_dump_json().encode())[:10]
    base = f"{epoch(now())}-{fingerprint}"

    async def held(k: int) -> SessionState | None:
        events = await station.log.read(f"{base}-{k}")
        return fold(f"{base}-{k}", events) if events else None

    high = 1
    while await held(high) is not None:
        high *= 2
    low = high // 2  # exists, or is 0; `high` does not exist
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if await held(middle) is not None else (low, middle)
    last = await held(low) if low else None
    if last is not None and last.open_turn is not None:
        return Place(f"{base}-{low}", last.open_turn.number)
    return Place(f"{base}-{high}")


async def with_script(station: Station, session: str, asked: QuestionAsked, script: bytes | None) -> QuestionAsked:
    """`asked` in `session` with its script stored: sealed where the session is, or is to be."""
    if script is None:
        return asked
    events = await station.log.read(session)
    key = station.log.key_after(session, events[-1].head if events else Head())
    return asked.model_copy(update={"script": await station.log.put_blob(script, key)})


class Watcher:
    """Sees a session's events in order, each once, whoever appends them."""

    def __init__(self, station: Station, session: str, live: Live) -> None:
        self._station = station
        self._session = session
        self._live = live
        self._news = asyncio.Event()
        self.state = SessionState(session)

    def on_append(self, event: Event) -> None:
        if event.session == self._session:
            if event.n == self.state.head.n + 1:
                self._take([event])
            self._news.set()

    async def until_answered(self, turn: int, app: App) -> SessionState:
        """Wait for the turn's answer; a fault of the roles, or a log that has no room for one, is raised instead."""
        full = app.full_from_now()
        while True:
            await self.refresh()
            if turn <= len(self.state.turns) and not self.state.turn(turn).open:
                return self.state
            self._news.clear()
            waiting: asyncio.Future[object] = asyncio.ensure_future(self._news.wait())
            ends: set[asyncio.Future[Any]] = {waiting, app.fault, full}
            await asyncio.wait(ends, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            for ended in (app.fault, full):
                if ended.done():
                    raise ended.result()
            if turn <= len(self.state.turns) and not self.state.turn(turn).open:
                return self.state

    async def refresh(self) -> None:
        """Read what is there."""
        self._take(await self._station.log.read(self._session))

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if event.n > self.state.head.n:
                self.state = evolve(self.state, event)
                self._live.show(event)


async def run_turn(station: Station, session: str, asked: QuestionAsked, quiet: bool) -> SessionState:
    """Ask in `session`, let all roles of this process work, and wait for the answer."""
    watcher = Watcher(station, session, Live(quiet))
    redactions = Redactions() if station.settings.redact else None
    state = await ask(station.log, session, asked, now(), redactions)
    turn = len(state.turns)
    await watcher.refresh()
    async with working(station) as app:
        app.watch(session, watcher.on_append)
        return await watcher.until_answered(turn, app)


async def answered(
    station: Station,
    app: App,
    place: Place,
    question: QuestionAsked,
    redactions: Redactions | None = None,
) -> SessionState:
    """Ask in a session while roles are at work already, and wait for the answer. Raises TurnIsOpen.

    A turn that was open when the place was looked up may have ended by now, and is not asked again.
    """
    session, turn = place.session, place.turn
    if turn is None:
        turn = len((await ask(station.log, session, question, now(), redactions)).turns)
    watcher = Watcher(station, session, Live(quiet=True))
    app.watch(session, watcher.on_append)
    try:
        return await watcher.until_answered(turn, app)
    finally:
        app.unwatch(session)


def print_answer(state: SessionState, turn: Turn) -> None:
    """The answer's text unchanged, what lowered its verdict, what it rests on (ROU-1), on stdout; where to look on,
    on stderr."""
    answer = turn.answer
    assert answer is not None
    verdict = turn.rounds[-1].routed.effective_verdict if turn.rounds and turn.rounds[-1].routed else None
    colour = {"PASS": "green", "LOW_CONFID": "yellow", "REJECT": "red"}.get(verdict or "", "red")
    click.secho(f"{verdict or 'NO VERDICT'}", fg=colour, bold=True, nl=False)
    report = turn_report(state, turn)
    score = score_told(report) if verdict else ""
    told = [
        answer.kind + (f" ({answer.fallback_reason})" if answer.fallback_reason else ""),
        score and f"score {score}",
    ]
    click.echo(f"  {', '.join(filter(None, told))}\n")
    click.echo(visible(answer.text))
    why = list(reasons(report)) if verdict != "PASS" else []
    if why:
        click.echo("\n  Why:")
    for reason in why:
        click.echo(f"  {one_line(reason)}")
    if answer.citations:
        click.echo("")
        for k, citation in enumerate(answer.citations, 1):
            where = f"{citation.source_invocation_id} {citation.raw_path}"
            click.echo(f"  [{k}] {citation.claim_id}  {one_line(where)}: {one_line(citation.excerpt)}")
    click.echo(f"\nsession {state.session}   look inside: {program()} show {state.session}", err=True)
