"""Short ways for the SMTP tests to make a sender and to send one message with it."""

from __future__ import annotations

import ssl
from contextlib import closing

from notifier.domain.outcome import NotAccepted, Outcome
from notifier.domain.values import Secret
from notifier.ports.sending import Envelope
from notifier.providers.smtp import SmtpAccount, SmtpConnection, SmtpSender

PASSWORD = "planted-pass-81723"
QUICK = 0.25


def sender_to(
    port: int,
    *,
    tls: str = "plain",
    context: ssl.SSLContext | None = None,
    user: str | None = None,
    call_timeout_s: float = 2.0,
    final_reply_timeout_s: float = 2.0,
    host: str = "127.0.0.1",
) -> SmtpSender:
    account = SmtpAccount(host, port, tls, user, Secret(PASSWORD) if user else None)  # type: ignore[arg-type]
    sender = SmtpSender(account, "noreply@reset.example", call_timeout_s, final_reply_timeout_s)
    if context is not None:
        sender.tls_context = context
    return sender


def send(sender: SmtpSender, envelope: Envelope, *, budget_s: float = 3.0) -> Outcome:
    """Connect, send once, hang up."""
    line = sender.connect(budget_s)
    if isinstance(line, NotAccepted):
        return line
    with closing(line):
        return line.send(envelope)


def opened(sender: SmtpSender) -> SmtpConnection:
    line = sender.connect(3.0)
    assert isinstance(line, SmtpConnection)
    return line
