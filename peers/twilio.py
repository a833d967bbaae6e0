"""A stand-in for Twilio's messages: creates, lists, fetches, and signed status callbacks.

`python -m peers.twilio` serves it alone and prints one line of JSON with its address. What a
number can ask for stands in `peers.twilio_words`.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode, urlsplit

from peers.agenda import Callback, Patience
from peers.alone import add_stop_option, serve
from peers.courses import CourseScript, Refusal
from peers.outbox import Event, Facts, Message
from peers.provider import Provider
from peers.twilio_words import (
    API,
    COURSES,
    DENIED,
    LIMITED,
    LONGEST_VALIDITY_S,
    as_created,
    callback_fields,
    date_sent,
    document,
    fate_of_number,
    signature,
    within_validity,
)
from peers.web import Reply, Request, Route, as_json

ACCOUNT_SID = "AC" + "5" * 32
AUTH_TOKEN = "twilio-stand-in-token"  # noqa: S105 - of nobody
NUMBER = re.compile(r"\+[1-9]\d{6,14}")
CALLBACK_PATIENCE = Patience((0.5,), after_answers=False)
"""One more attempt, and only where no answer came: an error of the app loses the event."""
MOST_ON_A_PAGE = 1000


class Twilio(Provider):
    """One account with its auth token, which also signs its callbacks."""

    denied, limited = DENIED, LIMITED

    def __init__(
        self,
        account_sid: str = ACCOUNT_SID,
        auth_token: str = AUTH_TOKEN,
        *,
        port: int = 0,
        inbox_url: str | None = None,
    ) -> None:
        self._account, self._token = account_sid, auth_token
        self._callback_url: str | None = None
        self._place = f"{API}/Accounts/{account_sid}"
        both = base64.b64encode(f"{account_sid}:{auth_token}".encode()).decode()
        self._authorization = f"Basic {both}"
        script = CourseScript(COURSES, fate_of_number)
        super().__init__(script, CALLBACK_PATIENCE, port=port, inbox_url=inbox_url)

    def routes(self) -> dict[tuple[str, str], Route]:
        """The addresses without an id."""
        messages = f"{self._place}/Messages.json"
        return {
            ("POST", messages): self._create,
            ("GET", messages): lambda r: self._asked(r, self._list),
            ("GET", f"{self._place}.json"): lambda r: self._asked(r, self._account_itself),
            ("POST", "/control/callback"): self._set_callback,
        }

    def otherwise(self, request: Request) -> Reply:
        """One message by its sid."""
        found = re.fullmatch(rf"{self._place}/Messages/(\w+)\.json", request.path)
        if request.method == "GET" and found:
            sid = found[1]
            return self._asked(request, lambda _: self._fetch(sid))
        return self.in_own_words(_not_found(request.path), "")

    # creating

    def _create(self, request: Request) -> Reply:
        if request.headers.get("authorization") != self._authorization:
            self.journal.add("post", {"refused": DENIED.code})
            return self.in_own_words(DENIED, "")
        given = request.form()
        fault = fault_of(given)
        if fault is not None:
            self.journal.add("post", {"recipient": given.get("To"), "refused": fault.code})
            return self.in_own_words(fault, "")
        message = self._draft(given)
        self.journal.add("post", message.facts())
        return self.submit(message)

    def _draft(self, given: dict[str, str]) -> Message:
        number = given["To"]
        validity_s = float(given.get("ValidityPeriod", LONGEST_VALIDITY_S))
        course = within_validity(self.script.course_for(number), validity_s)
        reference = reference_in(given.get("StatusCallback"))
        sid, now = f"SM{uuid.uuid4().hex}", datetime.now(UTC)
        return Message(sid, number, reference, given, course, now, time.monotonic())

    def taken(self, message: Message) -> Reply:
        """Twilio's yes: the message as it was created."""
        return as_json(as_created(self._account, message), 201)

    def in_own_words(self, refusal: Refusal, recipient: str) -> Reply:  # noqa: ARG002
        """Twilio's no."""
        more = f"https://www.twilio.com/docs/errors/{refusal.code}"
        words = {"code": refusal.code, "message": refusal.message, "more_info": more}
        return as_json(words | {"status": refusal.status}, refusal.status)

    # telling

    def callback(self, message: Message, event: Event) -> Callback | None:
        """The signed status callback, to the message's own address."""
        url = message.given.get("StatusCallback") or self._callback_url
        if url is None:
            return None
        fields = callback_fields(self._account, message, event)
        if event.step.stranger:
            url = _with_other_reference(url, message.reference)
            fields |= dict.fromkeys(("MessageSid", "SmsSid"), f"SM{uuid.uuid4().hex}")
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "x-twilio-signature": signature(self._token, url, fields),
            "i-twilio-idempotency-token": str(uuid.uuid4()),
        }
        facts = {**message.facts(), "word": event.step.word}
        return Callback(url, headers, urlencode(fields).encode(), facts)

    def as_arrived(self, message: Message, event: Event) -> tuple[str, Facts] | None:
        """A text for the inbox once it is delivered."""
        if event.step.word != "delivered" or event.step.stranger:
            return None
        sender = message.given.get("From") or message.given.get("MessagingServiceSid")
        facts: Facts = {"from": sender, "to": message.recipient, "body": message.given["Body"]}
        return "/texts", facts | {"reference": message.reference}

    def _set_callback(self, request: Request) -> Reply:
        """For messages that name no address, as a messaging service can have one."""
        self._callback_url = str(request.json()["url"])
        return as_json({}, 201)

    # being asked

    def _asked(self, request: Request, answer: Route) -> Reply:
        if request.headers.get("authorization") != self._authorization:
            self.journal.add("refused", {"path": request.path})
            return self.in_own_words(DENIED, "")
        return self.look(request, answer)

    def _account_itself(self, _: Request) -> Reply:
        return as_json({"sid": self._account, "status": "active", "type": "Full"})

    def _list(self, request: Request) -> Reply:
        keeps = [filter_of(name, value) for name, value in request.query.items()]
        return self._page(request, [m for m in self.messages.seen() if all(k(m) for k in keeps)])

    def nothing_found(self, request: Request) -> Reply:
        """An empty list; for one message, that there is no such message."""
        if request.path.endswith("/Messages.json"):
            return self._page(request, [])
        return self.in_own_words(_not_found(request.path), "")

    def _fetch(self, sid: str) -> Reply:
        message = self.messages.get(sid)
        if message is None or message not in self.messages.seen():
            return self.in_own_words(_not_found(f"{self._place}/Messages/{sid}.json"), "")
        return as_json(document(self._account, message))

    def _page(self, request: Request, found: list[Message]) -> Reply:
        size = min(int(request.query.get("PageSize", "50")), MOST_ON_A_PAGE)
        number = int(request.query.get("Page", "0"))
        shown = found[number * size : (number + 1) * size]
        last = (number + 1) * size >= len(found)
        return as_json(
            {
                "messages": [document(self._account, message) for message in shown],
                "page": number,
                "page_size": size,
                "start": number * size,
                "end": number * size + max(len(shown) - 1, 0),
                "uri": _uri(request, number),
                "first_page_uri": _uri(request, 0),
                "next_page_uri": None if last else _uri(request, number + 1),
                "previous_page_uri": _uri(request, number - 1) if number else None,
            }
        )


def _uri(request: Request, page: int) -> str:
    query = request.query | {"Page": str(page)}
    if page:
        query["PageToken"] = f"PASM{page:032d}"
    return f"{request.path}?{urlencode(query)}"


def _not_found(path: str) -> Refusal:
    return Refusal(404, 20404, f"The requested resource {path} was not found")


def fault_of(given: dict[str, str]) -> Refusal | None:
    """What Twilio would not take in a message, None for a good one."""
    sender = given.get("From") or given.get("MessagingServiceSid")
    validity = given.get("ValidityPeriod", "1")
    valid = validity.isdigit() and 1 <= int(validity) <= LONGEST_VALIDITY_S
    callback = urlsplit(given.get("StatusCallback", "http://x"))
    body = given.get("Body", "")
    checks = (
        (bool(given.get("To")), 21604, "A 'To' phone number is required."),
        (bool(NUMBER.fullmatch(given.get("To", ""))), 21211, "Invalid 'To' Phone Number"),
        (bool(sender), 21603, "A 'From' phone number is required."),
        (bool(body), 21602, "Message body is required."),
        (len(body) <= 1600, 21617, "The concatenated message body exceeds the 1600 limit."),
        (valid, 21624, "ValidityPeriod must be between 1 and 36000."),
        (bool(callback.scheme and callback.netloc), 21609, "Invalid 'StatusCallback' URL"),
    )
    return next((Refusal(400, code, text) for good, code, text in checks if not good), None)


def reference_in(url: str | None) -> str | None:
    """What the sender put last into its callback's address: a query value or a path's part."""
    if url is None:
        return None
    parts = urlsplit(url)
    return parts.query.rpartition("=")[2] or parts.path.rstrip("/").rpartition("/")[2] or None


def _with_other_reference(url: str, reference: str | None) -> str:
    head, found, tail = url.rpartition(reference) if reference else (url, "", "")
    return f"{head}{'x' * len(found)}{tail}" if found else url


def filter_of(name: str, value: str) -> Callable[[Message], bool]:
    """What one parameter of a list keeps; days are UTC, and a finer time is taken, too.

    A message that has not left the queue has no date, and no date filter keeps it.
    """
    match name:
        case "To":
            return lambda message: message.recipient == value
        case "From":
            return lambda message: message.given.get("From") == value
        case "DateSent" | "DateSent<" | "DateSent>":
            return _in_time(value, name[-1])
    return lambda _: True


def _in_time(value: str, comparison: str) -> Callable[[Message], bool]:
    given = datetime.fromisoformat(value)
    start = given if given.tzinfo else given.replace(tzinfo=UTC)
    length = timedelta(days=1) if len(value) <= len("2026-01-01") else timedelta(seconds=1)

    def keeps(message: Message) -> bool:
        sent = date_sent(message)
        after = sent is not None and (comparison == "<" or sent >= start)
        before = sent is not None and (comparison == ">" or sent < start + length)
        return after and before

    return keeps


def main() -> None:
    """Serve it alone; PEERS_TWILIO_ACCOUNT_SID and PEERS_TWILIO_AUTH_TOKEN set its account."""
    parser = argparse.ArgumentParser(prog="python -m peers.twilio")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--inbox-url", default=None)
    add_stop_option(parser)
    chosen = parser.parse_args()
    account = os.environ.get("PEERS_TWILIO_ACCOUNT_SID", ACCOUNT_SID)
    token = os.environ.get("PEERS_TWILIO_AUTH_TOKEN", AUTH_TOKEN)
    stand_in = Twilio(account, token, port=chosen.port, inbox_url=chosen.inbox_url)
    facts: dict[str, object] = {"url": stand_in.url, "account_sid": account}
    serve(stand_in, facts, stop_with_stdin=chosen.stop_with_stdin)


if __name__ == "__main__":
    main()
