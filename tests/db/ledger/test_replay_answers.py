"""What a replay comes to, carried by the dispatch: only a yes proves anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from notifier.clock import DatabaseClock
from notifier.domain.event import Given, PolicyMode
from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import (
    Accepted,
    NotAccepted,
    Outcome,
    ProviderPause,
    Refused,
    Unknown,
)
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage, ResetLink, Secret
from notifier.flow.dispatch import Dispatch
from notifier.messages.render import RenderFailed
from notifier.ports.links import (
    LinkAnswer,
    LinkGone,
    LinkGranted,
    LinkRequest,
    LinkUnavailable,
    LinkWithheld,
)
from notifier.ports.sending import Connection, Envelope
from notifier.store.ledger import replay
from notifier.store.ledger.claim import Claim
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.replaying import ASKS, RESEND, authorise, claim_marked, replaying, unknown
from tests.db.ledger.telling import receipt
from tests.db.rig import BOTH, WORKER, Rig
from tests.db.test_foundation import NOON

ADDRESS = Destination(Channel.EMAIL, "jana.moe@mail.example")
GRANTED = LinkGranted(ADDRESS, ResetLink("https://auth.example/r/1"))
DIGEST = "00"


class Provider:
    """Knows a key for a day; `says` is what every call comes to, `during` happens before it."""

    name = RESEND
    channel = Channel.EMAIL
    reports_deliveries = True
    key_lifetime_s = 86_400.0

    def __init__(self) -> None:
        self.says: Outcome = Accepted("id-1")
        self.line: Connection | NotAccepted = self
        self.sent: list[Envelope] = []
        self.opened = self.closed = 0

    def connect(self, budget_s: float) -> Connection | NotAccepted:
        assert budget_s > 0
        self.opened += 1
        return self.line

    def send(self, envelope: Envelope) -> Outcome:
        self.sent.append(envelope)
        return self.says

    def close(self) -> None:
        self.closed += 1


class Worker:
    """One process's dispatch over a provider and an auth service that the test scripts."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.provider = rig, Provider()
        self.link: LinkAnswer = GRANTED
        self.asked: list[LinkRequest] = []
        self.digest = DIGEST
        self.renders = True
        clock = DatabaseClock()
        with rig.database.connection() as connection:
            clock.refresh(connection)
        self.dispatch = Dispatch(
            database=rig.database,
            desk=rig.desk,
            shelf=rig.shelf,
            recorder=rig.recorder,
            contacts=rig.contacts,
            owner=WORKER,
            senders={Channel.EMAIL: self.provider},
            links=self,
            message=self._message,
            now=clock.now,
            stopping=lambda: False,
            announce=rig.told.extend,
        )

    def ask(self, request: LinkRequest, budget_s: float) -> LinkAnswer:
        assert 0 < budget_s <= 3
        self.asked.append(request)
        return self.link

    def _message(self, _claim: Claim, _answer: LinkGranted, _until: object) -> RenderedMessage:
        if not self.renders:
            raise RenderFailed(what="planted")
        return RenderedMessage(Channel.EMAIL, "Reset", Secret("text"), None, self.digest)

    def first_call(self, *, says: Outcome, **changes: Any) -> Claim:
        """Admit a notice and make its first call."""
        given = Given(ADDRESS, Secret(ADDRESS.reveal()))
        wishes: dict[str, Any] = {"email": given, "mode": PolicyMode.EMAIL_ONLY, **changes}
        self.rig.admit(**wishes)
        [claim] = self.dispatch.claim(Channel.EMAIL, 1)
        usual, self.provider.says = self.provider.says, says
        self.dispatch.carry(claim)
        self.provider.says = usual
        return claim

    def replay(self) -> Claim:
        """Authorise it, claim the mark and carry it."""
        authorise(self.rig)
        [claim] = self.dispatch.claim(Channel.EMAIL, 4)
        assert claim.repeats is not None
        self.dispatch.carry(claim)
        return claim


@pytest.fixture
def rig(make_rig: MakeRig, clock: Clock) -> Rig:
    clock.freeze(NOON)
    return make_rig(channels=BOTH, reports=True, asks=ASKS)


@pytest.fixture
def worker(rig: Rig) -> Worker:
    return Worker(rig)


TIMED_OUT = Unknown(Reason.TIMEOUT)


def ending(rig: Rig, claim: Claim) -> tuple[str, str]:
    delivery = rig.delivery(claim.notice_id)
    return delivery["state"], delivery["reason"]


def test_p3_an_unknown_call_is_repeated_once_under_the_same_key_and_accepted(
    rig: Rig, worker: Worker
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    assert ending(rig, first) == ("unknown", "timeout")

    worker.replay()

    assert ending(rig, first) == ("accepted", "provider_accepted")
    one, other = worker.provider.sent
    assert (one.key, one.reference) == (other.key, other.reference)
    [attempt] = rig.attempts(first.notice_id)
    assert (attempt["outcome"], attempt["provider_message_id"]) == ("accepted", "id-1")
    assert attempt["replay_ended_at"] == attempt["resolved_at"] == NOON
    assert worker.provider.closed == 2
    moves = [row["reason"] for row in rig.trail(first.notice_id) if row["channel"] == "email"]
    assert moves[-3:] == ["replay_authorised", "replay_started", "provider_accepted"]


@pytest.mark.parametrize(
    ("says", "reason", "detail"),
    [
        (Refused(Detail.INVALID_DESTINATION, "validation_error"), "timeout", "invalid_destination"),
        (NotAccepted(Detail.UNREACHABLE), "timeout", "unreachable"),
        (Unknown(Reason.CONNECTION_LOST), "connection_lost", None),
    ],
)
def test_p3_a_replay_that_is_not_taken_leaves_it_unknown_for_good(
    rig: Rig, worker: Worker, says: Outcome, reason: str, detail: str | None
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    worker.provider.says = says

    worker.replay()

    delivery, [attempt] = rig.delivery(first.notice_id), rig.attempts(first.notice_id)
    assert (delivery["state"], delivery["reason"], delivery["detail"]) == (
        "unknown",
        reason,
        detail,
    )
    assert (attempt["outcome"], attempt["reason"]) == ("unknown", "timeout")
    assert (attempt["resolved_at"], attempt["replay_ended_at"]) == (None, NOON)
    authorise(rig)
    assert worker.dispatch.claim(Channel.EMAIL, 4) == []
    assert len(worker.provider.sent) == 2


def test_a_refusal_about_us_pauses_the_provider_also_where_a_replay_met_it(
    rig: Rig, worker: Worker
) -> None:
    worker.first_call(says=TIMED_OUT)
    worker.provider.says = NotAccepted(
        Detail.AUTH_ERROR, "invalid_api_key", ProviderPause(Detail.AUTH_ERROR)
    )

    worker.replay()

    assert rig.one("SELECT provider FROM provider_pause") == {"provider": RESEND}


@pytest.mark.parametrize(
    "says", [Refused(Detail.BLOCKED), NotAccepted(Detail.UNREACHABLE), TIMED_OUT]
)
def test_p3_the_first_calls_late_no_is_a_fact_only_once_a_replay_began(
    rig: Rig, says: Outcome
) -> None:
    claim = replaying(rig)
    first = replace(claim, repeats=None, fence=claim.fence - 1)

    rig.record(first, says)

    assert rig.state(claim.notice_id) == "attempted"
    [attempt] = rig.attempts(claim.notice_id)
    assert (attempt["outcome"], attempt["resolved_at"]) == ("unknown", None)
    assert rig.reasons(claim.notice_id)[-1] == "late_outcome"


def test_p3_the_first_calls_late_yes_ends_it_and_the_replay_is_dropped(
    rig: Rig, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    commit = replay.start

    def overtaken(*values: object, **named: object) -> object:
        begun = commit(*values, **named)  # type: ignore[arg-type]
        rig.record(first, Accepted("id-0"), rig.attempts(first.notice_id)[0]["reference"])
        return begun

    monkeypatch.setattr(replay, "start", overtaken)
    worker.replay()

    assert ending(rig, first) == ("accepted", "late_answer")
    assert len(worker.provider.sent) == 1
    assert rig.attempts(first.notice_id)[0]["provider_message_id"] == "id-0"


def test_p12_a_receipt_between_start_and_call_drops_the_replay(
    rig: Rig, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    commit = replay.start

    def overtaken(*values: object, **named: object) -> object:
        begun = commit(*values, **named)  # type: ignore[arg-type]
        reference = rig.attempts(first.notice_id)[0]["reference"]
        rig.tell(receipt(ReceiptStatus.DELIVERED, reference, provider=RESEND))
        return begun

    monkeypatch.setattr(replay, "start", overtaken)
    worker.replay()

    assert rig.state(first.notice_id) == "delivered"
    assert len(worker.provider.sent) == 1
    assert worker.provider.closed == 2


@pytest.mark.parametrize("answer", [LinkWithheld("no_destination"), LinkWithheld("not_permitted")])
def test_a_replays_link_answer_never_ends_the_delivery(
    rig: Rig, worker: Worker, answer: LinkAnswer
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    worker.link = answer

    worker.replay()

    assert ending(rig, first) == ("unknown", "timeout")
    assert rig.delivery(first.notice_id)["replay_due_at"] is None
    assert (len(worker.provider.sent), worker.provider.opened) == (1, 1)


def test_a_reset_that_is_gone_cancels_the_notice_and_leaves_the_email_unknown(
    rig: Rig, worker: Worker
) -> None:
    first = worker.first_call(says=TIMED_OUT, mode=PolicyMode.EMAIL_THEN_SMS, sms_consent=True)
    worker.link = LinkGone("used")

    worker.replay()

    assert ending(rig, first) == ("unknown", "timeout")
    assert rig.notice(first.notice_id)["canceled_reason"] == "used"
    assert rig.state(first.notice_id, Channel.SMS) == "canceled"
    assert len(worker.provider.sent) == 1


def test_a_message_that_cannot_be_rendered_again_leaves_it_unknown(
    rig: Rig, worker: Worker
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    worker.renders = False

    worker.replay()

    assert ending(rig, first) == ("unknown", "timeout")
    assert rig.delivery(first.notice_id)["replay_due_at"] is None
    assert len(worker.provider.sent) == 1


def test_p3_another_message_or_another_address_is_not_sent_in_its_place(
    rig: Rig, worker: Worker
) -> None:
    reworded = worker.first_call(says=TIMED_OUT)
    worker.digest = "01"
    worker.replay()
    moved = worker.first_call(says=TIMED_OUT)
    other = Destination(Channel.EMAIL, "somebody.else@mail.example")
    worker.link = LinkGranted(other, ResetLink("https://auth.example/r/1"))
    worker.replay()

    for claim in (reworded, moved):
        assert ending(rig, claim) == ("unknown", "timeout")
        assert rig.delivery(claim.notice_id)["replay_due_at"] is None
    assert len(worker.provider.sent) == 2


def test_where_the_link_cannot_be_had_now_the_mark_falls_due_again(
    rig: Rig, worker: Worker, clock: Clock
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    worker.link = LinkUnavailable(LinkFault.NO_ANSWER_IN_TIME)
    worker.replay()
    assert worker.dispatch.claim(Channel.EMAIL, 4) == []
    worker.link = GRANTED
    clock.advance(worker.dispatch.shelf.current()[1].lease_s)

    [claim] = worker.dispatch.claim(Channel.EMAIL, 4)
    worker.dispatch.carry(claim)

    assert ending(rig, first) == ("accepted", "provider_accepted")


def test_no_replay_is_used_up_on_a_line_that_could_not_be_opened(rig: Rig, worker: Worker) -> None:
    first = worker.first_call(says=TIMED_OUT)
    worker.provider.line = NotAccepted(Detail.UNREACHABLE)

    worker.replay()

    assert ending(rig, first) == ("unknown", "timeout")
    [attempt] = rig.attempts(first.notice_id)
    assert attempt["replay_started_at"] is None
    assert rig.delivery(first.notice_id)["replay_due_at"] > NOON


def test_p3_a_start_whose_answer_was_lost_is_reported_as_no_call(
    rig: Rig, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = worker.first_call(says=TIMED_OUT)
    commit = replay.start

    def lost(*values: object, **named: object) -> object:
        commit(*values, **named)  # type: ignore[arg-type]
        raise psycopg.OperationalError

    monkeypatch.setattr(replay, "start", lost)
    with pytest.raises(psycopg.OperationalError):
        worker.replay()

    assert ending(rig, first) == ("unknown", "timeout")
    assert len(worker.provider.sent) == 1
    assert rig.attempts(first.notice_id)[0]["replay_ended_at"] == NOON


def test_a_start_that_was_never_committed_leaves_no_trace(
    rig: Rig, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = worker.first_call(says=TIMED_OUT)

    def lost(*_values: object, **_named: object) -> object:
        raise psycopg.OperationalError

    monkeypatch.setattr(replay, "start", lost)
    with pytest.raises(psycopg.OperationalError):
        worker.replay()

    assert ending(rig, first) == ("unknown", "timeout")
    assert rig.reasons(first.notice_id)[-1] == "replay_authorised"
    assert rig.attempts(first.notice_id)[0]["replay_ended_at"] is None


def test_replays_take_at_most_half_of_the_slots(rig: Rig, worker: Worker) -> None:
    for number in range(3):
        unknown(rig, f"ref-{number}")
    authorise(rig)
    for _ in range(4):
        rig.admit()

    taken = worker.dispatch.claim(Channel.EMAIL, 4)

    assert [claim.repeats is not None for claim in taken] == [True, True, False, False]


def test_a_provider_that_knows_no_key_claims_no_mark(rig: Rig, worker: Worker) -> None:
    worker.first_call(says=TIMED_OUT)
    authorise(rig)
    worker.provider.key_lifetime_s = 0.0

    assert worker.dispatch.claim(Channel.EMAIL, 4) == []
    assert len(claim_marked(rig)) == 1


def test_an_old_key_is_not_used_again(rig: Rig, worker: Worker, clock: Clock) -> None:
    first = worker.first_call(says=TIMED_OUT)
    authorise(rig)
    worker.provider.key_lifetime_s = 60.0
    clock.freeze(NOON + timedelta(seconds=30))
    assert worker.dispatch.claim(Channel.EMAIL, 4) == []

    clock.freeze(NOON + timedelta(seconds=29.999))
    [claim] = worker.dispatch.claim(Channel.EMAIL, 4)
    worker.dispatch.carry(claim)

    assert ending(rig, first) == ("accepted", "provider_accepted")
