"""What is not found proves nothing by itself; when it does, one more attempt may be made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from notifier.domain.outcome import Unknown
from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Destination
from notifier.flow import policies, rescue
from notifier.flow.cancel import cancel
from notifier.ports.asking import CannotTell, Capability, Found, Looked, NotFound
from notifier.ports.links import LinkGranted
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.looking import (
    ASKS,
    TRUSTING,
    keep_contact,
    look,
    look_when_due,
    unknown,
)
from tests.db.ledger.telling import POSTMARK, Asked, Links, receipt, start_new
from tests.db.rig import BUDGET, Rig
from tests.db.test_foundation import NOON

S = ReceiptStatus


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A process whose policy takes Postmark's word for an absence, twenty seconds after."""
    return make_rig(reports=True, policy=TRUSTING, asks=ASKS)


def test_three_looks_that_agree_after_the_settling_time_lead_to_one_more_attempt(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)

    look_when_due(rig, clock, Asked(), *[NotFound()] * 3)

    delivery, [attempt] = rig.delivery(claim.notice_id), rig.attempts(claim.notice_id)
    assert (delivery["state"], delivery["reason"]) == ("queued", "reconciled_absent")
    assert (delivery["may_have_left"], attempt["resolved_at"]) == (False, clock.now())
    again = rig.start("ref-2", provider=POSTMARK)
    assert [each["class"] for each in rig.attempts(again.notice_id)] == ["first", "retry-1"]


Break = Callable[[Rig, Asked], None]


def by_destination(rig: Rig, lookup: Asked) -> None:
    lookup.can_find = Capability.BY_DESTINATION
    keep_contact(rig, Destination(Channel.EMAIL, "a@example.test"))


def call_not_ended(rig: Rig, _lookup: Asked) -> None:
    rig.run("UPDATE attempt SET call_ended = false")


def end_not_known(rig: Rig, _lookup: Asked) -> None:
    rig.run("UPDATE attempt SET finished_at = NULL")


def worker_lost(rig: Rig, _lookup: Asked) -> None:
    rig.run("UPDATE attempt SET reason = 'worker_lost'")


def not_settled(rig: Rig, _lookup: Asked) -> None:
    rig.run("UPDATE attempt SET finished_at = finished_at + interval '10 minutes'")


@pytest.mark.parametrize(
    "without",
    [by_destination, call_not_ended, end_not_known, worker_lost, not_settled],
    ids=lambda each: each.__name__,
)
def test_p3_each_condition_alone_keeps_an_absence_from_being_proof(
    rig: Rig, clock: Clock, without: Break
) -> None:
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked()
    links = Links(LinkGranted(Destination(Channel.EMAIL, "a@example.test"), None))
    without(rig, lookup)

    for _ in range(6):
        clock.freeze(rig.delivery(claim.notice_id)["next_check_at"])
        look(rig, lookup, links)

    assert rig.state(claim.notice_id) == "unknown"
    assert rig.delivery(claim.notice_id)["absent_looks"] == 6
    assert len(lookup.questions) == 6


def test_p3_an_absence_proves_nothing_where_the_policy_does_not_say_so(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(reports=True, asks=ASKS, policy={"absence_conclusive": ["resend"]})
    clock.freeze(NOON)
    claim = unknown(rig)

    look_when_due(rig, clock, Asked(), *[NotFound()] * 8)

    assert rig.state(claim.notice_id) == "unknown"


def test_p3_the_policy_of_the_admission_decides_not_the_newest(
    make_rig: MakeRig, clock: Clock
) -> None:
    clock.freeze(NOON)
    before = make_rig(reports=True, asks=ASKS)
    claim = unknown(before)
    draft = Policy.from_document(TRUSTING)
    policies.keep(before.database, draft, base=1, author="ada", reason="it is trusted now")
    rig = make_rig(reports=True, asks=ASKS)
    assert rig.shelf.current() == (2, draft)

    look_when_due(rig, clock, Asked(), *[NotFound()] * 6)

    assert rig.state(claim.notice_id) == "unknown"


def test_p3_two_looks_are_not_several(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)
    rig.run("UPDATE delivery SET next_check_at = %s", clock.now() + timedelta(seconds=60))

    for looks, state in ((1, "unknown"), (2, "unknown"), (3, "queued")):
        look_when_due(rig, clock, Asked(), NotFound())
        assert rig.state(claim.notice_id) == state, looks


def test_p3_three_looks_before_the_settling_time_wait_for_it(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(reports=True, asks=ASKS, policy={**TRUSTING, "settle_s": 75.0})
    ended = clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked()
    look_when_due(rig, clock, lookup, *[NotFound()] * 3)
    assert rig.state(claim.notice_id) == "unknown"

    for second, state in ((74.999999, "unknown"), (75, "queued")):
        rig.run("UPDATE delivery SET next_check_at = db_now() WHERE channel = 'email'")
        clock.freeze(ended + timedelta(seconds=second))
        assert look(rig, lookup) == 1
        assert rig.state(claim.notice_id) == state


@pytest.mark.parametrize(
    "between",
    [CannotTell("status_503"), Found([receipt(S.DELAYED)]), Found([receipt(S.UNMAPPED)])],
    ids=["cannot tell", "found, going on", "found, unmapped"],
)
def test_p3_looks_agree_only_where_no_other_answer_stands_between_them(
    rig: Rig, clock: Clock, between: Looked
) -> None:
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked()
    look_when_due(rig, clock, lookup, NotFound(), NotFound(), between, NotFound(), NotFound())
    assert rig.state(claim.notice_id) == "unknown"

    look_when_due(rig, clock, lookup, NotFound())
    assert rig.state(claim.notice_id) == "queued"


def test_p3_an_attempt_whose_worker_was_lost_stays_unknown_until_its_caller_reports(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim = start_new(rig)
    clock.advance(BUDGET.total_seconds() + 3)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)
    look_when_due(rig, clock, Asked(), *[NotFound()] * 6)
    assert rig.delivery(claim.notice_id)["reason"] == "worker_lost"

    rig.record(claim, Unknown(Reason.TIMEOUT))
    look_when_due(rig, clock, Asked(), NotFound())
    assert rig.state(claim.notice_id) == "queued"


def test_p5_an_absence_that_is_proven_after_the_stop_time_starts_nothing(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)
    look_when_due(rig, clock, Asked(), NotFound(), NotFound())
    rig.run("UPDATE delivery SET next_check_at = stop_at WHERE channel = 'email'")

    look_when_due(rig, clock, Asked(), NotFound())

    delivery = rig.delivery(claim.notice_id)
    assert (delivery["state"], delivery["reason"]) == ("failed", "absent_no_time_left")
    assert delivery["may_have_left"] is False


def test_p6_an_absence_that_is_proven_after_a_cancel_starts_nothing(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)
    cancel(rig.desk, claim.notice_id, "used")

    look_when_due(rig, clock, Asked(), *[NotFound()] * 3)

    assert rig.delivery(claim.notice_id)["reason"] == "canceled_before_retry"
