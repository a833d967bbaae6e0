"""Postmark's words: the courses an address can ask for, and the shapes of its documents.

From Postmark's developer pages (email, messages, bounces, webhooks, error codes). The numbers
of rate limiting and of faulty searches are not documented; they are made up here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from peers.courses import Course, Refusal, Step, endings
from peers.outbox import Event, Message

SERVER_ID: Final = 23

SENT: Final = Step("Sent", told=0)
DELIVERED: Final = Step("Delivered", 0.3, note="250 2.0.0 Taken")
HARD: Final = Step("HardBounce", 0.3, note="550 5.1.1 No such mailbox here")
TRANSIENT: Final = Step("Transient", 0.2, note="451 4.7.1 Come back later")
FULL: Final = Step("SoftBounce", 0.3, note="552 5.2.2 Mailbox full")
UNTOLD: Final = (SENT, Step("Delivered", 0.3, told=0, note="250 2.0.0 Taken"))
NORMAL: Final = (SENT, DELIVERED)

DENIED: Final = Refusal(401, 10, "The Server Token you provided does not exist.")
LIMITED: Final = Refusal(429, 429, "Too many requests.", retry_after_s=2)
INACTIVE: Final = Refusal(
    422, 406, "You tried to send to a recipient that has been marked as inactive."
)


def _ended(name: str, word: str, note: str) -> Course:
    return Course(name, (SENT, Step(word, 0.3, note=note)))


COURSES: Final = {
    course.name: course
    for course in (
        *endings(NORMAL, UNTOLD).values(),
        Course("deliver", NORMAL),
        Course("accept", (SENT,)),
        Course("lost"),
        Course("silent", UNTOLD),
        Course("bounce-hard", (SENT, HARD)),
        Course("bounce-soft", (SENT, TRANSIENT, Step("Delivered", 1.0, note="250 Taken"))),
        Course("mailbox-full", (SENT, FULL)),
        Course("bounce-after-delivery", (SENT, DELIVERED, Step("HardBounce", 1.5, note=HARD.note))),
        _ended("blocked", "Blocked", "554 5.7.1 Refused by policy"),
        _ended("spam-notification", "SpamNotification", "554 5.6.0 Content refused"),
        _ended("dns-error", "DnsError", "no mail exchanger"),
        _ended("dmarc", "DMARCPolicy", "550 5.7.26 Sender not authenticated"),
        Course("complaint", (*NORMAL, Step("SpamComplaint", 1.0))),
        Course("unsubscribe", (*NORMAL, Step("SubscriptionChange", 1.0))),
        Course("opened", (*NORMAL, Step("Open", 1.0))),
        Course("unmapped", (SENT, Step("NotYetInvented", 0.3), DELIVERED)),
        Course("duplicate", (SENT, Step("Delivered", 0.3, told=3, note="250 Taken"))),
        Course(
            "reordered",
            (SENT, Step("Transient", 0.1, told_late_s=0.8, note=TRANSIENT.note), DELIVERED),
        ),
        Course(
            "batched",
            (
                SENT,
                Step("Transient", 0.1, told_late_s=0.5, note=TRANSIENT.note),
                Step("Delivered", 0.6, note="250 Taken"),
                Step("Open", 0.6),
            ),
        ),
        Course("late", (SENT, Step("Delivered", 0.3, told_late_s=8.0, note="250 Taken"))),
        Course("stranger", (SENT, Step("Delivered", 0.2, stranger=True), DELIVERED)),
        Course("inactive", refusal=INACTIVE),
        Course("bad-address", refusal=Refusal(422, 300, "Invalid 'To' address.")),
        Course("sender-rejected", refusal=Refusal(422, 400, "Sender Signature not found.")),
        Course("suspended", refusal=Refusal(422, 405, "Not allowed to send: no credits left.")),
        Course("denied", refusal=DENIED),
        Course("rate-limited", refusal=LIMITED),
        Course("greylist", refusal=Refusal(429, 429, "Too many requests.", 1, times=1)),
    )
}
"""By the local part up to a `+`; anything else is `deliver`."""

BOUNCES: Final = {
    "HardBounce": 1,
    "Transient": 2,
    "Unsubscribe": 16,
    "AddressChange": 128,
    "DnsError": 256,
    "SpamNotification": 512,
    "SoftBounce": 4096,
    "VirusNotification": 8192,
    "ChallengeVerification": 16384,
    "BadEmailAddress": 100000,
    "SpamComplaint": 100001,
    "ManuallyDeactivated": 100002,
    "Blocked": 100006,
    "SMTPApiError": 100007,
    "DMARCPolicy": 100009,
    "NotYetInvented": 100999,
}
"""Type and TypeCode of what the bounce API lists; the last is of no API yet."""

DEACTIVATING: Final = frozenset({"HardBounce", "BadEmailAddress", "SpamComplaint"})
"""After one of these the address is inactive, and the next message to it is refused."""

EVENT_TYPES: Final = {
    "Delivered": "Delivered",
    "Transient": "Transient",
    "SpamComplaint": "SpamComplaint",
    "SubscriptionChange": "SubscriptionChanged",
    "Open": "Opened",
}

Document = dict[str, Any]


def stamp(at: datetime) -> str:
    """A time as Postmark writes it, with seven digits after the second."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}0Z"


def bounce(message: Message, event: Event) -> Document:
    """One entry of the bounce list, which is also the webhook without its metadata."""
    word, inactive = event.step.word, event.step.word in DEACTIVATING
    return {
        "RecordType": "SpamComplaint" if word == "SpamComplaint" else "Bounce",
        "ID": event.number,
        "Type": word,
        "TypeCode": BOUNCES[word],
        "Name": word,
        "Tag": message.given.get("Tag"),
        "MessageID": message.identity,
        "ServerID": SERVER_ID,
        "MessageStream": _stream(message),
        "Description": f"The message met a {word}.",
        "Details": event.step.note,
        "Email": message.recipient,
        "From": message.given["From"],
        "BouncedAt": stamp(event.at),
        "DumpAvailable": False,
        "Inactive": inactive,
        "CanActivate": inactive and word != "SpamComplaint",
        "Subject": message.given.get("Subject"),
    }


def webhook(message: Message, event: Event) -> Document | None:
    """The document that is posted about an event; None for what has no webhook."""
    word = event.step.word
    metadata: Document = {"Metadata": message.given.get("Metadata") or {}}
    if word in BOUNCES:
        return bounce(message, event) | metadata
    common = {
        "ServerID": SERVER_ID,
        "MessageStream": _stream(message),
        "MessageID": message.identity,
        "Recipient": message.recipient,
        "Tag": message.given.get("Tag"),
        **metadata,
    }
    at, note = stamp(event.at), event.step.note
    known: dict[str, Document] = {
        "Delivered": {"RecordType": "Delivery", "DeliveredAt": at, "Details": note},
        "Open": {"RecordType": "Open", "ReceivedAt": at, "FirstOpen": True},
        "SubscriptionChange": {
            "RecordType": "SubscriptionChange",
            "ChangedAt": at,
            "Origin": "Recipient",
            "SuppressSending": True,
            "SuppressionReason": "ManualSuppression",
        },
    }
    return known[word] | common if word in known else None


def listed(message: Message) -> Document:
    """One message as a search shows it."""
    given = message.given
    return {
        "Tag": given.get("Tag"),
        "MessageID": message.identity,
        "MessageStream": _stream(message),
        "To": [{"Email": message.recipient, "Name": None}],
        "Cc": [],
        "Bcc": [],
        "Recipients": [message.recipient],
        "ReceivedAt": stamp(message.at),
        "From": given["From"],
        "Subject": given.get("Subject"),
        "Attachments": [],
        "Status": "Sent" if message.events else "Queued",
        "TrackOpens": bool(given.get("TrackOpens")),
        "TrackLinks": given.get("TrackLinks", "None"),
        "Metadata": given.get("Metadata") or {},
        "Sandboxed": False,
    }


def detailed(message: Message) -> Document:
    """One message with its bodies and its events."""
    happened = [_message_event(message, e) for e in message.events if e.step.word != "Sent"]
    bodies = {name: message.given.get(name) for name in ("TextBody", "HtmlBody")}
    return listed(message) | bodies | {"Body": "", "MessageEvents": happened}


def _message_event(message: Message, event: Event) -> Document:
    word, note = event.step.word, event.step.note
    kind = EVENT_TYPES.get(word, "Bounced")
    details = (
        {"Summary": note, "BounceID": str(event.number)}
        if kind == "Bounced"
        else {"DeliveryMessage": note, "DestinationServer": "mx.example.test"}
    )
    at = stamp(event.at)
    return {"Recipient": message.recipient, "Type": kind, "ReceivedAt": at, "Details": details}


def _stream(message: Message) -> str:
    return str(message.given.get("MessageStream") or "outbound")
