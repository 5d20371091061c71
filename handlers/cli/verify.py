"""`verify`: the log against its own hashes, the read model against the log, a bundle against itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.main import FAILED, one_line
from handlers.cli.options import data_option, json_option, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.logwalk import Outcome
    from handlers.cli.runtime import Station


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
    from handlers.cli.logwalk import Outcome
    from streams.identity import is_session

    if what is not None and not is_session(what):
        _verifiable(Path(what))
    outcome = Outcome()
    if what is not None and Path(what).is_file():
        from streams import bundle_check

        fault = bundle_check.first_fault(what)
        (outcome.bad if fault else outcome.ok).append(fault or f"{what}: {bundle_check.told(what)}")
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


def _verifiable(what: Path) -> None:
    """UsageError for what is made from the log and has no chain of its own."""
    from projections.snapshot import HEAD_BYTES, is_database

    instead = f"`{program()} verify` by itself checks the log and the read model, and SESSION or BUNDLE one session"
    if what.is_dir():
        raise click.UsageError(
            f"{what}: is a folder; {instead}; the archive of a dropped epoch is checked with the log"
        )
    if what.is_file():
        with what.open("rb") as file:
            head = file.read(HEAD_BYTES)
        kind = "a DuckDB file" if is_database(head) else "a Parquet file" if head[:4] == b"PAR1" else None
        if kind is not None:
            raise click.UsageError(f"{what}: is {kind}, which holds no chain to check; {instead}")


async def _verify(session: str | None, anchor: Path | None, outcome: Outcome, data: Path | None) -> None:
    from handlers.cli.anchor import hold_anchor
    from handlers.cli.dropped import hold_archives
    from handlers.cli.logwalk import walk
    from handlers.cli.runtime import opened

    async with opened(settings_from(data=data)) as station:
        if session is not None:
            await _session(station, session, outcome)
            return
        heads = await walk(station, outcome)
        await hold_archives(station, outcome, heads)
        if anchor is not None:
            hold_anchor(anchor, heads, outcome)
        if not outcome.bad and station.read_model.exists():
            await _read_model(station, outcome)


async def _session(station: Station, session: str, outcome: Outcome) -> None:
    from handlers.cli.audit import state_of
    from handlers.cli.logwalk import check_blobs
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
    await check_blobs(station, events, outcome, set())


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
        outcome.bad.append(
            f"read model: differs from a rebuild: {report.differences[0]}; `{program()} rebuild` makes it anew"
        )
    elif report.not_compared is not None:
        outcome.bad.append(f"read model: {report.not_compared}: run `{program()} rebuild`")
    elif not report.beyond:
        outcome.ok.append(f"read model: equal to a rebuild up to position {report.compared}")
