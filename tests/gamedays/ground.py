"""A product in virtual time: its real ledger, sweeps and rules, moved on by a few seconds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import Accepted, NotAccepted, Outcome
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import expiry, put_back, rescue
from notifier.signals import rollups
from notifier.signals.judging import Judge
from notifier.store.database import PooledConnection
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.ledger.telling import receipt
from tests.db.rig import Rig

LIFE_S: Final = 600.0
TICK_S: Final = 5.0
PROVIDER: Final = "postmark"
SWEEPS: Final = ("claim", "expiry", "fallback", "rescue", "receipts", "poll", "rollup")
_numbers = itertools.count(1)

RAN: Final = """
INSERT INTO sweep_run AS r (name, owner, epoch, started_at, finished_at)
SELECT name, 'leader', 1, now, now FROM unnest(%s::text[]) AS name, (SELECT db_now() AS now) c
ON CONFLICT (name) DO UPDATE
   SET started_at = excluded.started_at, finished_at = excluded.finished_at
"""

Opened = tuple[str, str]


@dataclass
class GameDay:
    """Ticks of five seconds: traffic, sweeps, a look at the rules."""

    rig: Rig
    clock: Clock
    sweeps_run: bool = True
    rescues: bool = True
    """Whether the sweep that takes leases back finds what there is; it ends well all the same."""
    stalled: set[str] = field(default_factory=set)
    """Sweeps that do nothing and never end."""
    judge: Judge = field(init=False)
    told_later: list[tuple[datetime, str]] = field(default_factory=list)
    prompt: Callable[[], object] = lambda: None
    """What workers do between the passing of time and the look at the rules."""

    def __post_init__(self) -> None:
        self.judge = Judge(self.rig.shelf, "judge", lambda _: TICK_S)

    # --- traffic

    def admit(self, region: str = "GB") -> UUID:
        return self.rig.admit(region=region)

    def begin(self) -> tuple[str, Callable[[Outcome], None]]:
        """Claim the one that is due and commit its intent; how to record what came of it."""
        reference = f"ref-{next(_numbers)}"
        claim = self.rig.start(reference, provider=PROVIDER)
        return reference, lambda outcome: self.rig.record(claim, outcome, reference)

    def hold(self, notices: int) -> None:
        """Admit some and claim them, by a worker that goes no further."""
        for _ in range(notices):
            self.admit()
        assert len(self.rig.claim(notices, provider=PROVIDER, owner="dies")) == notices

    def leave_under_way(self, notices: int) -> None:
        """Admit some and begin to send them; nobody writes down what comes of it."""
        for _ in range(notices):
            self.admit()
            self.begin()

    def send(self, outcome: Outcome | None = None, *, region: str = "GB") -> str:
        """Admit one notice and send it at once; its reference."""
        self.admit(region)
        reference, record = self.begin()
        record(outcome or Accepted(f"id-{reference}"))
        return reference

    def send_and_hear(self, region: str = "GB", after_s: float = 8.0) -> None:
        """As `send`, and have the provider report the delivery a little later."""
        at = self.rig.now() + timedelta(seconds=after_s)
        self.told_later.append((at, self.send(region=region)))

    def work_off(self) -> None:
        """Send all that waits, and have it reported."""
        while taken := self.rig.claim(16, provider=PROVIDER):
            for claim in taken:
                reference = f"ref-{next(_numbers)}"
                self.rig.intent(claim, reference, provider=PROVIDER)
                self.rig.record(claim, Accepted(f"id-{reference}"), reference)
                self.told_later.append((self.rig.now() + timedelta(seconds=8), reference))

    def be_refused(self, outcome: NotAccepted) -> None:
        """Try to send all that waits, side by side, and be told this of each."""
        begun = []
        for claim in self.rig.claim(16, provider=PROVIDER):
            reference = f"ref-{next(_numbers)}"
            started = self.rig.intent(claim, reference, provider=PROVIDER)
            assert started.verdict is Verdict.STARTED
            begun.append((claim, reference))
        for claim, reference in begun:
            self.rig.record(claim, outcome, reference)

    def admit_and_work_off(self) -> None:
        """A tick of a product that has caught up, or is about to."""
        self.admit()
        self.work_off()

    def be_refused_links(self) -> None:
        """Ask in vain for the link of all that is due."""
        for claim in self.rig.claim(16, provider=PROVIDER):
            put_back.hand_back_for_link(self.rig.desk, claim, LinkFault.NO_ANSWER_IN_TIME)

    # --- time

    def tick(self) -> None:
        """Five seconds later: what providers tell, what the sweeps do, what the rules say."""
        now = self.clock.advance(TICK_S)
        due = [reference for at, reference in self.told_later if at <= now]
        self.told_later = [each for each in self.told_later if each[0] > now]
        for reference in due:
            self.rig.tell(receipt(ReceiptStatus.DELIVERED, reference))
        self.prompt()
        with self.rig.database.connection() as connection:
            if self.sweeps_run:
                self._sweep(connection)
            self.judge.take_turn(connection)

    def _sweep(self, connection: PooledConnection) -> None:
        expiry.expire(self.rig.desk, connection)
        if self.rescues and "rescue" not in self.stalled:
            rescue.rescue(self.rig.desk, connection)
        rollups.collect(self.rig.shelf, connection)
        connection.execute(RAN, [[name for name in SWEEPS if name not in self.stalled]])

    def run(self, seconds: float, each: Callable[[], object] = lambda: None) -> None:
        """Let time pass, with something done in each tick."""
        for _ in range(int(seconds / TICK_S)):
            each()
            self.tick()

    def until_opened(self, within_s: float, each: Callable[[], object] = lambda: None) -> datetime:
        """Let time pass until an alert has opened; when. AssertionError where none does."""
        for _ in range(int(within_s / TICK_S)):
            each()
            self.tick()
            if self.opened():
                return self.rig.now()
        held = self.rig.rows("SELECT rule, key, state, value, threshold FROM alert_episode")
        raise AssertionError(f"nothing opened within {within_s:g} s; held: {held}")

    # --- what was told

    def opened(self) -> list[Opened]:
        """Every episode that ever opened, by rule and key."""
        rows = self.rig.rows(
            "SELECT rule, key FROM alert_episode WHERE state <> 'held' ORDER BY opened_at, rule"
        )
        return [(row["rule"], row["key"]) for row in rows]
