"""`verdictlog config`: every setting as it holds here, and where its value came from. No secret is ever printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.main import LEVELS, one_line
from handlers.cli.options import Seconds, data_option, json_option, lang_option, seal_option, settings_from

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handlers.settings import Settings

HIDDEN = "***"
FLAG, ENVIRONMENT, ENV_FILE, TOML, DEFAULT = "flag", "environment", ".env", "verdictlog.toml", "default"
_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)\S*@")
_SERVER = re.compile(r"(?:\w+://)?(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?/?")
_QUERY = re.compile(r"([?&][^=&#\s]+=)[^&#\s]+")
_SECRET_FLAG = re.compile(r"(?i)(?:token|secret|passw|pwd|key|auth|credential|bearer|header)")


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting: its value without secrets, where it came from, and the variable that sets it (None: a file alone)."""

    value: Any
    origin: str
    variable: str | None


@click.command()
@click.option("--agents", type=click.Choice(["offline", "openai"]), default=None, help="As on `ask` and `judge`.")
@click.option("--max-attempts", type=click.IntRange(0, 5), default=None, help="As on `judge`.")
@click.option("--on-exhausted", type=click.Choice(["cap", "fallback"]), default=None, help="As on `judge`.")
@click.option("--deadline", "deadline_s", type=Seconds(), default=None, help="As on `ask` and `judge`.")
@lang_option
@seal_option
@json_option
@data_option
def config(as_json: bool, **flags: Any) -> int:
    """Print every setting, its value, and where that came from: flag, environment, .env, verdictlog.toml, default.

    Secrets are shown as ***. --json: one object, `{setting: {value, from, variable}}`.
    """
    shown = settings_shown(settings_from(**flags), {key for key, value in flags.items() if value is not None})
    if as_json:
        import orjson

        told = {name: {"value": one.value, "from": one.origin, "variable": one.variable} for name, one in shown.items()}
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
        return 0
    width = max(map(len, shown))
    for name, one in shown.items():
        click.echo(f"{one_line(name):<{width}}  {one.origin:<15}  {one_line(_plain(one.value))}")
    return 0


def settings_shown(settings: Settings, flags: set[str]) -> dict[str, Shown]:
    """Every setting by its dotted name, in the order of `Settings`; `flags`: those that a flag gave."""
    from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource, TomlConfigSettingsSource

    from handlers.settings import Settings as Known

    sources = {
        FLAG: dict.fromkeys(flags),
        ENVIRONMENT: EnvSettingsSource(Known)(),
        ENV_FILE: DotEnvSettingsSource(Known)(),
        TOML: TomlConfigSettingsSource(Known)(),
    }
    shown: dict[str, Shown] = {}
    for path, alias, value in leaves(settings):
        names = (alias or path[0], path[0])
        origin = next((one for one, held in sources.items() if _has(held, names, path[1:])), DEFAULT)
        variable = alias or (None if path[0] == "mcp" else f"VERDICTLOG_{'_'.join(path).upper()}")
        shown[".".join(path)] = Shown(without_secrets(value, path), origin, variable)
    _by_themselves(settings, shown)
    return shown | _of_the_program()


def leaves(settings: Settings) -> Iterator[tuple[tuple[str, ...], str | None, Any]]:
    """(path, alias, value) of every setting; the parts of a backend's access and of an MCP server are settings, too."""
    from pydantic import BaseModel

    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        alias = field.validation_alias
        if isinstance(value, BaseModel):
            yield from (((name, *path), None, part) for path, part in _parts(value))
        elif isinstance(value, dict) and value:
            for key, server in value.items():
                yield from (((name, key, *path), None, part) for path, part in _parts(server))
        else:
            yield (name,), alias if isinstance(alias, str) else None, value


def _parts(model: BaseModel) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in type(model).model_fields:
        yield (name,), getattr(model, name)


def _has(held: Mapping[str, Any], names: tuple[str, ...], rest: tuple[str, ...]) -> bool:
    for name in names:
        value: Any = held.get(name, held)
        if value is held:
            continue
        for part in rest:
            if not isinstance(value, Mapping) or part not in value:
                return False
            value = value[part]
        return True
    return False


def _by_themselves(settings: Settings, shown: dict[str, Shown]) -> None:
    """What follows where nothing was set: it is what holds."""
    follows = {
        "lang": "zh-CN",
        "agents": settings.chosen_agents,
        "keys": settings.keys_folder.as_posix(),
        "archives": settings.archives_folder.as_posix(),
    }
    for name, value in follows.items():
        if shown[name].value is None:
            shown[name] = Shown(value, shown[name].origin, shown[name].variable)
    model = shown["model"]
    for role in ("planner_model", "executor_model", "verifier_model"):
        if shown[role].value is None:
            shown[role] = Shown(model.value, model.origin, shown[role].variable)


def _of_the_program() -> dict[str, Shown]:
    """What only the environment can set, before any setting is read."""
    import os

    shown = {}
    for name, default in (("log", "ERROR"), ("debug", "0")):
        variable = f"VERDICTLOG_{name.upper()}"
        given = os.environ.get(variable)
        level = given.upper() if given and given.upper() in LEVELS else given
        shown[name] = Shown(level or default, ENVIRONMENT if given else DEFAULT, variable)
    return shown


def without_secrets(value: Any, path: tuple[str, ...] = ()) -> Any:
    """A value for everybody's eyes: keys and passwords as ***, also those inside an address or a command's arguments."""
    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, Mapping):
        return {key: without_secrets(one, path) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return _arguments([str(one) for one in value])
    if not isinstance(value, str):
        return value
    if path == ("nats_url",):
        return ",".join(map(_server, value.split(",")))
    if path[-1:] == ("command",):
        return " ".join(_arguments(value.split()))
    return _text(value) if "://" in value else value


def _server(address: str) -> str:
    """One of NATS' addresses: with or without a scheme; what is none is not shown, because it may be part of a password."""
    scheme, sign, rest = address.strip().rpartition("://")
    _, user, host = rest.rpartition("@")
    if user:
        return f"{scheme}{sign}{HIDDEN}@{host}"
    return address.strip() if _SERVER.fullmatch(address.strip()) else HIDDEN


def _text(text: str) -> str:
    from handlers.redaction import PLACEHOLDER, alone

    shown = _QUERY.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))
    return PLACEHOLDER.sub(HIDDEN, alone(shown))


def _arguments(words: list[str]) -> list[str]:
    shown, follows = [], False
    for word in words:
        name, sign, _ = word.partition("=")
        secret = _SECRET_FLAG.search(name) is not None
        if follows and not word.startswith("-"):
            shown.append(HIDDEN)
        elif secret and sign:
            shown.append(f"{_text(name)}={HIDDEN}")
        else:
            shown.append(_text(word))
        follows = secret and not sign and word.startswith("-")
    return shown


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, ensure_ascii=False)
    return str(value)
