"""What a support agent reads about a notice: one word, what happened, what to tell the customer.

The word names the strongest thing that may have reached the person. No wording here ever
says that an account was recovered: "delivered" is a fact about a message and no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from notifier.domain.detail_words import DETAILS
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.domain.support_actions import action
from notifier.domain.support_story import (
    DELAYED,
    DeliveryStory,
    Left,
    NoticeStory,
    SupportWord,
    clock,
    most_left,
    without_link,
)

_S = DeliveryState
_R = Reason


@dataclass(frozen=True, slots=True)
class Wording:
    """What is shown. `left` is the most that may have left over all deliveries."""

    support_word: SupportWord
    headline: str
    customer_action: str
    left: Left


_WORD_OF: Final = {
    _S.DELIVERED: SupportWord.DELIVERED,
    _S.ACCEPTED: SupportWord.ACCEPTED,
    _S.ATTEMPTED: SupportWord.UNKNOWN,
    _S.UNKNOWN: SupportWord.UNKNOWN,
    _S.STANDBY: SupportWord.QUEUED,
    _S.QUEUED: SupportWord.QUEUED,
    _S.CLAIMED: SupportWord.QUEUED,
    _S.CANCELED: SupportWord.CANCELED,
    _S.EXPIRED: SupportWord.EXPIRED,
    _S.FAILED: SupportWord.FAILED,
    _S.SUPPRESSED: SupportWord.NOT_SENT,
}

_NEXT: Final = {
    _S.STANDBY: "Held in reserve: wait for the decision.",
    _S.QUEUED: "One worker may claim it when it is due.",
    _S.CLAIMED: "A worker holds it and goes on; if it stops, the message is queued again.",
    _S.ATTEMPTED: "Wait for the provider's answer; without one the outcome becomes unknown.",
    _S.UNKNOWN: "Reconcile with the provider; do not resend.",
    _S.ACCEPTED: "Wait for the provider's report, where it gives one; do not resend.",
    _S.DELIVERED: "Nothing more to do; only a bounce before expiry could still change it.",
    _S.FAILED: "Nothing more here; tell the customer what they can do.",
    _S.SUPPRESSED: "Nothing more here; the reason says why it was not sent.",
    _S.EXPIRED: "Nothing more here; a new reset request is needed.",
    _S.CANCELED: "Nothing more here; it was stopped.",
}

_WHY: Final = {
    _R.NO_DESTINATION: "no destination is on file",
    _R.INVALID_DESTINATION: "the destination on file cannot be used",
    _R.NO_CONSENT: "the customer has not agreed to be contacted this way",
    _R.NOT_PERMITTED: "the account does not permit it",
    _R.REGION_NOT_PERMITTED: "texts to that country are not permitted",
    _R.EXCLUDED_BY_POLICY: "this channel is not used for this request",
    _R.ACCOUNT_CAP_REACHED: "the account has had too many notices in the past hour",
    _R.LIFE_TOO_SHORT_FOR_FALLBACK: "too little time was left for it",
    _R.RENDER_FAILED: "a fault of ours in its template",
    _R.INTERNAL_FAULT: "a fault of ours",
    _R.RESET_USED: "the link had already been used",
    _R.RESET_SUPERSEDED: "a newer request replaced it",
    _R.RESET_REVOKED: "the request was withdrawn",
    _R.OPERATOR_STOP: "an operator stopped it",
}

_SINCE: Final = {
    _R.RESET_USED: "the link has been used",
    _R.RESET_SUPERSEDED: "a newer request has taken its place",
    _R.RESET_REVOKED: "the request has been withdrawn",
}

_NOUN: Final = {Channel.EMAIL: "email", Channel.SMS: "text message"}


def next_permitted(state: DeliveryState) -> str:
    """What may happen next to a delivery in `state`, as a sentence."""
    return _NEXT[state]


def utc(moment: datetime, now: datetime) -> str:
    """`14:04 UTC`, with the date where it is not the day of `now`."""
    return clock(moment, now, UTC)


def wording(story: NoticeStory) -> Wording:
    """The word, the headline and the customer action for a notice; total over all facts."""
    word = support_word(story)
    told = _strongest(story)
    left = most_left(story)
    return Wording(
        support_word=word,
        headline=_headline(story, word, told, left)
        + _delayed(told)
        + _email_too(story, told)
        + _text_too(story, word)
        + _canceled_too(story, word),
        customer_action=action(story, word, told),
        left=left,
    )


def support_word(story: NoticeStory) -> SupportWord:
    """The strongest of what may have reached the person."""
    told = _strongest(story)
    word = _WORD_OF[told.state] if told else _word_of_nothing(story.state)
    return SupportWord.ON_HOLD if word is SupportWord.QUEUED and story.on_hold else word


def _word_of_nothing(state: NoticeState) -> SupportWord:
    canceled = state is NoticeState.CANCELED
    return SupportWord.CANCELED if canceled else SupportWord.NOT_SENT


_RANK: Final = tuple(SupportWord)


def _strongest(story: NoticeStory) -> DeliveryStory | None:
    """The delivery that the words are about; of two alike the one that is not in reserve."""

    def rank(each: DeliveryStory) -> tuple[int, bool]:
        return _RANK.index(_WORD_OF[each.state]), each.state is _S.STANDBY

    return min(story.deliveries, key=rank, default=None)


def _headline(  # noqa: PLR0911 - one sentence per word
    story: NoticeStory, word: SupportWord, told: DeliveryStory | None, left: Left
) -> str:
    noun = _noun(told)
    match word:
        case SupportWord.DELIVERED:
            seen = _at(told, story)
            return (
                f"The {noun} was delivered{seen}. That says where the message went, "
                "not that the account was recovered."
            )
        case SupportWord.ACCEPTED:
            return f"The {noun} reached the {_system(told)}{_at(told, story)}."
        case SupportWord.UNKNOWN:
            return f"The {noun} may have been sent: the provider has not confirmed it."
        case SupportWord.ON_HOLD:
            return f"The {noun} is waiting, because sending is on hold."
        case SupportWord.QUEUED:
            return f"The {noun} is waiting{_for_what(told)}."
        case SupportWord.CANCELED:
            return f"{_stopped(told)} {_left_sentence(left)}"
        case SupportWord.EXPIRED:
            closes = _closing(story)
            return f"{closes} {_left_sentence(left, without_link=without_link(story))}"
        case SupportWord.FAILED:
            return _failed(story, noun)
        case SupportWord.NOT_SENT:
            return "Nothing was sent" + _reasons(story) + "."


def _failed(story: NoticeStory, noun: str) -> str:
    """What failed, and why where a provider told."""
    failed = [each for each in story.deliveries if each.state is _S.FAILED]
    why = {each.channel: DETAILS[each.failure] for each in failed if each.failure in DETAILS}
    if len(failed) > 1:
        whys = "; ".join(f"{_NOUN[channel]}: {text}" for channel, text in why.items())
        because = f" {whys[0].upper()}{whys[1:]}." if whys else ""
        return f"Neither the email nor the text message could be delivered.{because}"
    because = "".join(f": {text}" for text in why.values())
    return f"The {noun} could not be delivered{because}."


def _email_too(story: NoticeStory, told: DeliveryStory | None) -> str:
    """What became of the email, where the headline is about a text message that got further."""
    email, texted = story.email, told is not None and told.channel is Channel.SMS
    if email is None or not texted or email.state is not _S.FAILED:
        return ""
    if email.reason is _R.BOUNCED_AFTER_DELIVERY:
        return " The email came back after it had been delivered."
    if email.left is Left.NEVER:
        return " The email could not be delivered."
    return " The email bounced."


def _text_too(story: NoticeStory, word: SupportWord) -> str:
    """What became of the text message, where nothing has shown that the email arrived."""
    sms = story.sms
    open_words = {SupportWord.ACCEPTED, SupportWord.UNKNOWN}
    if word not in open_words or sms is None or sms.state is not _S.FAILED:
        return ""
    return " The text message could not be delivered."


def _delayed(told: DeliveryStory | None) -> str:
    """What the provider reported since, where it did not get the message further."""
    if told is None or told.delay is None or told.state not in DELAYED:
        return ""
    was = "is" if told.state is _S.ACCEPTED else "was"
    if told.delay is Detail.MAILBOX_FULL:
        return f" It {was} kept back there, because the mailbox is full."
    return f" It {was} delayed there."


def _canceled_too(story: NoticeStory, word: SupportWord) -> str:
    if word is SupportWord.CANCELED:
        return ""
    if story.ended_by in _SINCE:
        return f" Since then {_SINCE[story.ended_by]}."
    if story.state is NoticeState.CANCELED:
        return " The request has been canceled since, and nothing more is started."
    return ""


def _closing(story: NoticeStory) -> str:
    moment = clock(story.expires_at, story.now, story.zone)
    if story.now >= story.expires_at:
        return f"The request expired at {moment}."
    return f"Too little time is left to send anything: the request expires at {moment}."


def _left_sentence(left: Left, *, without_link: bool = False) -> str:
    match left:
        case Left.NEVER:
            why = ": the auth service gave no link" if without_link else ""
            return f"No message left us{why}."
        case Left.MAYBE:
            return "A message may have left us."
        case Left.YES:
            return "A message had left us, but it was not seen delivered."


def _reasons(story: NoticeStory) -> str:
    whys = [
        f"{_NOUN[each.channel]}, {_WHY[each.reason]}"
        for each in story.deliveries
        if each.reason in _WHY
    ]
    return ": " + "; ".join(whys) if whys else ""


def _for_what(told: DeliveryStory | None) -> str:
    if told is not None and told.without_link:
        return ": the auth service has given no link for it yet"
    return " to be sent"


def _stopped(told: DeliveryStory | None) -> str:
    reason = told.reason if told else None
    if reason is _R.OPERATOR_STOP:
        return "An operator stopped this notice."
    return (
        f"Sending was stopped because {_WHY[reason]}." if reason in _WHY else "Sending was stopped."
    )


def _noun(told: DeliveryStory | None) -> str:
    return _NOUN[told.channel] if told else "message"


def _system(told: DeliveryStory | None) -> str:
    texted = told is not None and told.channel is Channel.SMS
    return "text message provider" if texted else "mail system"


def _at(told: DeliveryStory | None, story: NoticeStory) -> str:
    moment = told.left_at if told else None
    return f" at {clock(moment, story.now, story.zone)}" if moment else ""
