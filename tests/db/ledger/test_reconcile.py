"""Unknown outcomes are looked up and never guessed; what is not found proves nothing by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import grimp
import pytest

from notifier.domain.event import Given, PolicyMode
from notifier.domain.outcome import Accepted, Unknown
from notifier.domain.policy import Policy
from notifier.domain.reasons import Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Destination, Secret
from notifier.flow import expiry, policies, rescue
from notifier.flow.cancel import cancel
from notifier.flow.desk import Asks
from notifier.ports.asking import CannotTell, Capability, Found, Looked, NotFound
from notifier.ports.links import LinkAnswer, LinkGone, LinkGranted, LinkUnavailable, LinkWithheld
from notifier.store.ledger.claim import Claim
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, TWILIO, Asked, Links, receipt, reconciler
from tests.db.rig import BOTH, BUDGET, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import together

S = ReceiptStatus
TRUSTING = {"absence_conclusive": [POSTMARK, TWILIO], "settle_s": 20.0}
ASKS = {name: Asks(can_find=True, can_poll=True) for name in (POSTMARK, TWILIO)}
NUMBER = Destination(Channel.SMS, "+447700900123")
OTHER = Destination(Channel.SMS, "+447700900124")
FOUND = Found([receipt(S.DELIVERED, provider_message_id="pm-1")])


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A process whose policy takes Postmark's word for an absence, twenty seconds after."""
    return make_rig(reports=True, policy=TRUSTING, asks=ASKS)


def start_new(rig: Rig, reference: str = "ref-1") -> Claim:
    rig.admit()
    return rig.start(reference, provider=POSTMARK)


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


# --- absence


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


def keep_contact(rig: Rig, destination: Destination) -> None:
    rig.run(
        "INSERT INTO contact SELECT notice_id, %s, '', %s, 'link', db_now() FROM notice",
        destination.channel,
        bytes.fromhex(destination.fingerprint(b"fingerprint key")),
    )


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


# --- found


def test_what_is_found_is_applied_as_a_receipt_and_called_reconciled(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked()

    look_when_due(rig, clock, lookup, FOUND)

    assert rig.delivery(claim.notice_id)["reason"] == "reconciled"
    [attempt] = rig.attempts(claim.notice_id)
    assert (attempt["provider_message_id"], attempt["resolved_at"]) == ("pm-1", clock.now())
    [question] = lookup.questions
    assert (question.reference, question.started_at) == ("ref-1", NOON)


def test_p9_a_look_that_somebody_holds_is_skipped_not_waited_for(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)
    clock.advance(60)
    lookup = Asked(says=NotFound())
    with rig.database.connection() as connection, connection.transaction():
        connection.execute(
            "SELECT FROM delivery WHERE notice_id = %s FOR UPDATE", [claim.notice_id]
        )
        assert look(rig, lookup) == 0

    assert look(rig, lookup) == 1


def test_two_reconcilers_at_once_ask_once_and_find_once(make_rig: MakeRig, clock: Clock) -> None:
    rigs = [make_rig(reports=True, policy=TRUSTING, asks=ASKS) for _ in range(2)]
    clock.freeze(NOON)
    claims = [unknown(rigs[0], f"ref-{number}") for number in range(6)]
    clock.advance(5)
    lookup = Asked(says=Found([receipt(S.DELIVERED, provider_message_id="pm-1")]))

    looked = together(*(partial(look, rig, lookup) for rig in rigs))

    assert sum(looked) == len(lookup.questions) == 6
    assert len({question.reference for question in lookup.questions}) == 6
    for claim in claims:
        assert rigs[0].reasons(claim.notice_id).count("reconciled") <= 1


def test_one_message_found_twice_is_reconciled_once(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked()
    rig.tell(receipt(S.DELIVERED, provider_message_id="pm-1"), source="look_up")
    rig.run("UPDATE delivery SET next_check_at = db_now() WHERE channel = 'email'")

    look(rig, lookup)
    rig.tell(*FOUND.receipts, source="look_up")

    assert rig.reasons(claim.notice_id).count("reconciled") == 1
    assert rig.count("receipt") == 1


def test_a_look_that_never_came_back_costs_one_look(rig: Rig, clock: Clock) -> None:
    """The process died after it pushed the next look forward."""
    clock.freeze(NOON)
    claim, lookup = unknown(rig), Asked(says=FOUND)
    clock.advance(5)
    asking = reconciler(rig, lookup)
    with rig.database.connection() as connection:
        assert replace(asking, lookups={}).reconcile(connection) == 1
    assert rig.delivery(claim.notice_id)["next_check_at"] == clock.now() + timedelta(seconds=10)
    assert look(rig, lookup) == 0

    clock.advance(10)
    assert look(rig, lookup) == 1
    assert rig.state(claim.notice_id) == "delivered"


def test_one_look_that_breaks_ends_no_other(rig: Rig, clock: Clock) -> None:
    class Breaking(Asked):
        def find(self, question: Any, budget_s: float) -> Looked:
            if question.reference == "ref-1":
                message = "an adapter's own fault"
                raise RuntimeError(message)
            return super().find(question, budget_s)

    clock.freeze(NOON)
    first, second = unknown(rig, "ref-1"), unknown(rig, "ref-2")
    clock.advance(5)

    look(rig, Breaking(says=FOUND))

    assert (rig.state(first.notice_id), rig.state(second.notice_id)) == ("unknown", "delivered")


# --- polling


def poll(rig: Rig, lookup: Asked) -> int:
    with rig.database.connection() as connection:
        return reconciler(rig, lookup).poll(connection)


def test_an_accepted_message_is_asked_about_until_it_expires_and_not_after(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    claim, lookup = start_new(rig), Asked(says=Found([]))
    rig.record(claim, Accepted("pm-1"))
    polls = 0
    while clock.now() < claim.expires_at:
        clock.freeze(rig.delivery(claim.notice_id)["next_check_at"])
        polls += poll(rig, lookup)

    assert polls == len(lookup.polled) == 9
    assert poll(rig, lookup) == 0
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)
    assert rig.delivery(claim.notice_id)["next_check_at"] is None
    clock.advance(600)
    assert (poll(rig, lookup), look(rig, lookup)) == (0, 0)


def test_an_unknown_one_is_not_asked_about_after_it_expired(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = unknown(rig)
    clock.freeze(claim.expires_at)

    assert look(rig, Asked(says=FOUND)) == 0


def test_what_a_poll_brings_is_applied_like_a_callback(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    claim = start_new(rig)
    rig.record(claim, Accepted("pm-1"))
    clock.advance(60)
    told = receipt(S.DELIVERED, None, provider_message_id="pm-1")

    poll(rig, Asked(says=Found([told])))
    rig.tell(told)

    assert rig.delivery(claim.notice_id)["reason"] == "receipt"
    assert rig.one("SELECT source FROM receipt") == {"source": "poll"}


# --- by destination and time


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
        LinkUnavailable("status_503"),
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


# --- P4


@pytest.mark.parametrize("reader", ["receipts", "reconcile"])
def test_p4_what_reads_outcomes_cannot_reach_a_sender_by_any_chain_of_imports(reader: str) -> None:
    graph = grimp.build_graph("notifier", cache_dir=None)
    reachable = graph.find_upstream_modules(f"notifier.flow.{reader}")

    senders = {"notifier.ports.sending", "notifier.flow.dispatch"}
    senders |= graph.find_descendants("notifier.providers")
    assert "notifier.ports.asking" in reachable
    assert not reachable & senders
    assert "notifier.ports.sending" in graph.find_upstream_modules("notifier.flow.dispatch")
