"""Resend: one JSON POST a message under a key of ours; polled by its id; signed webhooks.

The key is the attempt's own, and Resend keeps it for a day: the same request under it gives
the first answer again and makes no second message. There is no search, so a submit without a
whole answer stays *unknown* until a webhook tells of it or the call is repeated.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail
from notifier.domain.states import Channel
from notifier.domain.values import Secret
from notifier.json_objects import Document, document_of
from notifier.ports.asking import (
    Callback,
    CallbackRefused,
    CallbackUnreadable,
    CannotTell,
    Capability,
    Found,
    Looked,
    NotFound,
    ProviderReceipt,
    Question,
)
from notifier.ports.sending import Envelope
from notifier.providers import receipt_parts as part
from notifier.providers import resend_codes as words
from notifier.providers import resend_receipts as tells
from notifier.providers.http import (
    AskingHttp,
    BaseUrl,
    HttpLine,
    Told,
    open_line,
    probed,
    usual_tls,
)
from notifier.providers.http_words import Said, judge
from notifier.providers.probing import Probed
from notifier.providers.resend_receipts import NAME, PREFIX, REFERENCE_TAG
from notifier.providers.smtp_mail import NO_AUTOMATIC_ANSWERS, is_one_address
from notifier.signatures import (
    ID_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    SignatureError,
    verify,
)
from notifier.timed_sockets import Deadline

KEY_LIFETIME_S: Final = 24 * 3600.0
LONGEST_KEY: Final = 256

_HEADERS: Final = {
    "Auto-Submitted": "auto-generated",
    "X-Auto-Response-Suppress": NO_AUTOMATIC_ANSWERS,
}
_SVIX: Final = {
    ID_HEADER: "svix-id",
    TIMESTAMP_HEADER: "svix-timestamp",
    SIGNATURE_HEADER: "svix-signature",
}


class ResendSender:
    """The sending side of one key; safe to share between threads."""

    name: str = NAME
    channel: Channel = Channel.EMAIL
    reports_deliveries: bool = True
    key_lifetime_s: float = KEY_LIFETIME_S

    def __init__(
        self,
        api_key: Secret,
        email_from: str,
        base_url: str,
        *,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        self._api_key = api_key
        self._from = email_from
        self._base = BaseUrl.parse(base_url)
        self._tls = tls_context or usual_tls()

    def connect(self, budget_s: float) -> ResendConnection | NotAccepted:
        """Connect and encrypt; the key goes out with the message alone."""
        line = open_line(self._base, self._tls, budget_s)
        return line if isinstance(line, NotAccepted) else ResendConnection(self, line)

    def headers(self, envelope: Envelope) -> dict[str, str]:
        """What a submit carries beside its body: the proof, and the attempt's own key."""
        return {
            "content-type": "application/json",
            "authorization": f"Bearer {self._api_key.reveal()}",
            "idempotency-key": envelope.key,
        }

    def body(self, envelope: Envelope) -> bytes:
        """The same bytes for the same envelope: Resend compares them under a key."""
        document: Document = {
            "from": self._from,
            "to": [envelope.destination.reveal()],
            "subject": envelope.message.subject,
            "text": envelope.message.text.reveal(),
            "headers": _HEADERS,
            "tags": [{"name": REFERENCE_TAG, "value": envelope.reference}],
        }
        if envelope.message.html is not None:
            document["html"] = envelope.message.html.reveal()
        return json.dumps(document).encode()


class ResendConnection:
    """An open line that can carry one message."""

    def __init__(self, sender: ResendSender, line: HttpLine) -> None:
        self._sender = sender
        self._line = line

    def send(self, envelope: Envelope) -> Outcome:
        """Make the one request within `envelope.budget_s`."""
        if not is_one_address(envelope.destination.reveal()):
            return Refused(Detail.INVALID_DESTINATION, "unbuildable")
        if not 0 < len(envelope.key) <= LONGEST_KEY:
            return NotAccepted(Detail.PROVIDER_ERROR, "unusable_key")
        answer = self._line.post(
            "/emails",
            self._sender.headers(envelope),
            self._sender.body(envelope),
            envelope.budget_s,
        )
        if isinstance(answer, NotAccepted | Unknown):
            return answer
        if answer.status == 409 and _name_in(document_of(answer.body)) == words.KEY_USED:
            return Accepted(None, words.KEY_USED)
        return judge(answer, _taken, _spoken)

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def _taken(document: Document) -> Accepted | None:
    message_id = part.message_id(document.get("id"))
    return Accepted(message_id) if message_id else None


def _spoken(status: int, document: Document) -> Said | None:
    """An error in Resend's own words has its status in it, so that no proxy's page passes."""
    name, text = _name_in(document), document.get("message")
    if name is None or document.get("statusCode", status) not in (status, None):
        return None
    word = words.api_error(status, name, text if isinstance(text, str) else "")
    return Said(word, name) if word else None


def _name_in(document: Document | None) -> str | None:
    return part.word(document.get("name")) if document else None


class ResendAsking:
    """The asking side: polls messages, and reads webhooks. Safe to share between threads.

    `webhook_keys` are the bytes of the signing secrets (ValueError without one: it would let
    everybody in); `now` is the clock against which a webhook's age is measured.
    """

    name: str = NAME
    channel: Channel = Channel.EMAIL
    can_find: Capability = Capability.REPLAY
    can_poll: bool = True

    def __init__(
        self,
        api_key: Secret,
        webhook_keys: Sequence[bytes],
        base_url: str,
        *,
        now: Callable[[], datetime],
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        if not any(webhook_keys):
            message = "Resend's webhooks need a signing secret"
            raise ValueError(message)
        self._api_key = api_key
        self._webhook_keys = tuple(webhook_keys)
        self._now = now
        self._http = AskingHttp(BaseUrl.parse(base_url), tls_context or usual_tls())

    def close(self) -> None:
        """Close the idle connections."""
        self._http.close()

    def probe(self, budget_s: float = 10.0) -> Probed:
        """Read our own domains: whether the key is good, and whether it may read at all."""
        asked = self._ask("/domains", Deadline.after(budget_s))
        if isinstance(asked, Told) and _name_in(asked.document) == words.CANNOT_READ:
            return Probed(ok=False, what="the key may send but not read: no message can be polled")
        return probed(asked)

    # asking

    def find(self, question: Question, budget_s: float) -> Looked:  # noqa: ARG002 - there is no search
        """Resend cannot be searched; what is unknown is repeated under its key."""
        return CannotTell("cannot_be_asked")

    def poll(self, provider_message_id: str, budget_s: float) -> Looked:
        """Read a message's last event."""
        if part.message_id(provider_message_id) is None:
            return CannotTell("bad_id")
        asked = self._ask(f"/emails/{provider_message_id}", Deadline.after(budget_s))
        if isinstance(asked, CannotTell):
            return asked
        if asked.status != 200:
            gone = asked.status == 404 and _name_in(asked.document) == "not_found"
            return NotFound() if gone else CannotTell(f"status_{asked.status}")
        if asked.document.get("id") != provider_message_id:
            return CannotTell("not_theirs")
        return Found([tells.standing(asked.document, provider_message_id)])

    def _ask(self, path: str, deadline: Deadline) -> Told | CannotTell:
        return self._http.get(path, {"authorization": f"Bearer {self._api_key.reveal()}"}, deadline)

    # webhooks

    def parse(self, callback: Callback) -> Sequence[ProviderReceipt]:
        """Check the signature over the raw bytes, then read the event.

        What is not about an email of ours (domains, contacts, mails that came in) gives nothing.
        """
        headers = _standard(callback.headers)
        try:
            verify(self._webhook_keys, headers, callback.body, self._now())
        except SignatureError:
            raise CallbackRefused from None
        event = document_of(callback.body)
        if event is None or not isinstance(event.get("type"), str):
            raise CallbackUnreadable
        kind, data = event["type"], event.get("data")
        if not kind.startswith(PREFIX) or kind == f"{PREFIX}received":
            return []
        if not isinstance(data, dict) or part.message_id(data.get("email_id")) is None:
            raise CallbackUnreadable
        return [tells.called_back(headers[ID_HEADER], event, data)]


def _standard(headers: Mapping[str, str]) -> dict[str, str]:
    """Svix's headers under the names that Standard Webhooks gives them."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {ours: lower[theirs] for ours, theirs in _SVIX.items() if theirs in lower}
