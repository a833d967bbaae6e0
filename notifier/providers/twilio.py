"""Twilio: one form POST a text; found again by number and time; callbacks signed by address.

Twilio has no idempotency key and takes no reference of ours, so the reference stands in the
address that it calls back: the whole address is under its signature. A submit without a
whole answer is *unknown* until a callback or a look-up by destination and time explains it.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Secret
from notifier.json_objects import Document
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
from notifier.providers import twilio_codes as words
from notifier.providers.http import (
    AskingHttp,
    BaseUrl,
    HttpLine,
    Told,
    basic,
    open_line,
    probed,
    usual_tls,
)
from notifier.providers.http_words import Said, judge
from notifier.providers.probing import Probed
from notifier.providers.twilio_receipts import CALLBACK_PATH, NAME, TwilioReceipts
from notifier.providers.twilio_signature import genuine_fields
from notifier.timed_sockets import Deadline

SHORTEST_VALIDITY_S: Final = 1
LONGEST_VALIDITY_S: Final = 36_000
"""The bounds of ValidityPeriod; with less than the shortest left nothing is sent."""
PAGE: Final = 100
MOST_PAGES: Final = 3
LOOK_BACK: Final = timedelta(days=1)
"""The list is ordered by sending, a day at the finest; older than this cannot be ours."""


class TwilioAccount:
    """Whose messages, and what proves it: Basic with the account's SID and its token.

    `old_tokens` sign nothing of ours any more; callbacks made with them are still genuine.
    """

    def __init__(self, sid: str, auth_token: Secret, old_tokens: Sequence[Secret] = ()) -> None:
        if not auth_token.reveal().strip() or not sid.isascii() or not sid.isalnum():
            message = "Twilio needs an account SID and an auth token"
            raise ValueError(message)
        self.sid = sid
        self.auth_token = auth_token
        self.tokens = (auth_token, *old_tokens)
        self.collection = f"/2010-04-01/Accounts/{sid}/Messages"

    def headers(self) -> dict[str, str]:
        """The proof that a request is the account's."""
        return {"authorization": basic(self.sid, self.auth_token)}


class TwilioSender:
    """The sending side of one account; safe to share between threads.

    `sender` is a number, or the SID of a messaging service (`MG…`).
    """

    name: str = NAME
    channel: Channel = Channel.SMS
    reports_deliveries: bool = True
    key_lifetime_s: float = 0.0

    def __init__(
        self,
        account: TwilioAccount,
        sender: str,
        base_url: str,
        public_url: str,
        *,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        self._account = account
        self._sender = sender
        self._base = BaseUrl.parse(base_url)
        self._public_url = public_url
        self._tls = tls_context or usual_tls()

    def connect(self, budget_s: float) -> TwilioConnection | NotAccepted:
        """Connect and encrypt; the token goes out with the message alone."""
        line = open_line(self._base, self._tls, budget_s)
        return line if isinstance(line, NotAccepted) else TwilioConnection(self, line)

    def path(self) -> str:
        """Where messages are posted."""
        return f"{self._account.collection}.json"

    def headers(self) -> dict[str, str]:
        """What a submit carries beside its form."""
        return {
            "content-type": "application/x-www-form-urlencoded",
            **self._account.headers(),
        }

    def form(self, envelope: Envelope) -> bytes:
        """The same bytes for the same envelope."""
        validity = min(max(envelope.validity_s, SHORTEST_VALIDITY_S), LONGEST_VALIDITY_S)
        fields = {
            "To": envelope.destination.reveal(),
            sender_field(self._sender): self._sender,
            "Body": envelope.message.text.reveal(),
            "ValidityPeriod": str(validity),
            "StatusCallback": f"{self._public_url}{CALLBACK_PATH}{quote(envelope.reference)}",
        }
        return urlencode(fields).encode()


class TwilioConnection:
    """An open line that can carry one text."""

    def __init__(self, sender: TwilioSender, line: HttpLine) -> None:
        self._sender = sender
        self._line = line

    def send(self, envelope: Envelope) -> Outcome:
        """Make the one request within `envelope.budget_s`."""
        if part.reference(envelope.reference) is None:
            return Refused(Detail.CONTENT_REJECTED, "unbuildable")
        if envelope.validity_s < SHORTEST_VALIDITY_S:
            return NotAccepted(Detail.TIMEOUT, "no_validity_left")
        answer = self._line.post(
            self._sender.path(),
            self._sender.headers(),
            self._sender.form(envelope),
            envelope.budget_s,
        )
        if isinstance(answer, NotAccepted | Unknown):
            return answer
        return judge(answer, _taken, _spoken)

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def sender_field(sender: str) -> str:
    """The form's member for a sender: a number, or a messaging service."""
    return "MessagingServiceSid" if sender.startswith("MG") else "From"


def _taken(document: Document) -> Accepted | Said | None:
    """A message that was made; one that failed while it was made is a refusal."""
    sid = part.message_id(document.get("sid"))
    status = part.word(document.get("status"))
    if sid is None:
        return None
    if status and words.STATUSES.get(status) is ReceiptStatus.FAILED:
        error = part.code(document.get("error_code"))
        return Said(words.submit_error(200, int(error or 0)), error or status)
    return Accepted(sid, status)


def _spoken(status: int, document: Document) -> Said | None:
    """Twilio's error document; its numbers have five digits, which a proxy's have not."""
    number = document.get("code")
    if not isinstance(number, int) or isinstance(number, bool) or not 10_000 <= number <= 99_999:
        return None
    return Said(words.submit_error(status, number), str(number))


class TwilioAsking:
    """The asking side: looks texts up, and reads callbacks. Safe to share between threads."""

    name: str = NAME
    channel: Channel = Channel.SMS
    can_find: Capability = Capability.BY_DESTINATION
    can_poll: bool = True

    def __init__(
        self,
        account: TwilioAccount,
        sender: str,
        base_url: str,
        *,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        self._account = account
        self._sender = sender
        self._tells = TwilioReceipts(account.sid)
        self._http = AskingHttp(BaseUrl.parse(base_url), tls_context or usual_tls())

    def close(self) -> None:
        """Close the idle connections."""
        self._http.close()

    def probe(self, budget_s: float = 10.0) -> Probed:
        """Read our own account: whether the token is good."""
        path = f"{self._account.collection.removesuffix('/Messages')}.json"
        return probed(self._ask(path, Deadline.after(budget_s)))

    # asking

    def find(self, question: Question, budget_s: float) -> Looked:
        """Every text to the destination that may be the attempt's, as far as can be told.

        DateSent is no filter here: a text that is still queued has none. Without the end of
        the list in sight nothing is said, because the one that counts may be beyond it.
        """
        if question.destination is None:
            return CannotTell("no_destination")
        to = question.destination.reveal()
        fields = {"To": to, "PageSize": str(PAGE)}
        if sender_field(self._sender) == "From":
            fields["From"] = self._sender
        listed = self._pages(urlencode(fields), question.started_at, Deadline.after(budget_s))
        if isinstance(listed, CannotTell):
            return listed
        receipts = [
            receipt
            for each in listed
            if self._may_be_ours(each, to)
            and (receipt := self._tells.standing(each, each.get("date_created")))
        ]
        return Found(receipts) if receipts else NotFound()

    def poll(self, provider_message_id: str, budget_s: float) -> Looked:
        """Ask what became of one text."""
        if part.message_id(provider_message_id) is None:
            return CannotTell("bad_id")
        path = f"{self._account.collection}/{provider_message_id}.json"
        asked = self._ask(path, Deadline.after(budget_s))
        if isinstance(asked, CannotTell):
            return asked
        if asked.status != 200:
            gone = asked.status == 404 and asked.document.get("code") == words.NO_SUCH_THING
            return NotFound() if gone else CannotTell(f"status_{asked.status}")
        message = asked.document
        receipt = self._tells.standing(message, message.get("date_updated"))
        if receipt is None or receipt.provider_message_id != provider_message_id:
            return CannotTell("not_theirs")
        return Found([receipt])

    def _pages(
        self, query: str, started_at: datetime, deadline: Deadline
    ) -> list[Document] | CannotTell:
        found: list[Document] = []
        for _ in range(MOST_PAGES):
            asked = self._ask(f"{self._account.collection}.json?{query}", deadline)
            if isinstance(asked, CannotTell):
                return asked
            listed = asked.document.get("messages")
            if asked.status != 200 or not isinstance(listed, list):
                return CannotTell(f"status_{asked.status}")
            found += [each for each in listed if isinstance(each, dict)]
            following = asked.document.get("next_page_uri")
            if not following or _is_past(found, started_at):
                return found
            query = urlsplit(following).query if _is_plain(following) else ""
            if not query:
                return CannotTell("bad_page")
        return CannotTell("too_many")

    def _may_be_ours(self, message: Document, to: str) -> bool:
        """Compared by us: a filter that is not kept must not make another's text ours."""
        service = message.get("messaging_service_sid")
        by_service = sender_field(self._sender) != "From"
        same_sender = service == self._sender if by_service else message.get("from") == self._sender
        inbound = message.get("direction") == "inbound"
        return message.get("to") == to and same_sender and not inbound

    def _ask(self, path: str, deadline: Deadline) -> Told | CannotTell:
        return self._http.get(path, self._account.headers(), deadline)

    # callbacks

    def parse(self, callback: Callback) -> Sequence[ProviderReceipt]:
        """Verify the signature over the address and the fields, then read them."""
        fields = genuine_fields(callback, *self._account.tokens)
        if fields is None or fields.get("AccountSid") != self._account.sid:
            raise CallbackRefused
        receipt = self._tells.called_back(fields, callback.url)
        if receipt is None:
            raise CallbackUnreadable
        return [receipt]


def _is_past(listed: list[Document], started_at: datetime) -> bool:
    made = part.mail_time(listed[-1].get("date_created")) if listed else None
    return made is not None and made < started_at - LOOK_BACK


def _is_plain(address: Any) -> bool:
    return isinstance(address, str) and address.isascii() and address.isprintable()
