"""Turns a notice's rows into the facts that the support wording is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from notifier.domain.cancels import CANCELS
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel, DeliveryState
from notifier.domain.support_story import DeliveryStory, Left, NoticeStory
from notifier.domain.support_words import Wording, wording
from notifier.store.reads.notice_facts import DeliveryRow, NoticePage
from notifier.store.reads.notice_rows import NoticeRow


class _Channel(Protocol):
    """What a story needs of one delivery, from a page's row or a list's."""

    @property
    def channel(self) -> Channel: ...
    @property
    def state(self) -> DeliveryState: ...
    @property
    def reason(self) -> str: ...
    @property
    def may_have_left(self) -> bool: ...
    @property
    def left_at(self) -> datetime | None: ...
    @property
    def arrived_at(self) -> datetime | None: ...


def delivery_story(row: _Channel) -> DeliveryStory:
    """One delivery's facts; a reason from a newer version than this one is left out."""
    reason = Reason(row.reason) if row.reason in set(Reason) else None
    seen_at = row.arrived_at or row.left_at
    left = Left.YES if seen_at else Left.MAYBE if row.may_have_left else Left.NEVER
    return DeliveryStory(row.channel, row.state, reason, left, seen_at)


def wording_of(page: NoticePage, zone: tzinfo = UTC) -> Wording:
    """Word, headline and customer action; the status answer and the page both show these."""
    story = _story(page, page.deliveries, page.as_of, zone)
    return wording(
        replace(
            story,
            on_hold=page.on_hold,
            email=_in_full(story.email, page),
            sms=_in_full(story.sms, page),
        )
    )


def _in_full(story: DeliveryStory | None, page: NoticePage) -> DeliveryStory | None:
    """The same with what only the page reads: why it failed, what delays it, links not given."""
    if story is None:
        return None
    (row,) = (each for each in page.deliveries if each.channel is story.channel)
    delays = [
        _detail(each.detail) or Detail.UNCLASSIFIED
        for each in page.receipts
        if each.channel == story.channel and each.status == "delayed"
    ]
    return replace(
        story,
        failure=_detail(row.detail),
        delay=delays[-1] if delays else None,
        without_link=_asks_in_vain(row),
    )


def _asks_in_vain(row: DeliveryRow) -> bool:
    """Whether no link was given, and nothing else has kept the message waiting since."""
    waits = row.state in {DeliveryState.QUEUED, DeliveryState.CLAIMED}
    other = waits and row.reason not in {Reason.LINK_UNAVAILABLE, Reason.CLAIMED}
    return row.link_tries > 0 and not row.attempts and not other


def _detail(word: str | None) -> Detail | None:
    return Detail(word) if word in set(Detail) else None


def wording_of_row(row: NoticeRow, now: datetime, zone: tzinfo = UTC) -> Wording:
    """The same for one line of a list, where no halt is looked up."""
    return wording(_story(row, row.channels, now, zone))


def _story(
    notice: NoticePage | NoticeRow, rows: Sequence[_Channel], now: datetime, zone: tzinfo
) -> NoticeStory:
    stories = {each.channel: delivery_story(each) for each in rows}
    return NoticeStory(
        state=notice.state,
        email=stories.get(Channel.EMAIL),
        sms=stories.get(Channel.SMS),
        now=now,
        expires_at=notice.expires_at,
        zone=zone,
        ended_by=CANCELS.get(notice.canceled_reason or ""),
    )
