"""Options that many commands share, and the settings that flags win over."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from handlers.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


class Seconds(click.ParamType[float]):
    """Seconds as a number: above 0, finite, at most a year."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from streams.contract import LONGEST_S

        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= LONGEST_S:  # false for NaN too
            self.fail(f"{value!r} is no number of seconds above 0 (a year, {LONGEST_S}, at most)", param, ctx)
        return seconds


class OutFile(click.Path):
    """A file to write: no folder, in a folder that is there."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"{path}: there is no folder {path.parent}", param, ctx)
        return path


AGENTS = "offline|openai|scripted:FILE"


def data_option(command: F) -> F:
    """`--data DIR`, on every command."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path),
        default=None,
        help="Data folder of local mode (default: .verdictlog).",
    )(command)


def json_option(command: F) -> F:
    """`--json`: one documented object, or one a line."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def lang_option(command: F) -> F:
    return click.option(
        "--lang", type=click.Choice(["zh-CN", "en"]), default=None, help="Language of the answer (default: zh-CN)."
    )(command)


def seal_option(command: F) -> F:
    """`--seal`: the setting, for this command."""
    return click.option(
        "--seal/--no-seal", default=None, help="Seal the text of new sessions, so that it can be erased (default: no)."
    )(command)


def agents_option(command: F) -> F:
    return click.option("--agents", default=None, metavar=AGENTS, help="Who plans, answers and verifies.")(command)


def settings_from(**flags: Any) -> Settings:
    """Settings with those flags laid over that were given. A key that `verdictlog.toml` should not have is an error."""
    from pydantic import ValidationError

    from handlers.settings import Settings, unknown_keys
    from handlers.strict_json import complaint

    file = Path(str(Settings.model_config["toml_file"]))
    try:
        held = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file}: {error}") from None
    unknown = next(unknown_keys(held), None)
    if unknown is not None:
        raise click.UsageError(f"{file}: {unknown}: there is no such setting: `verdictlog config` lists them")
    try:
        return Settings(**{key: value for key, value in flags.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise click.UsageError(f"setting {where}: {complaint(first)}") from None


def recorded_reason(reason: str, redact: bool) -> str:
    """What is recorded of `--reason`."""
    from handlers.redaction import alone

    return alone(reason) if redact else reason
