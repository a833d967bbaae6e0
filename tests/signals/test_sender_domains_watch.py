"""The worker that checks sender domains: what is kept, what counts as a change, what is due."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from notifier.signals.dns import Resolver
from notifier.signals.sender_domains import Sending
from notifier.signals.sender_watch import EVERY_S, SenderWatch, probe, queue_check, sender_watch_of
from notifier.store.reads.paging import Walk
from notifier.store.reads.sender_domains import (
    SenderRow,
    SendersWanted,
    load_domains,
    load_senders,
    load_standing,
)
from notifier.web.people.sender_domains import change_of
from tests.dns_server import Zone, running
from tests.unit.test_settings import loaded

if TYPE_CHECKING:
    from notifier.store.database import Database
    from tests.database import Clock

HOME = "mail.example"


@pytest.fixture
def zone() -> Zone:
    zone = Zone()
    zone.txt(HOME, "v=spf1 ip4:192.0.2.1 -all")
    zone.txt(f"_dmarc.{HOME}", "v=DMARC1; p=none; rua=mailto:a@mail.example")
    return zone


@pytest.fixture
def watch(zone: Zone) -> Iterator[SenderWatch]:
    with running(zone) as port:
        yield SenderWatch(
            Sending((HOME,)), lambda: Resolver([("127.0.0.1", port)], 30.0, 60.0), asks_all=True
        )


@pytest.fixture(autouse=True)
def _still(clock: Clock) -> None:
    clock.freeze()


def run(watch: SenderWatch, database: Database) -> int:
    with database.connection() as connection:
        return watch.run_due(connection)


def history(database: Database, **wanted: str) -> dict[str, list[SenderRow]]:
    """The rows of each kind, newest first."""
    with database.connection() as connection:
        rows = load_senders(connection, Walk(), SendersWanted(**wanted)).rows
    return {kind: [each for each in rows if each.kind == kind] for kind in {r.kind for r in rows}}


def later(clock: Clock, watch: SenderWatch, database: Database) -> None:
    clock.advance(EVERY_S)
    assert run(watch, database) == 1


def test_a_new_domain_is_checked_at_once_and_then_every_hour(
    database: Database, watch: SenderWatch, clock: Clock
) -> None:
    assert [run(watch, database), run(watch, database)] == [1, 0]
    clock.advance(EVERY_S - 1)
    assert run(watch, database) == 0
    clock.advance(1)
    assert [run(watch, database), run(watch, database)] == [1, 0]


def test_each_record_is_kept_as_observed_with_resolver_time_and_life(
    database: Database, watch: SenderWatch, zone: Zone, clock: Clock
) -> None:
    zone.txt(HOME, "v=spf1 ip4:192.0.2.1 -all", ttl=77)
    run(watch, database)
    (spf,) = history(database)["spf"]
    assert spf.texts == ("v=spf1 ip4:192.0.2.1 -all",)
    assert (spf.verdict, spf.ttl_s, spf.checks, spf.ended_at) == ("pass", 77, 1, None)
    assert spf.resolver.startswith("127.0.0.1:")
    assert spf.first_seen_at == spf.last_seen_at == clock.now()
    assert set(history(database)) == {"spf", "dkim", "dmarc", "alignment"}


def test_what_is_seen_again_grows_older_and_makes_no_row(
    database: Database, watch: SenderWatch, zone: Zone, clock: Clock
) -> None:
    run(watch, database)
    began = clock.now()
    zone.txt(HOME, "v=spf1 ip4:192.0.2.1 -all", ttl=12)
    later(clock, watch, database)
    (spf,) = history(database)["spf"]
    assert (spf.checks, spf.first_seen_at, spf.last_seen_at) == (2, began, clock.now())
    assert spf.ttl_s == 12


def test_a_change_ends_the_row_before_it_and_shows_what_went_and_came(
    database: Database, watch: SenderWatch, zone: Zone, clock: Clock
) -> None:
    run(watch, database)
    zone.txt(HOME, "v=spf1 ip4:192.0.2.9 -all")
    zone.txt(f"_dmarc.{HOME}", "v=DMARC1; p=reject; rua=mailto:a@mail.example")
    later(clock, watch, database)
    rows = history(database)
    new, old = rows["spf"]
    assert (old.ended_at, new.ended_at, old.before) == (new.first_seen_at, None, None)
    change = change_of(new)
    assert change is not None
    assert (change.gone, change.new) == (("ip4:192.0.2.1",), ("ip4:192.0.2.9",))
    policy = change_of(rows["dmarc"][0])
    assert policy is not None
    assert (policy.gone, policy.new) == (("p=none",), ("p=reject",))
    assert len(rows["dkim"]) == 1


def test_a_failed_look_up_is_unknown_and_the_next_text_is_compared_with_the_last_known(
    database: Database, watch: SenderWatch, zone: Zone, clock: Clock
) -> None:
    run(watch, database)
    zone.codes[HOME] = "SERVFAIL"
    later(clock, watch, database)
    del zone.codes[HOME]
    zone.txt(HOME, "v=spf1 -all")
    later(clock, watch, database)
    newest, failed, first = history(database)["spf"]
    assert [each.verdict for each in (first, failed, newest)] == ["pass", "unknown", "pass"]
    assert (failed.texts, change_of(failed)) == ((), None)
    assert newest.before == first.texts
    assert history(database, verdict="unknown")["spf"] == [failed]


def test_a_record_that_is_taken_away_is_told_as_gone(
    database: Database, watch: SenderWatch, zone: Zone, clock: Clock
) -> None:
    run(watch, database)
    zone.forget(HOME)
    later(clock, watch, database)
    newest = history(database)["spf"][0]
    assert newest.verdict == "fail"
    change = change_of(newest)
    assert change is not None
    assert change.gone == ("v=spf1", "ip4:192.0.2.1", "-all")


def test_a_selector_that_is_no_longer_named_stands_no_longer(
    database: Database, watch: SenderWatch, clock: Clock
) -> None:
    before = SenderWatch(Sending((HOME,), ("s1", "s2")), watch.resolver, asks_all=True)
    run(before, database)
    after = SenderWatch(Sending((HOME,), ("s2",)), watch.resolver, asks_all=True)
    later(clock, after, database)
    with database.connection() as connection:
        standing = load_standing(connection, SendersWanted())
    assert [each.selector for each in standing if each.kind == "dkim"] == ["s2"]
    assert [each.kind for each in standing] == ["spf", "dkim", "dmarc", "alignment"]


def test_a_check_that_somebody_asked_for_is_queued_until_a_worker_did_it(
    database: Database, watch: SenderWatch, zone: Zone, clock: Clock
) -> None:
    run(watch, database)
    clock.advance(60)
    asked_before = sum(zone.asked.values())
    assert queue_check(database, HOME, "otto")
    assert not queue_check(database, "stranger.example", "otto")
    assert sum(zone.asked.values()) == asked_before
    (row,) = domains(database)
    assert (row.is_queued, row.asked_by) == (True, "otto")
    clock.advance(1)
    assert run(watch, database) == 1
    assert not domains(database)[0].is_queued


def domains(database: Database) -> Any:
    with database.connection() as connection:
        return load_domains(connection)


def test_a_domain_that_only_others_send_from_is_left_to_them(
    database: Database, watch: SenderWatch, clock: Clock
) -> None:
    run(watch, database)
    elsewhere = SenderWatch(Sending(("other.example",)), watch.resolver, asks_all=True)
    clock.advance(86_400)
    assert [run(elsewhere, database), run(elsewhere, database)] == [1, 0]
    assert {each.domain for each in domains(database)} == {HOME, "other.example"}


def test_the_settings_say_what_is_checked_and_whom_to_ask(zone: Zone) -> None:
    with running(zone) as port:
        found = loaded(
            EMAIL_FROM="no-reply@Mail.Example", DKIM_SELECTORS="s1, s2",
            DNS_RESOLVER=f"127.0.0.1:{port}",
        )  # fmt: skip
        watch = sender_watch_of(found)
        assert watch.sending == Sending((HOME,), ("s1", "s2"), own_envelope=True)
        ((domain, is_well, words),) = probe(watch)
    assert (domain, is_well) == (HOME, False)
    assert "spf pass" in words
    assert "dkim s1 fail (there is no key under the selector s1)" in words
    assert zone.asked["udp", f"s2._domainkey.{HOME}", "TXT"] == 1


def test_nobody_is_asked_about_a_domain_that_public_dns_does_not_have() -> None:
    ((domain, is_well, words),) = probe(sender_watch_of(loaded(EMAIL_FROM="a@reset.test")))
    assert (domain, is_well) == ("reset.test", True)
    assert "spf unknown (the domain is reserved, so nobody was asked about it)" in words
