"""`anchor`: the heads of all chains and their Merkle root, recorded and told, and held against the log later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.options import OutFile, data_option, settings_from
from handlers.cli.process import program, run

if TYPE_CHECKING:
    from handlers.cli.logwalk import Outcome
    from handlers.cli.runtime import Station


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

    from handlers.cli.logwalk import Outcome, walk
    from handlers.cli.runtime import now
    from streams.chain import merkle_root
    from streams.envelope import Draft, Head
    from streams.events import ChainAnchored
    from streams.identity import epoch
    from streams.session import fold

    outcome = Outcome()
    seen = await walk(station, outcome)
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


def hold_anchor(anchor: Path, seen: dict[str, dict[int, str]], outcome: Outcome) -> None:
    """Every head that was kept elsewhere must still be there, with its hash; `seen`: hash by session and n."""
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
