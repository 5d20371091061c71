"""Requests to a backend: bounded in time and bytes, without redirects, and failing in words that a model can use."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from handlers.evidence.access import Access
from handlers.evidence.protocol import BadSource

SHOWN = 600
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ADVICE = {
    401: "not let in; set {env}_TOKEN, or {env}_USERNAME and {env}_PASSWORD",
    403: "not allowed with these credentials",
    404: "there is no such API here; check the address and its path",
    429: "too many requests; ask again later, or for less",
    502: "the gateway before it got no answer",
    503: "overloaded or not ready; ask again later, or for less",
    504: "the gateway before it waited too long; ask for less",
}


class BackendFailed(Exception):
    """A request that gave no usable answer; the text is for the model. `status` is HTTP's, where there was one."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, whatever its status; `cut` if it was longer than may be read and what was read is given."""

    status: int
    content_type: str
    body: bytes
    cut: bool = False

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Backend:
    """One server. Raises BadSource at once for files of certificates that cannot be read."""

    def __init__(self, kind: str, address: str, access: Access) -> None:
        self.address = address
        self.env = f"VERDICTLOG_{kind.upper()}"
        self._access = access
        self._headers = {"User-Agent": "verdictlog", **_tenant(kind, access.tenant)}
        self._auth: httpx.Auth | None = None
        if access.token is not None:
            self._headers["Authorization"] = f"Bearer {access.token.get_secret_value()}"
        elif access.username is not None:
            password = access.password.get_secret_value() if access.password is not None else ""
            self._auth = httpx.BasicAuth(access.username, password)
        self._verify: ssl.SSLContext | bool = _trust(access) if address.startswith("https") else True

    async def post(self, path: str, form: Mapping[str, str]) -> Answer:
        """POST a form, which may be longer than an address. Raises BackendFailed only where no answer came."""
        return await self._send("POST", path, {"data": dict(form)}, cut_ok=False)

    async def get(self, path: str, params: Mapping[str, str | list[str]]) -> Answer:
        return await self._send("GET", path, {"params": dict(params)}, cut_ok=False)

    async def lines(self, path: str, form: Mapping[str, str]) -> Answer:
        """POST a form whose answer is a line a record: what goes beyond the bound is left out, and said to be."""
        return await self._send("POST", path, {"data": dict(form)}, cut_ok=True)

    async def _send(self, method: str, path: str, content: Mapping[str, Any], cut_ok: bool) -> Answer:
        try:
            async with asyncio.timeout(self._access.timeout_s):
                return await self._read(method, path, content, cut_ok)
        except TimeoutError:
            text = (
                f"{self.address} did not answer within {self._access.timeout_s:g} s; ask for less, or a shorter window"
            )
            raise BackendFailed(text) from None
        except httpx.HTTPError as error:
            raise BackendFailed(f"{self.address} cannot be reached: {error or type(error).__name__}") from None

    async def _read(self, method: str, path: str, content: Mapping[str, Any], cut_ok: bool) -> Answer:
        most = self._access.max_bytes
        async with (
            httpx.AsyncClient(
                headers=self._headers,
                auth=self._auth,
                verify=self._verify,
                timeout=self._access.timeout_s,
                follow_redirects=False,
                trust_env=urlsplit(self.address).hostname not in LOOPBACK,
            ) as client,
            client.stream(method, f"{self.address}{path}", **content) as response,
        ):
            if response.is_redirect:
                where = response.headers.get("location", "")[:200]
                raise BackendFailed(f"{self.address} redirects to {where}, which is not followed", response.status_code)
            read = bytearray()
            async for chunk in response.aiter_bytes(1 << 16):
                read += chunk
                if len(read) > most:
                    break
            cut = len(read) > most
            if cut and not cut_ok:
                raise BackendFailed(
                    f"the answer is longer than {most} bytes; ask for less: a shorter window, fewer labels, topk(20, ...)",
                    response.status_code,
                )
            kind = response.headers.get("content-type", "")
            return Answer(response.status_code, kind, bytes(read[:most]), cut)

    def failure(self, answer: Answer, said: str | None = None) -> BackendFailed:
        """What an answer that is no success says; `said` is its own error text, where its form is known."""
        advice = _ADVICE.get(answer.status, "").format(env=self.env)
        text = said if said is not None else " ".join(answer.text[:SHOWN].split())
        if "html" in answer.content_type:
            text = "a web page, not an API's answer"
        return BackendFailed(": ".join(part for part in (f"HTTP {answer.status}", advice, text) if part), answer.status)


def _tenant(kind: str, tenant: str | None) -> dict[str, str]:
    if tenant is None:
        return {}
    if kind != "victorialogs":
        return {"X-Scope-OrgID": tenant}
    account, _, project = tenant.partition(":")
    return {"AccountID": account, "ProjectID": project or "0"}


def _trust(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.ca_file)
        if access.client_cert is not None:
            context.load_cert_chain(access.client_cert, access.client_key)
    except (OSError, ssl.SSLError) as error:
        named = access.client_cert if access.client_cert is not None else access.ca_file
        raise BadSource(str(named), f"is no usable certificate file ({error})") from error
    return context
