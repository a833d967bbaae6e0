"""What the alert rules judge: open work as it stands, and what was counted a minute.

Every block walks open work through its partial index up to a limit, a few rows of state, or the
minutes of the last hour; none follows history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from notifier.domain.reasons import Detail
from notifier.store.ledger.pauses import Pause, standing
from notifier.store.reads import signals_beside as beside
from notifier.store.reads import signals_stalled as stalled
from notifier.store.reads.signals_beside import Turned
from notifier.store.reads.signals_heard import Heard, heard
from notifier.store.reads.signals_stalled import WALKED, Leases, Stuck
from notifier.store.reads.sweeps import SweepAge, sweep_ages
from notifier.store.reads.trail_checkpoints import NewestCheckpoint, newest

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

PAUSING: Final = [
    Detail.RATE_LIMITED, Detail.AUTH_ERROR, Detail.SENDER_REJECTED, Detail.ACCOUNT_SUSPENDED,
]  # fmt: skip
"""What a provider says of us, which pauses it for all."""
SHORT, MIDDLE, LONG = timedelta(minutes=5), timedelta(minutes=15), timedelta(hours=1)
USUAL_LIFE_S: Final = 600.0
"""Of a token, where no event tells of another."""
LONGEST_LIFE_S: Final = 3_600.0
"""A token that lives longer is watched as closely as one of this life."""
REMEMBERED: Final = 200
"""Events whose lives are looked at."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Work of a channel that is due, under no halt, and not claimed (ages in seconds).

    `over_budget`: of these how many have waited for longer than what is left to their stop;
    `least_wait_s` is the shortest such wait. `doomed`: how many come to their stop before their
    turn, at the pace of the last minutes or because of a pause.
    """

    channel: str
    waiting: int = 0
    oldest_s: float = 0.0
    over_budget: int = 0
    least_wait_s: float = 0.0
    doomed: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """One count in the last 5, 15 and 60 minutes."""

    short: int = 0
    middle: int = 0
    long: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.short + other.short, self.middle + other.middle, self.long + other.long)


Place = tuple[str, str, str]
"""Provider, region and signal of a tally."""


@dataclass(frozen=True, slots=True)
class Readings:
    """One look at everything, at the database's time `at`.

    `counted_s`: how old the counts are, None where nobody ever counted. `checkpoint` is None
    where none was made; `unsealed`: rows of the trail stand under no checkpoint.
    """

    at: datetime
    life_s: float
    ready: tuple[Ready, ...] = ()
    leases: Leases = field(default_factory=Leases)
    stuck: Stuck = field(default_factory=Stuck)
    tallies: Mapping[Place, Tally] = field(default_factory=dict)
    counted_s: float | None = None
    heard: tuple[Heard, ...] = ()
    pauses: tuple[Pause, ...] = ()
    sweeps: tuple[SweepAge, ...] = ()
    seals: bool = False
    checkpoint: NewestCheckpoint | None = None
    unsealed: bool = False
    local_sign_ins: int = 0
    """Since the last look, past an issuer."""
    turned: tuple[Turned, ...] = ()

    def tally(
        self,
        *signals: str,
        provider: str | None = None,
        region: str | None = None,
        without: Iterable[str] = (),
    ) -> Tally:
        """The sum over these signals; of one provider or region, or without some regions."""
        left_out = set(without)
        found = Tally()
        for (of_provider, of_region, signal), tally in self.tallies.items():
            if (
                signal in signals
                and provider in {None, of_provider}
                and region in {None, of_region}
                and of_region not in left_out
            ):
                found += tally
        return found

    def providers(self) -> list[str]:
        """The providers that anything was counted of."""
        return sorted({provider for provider, _, _ in self.tallies} - {""})

    def regions(self) -> list[str]:
        """The regions that anything was counted of."""
        return sorted({region for _, region, _ in self.tallies} - {""})


_LIFE: Final = """
    SELECT db_now() AS now, count(*) AS n,
           percentile_disc(0.1) WITHIN GROUP (ORDER BY life_s)::float8 AS life_s
      FROM (SELECT extract(epoch FROM expires_at - created_at) AS life_s FROM notice
             WHERE state NOT IN ('canceled', 'suppressed') AND expires_at > created_at
             ORDER BY notice_id DESC LIMIT %(remembered)s) AS lately
"""

# Whoever halted the work knows that it waits, so it is not looked at here. The place in the
# queue times the pace of the last minutes is when a row's turn comes.
_READY: Final = """
WITH clock AS MATERIALIZED (SELECT db_now() AS now),
    pace AS (
        SELECT channel, sum(n) / 120.0 AS per_s FROM rollup_count, clock
         WHERE signal = 'started' AND minute >= date_trunc('minute', clock.now) - interval '2 min'
           AND minute < date_trunc('minute', clock.now)
         GROUP BY channel),
    waiting AS MATERIALIZED (
        SELECT d.channel, d.due_at, d.stop_at, clock.now, p.until AS paused_until,
               row_number() OVER (PARTITION BY d.channel ORDER BY d.stop_at) AS place
          FROM clock CROSS JOIN (VALUES ('email'), ('sms')) c (channel)
          CROSS JOIN LATERAL (
              SELECT notice_id, channel, due_at, stop_at, provider FROM delivery
               WHERE state = 'queued' AND delivery.channel = c.channel
                 AND due_at <= clock.now AND stop_at > clock.now
               ORDER BY stop_at LIMIT %(walked)s) d
          JOIN notice n USING (notice_id)
          LEFT JOIN provider_pause p ON p.provider = d.provider AND p.until > clock.now
         WHERE NOT EXISTS (
             SELECT FROM halt x WHERE x.released_at IS NULL
                AND x.scope = ANY (ARRAY['all', 'channel:' || d.channel,
                    'provider:' || d.provider,
                    'template:' || n.template_id || '@' || n.template_revision,
                    'account:' || n.account_id, 'event:' || n.event_id])))
SELECT channel, count(*) AS waiting,
       extract(epoch FROM max(now - due_at))::float8 AS oldest_s,
       count(*) FILTER (WHERE now - due_at > stop_at - now) AS over_budget,
       coalesce(extract(epoch FROM min(now - due_at)
           FILTER (WHERE now - due_at > stop_at - now))::float8, 0) AS least_wait_s,
       count(*) FILTER (WHERE paused_until >= stop_at
           OR now + make_interval(secs => place / per_s) > stop_at) AS doomed
  FROM waiting LEFT JOIN pace USING (channel) GROUP BY channel
"""
# Both ends of a stretch of minutes are given: with one alone the planner reads the whole table.
# What pauses a provider is about us, not about a message: the pause tells of it. An outcome
# that was lost with its worker is none of the provider's: it is counted as a rescue. `over`: what
# was created a life earlier, of which some may have expired now. What an alert that has ended left
# behind is passed over: after it, notices count that were made since.
_TALLIES: Final = """
WITH clock AS MATERIALIZED (SELECT date_trunc('minute', db_now()) AS minute),
    counted AS MATERIALIZED (
        SELECT r.minute, r.provider, r.region, r.n,
               CASE WHEN r.signal = 'not_accepted' AND r.reason = ANY (%(pausing)s) THEN 'paused'
                    WHEN r.signal = 'unknown' AND r.reason = 'worker_lost' THEN 'lost'
                    ELSE r.signal END AS signal
          FROM rollup_count r
         WHERE r.minute > (SELECT minute FROM clock) - %(long)s
           AND r.minute <= (SELECT minute FROM clock) AND r.signal <> 'expired_step'
        UNION ALL
        SELECT r.minute + %(life)s, r.provider, r.region, r.n, 'over' FROM rollup_count r
         WHERE r.minute > (SELECT minute FROM clock) - %(long)s - %(life)s
           AND r.minute <= (SELECT minute FROM clock) - %(life)s AND r.signal = 'created'),
    anew AS MATERIALIZED (
        SELECT signal, max(e.resolved_at) + %(life)s AS since
          FROM clock, unnest(%(signals)s::text[], %(causes)s::text[]) AS a (signal, rule)
          JOIN alert_episode e USING (rule)
         WHERE e.state = 'resolved' AND e.resolved_at > clock.minute - %(long)s - %(life)s
         GROUP BY signal)
SELECT provider, region, signal,
       coalesce(sum(n) FILTER (WHERE c.minute > clock.minute - %(short)s), 0)::bigint AS short,
       coalesce(sum(n) FILTER (WHERE c.minute > clock.minute - %(middle)s), 0)::bigint AS middle,
       sum(n)::bigint AS long
  FROM clock CROSS JOIN counted c LEFT JOIN anew USING (signal)
 WHERE anew.since IS NULL OR c.minute >= anew.since
 GROUP BY 1, 2, 3
"""
_COUNTED: Final = """
    SELECT extract(epoch FROM db_now() - read_at)::float8 AS counted_s FROM rollup_reader
     WHERE NOT behind
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a look depends on: seconds, and whether there is a key for checkpoints.

    `anew`: a signal that is counted anew once an alert of a rule has ended, and that rule.
    """

    stated_life_s: float
    longest_life_s: float
    provider_silent_share: float
    seals: bool = False
    anew: tuple[tuple[str, str], ...] = ()


def life_of(connection: PooledConnection, wanted: Wanted) -> tuple[datetime, float]:
    """The database's time, and the life (s) that limits are taken from.

    The stated one; else nine in ten of the last events had at least this; an hour at most.
    """
    row = connection.execute(_LIFE, {"remembered": REMEMBERED}).fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    usual_s = min(USUAL_LIFE_S, wanted.longest_life_s)
    found: float = wanted.stated_life_s or row["life_s"] or usual_s
    return row["now"], min(found, LONGEST_LIFE_S)


def look(connection: PooledConnection, wanted: Wanted) -> Readings:
    """Everything that the rules judge, in a handful of short statements."""
    at, life_s = life_of(connection, wanted)
    silent = timedelta(seconds=wanted.provider_silent_share * life_s)
    life = timedelta(seconds=life_s)
    anew = {"signals": [each for each, _ in wanted.anew], "causes": [e for _, e in wanted.anew]}
    spans = {
        "pausing": PAUSING,
        "short": SHORT,
        "middle": MIDDLE,
        "long": LONG,
        "life": life,
        **anew,
    }
    counted = connection.execute(_COUNTED).fetchone()
    return Readings(
        at,
        life_s,
        ready=tuple(Ready(**row) for row in connection.execute(_READY, {"walked": WALKED})),
        leases=stalled.leases(connection),
        stuck=stalled.stuck(connection),
        tallies={_place(row): _tally(row) for row in connection.execute(_TALLIES, spans)},
        counted_s=counted["counted_s"] if counted else None,
        heard=heard(connection, lately=SHORT, silent=silent),
        pauses=tuple(standing(connection)),
        sweeps=tuple(sweep_ages(connection)),
        seals=wanted.seals,
        checkpoint=newest(connection) if wanted.seals else None,
        unsealed=wanted.seals and beside.unsealed(connection),
        local_sign_ins=beside.local_sign_ins(connection),
        turned=beside.turned(connection),
    )


def _place(row: Mapping[str, Any]) -> Place:
    return row["provider"], row["region"], row["signal"]


def _tally(row: Mapping[str, Any]) -> Tally:
    return Tally(row["short"], row["middle"], row["long"])
