"""A provider that is asked what became of an unknown outcome, and each look as it falls due."""

from __future__ import annotations

from notifier.domain.outcome import Unknown
from notifier.domain.reasons import Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.values import Destination
from notifier.flow.desk import Asks
from notifier.ports.asking import Found, Looked
from notifier.store.ledger.claim import Claim
from tests.database import Clock
from tests.db.ledger.telling import POSTMARK, TWILIO, Asked, Links, receipt, reconciler, start_new
from tests.db.rig import Rig

TRUSTING = {"absence_conclusive": [POSTMARK, TWILIO], "settle_s": 20.0}
ASKS = {name: Asks(can_find=True, can_poll=True) for name in (POSTMARK, TWILIO)}
FOUND = Found([receipt(ReceiptStatus.DELIVERED, provider_message_id="pm-1")])


def unknown(rig: Rig, reference: str = "ref-1") -> Claim:
    claim = start_new(rig, reference)
    rig.record(claim, Unknown(Reason.TIMEOUT), reference)
    return claim


def look(rig: Rig, lookup: Asked, links: Links | None = None) -> int:
    with rig.database.connection() as connection:
        return reconciler(rig, lookup, links).reconcile(connection)


def look_when_due(rig: Rig, clock: Clock, lookup: Asked, *says: Looked) -> None:
    """One look for each answer, each at the moment when it falls due."""
    for answer in says:
        lookup.says = answer
        due = rig.one("SELECT min(next_check_at) AS at FROM delivery")["at"]
        clock.freeze(due)
        assert look(rig, lookup) == 1


def keep_contact(rig: Rig, destination: Destination) -> None:
    rig.run(
        "INSERT INTO contact SELECT notice_id, %s, '', %s, 'link', db_now() FROM notice",
        destination.channel,
        bytes.fromhex(destination.fingerprint(b"fingerprint key")),
    )
