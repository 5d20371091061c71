"""`doctor`: is what the roles stand on as it must be, and is the log whole."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.main import FAILED, one_line
from handlers.cli.options import data_option, json_option, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.runtime import Station


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, whether it is well, and what was seen."""

    check: str
    ok: bool
    seen: str


@click.command()
@json_option
@data_option
def doctor(as_json: bool, data: Path | None) -> int:
    """Check the server, streams and consumers, every session's chain, open turns, and the read model."""
    findings = run(_doctor(data))
    if as_json:
        import orjson

        told = [{"check": f.check, "ok": f.ok, "seen": f.seen} for f in findings]
        click.echo(
            orjson.dumps({"ok": all(f.ok for f in findings), "findings": told}, option=orjson.OPT_INDENT_2).decode()
        )
    else:
        for finding in findings:
            click.secho("ok  " if finding.ok else "BAD ", fg="green" if finding.ok else "red", nl=False)
            click.echo(f"{finding.check:<22} {one_line(finding.seen)}")
    return 0 if all(f.ok for f in findings) else FAILED


async def _doctor(data: Path | None) -> list[Finding]:
    from handlers.cli.runtime import opened
    from streams.jetstream import without_secrets

    settings = settings_from(data=data)
    async with opened(settings) as station:
        version = station.client.connected_server_version
        where = "local mode" if settings.nats_url is None else "NATS_URL"
        findings = [Finding("server", True, f"NATS {version} at {without_secrets(station.url)} ({where})")]
        findings += await _topology(station)
        findings += await _log(station)
        findings.append(await _read_model(station))
        findings.append(
            Finding("agents", True, _agents(settings.chosen_agents, settings.openai_base_url, settings.model))
        )
    return findings


def _agents(kind: str, base_url: str | None, model: str) -> str:
    if kind == "offline":
        return "offline: no model is used; set OPENAI_BASE_URL and OPENAI_API_KEY to use one"
    return f"openai: {model} at {base_url or 'the default endpoint'}"


async def _topology(station: Station) -> list[Finding]:
    from streams import topology

    js = station.client.jetstream()
    faults = await topology.check(js, ())
    every = (topology.ALL_ROLES, topology.DEADLINE, *topology.ONE_ROLE.values())
    # A consumer that no process has asked for yet is not missed; one that is there must be as it should.
    faults += [f for f in await topology.check_consumers(js, every) if isinstance(f, topology.Drift)]
    if faults:
        return [Finding("streams and consumers", False, str(fault)) for fault in faults]
    return [Finding("streams and consumers", True, f"{topology.STREAM_NAME}, {topology.BLOBS_NAME}: as wanted")]


async def _log(station: Station) -> list[Finding]:
    """One walk over the log: every chain is whole, and no turn is open beyond its deadline."""
    from datetime import datetime, timedelta

    from handlers.cli.runtime import now
    from streams.events import QuestionAsked
    from streams.session import BrokenChain, SessionState, evolve
    from streams.upcasts import UnknownEventType

    states: dict[str, SessionState] = {}
    last, broken = await station.log.last_seq(), dict[str, str]()
    if last:
        try:
            async for event in station.log.follow(0):
                if event.session not in broken:
                    try:
                        states[event.session] = evolve(states.get(event.session, SessionState(event.session)), event)
                    except BrokenChain as error:
                        broken[event.session] = str(error)
                if event.seq >= last:
                    break
        except UnknownEventType as error:
            return [Finding("events", False, str(error))]
    count = sum(state.head.n for state in states.values())
    findings = [Finding("chain", False, told) for told in broken.values()] or [
        Finding("chains", True, f"{count} events in {len(states)} sessions, each follows the one before it")
    ]
    unfinished = [state.session for state in states.values() if state.erased and station.keys.left(state.session)]
    findings += [
        Finding("erasure", False, f"{session}: unfinished: `{program()} erase {session}` again")
        for session in unfinished
    ]
    findings += await _dropped(station)
    keyless = [state.session for state in states.values() if state.hidden and not state.erased]
    findings += _sealed(keyless, [name for name in keyless if states[name].open_turn is not None], station)
    open_turns = [
        (state.session, state.open_turn)
        for state in states.values()
        if state.open_turn is not None and not state.erased
    ]
    overdue = []
    for session, turn in open_turns:
        assert isinstance(turn.question, QuestionAsked)
        if session in keyless:
            continue
        if datetime.fromisoformat(turn.asked.time) + timedelta(seconds=turn.question.deadline_s) < now():
            overdue.append(session)
    told = f"{len(open_turns)} open, {len(overdue)} beyond their deadline"
    hint = f": {', '.join(overdue[:5])}; run `{program()} up` to end them" if overdue else ""
    findings.append(Finding("turns", not overdue, told + hint))
    # What was erased is beyond help: nothing can be asked anew there, and nothing added.
    parked = [s.session for s in states.values() for entry in s.parked if entry.open and not s.erased]
    if parked:
        told = f"{len(parked)}: {', '.join(sorted(set(parked))[:5])}; `{program()} parked` tells why"
        findings.append(Finding("parked", True, told))
    return findings


def _sealed(keyless: list[str], waiting: list[str], station: Station) -> list[Finding]:
    if not keyless:
        return []
    folder = station.keys.folder
    if waiting:
        told = (
            f"{len(waiting)} open turns wait for a key that is not in {folder}: {', '.join(waiting[:5])}; run "
            f"`{program()} up` where it is, name its folder by VERDICTLOG_KEYS, or erase what is lost (erase --force)"
        )
        return [Finding("sealed text", False, told)]
    told = f"{len(keyless)} sessions have no key in {folder} and read [erased] here: {', '.join(keyless[:5])}"
    return [Finding("sealed text", True, told)]


async def _dropped(station: Station) -> list[Finding]:
    findings = []
    for note in (await station.log.state()).dropped:
        folder = station.shelf.of(note.epoch)
        where = f"its archive: {folder}" if folder else f"its archive is not at {station.shelf.folder / note.epoch}"
        findings.append(Finding("dropped epoch", folder is not None, f"{note.epoch}, {note.messages} events; {where}"))
    return findings


async def _read_model(station: Station) -> Finding:
    if not station.read_model.exists():
        return Finding(
            "read model", True, f"{station.read_model} is not there yet: the first `{program()} sql` builds it"
        )
    from projections.store import Store, StoreBusy

    try:
        store = await asyncio.to_thread(Store.open, station.read_model)
    except StoreBusy as busy:
        return Finding("read model", True, str(busy))
    except Exception as error:
        return Finding("read model", False, str(error))
    try:
        at, last = store.checkpoint().seq, await station.log.last_seq()
        if at > last:
            return Finding(
                "read model", False, f"it knows position {at}, the log ends at {last}: the log went backwards"
            )
        return Finding("read model", True, f"{station.read_model} at position {at} of {last}")
    finally:
        store.close()
