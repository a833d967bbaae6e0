"""P8: every state follows from the trail alone, and one that does not is found."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from notifier.domain.event import PolicyMode
from notifier.domain.outcome import Accepted, Refused
from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow import expiry, rescue
from notifier.flow.cancel import cancel
from notifier.store.reads import trail_rebuild
from notifier.store.reads.trail_rebuild import Difference
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, receipt
from tests.db.ledger.test_trail import live_through_much
from tests.db.rig import BOTH, Rig


def live_all_lives(rig: Rig, clock: Clock) -> None:
    """Notices that end in every state a notice can end in, and some that have not ended."""
    live_through_much(rig, clock)
    rig.admit()
    rig.record(rig.start("ref-10"), Accepted("id-10"), "ref-10")
    rig.admit()
    rig.record(rig.start("ref-11"), Refused(Detail.INVALID_DESTINATION, "550"), "ref-11")
    rig.admit(mode=PolicyMode.SMS_ONLY, sms_consent=True)
    rig.record(rig.start("ref-12", Channel.SMS, "twilio"), Accepted("id-12"), "ref-12")
    cancel(rig.desk, rig.admit_for_both(), "operator")
    account = {"account_id": "acc-twice"}
    rig.admit(rig.event(**account))
    rig.admit(rig.event(**account, supersedes_earlier=True))
    rig.admit(rig.event(**account, requested_at=rig.now() - timedelta(seconds=120)))
    fallen_back = rig.admit_for_both()
    clock.advance(500)
    rig.settle(fallen_back)
    rig.start("ref-13", Channel.SMS, "twilio")
    clock.advance(60)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)
        expiry.expire(rig.desk, connection)
    rig.admit()


def test_p8_every_state_follows_from_the_trail_alone(make_rig: MakeRig, clock: Clock) -> None:
    rig = make_rig(channels=BOTH)
    live_all_lives(rig, clock)

    states = {row["state"] for row in rig.rows("SELECT state FROM notice")}

    assert states == {"complete", "failed", "canceled", "expired", "email_pending", "text_pending"}
    assert trail_rebuild.differences(rig.database) == []


def test_p8_what_receipts_taught_follows_from_the_trail_too(make_rig: MakeRig) -> None:
    rig = make_rig(reports=True)
    notice_id = rig.admit()
    claim = rig.start("ref-1", provider=POSTMARK)
    rig.tell(receipt(ReceiptStatus.DELIVERED))
    rig.record(claim, Accepted("id-1"))
    assert rig.notice(notice_id)["basis"] == "delivered"
    assert trail_rebuild.differences(rig.database) == []

    rig.tell(receipt(ReceiptStatus.FAILED))

    assert rig.state(notice_id) == "failed"
    assert trail_rebuild.differences(rig.database) == []


def completed(rig: Rig) -> UUID:
    claim = rig.start_new()
    rig.record(claim, Accepted("id-1"))
    return claim.notice_id


BY_HAND = {
    "UPDATE notice SET state = 'failed'": ("state", "failed", "complete"),
    "UPDATE notice SET basis = 'delivered'": ("basis", "delivered", "accepted"),
    "UPDATE notice SET canceled_at = created_at": ("canceled", True, False),
    "UPDATE delivery SET state = 'delivered' WHERE channel = 'email'": (
        "email state",
        "delivered",
        "accepted",
    ),
    "UPDATE delivery SET reason = 'receipt' WHERE channel = 'email'": (
        "email reason",
        "receipt",
        "provider_accepted",
    ),
    "UPDATE delivery SET attempts = 0 WHERE channel = 'email'": ("email attempts", 0, 1),
}


@pytest.mark.parametrize("statement", BY_HAND)
def test_p8_a_state_that_somebody_changed_by_hand_is_found(rig: Rig, statement: str) -> None:
    notice_id = completed(rig)
    rig.run("ALTER TABLE delivery DISABLE TRIGGER USER")

    rig.run(statement)

    assert trail_rebuild.differences(rig.database) == [Difference(notice_id, *BY_HAND[statement])]


def test_p8_a_delivery_that_is_gone_and_a_state_without_a_trail_are_found(rig: Rig) -> None:
    notice_id = completed(rig)

    rig.run("DELETE FROM delivery WHERE channel = 'sms'")
    gone = trail_rebuild.differences(rig.database)
    rig.run("ALTER TABLE transition DISABLE TRIGGER USER")
    rig.run("DELETE FROM transition")
    bare = trail_rebuild.differences(rig.database)

    assert [(each.what, each.stored) for each in gone] == [
        ("sms attempts", None),
        ("sms reason", None),
        ("sms state", None),
    ]
    assert {(each.notice_id, each.what, each.rebuilt) for each in bare} >= {
        (notice_id, "state", None),
        (notice_id, "email state", None),
    }


def test_p8_a_row_that_does_not_go_on_from_where_the_delivery_stood_is_found(rig: Rig) -> None:
    completed(rig)
    rig.run("ALTER TABLE transition DISABLE TRIGGER USER")

    rig.run("DELETE FROM transition WHERE reason = 'claimed'")

    [found] = trail_rebuild.differences(rig.database)
    assert found.stored == "row 5: email goes on from claimed, stood at queued"
