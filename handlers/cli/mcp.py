"""`verdictlog mcp`: Verdictlog for other agents, over the Model Context Protocol on stdin and stdout."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from handlers.cli.options import agents_option, data_option, lang_option, seal_option, settings_from
from handlers.cli.process import run

if TYPE_CHECKING:
    from handlers.app import App
    from handlers.case import Case
    from handlers.cli.runtime import Station
    from streams.events import Sources


@click.command()
@click.option("--logs", multiple=True, metavar="PATH|URL", help="Evidence of the tool `ask`, as of `verdictlog ask`.")
@click.option("--metrics", multiple=True, metavar="PATH|URL", help="The same for metrics.")
@click.option("--runbooks", multiple=True, metavar="DIR", help="The same for runbooks.")
@agents_option
@lang_option
@seal_option
@data_option
def mcp(**given: Any) -> int:
    """Serve the tools ask, judge_answer and show_session to an MCP client, until it closes stdin."""
    return run(_serve(**given))


async def _serve(
    logs: tuple[str, ...],
    metrics: tuple[str, ...],
    runbooks: tuple[str, ...],
    agents: str | None,
    lang: str | None,
    seal: bool | None,
    data: Path | None,
) -> int:
    if agents not in {None, "offline", "openai"}:
        raise click.UsageError(f"--agents {agents!r}: expected offline or openai")
    from handlers.cli.ask import named_sources, with_servers, without_secrets
    from handlers.cli.mcp_lines import serve
    from handlers.cli.runtime import open_tools, opened, working
    from handlers.mcp import server_of
    from streams.topology import ROLES

    settings = settings_from(data=data, lang=lang, agents=agents, seal=seal)
    sources, settings = without_secrets(named_sources(logs, metrics, runbooks, ()), settings)
    sources, settings = await with_servers(sources, settings, ())
    open_tools(sources, settings)
    async with opened(settings, ROLES, begins=True) as station, working(station) as app:
        await serve(server_of(LogDesk(station, app, sources)))
    return 0


@dataclass(frozen=True, slots=True)
class LogDesk:
    """Answers from the station's log, with all roles at work in this process."""

    station: Station
    app: App
    sources: Sources

    async def ask(self, question: str, lang: Literal["zh-CN", "en"] | None, session: str | None) -> dict[str, Any]:
        from handlers.cli.turn import Place, answered, place_for
        from handlers.intake import TurnIsOpen
        from handlers.redaction import Redactions
        from handlers.report import turn_report
        from streams.events import QuestionAsked, TurnOptions

        settings = self.station.settings
        asked = QuestionAsked(
            question=question,
            lang=lang or settings.lang or "zh-CN",
            options=TurnOptions(max_attempts=settings.max_attempts, on_exhausted=settings.on_exhausted),
            deadline_s=settings.deadline_s,
            agents=settings.chosen_agents,
            sources=self.sources,
        )
        place = Place(session) if session else await place_for(self.station, asked)
        try:
            state = await answered(self.station, self.app, place, asked, Redactions() if settings.redact else None)
        except TurnIsOpen as error:
            raise ValueError(str(error)) from None
        return turn_report(state, state.turns[-1])

    async def judge(self, case: Case) -> dict[str, Any]:
        from handlers.cli.judge import question_of, script_of
        from handlers.cli.turn import answered, place_for, with_script
        from handlers.report import turn_report

        # What takes long over a large case is done beside the loop, which others' requests are waiting for.
        question = await asyncio.to_thread(question_of, self.station, case, {})
        place = await place_for(self.station, question)
        script = await asyncio.to_thread(script_of, case)
        question = await with_script(self.station, place.session, question, script)
        state = await answered(self.station, self.app, place, question)
        return await asyncio.to_thread(turn_report, state, state.turns[-1])

    async def show(self, session: str, at: int | None) -> dict[str, Any]:
        from handlers.cli.audit import state_of
        from handlers.cli.story import session_object

        try:
            state = await state_of(self.station, session, None if at is None else str(at), "at")
            return await asyncio.to_thread(session_object, state)
        except click.ClickException as error:
            raise LookupError(error.message) from None
