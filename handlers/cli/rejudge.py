"""`verdictlog rejudge`: recorded sessions judged again by today's rules, beside the old result, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.audit import print_object
from handlers.cli.main import UNREACHABLE, Refused
from handlers.cli.options import data_option, json_option, settings_from
from handlers.cli.process import run

if TYPE_CHECKING:
    from handlers.agents.protocol import Agents
    from handlers.cli.runtime import Station
    from handlers.replay import Changes
    from handlers.settings import Settings
    from prompts import Prompt
    from streams.session import SessionState

VERIFIER_PROMPT = "chat-verifier-prompt"


@click.command()
@click.argument("session", required=False)
@click.option("--all", "every", is_flag=True, help="Every session of the log, and of the archives of dropped epochs.")
@click.option("--agents", type=click.Choice(["offline", "openai"]), default=None, help="Ask this Verifier anew.")
@click.option(
    "--prompts",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=None,
    help=f"Ask the Verifier anew with DIR/{VERIFIER_PROMPT}.md.",
)
@click.option("--max-attempts", type=click.IntRange(0, 5), default=None, help="Evaluations in a round.")
@click.option("--on-exhausted", type=click.Choice(["cap", "fallback"]), default=None, help="What follows the last one.")
@click.option("--branch", is_flag=True, help="Record each result as a new session that names its origin.")
@json_option
@data_option
def rejudge(session: str | None, every: bool, **flags: Any) -> int:
    """Judge SESSION again by today's rules and tell what would change. Exit code 0: nothing, 1: something.

    Recorded replies and tool results are replayed; nothing is written to the session.
    """
    if (session is None) != every:
        raise click.UsageError("name one SESSION, or give --all")
    return run(_rejudge(session, **flags))


async def _rejudge(
    session: str | None,
    agents: str | None,
    prompts: Path | None,
    max_attempts: int | None,
    on_exhausted: str | None,
    branch: bool,
    as_json: bool,
    data: Path | None,
) -> int:
    from handlers.cli.audit import state_of
    from handlers.cli.runtime import opened
    from handlers.rejudgement import told
    from handlers.replay import Changes

    settings = settings_from(data=data)
    given = {"max_attempts": max_attempts, "on_exhausted": on_exhausted}
    options = {key: value for key, value in given.items() if value is not None}
    changes = Changes(options, _verifier(settings, agents, prompts))
    rows: list[dict[str, Any]] = []
    async with opened(settings) as station:
        for name in [session] if session is not None else [*await _archived(station), *await _sessions(station)]:
            rows += await _session(station, await state_of(station, name, None), changes, branch)
    changed = [row for row in rows if row["changed"]]
    judged = sum(not row["skipped"] for row in rows)
    summary = f"{judged} turns judged again: {len(changed)} would change"
    print_object({"judged": judged, "changed": len(changed), "turns": rows}, as_json, [*told(rows), summary])
    return 1 if changed else 0


async def _session(station: Station, state: SessionState, changes: Changes, branch: bool) -> list[dict[str, Any]]:
    from handlers.agents.offline import OfflineAgents
    from handlers.rejudgement import compared
    from handlers.replay import playable, replay

    why = "its text is erased" if state.erased else "there is no key for its text here" if state.hidden else None
    played = None if why else await replay(state, station.log, changes, OfflineAgents)
    name = await _branch(station, state, played) if branch and played is not None and played.events else None
    rows = []
    for turn in state.turns:
        row: dict[str, Any] = {"session": state.session, "turn": turn.number, "changed": False}
        skipped = why or (None if playable(turn) else _unjudged(turn.open))
        if skipped is None and played is not None:
            new = played.turn(turn.number)
            if new.failed is not None and new.failed.detail.startswith("verifier: "):
                place = f"session {state.session} turn {turn.number}"
                raise Refused(f"{place}: the Verifier could not be asked: {new.failed.detail[10:]}", UNREACHABLE)
            row |= compared(turn, new)
        rows.append({**row, "skipped": skipped, "branch": name})
    return rows


def _unjudged(still_open: bool) -> str:
    return "it is open" if still_open else "it ended without a judgement"


async def _branch(station: Station, state: SessionState, played: SessionState) -> str:
    from handlers.cli.fork import append_all, new_session
    from handlers.fork import forked

    name = new_session()
    drafts = forked(played.events, name, (state.session, state.head), "rejudge", "judged again")
    await append_all(station, name, drafts, state.head.sealed)
    return name


async def _archived(station: Station) -> list[str]:
    """Every session of the archives of dropped epochs; of one that is not to be found is said what is left out."""
    from projections.archive import stored

    found: list[str] = []
    for note in (await station.log.state()).dropped:
        folder = station.shelf.of(note.epoch)
        if folder is None:
            why = f"epoch {note.epoch} was dropped, and its archive is not at {station.shelf.folder / note.epoch}"
            click.echo(f"verdictlog: {note.sessions} sessions left out: {why}", err=True)
            continue
        found += [
            session for rows in await asyncio.to_thread(list, stored(folder, "session", "n = 1")) for (session,) in rows
        ]
    return found


async def _sessions(station: Station) -> list[str]:
    """Every session that the log holds, in the order of their first events."""
    from streams import subjects

    last, seen = await station.log.last_seq(), 0
    found: dict[str, None] = {}
    async with aclosing(station.log.stored(0)) as batches:
        while seen < last:
            for message in await anext(batches):
                seen = message.seq
                found[subjects.parse(message.subject)[0]] = None
    return list(found)


def _verifier(settings: Settings, agents: str | None, folder: Path | None) -> Agents | None:
    if agents is None and folder is None:
        return None
    if (agents or settings.chosen_agents) == "offline":
        if folder is not None:
            raise click.UsageError("--prompts: the offline Verifier reads no prompt: --agents openai")
        from handlers.agents.offline import OfflineAgents

        return OfflineAgents()
    from handlers.agents.openai import OpenAIAgents, OpenAISettings

    if folder is None:
        return OpenAIAgents(OpenAISettings.of(settings))
    return OpenAIAgents(OpenAISettings.of(settings), load=_prompt_of(folder))


def _prompt_of(folder: Path) -> Callable[[str], Prompt]:
    import hashlib

    from prompts import Prompt

    path = folder / f"{VERIFIER_PROMPT}.md"
    try:
        raw = path.read_bytes()
        prompt = Prompt(raw.decode(), hashlib.sha256(raw).hexdigest())
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--prompts: {path}: {error}") from None
    return lambda _name: prompt
