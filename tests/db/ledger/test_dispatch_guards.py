"""The last guards before the wire, where no statement can help: the clocks of the process."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from notifier.clock import ClockUnknown, DatabaseClock
from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage, ResetLink, Secret
from notifier.flow.dispatch import SLIPPED_S, Dispatch, Granted, Started
from notifier.ports.links import LinkAnswer, LinkGranted, LinkRequest, LinkUnavailable
from notifier.ports.sending import Connection, Envelope
from notifier.store.ledger.intent import Intent, Verdict
from tests.db.rig import WORKER, Rig
from tests.db.test_foundation import NOON

MESSAGE = RenderedMessage(Channel.EMAIL, "Reset", Secret("text"), None, "00")
ADDRESS = Destination(Channel.EMAIL, "jana.moe@mail.example")


class Line:
    """A line to a provider that keeps what is sent, and may break."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.sent: list[Envelope] = []
        self.closed = 0
        self._fault = fault

    def send(self, envelope: Envelope) -> Outcome:
        self.sent.append(envelope)
        if self._fault:
            raise self._fault
        return Accepted("id-1")

    def close(self) -> None:
        self.closed += 1


class Post:
    """A provider; `line` is what every connection is."""

    name = "smtp"
    channel = Channel.EMAIL
    reports_deliveries = False
    key_lifetime_s = 0.0

    def __init__(self, line: Line | NotAccepted) -> None:
        self._line = line

    def connect(self, budget_s: float) -> Connection | NotAccepted:
        assert budget_s > 0
        return self._line


class Desk:
    """An auth service that gives a link, or does not."""

    def __init__(self, answer: LinkAnswer) -> None:
        self.asked: list[LinkRequest] = []
        self._answer = answer

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        assert 0 < budget_s <= 3
        self.asked.append(request)
        return self._answer


GRANTED = LinkGranted(ADDRESS, ResetLink("https://auth.example/r/1"))


def dispatch_of(
    rig: Rig, line: Line | NotAccepted, clock: DatabaseClock, answer: LinkAnswer = GRANTED
) -> Dispatch:
    return Dispatch(
        database=rig.database,
        desk=rig.desk,
        shelf=rig.shelf,
        recorder=rig.recorder,
        contacts=rig.contacts,
        owner=WORKER,
        senders={Channel.EMAIL: Post(line)},
        links=Desk(answer),
        message=lambda _claim, _granted, _expires_at: MESSAGE,
        now=clock.now,
        stopping=lambda: False,
        announce=rig.told.extend,
    )


def links_of(dispatch: Dispatch) -> Desk:
    assert isinstance(dispatch.links, Desk)
    return dispatch.links


@pytest.fixture
def known_clock(rig: Rig) -> DatabaseClock:
    clock = DatabaseClock()
    with rig.database.connection() as connection:
        clock.refresh(connection)
    return clock


def test_a_due_notice_is_carried_to_the_provider_once(rig: Rig, known_clock: DatabaseClock) -> None:
    notice_id = rig.admit()
    line = Line()
    dispatch = dispatch_of(rig, line, known_clock)

    [claim] = dispatch.claim(Channel.EMAIL, 5)
    dispatch.carry(claim)

    [envelope] = line.sent
    assert envelope.reference == rig.attempts(notice_id)[0]["reference"]
    assert 0 < envelope.budget_s <= 70
    assert rig.notice(notice_id)["state"] == "complete"
    assert line.closed == 1
    assert dispatch.claim(Channel.EMAIL, 5) == []


def test_p5_nothing_is_claimed_or_sent_while_the_time_is_not_known(rig: Rig) -> None:
    notice_id = rig.admit()
    line = Line()
    dispatch = dispatch_of(rig, line, DatabaseClock())

    with pytest.raises(ClockUnknown):
        dispatch.claim(Channel.EMAIL, 5)
    assert rig.state(notice_id) == "queued"

    with pytest.raises(ClockUnknown):
        dispatch.carry(rig.claim_one())
    assert line.sent == []
    assert rig.attempts(notice_id) == []


def started(*, held_up_s: float = 0.0, left_s: float = 20.0) -> Started:
    """An attempt committed `held_up_s` ago that has `left_s` from now."""
    now = time.monotonic()
    at = NOON + timedelta(seconds=left_s)
    intent = Intent(Verdict.STARTED, NOON, at, at, 1, "evt:email:first", at)
    return Started(intent, "ref-1", now - held_up_s, now + left_s)


def call(line: Line | NotAccepted, attempt: Started) -> Outcome:
    """Step five needs nothing of the process but its clock."""
    granted = Granted(GRANTED, attempt.intent.stop_at, attempt.intent.expires_at)
    nowhere: Any = None
    return Dispatch.call(nowhere, attempt, granted, MESSAGE, line)


def test_p5_a_worker_that_was_held_up_since_its_intent_sends_nothing() -> None:
    line = Line()

    outcome = call(line, started(held_up_s=SLIPPED_S + 0.1))

    assert outcome == NotAccepted(Detail.TIMEOUT)
    assert line.sent == []


def test_p5_a_call_whose_time_is_up_sends_nothing() -> None:
    line = Line()

    assert call(line, started(left_s=-0.001)) == NotAccepted(Detail.TIMEOUT)
    assert line.sent == []


def test_p5_the_provider_is_given_what_is_left_and_not_a_second_more() -> None:
    line = Line()

    assert call(line, started(held_up_s=0.5, left_s=7.9)) == Accepted("id-1")

    [envelope] = line.sent
    assert 7.5 < envelope.budget_s <= 7.9
    assert envelope.validity_s == 7


def test_p5_a_link_answer_never_lengthens_the_life(rig: Rig, known_clock: DatabaseClock) -> None:
    notice_id = rig.admit()
    expires_at = rig.notice(notice_id)["expires_at"]
    generous = replace(GRANTED, expires_at=expires_at + timedelta(days=1))
    dispatch = dispatch_of(rig, Line(), known_clock, generous)
    [claim] = dispatch.claim(Channel.EMAIL, 1)

    granted = dispatch.link(claim)

    assert granted is not None
    assert (granted.expires_at, granted.stop_at) == (expires_at, claim.stop_at)


def test_p5_no_link_is_asked_for_from_the_stop_time_on(
    rig: Rig, known_clock: DatabaseClock
) -> None:
    rig.admit()
    dispatch = dispatch_of(rig, Line(), known_clock)
    [claim] = dispatch.claim(Channel.EMAIL, 1)

    assert replace(dispatch, now=lambda: claim.stop_at).link(claim) is None

    assert links_of(dispatch).asked == []
    assert dispatch.link(claim) is not None


def test_p9_a_process_that_is_to_end_hands_its_claim_back(
    rig: Rig, known_clock: DatabaseClock
) -> None:
    notice_id = rig.admit()
    dispatch = replace(dispatch_of(rig, Line(), known_clock), stopping=lambda: True)
    [claim] = dispatch.claim(Channel.EMAIL, 1)

    dispatch.carry(claim)

    assert links_of(dispatch).asked == []
    assert (rig.state(notice_id), rig.reasons(notice_id)[-1]) == ("queued", "shutdown")


def test_p5_the_time_of_a_call_is_counted_from_before_its_intent(
    rig: Rig, known_clock: DatabaseClock
) -> None:
    rig.admit()
    dispatch = dispatch_of(rig, Line(), known_clock)
    [claim] = dispatch.claim(Channel.EMAIL, 1)
    granted = dispatch.link(claim)
    assert granted is not None
    before = time.monotonic()

    begun = dispatch.intent(claim, granted, MESSAGE)

    assert begun is not None
    left_s = (begun.intent.deadline - begun.intent.now).total_seconds()
    assert begun.ends_at == begun.intended_at + left_s
    assert before <= begun.intended_at <= time.monotonic()


def test_without_a_line_nothing_left() -> None:
    refused = NotAccepted(Detail.UNREACHABLE)

    assert call(refused, started()) is refused


def test_p3_an_adapters_own_fault_proves_nothing_about_the_message() -> None:
    line = Line(RuntimeError("a bug"))

    assert call(line, started()) == Unknown(Reason.CONNECTION_LOST)
    assert len(line.sent) == 1


def test_a_line_that_was_opened_is_closed_although_a_guard_forbids_the_start(
    rig: Rig, known_clock: DatabaseClock
) -> None:
    rig.admit()
    line = Line()
    dispatch = dispatch_of(rig, line, known_clock)
    [claim] = dispatch.claim(Channel.EMAIL, 1)
    rig.run("UPDATE notice SET canceled_at = db_now(), canceled_reason = 'used'")

    dispatch.carry(claim)

    assert (line.sent, line.closed) == ([], 1)


def test_without_a_link_nothing_is_sent_and_the_claim_goes_back(
    rig: Rig, known_clock: DatabaseClock
) -> None:
    rig.admit()
    line = Line()
    dispatch = dispatch_of(rig, line, known_clock, LinkUnavailable(LinkFault.NO_ANSWER_IN_TIME))
    [claim] = dispatch.claim(Channel.EMAIL, 1)

    dispatch.carry(claim)

    assert line.sent == []
    delivery = rig.delivery(claim.notice_id)
    assert (delivery["reason"], delivery["detail"]) == ("link_unavailable", "no_answer_in_time")
