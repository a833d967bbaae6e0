"""One look at the alert rules, written down: by whoever's turn it is, whichever process that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

import psycopg

from notifier.flow.policies import PolicyShelf
from notifier.logs import fault_fields, log
from notifier.signals.causes import begun_anew
from notifier.signals.episodes import Change, Move, as_opened, decide
from notifier.signals.judgements import Judged
from notifier.signals.limits import Limits, limits_of
from notifier.signals.rules import judge
from notifier.store import alerts, rollups
from notifier.store.alerts import Seen, Standing
from notifier.store.database import PooledConnection
from notifier.store.reads import signals
from notifier.store.reads.signals import Readings, Wanted

EVERY_S: Final = 5.0
"""Between two looks, where a token lives for five minutes and more; else a sixtieth of it."""
BY_ITSELF: Final = "watch"
"""Who resolves an episode whose limit is no longer crossed."""


@dataclass
class Judge:
    """Judges the rules under the policy in force.

    `receivers` are the names of those who are told; `period_of` gives a sweep's period (s);
    `seals`: checkpoints are made, so that a missing one is missed.
    """

    shelf: PolicyShelf
    owner: str
    period_of: Callable[[str], float]
    receivers: Sequence[str] = ()
    seals: bool = False
    life_s: float = field(default=0.0, init=False)

    @property
    def every_s(self) -> float:
        """Seconds between two looks."""
        return min(EVERY_S, self.life_s / 60) if self.life_s else EVERY_S

    def limits(self) -> Limits:
        """The limits in force, for the life that was last found."""
        stated_s = self.shelf.current()[1].alert["life_s"]
        return self._limits_for(self.life_s or stated_s or signals.USUAL_LIFE_S)

    def _limits_for(self, life_s: float) -> Limits:
        return limits_of(self.shelf.current()[1].alert, life_s, self.period_of)

    def take_turn(self, connection: PooledConnection) -> bool:
        """Judge if nobody did lately; whether it was done here."""
        turn = alerts.take_turn(connection, owner=self.owner, every_s=self.every_s)
        if turn is None:
            return False
        _count(connection)
        policy = self.shelf.current()[1]
        wanted = Wanted(
            policy.alert["life_s"], policy.max_life_s, policy.alert["provider_silent_share"],
            seals=self.seals, anew=begun_anew(),
        )  # fmt: skip
        seen = signals.look(connection, wanted)
        self.life_s = seen.life_s
        return self._write(connection, turn, seen)

    def sweep(self, connection: PooledConnection) -> int:
        """The same as a sweep's body: one look, and nothing left to do."""
        self.take_turn(connection)
        return 0

    def _write(self, connection: PooledConnection, turn: int, seen: Readings) -> bool:
        judged = judge(seen, self._limits_for(seen.life_s))
        with connection.transaction():
            if not alerts.holds_turn(connection, turn):
                return False
            standing = alerts.standing(connection)
            judged = as_opened(judged, standing, seen.life_s, partial(self._judge_for, seen))
            for change in decide(standing, judged, seen.at, self._close_after):
                self._apply(connection, change, seen)
            alerts.judged(connection, seen.life_s)
        return True

    def _judge_for(self, seen: Readings, life_s: float) -> Judged:
        return judge(seen, self._limits_for(life_s))

    def _close_after(self, standing: Standing) -> timedelta:
        return timedelta(seconds=self._limits_for(standing.life_s).close_s)

    def _apply(self, connection: PooledConnection, change: Change, seen: Readings) -> None:
        standing, judgement, now = change.standing, change.judgement, seen.at
        match change.move:
            case Move.DROP if standing:
                alerts.drop(connection, standing.episode_id)
            case Move.RESOLVE if standing:
                if alerts.resolve(connection, standing.episode_id, now, by=BY_ITSELF):
                    alerts.page(connection, standing.episode_id, "resolved", self.receivers)
            case Move.KEEP if standing and change.clear_since:
                alerts.clearing(
                    connection, standing.episode_id, change.clear_since,
                    value=judgement.value if judgement else None,
                    threshold=judgement.threshold if judgement else None,
                )  # fmt: skip
            case Move.HOLD | Move.OPEN | Move.KEEP if judgement:
                state = "held" if change.move is Move.HOLD else "open"
                episode_id = alerts.put(connection, _seen(change, state, seen.life_s), now)
                if change.move is Move.OPEN:
                    alerts.page(connection, episode_id, "opened", self.receivers)
                    log.warning("alert_opened", reason=change.rule, scope=change.key)
            case _:
                pass


def _seen(change: Change, state: str, life_s: float) -> Seen:
    judgement = change.judgement
    assert judgement is not None  # noqa: S101 - only what was judged is put
    return Seen(
        change.rule, change.key, state, change.crossed_at, judgement.value, judgement.threshold,
        judgement.unit, judgement.affected, life_s,
    )  # fmt: skip


def _count(connection: PooledConnection) -> None:
    """Count what is new, so that the rules see it also where no sweep runs."""
    try:
        rollups.count_new(connection)
    except psycopg.Error as error:
        log.warning("counting_failed", **fault_fields(error))
