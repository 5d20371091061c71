"""One model endpoint: a request in, a completion out. The only retry layer there is.

The client's own retries are off: with its defaults one call may block for half an hour. Here a call never takes
longer than it is given, waits as long as the server asks (Retry-After) if that fits, and tries again only what may
pass by itself: 408, 429, 500, 502, 503, 504, 529, and connections that fail or break. A reply that is late is not
asked for twice: it may have been paid for.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from handlers.agents.capability import about_format, lacks_tools
from handlers.agents.completion import BadCompletion, Completion, read_completion
from handlers.agents.protocol import AgentFailed
from handlers.fence import one_line
from handlers.redaction import masked

if TYPE_CHECKING:
    import openai

DEFAULT_BASE_URL = "https://api.openai.com/v1"
RETRIED = frozenset({408, 429, 500, 502, 503, 504, 529})
NOT_SENT = frozenset({"ConnectTimeout", "PoolTimeout"})
_KEY_LIKE = re.compile(r"\b(?:sk|pk|key)-[A-Za-z0-9_*.-]{6,}")


class EndpointSettings(BaseModel):
    """Where the models are, and the bounds of a call to them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str = Field(DEFAULT_BASE_URL, description="of any server that speaks chat completions")
    api_key: SecretStr | None = Field(None, description="none for local servers")
    connect_timeout_s: float = Field(5.0, gt=0)
    reply_timeout_s: float = Field(120.0, gt=0, description="one request, from its start to the reply's last byte")
    max_retries: int = Field(4, ge=0)
    backoff_s: float = Field(0.5, ge=0, description="first wait where the server names none; it doubles up to 8 s")
    max_reply_bytes: int = Field(4 << 20, gt=0)


class Refused(Exception):
    """The server refused the request for what it asks: a status that is not retried, and its words."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(f"{status}: {told}")
        self.status = status
        self.told = told


@dataclass(frozen=True, slots=True)
class Sent:
    """A completion, and what it took: tries, seconds waited between them, the server's request id."""

    completion: Completion
    tries: int
    waited_s: float
    request_id: str | None


class Endpoint:
    """A client of one endpoint. Close it when done."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._client: openai.AsyncOpenAI | None = None
        parts = urlsplit(settings.base_url)
        self.name = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    async def send(self, request: Mapping[str, Any], deadline_s: float) -> Sent:
        """The completion of `request` within `deadline_s` seconds. Raises Refused, or AgentFailed with one line."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + deadline_s
        waited = 0.0
        for tries in range(1, self._settings.max_retries + 2):
            left = ends - loop.time()
            if left <= 0:
                raise self._failed(f"no reply within {_seconds(deadline_s)}")
            outcome = await self._once(request, min(left, self._settings.reply_timeout_s))
            if not isinstance(outcome, _Again):
                completion, request_id = outcome
                return Sent(completion, tries, round(waited, 3), request_id)
            pause = self._pause(tries) if outcome.after_s is None else outcome.after_s
            left = ends - loop.time()
            if tries > self._settings.max_retries:
                raise self._failed(f"{outcome.why} (tried {tries} times)")
            if pause >= left:
                raise self._failed(
                    f"{outcome.why}; the next try is due in {_seconds(pause)}, {_seconds(max(left, 0))} are left"
                )
            await asyncio.sleep(pause)
            waited += pause
        raise AssertionError("the loop returns or raises")

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _once(self, request: Mapping[str, Any], seconds: float) -> tuple[Completion, str | None] | _Again:
        import openai

        from handlers.agents.capped import TooLarge

        try:
            async with asyncio.timeout(seconds):
                raw = await self._open().chat.completions.with_raw_response.create(**request)
            completion = read_completion(raw.content, raw.headers.get("content-type", ""))
            return completion, raw.headers.get("x-request-id")
        except (TimeoutError, openai.APITimeoutError) as error:
            if type(error.__cause__).__name__ in NOT_SENT:
                return _Again("the connection could not be opened in time", None)
            raise self._failed(f"no reply within {_seconds(seconds)}") from None
        except openai.APIStatusError as error:
            if 300 <= error.status_code < 400:
                raise self._failed(self._elsewhere(error.response.headers.get("location", ""))) from None
            told = self._clean(error.message.removeprefix(f"Error code: {error.status_code} - "))
            lasting = (
                error.code == "insufficient_quota"
                or ("response_format" in request and about_format(told))
                or lacks_tools(request, error.status_code, told)
            )
            if error.status_code not in RETRIED or lasting:
                raise Refused(error.status_code, told) from None
            return _Again(f"{error.status_code}: {told}", retry_after(error.response.headers))
        except openai.APIConnectionError as error:
            return _Again(f"the connection failed: {self._clean(str(error.__cause__ or error))}", None)
        except TooLarge as error:
            raise self._failed(str(error)) from None
        except BadCompletion as error:
            if lacks_tools(request, 200, error.why):
                raise Refused(200, self._clean(error.why)) from None
            raise self._failed(self._clean(error.why)) from None
        except openai.OpenAIError as error:
            raise self._failed(self._clean(str(error))) from None

    def _open(self) -> openai.AsyncOpenAI:
        if self._client is None:
            import openai

            from handlers.agents.capped import cap

            bounds = self._settings
            timeout = openai.Timeout(bounds.reply_timeout_s, connect=bounds.connect_timeout_s)
            http = openai.DefaultAsyncHttpxClient(
                timeout=timeout,
                event_hooks={"response": [cap(bounds.max_reply_bytes)]},
                # Whoever answers there would be given the whole prompt, with all the evidence in it.
                follow_redirects=False,
            )
            self._client = openai.AsyncOpenAI(
                base_url=bounds.base_url,
                api_key=bounds.api_key.get_secret_value() if bounds.api_key else "none",
                max_retries=0,
                timeout=timeout,
                http_client=http,
                # A packed body would be measured packed.
                default_headers={"Accept-Encoding": "identity"},
            )
        return self._client

    def _elsewhere(self, location: str) -> str:
        try:
            parts = urlsplit(location)
            there = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else parts.path
        except ValueError:
            there = ""
        there = self._clean(there) or "no address"
        return f"redirects to {there}, which is not followed: set OPENAI_BASE_URL to the server that answers itself"

    def _pause(self, tries: int) -> float:
        longest = min(8.0, self._settings.backoff_s * 2.0 ** (tries - 1))
        spread: float = random.uniform(0.5, 1.0)  # noqa: S311 - keeps callers apart, guards nothing
        return longest * spread

    def _failed(self, why: str) -> AgentFailed:
        return AgentFailed(f"{self.name}: {why}", {"endpoint": self.name})

    def refused(self, error: Refused) -> AgentFailed:
        """The failure that a refusal comes to."""
        return self._failed(str(error))

    def _clean(self, told: str) -> str:
        key = self._settings.api_key
        if key is not None and key.get_secret_value():
            told = told.replace(key.get_secret_value(), "[key]")
        return one_line(masked(_KEY_LIKE.sub("[key]", told)), 300)


@dataclass(frozen=True, slots=True)
class _Again:
    why: str
    after_s: float | None


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            return max(0.0, float(text) / unit)
        except ValueError:
            pass
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            continue
        return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
    return None
