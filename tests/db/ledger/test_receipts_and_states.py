"""What a receipt does to the state that stands: the stronger fact wins, the trail keeps both."""

from __future__ import annotations

from datetime import timedelta

import pytest

from notifier.domain.outcome import Accepted, NotAccepted
from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import expiry
from notifier.store.ledger.claim import Claim
from notifier.store.reads.notice import load_notice
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, parked, receipt, start_new
from tests.db.rig import Rig, Row
from tests.db.test_foundation import NOON

S = ReceiptStatus


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """One process whose email provider reports deliveries."""
    return make_rig(reports=True)


def current(rig: Rig, claim: Claim) -> Row:
    """What the notice page reads of the email's present."""
    with rig.database.connection() as connection:
        page = load_notice(connection, claim.notice_id)
    assert page is not None
    email = next(each for each in page.deliveries if each.channel == "email")
    return {"state": email.state, "reason": email.reason, "detail": email.detail}


def test_delivered_after_a_soft_bounce_shows_no_failure_but_its_history_does(rig: Rig) -> None:
    claim = start_new(rig)
    rig.record(claim, Accepted("pm-1"))
    rig.tell(receipt(S.DELAYED, detail=Detail.MAILBOX_FULL, provider_code="SoftBounce"))
    assert rig.state(claim.notice_id) == "accepted"

    rig.tell(receipt(S.DELIVERED))

    assert current(rig, claim) == {"state": "delivered", "reason": "receipt", "detail": None}
    soft = next(row for row in rig.trail(claim.notice_id) if row["detail"])
    assert (soft["detail"], soft["reason"]) == ("mailbox_full", "fact_receipt")
    assert soft["from_state"] == soft["to_state"] == "accepted"


def test_delivered_after_a_try_that_was_not_accepted_shows_no_failure(
    rig: Rig, clock: Clock
) -> None:
    claim = start_new(rig)
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    clock.advance(60)
    claim = rig.start("ref-2", provider=POSTMARK)
    rig.record(claim, Accepted("pm-2"), "ref-2")

    rig.tell(receipt(S.DELIVERED, "ref-2"))

    assert current(rig, claim) == {"state": "delivered", "reason": "receipt", "detail": None}


NO_STATES = (S.DELAYED, S.INFORMATION, S.UNMAPPED)


@pytest.mark.parametrize(
    ("status", "lesser"),
    [
        (S.ACCEPTED, (S.ACCEPTED, *NO_STATES)),
        (S.DELIVERED, (S.ACCEPTED, S.DELIVERED, *NO_STATES)),
        (S.FAILED, (S.ACCEPTED, S.DELIVERED, S.FAILED, *NO_STATES)),
    ],
)
def test_a_state_is_never_taken_back_by_a_lesser_fact(
    rig: Rig, status: S, lesser: tuple[S, ...]
) -> None:
    claim = start_new(rig)
    rig.tell(receipt(status))

    for each in lesser:
        rig.tell(receipt(each, provider_code="again"))

    assert rig.state(claim.notice_id) == status
    facts = [row for row in rig.trail(claim.notice_id) if row["receipt_id"]]
    assert len(facts) == 1 + len(lesser)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (S.FAILED, S.DELIVERED, "contradicting_receipt"),
        (S.DELIVERED, S.FAILED, "bounced_after_delivery"),
    ],
)
def test_what_contradicts_before_expiry_is_written_down(
    rig: Rig, first: S, second: S, reason: str
) -> None:
    claim = start_new(rig)

    rig.tell(receipt(first, detail=Detail.BLOCKED if first is S.FAILED else None))
    rig.tell(receipt(second, provider_code="2"))

    assert rig.state(claim.notice_id) == "failed"
    assert rig.reasons(claim.notice_id)[-1] == reason
    assert rig.notice(claim.notice_id)["state"] == "failed"


@pytest.mark.parametrize("status", [S.DELIVERED, S.FAILED])
def test_after_expiry_and_without_its_contact_a_receipt_is_a_fact_only(
    rig: Rig, clock: Clock, status: S
) -> None:
    clock.freeze(NOON)
    claim = start_new(rig)
    rig.record(claim, Accepted("pm-1"))
    clock.advance(601)
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)
    rig.run("DELETE FROM contact")
    before = rig.delivery(claim.notice_id)
    occurred = clock.now() - timedelta(seconds=30)

    rig.tell(receipt(status, None, provider_message_id="pm-1", occurred_at=occurred))

    assert rig.delivery(claim.notice_id) == before
    assert before["state"] == "expired"
    last = rig.trail(claim.notice_id)[-1]
    assert (last["reason"], last["occurred_at"]) == ("late_receipt", occurred)
    assert last["remaining_us"] < 0
    assert parked(rig) == 0


def test_a_hard_failure_after_expiry_contradicts_what_was_delivered_and_changes_nothing(
    rig: Rig, clock: Clock
) -> None:
    claim = start_new(rig)
    rig.tell(receipt(S.DELIVERED))
    clock.advance(601)

    rig.tell(receipt(S.FAILED, detail=Detail.BLOCKED))

    assert rig.state(claim.notice_id) == "delivered"
    assert rig.notice(claim.notice_id)["state"] == "complete"
    assert rig.reasons(claim.notice_id)[-1] == "contradicting_receipt"


def test_p1_a_receipt_for_an_earlier_attempt_stops_the_retry_under_its_holder(
    rig: Rig, clock: Clock
) -> None:
    claim = start_new(rig)
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    clock.advance(60)
    again = rig.claim_one(provider=POSTMARK)

    rig.tell(receipt(S.DELIVERED))

    assert rig.intent(again, "ref-2", provider=POSTMARK).verdict == "fenced"
    assert rig.delivery(claim.notice_id)["reason"] == "earlier_attempt_found"
    assert len(rig.attempts(claim.notice_id)) == 1
