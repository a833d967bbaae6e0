"""An auth service that refuses every link is one alert, soon, whatever was told before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from notifier.domain.event import PolicyMode
from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import about_us
from notifier.domain.reasons import Detail
from notifier.domain.states import Channel
from notifier.flow import expiry, put_back
from notifier.store.database import Database
from tests.database import Clock
from tests.db.rig import Rig
from tests.gamedays.conftest import NIGHT
from tests.gamedays.ground import PROVIDER, GameDay

LIFE_S = 300.0
A_FIFTH_S = LIFE_S / 5
TEXTS = "twilio"
PROVIDERS = ((Channel.EMAIL, PROVIDER), (Channel.SMS, TEXTS))


@pytest.fixture
def day(database: Database, clock: Clock) -> GameDay:
    """Tokens of five minutes, and a text for whoever gets no email."""
    clock.freeze(NIGHT)
    policy = {"alert": {"life_s": LIFE_S}}
    return GameDay(Rig(database, (Channel.EMAIL, Channel.SMS), policy, reports=True), clock)


def admit(day: GameDay) -> None:
    day.rig.admit(life_s=LIFE_S, sms_consent=True, mode=PolicyMode.EMAIL_THEN_SMS)


def refuse_links(day: GameDay) -> None:
    """401 for all that is due, of both channels; the sweep of texts runs before."""
    with day.rig.database.connection() as connection:
        expiry.decide_fallbacks(day.rig.desk, connection)
    for channel, provider in PROVIDERS:
        for claim in day.rig.claim(16, channel=channel, provider=provider):
            put_back.hand_back_for_link(day.rig.desk, claim, LinkFault.HTTP_401)


def usual(day: GameDay) -> None:
    admit(day)
    day.work_off()


def refused(day: GameDay) -> Callable[[], None]:
    """From now on no link is given: what a tick of the product does."""
    day.prompt = lambda: refuse_links(day)
    return lambda: admit(day)


def test_p11_links_that_are_refused_are_told_within_a_fifth_of_the_life_and_once(
    day: GameDay,
) -> None:
    day.run(120, lambda: usual(day))
    began = day.rig.now()
    tick = refused(day)
    assert (day.until_opened(A_FIFTH_S, tick) - began).total_seconds() <= A_FIFTH_S
    day.run(LIFE_S, tick)
    assert day.opened() == [("no_progress", "")]


def test_p11_what_gets_no_link_is_without_progress_also_when_its_text_takes_over(
    day: GameDay,
) -> None:
    admit(day)
    began = day.rig.now()
    refused(day)
    values = []
    while day.rig.now() - began < timedelta(seconds=0.7 * LIFE_S):
        day.tick()
        [stuck] = day.rig.rows("SELECT value FROM alert_episode WHERE rule = 'no_progress'") or [
            {"value": 0.0}
        ]
        values.append(stuck["value"])
    assert day.rig.rows("SELECT FROM transition WHERE channel = 'sms' AND to_state = 'queued'")
    assert values[-1] == 0.7 * LIFE_S
    assert values == sorted(values)
    assert day.opened() == [("no_progress", "")]


def test_p11_links_that_are_refused_after_a_mended_pause_are_not_taken_for_its_remains(
    day: GameDay,
) -> None:
    def try_in_vain() -> None:
        admit(day)
        day.be_refused(about_us(Detail.AUTH_ERROR, "401"))

    day.run(60, try_in_vain)
    assert day.opened() == [("provider_paused", PROVIDER)]
    day.run(90, lambda: usual(day))
    began = day.rig.now()
    tick = refused(day)
    while len(day.opened()) < 2:
        tick()
        day.tick()
        assert day.rig.now() - began <= timedelta(seconds=A_FIFTH_S), day.opened()
    assert day.opened()[1] == ("no_progress", "")
    day.run(LIFE_S, tick)
    assert len(day.opened()) == 2
