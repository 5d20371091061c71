"""`schema`: the JSON Schemas that foreign agents write against."""

from __future__ import annotations

import click

from handlers.cli.main import NOT_FOUND, Refused

CASE = "case"


@click.command()
@click.argument("kind", metavar="[TYPE]", required=False)
@click.option(
    "--event", is_flag=True, help="The payload as it stands in the log, also for a type that can be requested."
)
def schema(kind: str | None, event: bool) -> int:
    """Print the JSON Schema of TYPE: what may be requested on `vl-in.<session>.TYPE`, else an event's payload in
    the log; `case` is a file of `judge`. Without TYPE, all: `{"requests": {...}, "events": {...}, "case": {...}}`."""
    import orjson

    from handlers.case import case_schema
    from handlers.requests import REQUESTS
    from handlers.requests import schema as request_schema
    from streams.events import LATEST

    if kind is None:
        requests = {} if event else {name: request_schema(name) for name in REQUESTS}
        events = {name: cls.model_json_schema() for name, cls in LATEST.items()}
        told = {"events": events} if event else {"requests": requests, "events": events, "case": case_schema()}
    elif kind == CASE:
        told = case_schema()
    elif kind in REQUESTS and not event:
        told = request_schema(kind)
    elif kind in LATEST:
        told = LATEST[kind].model_json_schema()
    else:
        raise Refused(
            f"schema: there is no type {kind!r}; there are: {', '.join(sorted({*LATEST, *REQUESTS, CASE}))}", NOT_FOUND
        )
    click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
    return 0
