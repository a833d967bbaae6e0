"""A text is found by its destination and its time, and only where nobody else could own it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from notifier.domain.event import Given, PolicyMode
from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import Accepted, Unknown
from notifier.domain.reasons import Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Destination, Secret
from notifier.ports.asking import Capability, Found
from notifier.ports.links import LinkAnswer, LinkGone, LinkGranted, LinkUnavailable, LinkWithheld
from notifier.store.ledger.claim import Claim
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.looking import (
    ASKS,
    TRUSTING,
    look,
)
from tests.db.ledger.telling import TWILIO, Asked, Links, receipt
from tests.db.rig import BOTH, Rig
from tests.db.test_foundation import NOON

S = ReceiptStatus
NUMBER = Destination(Channel.SMS, "+447700900123")
OTHER = Destination(Channel.SMS, "+447700900124")


@pytest.fixture
def texting(make_rig: MakeRig, clock: Clock) -> Rig:
    clock.freeze(NOON)
    return make_rig(channels=BOTH, reports=True, policy=TRUSTING, asks=ASKS)


def text(rig: Rig, reference: str = "ref-1", to: Destination = NUMBER) -> Claim:
    """A text whose outcome is unknown."""
    rig.admit(
        mode=PolicyMode.SMS_ONLY,
        sms_consent=True,
        sms=Given(to, Secret(to.reveal())),
    )
    claim = rig.start(reference, Channel.SMS, TWILIO)
    rig.record(claim, Unknown(Reason.TIMEOUT), reference)
    return claim


def message(sid: str = "SM1", at: datetime | None = NOON) -> Any:
    return receipt(S.DELIVERED, None, provider=TWILIO, provider_message_id=sid, occurred_at=at)


def look_for_text(rig: Rig, clock: Clock, *found: Any, answer: LinkAnswer | None = None) -> Asked:
    lookup = Asked(TWILIO, Channel.SMS, Capability.BY_DESTINATION, says=Found(found))
    clock.freeze(rig.one("SELECT min(next_check_at) AS at FROM delivery")["at"])
    look(rig, lookup, Links(answer or LinkGranted(NUMBER, None)))
    return lookup


def test_a_text_is_found_by_its_destination_and_its_time(texting: Rig, clock: Clock) -> None:
    claim = text(texting)

    lookup = look_for_text(texting, clock, message())

    assert texting.state(claim.notice_id, Channel.SMS) == "delivered"
    assert texting.attempts(claim.notice_id)[0]["provider_message_id"] == "SM1"
    [question] = lookup.questions
    assert question.destination == NUMBER
    assert texting.one("SELECT reference FROM receipt") == {"reference": "ref-1"}


@pytest.mark.parametrize(
    ("seconds", "is_ours"),
    [(-5.1, False), (-5, True), (0, True), (25, True), (25.1, False)],
)
def test_only_a_message_from_the_attempts_own_time_can_be_it(
    texting: Rig, clock: Clock, seconds: float, *, is_ours: bool
) -> None:
    claim = text(texting)

    look_for_text(texting, clock, message(at=NOON + timedelta(seconds=seconds)))

    state = texting.state(claim.notice_id, Channel.SMS)
    assert state == ("delivered" if is_ours else "unknown")


def test_p3_a_message_that_another_attempt_could_own_is_nobodys(texting: Rig, clock: Clock) -> None:
    claims = [text(texting, f"ref-{number}") for number in range(2)]

    look_for_text(texting, clock, message())

    for claim in claims:
        assert texting.state(claim.notice_id, Channel.SMS) == "unknown"
        assert texting.delivery(claim.notice_id, Channel.SMS)["absent_looks"] == 0


def test_an_attempt_to_somebody_else_or_from_another_time_is_no_rival(
    texting: Rig, clock: Clock
) -> None:
    text(texting, "ref-elsewhere", OTHER)
    text(texting, "ref-before")
    texting.run("UPDATE delivery SET next_check_at = NULL")
    clock.advance(60)
    claim = text(texting, "ref-2")

    look_for_text(texting, clock, message(at=NOON + timedelta(seconds=60)))

    assert texting.state(claim.notice_id, Channel.SMS) == "delivered"


def test_a_message_that_belongs_to_another_attempt_is_not_taken_from_it(
    texting: Rig, clock: Clock
) -> None:
    owner = text(texting, "ref-1")
    texting.record(owner, Accepted("SM1"), "ref-1")
    claim = text(texting, "ref-2")

    look_for_text(texting, clock, message("SM1"))
    assert texting.state(claim.notice_id, Channel.SMS) == "unknown"

    look_for_text(texting, clock, message("SM1"), message("SM2"))
    assert texting.attempts(claim.notice_id)[0]["provider_message_id"] == "SM2"


def test_p3_of_two_messages_that_could_be_it_none_is(texting: Rig, clock: Clock) -> None:
    claim = text(texting)

    look_for_text(texting, clock, message("SM1"), message("SM2"))

    assert texting.state(claim.notice_id, Channel.SMS) == "unknown"


def named_by_a_receipt(rig: Rig) -> Claim:
    """A text whose message is known by its id; what became of it is not."""
    claim = text(rig)
    told = receipt(S.UNMAPPED, "ref-1", provider=TWILIO, provider_message_id="SM1")
    rig.tell(replace(told, identity=b"named"))
    return claim


@pytest.mark.parametrize("others", [[], ["SM2"]], ids=["alone", "beside another's"])
def test_the_message_that_a_receipt_named_is_found_also_where_others_could_be_it(
    texting: Rig, clock: Clock, others: list[str]
) -> None:
    claim = named_by_a_receipt(texting)
    text(texting, "ref-2")
    texting.run("UPDATE delivery SET next_check_at = NULL WHERE notice_id <> %s", claim.notice_id)

    look_for_text(texting, clock, *[message(sid) for sid in ("SM1", *others)])

    assert texting.state(claim.notice_id, Channel.SMS) == "delivered"


def test_p3_of_a_text_whose_message_is_known_no_other_message_tells_anything(
    texting: Rig, clock: Clock
) -> None:
    claim = named_by_a_receipt(texting)

    look_for_text(texting, clock, message("SM2"))

    assert texting.state(claim.notice_id, Channel.SMS) == "unknown"
    assert texting.attempts(claim.notice_id)[0]["provider_message_id"] == "SM1"
    assert texting.reasons(claim.notice_id)[-1] == "looked_not_found"


def test_a_message_that_goes_on_is_not_called_missing_by_the_next_look(
    texting: Rig, clock: Clock
) -> None:
    claim = text(texting)
    for number in range(3):
        going_on = replace(message(), status=S.DELAYED, identity=bytes([number]))
        look_for_text(texting, clock, going_on)

    assert texting.reasons(claim.notice_id)[-3:] == ["fact_receipt"] * 3


def test_several_facts_of_one_message_are_one_message(texting: Rig, clock: Clock) -> None:
    claim = text(texting)

    look_for_text(texting, clock, replace(message(), status=S.ACCEPTED, identity=b"1"), message())

    assert texting.state(claim.notice_id, Channel.SMS) == "delivered"


@pytest.mark.parametrize(
    "answer",
    [
        LinkGranted(OTHER, None),
        LinkWithheld("no_destination"),
        LinkUnavailable(LinkFault.HTTP_503, 503),
    ],
    ids=["changed", "404", "unavailable"],
)
def test_p3_without_the_attempts_own_destination_nobody_is_asked_and_nothing_is_proven(
    texting: Rig, clock: Clock, answer: LinkAnswer
) -> None:
    claim = text(texting)

    lookup = look_for_text(texting, clock, message(), answer=answer)

    assert lookup.questions == []
    assert texting.state(claim.notice_id, Channel.SMS) == "unknown"
    assert texting.delivery(claim.notice_id, Channel.SMS)["absent_looks"] == 0


def test_a_reset_that_ended_is_ended_by_the_look_that_learns_it(
    make_rig: MakeRig, clock: Clock
) -> None:
    clock.freeze(NOON)
    rig = make_rig(channels=BOTH, reports=True, asks=ASKS)
    claim = text(rig)

    lookup = look_for_text(rig, clock, message(), answer=LinkGone("used"))

    assert lookup.questions == []
    assert rig.notice(claim.notice_id)["canceled_reason"] == "used"
    assert rig.state(claim.notice_id, Channel.SMS) == "unknown"


def test_a_reset_that_the_look_learns_to_have_expired_expires(texting: Rig, clock: Clock) -> None:
    claim = text(texting)

    look_for_text(texting, clock, message(), answer=LinkGone("expired"))

    assert texting.delivery(claim.notice_id, Channel.SMS)["reason"] == "unknown_at_expiry"
    assert texting.delivery(claim.notice_id, Channel.SMS)["may_have_left"] is True
