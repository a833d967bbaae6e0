"""Each rule on readings made by hand: what crosses its limit, and what only looks like it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.reasons import Detail
from notifier.signals.chance import binomial_tail, poisson_tail
from notifier.signals.judgements import BY_THEMSELVES, Judgement, Level, RuleName
from notifier.signals.limits import limits_of
from notifier.signals.rules import judge
from notifier.signals.rules_of_counts import BY_COUNTS
from notifier.signals.rules_of_state import BY_STATE
from notifier.store.ledger.pauses import Pause
from notifier.store.reads.signals import Readings, Ready, Tally
from notifier.store.reads.signals_beside import Turned
from notifier.store.reads.signals_heard import Heard
from notifier.store.reads.signals_stalled import Leases, Stuck
from notifier.store.reads.sweeps import SweepAge
from notifier.store.reads.trail_checkpoints import NewestCheckpoint

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


def readings(**parts: Any) -> Readings:
    return Readings(**{"at": NOW, "life_s": 600.0, "counted_s": 2.0, **parts})


def counts(**by_place: Tally | int) -> dict[tuple[str, str, str], Tally]:
    """Tallies by `provider__region__signal`; a number stands for all three windows."""
    found = {}
    for place, n in by_place.items():
        provider, region, signal = place.split("__")
        found[provider, region, signal] = Tally(n, n, n) if isinstance(n, int) else n
    return found


def judged(seen: Readings, **alert: float) -> dict[tuple[str, str], Judgement]:
    limits = limits_of(alert, seen.life_s)
    return {(each.rule, each.key): each for each in judge(seen, limits).judgements}


def crossed(seen: Readings, **alert: float) -> set[tuple[str, str]]:
    found = judged(seen, **alert)
    return {place for place, each in found.items() if each.level is Level.ABOVE}


def sweep(name: str, age_s: float) -> SweepAge:
    return SweepAge(name, "me", 1, NOW, NOW, None, 0, 0, 1, 0, None, age_s, None)


def test_every_rule_is_judged_in_one_place() -> None:
    assert not set(BY_STATE) & set(BY_COUNTS)
    assert {*BY_STATE, *BY_COUNTS, *BY_THEMSELVES} == set(RuleName)


@given(st.integers(1, 30), st.integers(0, 30), st.floats(0.01, 0.99))
def test_the_binomial_tail_is_exact(whole: int, part: int, share: float) -> None:
    exact = sum(
        math.comb(whole, k) * share**k * (1 - share) ** (whole - k) for k in range(part, whole + 1)
    )
    found = binomial_tail(part, whole, share)
    assert found == pytest.approx(exact, rel=1e-6) or (part <= share * whole and found == 1.0)


def test_the_poisson_tail_is_exact() -> None:
    below = sum(math.exp(-2) * 2**k / math.factorial(k) for k in range(7))
    assert poisson_tail(7, 2.0) == pytest.approx(1 - below, rel=1e-9)
    assert (poisson_tail(0, 0.0), poisson_tail(1, 0.0)) == (1.0, 0.0)


def test_limits_follow_the_life_of_the_tokens_and_keep_their_caps() -> None:
    assert limits_of({}, 600.0).queue_age_s == 60.0
    assert limits_of({}, 100.0).queue_age_s == 10.0
    assert limits_of({}, 7_200.0).queue_age_s == 60.0
    assert limits_of({}, 7_200.0).close_s == 3_600.0


def test_ready_work_that_has_waited_longer_than_what_is_left_is_too_old_at_any_age() -> None:
    late_text = Ready("sms", waiting=3, oldest_s=45.0, over_budget=1, least_wait_s=40.0)
    assert crossed(readings(ready=(late_text,))) == {("queue_age", "sms")}
    young = Ready("sms", waiting=3, oldest_s=45.0)
    assert crossed(readings(ready=(young,))) == set()


def test_work_that_will_not_come_to_its_turn_is_told_before_it_expires() -> None:
    assert crossed(readings(ready=(Ready("email", 500, 10.0, doomed=40),))) == {
        ("expiry_ahead", "email")
    }


def test_a_lapsed_lease_and_work_that_is_claimed_again_and_again_make_no_progress() -> None:
    assert crossed(readings(leases=Leases(1, 31.0))) == {("no_progress", "")}
    assert crossed(readings(stuck=Stuck(1, 61.0))) == {("no_progress", "")}
    assert crossed(readings(leases=Leases(3, 20.0), stuck=Stuck(2, 40.0))) == set()


def test_a_lapsed_lease_is_held_against_a_rescue_that_runs_and_no_other() -> None:
    lapsed = Leases(1, 50.0)
    place = ("no_progress", "")
    assert place in crossed(readings(leases=lapsed, sweeps=(sweep("rescue", 4.0),)))
    assert place not in crossed(readings(leases=lapsed, sweeps=(sweep("rescue", 45.0),)))
    assert place not in crossed(readings(leases=Leases(), sweeps=(sweep("rescue", 4.0),)))


def test_three_unknown_outcomes_of_three_are_told_and_three_of_three_hundred_are_not() -> None:
    night = counts(twilio____unknown=4, twilio____accepted=0)
    assert crossed(readings(tallies=night)) == {("unknown_rate", "twilio")}
    noon = counts(twilio____unknown=4, twilio____accepted=300)
    assert crossed(readings(tallies=noon)) == set()
    unlucky = counts(twilio____unknown=2, twilio____accepted=3)
    assert crossed(readings(tallies=unlucky)) == set()


def test_ordinary_bounces_are_no_failure_of_the_channel() -> None:
    bounces = counts(postmark____refused=8, postmark____accepted=92)
    assert crossed(readings(tallies=bounces)) == set()
    paced = counts(postmark____paced=80, postmark____accepted=20)
    assert crossed(readings(tallies=paced)) == set()
    down = counts(postmark____not_accepted=30, postmark____accepted=20)
    assert crossed(readings(tallies=down)) == {("channel_failures", "postmark")}


def test_a_region_of_its_own_is_told_alone_and_many_are_told_as_one() -> None:
    one = counts(x__IT__expired=4, x__IT__over=6, x__GB__expired=0, x__GB__over=500)
    assert crossed(readings(tallies=one)) == {("expired", "IT")}
    three = counts(
        x__IT__expired=4, x__IT__over=6, x__GB__expired=9, x__GB__over=20,
        x__FR__expired=4, x__FR__over=4,
    )  # fmt: skip
    assert crossed(readings(tallies=three)) == {("expired", "")}
    assert crossed(readings(tallies=counts(x____expired=4, x____over=900))) == set()


def test_expiries_that_trickle_are_seen_over_the_hour() -> None:
    trickle = counts(x__IT__expired=Tally(0, 1, 4), x__IT__over=Tally(1, 2, 8))
    assert crossed(readings(tallies=trickle)) == {("expired", "IT")}


def test_refused_callbacks_are_told_only_of_a_provider_that_has_something_to_tell() -> None:
    noise = Heard("postmark", refused=400)
    assert crossed(readings(heard=(noise,))) == set()
    real = Heard("postmark", awaiting=3, refused=10)
    assert crossed(readings(heard=(real,))) == {("callbacks_refused", "postmark")}


def test_a_provider_is_silent_when_nothing_at_all_is_heard_of_it() -> None:
    heard = Heard("postmark", awaiting=40, receipt_s=12.0)
    assert crossed(readings(heard=(heard,))) == set()
    silent = Heard("postmark", awaiting=10, receipt_s=75.0)
    assert crossed(readings(heard=(silent,))) == {("provider_silent", "postmark")}
    assert crossed(readings(heard=(Heard("postmark", awaiting=9),))) == set()


def test_a_pause_for_our_credentials_is_told_and_one_that_paces_us_only_when_work_is_old() -> None:
    def paused(detail: Detail, oldest_s: float) -> set[tuple[str, str]]:
        pause = Pause("resend", detail, NOW - timedelta(seconds=5), NOW, 1)
        work = (Ready("email", 30, oldest_s),)
        return crossed(readings(pauses=(pause,), ready=work)) - {("queue_age", "email")}

    assert paused(Detail.AUTH_ERROR, 0.0) == {("provider_paused", "resend")}
    assert paused(Detail.RATE_LIMITED, 40.0) == set()
    assert paused(Detail.RATE_LIMITED, 60.0) == {("provider_paused", "resend")}


def test_one_silent_sweep_is_named_and_all_of_them_are_the_scheduler() -> None:
    one = (sweep("poll", 70.0), sweep("expiry", 3.0), sweep("retention", 900.0))
    limits = {"poll": 5.0, "expiry": 5.0, "retention": 600.0}
    found = judge(readings(sweeps=one), limits_of({}, 600.0, limits.__getitem__)).judgements
    assert {e.key for e in found if e.level is Level.ABOVE} == {"poll"}
    both = (sweep("poll", 70.0), sweep("expiry", 65.0), sweep("retention", 900.0))
    found = judge(readings(sweeps=both), limits_of({}, 600.0, limits.__getitem__)).judgements
    assert {e.key for e in found if e.level is Level.ABOVE} == {"scheduler"}


def test_a_checkpoint_is_missed_only_where_there_is_a_key_and_something_to_seal() -> None:
    old = NewestCheckpoint(3, NOW, 5, "key", 6_000.0)
    place = {("checkpoint_missing", "")}
    assert crossed(readings(seals=True, checkpoint=old, unsealed=True)) == place
    assert crossed(readings(seals=True, checkpoint=old)) == set()
    assert crossed(readings(checkpoint=old, unsealed=True)) == set()
    never = judged(readings(seals=True, unsealed=True))["checkpoint_missing", ""]
    assert (never.level, never.hold_s) == (Level.ABOVE, 5_400.0)


def test_more_rescues_than_the_starts_explain_are_told() -> None:
    assert crossed(readings(tallies=counts(x____rescued=6, x____started=40))) == {("rescues", "")}
    assert crossed(readings(tallies=counts(x____rescued=2, x____started=40))) == set()
    found = judged(readings(tallies=counts(x____rescued=6, x____started=40)))["rescues", ""]
    assert found.hold_s > limits_of({}, 600.0).queue_age_s
    busy = counts(x____rescued=6, x____started=9_000)
    assert crossed(readings(tallies=busy)) == set()


def test_what_nobody_should_ever_see_is_told_at_once() -> None:
    words = counts(twilio____unmapped=1, resend____callback_unreadable=3)
    seen = readings(tallies=words, local_sign_ins=1)
    assert crossed(seen) == {
        ("unmapped", "twilio"), ("unreadable", "resend"), ("local_account_used", ""),
    }  # fmt: skip


def test_a_sender_domain_is_told_by_its_name_while_a_record_of_it_fails() -> None:
    seen = readings(turned=(Turned("mail.example", 2), Turned("well.example", 0)))
    assert crossed(seen) == {("sender_domain_fails", "mail.example")}


def test_texts_that_nobody_needed_are_judged_against_their_baseline() -> None:
    wasted = counts(x____avoidable=12, x____fallback=30)
    assert crossed(readings(tallies=wasted)) == {("avoidable_fallbacks", "")}
    assert crossed(readings(tallies=counts(x____avoidable=2, x____fallback=4))) == set()


def test_counts_that_nobody_took_say_nothing() -> None:
    seen = readings(counted_s=61.0, tallies=counts(twilio____unknown=50))
    found = judge(seen, limits_of({}, 600.0))
    assert found.unmeasured == frozenset(BY_COUNTS)
    assert not [each for each in found.judgements if each.rule in BY_COUNTS]
