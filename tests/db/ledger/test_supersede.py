"""What a later request, a cap or a cancel does to an account's notices."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest

from notifier.domain.event import PolicyMode
from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.flow import put_back
from notifier.flow.cancel import cancel
from notifier.store.ledger.admission import ACCOUNT_ALONE
from notifier.store.ledger.intent import Verdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, TWILIO, receipt
from tests.db.rig import BOTH, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin, together

ACCOUNT = "acc"


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A process with both channels."""
    return make_rig(channels=BOTH, reports=True)


def supersede(rig: Rig) -> UUID:
    """A later request of the account, which supersedes what was requested before."""
    return rig.admit_for_both(account_id=ACCOUNT, supersedes_earlier=True)


def states(rig: Rig, notice_id: UUID) -> list[str]:
    return [rig.state(notice_id, channel) for channel in BOTH]


def test_every_earlier_open_notice_of_the_account_ends_and_no_other(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    earlier = [rig.admit_for_both(account_id=ACCOUNT) for _ in range(3)]
    other = rig.admit_for_both(account_id="somebody-else")
    clock.advance(1)

    latest = supersede(rig)

    for notice_id in earlier:
        assert states(rig, notice_id) == ["canceled", "canceled"]
        assert rig.notice(notice_id)["canceled_reason"] == "superseded"
        assert rig.delivery(notice_id)["reason"] == "reset_superseded"
    assert states(rig, other) == states(rig, latest) == ["queued", "standby"]


def test_a_request_without_the_wish_supersedes_nothing(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    earlier = rig.admit_for_both(account_id=ACCOUNT)
    clock.advance(1)
    rig.admit_for_both(account_id=ACCOUNT)

    assert states(rig, earlier) == ["queued", "standby"]


def test_requests_of_the_same_instant_do_not_supersede_each_other(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    pair = [supersede(rig) for _ in range(2)]

    assert [states(rig, each) for each in pair] == [["queued", "standby"]] * 2


@pytest.mark.parametrize(("behind_us", "state"), [(1, "canceled"), (0, "queued"), (-1, "queued")])
def test_an_older_request_that_comes_late_is_admitted_as_canceled(
    rig: Rig, clock: Clock, behind_us: int, state: str
) -> None:
    requested = clock.freeze(NOON)
    supersede(rig)
    clock.advance(5)

    older = rig.admit_for_both(
        account_id=ACCOUNT, requested_at=requested - timedelta(microseconds=behind_us)
    )

    assert rig.state(older) == state
    assert (rig.notice(older)["state"] == "canceled") == (state == "canceled")
    assert (len(rig.claim(5)) == 1) == (state == "canceled")


def test_what_may_have_left_before_it_was_superseded_may_still_become_complete(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    earlier = rig.admit_for_both(account_id=ACCOUNT)
    claim = rig.start(provider=POSTMARK)
    clock.advance(1)
    supersede(rig)
    assert states(rig, earlier) == ["attempted", "canceled"]
    assert rig.notice(earlier)["state"] == "canceled"

    rig.record(claim, Unknown(Reason.TIMEOUT))
    assert rig.notice(earlier)["state"] == "canceled"
    rig.tell(receipt(ReceiptStatus.DELIVERED))

    notice = rig.notice(earlier)
    assert (notice["state"], notice["basis"]) == ("complete", "delivered")
    assert notice["canceled_reason"] == "superseded"


def test_p6_a_superseded_try_that_was_not_accepted_is_not_made_again(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    earlier = rig.admit_for_both(account_id=ACCOUNT)
    claim = rig.start(provider=POSTMARK)
    clock.advance(1)
    supersede(rig)

    rig.record(claim, NotAccepted(Detail.UNREACHABLE))

    assert rig.delivery(earlier)["reason"] == "canceled_before_retry"
    assert states(rig, earlier) == ["canceled", "canceled"]


LATER = """
    INSERT INTO admission (notice_id, event_id, idempotency_key, reset_request_id, account_id,
        requested_at, admitted_at, supersedes, content_digest, expires_at)
    VALUES (gen_random_uuid(), 'later', 'later', 'later', %s,
        db_now() + make_interval(secs => %s), db_now(), %s, '', db_now())
"""


@pytest.mark.parametrize(
    ("account", "later_s", "supersedes", "verdict"),
    [
        (ACCOUNT, 1.0, True, Verdict.SUPERSEDED),
        (ACCOUNT, 1.0, False, Verdict.STARTED),
        (ACCOUNT, 0.0, True, Verdict.STARTED),
        (ACCOUNT, -1.0, True, Verdict.STARTED),
        ("somebody-else", 1.0, True, Verdict.STARTED),
    ],
)
def test_p6_the_intent_itself_asks_whether_a_later_request_superseded_this_one(
    rig: Rig, clock: Clock, account: str, later_s: float, *, supersedes: bool, verdict: Verdict
) -> None:
    """The later request was admitted, and its process died before it came to the earlier one."""
    clock.freeze(NOON)
    rig.admit_for_both(account_id=ACCOUNT)
    claim = rig.claim_one()
    rig.run(LATER, account, later_s, supersedes)

    told = rig.intent(claim)
    assert told.verdict is verdict
    put_back.stand_back(rig.desk, claim, told.verdict)

    canceled = verdict is Verdict.SUPERSEDED
    assert (rig.notice(claim.notice_id)["canceled_reason"] == "superseded") == canceled
    assert states(rig, claim.notice_id) == (
        ["canceled", "canceled"] if canceled else ["attempted", "standby"]
    )


def test_p6_two_requests_admitted_at_once_never_both_start(make_rig: MakeRig, clock: Clock) -> None:
    rigs = [make_rig(channels=BOTH) for _ in range(2)]
    for number in range(15):
        now, account = clock.now(), f"acc-{number}"
        events = [
            rig.event(
                account_id=account,
                requested_at=now + timedelta(microseconds=n),
                supersedes_earlier=True,
            )
            for n, rig in enumerate(rigs)
        ]
        together(*(partial(rig.admit, event) for rig, event in zip(rigs, events, strict=True)))
        for claim in rigs[0].claim(2):
            told = rigs[0].intent(claim, f"ref-{claim.event_id}")
            put_back.stand_back(rigs[0].desk, claim, told.verdict)

    started = rigs[0].rows("SELECT n.event_id FROM attempt JOIN notice n USING (notice_id)")
    assert len(started) == 15
    left = rigs[0].rows("SELECT account_id FROM notice WHERE canceled_at IS NULL")
    assert len({row["account_id"] for row in left}) == len(left) == 15


# --- the cap


def test_an_account_gets_as_many_notices_in_an_hour_as_the_cap_says(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH, policy={"account_cap_per_hour": 2})
    clock.freeze(NOON)
    within = [rig.admit_for_both(account_id=ACCOUNT) for _ in range(2)]
    over = rig.admit_for_both(account_id=ACCOUNT)
    other = rig.admit_for_both(account_id="somebody-else")

    for notice_id in (*within, other):
        assert states(rig, notice_id) == ["queued", "standby"]
    assert states(rig, over) == ["suppressed", "suppressed"]
    assert rig.delivery(over)["reason"] == "account_cap_reached"
    assert rig.notice(over)["state"] == "suppressed"
    assert rig.one("SELECT stop_at FROM admission WHERE notice_id = %s", over)["stop_at"] is None


@pytest.mark.parametrize(("seconds", "state"), [(3599.999999, "suppressed"), (3600, "queued")])
def test_a_notice_counts_against_the_cap_for_one_hour(
    make_rig: MakeRig, clock: Clock, seconds: float, state: str
) -> None:
    rig = make_rig(policy={"account_cap_per_hour": 1})
    clock.freeze(NOON)
    rig.admit(account_id=ACCOUNT)
    clock.freeze(NOON + timedelta(seconds=seconds))

    assert rig.state(rig.admit(account_id=ACCOUNT)) == state


def test_no_cap_is_no_cap(rig: Rig) -> None:
    for _ in range(12):
        assert rig.state(rig.admit(account_id=ACCOUNT)) == "queued"


def test_a_repeat_counts_once_against_the_cap(make_rig: MakeRig) -> None:
    rig = make_rig(policy={"account_cap_per_hour": 2})
    event = rig.event(account_id=ACCOUNT)
    for _ in range(5):
        rig.admit(event)

    assert rig.state(rig.admit(account_id=ACCOUNT)) == "queued"


ANOTHER_NOTICE = """
    INSERT INTO admission (notice_id, event_id, idempotency_key, reset_request_id, account_id,
                           requested_at, admitted_at, content_digest, expires_at)
    VALUES (gen_random_uuid(), 'another', 'another', 'another', %s, db_now(), db_now(), '',
            db_now() + interval '1 hour')
"""


def test_a_cap_counts_what_was_admitted_while_its_turn_was_waited_for(
    make_rig: MakeRig, watch: Watch
) -> None:
    rig = make_rig(policy={"account_cap_per_hour": 1})
    with rig.database.connection() as holder, holder.transaction():
        holder.execute(ACCOUNT_ALONE, {"account_id": ACCOUNT})
        waiting = begin(partial(rig.admit, account_id=ACCOUNT))
        watch.until_blocked()
        rig.run(ANOTHER_NOTICE, ACCOUNT)

    assert rig.delivery(waiting.result(10))["reason"] == "account_cap_reached"


def test_a_cap_holds_to_the_one_among_requests_that_race(make_rig: MakeRig) -> None:
    rigs = [make_rig(size=2, policy={"account_cap_per_hour": 2}) for _ in range(4)]
    for _ in range(3):
        together(*(partial(rig.admit, account_id=ACCOUNT) for rig in rigs))

    found = rigs[0].rows("SELECT state FROM delivery WHERE channel = 'email'")
    assert sorted(row["state"] for row in found) == ["queued"] * 2 + ["suppressed"] * 10


def test_accounts_with_a_cap_do_not_wait_for_one_another(make_rig: MakeRig) -> None:
    rig, other = (make_rig(policy={"account_cap_per_hour": 2}) for _ in range(2))
    with rig.database.connection() as holder, holder.transaction():
        holder.execute(ACCOUNT_ALONE, {"account_id": ACCOUNT})
        assert other.state(begin(partial(other.admit, account_id="another")).result(10)) == "queued"


# --- a cancel of both channels, and both channels at once


@pytest.mark.parametrize("outcome", [Accepted("pm-1"), Unknown(Reason.TIMEOUT)], ids=str)
def test_a_canceled_notice_whose_email_may_have_left_sends_no_text(
    rig: Rig, clock: Clock, outcome: Accepted | Unknown
) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit_for_both()
    claim = rig.start(provider=POSTMARK)
    told = cancel(rig.desk, notice_id, "used")
    assert (told.canceled, told.may_have_left) == ([Channel.SMS], [Channel.EMAIL])

    rig.record(claim, outcome)
    clock.advance(400)
    rig.settle(notice_id)

    assert rig.state(notice_id, Channel.SMS) == "canceled"
    assert rig.claim(5, channel=Channel.SMS) == []


def test_in_parallel_mode_both_channels_start_and_each_follows_its_own_facts(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit(mode=PolicyMode.PARALLEL, sms_consent=True)
    email = rig.start("ref-e", provider=POSTMARK)
    text = rig.start("ref-t", Channel.SMS, TWILIO)
    assert states(rig, notice_id) == ["attempted", "attempted"]

    rig.record(email, Unknown(Reason.TIMEOUT), "ref-e")
    rig.record(text, Accepted("SM1"), "ref-t")
    rig.tell(receipt(ReceiptStatus.DELIVERED, "ref-t", provider=TWILIO))

    assert states(rig, notice_id) == ["unknown", "delivered"]
    assert rig.notice(notice_id)["state"] == "complete"
    assert "fallback_was_avoidable" not in rig.reasons(notice_id)
