"""Why something happened: the closed vocabularies of the trail.

`Reason` stands beside every move. `Detail` is the normalised word for what a provider or
a peer told us; it never replaces a reason, because the same trouble can be final at one
provider and passing at another.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a delivery moved, or what fact was noted without a move."""

    # admission
    PRIMARY_SELECTED = "primary_selected"
    FALLBACK_RESERVED = "fallback_reserved"
    EXPIRED_ON_ARRIVAL = "expired_on_arrival"
    NO_DESTINATION = "no_destination"
    INVALID_DESTINATION = "invalid_destination"
    NO_CONSENT = "no_consent"
    REGION_NOT_PERMITTED = "region_not_permitted"
    EXCLUDED_BY_POLICY = "excluded_by_policy"
    LIFE_TOO_SHORT_FOR_FALLBACK = "life_too_short_for_fallback"
    ACCOUNT_CAP_REACHED = "account_cap_reached"
    # fallback
    FALLBACK_EMAIL_FAILED = "fallback_email_failed"
    FALLBACK_EMAIL_SUPPRESSED = "fallback_email_suppressed"
    FALLBACK_EMAIL_EXPIRED = "fallback_email_expired"
    FALLBACK_EMAIL_NOT_SENT = "fallback_email_not_sent"
    FALLBACK_EMAIL_UNKNOWN = "fallback_email_unknown"
    FALLBACK_EMAIL_UNCONFIRMED = "fallback_email_unconfirmed"
    FALLBACK_GOES_FIRST = "fallback_goes_first"
    FALLBACK_HELD_BY_POLICY = "fallback_held_by_policy"
    TEXT_ENDED_IN_TIME = "text_ended_in_time"
    PRIMARY_DELIVERED = "primary_delivered"
    PRIMARY_ACCEPTED_FINAL = "primary_accepted_final"
    SUPERSEDED_BY_FALLBACK = "superseded_by_fallback"
    # dispatch
    CLAIMED = "claimed"
    LEASE_EXPIRED = "lease_expired"
    LINK_UNAVAILABLE = "link_unavailable"
    HALTED = "halted"
    PROVIDER_PAUSED = "provider_paused"
    SHUTDOWN = "shutdown"
    NOT_PERMITTED = "not_permitted"
    RENDER_FAILED = "render_failed"
    INTERNAL_FAULT = "internal_fault"
    ATTEMPT_STARTED = "attempt_started"
    REPLAY_STARTED = "replay_started"
    # answers
    PROVIDER_ACCEPTED = "provider_accepted"
    NOT_ACCEPTED = "not_accepted"
    NOT_ACCEPTED_NO_TIME_LEFT = "not_accepted_no_time_left"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    GATEWAY_ERROR = "gateway_error"
    UNREADABLE_ANSWER = "unreadable_answer"
    WORKER_LOST = "worker_lost"
    # evidence
    RECEIPT = "receipt"
    RECONCILED = "reconciled"
    LATE_ANSWER = "late_answer"
    EARLIER_ATTEMPT_FOUND = "earlier_attempt_found"
    RECONCILED_ABSENT = "reconciled_absent"
    ABSENT_NO_TIME_LEFT = "absent_no_time_left"
    BOUNCED_AFTER_DELIVERY = "bounced_after_delivery"
    # endings
    TOO_CLOSE_TO_EXPIRY = "too_close_to_expiry"
    WINDOW_CLOSED = "window_closed"
    UNCONFIRMED_AT_EXPIRY = "unconfirmed_at_expiry"
    UNKNOWN_AT_EXPIRY = "unknown_at_expiry"
    RESET_USED = "reset_used"
    RESET_SUPERSEDED = "reset_superseded"
    RESET_REVOKED = "reset_revoked"
    OPERATOR_STOP = "operator_stop"
    CANCELED_BEFORE_RETRY = "canceled_before_retry"
    # facts that move nothing
    EVENT_ADMITTED = "event_admitted"
    EVENT_CONFLICT = "event_conflict"
    LOCALE_FELL_BACK = "locale_fell_back"
    DESTINATION_CHANGED = "destination_changed"
    LIFE_SHORTENED = "life_shortened"
    CANCEL_RECORDED = "cancel_recorded"
    TICKET_LINKED = "ticket_linked"
    FACT_RECEIPT = "fact_receipt"
    LATE_RECEIPT = "late_receipt"
    CONTRADICTING_RECEIPT = "contradicting_receipt"
    LATE_OUTCOME = "late_outcome"
    UNMAPPED = "unmapped"
    FALLBACK_HELD = "fallback_held"
    FALLBACK_WAS_AVOIDABLE = "fallback_was_avoidable"
    REPLAY_AUTHORISED = "replay_authorised"
    LOOKED_NOT_FOUND = "looked_not_found"
    LOOK_REQUESTED = "look_requested"
    ANNOTATED = "annotated"


class Detail(StrEnum):
    """What a provider or a peer told us, in one vocabulary for all of them."""

    INVALID_DESTINATION = "invalid_destination"
    BLOCKED = "blocked"
    UNSUBSCRIBED = "unsubscribed"
    MAILBOX_FULL = "mailbox_full"
    CARRIER_REJECTED = "carrier_rejected"
    RATE_LIMITED = "rate_limited"
    AUTH_ERROR = "auth_error"
    CONTENT_REJECTED = "content_rejected"
    EXPIRED_AT_PROVIDER = "expired_at_provider"
    PROVIDER_ERROR = "provider_error"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    SENDER_REJECTED = "sender_rejected"
    ACCOUNT_SUSPENDED = "account_suspended"
    DUPLICATE = "duplicate"
    CANCELLED = "cancelled"
    UNCLASSIFIED = "unclassified"
