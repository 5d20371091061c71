"""Stands between the agents and a model server and keeps every exchange as it went over the wire."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

Exchange = dict[str, Any]


@contextmanager
def recording(address: str, folder: Path) -> Iterator[tuple[str, list[Exchange]]]:
    """Hands requests on to the server at `address`, word for word; yields the base URL to ask instead, and the
    exchanges so far as `{request, status, reply, seconds}`. Each is also a file in `folder`."""
    server = urlsplit(address)
    kept: list[Exchange] = []

    class Relay(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["content-length"]))
            began = time.monotonic()
            upstream = HTTPConnection(server.hostname or "", server.port or 0)
            try:
                upstream.request("POST", self.path, asked, {"content-type": "application/json"})
                answer = upstream.getresponse()
                body = answer.read()
            finally:
                upstream.close()
            exchange = {
                "request": json.loads(asked),
                "status": answer.status,
                "reply": json.loads(body),
                "seconds": round(time.monotonic() - began, 1),
            }
            kept.append(exchange)
            text = json.dumps(exchange, ensure_ascii=False, indent=1)
            (folder / f"exchange-{len(kept):02}.json").write_text(text, encoding="utf-8")
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type", "application/json"))
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """The exchanges are the record; a line per request on top says nothing new."""

    relay = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    thread = Thread(target=relay.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{relay.server_port}/v1", kept
    finally:
        relay.shutdown()
        relay.server_close()
        thread.join()
