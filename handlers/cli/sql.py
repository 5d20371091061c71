"""`sql`, `rebuild`, `snapshot`: the read model asked, made anew, handed to others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.main import FAILED, USAGE, Refused, pour, visible
from handlers.cli.options import OutFile, Seconds, data_option, json_option, settings_from
from handlers.cli.process import run

if TYPE_CHECKING:
    from projections.asof import Moment


@click.command()
@click.argument("query")
@click.option(
    "--as-of", "as_of", default=None, metavar="SEQ|TIME", help="The tables as they were at a position or time."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--parquet", type=OutFile(), default=None, help="Write a Parquet file instead.")
@click.option("--rows", type=click.IntRange(min=1), default=10_000, show_default=True, help="At most so many rows.")
@click.option("--seconds", type=Seconds(), default=30.0, show_default=True, help="Time limit.")
@click.option("--memory", default="512MB", show_default=True, help="Memory limit.")
@json_option
@data_option
def sql(
    query: str, as_of: str | None, as_csv: bool, parquet: Path | None, as_json: bool, data: Path | None, **bounds: Any
) -> int:
    """Run one SELECT over the read model: read-only, without files or network. `SHOW TABLES` lists what there is."""
    from handlers.cli.readmodel import readable
    from projections import results
    from projections.confined import ask_confined, size_bytes
    from projections.query import Limits, QueryError, QueryRefused, QueryWrong

    moment = _moment(as_of)
    try:
        size_bytes(bounds["memory"])
    except ValueError as error:
        raise click.UsageError(f"--memory: {error}") from None
    path, archives = run(readable(settings_from(data=data)))
    try:
        answer = ask_confined(path, query, Limits(**bounds), moment, archives)
    except (QueryRefused, QueryWrong) as error:
        raise Refused(f"sql: {error}", USAGE) from None
    except QueryError as error:
        raise Refused(f"sql: {error}", FAILED) from None
    if answer.truncated:
        click.echo(f"verdictlog: more than {bounds['rows']} rows: the rest was cut (--rows)", err=True)
    if parquet is not None:
        try:
            results.write_parquet(answer, parquet)
        except results.NotWritten as error:
            raise click.UsageError(f"--parquet {parquet}: {error}") from None
        click.echo(f"{len(answer.rows)} rows written to {parquet}", err=True)
    elif as_json:
        import orjson

        for row in results.as_objects(answer):
            click.echo(orjson.dumps(row).decode())
    elif as_csv:
        pour(results.as_csv(answer), nl=False)
    else:
        pour(visible(results.as_text(answer).rstrip("\n")))
    return 0


def _moment(as_of: str | None) -> Moment | None:
    from projections.asof import BadMoment, parse_position

    if as_of is None:
        return None
    try:
        return parse_position(as_of)
    except BadMoment as error:
        raise click.UsageError(f"--as-of {error}") from None


@click.command()
@json_option
@data_option
def rebuild(as_json: bool, data: Path | None) -> int:
    """Build the read model anew from the log, compare it with the old one row by row, and put it in its place."""
    return run(_rebuild(as_json, data))


async def _rebuild(as_json: bool, data: Path | None) -> int:
    from handlers.cli.runtime import opened
    from projections import rebuild as rebuilding

    def progress(at: int, last: int) -> None:
        click.echo(f"  {at} of {last} events", err=True)

    async with opened(settings_from(data=data)) as station:
        report = await rebuilding.rebuild(station.read_model, station.log, progress)
    if as_json:
        import orjson

        told = {
            "position": report.upto,
            "compared": report.compared,
            "same": report.same,
            "differences": [asdict(difference) for difference in report.differences],
            "not_compared": report.not_compared,
            "beyond": report.beyond,
        }
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
        return 0
    click.echo(f"rebuilt to position {report.upto}: {station.read_model}")
    if report.not_compared is not None:
        click.echo(f"nothing to compare it with: {report.not_compared}")
    elif report.compared:
        click.echo(
            f"compared {report.compared} positions with the old one: {'the same' if report.same else 'DIFFERENT'}"
        )
    for difference in report.differences:
        click.echo(f"  {difference}")
    if report.beyond:
        click.echo(f"the log ends {report.beyond} positions before the old one did: it lost them")
    return 0


@click.command()
@click.argument("file", type=OutFile())
@data_option
def snapshot(file: Path, data: Path | None) -> int:
    """Write the read model to FILE for others to read; any DuckDB since 1.0 opens it."""
    return run(_snapshot(file, data))


def _check_target(file: Path, own: Sequence[Path]) -> None:
    """A copy replaces an older copy, and nothing else."""
    from projections import snapshot as snapshots

    if any(path.exists() and file.exists() and path.samefile(file) for path in own):
        raise click.UsageError(f"{file} is the read model of this data folder itself: name another file")
    if not snapshots.replaceable(file):
        raise click.UsageError(f"{file} is there and is no DuckDB file: name another file, or remove it first")


async def _snapshot(file: Path, data: Path | None) -> int:
    import shutil

    from handlers.cli.readmodel import levelled
    from handlers.cli.runtime import opened
    from projections import snapshot as snapshots
    from projections.store import StoreBusy

    async with opened(settings_from(data=data)) as station:
        _check_target(file, (station.read_model, station.published))
        try:
            async with levelled(station) as store:
                at: object = await asyncio.to_thread(snapshots.snapshot, store, file)
        except StoreBusy:
            if not station.published.exists():
                raise
            await asyncio.to_thread(shutil.copyfile, station.published, file)
            at = "of the newest snapshot"
    click.echo(f"position {at}: {file}")
    return 0
