"""An auth service that answers with exactly the bytes it is told to, and counts requests."""

from __future__ import annotations

import contextlib
import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.providers.scripted_smtp import Do

Answer = bytes | Do


@dataclass
class ScriptedHttp:
    """What came, in order; `answer` is what each request gets."""

    answer: Answer
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    connections: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    url: str = ""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        peer = self.server.peer
        peer.connections += 1
        with contextlib.suppress(OSError):
            while self.serve_one(peer):
                pass

    def serve_one(self, peer: ScriptedHttp) -> bool:
        line = self.rfile.readline().decode()
        if not line:
            return False
        headers: dict[str, str] = {}
        while header := self.rfile.readline().decode().strip():
            name, _, value = header.partition(": ")
            headers[name.lower()] = value
        body = self.rfile.read(int(headers.get("content-length", "0")))
        peer.requests.append((line.strip(), headers, body))
        return self.give(peer)

    def give(self, peer: ScriptedHttp) -> bool:
        match peer.answer:
            case bytes() as answer:
                self.wfile.write(answer)
                return b"Connection: close" not in answer
            case Do.DRIP:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while not peer.stopping.wait(0.03):
                    self.wfile.write(b"x")
            case Do.HANG:
                peer.stopping.wait()
            case _:
                pass
        return False


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64
    peer: ScriptedHttp
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        with contextlib.suppress(OSError):
            if self.tls is None:
                super().finish_request(request, client_address)
                return
            with self.tls.wrap_socket(request, server_side=True) as encrypted:
                super().finish_request(encrypted, client_address)


@contextlib.contextmanager
def answering(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[ScriptedHttp]:
    """A running auth service on loopback."""
    peer = ScriptedHttp(answer)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.peer, server.tls = peer, tls
        scheme = "https" if tls else "http"
        peer.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/links?tenant=1"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield peer
        finally:
            peer.stopping.set()
            server.shutdown()
            thread.join()


def http(status: int, body: object = None, *headers: str) -> bytes:
    """A whole answer; `body` is bytes, or anything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(raw)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


LINK = "https://accounts.example.test/reset?token=planted-token-5519"
ADDRESS = "planted.person.7261@example.test"


def granted(**changes: object) -> bytes:
    """A good 200 answer with some members changed; `...` leaves a member out."""
    document: dict[str, object] = {"reset_url": LINK, "destination": ADDRESS, **changes}
    return http(200, {name: value for name, value in document.items() if value is not ...})
