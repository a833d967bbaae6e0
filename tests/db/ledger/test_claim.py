"""The claim: what is due, least validity first, never more than asked for, never twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from notifier.domain.states import Channel
from notifier.flow import cancel, halts
from notifier.store.database import Database
from notifier.store.ledger import pauses
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import BOTH, LEASE, Rig
from tests.db.test_foundation import NOON
from tests.db.waiting import Watch, begin, together

NESTED_LOOPS = "-c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_{}_plan"


def test_a_claim_leases_the_delivery_and_fences_off_whoever_had_it(rig: Rig, clock: Clock) -> None:
    now = clock.freeze(NOON)
    notice_id = rig.admit()

    claim = rig.claim_one()

    delivery = rig.delivery(notice_id)
    assert (claim.notice_id, claim.fence, claim.attempts) == (notice_id, 1, 0)
    assert claim.lease_until == delivery["lease_until"] == now + LEASE
    assert (delivery["state"], delivery["lease_owner"]) == ("claimed", "worker-1")
    assert rig.trail(notice_id)[-1]["reason"] == "claimed"
    assert rig.notice(notice_id)["seq"] == 4


@pytest.mark.parametrize("plan", ["custom", "generic"])
def test_p1_a_claim_never_takes_more_than_its_slots_whatever_the_plan(
    database_url: str, plan: str
) -> None:
    options = NESTED_LOOPS.format(plan)
    database = Database(
        database_url, search_path="test_clock,notifier", extra_options=options, size=2
    )
    rig = Rig(database)
    for _ in range(25):
        rig.admit()
    rig.run("ANALYZE")

    taken = [len(rig.claim(4)) for _ in range(7)]

    assert taken == [4, 4, 4, 4, 4, 4, 1]
    assert rig.one("SELECT count(*) AS n FROM transition WHERE reason = 'claimed'")["n"] == 25
    database.close()


def test_the_least_validity_goes_first(rig: Rig) -> None:
    lives = [500, 100, 300, 200, 400]
    by_life = {life: rig.admit(rig.event(life_s=life)) for life in lives}

    first, second = (rig.claim(2), rig.claim(3))

    assert [claim.notice_id for claim in first] == [by_life[100], by_life[200]]
    assert [claim.notice_id for claim in second] == [by_life[life] for life in (300, 400, 500)]


def engage(scope: str) -> Callable[[Rig], None]:
    def hold(rig: Rig) -> None:
        halts.engage(rig.database, scope=scope, reason="a drill", by="ops")

    return hold


def pause(rig: Rig) -> None:
    with rig.database.connection() as connection:
        pauses.pause(connection, provider="smtp", detail="auth_error", seconds=60)


def set_due_later(rig: Rig) -> None:
    rig.run("UPDATE delivery SET due_at = db_now() + interval '1 microsecond'")


def reach_stop_time(rig: Rig) -> None:
    rig.run("UPDATE delivery SET stop_at = db_now()")


def cancel_half_way(rig: Rig) -> None:
    """As a cancel that another process has noted and not yet drawn the consequences of."""
    rig.run("UPDATE notice SET canceled_at = db_now(), canceled_reason = 'used'")


@pytest.mark.parametrize(
    "hold",
    [
        engage("all"),
        engage("channel:email"),
        engage("provider:smtp"),
        engage("template:password-reset@1"),
        engage("account:the-account"),
        engage("event:the-event"),
        pause,
        set_due_later,
        reach_stop_time,
        cancel_half_way,
    ],
    ids=[
        "all",
        "channel",
        "provider",
        "template",
        "account",
        "event",
        "pause",
        "due",
        "stop time",
        "cancel",
    ],
)
def test_each_guard_alone_keeps_a_row_back(
    rig: Rig, clock: Clock, hold: Callable[[Rig], None]
) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit(account_id="the-account", event_id="the-event")
    hold(rig)

    assert rig.claim(5) == []
    assert rig.state(notice_id) == "queued"
    assert len(rig.trail(notice_id)) == 3


@pytest.mark.parametrize(
    "scope",
    ["channel:sms", "provider:postmark", "template:password-reset@2", "account:x", "event:x"],
)
def test_a_halt_of_something_else_keeps_nothing_back(rig: Rig, scope: str) -> None:
    rig.admit()
    engage(scope)(rig)

    assert len(rig.claim(5)) == 1


def test_a_halt_that_was_released_keeps_nothing_back(rig: Rig) -> None:
    rig.admit()
    engage("all")(rig)
    halts.release(rig.database, scope="all", reason="the drill is over", by="ops")

    assert len(rig.claim(5)) == 1


def test_p5_the_stop_time_itself_is_too_late_and_a_microsecond_before_is_not(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze(NOON)
    notice_id = rig.admit()
    stop_at = rig.delivery(notice_id)["stop_at"]

    clock.freeze(stop_at)
    assert rig.claim(1) == []

    clock.freeze(stop_at - timedelta(microseconds=1))
    assert len(rig.claim(1)) == 1


def test_p6_an_email_makes_way_from_the_fallback_time_on(make_rig: MakeRig, clock: Clock) -> None:
    rig = make_rig(channels=BOTH)
    clock.freeze(NOON)
    notice_id = rig.admit_for_both()
    fallback_at = rig.notice(notice_id)["fallback_at"]

    clock.freeze(fallback_at)
    assert rig.claim(1) == []

    clock.freeze(fallback_at - timedelta(microseconds=1))
    assert len(rig.claim(1)) == 1


def test_an_email_whose_text_is_halted_goes_on_after_the_fallback_time(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    clock.freeze(NOON)
    notice_id = rig.admit_for_both()
    engage("channel:sms")(rig)
    clock.freeze(rig.notice(notice_id)["fallback_at"])
    rig.settle(notice_id)

    assert [claim.notice_id for claim in rig.claim(1)] == [notice_id]


def test_an_email_whose_text_is_out_of_time_goes_on_before_any_sweep_has_ended_the_text(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    clock.freeze(NOON)
    notice_id = rig.admit_for_both()
    at = clock.freeze(rig.notice(notice_id)["fallback_at"])
    rig.run("UPDATE delivery SET stop_at = %s WHERE channel = 'sms'", at)

    assert [claim.notice_id for claim in rig.claim(1)] == [notice_id]


def test_p9_two_claimers_never_share_a_row(make_rig: MakeRig) -> None:
    rigs = [make_rig(), make_rig()]
    for _ in range(40):
        rigs[0].admit()

    def drain(rig: Rig, owner: str) -> list[object]:
        taken: list[object] = []
        while some := rig.claim(3, owner=owner):
            taken += [claim.notice_id for claim in some]
        return taken

    shares = together(*(partial(drain, rigs[n % 2], f"worker-{n}") for n in range(4)))

    taken = [notice_id for share in shares for notice_id in share]
    assert len(taken) == len(set(taken)) == 40
    assert (
        rigs[0].one("SELECT count(*) AS n FROM delivery WHERE fence <> 1 AND lease_owner <> ''")[
            "n"
        ]
        == 0
    )


@pytest.mark.parametrize("table", ["notice", "delivery"])
def test_p9_a_row_that_somebody_holds_is_skipped_not_waited_for(rig: Rig, table: str) -> None:
    held, free = rig.admit(rig.event(life_s=100)), rig.admit()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute(
            f"SELECT FROM {table} WHERE notice_id = %s FOR UPDATE",
            [held],
        )

        assert [claim.notice_id for claim in rig.claim(5)] == [free]
    assert [claim.notice_id for claim in rig.claim(5)] == [held]


def test_p9_a_cancel_that_commits_while_a_claim_looks_is_seen(
    make_rig: MakeRig, watch: Watch
) -> None:
    rig = make_rig()
    notice_id = rig.admit()
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [notice_id])
        canceling = begin(lambda: cancel.cancel(rig.desk, notice_id, "used"))
        watch.until_blocked()
        assert rig.claim(1) == []
    canceling.result(10)

    assert rig.claim(1) == []
    assert rig.state(notice_id) == "canceled"


def test_a_claim_of_one_channel_leaves_the_other_alone(make_rig: MakeRig) -> None:
    rig = make_rig(channels=BOTH)
    rig.admit_for_both()

    assert rig.claim(5, channel=Channel.SMS) == []
    assert len(rig.claim(5, channel=Channel.EMAIL)) == 1
