"""A stand-in for Postmark: sends, searches, bounces and webhooks, as its API has them.

`python -m peers.postmark` serves it alone and prints one line of JSON with its address. What
a recipient can ask for stands in `peers.postmark_words.COURSES`; an address that bounced hard
or complained is inactive afterwards, as it is there.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import threading
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from peers.agenda import Callback, Patience
from peers.alone import add_stop_option, serve
from peers.courses import CourseScript, Refusal
from peers.fates import fate_of
from peers.outbox import Event, Facts, Message
from peers.postmark_rules import bare_address, error, fault_of, filter_of, page
from peers.postmark_words import (
    BOUNCES,
    COURSES,
    DEACTIVATING,
    DENIED,
    LIMITED,
    bounce,
    detailed,
    listed,
    stamp,
    webhook,
)
from peers.provider import Provider
from peers.web import Reply, Request, Route, as_json

TOKEN = "postmark-stand-in-token"  # noqa: S105 - of nobody
TEST_TOKEN = "POSTMARK_API_TEST"  # noqa: S105 - Postmark's own, and public
DETAILS = re.compile(r"/messages/outbound/([^/]+)/details")
ONE_BOUNCE = re.compile(r"/bounces/(\d+)")
WEBHOOK_PATIENCE = Patience((1.0, 5.0, 30.0), after_answers=True)
"""The real waits begin at a minute; a run here is shorter."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where events are posted, and with which basic authentication."""

    url: str
    user: str
    password: str


class Postmark(Provider):
    """One Postmark server (in its sense of the word) with one token and one webhook."""

    denied, limited = DENIED, LIMITED

    def __init__(
        self,
        token: str = TOKEN,
        *,
        port: int = 0,
        webhook_to: Webhook | None = None,
        inbox_url: str | None = None,
    ) -> None:
        self._token, self._webhook = token, webhook_to
        self._inactive: set[str] = set()
        self._lock = threading.Lock()
        script = CourseScript(COURSES, fate_of)
        super().__init__(script, WEBHOOK_PATIENCE, port=port, inbox_url=inbox_url)

    def routes(self) -> dict[tuple[str, str], Route]:
        """The addresses without an id."""
        return {
            ("POST", "/email"): self._email,
            ("GET", "/messages/outbound"): lambda r: self._asked(r, self._search),
            ("GET", "/bounces"): lambda r: self._asked(r, self._bounces),
            ("GET", "/server"): lambda r: self._asked(r, lambda _: as_json({"ID": 23})),
            ("POST", "/control/callback"): self._set_webhook,
        }

    def otherwise(self, request: Request) -> Reply:
        """Details of a message, and one bounce."""
        if request.method == "GET" and (found := DETAILS.fullmatch(request.path)):
            identity = found[1]
            return self._asked(request, lambda _: self._details(identity))
        if request.method == "GET" and (found := ONE_BOUNCE.fullmatch(request.path)):
            number = int(found[1])
            return self._asked(request, lambda _: self._bounce(number))
        return error(404, 0, "There is no such address.")

    # sending

    def _email(self, request: Request) -> Reply:
        token = request.headers.get("x-postmark-server-token")
        trouble = None if token in (self._token, TEST_TOKEN) else DENIED
        given = {} if trouble else _document(request)
        trouble = trouble or fault_of(given)
        if trouble is not None:
            self.journal.add("post", {"recipient": given.get("To"), "refused": trouble.code})
            return self.in_own_words(trouble, "")
        message = self._draft(given)
        self.journal.add("post", message.facts())
        if token == TEST_TOKEN:
            return self.taken(message)
        return self.submit(message)

    def _draft(self, given: dict[str, Any]) -> Message:
        recipient = bare_address(given["To"])
        reference = next(iter((given.get("Metadata") or {}).values()), None)
        course = self.script.course_for(recipient)
        with self._lock:
            if recipient.lower() in self._inactive:
                course = replace(COURSES["inactive"], name=course.name)
        now, identity = datetime.now(UTC), str(uuid.uuid4())
        return Message(identity, recipient, reference, given, course, now, time.monotonic())

    def taken(self, message: Message) -> Reply:
        """Postmark's yes."""
        return as_json(
            {
                "To": message.given["To"],
                "SubmittedAt": stamp(message.at),
                "MessageID": message.identity,
                "ErrorCode": 0,
                "Message": "OK",
            }
        )

    def in_own_words(self, refusal: Refusal, recipient: str) -> Reply:
        """Postmark's no; the one about inactive recipients quotes the address."""
        quoted = f" Found inactive addresses: {recipient}." if refusal.code == 406 else ""
        return error(refusal.status, refusal.code or 0, refusal.message + quoted)

    # telling

    def callback(self, message: Message, event: Event) -> Callback | None:
        """The webhook with basic authentication and the metadata echoed."""
        with self._lock:
            if event.step.word in DEACTIVATING:
                self._inactive.add(message.recipient.lower())
            hook = self._webhook
        document = webhook(message, event)
        if document is None or hook is None:
            return None
        if event.step.stranger:
            document |= {"MessageID": str(uuid.uuid4()), "Metadata": {}}
        both = base64.b64encode(f"{hook.user}:{hook.password}".encode()).decode()
        headers = {"authorization": f"Basic {both}", "content-type": "application/json"}
        facts = {**message.facts(), "word": event.step.word}
        return Callback(hook.url, headers, json.dumps(document).encode(), facts)

    def as_arrived(self, message: Message, event: Event) -> tuple[str, Facts] | None:
        """A mail for the inbox once it is delivered."""
        if event.step.word != "Delivered" or event.step.stranger:
            return None
        given = message.given
        facts: Facts = {"from": given["From"], "to": message.recipient, "via": "Postmark"}
        facts |= {"subject": given.get("Subject"), "reference": message.reference}
        facts |= {"text": given.get("TextBody"), "html": given.get("HtmlBody")}
        return "/mails", facts | {"heard": "accepted" if message.course.answered else "nothing"}

    def _set_webhook(self, request: Request) -> Reply:
        with self._lock:
            self._webhook = Webhook(**request.json())
        return as_json({}, 201)

    # being asked

    def _asked(self, request: Request, answer: Route) -> Reply:
        if request.headers.get("x-postmark-server-token") != self._token:
            self.journal.add("refused", {"path": request.path})
            return self.in_own_words(DENIED, "")
        return self.look(request, answer)

    def _search(self, request: Request) -> Reply:
        keeps = [filter_of(name, value) for name, value in request.query.items()]
        if sum(name.startswith("metadata_") for name in request.query) > 1:
            return error(422, 602, "Only one metadata field can be searched for.")
        found = [m for m in self.messages.seen() if all(keep(m) for keep in keeps)]
        return page(request, "Messages", [listed(message) for message in found])

    def nothing_found(self, request: Request) -> Reply:
        """An empty search; for one message's details, that there is no such message."""
        if DETAILS.fullmatch(request.path):
            return self._details("")
        return page(request, "Messages", [])

    def _details(self, identity: str) -> Reply:
        message = self.messages.get(identity)
        if message is None or message not in self.messages.seen():
            return error(422, 701, "This message was not found.")
        return as_json(detailed(message))

    def _all_bounces(self) -> list[dict[str, Any]]:
        bounced = [
            bounce(message, event)
            for message in self.messages.seen()
            for event in message.events
            if event.step.word in BOUNCES
        ]
        return sorted(bounced, key=lambda found: -int(found["ID"]))

    def _bounces(self, request: Request) -> Reply:
        wanted = {"messageID": "MessageID", "type": "Type", "emailFilter": "Email", "tag": "Tag"}
        asked = {wanted[name]: value for name, value in request.query.items() if name in wanted}
        found = [b for b in self._all_bounces() if asked.items() <= b.items()]
        return page(request, "Bounces", found)

    def _bounce(self, number: int) -> Reply:
        found = next((b for b in self._all_bounces() if b["ID"] == number), None)
        return as_json(found) if found else error(422, 407, "This bounce was not found.")


def _document(request: Request) -> dict[str, Any]:
    try:
        return request.json()
    except ValueError:
        return {"": ""}


def main() -> None:
    """Serve it alone; PEERS_POSTMARK_TOKEN sets the token."""
    parser = argparse.ArgumentParser(prog="python -m peers.postmark")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--inbox-url", default=None)
    add_stop_option(parser)
    chosen = parser.parse_args()
    token = os.environ.get("PEERS_POSTMARK_TOKEN", TOKEN)
    stand_in = Postmark(token, port=chosen.port, inbox_url=chosen.inbox_url)
    serve(stand_in, {"url": stand_in.url}, stop_with_stdin=chosen.stop_with_stdin)


if __name__ == "__main__":
    main()
