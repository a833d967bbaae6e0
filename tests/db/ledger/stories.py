"""One notice with an email queued and a text in reserve, ten minutes of life, and its clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from notifier.domain.outcome import Outcome
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow import expiry
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.ledger.telling import POSTMARK, TWILIO, receipt
from tests.db.rig import BOTH, Rig
from tests.db.test_foundation import NOON

EMAIL, SMS = BOTH
S = ReceiptStatus
TICK = timedelta(microseconds=1)
PROVIDERS = {EMAIL: POSTMARK, SMS: TWILIO}
SWEEPS = (expiry.decide_fallbacks, expiry.expire)


@dataclass
class Story:
    """One notice, its clock, and what happens to it."""

    rig: Rig
    clock: Clock
    notice_id: UUID

    @property
    def fallback_at(self) -> datetime:
        at: datetime = self.rig.trail(self.notice_id)[0]["recorded_at"] + timedelta(seconds=300)
        return at

    def stop_at(self, channel: Channel) -> datetime:
        at: datetime = self.rig.delivery(self.notice_id, channel)["stop_at"]
        return at

    def at(self, moment: datetime) -> None:
        """Be there, and let the sweeps run."""
        self.clock.freeze(moment)
        for sweep in SWEEPS:
            with self.rig.database.connection() as connection:
                sweep(self.rig.desk, connection)

    def claim(self, channel: Channel) -> list[Claim]:
        return self.rig.claim(channel=channel, provider=PROVIDERS[channel])

    def intend(self, claim: Claim) -> Verdict:
        reference = f"ref-{claim.channel}-{claim.fence}"
        provider = PROVIDERS[Channel(claim.channel)]
        return self.rig.intent(claim, reference, provider=provider).verdict

    def start(self, channel: Channel) -> Claim:
        [claim] = self.claim(channel)
        assert self.intend(claim) is Verdict.STARTED
        return claim

    def answer(self, claim: Claim, outcome: Outcome) -> None:
        self.rig.record(claim, outcome, f"ref-{claim.channel}-{claim.fence}")

    def tell(self, status: S, channel: Channel = EMAIL) -> None:
        self.rig.tell(receipt(status, f"ref-{channel}-1", provider=PROVIDERS[channel]))

    def stands(self, channel: Channel) -> tuple[str, str]:
        delivery = self.rig.delivery(self.notice_id, channel)
        return delivery["state"], delivery["reason"]

    @property
    def states(self) -> tuple[str, str]:
        return self.stands(EMAIL)[0], self.stands(SMS)[0]

    @property
    def started(self) -> list[str]:
        return sorted(row["channel"] for row in self.rig.attempts(self.notice_id))


def begin_story(rig: Rig, clock: Clock) -> Story:
    clock.freeze(NOON)
    return Story(rig, clock, rig.admit_for_both())
