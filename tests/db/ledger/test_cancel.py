"""A cancel ends what has not left, keeps the first reason, and says what may have left."""

from __future__ import annotations

import pytest

from notifier.domain.cancels import CANCELS
from notifier.domain.event import Admitted
from notifier.domain.outcome import Accepted, NotAccepted, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.flow.cancel import Canceled, SignedForAnother, cancel, cancel_event
from notifier.store.ledger.held_rows import NoSuchNotice
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import BOTH, TRANSPORT, Rig


@pytest.mark.parametrize("why", CANCELS)
def test_what_has_not_left_is_canceled_and_says_why(make_rig: MakeRig, why: str) -> None:
    rig = make_rig(channels=BOTH)
    notice_id = rig.admit_for_both()

    told = cancel(rig.desk, notice_id, why)

    assert told == Canceled(told.state, [Channel.EMAIL, Channel.SMS], [])
    assert told.state == "canceled"
    assert {rig.delivery(notice_id, channel)["reason"] for channel in BOTH} == {CANCELS[why]}
    assert rig.reasons(notice_id)[3:] == ["cancel_recorded", CANCELS[why], CANCELS[why]]
    assert rig.notice(notice_id)["fallback_at"] is None


def test_what_is_canceled_says_nothing_of_a_try_that_was_not_accepted(rig: Rig) -> None:
    claim = rig.start_new()
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    assert rig.delivery(claim.notice_id)["detail"] == "unreachable"

    cancel(rig.desk, claim.notice_id, "used")

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["state"], delivery["reason"], delivery["detail"]) == (
        "canceled",
        "reset_used",
        None,
    )


def test_the_first_reason_stays_however_often_it_is_repeated(rig: Rig) -> None:
    notice_id = rig.admit()
    first = cancel(rig.desk, notice_id, "used")
    seq = rig.notice(notice_id)["seq"]

    again = cancel(rig.desk, notice_id, "revoked")

    assert again == first
    assert rig.notice(notice_id)["canceled_reason"] == "used"
    assert rig.notice(notice_id)["seq"] == seq


@pytest.mark.parametrize("is_unknown", [False, True], ids=["attempted", "unknown"])
def test_what_may_have_left_keeps_following_its_facts(rig: Rig, is_unknown: bool) -> None:
    claim = rig.start_new()
    if is_unknown:
        rig.record(claim, Unknown(Reason.TIMEOUT))

    told = cancel(rig.desk, claim.notice_id, "used")

    assert (told.state, told.canceled, told.may_have_left) == ("canceled", [], [Channel.EMAIL])
    rig.record(claim, Accepted("id-1"))
    assert rig.state(claim.notice_id) == "accepted"
    assert rig.notice(claim.notice_id)["state"] == "complete"


def test_a_claimed_delivery_is_canceled_under_its_holder(rig: Rig) -> None:
    rig.admit()
    claim = rig.claim_one()

    cancel(rig.desk, claim.notice_id, "revoked")

    assert rig.intent(claim).verdict == "fenced"
    assert rig.state(claim.notice_id) == "canceled"


def test_a_refusal_after_a_cancel_starts_no_text(make_rig: MakeRig) -> None:
    rig = make_rig(channels=BOTH)
    notice_id = rig.admit_for_both()
    claim = rig.start()
    cancel(rig.desk, notice_id, "used")

    rig.record(claim, Refused(Detail.BLOCKED))

    assert rig.state(notice_id, Channel.SMS) == "canceled"
    assert rig.notice(notice_id)["state"] == "canceled"


def test_what_is_over_is_not_canceled(rig: Rig, clock: Clock) -> None:
    notice_id = rig.admit()
    clock.advance(601)

    told = cancel(rig.desk, notice_id, "used")

    assert told.state == "expired"
    assert rig.notice(notice_id)["canceled_at"] is None


def test_nobody_can_cancel_a_notice_that_is_not_there(rig: Rig) -> None:
    with pytest.raises(NoSuchNotice):
        cancel(rig.desk, rig.one("SELECT gen_random_uuid() AS id")["id"], "used")


def test_a_later_request_supersedes_the_open_ones_and_an_older_one_that_comes_late(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze()
    earlier = rig.admit(account_id="acc")
    elsewhere = rig.admit(account_id="somebody-else")
    late = rig.event(account_id="acc", requested_at=now)
    clock.advance(10)

    rig.admit(rig.event(account_id="acc", supersedes_earlier=True))
    answer = rig.admission.admit(late, TRANSPORT)

    assert rig.delivery(earlier)["reason"] == "reset_superseded"
    assert rig.notice(earlier)["canceled_reason"] == "superseded"
    assert rig.state(elsewhere) == "queued"
    assert isinstance(answer, Admitted)
    assert (answer.status, answer.stop_at) == ("canceled", None)


SIGNED = b"\x01" * 32


def end(rig: Rig, event_id: str, digest: bytes = SIGNED, why: str = "used") -> Canceled | None:
    return cancel_event(rig.desk, rig.database, event_id, why, TRANSPORT, digest)


def test_a_signed_message_ends_one_event_and_no_other(rig: Rig) -> None:
    mine, other = rig.admit(), rig.admit()
    events = [rig.notice(each)["event_id"] for each in (mine, other)]

    first = end(rig, events[0])
    with pytest.raises(SignedForAnother):
        end(rig, events[1])

    assert end(rig, events[0]) == first
    assert rig.state(other) == "queued"
    assert end(rig, events[1], b"\x02" * 32) == first


def test_a_message_for_an_event_that_is_not_there_yet_is_still_good_for_it(rig: Rig) -> None:
    assert end(rig, "not-there-yet") is None
    notice_id = rig.admit()
    assert end(rig, rig.notice(notice_id)["event_id"]) is not None


def test_the_trail_names_the_key_that_signed_a_cancel(rig: Rig) -> None:
    notice_id = rig.admit()
    end(rig, rig.notice(notice_id)["event_id"])
    told = [row for row in rig.trail(notice_id) if row["reason"] == "cancel_recorded"]
    assert [row["evidence"] for row in told] == [
        {"reason": "used", "signing_key": TRANSPORT.key_id}
    ]
