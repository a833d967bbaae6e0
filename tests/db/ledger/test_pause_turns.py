"""After a pause one call tries the provider, over all processes; the others wait for its answer."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

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
from notifier.domain.states import Channel
from notifier.flow import halts, turns
from notifier.ports.links import LinkUnavailable
from notifier.store.ledger import pauses
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.intent import Verdict
from notifier.store.ledger.pauses import Pause
from notifier.store.ledger.replay import ReplayVerdict
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.replaying import ASKS, RESEND, authorise, claim_marked, start, unknown
from tests.db.ledger.test_replay_answers import Worker
from tests.db.rig import BOTH, TURN, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import together

REFUSED_US = NotAccepted(Detail.AUTH_ERROR, "535", ProviderPause(Detail.AUTH_ERROR, seconds=5))
PAUSE_S = 60.0
TAKEN_UP: tuple[Outcome, ...] = (Accepted("id-1"), Refused(Detail.INVALID_DESTINATION))
TELLS_NOTHING: tuple[Outcome, ...] = (Unknown(Reason.TIMEOUT), NotAccepted(Detail.UNREACHABLE))


def pause(rig: Rig, provider: str = "smtp", seconds: float = PAUSE_S) -> None:
    with rig.database.connection() as connection:
        pauses.pause(connection, provider=provider, detail="auth_error", seconds=seconds)


def standing(rig: Rig) -> list[Pause]:
    with rig.database.connection() as connection:
        return pauses.standing(connection)


def paused_until_now(rig: Rig, clock: Clock, notices: int = 6) -> None:
    """Work waits behind a pause whose time is just over."""
    clock.freeze(NOON)
    for _ in range(notices):
        rig.admit()
    pause(rig)
    clock.advance(PAUSE_S)


def give_back(rig: Rig, claim: Claim) -> None:
    turns.give_back(rig.database, rig.desk, claim, "smtp")


@pytest.mark.parametrize("says", TAKEN_UP, ids=["accepted", "refused"])
def test_p11_after_a_pause_one_call_of_all_processes_tries_the_provider_and_then_all_go_on(
    make_rig: MakeRig, clock: Clock, says: Outcome
) -> None:
    rigs = [make_rig() for _ in range(3)]
    paused_until_now(rigs[0], clock, notices=40)

    def work(rig: Rig, name: str) -> list[Claim]:
        taken = [claim for _ in range(5) for claim in rig.claim(4, owner=name)]
        for number, claim in enumerate(taken):
            rig.intent(claim, f"{name}-{number}", owner=name)
        return taken

    shares = together(*(partial(work, rigs[n % 3], f"worker-{n}") for n in range(9)))

    [claim] = [each for share in shares for each in share]
    [attempt] = rigs[0].rows("SELECT reference FROM attempt")
    rigs[0].record(claim, says, attempt["reference"])
    assert standing(rigs[0]) == []
    shares = together(*(partial(work, rigs[n % 3], f"again-{n}") for n in range(9)))
    assert sum(len(share) for share in shares) == 39
    assert rigs[0].count("attempt") == 40


def test_p11_whoever_claimed_before_the_pause_does_not_start_when_its_time_is_over(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    rig.admit()
    claim = rig.claim_one()
    pause(rig, seconds=5)
    clock.advance(6)

    assert rig.intent(claim).verdict is Verdict.PAUSED


def test_p11_a_try_that_is_refused_pauses_all_for_as_long_as_it_says_and_is_counted(
    rig: Rig, clock: Clock
) -> None:
    paused_until_now(rig, clock)
    [claim] = rig.claim(5)
    assert rig.intent(claim).verdict is Verdict.STARTED

    rig.record(claim, REFUSED_US)

    [told] = standing(rig)
    assert told.until == NOON + timedelta(seconds=PAUSE_S + 5)
    assert (told.since, told.times) == (NOON, 2)
    give_back(rig, claim)
    assert rig.claim(5) == []
    clock.advance(5)
    assert len(rig.claim(5)) == 1


@pytest.mark.parametrize("says", TELLS_NOTHING, ids=["unknown", "unreachable"])
def test_p11_a_try_that_tells_nothing_lets_the_next_one_try_at_once(
    rig: Rig, clock: Clock, says: Outcome
) -> None:
    paused_until_now(rig, clock)
    [claim] = rig.claim(5)
    rig.intent(claim)
    rig.record(claim, says)
    assert rig.claim(5) == []

    give_back(rig, claim)

    assert len(rig.claim(5)) == 1
    assert rig.claim(5) == []


def test_p11_a_try_whose_worker_died_is_waited_for_no_longer_than_a_try_may_take(
    rig: Rig, clock: Clock
) -> None:
    paused_until_now(rig, clock)
    [lost] = rig.claim(5)

    clock.advance(TURN.total_seconds() - 0.001)
    assert rig.claim(5) == []
    clock.advance(0.001)
    [claim] = rig.claim(5)

    assert rig.intent(lost, "too late").verdict is Verdict.PAUSED
    give_back(rig, lost)
    assert rig.claim(5) == []
    assert rig.intent(claim).verdict is Verdict.STARTED


def test_p11_a_call_that_began_before_the_pause_does_not_end_it(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    early = rig.start_new("early")
    pause(rig)

    rig.record(early, Accepted("id-1"), "early")

    assert [each.provider for each in standing(rig)] == ["smtp"]


def test_p11_a_refusal_of_a_call_from_before_outlasts_the_try(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    early = rig.start_new("early")
    paused_until_now(rig, clock)
    [claim] = rig.claim(5)
    rig.intent(claim)
    rig.record(
        early,
        NotAccepted(Detail.RATE_LIMITED, None, ProviderPause(Detail.RATE_LIMITED, 300)),
        "early",
    )

    rig.record(claim, Accepted("id-1"))
    give_back(rig, claim)

    assert [each.until for each in standing(rig)] == [NOON + timedelta(seconds=PAUSE_S + 300)]


def test_p11_where_nothing_is_due_the_turn_is_left_to_who_has_work(rig: Rig, clock: Clock) -> None:
    clock.freeze(NOON)
    pause(rig)
    clock.advance(PAUSE_S)
    assert rig.claim(5) == []
    rig.admit()

    assert len(rig.claim(5)) == 1


def test_another_providers_pause_keeps_nothing_back(rig: Rig, clock: Clock) -> None:
    paused_until_now(rig, clock)
    rig.run("UPDATE provider_pause SET provider = 'postmark'")

    claims = rig.claim(5)

    assert [each.turn_until for each in claims] == [None] * 5


def test_p11_a_replay_and_a_first_call_never_try_side_by_side(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH, asks=ASKS)
    clock.freeze(NOON)
    for number in range(2):
        unknown(rig, f"ref-{number}")
    authorise(rig)
    pause(rig, RESEND, 5)
    assert claim_marked(rig) == []
    clock.advance(5)

    [replay] = claim_marked(rig)
    rig.admit()

    assert claim_marked(rig) == []
    assert rig.claim(5, provider=RESEND) == []
    assert start(rig, replay).verdict is ReplayVerdict.STARTED
    assert replay.repeats is not None
    rig.record(replay, Accepted("id-1"), replay.repeats.reference)
    assert len(claim_marked(rig)) == len(rig.claim(5, provider=RESEND)) == 1


def test_p11_a_replay_that_was_claimed_before_the_pause_is_not_started_after_it(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH, asks=ASKS)
    clock.freeze(NOON)
    unknown(rig)
    authorise(rig)
    [claim] = claim_marked(rig)
    pause(rig, RESEND, 5)
    clock.advance(6)

    assert start(rig, claim).verdict is ReplayVerdict.PAUSED


@pytest.mark.parametrize("why", ["no link", "not rendered", "halted", "no line"])
def test_p11_a_worker_that_comes_to_no_call_gives_its_turn_back(
    make_rig: MakeRig, clock: Clock, why: str
) -> None:
    rig = make_rig(channels=BOTH, reports=True, asks=ASKS)
    clock.freeze(NOON)
    worker = Worker(rig)
    for _ in range(2):
        rig.admit()
    pause(rig, RESEND)
    clock.advance(PAUSE_S)
    [claim] = worker.dispatch.claim(Channel.EMAIL, 4)
    match why:
        case "no link":
            worker.link = LinkUnavailable(LinkFault.NO_ANSWER_IN_TIME)
        case "not rendered":
            worker.renders = False
        case "halted":
            halts.engage(rig.database, scope=f"event:{claim.event_id}", reason="x", by="ops")
        case _:
            worker.provider.line = NotAccepted(Detail.UNREACHABLE)

    worker.dispatch.carry(claim)

    assert worker.provider.sent == []
    [other] = worker.dispatch.claim(Channel.EMAIL, 4)
    assert other.notice_id != claim.notice_id


def test_p11_the_answer_of_the_try_wakes_who_waits(rig: Rig, clock: Clock) -> None:
    paused_until_now(rig, clock)
    [claim] = rig.claim(5)
    rig.intent(claim)
    rung: list[bool] = []
    rig.desk.wake = lambda: rung.append(rig.claim(5) != [])  # type: ignore[misc]

    rig.record(claim, Accepted("id-1"))

    assert rung == [True]
