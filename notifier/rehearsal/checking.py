"""Compares how a rehearsal went with what its scenario says it is about."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from notifier.domain.states import Channel
from notifier.domain.support_story import DeliveryStory, Left, NoticeStory
from notifier.domain.support_words import Wording, wording
from notifier.rehearsal.acts import REQUESTED_AT, Rehearsed
from notifier.rehearsal.notice import Delivery, Row
from notifier.rehearsal.script import Expect, Moment

_EXACT = timedelta(milliseconds=1)


def words(rehearsed: Rehearsed) -> Wording:
    """What an agent reads at the moment of the last row."""
    notice = rehearsed.notice
    email, sms = (_story(notice.deliveries[each]) for each in (Channel.EMAIL, Channel.SMS))
    return wording(
        NoticeStory(
            state=notice.state,
            email=email,
            sms=sms,
            now=rehearsed.trail[-1].at,
            expires_at=notice.expires_at,
            on_hold=any(notice.is_halted(each) for each in Channel),
            ended_by=notice.ended_by,
        )
    )


def _story(delivery: Delivery) -> DeliveryStory:
    seen_at = delivery.arrived_at or delivery.left_at
    left = Left.YES if seen_at else Left.MAYBE if delivery.may_have_left else Left.NEVER
    return DeliveryStory(delivery.channel, delivery.state, delivery.reason, left, seen_at)


def starts(rehearsed: Rehearsed, channel: Channel) -> int:
    """How many attempts began on a channel; a replay is the same message once more."""
    return rehearsed.notice.deliveries[channel].attempts


def differences(rehearsed: Rehearsed, expect: Expect) -> list[str]:
    """What went otherwise than expected, a sentence each; empty where all holds."""
    notice, told = rehearsed.notice, words(rehearsed)
    ends = (
        ("state", expect.state, notice.state),
        ("basis", expect.basis, notice.basis),
        ("support word", expect.support_word, told.support_word),
        ("emails started", expect.emails, starts(rehearsed, Channel.EMAIL)),
        ("texts started", expect.texts, starts(rehearsed, Channel.SMS)),
    )
    found = [f"{name}: expected {wanted}, was {was}" for name, wanted, was in ends if wanted != was]
    return [*found, *_missing(rehearsed.trail, expect.moments)]


def _missing(trail: list[Row], moments: tuple[Moment, ...]) -> Iterator[str]:
    for each in moments:
        at = REQUESTED_AT + timedelta(seconds=each.at_s)
        if not any(_is(row, each) and abs(row.at - at) < _EXACT for row in trail):
            when = [(row.at - REQUESTED_AT).total_seconds() for row in trail if _is(row, each)]
            was = f"was at {', '.join(f'{at:g}' for at in when)}" if when else "never happened"
            moved = f" -> {each.to}" if each.to else ""
            yield f"{each.channel or 'notice'}{moved} {each.reason} at {each.at_s:g} s: {was}"


def _is(row: Row, moment: Moment) -> bool:
    moved_to = row.to_state if row.from_state is not row.to_state else None
    return (row.channel, moved_to, row.reason) == (moment.channel, moment.to, moment.reason)
