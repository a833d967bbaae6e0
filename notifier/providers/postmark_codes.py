"""Postmark's words: API error codes, statuses, bounce types and records, in our vocabulary.

From Postmark's API reference (error codes, bounce types, message events, webhooks). A soft
bounce and a name that does not resolve are soft failures: Postmark itself may still report
the message as delivered, so they leave the delivery where it stands.
"""

from __future__ import annotations

import re
from typing import Final

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.providers.http_words import About, Word

_D = Detail
_S = ReceiptStatus
_US = About.US

MAINTENANCE: Final = 100
INVALID_REQUEST: Final = 300
RATE_LIMITED: Final = 429
NO_SUCH_MESSAGE: Final = 701

API_ERRORS: Final[dict[int, Word]] = {
    10: Word(_D.AUTH_ERROR, _US),
    11: Word(_D.AUTH_ERROR, _US),
    100: Word(_D.PROVIDER_ERROR, _US),
    400: Word(_D.SENDER_REJECTED, _US),
    401: Word(_D.SENDER_REJECTED, _US),
    402: Word(_D.CONTENT_REJECTED),
    403: Word(_D.CONTENT_REJECTED),
    405: Word(_D.ACCOUNT_SUSPENDED, _US),
    406: Word(_D.BLOCKED),
    409: Word(_D.PROVIDER_ERROR, _US),
    411: Word(_D.CONTENT_REJECTED),
    412: Word(_D.ACCOUNT_SUSPENDED, _US),
    413: Word(_D.ACCOUNT_SUSPENDED, _US),
    429: Word(_D.RATE_LIMITED, _US),
    1226: Word(_D.SENDER_REJECTED, _US),
    1235: Word(_D.SENDER_REJECTED, _US),
}
"""Without 300, whose meaning is in its text alone."""

STATUSES: Final[dict[str, tuple[ReceiptStatus, Detail | None]]] = {
    "Queued": (_S.ACCEPTED, None),
    "Sent": (_S.ACCEPTED, None),
    "Processed": (_S.ACCEPTED, None),
    "Scheduled": (_S.ACCEPTED, None),
    "Blocked": (_S.FAILED, _D.BLOCKED),
    "Failed": (_S.FAILED, _D.UNCLASSIFIED),
}

EVENTS: Final[dict[str, tuple[ReceiptStatus, Detail | None]]] = {
    "Delivered": (_S.DELIVERED, None),
    "Transient": (_S.DELAYED, _D.UNREACHABLE),
    "Bounced": (_S.FAILED, _D.UNCLASSIFIED),
    "SpamComplaint": (_S.INFORMATION, _D.UNSUBSCRIBED),
    "SubscriptionChanged": (_S.INFORMATION, _D.UNSUBSCRIBED),
    "Unsubscribed": (_S.INFORMATION, _D.UNSUBSCRIBED),
    "Opened": (_S.INFORMATION, None),
    "LinkClicked": (_S.INFORMATION, None),
}
"""The events of a message's details. A bounce's kind is told by the bounce itself."""

RECORDS: Final[dict[str, tuple[ReceiptStatus, Detail | None, str]]] = {
    "Delivery": (_S.DELIVERED, None, "DeliveredAt"),
    "SpamComplaint": (_S.INFORMATION, _D.UNSUBSCRIBED, "BouncedAt"),
    "SubscriptionChange": (_S.INFORMATION, _D.UNSUBSCRIBED, "ChangedAt"),
    "Open": (_S.INFORMATION, None, "ReceivedAt"),
    "Click": (_S.INFORMATION, None, "ReceivedAt"),
}
"""The record types of callbacks but the bounce, with the member that tells when."""

BOUNCES: Final[dict[str, tuple[ReceiptStatus, Detail | None]]] = {
    "HardBounce": (_S.FAILED, _D.INVALID_DESTINATION),
    "BadEmailAddress": (_S.FAILED, _D.INVALID_DESTINATION),
    "AddressChange": (_S.FAILED, _D.INVALID_DESTINATION),
    "Blocked": (_S.FAILED, _D.BLOCKED),
    "SpamNotification": (_S.FAILED, _D.CONTENT_REJECTED),
    "VirusNotification": (_S.FAILED, _D.CONTENT_REJECTED),
    "ManuallyDeactivated": (_S.FAILED, _D.UNSUBSCRIBED),
    "DMARCPolicy": (_S.FAILED, _D.SENDER_REJECTED),
    "SMTPApiError": (_S.FAILED, _D.PROVIDER_ERROR),
    "TemplateRenderingFailed": (_S.FAILED, _D.PROVIDER_ERROR),
    "SoftBounce": (_S.DELAYED, _D.UNREACHABLE),
    "Transient": (_S.DELAYED, _D.UNREACHABLE),
    "DnsError": (_S.DELAYED, _D.UNREACHABLE),
    "ChallengeVerification": (_S.DELAYED, _D.BLOCKED),
    "SpamComplaint": (_S.INFORMATION, _D.UNSUBSCRIBED),
    "Unsubscribe": (_S.INFORMATION, _D.UNSUBSCRIBED),
    "Subscribe": (_S.INFORMATION, None),
    "AutoResponder": (_S.INFORMATION, None),
    "OpenRelayTest": (_S.INFORMATION, None),
    "Unconfirmed": (_S.INFORMATION, None),
    "InboundError": (_S.INFORMATION, None),
}
"""Without `Unknown`, by which Postmark says that it cannot tell what came back."""

_ABOUT_RECIPIENT = re.compile(r"'To'|recipient", re.IGNORECASE)
_ABOUT_SENDER = re.compile(r"'From'|sender", re.IGNORECASE)
_MAILBOX_FULL = re.compile(
    r"\b[45]\.2\.2\b|quota|mailbox (?:is )?full|over ?quota|out of (?:disk )?(?:space|storage)",
    re.IGNORECASE,
)


def api_error(status: int, error: int, text: str) -> Word:
    """What an error code says; its text is read for code 300 alone and goes no further."""
    if status == 401:
        return Word(_D.AUTH_ERROR, _US)
    if status == 429:
        return Word(_D.RATE_LIMITED, _US)
    if error == INVALID_REQUEST:
        return _invalid_request(text)
    known = API_ERRORS.get(error)
    if known is None and status == 403:
        return Word(_D.AUTH_ERROR, _US)
    return known or Word(_D.UNCLASSIFIED)


def bounce(kind: str | None, text: str) -> tuple[ReceiptStatus, Detail | None]:
    """What a bounce of a type means; its text only tells a full mailbox from other soft ones."""
    status, detail = BOUNCES.get(kind or "", (_S.UNMAPPED, _D.UNCLASSIFIED))
    if kind == "SoftBounce" and _MAILBOX_FULL.search(text):
        return status, _D.MAILBOX_FULL
    return status, detail


def _invalid_request(text: str) -> Word:
    if _ABOUT_RECIPIENT.search(text):
        return Word(_D.INVALID_DESTINATION)
    if _ABOUT_SENDER.search(text):
        return Word(_D.SENDER_REJECTED, _US)
    return Word(_D.CONTENT_REJECTED)
