"""A backend for tests: real HTTP on a free local port, answering by path what a test says, and keeping what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request; `form` are its parameters, from the address and the body."""

    method: str
    path: str
    form: dict[str, list[str]]
    headers: dict[str, str]

    def one(self, name: str) -> str:
        (value,) = self.form[name]
        return value


@dataclass(frozen=True)
class Says:
    """One answer; a `body` that is no bytes is sent as JSON."""

    body: object = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


class StubBackend:
    """`with StubBackend(answer) as stub:`, then `stub.url` and `stub.asked`."""

    def __init__(self, answer: Callable[[Asked], Says]) -> None:
        self.asked: list[Asked] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer("")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers.get("content-length", "0"))).decode())

            def _answer(self, body: str) -> None:
                parts = urlsplit(self.path)
                form = parse_qs("&".join(filter(None, (parts.query, body))), keep_blank_values=True)
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Asked(self.command, parts.path, form, headers)
                asked.append(request)
                says = answer(request)
                time.sleep(says.delay_s)
                data = says.body if isinstance(says.body, bytes) else json.dumps(says.body).encode()
                self.send_response(says.status)
                for name, value in {"content-type": says.content_type, **says.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                try:
                    self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):
                    return  # who asked has read enough

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                return

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StubBackend:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
