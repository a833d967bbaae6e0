"""An HTTP API that follows a script to the byte, and counts what it reads on the wire.

A script says what to do at each point of a request (ACCEPT, GREETED once TLS is up, LINE,
HEADERS, MID_BODY, BODY); where it says nothing the peer goes on reading, and gives `ANSWER`
at the end.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.providers.scripted_smtp import RESET_ON_CLOSE, Do

Answer = bytes | Do | tuple[bytes | Do, ...]
Choose = Callable[[str], Answer]
"""An answer by request line, for peers that are asked more than one thing."""


@dataclass(frozen=True)
class Request:
    line: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class ScriptedApi:
    """`requests` are those read to the last byte; `lines` those of which the line was read."""

    script: Mapping[str, Answer | Choose]
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    connections: int = 0
    gone: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def posts(self) -> int:
        return sum(line.startswith("POST ") for line in self.lines)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


class _GoneError(Exception):
    """The conversation has ended."""


class _Talk(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        peer = self.server.peer
        peer.connections += 1
        self.sock: Any = self.request
        with contextlib.suppress(OSError, _GoneError):
            self.reach("ACCEPT")
            if peer.tls is not None:
                self.sock = peer.tls.wrap_socket(self.request, server_side=True)
            self.reach("GREETED")
            self.heard = self.sock.makefile("rb")
            while self.one():
                pass
        with contextlib.suppress(OSError):
            self.sock.close()
        peer.gone.set()

    def one(self) -> bool:
        peer = self.server.peer
        line = self.heard.readline().decode().strip()
        if not line:
            return False
        peer.lines.append(line)
        self.reach("LINE")
        headers: dict[str, str] = {}
        while header := self.heard.readline().decode().strip():
            name, _, value = header.partition(": ")
            headers[name.lower()] = value
        self.reach("HEADERS")
        length = int(headers.get("content-length", "0"))
        body = self.heard.read(length // 2)
        self.reach("MID_BODY")
        body += self.heard.read(length - len(body))
        if len(body) < length:
            return False
        peer.requests.append(Request(line, headers, body))
        self.reach("BODY")
        answer = peer.script.get("ANSWER", b"")
        self.give(answer(line) if callable(answer) else answer)
        return True

    def reach(self, point: str) -> None:
        step = self.server.peer.script.get(point)
        if step is not None and not callable(step):
            self.give(step)
            self.drain()

    def give(self, step: Answer) -> None:
        peer = self.server.peer
        match step:
            case tuple():
                for each in step:
                    self.give(each)
            case bytes():
                self.sock.sendall(step)
            case Do.DRIP:
                while not peer.stopping.wait(0.03):
                    self.sock.sendall(b"x")
            case Do.STALL:
                peer.stopping.wait()
            case Do.HANG:
                self.drain()
            case Do.RESET:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                self.hang_up()
            case _:
                self.hang_up()

    def hang_up(self) -> None:
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock = socket.socket(fileno=self.sock.detach())
        if hasattr(self, "heard"):
            self.heard.close()
        self.sock.close()
        raise _GoneError

    def drain(self) -> None:
        """Read and drop until the client goes."""
        while self.sock.recv(65536):
            pass
        raise _GoneError


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64
    peer: ScriptedApi

    def shutdown_request(self, request: Any) -> None:
        with contextlib.suppress(OSError):
            request.close()


@contextlib.contextmanager
def api(
    answer: Answer | Choose = b"",
    *,
    tls: ssl.SSLContext | None = None,
    **script: Answer,
) -> Iterator[ScriptedApi]:
    """A running peer on loopback that gives `answer` to every whole request."""
    peer = ScriptedApi({"ANSWER": answer, **script}, tls)
    with _Server(("127.0.0.1", 0), _Talk) as server:
        server.peer = peer
        peer.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield peer
        finally:
            peer.stopping.set()
            server.shutdown()
            thread.join()


def reply(status: int, body: object = None, *headers: str) -> bytes:
    """A whole answer; `body` is bytes, or anything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(raw)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw
