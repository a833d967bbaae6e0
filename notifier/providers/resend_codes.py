"""Resend's words: error names, last events and bounces, in our vocabulary.

From Resend's API reference (errors, emails, idempotency keys, webhook events). It knows one
last event for a message, so what can only follow a delivery (opened, clicked, complained) is
evidence of it.
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

KEY_IN_USE: Final = "concurrent_idempotent_requests"
"""A request under this key is still running there: nobody can say yet what becomes of it."""
KEY_USED: Final = "invalid_idempotent_request"
"""A request under this key was taken before, with other content than this one's."""
VALIDATION: Final = "validation_error"
CANNOT_READ: Final = "restricted_api_key"
"""The key may send and nothing else."""

API_ERRORS: Final[dict[str, Word]] = {
    "missing_api_key": Word(_D.AUTH_ERROR, _US),
    "invalid_api_key": Word(_D.AUTH_ERROR, _US),
    CANNOT_READ: Word(_D.AUTH_ERROR, _US),
    "suspended_api_key": Word(_D.ACCOUNT_SUSPENDED, _US),
    "invalid_from_address": Word(_D.SENDER_REJECTED, _US),
    "invalid_access": Word(_D.AUTH_ERROR, _US),
    "invalid_region": Word(_D.SENDER_REJECTED, _US),
    "not_found": Word(_D.PROVIDER_ERROR, _US),
    "method_not_allowed": Word(_D.PROVIDER_ERROR, _US),
    "invalid_idempotency_key": Word(_D.PROVIDER_ERROR),
    "invalid_attachment": Word(_D.CONTENT_REJECTED),
    "invalid_parameter": Word(_D.CONTENT_REJECTED),
    "missing_required_field": Word(_D.CONTENT_REJECTED),
    "missing_required_fields": Word(_D.CONTENT_REJECTED),
    "security_error": Word(_D.BLOCKED),
    "rate_limit_exceeded": Word(_D.RATE_LIMITED, _US),
    "daily_quota_exceeded": Word(_D.ACCOUNT_SUSPENDED, _US),
    "monthly_quota_exceeded": Word(_D.ACCOUNT_SUSPENDED, _US),
}
"""Without `validation_error`, whose meaning is in its status and its text alone."""

EVENTS: Final[dict[str, tuple[ReceiptStatus, Detail | None]]] = {
    "queued": (_S.ACCEPTED, None),
    "scheduled": (_S.ACCEPTED, None),
    "sent": (_S.ACCEPTED, None),
    "delivery_delayed": (_S.DELAYED, _D.UNREACHABLE),
    "delivered": (_S.DELIVERED, None),
    "opened": (_S.DELIVERED, None),
    "clicked": (_S.DELIVERED, None),
    "complained": (_S.DELIVERED, _D.UNSUBSCRIBED),
    "bounced": (_S.FAILED, _D.UNCLASSIFIED),
    "failed": (_S.FAILED, _D.PROVIDER_ERROR),
    "suppressed": (_S.FAILED, _D.BLOCKED),
    "canceled": (_S.FAILED, _D.CANCELLED),
}
"""The last events of a message, which are also what the webhooks of emails are called."""

BOUNCES: Final[dict[str, Detail]] = {
    "NoEmail": _D.INVALID_DESTINATION,
    "MailboxFull": _D.MAILBOX_FULL,
    "MessageTooLarge": _D.CONTENT_REJECTED,
    "ContentRejected": _D.CONTENT_REJECTED,
    "AttachmentRejected": _D.CONTENT_REJECTED,
    "Suppressed": _D.BLOCKED,
    "OnAccountSuppressionList": _D.BLOCKED,
}
"""By sub-type. A general one is told by its type: a passing one could not be reached."""

_ABOUT_RECIPIENT = re.compile(r"`to`|\bto field\b|recipient", re.IGNORECASE)
_ABOUT_SENDER = re.compile(r"`from`|\bfrom field\b|domain|sender", re.IGNORECASE)


def api_error(status: int, name: str, text: str) -> Word | None:
    """What an error's name says; its text is read for `validation_error` alone.

    None where it does not say that nothing was taken.
    """
    if name in (KEY_IN_USE, KEY_USED):
        return None
    if name == VALIDATION:
        return _invalid(status, text)
    known = API_ERRORS.get(name)
    if known is None and status in (401, 403):
        return Word(_D.AUTH_ERROR, _US)
    return known or Word(_D.UNCLASSIFIED)


def bounce(kind: str | None, sub_kind: str | None) -> tuple[ReceiptStatus, Detail]:
    """What a bounce means. Every one of them is the message's end: Resend tries no longer."""
    known = BOUNCES.get(sub_kind or "")
    if known is None and kind == "Transient":
        known = _D.UNREACHABLE
    return _S.FAILED, known or _D.UNCLASSIFIED


def _invalid(status: int, text: str) -> Word:
    """Resend answers 403 where the domain is not verified, or only tests are allowed."""
    if status == 403:
        return Word(_D.SENDER_REJECTED, _US)
    if _ABOUT_RECIPIENT.search(text):
        return Word(_D.INVALID_DESTINATION)
    if _ABOUT_SENDER.search(text):
        return Word(_D.SENDER_REJECTED, _US)
    return Word(_D.CONTENT_REJECTED)
