"""A notice's facts, as far as a support agent's words depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Final

from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.domain.zones import zone_label


class SupportWord(StrEnum):
    """Strongest first (design, section 3.2)."""

    DELIVERED = "delivered"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    ON_HOLD = "on hold"
    QUEUED = "queued"
    CANCELED = "canceled"
    EXPIRED = "expired"
    FAILED = "failed"
    NOT_SENT = "not sent"


class Left(StrEnum):
    """Whether a message of a delivery left us."""

    NEVER = "never left"
    MAYBE = "may have left"
    YES = "left"


@dataclass(frozen=True, slots=True)
class DeliveryStory:
    """One delivery's facts. `left_at` is when a provider took it or it was seen delivered.

    `failure` is why a provider gave up, `delay` what it reported meanwhile; `without_link`: the
    auth service was asked for a link and none of its answers led to an attempt.
    """

    channel: Channel
    state: DeliveryState
    reason: Reason | None = None
    left: Left = Left.NEVER
    left_at: datetime | None = None
    failure: Detail | None = None
    delay: Detail | None = None
    without_link: bool = False


@dataclass(frozen=True, slots=True)
class NoticeStory:
    """A notice's facts at `now`; `on_hold` is true under a halt. Times are told in `zone`.

    `ended_by` is why the request itself was canceled, whatever had left by then.
    """

    state: NoticeState
    email: DeliveryStory | None
    sms: DeliveryStory | None
    now: datetime
    expires_at: datetime
    on_hold: bool = False
    zone: tzinfo = UTC
    ended_by: Reason | None = None

    @property
    def deliveries(self) -> tuple[DeliveryStory, ...]:
        """Those there are, email first."""
        return tuple(each for each in (self.email, self.sms) if each)


DELAYED: Final = frozenset({DeliveryState.ACCEPTED, DeliveryState.EXPIRED})
"""States in which a delay that a provider reported still says where the message is."""


_DEAD: Final = frozenset({Reason.RESET_USED, Reason.RESET_SUPERSEDED, Reason.RESET_REVOKED})


def is_dead(story: NoticeStory) -> bool:
    """Whether the auth service ended the request, so that its link is no longer worth a click.

    An operator only stops what would be sent: a link that has arrived works on.
    """
    return story.ended_by in _DEAD


def most_left(story: NoticeStory) -> Left:
    """The most that may have left over all deliveries."""
    order = (Left.YES, Left.MAYBE, Left.NEVER)
    return min((each.left for each in story.deliveries), key=order.index, default=Left.NEVER)


def without_link(story: NoticeStory) -> bool:
    """Whether the auth service was asked for a link in vain on some channel."""
    return any(each.without_link for each in story.deliveries)


def clock(moment: datetime, now: datetime, zone: tzinfo) -> str:
    """`14:04 UTC` in `zone`, with the date where it is not the day of `now`."""
    moment, now = moment.astimezone(zone), now.astimezone(zone)
    clock = f"{moment:%H:%M} {zone_label(moment)}"
    return clock if moment.date() == now.date() else f"{moment.day} {moment:%B %Y}, {clock}"
