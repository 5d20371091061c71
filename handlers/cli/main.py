"""`verdictlog`: commands by name, loaded when asked for; every error a line that says what, where and what to do."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from importlib import import_module
from typing import Any

import click

from handlers.cli.process import INTERRUPTED, end_by_interrupt, program, typeable

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("handlers.cli.demo:demo", "Play five diagnoses of a bundled incident: no key, no server needed."),
    "ask": ("handlers.cli.ask:ask", "Ask why a system misbehaves, over your logs, metrics and runbooks."),
    "judge": ("handlers.cli.judge:judge", "Verify somebody else's answer and tool calls."),
    "sessions": ("handlers.cli.audit:sessions", "List sessions with their verdicts."),
    "show": ("handlers.cli.audit:show", "Show a session, also as of an earlier event or time."),
    "diff": ("handlers.cli.audit:diff", "Tell what changed in a session between two moments."),
    "explain": ("handlers.cli.audit:explain", "Explain why each claim stands or falls, and what PASS would need."),
    "tail": ("handlers.cli.audit:tail", "Follow events as they are recorded."),
    "sql": ("handlers.cli.sql:sql", "Ask in SQL, read-only, over the read model."),
    "rebuild": ("handlers.cli.sql:rebuild", "Build the read model anew from the log."),
    "snapshot": ("handlers.cli.sql:snapshot", "Write the read model to a DuckDB file of its own."),
    "verify": ("handlers.cli.verify:verify", "Check the log, a session, or an exported bundle."),
    "anchor": ("handlers.cli.anchor:anchor", "Record the heads of all chains, for keeping elsewhere."),
    "admin": ("handlers.cli.admin:admin", "Archive and drop old epochs."),
    "export": ("handlers.cli.export:export", "Export a session that verifies itself, or Parquet."),
    "rejudge": ("handlers.cli.rejudge:rejudge", "Judge recorded sessions again; tell what would change."),
    "erase": ("handlers.cli.erase:erase", "Erase the text of a sealed session for good."),
    "fork": ("handlers.cli.fork:fork", "Make a new session from a moment of another one."),
    "up": ("handlers.cli.work:up", "Run all roles and the projector."),
    "worker": ("handlers.cli.work:worker", "Run some roles."),
    "mcp": ("handlers.cli.mcp:mcp", "Serve ask, judge_answer and show_session to other agents over MCP."),
    "parked": ("handlers.cli.parked:parked", "List what a role gave up on; ask it anew, or dismiss it."),
    "config": ("handlers.cli.config:config", "Print every setting, and where its value came from."),
    "schema": ("handlers.cli.schema:schema", "Print the JSON Schemas of requests and events."),
    "doctor": ("handlers.cli.ops:doctor", "Check server, streams, consumers, chains and read model."),
}
DONE, FAILED, USAGE, NOT_FOUND, UNREACHABLE = 0, 1, 2, 3, 4
PIECE = 8192
NO_ROOM = "No space left on device"
CUT_OFF = 128 + signal.SIGPIPE  # as a program ends whose reader has gone
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Refused(click.ClickException):
    """A command that cannot be done: one line, and the exit code of its kind (design section 8)."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        setattr(self, "exit_code", exit_code)  # noqa: B010  click declares it a class variable, and reads it so

    def show(self, file: object = None) -> None:  # noqa: ARG002
        click.echo(f"verdictlog: {one_line(typeable(self.message))}", err=True)


def one_line(text: str) -> str:
    """Text of others for a terminal: on one line, control characters shown and not obeyed."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in " ".join(text.split()))


def visible(text: str) -> str:
    """Text for a terminal: its lines kept, other control characters shown and not obeyed."""
    return "\n".join(
        "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in line) for line in text.split("\n")
    )


def pour(text: str, nl: bool = True) -> None:
    """Print a text of any size, in pieces: of one large write that fails in its middle Python tells nobody."""
    for at in range(0, len(text), PIECE):
        click.echo(text[at : at + PIECE], nl=False)
    if nl:
        click.echo()


class ReaderLeft(Exception):
    """Nobody reads the output any more."""


class Commands(click.Group):
    """Knows each command's name and one line of help without loading it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderLeft from error  # click would end the program here, as if it had failed

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="verdictlog")
def verdictlog() -> None:
    """Verdicts on what an AI agent says went wrong: every claim bound to a line of evidence, every step an event."""


def main() -> None:
    """The program. Unexpected errors are a line too; VERDICTLOG_DEBUG=1 shows where they came from."""
    end_by_interrupt()
    debug = os.environ.get("VERDICTLOG_DEBUG") == "1"
    try:
        level = os.environ.get("VERDICTLOG_LOG") or "ERROR"
        if level.upper() not in LEVELS:
            raise click.UsageError(f"VERDICTLOG_LOG={level}: expected one of {', '.join(LEVELS)}")
        logging.basicConfig(level=level.upper(), stream=sys.stderr, format="%(message)s")
        code = verdictlog(standalone_mode=False, prog_name=program())
        sys.exit(code if isinstance(code, int) else DONE)
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except click.UsageError as error:
        asked = error.ctx.command_path if error.ctx is not None else program()
        told = typeable(error.format_message())
        click.echo(f"verdictlog: {one_line(told)} (see `{asked} --help`)", err=True)
        sys.exit(USAGE)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ReaderLeft:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CUT_OFF)
    except Exception as error:
        if debug:
            raise
        refused = _refused(error)
        refused.show()
        sys.exit(refused.exit_code)


def _refused(error: Exception) -> Refused:
    names = {cls.__name__ for cls in type(error).__mro__}
    told = str(error) or type(error).__name__
    if NO_ROOM in told and "LogUnavailable" not in names:
        where = told.splitlines()[0].removeprefix(f"[Errno {errno.ENOSPC}] ")
        return Refused(
            f"{where}: make room on that disk and run this again; what was recorded is not lost", UNREACHABLE
        )
    if names & {
        "LogUnavailable",
        "TopologyFault",
        "ServerFailed",
        "LogWentBackwards",
        "StoreBusy",
        "SchemaMismatch",
        "BadStore",
        "UnknownEventType",
        "NoKey",
    }:
        return Refused(told, UNREACHABLE)
    if names & {"BrokenChain", "BadSeal"}:
        return Refused(
            f"{told}: `verdictlog verify` names each such place; a key file that was changed belongs back", FAILED
        )
    if names & {"BrokenArchive", "NotTheSame", "NotAsKept"}:
        return Refused(told, FAILED)
    if "NotOnShelf" in names:
        return Refused(told, NOT_FOUND)
    if names & {
        "BadCase",
        "BadSource",
        "BadSessionId",
        "TurnIsOpen",
        "ValidationError",
        "EpochDropped",
        "BadEpoch",
        "SessionErased",
        "NotRetried",
    }:
        return Refused(told, USAGE)
    if isinstance(error, FileExistsError) and error.filename is None:
        return Refused(told, USAGE)
    if isinstance(error, OSError) and error.filename is not None:
        # A path that a flag named, or that follows from one.
        mistaken = isinstance(error, FileNotFoundError | FileExistsError | NotADirectoryError | IsADirectoryError)
        wrong = mistaken or isinstance(error, PermissionError)
        return Refused(f"{os.fsdecode(error.filename)}: {error.strerror}", USAGE if wrong else FAILED)
    return Refused(f"{type(error).__name__}: {told} (VERDICTLOG_DEBUG=1 shows where)", FAILED)


if __name__ == "__main__":
    main()
