"""Resend's words: the courses an address can ask for, and the shapes of its documents.

From Resend's API description and documentation (emails, webhooks, errors, idempotency keys).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from peers.courses import Course, Refusal, Step, endings
from peers.outbox import Event, Message

SENT: Final = Step("sent", told=0)
DELIVERED: Final = Step("delivered", 0.3)
DELAYED: Final = Step("delivery_delayed", 0.2)
UNTOLD: Final = (SENT, Step("delivered", 0.3, told=0))
NORMAL: Final = (SENT, DELIVERED)

ERRORS: Final = {
    1: "invalid_api_key",
    2: "restricted_api_key",
    3: "rate_limit_exceeded",
    4: "daily_quota_exceeded",
    5: "validation_error",
    6: "invalid_idempotency_key",
    7: "invalid_idempotent_request",
    8: "concurrent_idempotent_requests",
    9: "not_found",
    10: "invalid_from_address",
    11: "security_error",
    12: "missing_required_field",
}
"""Error names by a number of our own: a refusal's code is a number here."""
NUMBER_OF: Final = {name: number for number, name in ERRORS.items()}


def refusal(
    status: int,
    name: str,
    message: str,
    *,
    retry_after_s: int | None = None,
    times: int | None = None,
) -> Refusal:
    """A no in Resend's words."""
    return Refusal(status, NUMBER_OF[name], message, retry_after_s, times)


DENIED: Final = refusal(403, "invalid_api_key", "API key is invalid")
UNREADABLE: Final = refusal(
    401, "restricted_api_key", "This API key is restricted to only send emails"
)
LIMITED: Final = refusal(429, "rate_limit_exceeded", "Too many requests.", retry_after_s=2)
KEY_USED: Final = refusal(
    409, "invalid_idempotent_request", "Same idempotency key used with a different payload."
)
KEY_IN_USE: Final = refusal(
    409, "concurrent_idempotent_requests", "Same idempotency key used while it is in progress."
)

BOUNCES: Final = {
    "bounce-hard": ("Permanent", "NoEmail", "550 5.1.1 No such mailbox here"),
    "mailbox-full": ("Transient", "MailboxFull", "552 5.2.2 Mailbox full"),
    "bounce-general": ("Permanent", "General", "554 5.7.1 Refused by policy"),
    "spam-notification": ("Transient", "ContentRejected", "554 5.6.0 Content refused"),
    "dns-error": ("Transient", "General", "no mail exchanger"),
}


def _bounced(name: str) -> Course:
    return Course(name, (SENT, Step("bounced", 0.3, note=name)))


COURSES: Final = {
    course.name: course
    for course in (
        *endings(NORMAL, UNTOLD).values(),
        Course("deliver", NORMAL),
        Course("accept", (SENT,)),
        Course("lost"),
        Course("silent", UNTOLD),
        *(_bounced(name) for name in BOUNCES),
        Course("bounce-soft", (SENT, DELAYED, Step("delivered", 1.0))),
        Course(
            "bounce-after-delivery",
            (SENT, DELIVERED, Step("bounced", 1.5, note="bounce-hard")),
        ),
        Course("complaint", (*NORMAL, Step("complained", 1.0))),
        Course("opened", (*NORMAL, Step("opened", 1.0))),
        Course("failed", (Step("failed", 0.2),)),
        Course("inactive", (Step("suppressed", 0.2),)),
        Course("unmapped", (SENT, Step("brewing", 0.3), DELIVERED)),
        Course("duplicate", (SENT, Step("delivered", 0.3, told=3))),
        Course("reordered", (SENT, Step("delivery_delayed", 0.1, told_late_s=0.8), DELIVERED)),
        Course("late", (SENT, Step("delivered", 0.3, told_late_s=8.0))),
        Course("stranger", (SENT, Step("delivered", 0.2, stranger=True), DELIVERED)),
        Course(
            "bad-address",
            refusal=refusal(422, "validation_error", "Invalid `to` field."),
        ),
        Course("blocked", refusal=refusal(451, "security_error", "We cannot send this email.")),
        Course(
            "sender-rejected",
            refusal=refusal(403, "validation_error", "The domain is not verified."),
        ),
        Course(
            "suspended",
            refusal=refusal(429, "daily_quota_exceeded", "You have reached your daily quota."),
        ),
        Course("denied", refusal=DENIED),
        Course("rate-limited", refusal=LIMITED),
        Course(
            "greylist",
            refusal=refusal(
                429, "rate_limit_exceeded", "Too many requests.", retry_after_s=1, times=1
            ),
        ),
    )
}
"""By the local part up to a `+`; anything else is `deliver`."""

EVENT_WORDS: Final = frozenset(
    {
        "bounced", "canceled", "clicked", "complained", "delivered", "delivery_delayed",
        "failed", "opened", "queued", "scheduled", "sent", "suppressed",
    }
)  # fmt: skip
"""The last events that Resend's description lists."""

Document = dict[str, Any]


def stamp(at: datetime) -> str:
    """A time as Resend's webhooks write it."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def webhook(message: Message, event: Event) -> Document:
    """The document that is posted about an event."""
    word, given = event.step.word, message.given
    data: Document = {
        "email_id": message.identity,
        "created_at": stamp(message.at),
        "from": given["from"],
        "to": [message.recipient],
        "subject": given["subject"],
        "tags": {each["name"]: each["value"] for each in given.get("tags") or []},
    }
    if word == "bounced":
        kind, sub_kind, text = BOUNCES[event.step.note]
        data["bounce"] = {
            "type": kind,
            "subType": sub_kind,
            "message": f"The message bounced: {text}",
            "diagnosticCode": [f"smtp; {text}"],
        }
    if word == "failed":
        data["failed"] = {"reason": "reached_daily_quota"}
    if word == "suppressed":
        data["suppressed"] = {
            "type": "OnAccountSuppressionList",
            "reason": "previous_bounce",
            "message": f"{message.recipient} is on the suppression list",
            "diagnosticCode": [],
        }
    return {"type": f"email.{word}", "created_at": stamp(event.at), "data": data}


def retrieved(message: Message) -> Document:
    """One email as it is read by its id; without its tags, as the description has it."""
    given = message.given
    happened = [event.step.word for event in message.events]
    return {
        "object": "email",
        "id": message.identity,
        "to": [message.recipient],
        "from": given["from"],
        "created_at": f"{message.at:%Y-%m-%d %H:%M:%S.%f}+00",
        "subject": given["subject"],
        "html": given.get("html"),
        "text": given.get("text"),
        "bcc": None,
        "cc": None,
        "reply_to": None,
        "last_event": happened[-1] if happened else "queued",
    }
