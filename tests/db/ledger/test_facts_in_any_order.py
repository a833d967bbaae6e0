"""Small cases that the state machine found: neither order nor what is over decides anything."""

from __future__ import annotations

import pytest

from notifier.domain.outcome import Accepted, Refused
from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.flow.cancel import cancel
from notifier.flow.receipts import _row
from notifier.ports.asking import ProviderReceipt
from notifier.store.ledger import receipts as inbox
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, receipt
from tests.db.rig import Rig
from tests.db.test_foundation import NOON

S = ReceiptStatus


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A process whose email provider reports deliveries."""
    return make_rig(reports=True)


def test_p12_a_receipt_that_teaches_the_id_brings_in_what_waited_for_it(rig: Rig) -> None:
    notice_id = rig.admit()
    rig.start(provider=POSTMARK)
    rig.tell(receipt(S.DELIVERED, None, provider_message_id="pm-1"))
    assert rig.state(notice_id) == "attempted"

    rig.tell(receipt(S.ACCEPTED, provider_message_id="pm-1"))

    assert rig.state(notice_id) == "delivered"
    assert rig.reasons(notice_id)[-2:] == ["receipt", "receipt"]
    assert rig.count("receipt WHERE applied_at IS NULL") == 0


@pytest.mark.parametrize("receipt_first", [True, False])
def test_p12_after_expiry_a_receipt_does_not_take_the_holders_answer_away(
    rig: Rig, clock: Clock, receipt_first: bool
) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit()
    claim = rig.start(provider=POSTMARK)
    clock.freeze(claim.expires_at)
    late = receipt(S.DELIVERED)

    if receipt_first:
        rig.tell(late)
    rig.record(claim, Accepted("pm-1"))
    if not receipt_first:
        rig.tell(late)

    assert rig.state(notice_id) == "expired"
    assert rig.delivery(notice_id)["reason"] == "unconfirmed_at_expiry"
    assert "late_receipt" in rig.reasons(notice_id)


def test_a_notice_that_failed_never_changes_again_whoever_cancels_it(rig: Rig) -> None:
    notice_id = rig.admit()
    rig.record(rig.start(provider=POSTMARK), Refused(Detail.INVALID_DESTINATION))

    told = cancel(rig.desk, notice_id, "used")

    assert told.state == "failed"
    assert rig.notice(notice_id)["canceled_at"] is None


def test_what_no_sweep_looked_at_yet_is_applied_in_the_order_in_which_it_came(rig: Rig) -> None:
    notice_id = rig.admit()
    rig.start(provider=POSTMARK)
    for status in (S.ACCEPTED, S.DELIVERED, S.FAILED):
        store_only(rig, receipt(status))
    later = "UPDATE receipt SET received_at = received_at + '1s' WHERE status = 'accepted'"
    rig.rewrite("receipt", later)

    rig.sweep_parked()

    moves = [row["to_state"] for row in rig.trail(notice_id) if row["receipt_id"]]
    assert moves == ["accepted", "delivered", "failed"]


def store_only(rig: Rig, told: ProviderReceipt) -> None:
    """As a process does that ends before it can apply what it stored."""
    with rig.database.connection() as connection:
        inbox.keep(connection, [_row(told, "callback")])
