"""One SMTP conversation, phase by phase (RFC 5321; AUTH RFC 4954; STARTTLS RFC 3207).

Each phase first asks the script what to do. A message is kept before anything is said about
it, so that every silence after the dot is a message that did arrive.
"""

from __future__ import annotations

import base64
import binascii
import re
import socket
import ssl
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from peers.fates import Act, Phase, Rule
from peers.mailbox import headers_of, message_id_of, reference_of

if TYPE_CHECKING:
    from peers.smtp_inbox import Inbox

PATH = re.compile(r"(?:FROM|TO):\s*<([^>]*)>\s*(.*)", re.IGNORECASE)
ENVELOPE_ID = re.compile(r"ENVID=(\S+)", re.IGNORECASE)
LONGEST_MESSAGE = 10 * 1024 * 1024
LONGEST_LINE = 4096


class Hangup(Exception):
    """The conversation is over."""


@dataclass(slots=True)
class Envelope:
    """The transaction under way."""

    sender: str | None = None
    recipients: list[str] = field(default_factory=list)
    envelope_id: str | None = None

    @property
    def recipient(self) -> str | None:
        """The one that decides about the fate: the first."""
        return self.recipients[0] if self.recipients else None


class Session:
    """Talks to one client until it leaves or the script ends it."""

    def __init__(self, connection: socket.socket, inbox: Inbox) -> None:
        self._inbox = inbox
        self._socket = connection
        self._in: BinaryIO = connection.makefile("rb")
        self._envelope = Envelope()
        self._trusted = inbox.credentials is None
        self._secure = isinstance(connection, ssl.SSLSocket)

    def run(self) -> None:
        """Greet, then serve commands; returns when the conversation is over."""
        try:
            self._answer(Phase.CONNECT, None, "220 inbox.example.test ESMTP stand-in")
            while True:
                self._command(self._line())
        except (Hangup, OSError):
            return
        finally:
            self._in.close()
            self._socket.close()

    # the wire

    def _line(self) -> str:
        line = self._in.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise Hangup
        return line.decode("utf-8", "replace").rstrip("\r\n")

    def _say(self, reply: str) -> None:
        self._socket.sendall(reply.encode() + b"\r\n")

    def _command(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        serve = {
            "EHLO": self._ehlo, "HELO": self._helo, "STARTTLS": self._starttls,
            "AUTH": self._auth, "MAIL": self._mail, "RCPT": self._rcpt, "DATA": self._data,
            "RSET": self._rset, "NOOP": self._noop, "QUIT": self._quit,
        }.get(verb.upper())  # fmt: skip
        if serve is None:
            self._say("502 5.5.1 Command not known")
        else:
            serve(rest)

    # deviations

    def _answer(self, phase: Phase, recipient: str | None, normal: str) -> bool:
        """Reply to a phase as the script wants; True where the reply is a positive one."""
        return self._follow(self._inbox.script.rule_for(phase, recipient), phase, normal) is True

    def _follow(self, rule: Rule | None, phase: Phase, normal: str) -> bool | None:
        """Carry out a rule. True or False: said yes or no; None: said nothing intelligible."""
        reply = (rule and rule.reply) or normal
        if rule is not None:
            self._before_reply(rule, phase)
        self._say(reply)
        if reply.startswith("421"):
            raise Hangup
        return reply[0] in "23" if reply[:3].isdigit() else None

    def _before_reply(self, rule: Rule, phase: Phase) -> None:
        match rule.act:
            case Act.REPLY:
                return
            case Act.SLOW:
                time.sleep(rule.seconds)
            case Act.HOLD:
                self._hold(rule, phase)
            case Act.HANG:
                while self._in.read(1):
                    pass
                raise Hangup
            case Act.DROP:
                raise Hangup
            case Act.RESET:
                self._reset()

    def _hold(self, rule: Rule, phase: Phase) -> None:
        facts = {"held_in": phase, "recipient": self._envelope.recipient, "fate": rule.name}
        number = self._inbox.holds.begin(facts)
        self._inbox.journal.add("held", {"id": number, **facts})
        if not self._inbox.holds.wait(number):
            raise Hangup

    def _reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._in.close()
        self._socket.close()
        raise Hangup

    # commands

    def _ehlo(self, _: str) -> None:
        offers = ["inbox.example.test", "PIPELINING", "8BITMIME", "SMTPUTF8"]
        offers += [f"SIZE {LONGEST_MESSAGE}", "ENHANCEDSTATUSCODES", *self._inbox.offers]
        if self._inbox.tls is not None and not self._secure:
            offers.append("STARTTLS")
        if self._inbox.credentials is not None:
            offers.append("AUTH PLAIN LOGIN")
        lines = [f"250-{offer}" for offer in offers[:-1]] + [f"250 {offers[-1]}"]
        self._envelope = Envelope()
        self._answer(Phase.EHLO, None, "\r\n".join(lines))

    def _helo(self, _: str) -> None:
        self._envelope = Envelope()
        self._answer(Phase.EHLO, None, "250 inbox.example.test")

    def _starttls(self, _: str) -> None:
        if self._inbox.tls is None or self._secure:
            self._say("502 5.5.1 Not offered")
            return
        self._say("220 2.0.0 Go ahead")
        self._socket = self._inbox.tls.wrap_socket(self._socket, server_side=True)
        self._in = self._socket.makefile("rb")
        self._secure, self._envelope = True, Envelope()
        self._trusted = self._inbox.credentials is None

    def _auth(self, rest: str) -> None:
        kind, _, initial = rest.partition(" ")
        try:
            given = self._login(kind.upper(), initial)
        except (binascii.Error, ValueError):
            self._say("501 5.5.2 Not base64")
            return
        right = given == self._inbox.credentials
        normal = "235 2.7.0 Welcome" if right else "535 5.7.8 Wrong credentials"
        self._trusted = self._answer(Phase.AUTH, None, normal)

    def _login(self, kind: str, initial: str) -> tuple[str, str]:
        if kind == "PLAIN":
            _, user, password = self._secret(initial, "").split("\0")
            return user, password
        return self._secret(initial, "VXNlcm5hbWU6"), self._secret("", "UGFzc3dvcmQ6")

    def _secret(self, initial: str, prompt: str) -> str:
        if not initial:
            self._say(f"334 {prompt}")
            initial = self._line()
        return base64.b64decode(initial, validate=True).decode()

    def _mail(self, rest: str) -> None:
        path = PATH.match(rest)
        if not self._trusted:
            self._say("530 5.7.0 Authentication required")
        elif path is None:
            self._say("501 5.5.4 Syntax: MAIL FROM:<address>")
        elif self._answer(Phase.MAIL, None, "250 2.1.0 Sender fine"):
            envelope_id = ENVELOPE_ID.search(path[2])
            self._envelope = Envelope(path[1], [], envelope_id and envelope_id[1])

    def _rcpt(self, rest: str) -> None:
        path = PATH.match(rest)
        if self._envelope.sender is None:
            self._say("503 5.5.1 MAIL first")
        elif path is None or "@" not in path[1]:
            self._say("501 5.1.3 Syntax: RCPT TO:<address>")
        else:
            self._take_recipient(path[1])

    def _take_recipient(self, recipient: str) -> None:
        rule = self._inbox.script.rule_for(Phase.RCPT, recipient)
        facts = {"recipient": recipient, "fate": rule and rule.name}
        self._inbox.journal.add(Phase.RCPT, {**facts, "reply": rule and rule.reply})
        if self._follow(rule, Phase.RCPT, "250 2.1.5 Recipient fine"):
            self._envelope.recipients.append(recipient)

    def _data(self, _: str) -> None:
        if not self._envelope.recipients:
            self._say("503 5.5.1 RCPT first")
        elif self._answer(Phase.DATA, self._envelope.recipient, "354 End with a dot"):
            self._finish(self._body())
            self._envelope = Envelope()

    def _body(self) -> bytes:
        rule = self._inbox.script.rule_for(Phase.BODY, self._envelope.recipient)
        if rule is not None:
            self._in.read(1)
            self._before_reply(rule, Phase.BODY)
        lines: list[bytes] = []
        while (line := self._in.readline()) != b".\r\n":
            if not line:
                raise Hangup
            lines.append(line[1:] if line.startswith(b".") else line)
        return b"".join(lines)

    def _finish(self, raw: bytes) -> None:
        envelope = self._envelope
        rule = self._inbox.script.rule_for(Phase.FINAL, envelope.recipient)
        headers = headers_of(raw)
        facts: dict[str, object] = {
            "message_id": message_id_of(headers),
            "reference": reference_of(headers, envelope.envelope_id),
            "recipient": envelope.recipient,
            "size": len(raw),
            "fate": rule.name if rule else "accept",
        }
        if rule is None or rule.keep:
            self._inbox.keep(envelope, raw, facts)
        self._final_reply(rule, facts)

    def _final_reply(self, rule: Rule | None, facts: dict[str, object]) -> None:
        accepted: bool | None = None
        try:
            accepted = self._follow(rule, Phase.FINAL, "250 2.0.0 Taken")
        finally:
            self._inbox.journal.add(Phase.FINAL, {**facts, "accepted": accepted})

    def _rset(self, _: str) -> None:
        self._envelope = Envelope()
        self._say("250 2.0.0 Forgotten")

    def _noop(self, _: str) -> None:
        self._say("250 2.0.0 Here")

    def _quit(self, _: str) -> None:
        self._answer(Phase.QUIT, None, "221 2.0.0 Bye")
        raise Hangup
