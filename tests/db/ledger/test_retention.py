"""Masks and fingerprints go after their time; the trail and its chain stay."""

from __future__ import annotations

from datetime import timedelta

from notifier.domain.event import Given
from notifier.domain.states import Channel
from notifier.domain.values import Destination, Secret
from notifier.flow.retention import retain
from tests.database import Clock
from tests.db import chain
from tests.db.rig import Rig, event_at

ADDRESS = "jana@example.test"
KEPT_DAYS = 30


def with_address(rig: Rig, clock: Clock) -> None:
    claim = Given(Destination(Channel.EMAIL, ADDRESS), Secret(ADDRESS))
    rig.admit(event_at(clock.now(), email=claim))


def contacts(rig: Rig) -> int:
    with rig.database.connection() as connection:
        return len(connection.execute("SELECT FROM contact").fetchall())


def run(rig: Rig) -> int:
    with rig.database.connection() as connection:
        return retain(rig.shelf, connection)


def test_a_mask_is_erased_after_its_time_and_not_before(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    with_address(rig, clock)

    clock.advance(timedelta(days=KEPT_DAYS).total_seconds() - 60)
    assert run(rig) == 0
    assert contacts(rig) == 1

    clock.advance(120)
    assert run(rig) == 1
    assert contacts(rig) == 0
    assert run(rig) == 0


def test_p8_erasing_a_contact_leaves_the_trail_whole(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    with_address(rig, clock)
    clock.advance(timedelta(days=KEPT_DAYS + 1).total_seconds())
    run(rig)

    assert chain.verify_at(rig.database.url) == 3


def test_what_lives_for_minutes_is_removed(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    with rig.database.connection() as connection:
        connection.execute(
            "INSERT INTO rate_window (name, window_at, hits)"
            " VALUES ('admission', db_now() - interval '2 days', 3)"
        )
        connection.execute(
            "INSERT INTO search_token (token_digest, session_digest, channel, fingerprints, mask,"
            " created_at, expires_at) VALUES ('a', 'b', 'email', ARRAY['c'::bytea], 'm',"
            " db_now() - interval '1 hour', db_now() - interval '45 minutes')"
        )
        connection.execute(
            "INSERT INTO signed_cancel (signed_digest, event_id, seen_at)"
            " VALUES ('a', 'evt-1', db_now() - interval '2 days'),"
            " ('b', 'evt-1', db_now() - interval '11 minutes')"
        )
    assert run(rig) == 3
    assert run(rig) == 0
    assert rig.count("signed_cancel") == 1
