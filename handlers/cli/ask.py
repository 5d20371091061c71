"""`verdictlog ask`: one question, answered live, every statement bound to a line that a tool returned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.options import (
    Seconds,
    agents_option,
    data_option,
    json_option,
    lang_option,
    seal_option,
    settings_from,
)
from handlers.cli.process import run

if TYPE_CHECKING:
    from handlers.settings import Settings
    from streams.events import QuestionAsked, Sources
    from streams.session import SessionState


@click.command()
@click.argument("question")
@click.option(
    "--logs",
    multiple=True,
    metavar="PATH",
    help="Log file or folder (ndjson, logfmt, plain, gzip); loki+http://..., vlogs+http://....",
)
@click.option(
    "--metrics",
    multiple=True,
    metavar="PATH",
    help="OpenMetrics text, saved Prometheus JSON; http://... of Prometheus, VictoriaMetrics.",
)
@click.option("--runbooks", multiple=True, metavar="DIR", help="Folder of Markdown runbooks.")
@click.option("--tool", "tools", multiple=True, metavar="NAME=PATH", help="Recorded outputs as one more evidence tool.")
@click.option(
    "--mcp",
    "servers",
    multiple=True,
    metavar="NAME=COMMAND|URL",
    help="Tools of an MCP server, beside those configured.",
)
@click.option("--session", default=None, help="Go on in this session (default: a new one).")
@click.option("--deadline", type=Seconds(), default=None, help="Seconds until the turn ends.")
@agents_option
@lang_option
@seal_option
@json_option
@data_option
def ask(**flags: Any) -> int:
    """Ask why a system misbehaves. The answer says what it rests on, or that it cannot be given reliably."""
    return run(_ask(**flags))


async def _ask(
    question: str,
    logs: tuple[str, ...],
    metrics: tuple[str, ...],
    runbooks: tuple[str, ...],
    tools: tuple[str, ...],
    servers: tuple[str, ...],
    session: str | None,
    deadline: float | None,
    agents: str | None,
    lang: str | None,
    seal: bool | None,
    as_json: bool,
    data: Path | None,
) -> int:
    from handlers.question import MAX_CHARS, too_long

    if not any(map(str.isalnum, question)):
        raise click.UsageError("the question is empty" if not question.strip() else "the question has no words")
    try:
        question.encode()
    except UnicodeEncodeError:
        raise click.UsageError("the question is not UTF-8 text") from None
    if len(question) > MAX_CHARS:
        raise click.UsageError(too_long(question))
    kind, script_path = _agents(agents)
    chosen = kind if script_path is None else None
    settings = settings_from(data=data, lang=lang, agents=chosen, deadline_s=deadline, seal=seal)
    import orjson

    from handlers.cli.runtime import open_tools, opened

    sources, settings = without_secrets(named_sources(logs, metrics, runbooks, tools), settings)
    sources, settings = await with_servers(sources, settings, servers)
    open_tools(sources, settings)
    script = None if script_path is None else orjson.dumps(_script(script_path))
    from streams.topology import ROLES

    async with opened(settings, ROLES, begins=True) as station:
        asked = _question(settings, question, sources, script)
        from handlers.cli.turn import place_for, run_turn, with_script

        name = session or (await place_for(station, asked)).session
        asked = await with_script(station, name, asked, script)
        state = await run_turn(station, name, asked, quiet=as_json)
        return _print(state, as_json)


def _agents(flag: str | None) -> tuple[str | None, Path | None]:
    if flag is None or flag in {"offline", "openai"}:
        return flag, None
    kind, _, path = flag.partition(":")
    if kind != "scripted" or not path:
        raise click.UsageError(f"--agents {flag!r}: expected offline, openai or scripted:FILE")
    return None, Path(path)


def _script(path: Path) -> dict[str, Any]:
    from handlers.case import read_case, read_json

    try:
        raw = read_json(path.read_bytes())
    except OSError as error:
        raise click.UsageError(f"--agents scripted:{path}: {error.strerror}") from None
    return read_case({"question": "scripted", **raw} if isinstance(raw, dict) else raw).script


def named_sources(
    logs: tuple[str, ...], metrics: tuple[str, ...], runbooks: tuple[str, ...], tools: tuple[str, ...]
) -> Sources:
    """What flags name, with paths that mean the same in every folder."""
    from streams.events import Sources

    named: dict[str, tuple[str, ...]] = {}
    for item in tools:
        name, sign, path = item.partition("=")
        if not sign or not name or not path:
            raise click.UsageError(f"--tool {item!r}: expected NAME=PATH")
        named[name] = (*named.get(name, ()), _absolute(path))
    return Sources(
        logs=tuple(_absolute(p) for p in logs),
        metrics=tuple(_absolute(p) for p in metrics),
        runbooks=tuple(_absolute(p) for p in runbooks),
        tools=named,
    )


def without_secrets(sources: Sources, settings: Settings) -> tuple[Sources, Settings]:
    """User and password of an address out of what the log will hold, into the settings of this process."""
    from pydantic import SecretStr

    from handlers.evidence.access import is_address, kind_of
    from handlers.evidence.access import without_secrets as plain_address

    found: dict[str, tuple[str, str]] = {}

    def clean(paths: tuple[str, ...]) -> tuple[str, ...]:
        out = []
        for path in paths:
            plain, user = plain_address(path) if is_address(path) else (path, None)
            if user is not None and found.setdefault(kind_of(plain)[0], user) != user:
                raise click.UsageError(f"{plain}: two servers of one kind with users of their own; use the settings")
            out.append(plain)
        return tuple(out)

    sources = sources.model_copy(update={"logs": clean(sources.logs), "metrics": clean(sources.metrics)})
    given = {
        kind: settings.accesses[kind].model_copy(update={"username": name, "password": SecretStr(password)})
        for kind, (name, password) in found.items()
    }
    return sources, settings.model_copy(update=given)


async def with_servers(sources: Sources, settings: Settings, flags: tuple[str, ...]) -> tuple[Sources, Settings]:
    """The tools of MCP servers among the sources, and how to reach these servers among the settings."""
    from handlers.evidence.mcp_access import read_flag

    servers = {**settings.mcp, **dict(read_flag(flag, settings.mcp) for flag in flags)}
    if not servers:
        return sources, settings
    from handlers.evidence.mcp import offered

    tools = await offered(servers)
    return sources.model_copy(update={"mcp": tools}), settings.model_copy(update={"mcp": servers})


def _absolute(path: str) -> str:
    # Another process may go on with the turn, from another folder.
    return path if "://" in path else str(Path(path).absolute())


def _question(settings: Settings, question: str, sources: Sources, script: bytes | None) -> QuestionAsked:
    from streams.events import QuestionAsked, TurnOptions
    from streams.log import blob_of

    blob = None if script is None else blob_of(script)
    return QuestionAsked(
        question=question,
        lang=settings.lang or "zh-CN",
        options=TurnOptions(max_attempts=settings.max_attempts, on_exhausted=settings.on_exhausted),
        deadline_s=settings.deadline_s,
        agents="scripted" if blob is not None else settings.chosen_agents,
        script=blob,
        sources=sources,
    )


def _print(state: SessionState, as_json: bool) -> int:
    from handlers.cli.turn import print_answer
    from handlers.report import exit_code, turn_report

    turn = state.turns[-1]
    if as_json:
        import orjson

        click.echo(orjson.dumps(turn_report(state, turn), option=orjson.OPT_INDENT_2))
    else:
        print_answer(state, turn)
    return exit_code(turn)
