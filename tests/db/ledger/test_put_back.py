"""Where a claim goes when no attempt is made, and how a life is shortened."""

from __future__ import annotations

from datetime import timedelta

import pytest

from notifier.domain.link_faults import LinkFault
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.flow import halts, put_back
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import BOTH, Rig
from tests.db.test_foundation import NOON


@pytest.mark.parametrize("reason", [Reason.HALTED, Reason.PROVIDER_PAUSED, Reason.SHUTDOWN])
def test_a_claim_is_handed_back_and_due_at_once(rig: Rig, reason: Reason) -> None:
    rig.admit()
    claim = rig.claim_one()

    put_back.hand_back(rig.desk, claim, reason)

    assert rig.delivery(claim.notice_id)["reason"] == reason
    assert rig.claim_one().fence == 2


def test_a_claim_without_a_link_waits_longer_each_time_and_uses_up_no_attempt(
    rig: Rig, clock: Clock
) -> None:
    now = clock.freeze(NOON)
    notice_id = rig.admit()
    for tries, wait_s in enumerate((1, 2, 5, 10, 10), start=1):
        put_back.hand_back_for_link(rig.desk, rig.claim_one(), LinkFault.HTTP_401)
        delivery = rig.delivery(notice_id)

        assert (delivery["reason"], delivery["link_tries"]) == ("link_unavailable", tries)
        waited = (delivery["due_at"] - now).total_seconds()
        assert 0.8 * wait_s <= waited <= 1.2 * wait_s
        now = clock.freeze(delivery["due_at"])
    assert rig.delivery(notice_id)["attempts"] == 0


def test_why_no_link_was_given_stands_on_the_trail_and_beside_the_delivery_until_the_next_claim(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit()
    put_back.hand_back_for_link(rig.desk, rig.claim_one(), LinkFault.RESET_URL_NOT_HTTPS)

    delivery = rig.delivery(notice_id)
    assert delivery["detail"] == "reset_url_not_https"
    told = rig.trail(notice_id)[-1]
    assert (told["reason"], told["detail"]) == ("link_unavailable", "reset_url_not_https")
    assert told["evidence"] is None

    clock.freeze(delivery["due_at"])
    rig.claim_one()
    assert rig.delivery(notice_id)["detail"] is None


def test_what_the_link_answer_taught_suppresses_the_channel(rig: Rig) -> None:
    rig.admit()
    claim = rig.claim_one()

    put_back.suppress(rig.desk, claim, Reason.NO_DESTINATION)

    assert rig.delivery(claim.notice_id)["reason"] == "no_destination"
    assert rig.notice(claim.notice_id)["state"] == "suppressed"


def test_a_fault_before_the_call_fails_the_delivery(rig: Rig) -> None:
    rig.admit()
    claim = rig.claim_one()

    put_back.fail(rig.desk, claim, Reason.RENDER_FAILED)

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["state"], delivery["may_have_left"]) == ("failed", False)


def test_p9_a_claim_that_is_somebody_elses_by_now_is_left_alone(rig: Rig, clock: Clock) -> None:
    rig.admit()
    claim = rig.claim_one()
    put_back.hand_back(rig.desk, claim, Reason.SHUTDOWN)
    [theirs] = rig.claim(owner="worker-2")
    before = rig.trail(claim.notice_id)

    put_back.hand_back(rig.desk, claim, Reason.HALTED)
    put_back.hand_back_for_link(rig.desk, claim, LinkFault.HTTP_401)
    put_back.suppress(rig.desk, claim, Reason.NO_DESTINATION)
    put_back.fail(rig.desk, claim, Reason.RENDER_FAILED)
    put_back.stand_back(rig.desk, claim, Verdict.FENCED)

    assert rig.trail(claim.notice_id) == before
    assert rig.intent(theirs, owner="worker-2").verdict is Verdict.STARTED


@pytest.mark.parametrize(
    ("verdict", "state", "reason"),
    [
        (Verdict.HALTED, "queued", "halted"),
        (Verdict.PAUSED, "queued", "provider_paused"),
        (Verdict.TOO_LATE, "expired", "too_close_to_expiry"),
    ],
)
def test_a_claim_goes_where_the_intents_verdict_wants_it(
    rig: Rig, clock: Clock, verdict: Verdict, state: str, reason: str
) -> None:
    rig.admit()
    claim = rig.claim_one()
    if verdict is Verdict.TOO_LATE:
        clock.freeze(claim.stop_at)

    put_back.stand_back(rig.desk, claim, verdict)

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["state"], delivery["reason"]) == (state, reason)


def test_a_shortened_life_moves_every_end_and_is_written_down_once(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    now = clock.freeze(NOON)
    notice_id = rig.admit_for_both()
    claim = rig.claim_one()
    before = {channel: rig.delivery(notice_id, channel) for channel in Channel}
    earlier = now + timedelta(seconds=400)

    put_back.shorten(rig.desk, claim, earlier)
    put_back.shorten(rig.desk, claim, earlier + timedelta(seconds=100))

    notice = rig.notice(notice_id)
    assert notice["expires_at"] == earlier
    for channel, was in before.items():
        delivery = rig.delivery(notice_id, channel)
        assert delivery["expires_at"] == earlier
        assert was["stop_at"] - delivery["stop_at"] == timedelta(seconds=200)
    assert rig.reasons(notice_id).count("life_shortened") == 1


def test_p6_a_shortened_life_brings_the_fallback_forward_while_a_text_can_still_help(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    now = clock.freeze(NOON)
    notice_id = rig.admit_for_both()
    claim = rig.claim_one()
    assert rig.notice(notice_id)["fallback_at"] == now + timedelta(seconds=300)

    put_back.shorten(rig.desk, claim, now + timedelta(seconds=300))

    fallback_at = rig.notice(notice_id)["fallback_at"]
    assert fallback_at == now + timedelta(seconds=300 - 90)
    assert fallback_at < rig.delivery(notice_id, Channel.SMS)["stop_at"]


def test_p5_nothing_starts_after_a_shortened_life(rig: Rig, clock: Clock) -> None:
    now = clock.freeze(NOON)
    rig.admit()
    claim = rig.claim_one()
    put_back.shorten(rig.desk, claim, now + timedelta(seconds=100))
    clock.freeze(now + timedelta(seconds=100 - 15))

    assert rig.intent(claim).verdict is Verdict.TOO_LATE


@pytest.mark.parametrize("why", ["used", "superseded", "revoked"])
def test_a_reset_that_has_ended_cancels_the_notice(rig: Rig, why: str) -> None:
    rig.admit()
    claim = rig.claim_one()

    put_back.end_reset(rig.desk, claim, why)

    assert rig.delivery(claim.notice_id)["reason"] == f"reset_{why}"
    notice = rig.notice(claim.notice_id)
    assert (notice["state"], notice["canceled_reason"]) == ("canceled", why)


def test_a_reset_that_has_expired_expires_the_notice(rig: Rig) -> None:
    rig.admit()
    claim = rig.claim_one()

    put_back.end_reset(rig.desk, claim, "expired")

    assert rig.delivery(claim.notice_id)["reason"] == "window_closed"
    assert rig.notice(claim.notice_id)["state"] == "expired"


def test_work_under_a_halt_waits_and_is_due_when_it_is_released(rig: Rig) -> None:
    rig.admit()
    claim = rig.claim_one()
    halts.engage(rig.database, scope="all", reason="a drill", by="ops")
    put_back.stand_back(rig.desk, claim, rig.intent(claim).verdict)
    assert rig.claim(1) == []

    halts.release(rig.database, scope="all", reason="over", by="ops")

    assert len(rig.claim(1)) == 1
