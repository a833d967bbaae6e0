"""An SMTP server that follows a script to the byte and keeps a journal.

It holds a message from the moment it has read the whole end-of-data mark, unless its script
refuses the message in words: what happens to the answer after that changes nothing.
"""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class Do(Enum):
    """What a script may have the peer do in place of an answer."""

    HANG = "say nothing until the client goes"
    STALL = "not even read any more"
    CLOSE = "hang up"
    RESET = "reset the connection"
    DRIP = "send one byte of a long answer now and then, for ever"


Step = bytes | Do | tuple[bytes | Do, ...]
"""Bytes to send, something to do, or a tuple of them: bytes in it go as separate packets."""

USUAL: Final[Mapping[str, Step]] = {
    "BANNER": b"220 peer ready\r\n",
    "EHLO": b"250-peer\r\n250-8BITMIME\r\n250 HELP\r\n",
    "STARTTLS": b"220 go ahead\r\n",
    "AUTH": b"235 2.7.0 welcome\r\n",
    "MAIL": b"250 2.1.0 ok\r\n",
    "RCPT": b"250 2.1.5 ok\r\n",
    "DATA": b"354 go on\r\n",
    "TEXT": b"",
    "END": b"250 2.0.0 queued as 4711 for somebody@example.test\r\n",
    "QUIT": b"221 2.0.0 bye\r\n",
}
RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


@dataclass
class ScriptedSmtp:
    """Listens on loopback. `commands` and `held` are what it heard and what it took."""

    script: Mapping[str, Step] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    tls_at_once: bool = False
    commands: list[str] = field(default_factory=list)
    held: list[bytes] = field(default_factory=list)
    connections: int = 0
    gone: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def step(self, phase: str) -> Step:
        return self.script.get(phase, USUAL[phase])

    def verbs(self) -> list[str]:
        return [command.partition(" ")[0] for command in self.commands]


class _GoneError(Exception):
    """The client has left, or the script has ended the conversation."""


@dataclass
class _Talk:
    peer: ScriptedSmtp
    sock: socket.socket
    heard: bytes = b""

    def run(self) -> None:
        if self.peer.tls_at_once:
            self.encrypt()
        self.play("BANNER")
        while True:
            command = self.read_until(b"\r\n").decode()
            self.peer.commands.append(command.removesuffix("\r\n"))
            verb = command.strip().partition(" ")[0].upper()
            self.play(verb if verb in USUAL else "AUTH")
            if verb == "STARTTLS":
                self.encrypt()
            if verb == "DATA" and self.peer.step("DATA") == USUAL["DATA"]:
                self.take_text()
            if verb == "QUIT":
                raise _GoneError

    def encrypt(self) -> None:
        assert self.peer.tls is not None
        self.sock = self.peer.tls.wrap_socket(self.sock, server_side=True)

    def take_text(self) -> None:
        if self.peer.step("TEXT"):
            self.read_until(b"\r\n")
            self.play("TEXT")
        text = self.read_until(b"\r\n.\r\n")
        answer = self.peer.step("END")
        if not (isinstance(answer, bytes) and answer[:1] in b"45"):
            self.peer.held.append(text)
        self.play("END")

    def play(self, phase: str) -> None:
        self.give(self.peer.step(phase))

    def give(self, step: Step) -> None:
        match step:
            case bytes() as answer:
                self.sock.sendall(answer)
            case tuple() as steps:
                for each in steps:
                    self.give(each)
                    self.peer.stopping.wait(0.005)
            case Do.HANG:
                self.wait_for_the_end()
            case Do.STALL:
                self.peer.stopping.wait()
                raise _GoneError
            case Do.CLOSE:
                raise _GoneError
            case Do.RESET:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                raise _GoneError
            case Do.DRIP:
                self.sock.sendall(b"250-")
                while not self.peer.stopping.wait(0.03):
                    self.sock.sendall(b"x")

    def wait_for_the_end(self) -> None:
        while self.sock.recv(4096):
            pass
        raise _GoneError

    def read_until(self, mark: bytes) -> bytes:
        while mark not in self.heard:
            data = self.sock.recv(65536)
            if not data:
                raise _GoneError
            self.heard += data
        found, _, self.heard = self.heard.partition(mark)
        return found + mark


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        peer = self.server.peer
        peer.connections += 1
        talk = _Talk(peer, self.request)
        with contextlib.suppress(_GoneError, OSError):
            talk.run()
        talk.sock.close()
        peer.gone.set()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    peer: ScriptedSmtp

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        super().server_bind()


@contextlib.contextmanager
def scripted(
    script: Mapping[str, Step] | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    tls_at_once: bool = False,
    host: str = "127.0.0.1",
    **more: Step,
) -> Iterator[ScriptedSmtp]:
    """A running peer; `script` and further keywords give the phases that are not as usual."""
    peer = ScriptedSmtp({**(script or {}), **more}, tls, tls_at_once)
    with _Server((host, 0), _Handler) as server:
        server.peer, peer.port = peer, server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield peer
        finally:
            peer.stopping.set()
            server.shutdown()
            thread.join()


def text_lines(held: bytes) -> bytes:
    """A held message as its author wrote it: the end mark gone, doubled dots single."""
    return re.sub(rb"(?m)^\.\.", b".", held.removesuffix(b".\r\n"))
