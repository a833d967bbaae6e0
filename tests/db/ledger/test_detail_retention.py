"""Details go after their time: what the auth service sent, and what providers told us.

The trail, the attempts and every state stay; so a callback that comes later finds its place.
"""

from __future__ import annotations

import itertools
from dataclasses import astuple
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from notifier.domain.outcome import Accepted
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import expiry, rescue
from notifier.flow.retention import retain
from notifier.store.ledger import retention
from notifier.store.reads import trail_rebuild
from notifier.store.reads.expired import load_expired
from notifier.store.reads.paging import Walk
from tests.database import Clock
from tests.db import chain
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, receipt
from tests.db.rig import Rig, event_at

DAY_S = timedelta(days=1).total_seconds()
DETAIL_DAYS = 90
LIFE = timedelta(seconds=600)
_references = itertools.count(1)


def told(rig: Rig, **changes: Any) -> tuple[UUID, str]:
    """A notice whose email was handed over and reported as delivered; its attempt's reference."""
    reference = f"ref-{next(_references)}"
    notice_id = rig.admit(**changes)
    claim = rig.claim_one(provider=POSTMARK)
    rig.intent(claim, reference, provider=POSTMARK)
    rig.record(claim, Accepted(provider_message_id=f"id-{reference}"), reference)
    rig.tell(receipt(ReceiptStatus.DELIVERED, reference))
    return notice_id, reference


def run(rig: Rig) -> int:
    with rig.database.connection() as connection:
        return retain(rig.shelf, connection)


def run_to_the_end(rig: Rig) -> int:
    return sum(iter(lambda: run(rig), 0))


def expire(rig: Rig) -> None:
    with rig.database.connection() as connection:
        expiry.expire(rig.desk, connection)


def rescue_all(rig: Rig) -> None:
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)


def details(rig: Rig) -> tuple[int, int]:
    """Events and applied receipts that are still kept."""
    return rig.count("reset_event"), rig.count("receipt WHERE applied_at IS NOT NULL")


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    return make_rig(reports=True)


def test_details_are_erased_after_their_time_and_not_before(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    notice_id, _ = told(rig)
    told(rig)
    before = rig.trail(notice_id)

    clock.advance(DETAIL_DAYS * DAY_S - 60)
    run_to_the_end(rig)
    assert details(rig) == (2, 2)
    assert rig.notice(notice_id)["details_erased_at"] is None

    now = clock.advance(120)
    assert run_to_the_end(rig) == 4
    assert details(rig) == (0, 0)
    assert rig.notice(notice_id)["details_erased_at"] == now
    assert run(rig) == 0

    assert rig.trail(notice_id) == before
    assert len(rig.attempts(notice_id)) == 1


def test_p8_erasing_details_leaves_trail_and_states_whole(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    notice_id, _ = told(rig)
    rows = len(rig.trail(notice_id))
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    assert run_to_the_end(rig) >= 2

    assert chain.verify_at(rig.database.url) == rows
    assert trail_rebuild.differences(rig.database) == []


def test_a_notice_that_is_still_open_keeps_its_details(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    rig.admit()
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    run_to_the_end(rig)
    assert details(rig) == (1, 0)

    expire(rig)
    run_to_the_end(rig)
    assert details(rig) == (0, 0)


def test_a_notice_whose_link_is_still_good_keeps_its_details(
    make_rig: MakeRig, clock: Clock
) -> None:
    policy = {"max_life_s": 30 * DAY_S, "retention": {"detail_days": 7.0, "contact_days": 100.0}}
    rig = make_rig(reports=True, policy=policy)
    clock.freeze()
    notice_id, _ = told(rig, expires_at=clock.now() + timedelta(days=20))
    assert rig.notice(notice_id)["state"] == "complete"

    clock.advance(19 * DAY_S)
    assert run_to_the_end(rig) == 0
    assert details(rig) == (1, 1)
    clock.advance(2 * DAY_S)
    assert run_to_the_end(rig) == 2


def test_b140_no_statement_erases_more_than_a_batch(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    for _ in range(5):
        told(rig)
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    with rig.database.connection() as connection:
        erased = [
            [each(connection, days=DETAIL_DAYS, batch=2) for _ in range(4)]
            for each in (retention.erase_receipts, retention.erase_events)
        ]
    assert erased == [[2, 2, 1, 0], [2, 2, 1, 0]]


def test_b140_a_notice_that_somebody_holds_is_passed_over_at_once(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    held, _ = told(rig)
    told(rig)
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    with psycopg.connect(rig.database.url, options="-c search_path=notifier") as other:
        other.execute("SELECT FROM notice WHERE notice_id = %s FOR UPDATE", [held])
        run_to_the_end(rig)
        left = rig.rows("SELECT notice_id FROM reset_event")
    assert [row["notice_id"] for row in left] == [held]
    assert run_to_the_end(rig) == 2


REFUSE = """
    CREATE FUNCTION notifier.refuse_here() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = 'lock_not_available'; END $$;
    CREATE TRIGGER refuse_here BEFORE DELETE ON notifier.{table}
        FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_here();
"""
RELENT = "DROP FUNCTION notifier.refuse_here() CASCADE"


@pytest.mark.parametrize("table", ["contact", "receipt", "reset_event", "rate_window"])
def test_b140_what_cannot_be_erased_is_told_and_holds_up_nothing_else(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setattr(retention, "BATCH", 1)
    clock.freeze()
    for _ in range(3):
        told(rig)
    rig.run("INSERT INTO rate_window (name, window_at, hits) VALUES ('x', db_now(), 1)")
    rig.run("INSERT INTO contact SELECT notice_id, 'email', 'j', 'x', 'link', db_now() FROM notice")
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    tables = {"contact": 3, "receipt": 3, "reset_event": 3, "rate_window": 1}
    rig.run(sql.SQL(REFUSE).format(table=sql.Identifier(table)).as_string())
    try:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            run(rig)
        assert {name: rig.count(name) for name in tables} == {
            name: number if name == table else 0 for name, number in tables.items()
        }
    finally:
        rig.run(RELENT)
    run_to_the_end(rig)
    assert rig.count(table) == 0


def test_a_callback_about_erased_details_is_a_late_one_and_known_again_for_its_own_time(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze()
    notice_id, reference = told(rig)
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    run_to_the_end(rig)
    steps = len(rig.trail(notice_id))

    late = receipt(ReceiptStatus.FAILED, reference)
    for _ in range(3):
        rig.tell(late)
        run_to_the_end(rig)
    assert rig.notice(notice_id)["state"] == "complete"
    assert rig.reasons(notice_id)[steps:] == ["contradicting_receipt"]
    assert details(rig) == (0, 1)

    clock.advance(DETAIL_DAYS * DAY_S + 60)
    run_to_the_end(rig)
    assert details(rig) == (0, 0)


def test_a_callback_that_was_told_before_its_details_went_is_told_once_more(
    rig: Rig, clock: Clock
) -> None:
    clock.freeze()
    notice_id, reference = told(rig)
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    run_to_the_end(rig)
    before = rig.delivery(notice_id)
    steps = len(rig.trail(notice_id))

    for _ in range(2):
        rig.tell(receipt(ReceiptStatus.DELIVERED, reference))
    assert rig.reasons(notice_id)[steps:] == ["late_receipt"]
    assert rig.delivery(notice_id) == before
    assert trail_rebuild.differences(rig.database) == []


def test_a_time_before_there_were_computers_erases_nothing(make_rig: MakeRig, clock: Clock) -> None:
    days = dict.fromkeys(("contact_days", "detail_days", "trail_days"), 36_500.0)
    rig = make_rig(reports=True, policy={"retention": days})
    clock.freeze()
    told(rig)
    rig.run("INSERT INTO contact SELECT notice_id, 'email', 'j', 'x', 'link', db_now() FROM notice")
    assert run(rig) == 0
    assert details(rig) == (1, 1)
    assert rig.count("contact") == 1


def test_strangers_receipts_go_in_batches(
    rig: Rig, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    clock.freeze()
    rig.tell(*(receipt(ReceiptStatus.DELIVERED, f"nobody-{number}") for number in range(5)))
    clock.advance(2 * DAY_S)
    assert run(rig) == 0
    clock.advance(2 * DAY_S)
    assert [run(rig) for _ in range(4)] == [2, 2, 1, 0]


def test_an_event_of_the_same_id_is_answered_as_ever(rig: Rig, clock: Clock) -> None:
    clock.freeze()
    event = event_at(clock.now())
    notice_id = rig.admit(event)
    clock.advance(700)
    expire(rig)
    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    run_to_the_end(rig)
    assert details(rig) == (0, 0)
    assert rig.admit(event) == notice_id
    assert rig.count("reset_event") == 0


def test_the_list_of_expired_notices_tells_the_same_from_the_trail(rig: Rig, clock: Clock) -> None:
    start = clock.freeze()
    after = {
        "in time": timedelta(seconds=60),
        "dead": timedelta(seconds=660),
        "unclear": None,
        "nothing": None,
    }
    for name in after:
        rig.admit(region="DE" if name != "nothing" else None, expires_at=start + LIFE)
        rig.intent(rig.claim_one(provider=POSTMARK), name, provider=POSTMARK)
    clock.advance(LIFE.total_seconds() + 40)
    rescue_all(rig)
    expire(rig)
    clock.advance(60)
    for name, waited in list(after.items())[:3]:
        occurred = None if waited is None else start + waited
        rig.tell(receipt(ReceiptStatus.DELIVERED, name, occurred_at=occurred))

    def told(region: str | None) -> list[tuple[Any, ...]]:
        with rig.database.connection() as connection:
            page = load_expired(connection, Walk(50), region)
        return [(each.notice, *astuple(each)[1:]) for each in page.rows]

    before = {region: told(region) for region in (None, "DE", "FR")}
    assert sorted(each[1:] for each in before["DE"]) == [
        (False, False, True, "unknown"), (False, True, False, "unknown"),
        (True, False, False, "unknown"),
    ]  # fmt: skip
    assert {region: len(rows) for region, rows in before.items()} == {None: 4, "DE": 3, "FR": 0}

    clock.advance((DETAIL_DAYS + 1) * DAY_S)
    run_to_the_end(rig)
    assert details(rig) == (0, 0)
    assert {region: told(region) for region in before} == before
