"""The wire of an SMTP conversation: one command out, one reply in, all within a deadline.

Written on the bare socket because the outcome of a send depends on which byte was handed
over when a line broke. The standard client hides that: it reports a timeout as a closed
connection, and it answers some refusals by closing on its own.

What a server says in words never leaves this file: it may quote the recipient.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass, field

from notifier.timed_sockets import Deadline

MAX_LINE = 4096
"""Bytes in one line of a reply; RFC 5321 (4.5.3.1.5) asks for 512, some servers say more."""
MAX_LINES = 128
QUIT_WAIT_S = 0.5

_REPLY_LINE = re.compile(rb"([2-5][0-9]{2})(?:([ -])(.*))?", re.DOTALL)
_ENHANCED = re.compile(rb"([245]\.[0-9]{1,3}\.[0-9]{1,3})(?=\s|\Z)")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class LineTroubleError(Exception):
    """The conversation cannot go on. Carries nothing of what was said."""


class LineTimedOutError(LineTroubleError):
    """The peer was too slow."""


class LineLostError(LineTroubleError):
    """The peer closed or reset the connection."""


class LineGarbledError(LineTroubleError):
    """The peer said something that is no SMTP reply."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered: its code, and its enhanced code (RFC 2034) where it gave one."""

    code: int
    enhanced: str | None = None

    def __str__(self) -> str:
        return f"{self.code} {self.enhanced}" if self.enhanced else str(self.code)


@dataclass(slots=True)
class Line:
    """An open connection to an SMTP server.

    `in_step` says that the server waits for a command, so that QUIT may be sent; inside a
    message it would be a line of the text.
    """

    sock: socket.socket
    in_step: bool = False
    _received: bytearray = field(default_factory=bytearray, repr=False)

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Hand all of `data` to the socket, or raise a LineTroubleError."""
        self.in_step = False
        rest = memoryview(data)
        try:
            while rest:
                self.sock.settimeout(deadline.left())
                rest = rest[self.sock.send(rest) :]
        except TimeoutError:
            raise LineTimedOutError from None
        except OSError:
            raise LineLostError from None

    def read_reply(self, deadline: Deadline) -> Reply:
        """The next reply, however many lines it has."""
        return self._understand(self._read_lines(deadline))

    def read_offers(self, deadline: Deadline) -> tuple[Reply, dict[str, str]]:
        """The reply to EHLO and the extensions it lists, keyword to parameters, upper case."""
        lines = self._read_lines(deadline)
        offers: dict[str, str] = {}
        for line in lines[1:]:
            text = line[4:].decode("ascii", "replace").upper().replace("AUTH=", "AUTH ")
            keyword, _, rest = text.partition(" ")
            offers[keyword] = f"{offers.get(keyword, '')} {rest}".strip()
        return self._understand(lines), offers

    def has_unread(self) -> bool:
        """Whether the peer has said something, or hung up, that nobody has read yet."""
        if self._received:
            return True
        try:
            self.sock.settimeout(0)
            data = self.sock.recv(MAX_LINE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError:
            return True
        self._received += data
        return True

    def start_tls(self, context: ssl.SSLContext, host: str, deadline: Deadline) -> None:
        """Encrypt from here on. Raises ssl.SSLError, or a LineTroubleError.

        Text that came before the handshake was sent in clear by anybody at all, and must not
        be taken for the server's (CVE-2011-0411).
        """
        if self._received:
            raise LineGarbledError
        try:
            self.sock.settimeout(deadline.left())
            self.sock = context.wrap_socket(
                self.sock, server_hostname=host, do_handshake_on_connect=False
            )
            self.sock.settimeout(deadline.left())
            self.sock.do_handshake()
        except TimeoutError:
            raise LineTimedOutError from None
        except ssl.SSLEOFError:
            raise LineLostError from None
        except ssl.SSLError:
            raise
        except OSError:
            raise LineLostError from None

    def hang_up(self) -> None:
        """Say QUIT where that is possible, then close. Never raises."""
        if not self.in_step:
            self.abort()
            return
        deadline = Deadline.after(QUIT_WAIT_S)
        with suppress(LineTroubleError):
            self.write(b"QUIT\r\n", deadline)
            self.read_reply(deadline)
        with suppress(OSError):
            self.sock.close()

    def abort(self) -> None:
        """Close at once and drop what the network has not taken yet.

        An ordinary close would go on transmitting in the background, and the end of a
        message could reach the server after its deadline.
        """
        with suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        with suppress(OSError):
            self.sock.close()

    def _understand(self, lines: list[bytes]) -> Reply:
        found = (_ENHANCED.match(line[4:]) for line in lines)
        enhanced = next((match[1].decode() for match in found if match), None)
        reply = Reply(int(lines[0][:3]), enhanced)
        self.in_step = reply.code not in {354, 421}
        return reply

    def _read_lines(self, deadline: Deadline) -> list[bytes]:
        lines: list[bytes] = []
        while len(lines) < MAX_LINES:
            line = self._read_line(deadline)
            match = _REPLY_LINE.fullmatch(line)
            if match is None or (lines and line[:3] != lines[0][:3]):
                raise LineGarbledError
            lines.append(line)
            if match[2] != b"-":
                return lines
        raise LineGarbledError

    def _read_line(self, deadline: Deadline) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            if len(self._received) > MAX_LINE:
                raise LineGarbledError
            self._receive(deadline)
        line = bytes(self._received[:end]).removesuffix(b"\r")
        del self._received[: end + 1]
        if len(line) > MAX_LINE:
            raise LineGarbledError
        return line

    def _receive(self, deadline: Deadline) -> None:
        try:
            self.sock.settimeout(deadline.left())
            data = self.sock.recv(MAX_LINE)
        except TimeoutError:
            raise LineTimedOutError from None
        except OSError:
            raise LineLostError from None
        if not data:
            raise LineLostError
        self._received += data
