"""A small HTTP/1.1 server for loopback: one thread per connection, keep-alive, no delay.

It can also misbehave on purpose: close or cut without an answer, never answer, or stop in the
middle of one. That is why the peers do not use a framework.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from peers.sockets import LoopbackServer

JSON = "application/json"
HTML = "text/html; charset=utf-8"
BODY_LIMIT = 1024 * 1024


class Manner(StrEnum):
    """How an answer reaches the caller."""

    ANSWER = "answer"
    DROP = "drop"
    """The connection is closed without a byte."""
    RESET = "reset"
    """The connection is cut with a TCP reset, without a byte."""
    HANG = "hang"
    """Nothing is sent and the connection stays until the caller gives up."""
    TRUNCATE = "truncate"
    """Half of the body is sent, then the connection is closed."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the routes see it; header names are lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as a JSON object (an empty body is an empty one); ValueError otherwise."""
        value = json.loads(self.body or b"{}")
        if not isinstance(value, dict):
            message = "the body must be a JSON object"
            raise ValueError(message)  # noqa: TRY004 - callers answer 400 to any ValueError
        return value

    def form(self) -> dict[str, str]:
        """The body as the fields of a form; of a repeated one the last."""
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, and the manner in which it is given."""

    status: int = 200
    body: bytes = b""
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    manner: Manner = Manner.ANSWER


def as_json(value: object, status: int = 200) -> Reply:
    """A JSON answer."""
    return Reply(status, json.dumps(value).encode())


Route = Callable[[Request], Reply]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if length > BODY_LIMIT:
            self.close_connection = True
            self._send(Reply(413))
            return
        self._send(self._answer(self.rfile.read(length)))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names of http.server

    def _answer(self, body: bytes) -> Reply:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        request = Request(self.command, parts.path, query, headers, body)
        route = self.server.routes.get((self.command, parts.path)) or self.server.otherwise
        try:
            return route(request)
        except (ValueError, KeyError, TypeError) as error:
            return as_json({"error": f"{type(error).__name__}: {error}"}, 400)

    def _send(self, reply: Reply) -> None:
        if reply.manner is Manner.ANSWER:
            self._write(reply, reply.body)
            return
        self.close_connection = True
        if reply.manner is Manner.TRUNCATE:
            self._write(reply, reply.body[: len(reply.body) // 2])
        elif reply.manner is Manner.RESET:
            self._reset()
        elif reply.manner is Manner.HANG:
            self._wait_for_the_caller_to_leave()

    def _write(self, reply: Reply, body: bytes) -> None:
        self.send_response_only(reply.status)
        self.send_header("Content-Type", reply.media_type)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _wait_for_the_caller_to_leave(self) -> None:
        while self.rfile.read(1):
            pass

    def _reset(self) -> None:
        # Closed by its number: an orderly end of the socket object would send a FIN first.
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        os.close(self.connection.detach())

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the caller has gone; that is its right
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of http.server
        """Nothing: the journal is the log."""


class _Server(LoopbackServer):
    routes: dict[tuple[str, str], Route]
    otherwise: Route


class WebServer:
    """Serves `routes` (method and path) on loopback; `otherwise` answers all else."""

    def __init__(
        self,
        routes: dict[tuple[str, str], Route],
        *,
        port: int = 0,
        otherwise: Route = lambda _: as_json({"error": "no such address"}, 404),
    ) -> None:
        self._server = _Server(port, _Handler)
        self._server.routes, self._server.otherwise = routes, otherwise
        self.url = f"http://127.0.0.1:{self._server.port}"

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def close(self) -> None:
        """Stop, and cut what is open."""
        self._server.stop()
