"""How a backend is reached: addresses without secrets in them, and what `VERDICTLOG_PROMETHEUS_*` and its like say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import BaseModel, Field, SecretStr

from handlers.evidence.protocol import BadSource

PREFIXES: Final = {"loki+": "loki", "vlogs+": "victorialogs", "": "prometheus"}


class Access(BaseModel):
    """Credentials and bounds of one kind of backend. None of it is ever part of an event."""

    username: str | None = Field(None, description="basic authentication")
    password: SecretStr | None = None
    token: SecretStr | None = Field(None, description="bearer token; wins over basic authentication")
    tenant: str | None = Field(None, description="X-Scope-OrgID; for VictoriaLogs ACCOUNT or ACCOUNT:PROJECT")
    ca_file: Path | None = Field(None, description="PEM file of the authorities to trust instead of the system's")
    client_cert: Path | None = Field(None, description="PEM file, with its key unless client_key names it")
    client_key: Path | None = None
    timeout_s: float = Field(30.0, gt=0, description="of one request, from the first to the last byte")
    max_bytes: int = Field(32 << 20, gt=0, description="a longer answer is refused before it fills memory")


Accesses = Mapping[str, Access]
"""By kind of backend: `prometheus`, `loki`, `victorialogs`."""


def is_address(source: str) -> bool:
    return "://" in source


def kind_of(source: str) -> tuple[str, str]:
    """(kind, plain address) of `http://...`, `loki+http://...`, `vlogs+http://...`. Raises BadSource."""
    prefix = next(prefix for prefix in PREFIXES if source.startswith(prefix))
    address = source.removeprefix(prefix)
    parts = urlsplit(address)
    try:
        named = parts.scheme in {"http", "https"} and parts.hostname is not None and parts.port != 0
    except ValueError:
        named = False
    if not named:
        raise BadSource(source.rpartition("@")[2], "is no address; write http(s)://HOST:PORT[/PREFIX]")
    if parts.query or parts.fragment:
        raise BadSource(
            source.partition("?")[0].partition("#")[0],
            "an address ends with its path; leave out what follows `?` or `#`",
        )
    return PREFIXES[prefix], address.rstrip("/")


def without_secrets(source: str) -> tuple[str, tuple[str, str] | None]:
    """`source` without the user and password before its `@`, and these."""
    parts = urlsplit(source)
    user, mark, host = parts.netloc.rpartition("@")
    clean = urlunsplit((parts.scheme, host, *parts[2:]))
    if not mark:
        return clean, None
    name, _, password = user.partition(":")
    return clean, (unquote(name), unquote(password))
