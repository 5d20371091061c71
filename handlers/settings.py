"""Settings: flag > `VERDICTLOG_*` > `.env` > `verdictlog.toml` > default. Keys are secrets: never printed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from handlers.evidence.access import Access
from handlers.evidence.mcp_access import McpServer
from streams.contract import LONGEST_S


class Settings(BaseSettings):
    """All settings, each with its unit. `OPENAI_*` and `NATS_URL` keep the names that everybody uses."""

    model_config = SettingsConfigDict(
        env_prefix="VERDICTLOG_",
        env_file=".env",
        toml_file="verdictlog.toml",
        env_nested_delimiter="_",
        env_nested_max_split=1,
        env_ignore_empty=True,  # `NATS_URL= verdictlog ...` is how a shell takes a setting back
        extra="ignore",
        populate_by_name=True,
    )

    data: Path = Field(Path(".verdictlog"), description="data folder of local mode")
    nats_url: str | None = Field(None, validation_alias="NATS_URL", description="none: local mode")
    archives: Path | None = Field(
        None, description="folder with the archives of dropped epochs, each under its epoch; none: in the data folder"
    )
    nats_credentials: Path | None = Field(None, description="nkey seed or credentials file")
    lang: Literal["zh-CN", "en"] | None = Field(None, description="language of answers; none: zh-CN")
    agents: Literal["offline", "openai"] | None = Field(None, description="none: openai if an endpoint is set")
    deadline_s: float = Field(300.0, gt=0, le=LONGEST_S, description="seconds until a turn is ended (ruling 15)")
    max_attempts: int = Field(2, ge=0, le=5, description="evaluations in a round (ruling 11)")
    on_exhausted: Literal["cap", "fallback"] = Field("cap", description="what follows an exhausted repair loop")
    external_repair_wait_s: float = Field(
        0.0, ge=0, le=3600, description="seconds a foreign agent has to mend its answer or give a second round"
    )
    seal: bool = Field(False, description="text of new sessions is sealed, so that it can be erased")
    keys: Path | None = Field(None, description="folder of the keys of sealed sessions; none: in the data folder")
    redact: bool = Field(True, description="secrets and personal data are replaced before anything is recorded or sent")
    prometheus: Access = Field(
        Access(), description="VERDICTLOG_PROMETHEUS_TOKEN and so on, for `--metrics http://...`"
    )
    loki: Access = Field(Access(), description="for `--logs loki+http://...`")
    victorialogs: Access = Field(Access(), description="for `--logs vlogs+http://...`")
    mcp: dict[str, McpServer] = Field(default_factory=dict, description="[mcp.NAME]: servers whose tools `ask` uses")
    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(None, validation_alias="OPENAI_BASE_URL")
    model: str = Field("gpt-4o-mini", description="model of every role that names none of its own")
    planner_model: str | None = None
    executor_model: str | None = None
    verifier_model: str | None = None
    max_tokens: int = Field(4096, gt=0, description="bound of one reply, always sent")
    evidence_chars: int = Field(160_000, gt=0, description="evidence text in one request; less for a small context")
    request_timeout_s: float = Field(60.0, gt=0, description="of one model request")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = TomlConfigSettingsSource(settings_cls)
        return init_settings, env_settings, dotenv_settings, toml, file_secret_settings

    @property
    def of_server(self) -> str:
        """Tells files of one server from those of another: a read model, and keys, belong to one log. "": local mode."""
        return "" if self.nats_url is None else f"-{hashlib.sha256(self.nats_url.encode()).hexdigest()[:8]}"

    @property
    def archives_folder(self) -> Path:
        """Where the archives of dropped epochs are looked for."""
        return self.archives or self.data / f"archive{self.of_server}"

    @property
    def keys_folder(self) -> Path:
        """Where the keys of sealed sessions are."""
        return self.keys or self.data / f"keys{self.of_server}"

    @property
    def accesses(self) -> dict[str, Access]:
        """How backends are reached, by kind."""
        return {"prometheus": self.prometheus, "loki": self.loki, "victorialogs": self.victorialogs}

    @property
    def chosen_agents(self) -> Literal["offline", "openai"]:
        """What was set; else `openai` where an endpoint or a key is set, else `offline`."""
        if self.agents is not None:
            return self.agents
        return "openai" if self.openai_api_key or self.openai_base_url else "offline"


def unknown_keys(held: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a `verdictlog.toml` that no setting has, as paths: a slip of the pen must not leave a default in force."""
    fields = Settings.model_fields
    known = {str(field.validation_alias or name) for name, field in fields.items()} | set(fields)
    for key, value in held.items():
        if key not in known:
            yield key
        elif key == "mcp" and isinstance(value, Mapping):
            for name, server in value.items():
                yield from (f"mcp.{name}.{part}" for part in _beyond(server, McpServer))
        elif key in fields and fields[key].annotation is Access:
            yield from (f"{key}.{part}" for part in _beyond(value, Access))


def _beyond(held: Any, model: type[BaseModel]) -> Iterator[str]:
    if isinstance(held, Mapping):
        yield from (key for key in held if key not in model.model_fields)
