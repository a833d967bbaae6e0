"""What one look at the database reads for the alert rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from notifier.accounts import people, read_audit
from notifier.accounts.permissions import Role
from notifier.accounts.read_audit import BESIDE_ISSUER, Outcome, Way
from notifier.signals.causes import begun_anew
from notifier.signals.judging import Judge
from notifier.store import alerts, sender_domains
from notifier.store.database import Database
from notifier.store.reads import signals
from notifier.store.reads.signals import Wanted
from notifier.store.sender_domains import Observed
from tests.database import Clock
from tests.db.rig import Rig
from tests.people_alerts import ended_alert
from tests.signals import seeding

HOME = "mail.example"
WANTED = Wanted(600.0, 600.0, 0.1)


def test_what_was_lost_with_its_worker_is_not_held_against_the_provider(
    database: Database, noon: datetime
) -> None:
    with database.connection() as connection:
        for reason, n in (("worker_lost", 4), ("timeout", 1)):
            seeding.count(connection, noon, "unknown", n, provider="postmark", reason=reason)
        seen = signals.look(connection, WANTED)
    assert seen.tally("unknown", provider="postmark").short == 1


def test_what_an_alert_that_ended_left_behind_is_passed_over_and_what_came_since_is_not(
    database: Database, noon: datetime
) -> None:
    """Ten minutes' life: notices made since it ended expire from twenty minutes ago on."""
    with database.connection() as connection:
        ended_alert(connection, "queue_age", "email", resolved_at=noon - 30 * seeding.MINUTE)
        for signal, ago, n in (
            ("expired", 25, 4), ("expired", 10, 1), ("created", 40, 9), ("created", 15, 3),
            ("unknown", 25, 7),
        ):  # fmt: skip
            seeding.count(connection, noon - ago * seeding.MINUTE, signal, n)
        seen, all_of_it = (
            signals.look(connection, replace(WANTED, anew=anew)) for anew in (begun_anew(), ())
        )
    signals_of = ("expired", "over", "unknown")
    assert [seen.tally(each).long for each in signals_of] == [1, 3, 7]
    assert [all_of_it.tally(each).long for each in signals_of] == [5, 12, 7]


def test_a_local_sign_in_past_an_issuer_is_told_once_and_each_use_of_its_own(
    rig: Rig, noon: datetime, clock: Clock
) -> None:
    judge = Judge(rig.shelf, "judge", lambda _: 5.0)
    with rig.database.connection() as connection:
        otto = people.add(connection, "otto", Role.SUPPORT, None).person_id

    def comes_in(why: str | None, outcome: Outcome = Outcome.DONE) -> None:
        with rig.database.connection() as connection:
            way = Way("password", why)
            read_audit.record_sign_in(connection, otto, outcome, "request", way=way)

    def told(after_s: float) -> int:
        for _ in range(int(after_s / 5)):
            clock.advance(5)
            with rig.database.connection() as connection:
                judge.take_turn(connection)
        return len(rig.rows("SELECT FROM alert_episode WHERE rule = 'local_account_used'"))

    comes_in(None)
    comes_in(BESIDE_ISSUER, Outcome.REFUSED)
    assert told(10) == 0
    comes_in(BESIDE_ISSUER)
    assert told(400) == 1
    with rig.database.connection() as connection:
        assert alerts.standing(connection) == []
    comes_in(BESIDE_ISSUER)
    assert told(5) == 2


def observed(kind: str, verdict: str, selector: str = "") -> Observed:
    return Observed(kind, selector, HOME, verdict, [], [], {}, "192.0.2.53", 60)


def test_a_sender_domain_has_turned_where_a_record_was_usable_and_fails(
    database: Database, noon: datetime, clock: Clock
) -> None:
    def after(*records: Observed, within_s: float = 3600) -> list[tuple[str, int]]:
        clock.advance(within_s)
        with database.connection() as connection:
            sender_domains.register(connection, [HOME])
            if records:
                sender_domains.keep(connection, HOME, records)
            seen = signals.look(connection, WANTED)
        return [(each.domain, each.records) for each in seen.turned]

    well, new = observed("spf", "pass"), observed("dkim", "fail", "new")
    assert after(well, new) == [(HOME, 0)]
    assert after(observed("spf", "unknown"), new) == [(HOME, 0)]
    assert after(observed("spf", "fail"), new) == [(HOME, 1)]
    assert after(observed("spf", "unknown"), new) == [(HOME, 1)]
    assert after(observed("spf", "warn"), observed("dkim", "pass", "new")) == [(HOME, 0)]
    assert after(well, new) == [(HOME, 1)]
    assert after(well) == [(HOME, 0)]
    assert after(observed("spf", "fail")) == [(HOME, 1)]
    assert after(within_s=90_000) == []
