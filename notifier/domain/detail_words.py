"""What a provider's detail means for a person: in words, and for what they can do about it."""

from __future__ import annotations

from typing import Final

from notifier.domain.reasons import Detail

_D = Detail

DETAILS: Final[dict[str, str]] = {
    _D.INVALID_DESTINATION: "the address or number cannot be reached",
    _D.BLOCKED: "the recipient or the provider blocks us",
    _D.UNSUBSCRIBED: "the recipient has opted out",
    _D.MAILBOX_FULL: "the mailbox is full",
    _D.CARRIER_REJECTED: "the carrier rejected it",
    _D.RATE_LIMITED: "we send too fast for the provider",
    _D.AUTH_ERROR: "the provider does not accept our credentials",
    _D.CONTENT_REJECTED: "the provider does not like the content",
    _D.EXPIRED_AT_PROVIDER: "it ran out of time at the provider",
    _D.PROVIDER_ERROR: "the provider is in trouble",
    _D.TIMEOUT: "the provider did not answer in time",
    _D.UNREACHABLE: "the provider cannot be reached",
    _D.SENDER_REJECTED: "the provider does not accept our sender",
    _D.ACCOUNT_SUSPENDED: "our account at the provider is suspended",
    _D.DUPLICATE: "the provider has had it before",
    _D.CANCELLED: "it was cancelled at the provider",
    _D.UNCLASSIFIED: "the outcome is known, the reason is not",
}

BEYOND_THE_CONTACT: Final = frozenset(
    {
        _D.BLOCKED, _D.CARRIER_REJECTED, _D.RATE_LIMITED, _D.AUTH_ERROR, _D.CONTENT_REJECTED,
        _D.PROVIDER_ERROR, _D.TIMEOUT, _D.UNREACHABLE, _D.SENDER_REJECTED, _D.ACCOUNT_SUSPENDED,
    }
)  # fmt: skip
"""Details that a right address or number meets as well: nothing for the customer to correct."""
