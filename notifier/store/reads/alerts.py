"""What the pages of alerts show: a list, one episode with its notes and pages, and each rule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.store.alerts import DETAIL
from notifier.store.reads.paging import COUNT_CAP, Page, Walk, capped

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection


@dataclass(frozen=True, slots=True)
class Alert:
    """One episode that was told of (never one that is only held); times are the database's.

    `threshold` is its limit as it was told, `threshold_now` the one at the latest look. It is
    judged for tokens of `life_s`, and below its limit since `clear_since`. `detail`: for which
    reason the provider was paused, where the episode is about a pause and that is known.
    """

    episode_id: UUID
    rule: str
    key: str
    state: str
    crossed_at: datetime
    opened_at: datetime
    seen_at: datetime
    clear_since: datetime | None
    value: float
    worst: float
    threshold: float
    threshold_now: float
    life_s: float
    unit: str
    detail: str | None
    affected: int
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    acknowledge_note: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolve_note: str | None
    led_to_action: str | None
    review_what: str | None
    review_verdict: str | None
    reviewed_by: str | None
    reviewed_at: datetime | None
    version: int


@dataclass(frozen=True, slots=True)
class AlertNote:
    """What somebody wrote beside an episode."""

    at: datetime
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class AlertPage:
    """What became of telling one receiver; `receiver` gives nothing of its address away."""

    kind: str
    receiver: str
    made_at: datetime
    tries: int
    sent_at: datetime | None
    given_up_at: datetime | None
    trouble: str | None


@dataclass(frozen=True, slots=True)
class AlertStory:
    """One episode with all that belongs to it."""

    alert: Alert
    notes: tuple[AlertNote, ...]
    pages: tuple[AlertPage, ...]


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A rule's last 30 or 90 days. Of those reviewed, `led` and `partly` led to action."""

    rule: str
    fired: int
    acknowledged: int
    median_ack_s: float | None
    reviewed: int
    led: int
    partly: int
    tune: int
    delete: int

    @property
    def action_share(self) -> float | None:
        """The share that led to action, a part counting half; None where nothing was reviewed."""
        return (self.led + self.partly / 2) / self.reviewed if self.reviewed else None


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """What the list is narrowed to; None leaves a part open."""

    state: str | None = None
    rule: str | None = None
    owner: str | None = None
    unreviewed: bool = False


_COLUMNS: Final = f"""episode_id, rule, key, state, crossed_at, opened_at, seen_at, clear_since,
       value, worst, threshold, threshold_now, life_s, unit, affected, acknowledged_by,
       acknowledged_at, acknowledge_note, resolved_at, resolved_by, resolve_note, led_to_action,
       review_what, review_verdict, reviewed_by, reviewed_at, version, {DETAIL} AS detail"""
_WANTED: Final = """state <> 'held'
       AND (%(state)s::text IS NULL OR state = %(state)s)
       AND (%(rule)s::text IS NULL OR rule = %(rule)s)
       AND (%(owner)s::text IS NULL OR acknowledged_by = %(owner)s)
       AND (NOT %(unreviewed)s OR (state = 'resolved' AND reviewed_at IS NULL))"""
_LIST: Final = """
    SELECT {columns} FROM alert_episode e
     WHERE {wanted} AND opened_at <= %(upto)s
       AND (%(at)s::timestamptz IS NULL OR (opened_at, episode_id) {than} (%(at)s, %(row_id)s))
     ORDER BY opened_at {order}, episode_id {order} LIMIT %(size)s
"""
_COUNT: Final = f"""
    SELECT count(*) FILTER (WHERE opened_at <= %(upto)s) AS total,
           count(*) FILTER (WHERE opened_at > %(upto)s) AS fresh
      FROM (SELECT opened_at FROM alert_episode WHERE {_WANTED} LIMIT %(cap)s) AS counted
"""
_ONE: Final = f"""
    SELECT {_COLUMNS} FROM alert_episode e WHERE episode_id = %(id)s AND state <> 'held'
"""
_NOTES: Final = "SELECT at, by, text FROM alert_note WHERE episode_id = %(id)s ORDER BY at, by"
_PAGES: Final = """
    SELECT kind, receiver, made_at, tries, sent_at, given_up_at, trouble FROM alert_page
     WHERE episode_id = %(id)s ORDER BY made_at, receiver
"""
_RULES: Final = """
    SELECT rule, count(*) AS fired, count(acknowledged_at) AS acknowledged,
           percentile_cont(0.5) WITHIN GROUP
               (ORDER BY extract(epoch FROM acknowledged_at - opened_at)::float8) AS median_ack_s,
           count(reviewed_at) AS reviewed,
           count(*) FILTER (WHERE led_to_action = 'yes') AS led,
           count(*) FILTER (WHERE led_to_action = 'partly') AS partly,
           count(*) FILTER (WHERE review_verdict = 'tune') AS tune,
           count(*) FILTER (WHERE review_verdict = 'delete') AS delete
      FROM alert_episode
     WHERE state <> 'held' AND opened_at >= (SELECT db_now()) - %(span)s
     GROUP BY rule ORDER BY rule
"""
_OPEN: Final = f"""
    SELECT {_COLUMNS} FROM alert_episode e WHERE state = 'open'
     ORDER BY acknowledged_at IS NOT NULL, opened_at DESC, episode_id LIMIT %(most)s
"""


def load_alerts(connection: PooledConnection, walk: Walk, wanted: AlertFilter) -> Page[Alert]:
    """A page of episodes, the newest first."""
    now: datetime = connection.execute("SELECT db_now() AS now").fetchone()["now"]  # type: ignore[index]
    upto, cursor = walk.upto or now, walk.cursor
    than, order = walk.words(descending=True)
    values: dict[str, Any] = {
        "state": wanted.state, "rule": wanted.rule, "owner": wanted.owner,
        "unreviewed": wanted.unreviewed, "upto": upto, "cap": COUNT_CAP + 1,
        "at": cursor.at if cursor else None, "row_id": cursor.row_id if cursor else None,
        "size": walk.size + 1,
    }  # fmt: skip
    query = _LIST.format(columns=_COLUMNS, wanted=_WANTED, than=than, order=order)
    found = connection.execute(query, values).fetchall()
    counted = connection.execute(_COUNT, values).fetchone() or {"total": 0, "fresh": 0}
    kept, earlier, later = walk.cut(found, _key, now)
    total, is_capped = capped(counted["total"])
    return Page(
        tuple(Alert(**row) for row in kept), earlier, later, total, is_capped, now,
        counted["fresh"], upto,
    )  # fmt: skip


def load_open(connection: PooledConnection, most: int = 20) -> tuple[Alert, ...]:
    """What stands now, the alerts that nobody owns first."""
    return tuple(Alert(**row) for row in connection.execute(_OPEN, {"most": most}))


def load_story(connection: PooledConnection, episode_id: UUID) -> AlertStory | None:
    """One episode; None where nobody was ever told of one with this id."""
    values = {"id": episode_id}
    row = connection.execute(_ONE, values).fetchone()
    if row is None:
        return None
    notes = tuple(AlertNote(**each) for each in connection.execute(_NOTES, values))
    pages = tuple(AlertPage(**each) for each in connection.execute(_PAGES, values))
    return AlertStory(Alert(**row), notes, pages)


def load_rules(connection: PooledConnection, days: int) -> tuple[RuleRecord, ...]:
    """How each rule that fired in the last `days` days did."""
    rows = connection.execute(_RULES, {"span": timedelta(days=days)})
    return tuple(RuleRecord(**row) for row in rows)


def _key(row: Any) -> tuple[datetime, str]:
    return row["opened_at"], str(row["episode_id"])
