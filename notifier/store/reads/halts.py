"""Which sending is stopped now, and what was stopped before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.domain.heartbeat import LOST_AFTER
from notifier.domain.states import Channel
from notifier.store.ledger.halts import IN_FLIGHT, InFlight, in_flight, version_of
from notifier.store.reads.outside_text import shown
from notifier.store.reads.paging import COUNT_CAP, Page, Walk

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

SHOWN = 50
"""How many released halts the page goes back."""

_NUMBERS: Final = f"""
    SELECT db_now() AS as_of,
           (SELECT count(*) FROM (SELECT FROM delivery WHERE state = 'queued'
               LIMIT {COUNT_CAP + 1}) AS q) AS queued,
           (SELECT count(*) FROM ({IN_FLIGHT} LIMIT {COUNT_CAP + 1}) AS f) AS in_flight
"""

# Each half has an index of its own; as one condition it would read every delivery.
_WAITING: Final = """SELECT * FROM delivery WHERE state = 'queued' UNION ALL
                    SELECT * FROM delivery WHERE lease_owner IS NOT NULL AND state = 'claimed'"""

_BACKLOG: Final = f"""
    SELECT db_now() AS as_of,
           count(*) FILTER (WHERE NOT dead) AS living,
           count(*) FILTER (WHERE NOT dead AND short) AS short,
           count(*) FILTER (WHERE dead) AS dead
      FROM (SELECT d.stop_at <= clock.now AS dead,
                   d.stop_at <= clock.now + interval '5 min' AS short
              FROM (SELECT db_now() AS now) AS clock
             CROSS JOIN ({_WAITING}) AS d JOIN notice AS n USING (notice_id)
             WHERE %(scope)s IN ('all', 'channel:' || d.channel, 'provider:' || d.provider,
                    'template:' || n.template_id || '@' || n.template_revision,
                    'account:' || n.account_id, 'event:' || n.event_id)
             LIMIT {COUNT_CAP}) AS waiting
"""

# Few kinds of work wait, so that these are put in scopes and not each delivery; accounts and
# events are many, and are counted where a halt names one. `OFFSET 0` has each notice looked up:
# joined otherwise, a queue of some size would have all of them read.
_HELD_BACK: Final = f"""
    WITH clock AS MATERIALIZED (SELECT db_now() AS now),
        looked_at AS MATERIALIZED (
            SELECT d.channel, d.provider, n.template, n.account_id, n.event_id,
                   d.stop_at <= clock.now AS dead
              FROM clock CROSS JOIN (SELECT * FROM ({_WAITING}) AS waiting LIMIT %(cap)s) AS d
             CROSS JOIN LATERAL (
                SELECT account_id, event_id, template_id || '@' || template_revision AS template
                  FROM notice WHERE notice_id = d.notice_id OFFSET 0) AS n),
        kinds AS (
            SELECT channel, provider, template, dead, count(*) AS n
              FROM looked_at GROUP BY channel, provider, template, dead),
        scoped AS (
            SELECT scope, dead, n FROM kinds CROSS JOIN LATERAL unnest(ARRAY[
                'all', 'channel:' || channel, 'provider:' || provider, 'template:' || template])
                AS scope WHERE scope IS NOT NULL
            UNION ALL
            SELECT 'account:' || account_id, dead, 1 FROM looked_at
             WHERE account_id = ANY (%(accounts)s)
            UNION ALL
            SELECT 'event:' || event_id, dead, 1 FROM looked_at WHERE event_id = ANY (%(events)s))
    SELECT scope, coalesce(sum(n) FILTER (WHERE NOT dead), 0)::int AS living,
           coalesce(sum(n) FILTER (WHERE dead), 0)::int AS dead
      FROM scoped GROUP BY scope
"""

_PACE: Final = """
    SELECT count(*) AS processes, coalesce(sum(workers), 0)::integer AS workers
      FROM process
     WHERE stopped_at IS NULL AND workers > 0 AND seen_at > (SELECT db_now()) - %(lost)s
"""


@dataclass(frozen=True, slots=True)
class HaltRow:
    """One halt; `released_at` is None while it is engaged."""

    halt_id: UUID
    scope: str
    reason: str
    engaged_by: str
    engaged_at: datetime
    released_by: str | None
    release_reason: str | None
    released_at: datetime | None


@dataclass(frozen=True, slots=True)
class HaltsPage:
    """What is engaged, what was released lately, and what waits meanwhile.

    `in_flight` counts what an engagement would list: leases, and calls whose answer is not
    recorded, also those whose worker was given up as lost.
    """

    engaged: tuple[HaltRow, ...]
    released: tuple[HaltRow, ...]
    queued: int
    in_flight: int
    as_of: datetime
    started_before: Mapping[UUID, tuple[InFlight, ...]]
    """For each engaged halt, what began before it and has no known end; empty: in effect."""

    @property
    def version(self) -> str:
        """Names exactly the halts that stand; a form carries it."""
        return version_of(each.halt_id for each in self.engaged)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits under a halt, counted up to `COUNT_CAP`.

    `living` could still be sent, `short` of these for five minutes at most; `dead` never will
    be. `workers` send at once, at most.
    """

    living: int
    short: int
    dead: int
    processes: int
    workers: int
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """Waiting work under one scope: what could still go, and what is dead already."""

    living: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Waiting work by scope. `is_capped`: only `cap` of it was looked at, so all are at least."""

    by_scope: Mapping[str, Held]
    is_capped: bool
    cap: int

    def of(self, scope: str) -> Held:
        """What a halt of this scope holds back, or would."""
        return self.by_scope.get(scope, Held())

    @property
    def wide(self) -> tuple[str, ...]:
        """The scopes that can be chosen without naming a person or an event, the widest first."""
        named = (each for each in self.by_scope if each.startswith(("provider:", "template:")))
        return ("all", *(f"channel:{each}" for each in Channel), *sorted(named))


def engaged_halts(connection: PooledConnection) -> tuple[HaltRow, ...]:
    """Every halt in force, the widest first."""
    rows = connection.execute(
        "SELECT * FROM halt WHERE released_at IS NULL ORDER BY scope <> 'all', engaged_at DESC"
    )
    return tuple(halt_row(row) for row in rows)


def load_halts(connection: PooledConnection) -> HaltsPage:
    """The page of halts."""
    released = connection.execute(
        "SELECT * FROM halt WHERE released_at IS NOT NULL ORDER BY released_at DESC LIMIT %s",
        [SHOWN],
    )
    row = connection.execute(_NUMBERS, {"scope": "all"}).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    engaged = engaged_halts(connection)
    before = {each.halt_id: tuple(in_flight(connection, each.scope)) for each in engaged}
    rows = tuple(halt_row(each) for each in released)
    return HaltsPage(engaged, rows, **row, started_before=before)


def load_halt_page(connection: PooledConnection, walk: Walk) -> Page[HaltRow]:
    """One page of all halts that ever stood, the latest first."""
    compare, order = walk.words(descending=True)
    after = ""
    values: dict[str, object] = {"limit": walk.size + 1, "upto": walk.upto}
    if walk.cursor is not None:
        after = f"AND (engaged_at, halt_id) {compare} (%(at)s, %(id)s)"
        values |= {"at": walk.cursor.at, "id": walk.cursor.row_id}
    found = connection.execute(
        f"""
        SELECT *, db_now() AS as_of FROM halt
         WHERE (%(upto)s::timestamptz IS NULL OR engaged_at <= %(upto)s) {after}
         ORDER BY engaged_at {order}, halt_id {order} LIMIT %(limit)s
        """,
        values,
    ).fetchall()
    as_of = found[0]["as_of"] if found else walk.upto or datetime.now(UTC)
    kept, earlier, later = walk.cut(found, lambda row: (row["engaged_at"], str(row["halt_id"])))
    rows = tuple(halt_row({name: row[name] for name in row if name != "as_of"}) for row in kept)
    return Page(rows, earlier, later, len(rows), later is not None, as_of)


def one_halt(connection: PooledConnection, halt_id: UUID) -> HaltRow | None:
    """The halt of this id, standing or released."""
    row = connection.execute("SELECT * FROM halt WHERE halt_id = %s", [halt_id]).fetchone()
    return halt_row(row) if row else None


def load_backlog(connection: PooledConnection, scope: str) -> Backlog:
    """What a release of this scope would let go, and how much of it at once."""
    waiting = connection.execute(_BACKLOG, {"scope": scope}).fetchone()
    pace = connection.execute(_PACE, {"lost": LOST_AFTER}).fetchone()
    assert waiting is not None  # noqa: S101 - an aggregate has one row
    assert pace is not None  # noqa: S101 - an aggregate has one row
    return Backlog(**waiting, **pace)


def load_held_back(connection: PooledConnection, scopes: Sequence[str]) -> HeldBack:
    """How much each scope holds back, or would: these ones, and every wide one that has work.

    No more than `COUNT_CAP` of what waits is looked at, so that a flood costs no more than that.
    """
    named = [each.partition(":") for each in scopes]
    values = {
        "accounts": [name for kind, _, name in named if kind == "account"],
        "events": [name for kind, _, name in named if kind == "event"],
        "cap": COUNT_CAP,
    }
    rows = connection.execute(_HELD_BACK, values).fetchall()
    by_scope = {shown(row["scope"]): Held(row["living"], row["dead"]) for row in rows}
    all_of_it = by_scope.get("all", Held())
    return HeldBack(by_scope, all_of_it.living + all_of_it.dead >= COUNT_CAP, COUNT_CAP)


def halt_row(row: dict[str, Any]) -> HaltRow:
    """The row with its free texts made safe to show."""
    texts = ("scope", "reason", "engaged_by", "released_by", "release_reason")
    return HaltRow(**{**row, **{name: shown(row[name]) for name in texts}})
