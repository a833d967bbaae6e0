"""The few numbers of the home page, and the visitor's own latest look-ups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from notifier.store.reads.failures import FAILED
from notifier.store.reads.paging import COUNT_CAP
from notifier.store.reads.system import PauseRow, standing_pauses

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class OwnLook:
    """Something that the visitor looked up lately; `object_ref` never holds a destination."""

    at: datetime
    action: str
    object_kind: str
    object_ref: str | None
    hits: int | None
    event_id: str | None
    """Of the notice that was looked at."""


@dataclass(frozen=True, slots=True)
class HomePage:
    """Counts stop at `COUNT_CAP` + 1. `tightest` is when the next pending notice expires.

    `failures_15_min` counts what the page of channel failures lists.
    """

    pending: int
    tightest: datetime | None
    unknown: int
    expired_last_hour: int
    failures_15_min: int
    looks: tuple[OwnLook, ...]
    pauses: tuple[PauseRow, ...]
    as_of: datetime


_NUMBERS: Final = f"""
    WITH clock AS (SELECT db_now() AS now)
    SELECT clock.now AS as_of,
        (SELECT count(*) FROM (SELECT FROM notice
            WHERE state IN ('email_pending', 'text_pending') LIMIT {COUNT_CAP + 1}) AS p)
            AS pending,
        (SELECT min(expires_at) FROM notice
            WHERE state IN ('email_pending', 'text_pending')) AS tightest,
        (SELECT count(*) FROM (SELECT FROM delivery
            WHERE state = 'unknown' LIMIT {COUNT_CAP + 1}) AS u) AS unknown,
        (SELECT count(*) FROM (SELECT FROM notice WHERE state = 'expired'
            AND expires_at > clock.now - interval '1 hour' LIMIT {COUNT_CAP + 1}) AS e)
            AS expired_last_hour,
        (SELECT count(*) FROM (SELECT FROM transition WHERE {FAILED}
            AND recorded_at > clock.now - interval '15 minutes' LIMIT {COUNT_CAP + 1}) AS f)
            AS failures_15_min
      FROM clock
"""

_LOOKS: Final = """
    WITH looks AS (
        SELECT max(at) AS at, action, object_kind, object_ref, max(hits) AS hits
          FROM read_audit
         WHERE at > db_now() - interval '12 hours' AND person = %s
           AND (action = 'view' AND object_kind = 'notice'
                OR action = 'look_up' AND object_kind NOT IN ('destination', 'id'))
         GROUP BY action, object_kind, object_ref
         ORDER BY 1 DESC LIMIT 8)
    SELECT looks.*, admission.event_id
      FROM looks
      LEFT JOIN admission ON admission.notice_id
           = CASE WHEN looks.action = 'view' THEN looks.object_ref::uuid END
     ORDER BY looks.at DESC
"""


def load_home(connection: PooledConnection, person: str) -> HomePage:
    """The home page of this person."""
    row = connection.execute(_NUMBERS).fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    looks = tuple(OwnLook(**each) for each in connection.execute(_LOOKS, [person]))
    return HomePage(**row, looks=looks, pauses=standing_pauses(connection))
