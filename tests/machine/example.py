"""What one example knows of both sides, and what must be the same after each rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from notifier.domain.event import ResetEvent
from notifier.domain.outcome import NotAccepted, Outcome
from notifier.domain.values import RenderedMessage
from notifier.flow import turns
from notifier.flow.dispatch import Dispatch, Granted, Started
from notifier.ports.asking import ProviderReceipt
from notifier.ports.sending import Connection
from notifier.store.ledger.claim import Claim
from tests.machine.compare import compared
from tests.machine.ground import Ground, Row
from tests.machine.model import protocol
from tests.machine.model.facts import Notice
from tests.machine.model.world import World

Edge = tuple[str, str, str]


@dataclass
class Worker:
    """Somebody who holds a claim; whoever is never asked to go on has crashed or is frozen."""

    dispatch: Dispatch
    claim: Claim
    notice: Notice
    owner: str
    stage: str = "claimed"
    granted: Granted | None = None
    message: RenderedMessage | None = None
    line: Connection | NotAccepted | None = None
    started: Started | None = None
    started_at: datetime | None = None
    outcome: Outcome | None = None

    @property
    def channel(self) -> str:
        return self.claim.channel


@dataclass
class Example:
    """One example, and when its two sides are compared."""

    ground: Ground
    edges: Counter[Edge]
    world: World = field(init=False)
    ids: dict[str, UUID] = field(default_factory=dict)
    events: dict[str, ResetEvent] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)
    receipts: list[ProviderReceipt] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    sent: Counter[str] = field(default_factory=Counter)
    counter: int = 0
    stale: bool = False

    def __post_init__(self) -> None:
        kind = self.ground.kind
        self.ground.begin()
        self.world = World(kind.terms, kind.providers, kind.reports, kind.regions, kind.cap)

    @property
    def now(self) -> datetime:
        return self.ground.now

    @property
    def notices(self) -> list[Notice]:
        return list(self.world.notices.values())

    def compare(self) -> None:
        """Have both sides compared before anybody acts on what they show."""
        self.stale = True

    def compared(self) -> None:
        """Everything that the design lets anybody see must be the same on both sides."""
        if not self.stale or not self.ids:
            return
        self.stale = False
        after = min(self.seen[name] for name in self.ids)
        looked = self.ground.look(list(self.ids.values()), after)
        self.rows = looked[1]
        names = {notice_id: name for name, notice_id in self.ids.items()}
        for row in compared(self.world, names, self.seen, looked):
            self.edges[(row["from_state"] or "(new)", row["to_state"], row["reason"])] += 1

    def _named(self, notice_id: UUID) -> Notice:
        return next(each for each in self.notices if self.ids[each.name] == notice_id)

    def _leave(self, worker: Worker) -> None:
        """It ends alive, and gives back what turn it had."""
        if worker in self.workers:
            self.workers.remove(worker)
        rig, provider = self.ground.rig, self._provider(worker.channel)
        turns.give_back(rig.database, rig.desk, worker.claim, provider)
        self.world.give_turn_back(provider, worker.claim.turn_until, self.now)
        self.compare()

    def _provider(self, channel: str) -> str:
        return self.ground.kind.providers[channel]

    def _put(self, worker: Worker, end: str, reason: str) -> None:
        fence = worker.claim.fence
        protocol.put(self.world, worker.notice, worker.channel, fence, end, reason, now=self.now)
        self.compare()
