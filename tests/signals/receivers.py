"""Real receivers of pages on loopback: a webhook, and a mail server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import SecretStr

from notifier.signals.apprise_pager import AppriseReceiver


@dataclass
class Webhook:
    """Takes what is posted; `answers` with this status, after `gate` opens."""

    port: int
    answers: int = 200
    taken: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.port}/hook-t0k3n-in-the-address"

    @property
    def receiver(self) -> AppriseReceiver:
        return AppriseReceiver(SecretStr(self.url))

    @property
    def titles(self) -> list[str]:
        return [each["title"] for each in self.taken]


@contextmanager
def webhook() -> Iterator[Webhook]:
    """A real HTTP server that keeps what it was sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            held.gate.wait(30)
            if held.answers < 300:
                held.taken.append(json.loads(body))
            self.send_response(held.answers)
            self.send_header("content-length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            held.asked.append(self.path)
            self.send_response(held.answers)
            if held.answers in {301, 302}:
                self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    held = Webhook(server.server_address[1])
    held.gate.set()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield held
    finally:
        held.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
