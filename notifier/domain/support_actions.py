"""What to tell the customer about a notice: one thing to do, that holds in every case."""

from __future__ import annotations

from typing import Final

from notifier.domain.detail_words import BEYOND_THE_CONTACT
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.domain.support_story import (
    DELAYED,
    DeliveryStory,
    Left,
    NoticeStory,
    SupportWord,
    clock,
    is_dead,
    most_left,
    without_link,
)

_S = DeliveryState
_R = Reason

_OURS: Final = frozenset({_R.RENDER_FAILED, _R.INTERNAL_FAULT})
_RULED: Final = frozenset(
    {_R.NO_CONSENT, _R.NOT_PERMITTED, _R.REGION_NOT_PERMITTED, _R.EXCLUDED_BY_POLICY}
)
"""Reasons that a new request, or a corrected contact, would meet again."""

_NEW_RESET: Final = "Ask the customer to request a new reset."


def action(  # noqa: PLR0911 - one sentence per word
    story: NoticeStory, word: SupportWord, told: DeliveryStory | None
) -> str:
    """The one sentence or two for `word`, which `told` stands behind."""
    until = clock(story.expires_at, story.now, story.zone)
    if story.state is NoticeState.CANCELED or word is SupportWord.CANCELED or is_dead(story):
        return _after_cancel(story)
    if told is not None and told.delay is Detail.MAILBOX_FULL and told.state in DELAYED:
        return _after_full_mailbox(story)
    if word in {SupportWord.FAILED, SupportWord.NOT_SENT}:
        return _after_no_message(story)
    if story.now >= story.expires_at:
        ours = " If that one waits as well, tell on-call." if without_link(story) else ""
        return f"{_NEW_RESET} The link of this one no longer works.{ours}"
    if word is SupportWord.EXPIRED:
        return _new_reset(story)
    match word:
        case SupportWord.DELIVERED | SupportWord.ACCEPTED:
            return (
                f"Ask the customer to {_look(told)}. The link works until {until}; "
                "after that they need a new reset."
            )
        case SupportWord.UNKNOWN:
            return (
                f"Ask the customer to {_look(told)}. It is not sent again on a guess; if "
                f"nothing has come by {until}, they need a new reset."
            )
        case SupportWord.QUEUED | SupportWord.ON_HOLD:
            alarm = ", and tell on-call if it stays so" if told and told.without_link else ""
            return (
                f"Ask the customer to wait a little{alarm}. If nothing has come by {until}, they "
                "need a new reset."
            )


def _after_cancel(story: NoticeStory) -> str:
    reasons = {story.ended_by, *(each.reason for each in story.deliveries)}
    if _R.RESET_USED in reasons:
        return (
            "The link has been used. If that was not the customer, treat the account as at "
            "risk and follow your security procedure."
        )
    if _R.RESET_SUPERSEDED in reasons:
        return "Ask the customer to use the newest message; links in older ones may be dead."
    return _new_reset(story)


def _new_reset(story: NoticeStory) -> str:
    """The way out before expiry; of dead links only where one may be under way."""
    if most_left(story) is Left.NEVER:
        return _NEW_RESET
    return f"{_NEW_RESET} A link that still arrives may be dead."


def _after_full_mailbox(story: NoticeStory) -> str:
    if story.now >= story.expires_at:
        return (
            "Ask the customer to make room in their mailbox, then to request a new reset. The "
            "link of this one no longer works."
        )
    return (
        "Ask the customer to make room in their mailbox, then to look in their inbox and in the "
        f"spam folder. The link works until {clock(story.expires_at, story.now, story.zone)}; "
        "after that they need a new reset."
    )


def _after_no_message(story: NoticeStory) -> str:
    late = story.now >= story.expires_at
    dead = "The link of this one no longer works. " if late else ""
    reasons = {each.reason for each in story.deliveries}
    if _R.ACCOUNT_CAP_REACHED in reasons:
        return f"{dead}Ask the customer to wait an hour before they request a new reset."
    if reasons & _OURS:
        return (
            f"{dead}Tell on-call: a fault of ours stopped it, and a new reset may meet it again "
            "until it is mended."
        )
    failures = {each.failure for each in story.deliveries if each.state is _S.FAILED}
    if Detail.MAILBOX_FULL in failures:
        return f"{dead}Ask the customer to make room in their mailbox, then to request a new reset."
    if failures and failures <= BEYOND_THE_CONTACT:
        return (
            f"{dead}Tell the customer that their contact details may well be right, and that we "
            "look into it. Tell on-call, because a new reset may end the same way."
        )
    if reasons and reasons <= _RULED:
        return (
            f"{dead}A new reset would end the same way: it was stopped by a rule or a missing "
            "consent. Pass it on to whoever may change that."
        )
    return (
        f"{dead}Check with the customer that the contact details on the account are right, then "
        "ask them to request a new reset."
    )


def _look(told: DeliveryStory | None) -> str:
    if told is not None and told.channel is Channel.SMS:
        return "look at the text messages on their phone"
    return "look in their inbox and in the spam folder"
