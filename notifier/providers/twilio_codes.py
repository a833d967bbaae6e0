"""Twilio's words: message statuses and error codes, in our vocabulary.

From Twilio's error dictionary. The same number can come as the answer to a submit and as the
reason of a failed message; `about` only matters for the first. What depends on the recipient
never stops the provider for all, even where an operator could change it (a region that is not
enabled, a number that a trial account may not text).
"""

from __future__ import annotations

from typing import Final

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.providers.http_words import About, Word

_D = Detail
_S = ReceiptStatus

NO_SUCH_THING: Final = 20404

STATUSES: Final[dict[str, ReceiptStatus]] = {
    "accepted": _S.ACCEPTED,
    "scheduled": _S.ACCEPTED,
    "queued": _S.ACCEPTED,
    "sending": _S.ACCEPTED,
    "sent": _S.ACCEPTED,
    "partially_delivered": _S.ACCEPTED,
    "delivered": _S.DELIVERED,
    "read": _S.DELIVERED,
    "undelivered": _S.FAILED,
    "failed": _S.FAILED,
    "canceled": _S.FAILED,
}

_ABOUT_MESSAGE: Final[dict[int, Detail]] = {
    21211: _D.INVALID_DESTINATION,
    21217: _D.INVALID_DESTINATION,
    21266: _D.INVALID_DESTINATION,
    21421: _D.INVALID_DESTINATION,
    21604: _D.INVALID_DESTINATION,
    21614: _D.INVALID_DESTINATION,
    21635: _D.INVALID_DESTINATION,
    30005: _D.INVALID_DESTINATION,
    30006: _D.INVALID_DESTINATION,
    21610: _D.UNSUBSCRIBED,
    21608: _D.BLOCKED,
    30004: _D.BLOCKED,
    30450: _D.BLOCKED,
    30453: _D.BLOCKED,
    21612: _D.CARRIER_REJECTED,
    30008: _D.CARRIER_REJECTED,
    21408: _D.SENDER_REJECTED,
    30024: _D.SENDER_REJECTED,
    30040: _D.SENDER_REJECTED,
    21602: _D.CONTENT_REJECTED,
    21617: _D.CONTENT_REJECTED,
    21619: _D.CONTENT_REJECTED,
    30007: _D.CONTENT_REJECTED,
    30019: _D.CONTENT_REJECTED,
    30038: _D.CONTENT_REJECTED,
    30003: _D.UNREACHABLE,
    30017: _D.UNREACHABLE,
    30036: _D.EXPIRED_AT_PROVIDER,
}

_ABOUT_US: Final[dict[int, Detail]] = {
    20003: _D.AUTH_ERROR,
    20004: _D.AUTH_ERROR,
    20006: _D.AUTH_ERROR,
    20008: _D.AUTH_ERROR,
    20404: _D.AUTH_ERROR,
    20005: _D.ACCOUNT_SUSPENDED,
    30002: _D.ACCOUNT_SUSPENDED,
    30037: _D.ACCOUNT_SUSPENDED,
    20429: _D.RATE_LIMITED,
    14107: _D.RATE_LIMITED,
    21611: _D.RATE_LIMITED,
    30001: _D.RATE_LIMITED,
    30022: _D.RATE_LIMITED,
    30023: _D.RATE_LIMITED,
    21212: _D.SENDER_REJECTED,
    21603: _D.SENDER_REJECTED,
    21606: _D.SENDER_REJECTED,
    21659: _D.SENDER_REJECTED,
    21660: _D.SENDER_REJECTED,
    21661: _D.SENDER_REJECTED,
    21701: _D.SENDER_REJECTED,
    21703: _D.SENDER_REJECTED,
    21704: _D.SENDER_REJECTED,
    21705: _D.SENDER_REJECTED,
    30032: _D.SENDER_REJECTED,
    30033: _D.SENDER_REJECTED,
    30034: _D.SENDER_REJECTED,
    21609: _D.PROVIDER_ERROR,
}

_ABOUT_MOMENT: Final[dict[int, Detail]] = {
    21624: _D.PROVIDER_ERROR,
    30045: _D.PROVIDER_ERROR,
    90007: _D.PROVIDER_ERROR,
    30410: _D.PROVIDER_ERROR,
    30500: _D.PROVIDER_ERROR,
}
"""The first three refuse a validity, and the next attempt comes with another."""

ERRORS: Final[dict[int, Word]] = (
    {number: Word(detail) for number, detail in _ABOUT_MESSAGE.items()}
    | {number: Word(detail, About.US) for number, detail in _ABOUT_US.items()}
    | {number: Word(detail, About.MOMENT) for number, detail in _ABOUT_MOMENT.items()}
)


def submit_error(status: int, error: int) -> Word:
    """What a refused submit says; an unlisted code is judged by the status beside it."""
    known = ERRORS.get(error)
    if known is not None:
        return known
    if status in (401, 403):
        return Word(_D.AUTH_ERROR, About.US)
    if status == 402:
        return Word(_D.ACCOUNT_SUSPENDED, About.US)
    if status == 429:
        return Word(_D.RATE_LIMITED, About.US)
    return Word(_D.UNCLASSIFIED)


def meaning(status: str | None, error: str | None) -> tuple[ReceiptStatus, Detail | None]:
    """What a message's status means, with the reason of a failure."""
    found = STATUSES.get(status or "")
    if found is None:
        return _S.UNMAPPED, _D.UNCLASSIFIED
    if found is not _S.FAILED:
        return found, None
    if status == "canceled":
        return found, _D.CANCELLED
    known = ERRORS.get(int(error)) if error else None
    return found, known.detail if known else _D.UNCLASSIFIED
