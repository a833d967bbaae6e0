"""One line about a notice, as every list shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from notifier.domain.states import Channel, DeliveryState, NoticeState

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class ChannelGlance:
    """Where one channel stands; `mask` is None where no destination is known (any more)."""

    channel: Channel
    state: DeliveryState
    reason: str
    mask: str | None
    attempts: int
    may_have_left: bool
    left_at: datetime | None
    arrived_at: datetime | None
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """One notice in a list."""

    notice_id: UUID
    event_id: str
    reset_request_id: str
    account_id: str
    state: NoticeState
    basis: str | None
    canceled_reason: str | None
    created_at: datetime
    requested_at: datetime
    expires_at: datetime
    changed_at: datetime
    template: str
    channels: tuple[ChannelGlance, ...]


_NOTICES = """
    SELECT n.notice_id, n.event_id, n.reset_request_id, n.account_id, n.state, n.basis,
           n.canceled_reason, n.created_at, a.requested_at, n.expires_at, n.changed_at,
           n.template_id || '@' || n.template_revision AS template
      FROM notice AS n JOIN admission AS a USING (notice_id)
     WHERE n.notice_id = ANY (%s)
"""

_GLANCES = """
    SELECT d.notice_id, d.channel, d.state, d.reason, c.mask, d.attempts, d.may_have_left,
           d.left_at, d.arrived_at, d.changed_at
      FROM delivery AS d LEFT JOIN contact AS c USING (notice_id, channel)
     WHERE d.notice_id = ANY (%s)
     ORDER BY d.notice_id, d.channel
"""


def rows_of(connection: PooledConnection, notice_ids: Sequence[UUID]) -> tuple[NoticeRow, ...]:
    """The lines of these notices, in the order of the ids; unknown ids are left out."""
    if not notice_ids:
        return ()
    glances: dict[UUID, list[ChannelGlance]] = {}
    for row in connection.execute(_GLANCES, [list(notice_ids)]):
        glances.setdefault(row["notice_id"], []).append(_glance(row))
    lines = {
        row["notice_id"]: _line(row, glances.get(row["notice_id"], []))
        for row in connection.execute(_NOTICES, [list(notice_ids)])
    }
    return tuple(lines[each] for each in notice_ids if each in lines)


def _glance(row: dict[str, Any]) -> ChannelGlance:
    fields = {name: value for name, value in row.items() if name != "notice_id"}
    fields |= {"channel": Channel(row["channel"]), "state": DeliveryState(row["state"])}
    return ChannelGlance(**fields)


def _line(row: dict[str, Any], glances: list[ChannelGlance]) -> NoticeRow:
    return NoticeRow(**row | {"state": NoticeState(row["state"]), "channels": tuple(glances)})
