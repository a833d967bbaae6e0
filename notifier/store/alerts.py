"""Writes of the alert path: whose turn it is to judge, what became of episodes, who is paged.

A turn is taken by one guarded update on the database's time. What was found is written under the
lock of the same row and only while the turn still stands, so that a judge that hung and woke up
changes nothing; a unique index lets one episode of a rule and key stand, whoever else opens it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
import uuid_utils

Row = dict[str, Any]
Connection = psycopg.Connection[Row]

REGISTER: Final = "INSERT INTO alert_watch DEFAULT VALUES ON CONFLICT DO NOTHING"

# A turn that lies ahead is from a server whose clock was: it is nobody's.
TAKE: Final = """
UPDATE alert_watch SET turn = turn + 1, taken_at = clock.now, taken_by = %(owner)s
  FROM (SELECT db_now() AS now) AS clock
 WHERE taken_at <= clock.now - make_interval(secs => %(every_s)s) OR taken_at > clock.now
RETURNING turn
"""
HOLDS: Final = "SELECT turn FROM alert_watch WHERE turn = %(turn)s FOR UPDATE"
DONE: Final = "UPDATE alert_watch SET judged_at = db_now(), life_s = %(life_s)s"
WATCH: Final = """
SELECT extract(epoch FROM db_now() - judged_at)::float8 AS judged_s, life_s, taken_by
  FROM alert_watch
"""
STANDING: Final = """
SELECT episode_id, rule, key, state, crossed_at, opened_at, seen_at, clear_since, value, worst,
       threshold, unit, affected, life_s
  FROM alert_episode WHERE state <> 'resolved'
"""
PUT: Final = """
INSERT INTO alert_episode AS e (episode_id, rule, key, state, crossed_at, opened_at, seen_at, value,
                                worst, threshold, threshold_now, life_s, unit, affected)
VALUES (%(episode_id)s, %(rule)s, %(key)s, %(state)s, %(crossed_at)s, %(opened_at)s, %(now)s,
        %(value)s, %(value)s, %(threshold)s, %(threshold)s, %(life_s)s, %(unit)s, %(affected)s)
ON CONFLICT (rule, key) WHERE state <> 'resolved' DO UPDATE
   SET state = excluded.state, crossed_at = excluded.crossed_at,
       opened_at = coalesce(e.opened_at, excluded.opened_at), seen_at = excluded.seen_at,
       clear_since = NULL, value = excluded.value, worst = greatest(e.worst, excluded.worst),
       threshold = CASE e.state WHEN 'open' THEN e.threshold ELSE excluded.threshold END,
       life_s = CASE e.state WHEN 'open' THEN e.life_s ELSE excluded.life_s END,
       threshold_now = excluded.threshold, affected = greatest(e.affected, excluded.affected),
       version = e.version + (e.state <> excluded.state)::int
RETURNING episode_id
"""
CLEARING: Final = """
UPDATE alert_episode SET clear_since = %(clear_since)s, value = coalesce(%(value)s, value),
       threshold_now = coalesce(%(threshold)s, threshold_now)
 WHERE episode_id = %(episode_id)s
"""
DROP: Final = "DELETE FROM alert_episode WHERE episode_id = %(episode_id)s AND state = 'held'"
RESOLVE: Final = """
UPDATE alert_episode SET state = 'resolved', resolved_at = %(now)s, resolved_by = %(by)s,
       resolve_note = %(note)s, version = version + 1
 WHERE episode_id = %(episode_id)s AND state = 'open'
RETURNING episode_id
"""
# A provider has one row while it is paused: a later pause's reason is not this episode's.
DETAIL: Final = """
(SELECT p.detail FROM provider_pause p
  WHERE e.rule = 'provider_paused' AND p.provider = e.key AND p.until >= e.crossed_at
    AND p.since <= coalesce(e.resolved_at, db_now()))"""
PAGE: Final = """
INSERT INTO alert_page (episode_id, kind, receiver, made_at, due_at)
SELECT %(episode_id)s, %(kind)s, receiver, now, now
  FROM unnest(%(receivers)s::text[]) AS receiver, (SELECT db_now() AS now) AS clock
ON CONFLICT DO NOTHING
"""

# Who claims a page moves it out of reach for as long as a send may take. That it has ended is
# told after that it has begun.
CLAIM_PAGES: Final = f"""
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    due AS MATERIALIZED (
        SELECT p.episode_id, p.kind, p.receiver FROM clock CROSS JOIN alert_page p
         WHERE p.sent_at IS NULL AND p.given_up_at IS NULL AND p.due_at <= clock.now
           AND p.receiver = ANY (%(receivers)s)
           AND NOT EXISTS (SELECT FROM alert_page f
               WHERE p.kind = 'resolved' AND f.episode_id = p.episode_id AND f.kind = 'opened'
                 AND f.receiver = p.receiver AND f.sent_at IS NULL AND f.given_up_at IS NULL)
         ORDER BY p.due_at LIMIT %(most)s FOR UPDATE OF p SKIP LOCKED),
    claimed AS (
        UPDATE alert_page p SET tries = p.tries + 1, due_at = clock.now + %(lease)s
          FROM due, clock
         WHERE (p.episode_id, p.kind, p.receiver) = (due.episode_id, due.kind, due.receiver)
        RETURNING p.episode_id, p.kind, p.receiver, p.tries, p.made_at)
SELECT c.kind, c.receiver, c.tries, c.made_at, e.*, clock.now, {DETAIL} AS detail
  FROM claimed c JOIN alert_episode e USING (episode_id), clock
 ORDER BY c.made_at, e.episode_id
"""
SENT: Final = """
UPDATE alert_page SET sent_at = db_now(), trouble = NULL
 WHERE episode_id = %(episode_id)s AND kind = %(kind)s AND receiver = %(receiver)s
"""
NOT_SENT: Final = """
UPDATE alert_page SET due_at = db_now() + %(wait)s, trouble = %(trouble)s,
       given_up_at = CASE WHEN %(wait)s::interval IS NULL THEN db_now() END
 WHERE episode_id = %(episode_id)s AND kind = %(kind)s AND receiver = %(receiver)s
   AND sent_at IS NULL
"""
UNTOLD: Final = """
SELECT EXISTS (
    SELECT FROM alert_page p
     WHERE p.sent_at IS NULL AND p.made_at < db_now() - %(since)s
       AND (p.given_up_at IS NULL OR p.given_up_at > db_now() - interval '1 day')
       AND NOT EXISTS (SELECT FROM alert_page other
           WHERE other.episode_id = p.episode_id AND other.kind = p.kind
             AND other.sent_at IS NOT NULL)) AS untold
"""

# Notes and pages go with their episode. One that lasts is kept, however old it is.
FORGET: Final = """
WITH old AS MATERIALIZED (
    SELECT episode_id FROM alert_episode
     WHERE state = 'resolved'
       AND resolved_at < (SELECT db_now()) - make_interval(days => 1) * %(days)s
     ORDER BY resolved_at LIMIT %(most)s)
DELETE FROM alert_episode e USING old WHERE e.episode_id = old.episode_id
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """An episode that has not ended; `state` is held or open.

    `threshold` and `life_s` are those with which it opened: what people were told.
    """

    episode_id: UUID
    rule: str
    key: str
    state: str
    crossed_at: datetime
    opened_at: datetime | None
    seen_at: datetime
    clear_since: datetime | None
    value: float
    worst: float
    threshold: float
    unit: str
    affected: int
    life_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """How an episode stands after a look; `state` is held or open.

    One that was open already keeps the `threshold` and the `life_s` that it opened with.
    """

    rule: str
    key: str
    state: str
    crossed_at: datetime
    value: float
    threshold: float
    unit: str
    affected: int
    life_s: float


@dataclass(frozen=True, slots=True)
class PageDue:
    """One page that was claimed, with its episode as it stands (`episode`, by column).

    `detail` stands beside the columns: for which reason the provider is paused, while it is.
    """

    kind: str
    receiver: str
    tries: int
    made_at: datetime
    now: datetime
    episode: Row

    @property
    def place(self) -> Row:
        """What names the page."""
        return {
            "episode_id": self.episode["episode_id"], "kind": self.kind, "receiver": self.receiver,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class WatchView:
    """When the rules were last judged (s ago, None for never), and for which life (s)."""

    judged_s: float | None
    life_s: float
    by: str


def take_turn(connection: Connection, *, owner: str, every_s: float) -> int | None:
    """The number of the turn to judge; None where somebody took one within `every_s`."""
    connection.execute(REGISTER)
    row = connection.execute(TAKE, {"owner": owner, "every_s": every_s}).fetchone()
    return None if row is None else int(row["turn"])


def holds_turn(connection: Connection, turn: int) -> bool:
    """Lock the watch for the rest of the transaction; False where another turn began."""
    return connection.execute(HOLDS, {"turn": turn}).fetchone() is not None


def judged(connection: Connection, life_s: float) -> None:
    """Write down that the rules were judged now."""
    connection.execute(DONE, {"life_s": life_s})


def watch_view(connection: Connection) -> WatchView | None:
    """How the watch stands; None where nobody ever watched."""
    row = connection.execute(WATCH).fetchone()
    if row is None:
        return None
    ever = row["judged_s"] != float("inf")
    return WatchView(row["judged_s"] if ever else None, row["life_s"], row["taken_by"])


def standing(connection: Connection) -> list[Standing]:
    """The episodes that have not ended."""
    return [Standing(**row) for row in connection.execute(STANDING)]


def put(connection: Connection, seen: Seen, now: datetime) -> UUID:
    """Begin or go on with the episode of a rule and key; its id."""
    row = connection.execute(
        PUT,
        {
            "episode_id": uuid.UUID(bytes=uuid_utils.uuid7().bytes),
            "rule": seen.rule,
            "key": seen.key,
            "state": seen.state,
            "crossed_at": seen.crossed_at,
            "opened_at": now if seen.state == "open" else None,
            "now": now,
            "value": seen.value,
            "threshold": seen.threshold,
            "unit": seen.unit,
            "affected": seen.affected,
            "life_s": seen.life_s,
        },
    ).fetchone()
    assert row is not None  # noqa: S101 - inserted or updated
    found: UUID = row["episode_id"]
    return found


def clearing(
    connection: Connection,
    episode_id: UUID,
    since: datetime,
    *,
    value: float | None,
    threshold: float | None,
) -> None:
    """Note since when an open episode's value is back below its limit, and both if known."""
    values = {
        "episode_id": episode_id, "clear_since": since, "value": value, "threshold": threshold,
    }  # fmt: skip
    connection.execute(CLEARING, values)


def drop(connection: Connection, episode_id: UUID) -> None:
    """Forget what was held and never told."""
    connection.execute(DROP, {"episode_id": episode_id})


def resolve(
    connection: Connection, episode_id: UUID, now: datetime, *, by: str, note: str | None = None
) -> bool:
    """End an open episode; False where it has ended already."""
    values = {"episode_id": episode_id, "now": now, "by": by, "note": note}
    return connection.execute(RESOLVE, values).fetchone() is not None


def page(connection: Connection, episode_id: UUID, kind: str, receivers: Sequence[str]) -> None:
    """Have each receiver told, once, that an episode was `opened` or `resolved`."""
    values = {"episode_id": episode_id, "kind": kind, "receivers": list(receivers)}
    connection.execute(PAGE, values)


def claim_pages(
    connection: Connection, receivers: Sequence[str], *, lease: timedelta, most: int = 20
) -> list[PageDue]:
    """Due pages for these receivers; nobody else gets them before `lease` has passed."""
    values = {"receivers": list(receivers), "lease": lease, "most": most}
    found = []
    for row in connection.execute(CLAIM_PAGES, values):
        own = {name: row.pop(name) for name in ("kind", "receiver", "tries", "made_at", "now")}
        found.append(PageDue(**own, episode=row))
    return found


def page_sent(connection: Connection, due: PageDue) -> None:
    """A receiver took the page."""
    connection.execute(SENT, due.place)


def page_not_sent(
    connection: Connection, due: PageDue, *, trouble: str, wait: timedelta | None
) -> None:
    """A receiver did not take it: try again after `wait`, or never (None)."""
    connection.execute(NOT_SENT, {**due.place, "trouble": trouble, "wait": wait})


def somebody_untold(connection: Connection, since: timedelta) -> bool:
    """Whether there is a page of some age that no receiver at all has taken."""
    row = connection.execute(UNTOLD, {"since": since}).fetchone()
    return bool(row and row["untold"])


def forget(connection: Connection, *, days: float, most: int = 100) -> int:
    """Remove some of the episodes that ended more than `days` ago, with their notes; how many."""
    return connection.execute(FORGET, {"days": days, "most": most}).rowcount
