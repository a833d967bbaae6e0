"""Plain words for states and reasons, for somebody who has never seen our vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from notifier.domain import link_faults
from notifier.domain.detail_words import DETAILS
from notifier.domain.reasons import Reason
from notifier.domain.support_story import Left, SupportWord

_R = Reason


class Hue(StrEnum):
    """The colour families; each comes with an icon shape and a word of its own."""

    OK = "ok"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    FAILED = "failed"
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class Badge:
    """How a state is shown: `icon` names a shape of the macro `icon`."""

    word: str
    hue: Hue
    icon: str


WAS_SENT: Final = {
    Left.NEVER: "No, nothing was sent",
    Left.MAYBE: "Perhaps, nobody could confirm it",
    Left.YES: "Yes, not seen to arrive in time",
}
"""Of an expired notice that no late news came of; after such news it is a bare yes."""

STATES: Final = {
    "standby": Badge("in reserve", Hue.CALM, "ring"),
    "queued": Badge("waiting", Hue.WAITING, "clock"),
    "claimed": Badge("picked up", Hue.WAITING, "clock"),
    "attempted": Badge("sending", Hue.WAITING, "arrow"),
    "unknown": Badge("unknown", Hue.UNKNOWN, "question"),
    "accepted": Badge("handed over", Hue.WAITING, "arrow"),
    "delivered": Badge("delivered", Hue.OK, "check"),
    "failed": Badge("failed", Hue.FAILED, "cross"),
    "suppressed": Badge("not sent", Hue.CALM, "minus"),
    "expired": Badge("expired", Hue.FAILED, "hourglass"),
    "canceled": Badge("canceled", Hue.CALM, "slash"),
    "email_pending": Badge("email pending", Hue.WAITING, "clock"),
    "text_pending": Badge("text pending", Hue.WAITING, "clock"),
    "complete": Badge("complete", Hue.OK, "check"),
}

WORDS: Final = {
    SupportWord.DELIVERED: Badge("Delivered", Hue.OK, "check"),
    SupportWord.ACCEPTED: Badge("Handed over", Hue.WAITING, "arrow"),
    SupportWord.UNKNOWN: Badge("Unknown", Hue.UNKNOWN, "question"),
    SupportWord.ON_HOLD: Badge("On hold", Hue.WAITING, "pause"),
    SupportWord.QUEUED: Badge("Waiting", Hue.WAITING, "clock"),
    SupportWord.CANCELED: Badge("Canceled", Hue.CALM, "slash"),
    SupportWord.EXPIRED: Badge("Expired", Hue.FAILED, "hourglass"),
    SupportWord.FAILED: Badge("Failed", Hue.FAILED, "cross"),
    SupportWord.NOT_SENT: Badge("Not sent", Hue.CALM, "minus"),
}

HANDED_OVER: Final = Badge("Handed over", Hue.OK, "check")
"""Accepted by a mail system that never reports more: as good as it gets."""

NOUNS: Final = {"email": "email", "sms": "text message", None: "notice"}

SHORT: Final = {"email": "email", "sms": "text"}
"""For rows of a list."""

SENTENCES: Final = {
    _R.EVENT_ADMITTED: "The reset event arrived and was stored.",
    _R.PRIMARY_SELECTED: "The {noun} was chosen to reach the customer.",
    _R.FALLBACK_RESERVED: "The {noun} was held in reserve, because the email goes first.",
    _R.EXPIRED_ON_ARRIVAL: "The event had already expired when it arrived.",
    _R.NO_DESTINATION: "No {noun}: there is no destination for it.",
    _R.INVALID_DESTINATION: "No {noun}: the destination cannot be used.",
    _R.NO_CONSENT: "No {noun}: the customer has not agreed to it.",
    _R.REGION_NOT_PERMITTED: "No {noun}: the region is not permitted.",
    _R.EXCLUDED_BY_POLICY: "No {noun}: this request does not use it.",
    _R.LIFE_TOO_SHORT_FOR_FALLBACK: "No {noun}: the request is too short-lived for a second one.",
    _R.ACCOUNT_CAP_REACHED: "No {noun}: the account has had too many in the past hour.",
    _R.FALLBACK_EMAIL_FAILED: "The {noun} was queued, because the email failed.",
    _R.FALLBACK_EMAIL_SUPPRESSED: "The {noun} was queued, because no email can be sent.",
    _R.FALLBACK_EMAIL_EXPIRED: "The {noun} was queued, because the email ran out of time.",
    _R.FALLBACK_EMAIL_NOT_SENT: "The {noun} was queued, because the email had not been sent yet.",
    _R.FALLBACK_EMAIL_UNKNOWN: (
        "The {noun} was queued, because nobody knows whether the email left."
    ),
    _R.FALLBACK_EMAIL_UNCONFIRMED: (
        "The {noun} was queued, because nothing confirmed that the email arrived."
    ),
    _R.FALLBACK_GOES_FIRST: "The {noun} was put aside, so that the text message goes first.",
    _R.FALLBACK_HELD_BY_POLICY: "The {noun} was not sent, because the policy says to hold it.",
    _R.TEXT_ENDED_IN_TIME: (
        "The {noun} came back, because the text message ended early without success."
    ),
    _R.PRIMARY_DELIVERED: "The {noun} was not needed, because the email arrived.",
    _R.PRIMARY_ACCEPTED_FINAL: "The {noun} was not needed, because the mail system took the email.",
    _R.SUPERSEDED_BY_FALLBACK: (
        "The {noun} was not needed any more, because the text message took over."
    ),
    _R.CLAIMED: "A worker picked the {noun} up.",
    _R.LEASE_EXPIRED: "The worker fell silent before sending; the {noun} waits again.",
    _R.LINK_UNAVAILABLE: "The auth service gave no link; the {noun} waits and asks again.",
    _R.HALTED: "Sending is stopped by an operator; the {noun} waits.",
    _R.PROVIDER_PAUSED: "The provider is paused; the {noun} waits.",
    _R.SHUTDOWN: "The worker shut down before sending; the {noun} waits again.",
    _R.NOT_PERMITTED: "No {noun}: the account does not permit it.",
    _R.RENDER_FAILED: "The {noun} could not be written: its template is at fault.",
    _R.INTERNAL_FAULT: "The {noun} was dropped before sending: a fault of ours.",
    _R.ATTEMPT_STARTED: "Sending the {noun} began.",
    _R.REPLAY_STARTED: "The same {noun} was handed over again under the same key.",
    _R.PROVIDER_ACCEPTED: "The provider took the {noun}.",
    _R.NOT_ACCEPTED: "The provider did not take the {noun}; it is tried again.",
    _R.NOT_ACCEPTED_NO_TIME_LEFT: "The provider did not take the {noun}, and time has run out.",
    _R.REFUSED: "The provider refused the {noun} for good.",
    _R.TIMEOUT: "No answer came in time: nobody knows whether the {noun} left.",
    _R.CONNECTION_LOST: "The line broke during the call: nobody knows whether the {noun} left.",
    _R.GATEWAY_ERROR: "A gateway answered instead: nobody knows whether the {noun} left.",
    _R.UNREADABLE_ANSWER: "The answer made no sense: nobody knows whether the {noun} left.",
    _R.WORKER_LOST: "The worker was lost during the call: nobody knows whether the {noun} left.",
    _R.RECEIPT: "The provider reported on the {noun}.",
    _R.RECONCILED: "We asked the provider what became of the {noun}, and it knew.",
    _R.LATE_ANSWER: "The provider's answer about the {noun} came late.",
    _R.EARLIER_ATTEMPT_FOUND: "An earlier attempt at the {noun} turned out to have got through.",
    _R.RECONCILED_ABSENT: "The provider is sure it never got the {noun}; it is tried again.",
    _R.ABSENT_NO_TIME_LEFT: "The provider never got the {noun}, and time has run out.",
    _R.BOUNCED_AFTER_DELIVERY: "The {noun} came back after it had been delivered.",
    _R.TOO_CLOSE_TO_EXPIRY: "Too little time was left to send the {noun}.",
    _R.WINDOW_CLOSED: "The request expired before the {noun} was sent.",
    _R.UNCONFIRMED_AT_EXPIRY: "The request expired without news of the {noun}.",
    _R.UNKNOWN_AT_EXPIRY: "The request expired, and nobody knows whether the {noun} left.",
    _R.RESET_USED: "The {noun} was stopped: the reset had been used.",
    _R.RESET_SUPERSEDED: "The {noun} was stopped: a newer request replaced this one.",
    _R.RESET_REVOKED: "The {noun} was stopped: the request was withdrawn.",
    _R.OPERATOR_STOP: "The {noun} was stopped by an operator.",
    _R.CANCELED_BEFORE_RETRY: "The {noun} had not left and is not tried again: canceled.",
    _R.EVENT_CONFLICT: "Another event came under the same id, with other content; it was refused.",
    _R.LOCALE_FELL_BACK: "The language asked for is not there; the template's own was used.",
    _R.DESTINATION_CHANGED: "The auth service gave a newer destination for the {noun}.",
    _R.LIFE_SHORTENED: "The auth service shortened the life of the link.",
    _R.CANCEL_RECORDED: "Whatever had not left was called off.",
    _R.TICKET_LINKED: "A help-desk ticket was linked.",
    _R.FACT_RECEIPT: "The provider reported on the {noun}; that changed nothing.",
    _R.LATE_RECEIPT: "News of the {noun} came after the request had expired.",
    _R.CONTRADICTING_RECEIPT: "The provider contradicted itself about the {noun}.",
    _R.LATE_OUTCOME: "The outcome of the call for the {noun} came late; that changed nothing.",
    _R.UNMAPPED: "The provider used a word about the {noun} that we do not know.",
    _R.FALLBACK_HELD: "The {noun} was held, because the policy says so.",
    _R.FALLBACK_WAS_AVOIDABLE: (
        "The {noun} was not needed after all: the email had arrived before it was queued."
    ),
    _R.REPLAY_AUTHORISED: "Handing the same {noun} over again was permitted.",
    _R.LOOKED_NOT_FOUND: "The provider was asked for the {noun} and found none; no proof yet.",
    _R.LOOK_REQUESTED: "An operator asked to look the {noun} up at once.",
    _R.ANNOTATED: "An operator added evidence about the {noun}; it changes no state.",
}

FAILURES: Final[dict[str, str]] = {
    **DETAILS,
    "unmapped": "a word that we do not know",
    "render_failed": "its template is at fault",
    "internal_fault": "a fault of ours",
    "refused": "refused without a reason",
    "receipt": "failed without a reason",
    "absent_no_time_left": "the provider never got it, and time ran out",
}

HINDRANCES: Final = {
    _R.LINK_UNAVAILABLE: "the auth service gives no link; it is asked again",
    _R.HALTED: "sending is stopped",
    _R.PROVIDER_PAUSED: "the provider is paused",
    _R.NOT_ACCEPTED: "the provider did not take it; it is tried again",
    _R.RECONCILED_ABSENT: "the provider never got it; it is tried again",
    _R.LEASE_EXPIRED: "the worker fell silent before sending; it waits for another",
    _R.WORKER_LOST: "a worker has it and has been silent for longer than it may",
}
"""What keeps open work from going."""

UNKNOWN_WORDS: Final = ("unclassified", "unmapped")
"""Rows of their own: what they hold is ours to learn, and their zero is news too."""

RESULTS: Final = {
    "accepted": "It took it.",
    "delivered": "It was delivered.",
    "failed": "It could not be delivered.",
}
"""Added to the sentences about evidence, which do not say what the evidence is."""

BACK_IN_RESERVE: Final = "The {noun} went back into reserve, because the email arrived."
"""In place of `primary_delivered` where it does not end the delivery."""

FALLBACK_STORY: Final = frozenset(
    each
    for each in Reason
    if each.startswith("fallback_")
    or each in {_R.TEXT_ENDED_IN_TIME, _R.PRIMARY_DELIVERED, _R.PRIMARY_ACCEPTED_FINAL,
                _R.SUPERSEDED_BY_FALLBACK}
)  # fmt: skip
"""The steps that say which of two channels goes, and why."""

_EVIDENCE: Final = {_R.RECEIPT, _R.RECONCILED, _R.LATE_ANSWER}

EXPORTS: Final = {
    "waiting": Badge("in work", Hue.WAITING, "clock"),
    "ready": Badge("ready", Hue.OK, "check"),
    "failed": Badge("failed", Hue.FAILED, "cross"),
    "erased": Badge("erased", Hue.CALM, "minus"),
}
"""What became of a file that somebody asked for."""

ACTORS: Final = {
    "admission": "admission",
    "worker": "worker",
    "service": "service",
    "provider": "provider",
    "operator": "operator",
    "auth-service": "auth service",
}

SOURCES: Final = {
    "all": "All",
    "ours": "Ours",
    "provider": "The provider's",
    "operator": "Operators'",
}
"""Whose news a step of the timeline is."""


def sentence(
    reason: str, channel: str | None, to_state: str | None, detail: str | None = None
) -> str:
    """What happened, in one sentence; a reason of a newer version is shown as it is."""
    if reason not in set(Reason):
        return f"Noted: {reason.replace('_', ' ')}."
    known = Reason(reason)
    text, noun = SENTENCES[known], NOUNS.get(channel, "notice")
    if known is _R.LINK_UNAVAILABLE and (why := link_faults.words_of(detail)):
        return f"{why[0].upper()}{why[1:]}; the {noun} waits and asks again."
    if known is _R.PRIMARY_DELIVERED and to_state == "standby":
        text = BACK_IN_RESERVE
    text = text.format(noun=noun)
    if known in _EVIDENCE and to_state in RESULTS:
        text = f"{text} {RESULTS[to_state]}"
    return text


def looked(times: int, channel: str | None) -> str:
    """One sentence for many looks at a provider."""
    noun = NOUNS.get(channel, "notice")
    return f"The provider was asked for the {noun} {times} times and found none; no proof yet."


def asked_for_a_link(times: int, channel: str | None, detail: str | None) -> str:
    """Many questions to the auth service told as one; `detail` is why the last was in vain."""
    noun = NOUNS.get(channel, "notice")
    told = f"The auth service was asked {times} times for a link and gave none; the {noun} waits."
    why = link_faults.words_of(detail)
    return f"{told} Last: {why}." if why else told


def hindrance(reason: Reason, detail: str | None) -> str:
    """What keeps open work from going; for links, what was wrong with the answer."""
    why = link_faults.words_of(detail) if reason is _R.LINK_UNAVAILABLE else None
    return f"{why}; it is asked again" if why else HINDRANCES[reason]


def badge(state: str) -> Badge:
    """How a state is shown; a state that this version does not know looks unknown."""
    return STATES.get(state, Badge(state.replace("_", " "), Hue.UNKNOWN, "question"))


def failure(word: str) -> str:
    """A reason for a failure in plain words; one that this version does not know as it is."""
    return FAILURES.get(word, word.replace("_", " "))
