"""`verdictlog judge`: somebody else's answer and tool calls in, the verdict out (spec/case-format.md)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.main import USAGE, Refused, one_line
from handlers.cli.options import Seconds, data_option, json_option, lang_option, seal_option, settings_from
from handlers.cli.process import run

if TYPE_CHECKING:
    from handlers.case import Case
    from handlers.cli.casefile import Line
    from handlers.cli.runtime import Station
    from handlers.cli.turn import Place
    from handlers.settings import Settings
    from streams.events import QuestionAsked

    Judged = tuple[Line, dict[str, Any] | None, int]  # the report, and the exit code of its verdict

AT_ONCE = 16  # cases of one file judged at the same time


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--format", "form", type=click.Choice(["case", "openai", "otel"]), default="case", show_default=True)
@click.option(
    "--agents", type=click.Choice(["offline", "openai"]), default=None, help="Who judges where no reply is given."
)
@click.option("--max-attempts", type=click.IntRange(0, 5), default=None, help="Bound of evaluations in a round.")
@click.option("--on-exhausted", type=click.Choice(["cap", "fallback"]), default=None, help="When repair runs out.")
@click.option("--deadline", type=Seconds(), default=None, help="Seconds until a turn ends.")
@lang_option
@seal_option
@json_option
@data_option
def judge(
    file: str,
    form: str,
    agents: str | None,
    max_attempts: int | None,
    on_exhausted: str | None,
    deadline: float | None,
    lang: str | None,
    seal: bool | None,
    as_json: bool,
    data: Path | None,
) -> int:
    """Judge FILE (`-`: standard input). One object: exit code 0 PASS, 10 LOW_CONFID, 20 REJECT, 1 no judgement. JSON Lines:
    0 if every line was read, whatever the verdicts, else 2; read the verdicts from --json."""
    flags = {
        "agents": agents,
        "max_attempts": max_attempts,
        "on_exhausted": on_exhausted,
        "deadline_s": deadline,
        "lang": lang,
    }
    from handlers.case import BadCase
    from handlers.cli.casefile import placed, read_cases

    named = "standard input" if file == "-" else file
    try:
        if file == "-" and sys.stdin is None:
            raise click.UsageError("standard input is closed: name a file, or pipe one in")
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{named}: {error.strerror or error}") from None
    try:
        lines, single = read_cases(raw, form)
    except BadCase as error:
        raise Refused(f"{named}: {placed(error)}", USAGE) from None
    for line in lines:
        if line.case is not None and line.case.unknown_keys:
            click.echo(one_line(f"verdictlog: {named}: ignored: {', '.join(line.case.unknown_keys)}"), err=True)
        for notice in line.case.notices if line.case is not None else ():
            click.echo(one_line(f"verdictlog: {named}: {notice}"), err=True)
    return run(_judge(lines, single, flags, as_json, settings_from(data=data, seal=seal)))


async def _judge(lines: list[Line], single: bool, flags: dict[str, Any], as_json: bool, settings: Settings) -> int:
    from handlers.cli.runtime import opened, working
    from handlers.cli.turn import place_for, with_script
    from streams.topology import ROLES

    async with opened(settings, ROLES, begins=True) as station:
        questions = {line.number: question_of(station, line.case, flags) for line in lines if line.case is not None}
        # Before any role works: a turn that a killed command left open is found open, and goes on as this command's.
        places: dict[str, Place | None] = {}
        for question in questions.values():
            key = question.model_dump_json()
            if key not in places:
                places[key] = await place_for(station, question)
        async with working(station) as app:
            limit = asyncio.Semaphore(AT_ONCE)
            alike = {key: asyncio.Lock() for key in places}

            async def one(line: Line) -> Judged:
                if line.case is None:
                    return line, None, USAGE
                question = questions[line.number]
                key = question.model_dump_json()
                # Two lines that are alike are two sessions: one after the other.
                async with alike[key], limit:
                    place = places[key] or await place_for(station, question)
                    places[key] = None
                    question = await with_script(station, place.session, question, script_of(line.case))
                    return line, *await _one(station, app, place, question)

            results = [asyncio.ensure_future(one(line) if single else kept(line, one(line))) for line in lines]
            code = 0
            for result in results:
                line, report, verdict = await result
                _print(line, report, as_json, single)
                code = verdict if single else max(code, USAGE if report is None else 0)
            return code


async def kept(line: Line, work: Awaitable[Judged]) -> Judged:
    """One line of many: where it fails that is told in its place, and the others are judged all the same."""
    from handlers.case import BadCase

    try:
        return await work
    except Exception as error:
        why = one_line(f"not judged: {str(error) or type(error).__name__}")
        return replace(line, error=BadCase(f"line {line.number}", why)), None, USAGE


async def _one(station: Station, app: Any, place: Place, question: QuestionAsked) -> tuple[dict[str, Any], int]:
    from handlers.cli.turn import answered
    from handlers.report import exit_code, turn_report

    state = await answered(station, app, place, question)
    turn = state.turns[-1]
    return turn_report(state, turn), exit_code(turn)


def script_of(case: Case) -> bytes:
    """What the case replays, as it is stored."""
    import orjson

    return orjson.dumps(case.script)


def question_of(station: Station, case: Case, flags: dict[str, Any]) -> QuestionAsked:
    """The question of a case, judged as `flags` say, else the case, else the settings; its script is not stored yet."""
    from streams.events import QuestionAsked, TurnOptions
    from streams.log import blob_of

    def pick(name: str, held: Any, default: Any) -> Any:
        return flags[name] if flags.get(name) is not None else default if held is None else held

    configured = station.settings
    return QuestionAsked(
        question=case.question,
        lang=flags.get("lang") or case.lang,
        options=TurnOptions(
            max_attempts=pick("max_attempts", case.settings.max_attempts, configured.max_attempts),
            on_exhausted=pick("on_exhausted", case.settings.on_exhausted, configured.on_exhausted),
            found_bindings=case.found_bindings,
        ),
        deadline_s=pick("deadline_s", case.settings.deadline_s, configured.deadline_s),
        agents=pick("agents", case.settings.agents, configured.agents or "offline"),
        script=blob_of(script_of(case)),
    )


def _judged_by(line: Line, report: dict[str, Any]) -> str:
    """Whose labels the verdict rests on: a reader must see where the file brought its own judgement."""
    if report["verifier_evaluation"] is None:
        return "nobody"
    assert line.case is not None
    rounds = line.case.script["rounds"]
    given = rounds[min(report["rounds"], len(rounds)) - 1]["verifier"] is not None
    return "the file's own verifier_output" if given else "the Verifier of this program's agents"


def _print(line: Line, report: dict[str, Any] | None, as_json: bool, single: bool) -> None:
    if report is None:
        assert line.error is not None
        report = {"line": line.number, "error": {"where": line.error.where, "why": line.error.why}}
    if as_json:
        import orjson

        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2 if single else 0).decode())
        return
    if line.error is not None:
        from handlers.cli.casefile import placed

        click.echo(one_line(f"line {line.number}: {placed(line.error)}"))
        return
    from handlers.cli.main import visible
    from handlers.reasons import reasons, score_told

    gate = report["gatekeeper_result"] or {}
    told = {
        "verdict": report["effective_verdict"] or "none",
        "score": score_told(report) or "none",
        "judged by": _judged_by(line, report),
        "gate": f"{gate.get('status')} ({gate.get('severity')})" if gate else "none",
        "failed rules": ", ".join(gate.get("failed_rules", ())) or "none",
        "route": " -> ".join(report["route"]),
        "reason": report["response"]["fallback_reason"] or "none",
        "session": report["session"],
    }
    for key, value in told.items():
        click.echo(f"{key:<13} {value}")
    for reason in reasons(report):
        click.echo(f"  {one_line(reason)}")
    click.echo("\n" + visible(report["response"]["text"]) + "\n")
