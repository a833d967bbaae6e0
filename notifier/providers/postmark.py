"""Postmark: one JSON POST a message; found again by our reference; callbacks without signature.

Postmark has no idempotency key, so a submit without a whole answer is *unknown* until the
message is found by the reference in its metadata. Its callbacks are proven by a password
alone; what they say is kept in our words only.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

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
from notifier.providers import postmark_codes as words
from notifier.providers import receipt_parts as part
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
from notifier.providers.postmark_receipts import (
    NAME,
    REFERENCE_FIELD,
    PostmarkReceipts,
    reference_of,
    whole_number,
)
from notifier.providers.probing import Probed
from notifier.providers.smtp_mail import NO_AUTOMATIC_ANSWERS, is_one_address
from notifier.timed_sockets import Deadline

STREAM: Final = "outbound"
MANY: Final = 50

_HEADERS: Final = (
    {"Name": "Auto-Submitted", "Value": "auto-generated"},
    {"Name": "X-Auto-Response-Suppress", "Value": NO_AUTOMATIC_ANSWERS},
)


class PostmarkSender:
    """The sending side of one Postmark server; safe to share between threads."""

    name: str = NAME
    channel: Channel = Channel.EMAIL
    reports_deliveries: bool = True
    key_lifetime_s: float = 0.0

    def __init__(
        self,
        token: Secret,
        email_from: str,
        base_url: str,
        *,
        stream: str = STREAM,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        self._token = token
        self._from = email_from
        self._base = BaseUrl.parse(base_url)
        self._stream = stream
        self._tls = tls_context or usual_tls()

    def connect(self, budget_s: float) -> PostmarkConnection | NotAccepted:
        """Connect and encrypt; the token goes out with the message alone."""
        line = open_line(self._base, self._tls, budget_s)
        return line if isinstance(line, NotAccepted) else PostmarkConnection(self, line)

    def headers(self) -> dict[str, str]:
        """What a submit carries beside its body."""
        return {
            "content-type": "application/json",
            "x-postmark-server-token": self._token.reveal(),
        }

    def body(self, envelope: Envelope) -> bytes:
        """The same bytes for the same envelope."""
        document: Document = {
            "From": self._from,
            "To": envelope.destination.reveal(),
            "Subject": envelope.message.subject,
            "TextBody": envelope.message.text.reveal(),
            "MessageStream": self._stream,
            "TrackOpens": False,
            "TrackLinks": "None",
            "Metadata": {REFERENCE_FIELD: envelope.reference},
            "Headers": list(_HEADERS),
        }
        if envelope.message.html is not None:
            document["HtmlBody"] = envelope.message.html.reveal()
        return json.dumps(document).encode()


class PostmarkConnection:
    """An open line that can carry one message."""

    def __init__(self, sender: PostmarkSender, line: HttpLine) -> None:
        self._sender = sender
        self._line = line

    def send(self, envelope: Envelope) -> Outcome:
        """Make the one request within `envelope.budget_s`."""
        if not is_one_address(envelope.destination.reveal()):
            return Refused(Detail.INVALID_DESTINATION, "unbuildable")
        answer = self._line.post(
            "/email", self._sender.headers(), self._sender.body(envelope), envelope.budget_s
        )
        if isinstance(answer, NotAccepted | Unknown):
            return answer
        return judge(answer, _taken, _spoken)

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def _taken(document: Document) -> Accepted | Said | None:
    """A 200 can refuse as well: its ErrorCode decides."""
    if document.get("ErrorCode") != 0 or document.get("ErrorCode") is False:
        return _spoken(200, document)
    message_id = part.message_id(document.get("MessageID"))
    return Accepted(message_id, "0") if message_id else None


def _spoken(status: int, document: Document) -> Said | None:
    number = document.get("ErrorCode")
    error = part.code(number)
    if not isinstance(number, int) or error is None or number == 0:
        return None
    text = document.get("Message")
    return Said(words.api_error(status, number, text if isinstance(text, str) else ""), error)


class PostmarkAsking:
    """The asking side: looks messages up, and reads callbacks. Safe to share between threads.

    ValueError for an empty callback password: it would let everybody in.
    """

    name: str = NAME
    channel: Channel = Channel.EMAIL
    can_find: Capability = Capability.BY_REFERENCE
    can_poll: bool = True

    def __init__(
        self,
        token: Secret,
        callback_password: Secret,
        base_url: str,
        *,
        old_passwords: Sequence[Secret] = (),
        stream: str = STREAM,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        if not callback_password.reveal().strip():
            message = "Postmark's callbacks need a password"
            raise ValueError(message)
        self._token = token
        self._passwords = (callback_password, *old_passwords)
        self._tells = PostmarkReceipts(stream)
        self._http = AskingHttp(BaseUrl.parse(base_url), tls_context or usual_tls())

    def close(self) -> None:
        """Close the idle connections."""
        self._http.close()

    def probe(self, budget_s: float = 10.0) -> Probed:
        """Read our own server's settings: whether the token is good."""
        return probed(self._ask("/server", Deadline.after(budget_s)))

    # asking

    def find(self, question: Question, budget_s: float) -> Looked:
        """Search by the reference in the metadata, then ask the message found for its events."""
        deadline = Deadline.after(budget_s)
        query = urlencode(
            {"count": MANY, "offset": 0, f"metadata_{REFERENCE_FIELD}": question.reference}
        )
        asked = self._ask(f"/messages/outbound?{query}", deadline)
        if isinstance(asked, CannotTell):
            return asked
        listed = asked.document.get("Messages")
        if asked.status != 200 or not isinstance(listed, list):
            return CannotTell(f"status_{asked.status}")
        ours = [each for each in listed if reference_of(each) == question.reference]
        if listed and not ours:
            return CannotTell("filter_ignored")
        receipts = [receipt for each in ours for receipt in self._described(each, deadline)]
        if ours and not receipts:
            return CannotTell("unreadable")
        return Found(receipts) if ours else NotFound()

    def poll(self, provider_message_id: str, budget_s: float) -> Looked:
        """Read a message's status and events; bounces are read one by one for their kind."""
        return self._details(provider_message_id, Deadline.after(budget_s))

    def _described(self, listed: Document, deadline: Deadline) -> Sequence[ProviderReceipt]:
        """A found message's own account of itself, else what the list says of it."""
        message_id = part.message_id(listed.get("MessageID"))
        if message_id is None:
            return []
        told = self._details(message_id, deadline)
        return (
            told.receipts if isinstance(told, Found) else [self._tells.standing(listed, message_id)]
        )

    def _details(self, message_id: str, deadline: Deadline) -> Looked:
        if part.message_id(message_id) is None:
            return CannotTell("bad_id")
        asked = self._ask(f"/messages/outbound/{message_id}/details", deadline)
        if isinstance(asked, CannotTell):
            return asked
        if asked.status != 200:
            gone = asked.document.get("ErrorCode") == words.NO_SUCH_MESSAGE
            return NotFound() if gone else CannotTell(f"status_{asked.status}")
        if asked.document.get("MessageID") != message_id:
            return CannotTell("not_theirs")
        events = list(self._events(asked.document, message_id, deadline))
        return Found([self._tells.standing(asked.document, message_id), *events])

    def _events(
        self, message: Document, message_id: str, deadline: Deadline
    ) -> Iterator[ProviderReceipt]:
        listed = message.get("MessageEvents")
        for event in listed if isinstance(listed, list) else []:
            if not isinstance(event, dict):
                continue
            told = {**event, "MessageID": message_id, "Metadata": message.get("Metadata")}
            if event.get("Type") == "Bounced":
                bounce = self._bounced(told, deadline)
                if bounce is not None:
                    yield bounce
            else:
                yield self._tells.event(told)

    def _bounced(self, event: Document, deadline: Deadline) -> ProviderReceipt | None:
        """The bounce behind an event; None while it cannot be read, for the next poll to learn."""
        details = event.get("Details")
        number = whole_number(details.get("BounceID")) if isinstance(details, dict) else None
        if number is None:
            return self._tells.event(event)
        asked = self._ask(f"/bounces/{number}", deadline)
        if isinstance(asked, CannotTell) or asked.status >= 429:
            return None
        if asked.status != 200 or asked.document.get("MessageID") != event["MessageID"]:
            return self._tells.event(event)
        return self._tells.bounce({**asked.document, "Metadata": event["Metadata"]})

    def _ask(self, path: str, deadline: Deadline) -> Told | CannotTell:
        return self._http.get(path, {"x-postmark-server-token": self._token.reveal()}, deadline)

    # callbacks

    def parse(self, callback: Callback) -> Sequence[ProviderReceipt]:
        """Check the password, then read the record; every one of them is about a message."""
        if not self._is_genuine(callback.headers):
            raise CallbackRefused
        record = document_of(callback.body)
        if record is None or part.message_id(record.get("MessageID")) is None:
            raise CallbackUnreadable
        return [self._tells.record(record)]

    def _is_genuine(self, headers: Mapping[str, str]) -> bool:
        """Basic authentication (RFC 7617) with any user and our password."""
        given = next((v for name, v in headers.items() if name.lower() == "authorization"), "")
        scheme, _, encoded = given.partition(" ")
        try:
            pair = base64.b64decode(encoded.strip(), validate=True)
        except (binascii.Error, ValueError):
            return False
        _, colon, password = pair.partition(b":")
        same = [hmac.compare_digest(password, each.reveal().encode()) for each in self._passwords]
        return any(same) and bool(colon) and scheme.lower() == "basic"
