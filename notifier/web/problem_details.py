"""What the sender of a refused request is told to do, by code: texts of ours, never a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from notifier.domain.event_document import EARLIEST, FUTURE_TOLERANCE
from notifier.domain.object_reader import FieldProblem
from notifier.signatures import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, TOLERANCE_S
from notifier.web.documents import ADMISSION_LIMIT, CALLBACK_LIMIT, MAX_DEPTH, MAX_DIGITS

NOT_AGAIN: Final = "Do not send it again as it is"
_ID: Final = "1 to 128 characters of A-Z a-z 0-9 . _ : -"
_SIGN: Final = (
    f"{ID_HEADER} (at most 256 characters of ASCII), {TIMESTAMP_HEADER} (whole seconds of Unix "
    f"time) and {SIGNATURE_HEADER} (v1, and the base64 of 32 bytes)"
)

DETAILS: Final[Mapping[str, str]] = {
    "bad_request": f"{NOT_AGAIN}: the request line or a header cannot be read, or the body ended "
    "before the length that was announced.",
    "signature_invalid": f"{NOT_AGAIN}: sign exactly the bytes that are sent, with a secret that "
    "is active here.",
    "timestamp_out_of_range": f"Sign it again with the present time: {TIMESTAMP_HEADER} may be at "
    f"most {TOLERANCE_S} seconds from our clock, either way. If that is refused too, set the "
    "sender's clock.",
    "token_invalid": "Send Authorization: Bearer and a token whose SHA-256 stands in "
    "NOTIFIER_API_TOKENS here; asking again with the same one changes nothing.",
    "scope_missing": "Ask with a token that has the scope; asking again with this one changes "
    "nothing.",
    "not_found": f"Look at the address: /openapi.json lists all there are, and an id is {_ID}, "
    "compared byte for byte.",
    "method_not_allowed": "The header Allow lists the methods that this address takes.",
    "event_conflict": f"{NOT_AGAIN}: what was admitted first stands; give another event keys of "
    "its own.",
    "signature_reused": f"{NOT_AGAIN}: sign one cancel for each event, with a webhook-id of its "
    "own, best with the event_id in the body.",
    "body_too_large": f"{NOT_AGAIN}: a body may have {ADMISSION_LIMIT} bytes, a provider's "
    f"callback {CALLBACK_LIMIT} bytes.",
    "media_type_unsupported": f"{NOT_AGAIN}: send Content-Type: application/json, in UTF-8 and "
    "without a Content-Encoding.",
    "validation_failed": f"{NOT_AGAIN}: each entry of errors says where, and what would be taken.",
    "rate_limited": "Send the same again after the seconds in Retry-After.",
    "internal_error": "Send the same again later, a few times; if that changes nothing, name the "
    "request_id to whoever runs this.",
    "not_admitted": "Send the same again, with the same keys, after the seconds in Retry-After.",
    "unavailable": "Send the same again after the seconds in Retry-After.",
}
"""By the code of the problem."""

FAULTS: Final[Mapping[str, str]] = {
    "required": "This field has to be there.",
    "unknown_field": "No such field is known here; leave it out.",
    "not_a_string": "A string is wanted.",
    "not_a_boolean": "True or false is wanted, without quotes.",
    "not_an_id": f"An id is {_ID}.",
    "not_an_rfc3339_time_with_offset": "A time is written as in RFC 3339, with Z or an offset.",
    "not_a_digest": "A digest is 1 to 128 characters of A-Z a-z 0-9 . _ : + / = -.",
    "not_after_request": "The expiry has to be later than requested_at.",
    "in_the_future": "The request may be at most "
    f"{FUTURE_TOLERANCE.total_seconds():.0f} seconds ahead of our clock.",
    "too_long_ago": f"The earliest time that is taken is {EARLIEST:%Y-%m-%dT%H:%M:%SZ}.",
    "life_too_long": "The expiry may be at most {limit:.15g} seconds after requested_at.",
    "unknown_template": "No template has this id and revision here.",
    "unknown_mode": "A mode is email_then_sms, email_only, sms_only or parallel.",
    "unknown_region": "A region is an ISO 3166 country code of two capital letters.",
    "parallel_not_permitted": "The policy permits this mode for the reason codes that it lists.",
    "unknown_reason": "A reason is used, superseded or revoked.",
    "not_the_event_of_the_path": "The event_id has to be the one of the address.",
    "differs_from_header": "The header has to repeat the idempotency_key of the body, or its "
    "event_id where the body has none: it is not signed, so it cannot bring a key of its own. "
    "Leave it out, or put the key into the body.",
    "after_not_a_number": "A whole number is wanted, of at most 15 digits.",
    "limit_not_a_number": "A whole number is wanted, of at most 15 digits.",
    "not_json": "The body has to be one JSON document (RFC 8259).",
    "not_an_object": "A JSON object is wanted.",
    "not_utf8": "The body has to be UTF-8.",
    "byte_order_mark": "The body has to begin without a byte order mark.",
    "duplicate_key": "Each key of an object stands in it once.",
    "nul_character": "No string may hold a NUL.",
    "lone_surrogate": "No string may hold half of a surrogate pair.",
    "number_out_of_range": f"A number has at most {MAX_DIGITS} digits and is finite.",
    "too_deep": f"Objects and lists nest at most {MAX_DEPTH} deep.",
}
"""By the code of one fault of a request."""


def fault(problem: FieldProblem) -> dict[str, object]:
    """One entry of `errors`: where, by which word, and what would be taken instead."""
    entry: dict[str, object] = {"pointer": problem.pointer, "code": problem.code}
    beside = {
        "parameter": problem.parameter,
        "header": problem.header,
        "limit": problem.limit,
    }
    entry |= {name: value for name, value in beside.items() if value is not None}
    return entry | {"detail": FAULTS[problem.code].format(limit=problem.limit)}


def header_unreadable(name: str) -> str:
    """For `signature_invalid`: found before any secret is tried, so it tells of none."""
    return f"The header {name} is missing or cannot be read. A request is signed by {_SIGN}."


def conflict(keys: tuple[str, ...]) -> str | None:
    """For `event_conflict`: `keys` are known here with other content."""
    if not keys:
        return None
    named = " and ".join(filter(None, (", ".join(keys[:-1]), keys[-1])))
    known = f"{named} {'is' if len(keys) == 1 else 'are'} known here with other content"
    return f"{NOT_AGAIN}: {known}. What was admitted first stands; another event has its own keys."


def scope_missing(scope: str) -> str:
    """For `scope_missing`."""
    return f"Ask with a token that has the scope `{scope}`; this one does not."


NO_SUCH_EVENT: Final = "No event of this id is known here; ids are compared byte for byte."
NO_SUCH_NOTICE: Final = (
    "No notice of this id is known here: it is the notification_id of an admission's answer."
)
NOTHING_TO_CANCEL: Final = (
    "No event of this id is known here, so nothing is canceled and nothing is kept of this: if "
    "the event is still on its way, send this cancel again once it was admitted."
)
