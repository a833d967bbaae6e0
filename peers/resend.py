"""A stand-in for Resend: sends under idempotency keys, is read by id, posts signed webhooks.

`python -m peers.resend` serves it alone and prints one line of JSON with its address. What a
recipient can ask for stands in `peers.resend_words.COURSES`. The same request under the same
key gets the first one's answer and makes no second message; how such a repetition is answered
is scripted apart (`/control/replays`), because a recipient's course is the first request's.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
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
from peers.postmark_rules import bare_address
from peers.provider import Provider
from peers.resend_keys import Keys, Standing
from peers.resend_words import (
    COURSES,
    DENIED,
    ERRORS,
    KEY_IN_USE,
    KEY_USED,
    LIMITED,
    UNREADABLE,
    refusal,
    retrieved,
    webhook,
)
from peers.web import Manner, Reply, Request, Route, as_json

API_KEY = "re_stand_in_key"
SENDING_KEY = "re_stand_in_sending_only"
ONE_EMAIL = re.compile(r"/emails/([^/]+)")
TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
WEBHOOK_PATIENCE = Patience((1.0, 5.0, 30.0), after_answers=True)
"""The real waits go up to hours; a run here is shorter."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where events are posted, and the secret (`whsec_…`) that they are signed with."""

    url: str
    secret: str


class Resend(Provider):
    """One Resend team with a full-access key, a key that may only send, and one webhook."""

    denied, limited = DENIED, LIMITED

    def __init__(
        self,
        api_key: str = API_KEY,
        *,
        port: int = 0,
        webhook_to: Webhook | None = None,
        inbox_url: str | None = None,
    ) -> None:
        self._api_key, self._webhook = api_key, webhook_to
        self._lock = threading.Lock()
        self._keys = Keys()
        self._replays = CourseScript(COURSES, lambda _: "deliver")
        script = CourseScript(COURSES, fate_of)
        super().__init__(script, WEBHOOK_PATIENCE, port=port, inbox_url=inbox_url)

    def routes(self) -> dict[tuple[str, str], Route]:
        """The addresses without an id."""
        return {
            ("POST", "/emails"): self._emails,
            ("GET", "/domains"): lambda r: self._asked(r, lambda _: as_json({"data": []})),
            ("POST", "/control/callback"): self._set_webhook,
            ("POST", "/control/replays"): self._add_replay_rule,
        }

    def otherwise(self, request: Request) -> Reply:
        """One email."""
        if request.method == "GET" and (found := ONE_EMAIL.fullmatch(request.path)):
            identity = found[1]
            return self._asked(request, lambda _: self._email(identity))
        return self.in_own_words(refusal(404, "not_found", "There is no such address."), "")

    # sending

    def _emails(self, request: Request) -> Reply:
        trouble = None if self._bearer(request) in (self._api_key, SENDING_KEY) else DENIED
        given = {} if trouble else _document(request)
        key = request.headers.get("idempotency-key")
        trouble = trouble or fault_of(given) or key_fault(key)
        if trouble is not None:
            self.journal.add("post", {"recipient": _recipient(given), "refused": trouble.code})
            return self.in_own_words(trouble, "")
        return self._under_key(key, request.body, given) if key else self._first(None, given)

    def _under_key(self, key: str, body: bytes, given: dict[str, Any]) -> Reply:
        standing, message = self._keys.begin(key, hashlib.sha256(body).digest())
        if standing is Standing.FIRST:
            return self._first(key, given)
        recipient = _recipient(given)
        facts: Facts = {"recipient": recipient, "key": key, "standing": standing.name.lower()}
        self.journal.add("post", facts)
        if standing is Standing.AGAIN and message is not None:
            return self._again(message)
        return self.in_own_words(KEY_USED if standing is Standing.OTHER else KEY_IN_USE, recipient)

    def _first(self, key: str | None, given: dict[str, Any]) -> Reply:
        recipient = _recipient(given)
        course = self.script.course_for(recipient)
        tags = given.get("tags") or [{"value": None}]
        now, identity = datetime.now(UTC), str(uuid.uuid4())
        message = Message(
            identity, recipient, tags[0]["value"], given, course, now, time.monotonic()
        )
        self.journal.add("post", {**message.facts(), "key": key, "standing": "first"})
        if key and (course.refusal is not None or not course.kept):
            self._keys.forget(key)
        elif key and not course.hold and not course.slow_s:
            self._keys.done(key, message)
        reply = self.submit(message)
        if key and course.refusal is None and course.kept:
            self._keys.done(key, message)
        return reply

    def _again(self, message: Message) -> Reply:
        """The first answer once more, or what is scripted for repetitions."""
        course = self._replays.course_for(message.recipient)
        if course.refusal is not None:
            return self._refuse(course.refusal, message.recipient)
        if course.hold and not self._hold({**message.facts(), "again": True}):
            return Reply(manner=Manner.DROP)
        return self._answer(replace(message, course=course))

    def taken(self, message: Message) -> Reply:
        """Resend's yes."""
        return as_json({"id": message.identity})

    def in_own_words(self, refusal: Refusal, recipient: str) -> Reply:  # noqa: ARG002 - no address is quoted
        """Resend's no."""
        name = ERRORS[refusal.code or 0]
        document = {"statusCode": refusal.status, "message": refusal.message, "name": name}
        return as_json(document, refusal.status)

    def _add_replay_rule(self, request: Request) -> Reply:
        given = request.json()
        self._replays.add(given["fate"], given.get("recipient"), given.get("times"))
        return as_json({}, 201)

    # telling

    def callback(self, message: Message, event: Event) -> Callback | None:
        """The webhook, signed as Svix does."""
        with self._lock:
            hook = self._webhook
        if hook is None:
            return None
        document = webhook(message, event)
        if event.step.stranger:
            document["data"] |= {"email_id": str(uuid.uuid4()), "tags": {}}
        body = json.dumps(document).encode()
        headers = {"content-type": "application/json", **signed(hook.secret, event, body)}
        return Callback(hook.url, headers, body, {**message.facts(), "word": event.step.word})

    def as_arrived(self, message: Message, event: Event) -> tuple[str, Facts] | None:
        """A mail for the inbox once it is delivered."""
        if event.step.word != "delivered" or event.step.stranger:
            return None
        given = message.given
        facts: Facts = {"from": given["from"], "to": message.recipient, "via": "Resend"}
        facts |= {"subject": given["subject"], "reference": message.reference}
        facts |= {"text": given.get("text"), "html": given.get("html")}
        return "/mails", facts | {"heard": "accepted" if message.course.answered else "nothing"}

    def _set_webhook(self, request: Request) -> Reply:
        with self._lock:
            self._webhook = Webhook(**request.json())
        return as_json({}, 201)

    # being asked

    def _bearer(self, request: Request) -> str:
        return request.headers.get("authorization", "").removeprefix("Bearer ")

    def _asked(self, request: Request, answer: Route) -> Reply:
        if self._bearer(request) != self._api_key:
            self.journal.add("refused", {"path": request.path})
            may_send = self._bearer(request) == SENDING_KEY
            return self.in_own_words(UNREADABLE if may_send else DENIED, "")
        return self.look(request, answer)

    def nothing_found(self, request: Request) -> Reply:  # noqa: ARG002 - the same for all
        """There is no such email."""
        return self._email("")

    def _email(self, identity: str) -> Reply:
        message = self.messages.get(identity)
        if message is None or message not in self.messages.seen():
            return self.in_own_words(refusal(404, "not_found", "Email not found"), "")
        return as_json(retrieved(message))


def signed(secret: str, event: Event, body: bytes) -> dict[str, str]:
    """Svix's headers: one id for an event however often it is told; a time of sending."""
    identity, now = f"msg_{event.number}_{event.at:%Y%m%d%H%M%S%f}", str(int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{identity}.{now}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    return {"svix-id": identity, "svix-timestamp": now, "svix-signature": f"v1,{signature}"}


def fault_of(given: dict[str, Any]) -> Refusal | None:
    """What Resend would not take in a message, None for a good one."""
    tags = given.get("tags") or []
    checks = (
        (bool(bare_address(given.get("from"))), "Invalid `from` field."),
        (bool(_recipient(given)), "Invalid `to` field."),
        (bool(given.get("subject")), "Missing `subject` field."),
        (bool(given.get("text") or given.get("html")), "Missing `html` or `text` field."),
        (
            all(TAG.fullmatch(each["name"]) and TAG.fullmatch(each["value"]) for each in tags),
            "Tags should only contain ASCII letters, numbers, underscores, or dashes.",
        ),
    )
    bad = next((text for good, text in checks if not good), None)
    return refusal(422, "validation_error", bad) if bad else None


def key_fault(key: str | None) -> Refusal | None:
    """A key is of 1 to 256 characters; none at all is allowed."""
    if key is None or 0 < len(key) <= 256:
        return None
    return refusal(400, "invalid_idempotency_key", "The key must be between 1 and 256 characters.")


def _recipient(given: dict[str, Any]) -> str:
    to = given.get("to")
    first = to[0] if isinstance(to, list) and to else to
    return bare_address(first)


def _document(request: Request) -> dict[str, Any]:
    try:
        return request.json()
    except ValueError:
        return {}


def main() -> None:
    """Serve it alone; PEERS_RESEND_API_KEY sets the key."""
    parser = argparse.ArgumentParser(prog="python -m peers.resend")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--inbox-url", default=None)
    add_stop_option(parser)
    chosen = parser.parse_args()
    key = os.environ.get("PEERS_RESEND_API_KEY", API_KEY)
    stand_in = Resend(key, port=chosen.port, inbox_url=chosen.inbox_url)
    serve(stand_in, {"url": stand_in.url}, stop_with_stdin=chosen.stop_with_stdin)


if __name__ == "__main__":
    main()
