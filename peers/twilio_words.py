"""Twilio's words: the courses a number can ask for, its signature, and its documents.

The last two digits of a number in a range kept for fiction (+44 7700 900000 to 900999, and
+1 ... 555 0100 to 0199 where there must be many people) say what becomes of a text to it:

    00-49, 80-99  delivered              64  answer cut in the middle
    50  undelivered, 30003 unreachable   65  answer that is no JSON
    51  failed, 30007 filtered           66  delivered callback before the answer
    52  refused, 21211 invalid number    67  every callback three times
    53  refused, 21610 unsubscribed      68  callbacks in the wrong order
    54  HTTP 429, code 20429             69  delivered callback 8 s late
    55  no answer after keeping          70  a callback about a stranger's text, too
    56  reset after keeping              71  delivered, but no callback says so
    57  HTTP 500 after keeping           72  undelivered, 30006 landline
    58  waits until its validity ends    73  undelivered, 30004 blocked
    59  kept, then silence for ever      74  refused, 21606 our sender
    60  answer after 2 s                 75  several callbacks at once
    61  held until released              76  refused, 21408 region not enabled
    62  HTTP 401, code 20003             77  no answer, no callbacks; a look finds it
    63  HTTP 503, nothing kept           78  connection closed, nothing kept
                                         79  6 s in the queue

A text still in the stand-in's own queue when its ValidityPeriod ends fails with 30036.
From Twilio's pages on messages, status callbacks, request security and error codes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from email.utils import format_datetime
from typing import Any, Final

from peers.courses import Course, Refusal, Step, endings
from peers.outbox import Event, Message

API: Final = "/2010-04-01"
LONGEST_VALIDITY_S: Final = 36_000
SEGMENT: Final = 153

SENT: Final = Step("sent", 0.2)
DELIVERED: Final = Step("delivered", 0.6)
NORMAL: Final = (SENT, DELIVERED)
UNTOLD: Final = (Step("sent", 0.2, told=0), Step("delivered", 0.6, told=0))

DENIED: Final = Refusal(401, 20003, "Authenticate")
LIMITED: Final = Refusal(429, 20429, "Too Many Requests", retry_after_s=2)


def _ended(name: str, word: str, code: int) -> Course:
    return Course(name, (SENT, Step(word, 0.6, code)))


def _refused(name: str, code: int, message: str) -> Course:
    return Course(name, refusal=Refusal(400, code, message))


COURSES: Final = {
    course.name: course
    for course in (
        *endings(NORMAL, UNTOLD).values(),
        Course("deliver", NORMAL),
        Course("accept", (SENT,)),
        Course("lost"),
        Course("silent", UNTOLD),
        _ended("unreachable", "undelivered", 30003),
        _ended("filtered", "failed", 30007),
        _ended("landline", "undelivered", 30006),
        _ended("blocked", "undelivered", 30004),
        _ended("unknown-error", "undelivered", 30008),
        Course("unmapped", (Step("teleported", 0.3), DELIVERED)),
        Course("expired", (Step("sent", 10.0 * LONGEST_VALIDITY_S),)),
        Course("queued", (Step("sent", 6.0), Step("delivered", 6.4))),
        Course("duplicate", tuple(replace(step, told=3) for step in NORMAL)),
        Course("reordered", (replace(SENT, told_late_s=0.9), DELIVERED)),
        Course("batched", (replace(SENT, told_late_s=0.4), DELIVERED, Step("read", 0.6))),
        Course("late", (SENT, replace(DELIVERED, told_late_s=8.0))),
        Course("stranger", (replace(DELIVERED, after_s=0.1, stranger=True), *NORMAL)),
        _refused("bad-address", 21211, "Invalid 'To' Phone Number"),
        _refused("unsubscribed", 21610, "Attempt to send to unsubscribed recipient"),
        _refused("sender-rejected", 21606, "The 'From' phone number is not yours to send from"),
        _refused("region", 21408, "Permission to send to this region has not been enabled"),
        Course("denied", refusal=DENIED),
        Course("rate-limited", refusal=LIMITED),
        Course("greylist", refusal=replace(LIMITED, retry_after_s=1, times=1)),
    )
}

BY_DIGITS: Final = {
    50: "unreachable", 51: "filtered", 52: "bad-address", 53: "unsubscribed", 54: "rate-limited",
    55: "hang-after-accept", 56: "reset-after-accept", 57: "error-after-accept", 58: "expired",
    59: "lost", 60: "slow", 61: "hold", 62: "denied", 63: "unavailable", 64: "truncate",
    65: "junk", 66: "callback-first", 67: "duplicate", 68: "reordered", 69: "late",
    70: "stranger", 71: "silent", 72: "landline", 73: "blocked", 74: "sender-rejected",
    75: "batched", 76: "region", 77: "hang-and-silent", 78: "lost-after-accept", 79: "queued",
}  # fmt: skip
FICTION: Final = re.compile(r"\+(?:447700900\d|1[2-9]\d\d55501)(\d\d)")
"""Ofcom's numbers for drama, and those of North America (555-01xx in each area)."""


def fate_of_number(number: str) -> str:
    """The course that a number asks for by its last two digits."""
    found = FICTION.fullmatch(number)
    return BY_DIGITS.get(int(found[1]), "deliver") if found else "deliver"


def number_for(fate: str, choice: int) -> str:
    """A number that asks for `fate`; `choice` picks one of ten, or of 500 that are delivered."""
    digits = next((digits for digits, name in BY_DIGITS.items() if name == fate), None)
    place = choice % 50 if digits is None else digits
    return f"+447700900{choice // 50 % 10}{place:02d}"


def signature(auth_token: str, url: str, fields: Mapping[str, str]) -> str:
    """X-Twilio-Signature: HMAC-SHA1 over the whole URL, then each sorted name and its value."""
    signed = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    digest = hmac.new(auth_token.encode(), signed.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


def within_validity(course: Course, validity_s: float) -> Course:
    """The course under a validity period, which ends what is still in the provider's queue."""
    first = next((step for step in course.steps if not step.stranger), None)
    if first is None or first.after_s <= validity_s:
        return course
    return replace(course, steps=(Step("failed", validity_s, 30036),))


def status_of(message: Message) -> tuple[str, int | None]:
    """Where the message stands: its newest event's word and error code."""
    if not message.events:
        return _first_status(message), None
    newest = message.events[-1].step
    return newest.word, newest.code


def _first_status(message: Message) -> str:
    return "accepted" if message.given.get("MessagingServiceSid") else "queued"


def document(account: str, message: Message) -> dict[str, Any]:
    """One message as the API shows it."""
    status, code = status_of(message)
    given, sent = message.given, _when_sent(message)
    uri = f"{API}/Accounts/{account}/Messages/{message.identity}"
    updated = message.events[-1].at if message.events else message.at
    return {
        "sid": message.identity,
        "account_sid": account,
        "messaging_service_sid": given.get("MessagingServiceSid"),
        "to": message.recipient,
        "from": given.get("From"),
        "body": given["Body"],
        "status": status,
        "error_code": code,
        "error_message": None,
        "direction": "outbound-api",
        "api_version": "2010-04-01",
        "num_segments": str(max(1, -(-len(given["Body"]) // SEGMENT))),
        "num_media": "0",
        "price": None,
        "price_unit": "USD",
        "date_created": format_datetime(message.at),
        "date_updated": format_datetime(updated),
        "date_sent": format_datetime(sent) if sent else None,
        "uri": f"{uri}.json",
        "subresource_uris": {"media": f"{uri}/Media.json"},
    }


def as_created(account: str, message: Message) -> dict[str, Any]:
    """The same at the moment of its creation, whatever may have happened since."""
    first = {"status": _first_status(message), "error_code": None, "date_sent": None}
    return document(account, message) | first


def _when_sent(message: Message) -> datetime | None:
    return next((event.at for event in message.events if event.step.word != "failed"), None)


def date_sent(message: Message) -> datetime | None:
    """When it left the queue, which is what DateSent filters by."""
    return _when_sent(message)


def callback_fields(account: str, message: Message, event: Event) -> dict[str, str]:
    """The form that a status callback carries."""
    fields = {
        "AccountSid": account,
        "ApiVersion": "2010-04-01",
        "From": str(message.given.get("From") or ""),
        "MessageSid": message.identity,
        "MessageStatus": event.step.word,
        "SmsSid": message.identity,
        "SmsStatus": event.step.word,
        "To": message.recipient,
    }
    if event.step.code is not None:
        fields["ErrorCode"] = str(event.step.code)
    if service := message.given.get("MessagingServiceSid"):
        fields["MessagingServiceSid"] = str(service)
    return fields
