"""Plain SMTP: one connection, one transaction, one message.

The outcome follows from where the conversation stood. Until the first byte of the
end-of-data mark is handed to the socket the server must throw the text away, so every
failure is *not accepted*. From then on only the server's own reply decides, and without one
the outcome is *unknown* (RFC 5321, 4.1.1.4; RFC 1047 describes the doubles that a guess
makes). Nothing is tried twice and no line is opened again.
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown, about_us
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.domain.values import Secret
from notifier.loopback import is_loopback
from notifier.ports.sending import Envelope
from notifier.providers.probing import Probed
from notifier.providers.smtp_codes import Phase, judge
from notifier.providers.smtp_line import (
    Line,
    LineGarbledError,
    LineLostError,
    LineTimedOutError,
    LineTroubleError,
    Reply,
)
from notifier.providers.smtp_mail import UnbuildableError, build, is_wire_safe, message_id
from notifier.timed_sockets import Deadline, open_tcp

END_OF_DATA: Final = b".\r\n"


@dataclass(frozen=True, slots=True)
class SmtpAccount:
    """Where to send and as whom. `plain` is for loopback alone: the text carries a live link."""

    host: str
    port: int
    tls: Literal["plain", "starttls", "implicit"]
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.tls == "plain" and not is_loopback(self.host):
            message = "SMTP without encryption is only for loopback"
            raise ValueError(message)
        if (self.user is None) != (self.password is None):
            message = "SMTP needs both a user and a password, or neither"
            raise ValueError(message)


class _StoppedError(Exception):
    """Ends the opening of a line, with its outcome."""

    def __init__(self, outcome: NotAccepted) -> None:
        super().__init__()
        self.outcome = outcome


@dataclass(slots=True)
class SmtpSender:
    """The sending side of an SMTP server; safe to share between threads.

    `call_timeout_s` bounds each phase but the last, `final_reply_timeout_s` the wait after
    the final dot: RFC 5321 (4.5.3.2.6) allows a server minutes there, and a short wait
    manufactures unknown outcomes.
    """

    account: SmtpAccount
    email_from: str
    call_timeout_s: float
    final_reply_timeout_s: float
    tls_context: ssl.SSLContext = field(default_factory=ssl.create_default_context, repr=False)
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC), repr=False)
    name: str = "smtp"
    channel: Channel = Channel.EMAIL
    reports_deliveries: bool = False
    key_lifetime_s: float = 0.0

    def __post_init__(self) -> None:
        if not is_wire_safe(self.email_from):
            message = "the sender must be a bare ASCII address"
            raise ValueError(message)

    def connect(self, budget_s: float) -> SmtpConnection | NotAccepted:
        """Connect, greet, encrypt and sign in; everything before the first mail command."""
        deadline = Deadline.after(budget_s)
        try:
            line = Line(self._open(deadline))
        except TimeoutError:
            return NotAccepted(Detail.TIMEOUT)
        except OSError:
            return NotAccepted(Detail.UNREACHABLE)
        return self._opened(line, deadline)

    def _open(self, deadline: Deadline) -> socket.socket:
        return open_tcp(self.account.host, self.account.port, deadline.sooner(self.call_timeout_s))

    def _opened(self, line: Line, deadline: Deadline) -> SmtpConnection | NotAccepted:
        try:
            offers = _Opening(self, line, deadline).run()
        except _StoppedError as stopped:
            line.hang_up()
            return stopped.outcome
        except LineTroubleError as trouble:
            line.abort()
            return _before_the_dot(trouble)
        except BaseException:
            line.abort()
            raise
        return SmtpConnection(self, line, reports_failures="DSN" in offers)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Everything up to a line that waits for MAIL."""

    sender: SmtpSender
    line: Line
    deadline: Deadline

    def run(self) -> dict[str, str]:
        tls = self.sender.account.tls
        if tls == "implicit":
            self._encrypt()
        self._want(Phase.BANNER, self.line.read_reply(self._limit()), 220)
        offers = self._greet()
        if tls == "starttls":
            self._start_tls(offers)
            offers = self._greet()
        self._sign_in(offers)
        return offers

    def _limit(self) -> Deadline:
        return self.deadline.sooner(self.sender.call_timeout_s)

    def _want(self, phase: Phase, reply: Reply, code: int) -> None:
        if reply.code != code:
            outcome = judge(phase, reply)
            detail, said = outcome.detail, outcome.provider_code
            raise _StoppedError(
                outcome if isinstance(outcome, NotAccepted) else NotAccepted(detail, said)
            )

    def _greet(self) -> dict[str, str]:
        limit = self._limit()
        self.line.write(f"EHLO {_own_name(self.line.sock)}\r\n".encode(), limit)
        reply, offers = self.line.read_offers(limit)
        self._want(Phase.EHLO, reply, 250)
        return offers

    def _start_tls(self, offers: dict[str, str]) -> None:
        """Never goes on in clear: a missing offer may be somebody on the way taking it out."""
        if "STARTTLS" not in offers:
            raise _StoppedError(about_us(Detail.PROVIDER_ERROR, "tls_missing"))
        self._want(Phase.STARTTLS, _ask(self.line, "STARTTLS", self._limit()), 220)
        self._encrypt()

    def _encrypt(self) -> None:
        try:
            self.line.start_tls(self.sender.tls_context, self.sender.account.host, self._limit())
        except ssl.SSLCertVerificationError:
            outcome = about_us(Detail.PROVIDER_ERROR, "tls_certificate")
        except ssl.SSLError:
            outcome = about_us(Detail.PROVIDER_ERROR, "tls_failed")
        else:
            return
        self.line.in_step = False
        raise _StoppedError(outcome)

    def _sign_in(self, offers: dict[str, str]) -> None:
        user, password = self.sender.account.user, self.sender.account.password
        if user is None or password is None:
            return
        mechanisms = offers.get("AUTH", "").split()
        if "PLAIN" in mechanisms:
            steps = [f"AUTH PLAIN {_base64(chr(0) + user + chr(0) + password.reveal())}"]
        elif "LOGIN" in mechanisms:
            steps = ["AUTH LOGIN", _base64(user), _base64(password.reveal())]
        else:
            raise _StoppedError(about_us(Detail.AUTH_ERROR, "auth_missing"))
        limit = self._limit()
        for position, step in enumerate(steps, start=1):
            reply = _ask(self.line, step, limit)
            self._want(Phase.AUTH, reply, 235 if position == len(steps) else 334)


class SmtpConnection:
    """An open line that can carry one message."""

    def __init__(self, sender: SmtpSender, line: Line, *, reports_failures: bool) -> None:
        self._sender = sender
        self._line = line
        self._reports_failures = reports_failures
        self._used = False

    def send(self, envelope: Envelope) -> Outcome:
        """Make the one transaction within `envelope.budget_s`."""
        if self._used:
            return NotAccepted(Detail.PROVIDER_ERROR, "line_used")
        self._used = True
        deadline = Deadline.after(envelope.budget_s)
        try:
            content = build(envelope, self._sender.email_from, self._sender.now())
        except UnbuildableError:
            return Refused(Detail.CONTENT_REJECTED, "unbuildable")
        try:
            stopped = self._before_end(envelope, content, deadline)
        except LineTroubleError as trouble:
            return _before_the_dot(trouble)
        return stopped or self._end_of_data(envelope, deadline)

    def close(self) -> None:
        """Hang up; a server that takes QUIT badly changes nothing."""
        self._line.hang_up()

    def _before_end(
        self, envelope: Envelope, content: bytes, deadline: Deadline
    ) -> Refused | NotAccepted | None:
        """MAIL, RCPT, DATA and the text; None when only the final dot is missing."""
        for phase, command in self._commands(envelope):
            reply = _ask(self._line, command, self._limit(deadline))
            if reply.code not in _GO_ON[phase]:
                return judge(phase, reply)
        self._line.write(content, self._limit(deadline))
        if self._line.has_unread():
            # It spoke before the end of the text: whatever it says, nothing was taken.
            early = self._line.read_reply(self._limit(deadline))
            self._line.in_step = False
            return judge(Phase.DATA, early)
        return None

    def _commands(self, envelope: Envelope) -> tuple[tuple[Phase, str], ...]:
        """RET=HDRS keeps the link out of a bounce (RFC 3461); ENVID lets one be matched."""
        wish = f" RET=HDRS ENVID={envelope.reference}" if self._reports_failures else ""
        return (
            (Phase.MAIL, f"MAIL FROM:<{self._sender.email_from}>{wish}"),
            (Phase.RCPT, f"RCPT TO:<{envelope.destination.reveal()}>"),
            (Phase.DATA, "DATA"),
        )

    def _end_of_data(self, envelope: Envelope, deadline: Deadline) -> Outcome:
        """The point of no return. Past it no failure of ours says what the server did."""
        try:
            self._line.write(END_OF_DATA, self._limit(deadline))
            reply = self._line.read_reply(deadline.sooner(self._sender.final_reply_timeout_s))
        except LineTimedOutError:
            return Unknown(Reason.TIMEOUT)
        except LineLostError:
            return Unknown(Reason.CONNECTION_LOST)
        except LineGarbledError:
            return Unknown(Reason.UNREADABLE_ANSWER)
        if reply.code // 10 == 25:
            return Accepted(message_id(envelope.reference, self._sender.email_from), str(reply))
        if reply.code >= 400:
            return judge(Phase.END, reply)
        return Unknown(Reason.UNREADABLE_ANSWER, str(reply))

    def _limit(self, deadline: Deadline) -> Deadline:
        return deadline.sooner(self._sender.call_timeout_s)


def probe(sender: SmtpSender, budget_s: float = 10.0) -> Probed:
    """Connect, encrypt, sign in and hang up."""
    line = sender.connect(budget_s)
    if isinstance(line, NotAccepted):
        return Probed(ok=False, what=f"{line.detail} {line.provider_code or ''}".strip())
    line.close()
    return Probed(ok=True, what="signed in" if sender.account.user else "greeted")


_GO_ON: Final = {
    Phase.MAIL: frozenset({250}),
    Phase.RCPT: frozenset({250, 251}),
    Phase.DATA: frozenset({354}),
}


def _ask(line: Line, command: str, limit: Deadline) -> Reply:
    line.write(f"{command}\r\n".encode(), limit)
    return line.read_reply(limit)


def _own_name(sock: socket.socket) -> str:
    """Our address as a literal (RFC 5321, 4.1.3): right everywhere, and needs no look-up."""
    address = str(sock.getsockname()[0]).partition("%")[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _before_the_dot(trouble: LineTroubleError) -> NotAccepted:
    match trouble:
        case LineTimedOutError():
            return NotAccepted(Detail.TIMEOUT)
        case LineLostError():
            return NotAccepted(Detail.UNREACHABLE)
        case _:
            return NotAccepted(Detail.PROVIDER_ERROR)
