"""`verdictlog demo`: five diagnoses of one bundled incident. The models' replies are scripted; all else is real."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.main import FAILED
from handlers.cli.options import data_option, json_option, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.app import App
    from handlers.cli.live import Live
    from handlers.demo.runs import Announced
    from streams.events import QuestionAsked
    from streams.session import SessionState

TOLD = "The incident: payment-service timed out on 2026-03-17 between 10:09 and 10:45 UTC. Five answers, five verdicts."


@click.command()
@json_option
@data_option
def demo(as_json: bool, data: Path | None) -> int:
    """Play the runs good, leak, tampered, injected and extra-round, each with its verdict. No key, no server needed."""
    return run(_demo(as_json, data))


async def _demo(as_json: bool, data: Path | None) -> int:
    from handlers.cli.live import Live
    from handlers.cli.runtime import opened, working
    from handlers.cli.turn import Watcher, place_for, with_script
    from handlers.demo.incident import generate
    from handlers.demo.runs import announced, scripts
    from handlers.intake import ask

    settings = settings_from(data=data)
    live = Live(quiet=as_json)
    told, runs, as_announced = announced(), [], True
    from streams.topology import ROLES

    async with opened(settings, ROLES, begins=True) as station:
        incident = await asyncio.to_thread(generate, station.data / "demo")
        live.note(TOLD)
        entered: App | None = None
        async with AsyncExitStack() as stack:
            for name, script in scripts().items():
                asked, told_by = _question(script, incident)
                _title(live, name, told[name])
                session = (await place_for(station, asked)).session
                asked = await with_script(station, session, asked, told_by)
                watcher = Watcher(station, session, live)
                from handlers.cli.runtime import now

                state = await ask(station.log, session, asked, now())
                await watcher.refresh()
                if entered is None:
                    entered = await stack.enter_async_context(working(station))
                entered.watch(session, watcher.on_append)
                state = await watcher.until_answered(len(state.turns), entered)
                entered.unwatch(session)
                runs.append(_run(name, state))
                ok = _is_as_announced(state, told[name])
                as_announced &= ok
                if not as_json:
                    _verdict(state, ok)
    if as_json:
        import orjson

        click.echo(orjson.dumps({"runs": runs}, option=orjson.OPT_INDENT_2).decode())
    else:
        _next(runs, settings.data, data is not None)
    return 0 if as_announced else FAILED


def _question(script: dict[str, Any], incident: Any) -> tuple[QuestionAsked, bytes]:
    import orjson

    from handlers.case import read_case
    from streams.events import QuestionAsked, Sources
    from streams.log import blob_of

    case = read_case(script)
    stored = orjson.dumps(case.script)
    asked = QuestionAsked(
        question=case.question,
        lang=case.lang,
        agents="scripted",
        script=blob_of(stored),
        sources=Sources(
            logs=(str(incident.logs.absolute()),),
            metrics=(str(incident.metrics.absolute()),),
            runbooks=(str(incident.runbooks.absolute()),),
        ),
    )
    return asked, stored


def _run(name: str, state: SessionState) -> dict[str, Any]:
    from handlers.report import turn_report

    report = turn_report(state, state.turns[-1])
    return {
        "name": name,
        "effective_verdict": report["effective_verdict"],
        "failed_rules": report["gatekeeper_result"]["failed_rules"] if report["gatekeeper_result"] else [],
        "response": report["response"],
        "session": state.session,
    }


def _is_as_announced(state: SessionState, told: Announced) -> bool:
    from handlers.report import turn_report

    report = turn_report(state, state.turns[-1])
    return bool(report["effective_verdict"] == told.verdict and tuple(report["route"]) == told.route)


def _title(live: Live, name: str, told: Announced) -> None:
    live.note("")
    live.note(f"{name}: {told.says} (announced: {told.verdict})")


def _verdict(state: SessionState, ok: bool) -> None:
    from handlers.cli.turn import print_answer

    print_answer(state, state.turns[-1])
    click.echo("" if ok else "NOT AS ANNOUNCED\n")


def _next(runs: list[dict[str, Any]], folder: Path, given: bool) -> None:
    click.echo("What you saw:")
    for played in runs:
        rules = f"  ({', '.join(played['failed_rules'])})" if played["failed_rules"] else ""
        click.echo(f"  {played['name']:<12} {played['effective_verdict'] or 'none':<11}{rules}")
    flag = f" --data {folder}" if given else ""
    good, tampered = runs[0]["session"], runs[2]["session"]
    click.echo("\nLook inside:")
    counted = "SELECT session, effective_verdict, groundedness_score FROM diagnosis_session"
    own = f"--logs {folder}/demo/logs --metrics {folder}/demo/metrics --runbooks {folder}/demo/runbooks"
    for line in (
        f"show {tampered}",
        f"show {good} --as-of 10",
        "sessions",
        f'sql "{counted}"',
        f'ask "Why does payment-service time out?" --lang en {own}',
    ):
        click.echo(f"  {program()} {line}{flag}")
