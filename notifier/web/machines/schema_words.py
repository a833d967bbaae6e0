"""What each field means that programs send and get: a sentence for `/openapi.json`.

By the name of the field, or by object and field where a name means different things.
"""

from __future__ import annotations

from typing import Final

FIELDS: Final[dict[str, str]] = {
    # what is sent
    "event_id": "The business action; stable over the sender's retries, compared byte for byte.",
    "idempotency_key": "The logical command; the event_id where it is left out.",
    "reset_request_id": "The auth service's reset request; it has one notice.",
    "account_id": "Whose password is reset; no address.",
    "ticket_id": "The help desk's ticket.",
    "requested_at": "When the reset was asked for; at most 5 minutes ahead of our clock.",
    "expires_at": "When the link dies; no message starts later, whatever else is so.",
    "template": "The text by id and revision; password-reset revision 1 comes with the product.",
    "template.id": "The template.",
    "template.revision": "Its revision, as a string.",
    "locale": "BCP 47. One that is malformed or that the template does not have is no fault: the "
    "template's own is used, and the trail says so.",
    "policy": "What was decided about the channels, and on what grounds.",
    "mode": "The channels that may be used, and in which order; in a status it is empty once the "
    "event's details were erased.",
    "reason_code": "Why the reset was asked for; parallel is permitted by it.",
    "decision_id": "The decision by its id where it was made.",
    "digest": "A digest of the decision, as whoever made it has it.",
    "inputs": "The facts that the decision rests on.",
    "email_consent": "Whether the person has agreed to emails.",
    "sms_consent": "Whether the person has agreed to texts.",
    "region": "Where the number is, as an ISO 3166 country code.",
    "destinations": "Where to send. A member that is left out is learnt from the link's answer, "
    "which is newer and rules where both are there; none is kept.",
    "email": "An address; null says there is none. One that is malformed suppresses its channel.",
    "sms": "A number in E.164; null says there is none. A malformed one suppresses its channel.",
    "supersedes_earlier": "Cancel the open notices of the same account with an earlier "
    "requested_at; an older event that comes later is admitted as canceled.",
    "correlation_id": "A trace of the sender's; else the trace id of the header traceparent. Not "
    "part of the content that a repeat is recognised by.",
    # a notice
    "notification_id": "The notice.",
    "notice_id": "The notice.",
    "status": "The notice's state at this answer: it can be suppressed or expired, and then "
    "nothing is sent.",
    "status_url": "Where its status is asked for, with a token of the scope status.",
    "stop_at": "The latest time at which a message may start, over the channels that may be "
    "used; null when none may.",
    "state": "Where it stands.",
    "support_word": "The strongest thing that may have reached the person, in one word.",
    "headline": "What happened, as a person reads it.",
    "customer_action": "What to tell the customer.",
    "remaining_s": "Validity left, in seconds; 0 after expiry.",
    "on_hold": "Whether a halt holds it back now.",
    "policy_revision": "The policy's revision that it was admitted under.",
    "basis": "What decided the channels.",
    "reasons": "The words that decided each channel at admission.",
    "deliveries": "One job for each channel.",
    "channel": "The channel; null in a row about the notice as a whole.",
    "reason": "Why it is so, in a word of a closed list.",
    "next_permitted": "What may be done next with it, as a person reads it.",
    "provider": "Who carries it, by name; null where nobody does.",
    "provider_message_id": "The provider's id of the message; null while it is not known.",
    "destination_mask": "Where it goes, masked; null while it is not known.",
    "attempts": "Every external send that was begun, oldest first.",
    "number": "Counted from 1 within the delivery.",
    "class": "first, or retry- and how many were before it.",
    "reference": "Our own id of the call, as the provider was given it.",
    "started_at": "When the call was begun.",
    "finished_at": "When its outcome was known; null while it is not.",
    "outcome": "What came of it; null while the call may still run. Unknown: the message may "
    "have left, and is not sent again on a guess.",
    "attempt.reason": "Why it ended so: a reason, or the provider's refusal in a closed word.",
    # the trail
    "transitions": "Rows of the trail in order.",
    "next": "The sequence to ask after for what follows; null at the end.",
    "seq": "Counted from 1 within the notice, without a gap.",
    "recorded_at": "When it was written, by the database's clock.",
    "occurred_at": "When it happened, where a provider says so; else when it was written.",
    "attempt": "The number of the attempt it is about; null where it is about none.",
    "actor": "Who brought it: service, provider or operator, with a name behind a colon; "
    "operator:token: and a name is a program with an API token.",
    "from_state": "The delivery's state before; null for the first row, or a fact alone.",
    "to_state": "The delivery's state after; null for a fact alone.",
    "detail": "What went wrong or differs, in a closed word; null where there is none.",
    "provider_ref": "The provider's id, or our reference, where the row is about one.",
    "receipt_id": "The provider's report that brought it; null for all others.",
    "remaining_us": "Validity left when it was written, in microseconds; negative after expiry.",
    "template_revision": "The template as id@revision.",
    "evidence": "A JSON object written as a string, because its very characters are under the "
    "hash: parse it to read it, leave it alone to check the hash. Null where there is none.",
    "prev_hash": "The hash of the row before, in hex; of the first, SHA-256 of the notice's id.",
    "hash": "SHA-256 over prev_hash and all other fields, in hex; docs/reference/trail-export.md "
    "has the rule.",
    # links, which the auth service is asked for
    "purpose": "send: a link is about to be sent. look_up: the destination alone is needed.",
    "link.reset_request_id": "The reset request of the event.",
    "link.event_id": "The event that asked for the notice.",
    "link.channel": "Where the message would go.",
    "reset_url": "The link, https (http on loopback alone), of at most 2048 plain characters; the "
    "same for the same request while it lives. It is used and forgotten.",
    "link.destination": "An address, or a number in E.164; newer than the event's, so it rules.",
    "link.expires_at": "When the link dies, where that is earlier than the event said; a later "
    "time changes nothing.",
    "name": "The person's, for the greeting; what is no text is left out.",
    "link.reason": "Why there is none, in a word of a closed list.",
    # the rest
    "cancel.event_id": "The event of the address again, so that the signature covers it.",
    "cancel.reason": "Why the reset request is over.",
    "canceled": "The channels that this stopped before anything was sent.",
    "may_have_left": "The channels on which a message was begun: it may arrive all the same, and "
    "nothing calls it back.",
    "notices": "The notices that the ticket is linked to, newest first; none for an unknown one.",
    "live": "That the process answers.",
    "ready": "Whether all parts are well.",
    "parts": "Every part that was looked at.",
    "part": "The part, by name.",
    "ok": "Whether it is well.",
    "part.detail": "What is wrong with it, or how old its last run is.",
    "type": "The problem by its code, as a URI.",
    "title": "What the code means.",
    "problem.detail": "What to do about it; never a value of the request.",
    "problem.status": "The answer's status.",
    "code": "The word for a program.",
    "request_id": "This request, as it stands in the log and in X-Request-Id.",
    "errors": "Each fault of a request that is not as agreed; 422 alone has it.",
    "pointer": "Where in the body (RFC 6901); empty for the body as a whole or nothing in it.",
    "parameter": "The parameter of the address at fault.",
    "header": "The header at fault.",
    "limit": "What would have been taken, in seconds.",
    "fault.detail": "What would be taken instead.",
}


def sentence_of(of: str, name: str) -> str:
    """What the field `name` of the object `of` means. KeyError where nobody wrote it down."""
    return FIELDS.get(f"{of}.{name}") or FIELDS[name]
