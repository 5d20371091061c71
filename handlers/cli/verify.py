"""`verify`: the log against its own hashes, the read model against the log, a bundle against itself."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.main import FAILED, one_line
from handlers.cli.options import OutFile, data_option, json_option, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.runtime import Station
    from streams.envelope import Event, Head

PATIENCE_S = 20.0  # for the next stored event, of those that the log says it has


@dataclass
class Outcome:
    """What was checked, and the first bad place of each kind."""

    ok: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)


@click.command()
@click.argument("what", required=False, metavar="[SESSION|BUNDLE]")
@click.option(
    "--anchor", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=None, help="Heads kept elsewhere."
)
@json_option
@data_option
def verify(what: str | None, anchor: Path | None, as_json: bool, data: Path | None) -> int:
    """Check the whole log and the read model, one SESSION, or an exported BUNDLE (a file); name the first bad place."""
    if what is not None and anchor is not None:
        raise click.UsageError("--anchor is compared with the whole log: leave SESSION and BUNDLE out")
    outcome = Outcome()
    if what is not None and Path(what).is_file():
        from streams.bundle_check import first_fault

        fault = first_fault(what)
        (outcome.bad if fault else outcome.ok).append(fault or f"{what}: the chain is whole, every member as exported")
    else:
        run(_verify(what, anchor, outcome, data))
    if as_json:
        import orjson

        told = {"ok": not outcome.bad, "checked": outcome.ok, "bad": outcome.bad}
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
    else:
        for line in outcome.ok:
            click.echo(f"ok   {one_line(line)}")
        for line in outcome.bad:
            click.echo(f"BAD  {one_line(line)}")
    return FAILED if outcome.bad else 0


async def _verify(session: str | None, anchor: Path | None, outcome: Outcome, data: Path | None) -> None:
    from handlers.cli.dropped import hold_archives
    from handlers.cli.runtime import opened

    async with opened(settings_from(data=data)) as station:
        if session is not None:
            await _session(station, session, outcome)
            return
        heads = await _log(station, outcome)
        await hold_archives(station, outcome, heads)
        if anchor is not None:
            _anchored(anchor, heads, outcome)
        if not outcome.bad and station.read_model.exists():
            await _read_model(station, outcome)


async def _session(station: Station, session: str, outcome: Outcome) -> None:
    from handlers.cli.audit import state_of
    from streams import chain
    from streams.session import BrokenChain

    try:
        events = list((await state_of(station, session, None)).events)
    except BrokenChain as broken:
        outcome.bad.append(str(broken))
        return
    link = chain.verify(events)
    if link is not None:
        outcome.bad.append(f"session {link.session}: event {link.n}: {link.why}")
        return
    outcome.ok.append(
        f"session {session}: {len(events)} events, each follows the one before it; head {events[-1].hash}"
    )
    await _blobs(station, events, outcome)


async def _log(station: Station, outcome: Outcome) -> dict[str, dict[int, str]]:
    """Walk the stored bytes once; the hash of every event by session and n."""
    from streams import chain, subjects
    from streams.envelope import HASH_HEADER, BadEnvelope, Head
    from streams.log import LogWentBackwards, event_of
    from streams.upcasts import UnknownEventType

    seen: dict[str, dict[int, str]] = {}
    tips: dict[str, Head] = {}
    broken: dict[str, str] = {}
    last, count, place = await station.log.last_seq(), 0, 0
    checked: set[str] = set()
    try:
        async with aclosing(station.log.stored(0)) as batches:
            while place < last:
                async with asyncio.timeout(PATIENCE_S):
                    messages = await anext(batches)
                for message in messages:
                    count, place = count + 1, message.seq
                    try:
                        session, n, _ = subjects.parse(message.subject)
                    except ValueError:
                        outcome.bad.append(f"position {message.seq}: {message.subject} is no subject of an event")
                        continue
                    seen.setdefault(session, {})[n] = hashlib.sha256(message.body).hexdigest()
                    if session in broken:
                        continue
                    try:
                        event = await event_of(station.log, message.body, message.seq)
                        link = chain.verify([event], tips.get(session, Head()))
                        why = link.why if link else None
                        if why is None and (event.session, event.n) != (session, n):
                            why = f"it stands where event {n} of {session} should"
                        if why is None and message.headers.get(HASH_HEADER) != event.hash:
                            why = "its bytes do not have the hash of its header"
                        tips[session] = event.head
                        await _blobs(station, [event], outcome, checked)
                        if event.type == "text-erased" and station.keys.left(session):
                            outcome.bad.append(
                                f"session {session}: its erasure is unfinished: `{program()} erase {session}` again"
                            )
                    except (BadEnvelope, UnknownEventType, LookupError) as error:
                        why = str(error)
                    if why is not None:
                        broken[session] = f"session {session}: event {n} (position {message.seq}): {why}"
    except LogWentBackwards as error:
        outcome.bad.append(str(error))
    except TimeoutError:
        outcome.bad.append(f"log: it ends with position {last}, and nothing can be read behind position {place}")
    outcome.bad += broken.values()
    if not outcome.bad:
        outcome.ok.append(f"log: {count} events in {len(seen)} sessions, no gap, every chain whole")
        outcome.ok.append(f"blobs: {len(checked)}, each whole and of its hash")
    return seen


async def _blobs(station: Station, events: list[Event], outcome: Outcome, checked: set[str] | None = None) -> None:
    from streams.chain import blobs
    from streams.events import Blob
    from streams.log import MissingBlob

    known = checked if checked is not None else set()
    for event in events:
        for sha256, size in sorted(blobs(event)):
            if sha256 in known:
                continue
            known.add(sha256)
            try:
                await station.log.get_blob(Blob(sha256=sha256, size_bytes=size, chunks=0))
            except MissingBlob as missing:
                outcome.bad.append(f"session {event.session}: event {event.n}: {missing}")


def _anchored(anchor: Path, seen: dict[str, dict[int, str]], outcome: Outcome) -> None:
    """Every head that was kept elsewhere must still be there, with its hash."""
    import orjson

    from streams.chain import merkle_root
    from streams.envelope import Head

    try:
        kept = orjson.loads(anchor.read_bytes())
        heads = {session: (int(head["n"]), str(head["hash"])) for session, head in kept["heads"].items()}
        root = str(kept["merkle_root"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise click.UsageError(f"--anchor {anchor}: this is no anchor; `{program()} anchor` makes one") from None
    if merkle_root({session: Head(n, 0, hash_) for session, (n, hash_) in heads.items()}) != root:
        outcome.bad.append(f"{anchor}: its heads do not have its Merkle root: the anchor itself was changed")
    for session, (n, hash_) in sorted(heads.items()):
        found = seen.get(session, {}).get(n)
        if found != hash_:
            why = "is not in the log any more" if found is None else "is not the event that was anchored"
            outcome.bad.append(f"session {session}: event {n} {why}")
    if not outcome.bad:
        outcome.ok.append(f"anchor: all {len(heads)} heads are in the log")


async def _read_model(station: Station, outcome: Outcome) -> None:
    from projections.rebuild import rebuild
    from projections.store import StoreBusy

    try:
        report = await rebuild(station.read_model, station.log, swap=False)
    except StoreBusy as busy:
        outcome.ok.append(f"read model: not compared: {busy}")
        return
    if report.beyond:
        outcome.bad.append(f"read model: the log ends {report.beyond} positions before it: the log lost them")
    if report.differences:
        outcome.bad.append(f"read model: differs from a rebuild: {report.differences[0]}")
    elif report.not_compared is not None:
        outcome.bad.append(f"read model: {report.not_compared}: run `{program()} rebuild`")
    elif not report.beyond:
        outcome.ok.append(f"read model: equal to a rebuild up to position {report.compared}")


@click.command()
@click.option("--out", type=OutFile(), default=None, help="A file to keep elsewhere.")
@data_option
def anchor(out: Path | None, data: Path | None) -> int:
    """Record the heads of all chains and their Merkle root as an event, and print them for keeping elsewhere."""
    told = run(_anchor(data))
    if out is None:
        click.echo(told.decode())
    else:
        out.write_bytes(told)
        click.echo(f"anchor written to {out}: keep it where whoever can write the log cannot", err=True)
    return 0


async def _anchor(data: Path | None) -> bytes:
    from handlers.cli.runtime import opened

    async with opened(settings_from(data=data)) as station:
        return await recorded_anchor(station)


async def recorded_anchor(station: Station) -> bytes:
    """Append the heads of all chains as an event, and return it as JSON. ClickException if the log is not whole."""
    import orjson

    from handlers.cli.runtime import now
    from streams.chain import merkle_root
    from streams.envelope import Draft, Head
    from streams.events import ChainAnchored
    from streams.identity import epoch
    from streams.session import fold

    outcome = Outcome()
    seen = await _log(station, outcome)
    if outcome.bad:
        raise click.ClickException(f"the log is not whole, so it is not anchored: {outcome.bad[0]}")
    tips = {session: Head(max(events), 0, events[max(events)]) for session, events in seen.items()}
    heads = {session: {"n": head.n, "hash": head.hash} for session, head in sorted(tips.items())}
    payload = ChainAnchored(heads=heads, merkle_root=merkle_root(tips), last_seq=await station.log.last_seq())
    session = f"{epoch(now())}-anchors"
    state = fold(session, await station.log.read(session))
    draft = Draft(payload, "auditor", cause=f"{payload.merkle_root}", ordinal=state.head.n)
    await station.log.append(session, [draft], state.head, now())
    return orjson.dumps(payload.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
