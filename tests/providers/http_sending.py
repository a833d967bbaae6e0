"""Short ways for the tests of the HTTP providers: senders, planted secrets, one send."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime

from notifier.domain.outcome import NotAccepted, Outcome
from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage, Secret
from notifier.ports.sending import Envelope, Sender
from notifier.providers.postmark import PostmarkAsking, PostmarkSender
from notifier.providers.resend import ResendAsking, ResendSender
from notifier.providers.twilio import TwilioAccount, TwilioAsking, TwilioSender
from tests.providers.scripted_api import reply

TOKEN = "planted-token-55190"
CALLBACK_PASSWORD = "planted-callback-77121"
ADDRESS = "planted.person.7261@example.test"
NUMBER = "+447700900143"
LINK = "https://accounts.example.test/reset?token=planted-link-90412"
SUBJECT = "Reset your password"
REFERENCE = "ref7Kx2_A-b"
SID = "AC" + "0a" * 16
MESSAGE_SID = "SM" + "1b" * 16
MESSAGE_ID = "b7bc2f4a-e38e-4336-af7d-e6c392c2f817"
FROM_NUMBER = "+15005550006"
FROM_ADDRESS = "noreply@reset.example"
PUBLIC_URL = "https://notices.example.test"
WEBHOOK_KEY = b"planted-webhook-key-31337"
PLANTED = (TOKEN, CALLBACK_PASSWORD, ADDRESS, NUMBER, NUMBER[1:], "planted-link-90412")

POSTMARK_OK = reply(200, {"ErrorCode": 0, "Message": "OK", "MessageID": MESSAGE_ID, "To": ADDRESS})
RESEND_OK = reply(200, {"id": MESSAGE_ID})
TWILIO_OK = reply(
    201, {"sid": MESSAGE_SID, "status": "queued", "error_code": None, "to": NUMBER, "body": LINK}
)

Make = Callable[..., Sender]


def postmark(url: str, tls: ssl.SSLContext | None = None) -> PostmarkSender:
    return PostmarkSender(Secret(TOKEN), FROM_ADDRESS, url, tls_context=tls)


def resend(url: str, tls: ssl.SSLContext | None = None) -> ResendSender:
    return ResendSender(Secret(TOKEN), FROM_ADDRESS, url, tls_context=tls)


def twilio_account() -> TwilioAccount:
    return TwilioAccount(SID, Secret(TOKEN))


def twilio(url: str, tls: ssl.SSLContext | None = None, sender: str = FROM_NUMBER) -> TwilioSender:
    return TwilioSender(twilio_account(), sender, url, PUBLIC_URL, tls_context=tls)


def asking_postmark(url: str = "http://127.0.0.1:1") -> PostmarkAsking:
    return PostmarkAsking(Secret(TOKEN), Secret(CALLBACK_PASSWORD), url)


def asking_resend(
    url: str = "http://127.0.0.1:1", now: Callable[[], datetime] | None = None
) -> ResendAsking:
    return ResendAsking(Secret(TOKEN), [WEBHOOK_KEY], url, now=now or (lambda: datetime.now(UTC)))


def asking_twilio(url: str = "http://127.0.0.1:1", sender: str = FROM_NUMBER) -> TwilioAsking:
    return TwilioAsking(twilio_account(), sender, url)


def email(
    *, address: str = ADDRESS, text: str = f"Open {LINK}\n", budget_s: float = 5.0
) -> Envelope:
    message = RenderedMessage(
        Channel.EMAIL, SUBJECT, Secret(text), Secret(f"<a href='{LINK}'>Open</a>"), "digest"
    )
    to = Destination(Channel.EMAIL, address)
    return Envelope(to, message, REFERENCE, "event-1:email:first", budget_s, 600)


def text(*, validity_s: int = 600, text: str = f"Open {LINK}", budget_s: float = 5.0) -> Envelope:
    message = RenderedMessage(Channel.SMS, "", Secret(text), None, "digest")
    to = Destination(Channel.SMS, NUMBER)
    return Envelope(to, message, REFERENCE, "event-1:sms:first", budget_s, validity_s)


def envelope_for(sender: Sender, *, budget_s: float = 5.0, padding: int = 0) -> Envelope:
    if sender.channel is Channel.EMAIL:
        return email(text=f"Open {LINK}\n" + "0" * padding, budget_s=budget_s)
    return text(text=f"Open {LINK}" + "0" * padding, budget_s=budget_s)


def send(sender: Sender, envelope: Envelope | None = None, *, budget_s: float = 5.0) -> Outcome:
    """Connect, send once, hang up."""
    line = sender.connect(budget_s)
    if isinstance(line, NotAccepted):
        return line
    with closing(line):
        return line.send(envelope or envelope_for(sender, budget_s=budget_s))
