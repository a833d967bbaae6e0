"""One fault each: the right alert within a fifth of the token's life, once, and no other."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from notifier.domain.outcome import Unknown
from notifier.domain.reasons import Reason
from notifier.store import rollups
from tests.gamedays.ground import LIFE_S, PROVIDER, GameDay

A_FIFTH_S = LIFE_S / 5
USUAL_S = 180.0
LINGERS_S = 300.0
HELD_FOR_S = 20.0
"""How long the work was in hand when its workers died: most of a lease."""


def tells(
    day: GameDay, rule: str, key: str, fault: Callable[[], object], *, within_s: float = A_FIFTH_S
) -> None:
    """From the first tick of the fault on, one alert, soon; and no other while it lasts."""
    began = day.rig.now()
    opened = day.until_opened(within_s, fault)
    assert (opened - began).total_seconds() <= within_s
    day.run(LINGERS_S, fault)
    assert day.opened() == [(rule, key)]


def test_p11_a_consumer_that_holds_leases_and_does_nothing(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)

    def hold() -> None:
        day.admit()
        day.rig.claim(16, provider=PROVIDER, owner="holds-on")

    tells(day, "no_progress", "", hold)


def test_p11_a_provider_that_accepts_and_times_out(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    tells(day, "unknown_rate", PROVIDER, lambda: day.send(Unknown(Reason.TIMEOUT)))


def test_p11_callbacks_that_are_refused_after_a_rotation_of_the_secret(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    day.told_later.clear()

    def refuse() -> None:
        day.send()
        with day.rig.database.connection() as connection:
            rollups.add_refusals(connection, {PROVIDER: 1})

    tells(day, "callbacks_refused", PROVIDER, refuse)


def test_p11_a_provider_that_accepts_and_tells_nothing(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    day.told_later.clear()
    tells(day, "provider_silent", PROVIDER, day.send)


def test_p11_expiries_that_rise_in_one_region_in_a_quiet_night(day: GameDay) -> None:
    regions = itertools.cycle(("GB", "", "FR", "", "IT", ""))

    def usual() -> None:
        if region := next(regions):
            day.send_and_hear(region=region)

    def one_region_goes_dark() -> None:
        if region := next(regions):
            (day.send if region == "IT" else day.send_and_hear)(region=region)

    day.run(USUAL_S, usual)
    day.run(LIFE_S, one_region_goes_dark)
    assert day.opened() == []
    tells(day, "expired", "IT", one_region_goes_dark)


def test_p11_a_scheduler_that_hangs(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    day.sweeps_run = False
    tells(day, "sweep_stalled", "scheduler", day.send_and_hear)


def test_p11_senders_that_died(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    tells(day, "queue_age", "email", day.admit)


def test_p11_senders_that_died_with_work_in_hand(day: GameDay) -> None:
    """What they held is taken back at once: that is the same fault."""
    day.run(USUAL_S, day.send_and_hear)
    day.hold(8)
    day.leave_under_way(4)
    day.run(HELD_FOR_S)
    tells(day, "queue_age", "email", day.admit)


def test_p11_workers_that_all_died_and_the_sweeps_with_them(day: GameDay) -> None:
    """Their leases lapse before the sweeps are missed, and nobody is left to take them back."""
    day.run(USUAL_S, day.send_and_hear)
    day.hold(8)
    day.leave_under_way(4)
    day.run(HELD_FOR_S)
    day.sweeps_run = False
    tells(day, "sweep_stalled", "scheduler", day.admit)


def test_p11_a_rescue_that_stalls_alone_while_a_worker_holds_on(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    day.hold(3)
    day.run(HELD_FOR_S, day.send_and_hear)
    day.stalled.add("rescue")
    tells(day, "sweep_stalled", "rescue", day.send_and_hear)


def test_p11_a_lease_that_a_running_rescue_leaves_alone(day: GameDay) -> None:
    day.run(USUAL_S, day.send_and_hear)
    day.hold(1)
    day.rescues = False
    tells(day, "no_progress", "", day.send_and_hear)
