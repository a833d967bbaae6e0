"""What was measured is what happened, read from real rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Unknown
from notifier.domain.policy import default_policy
from notifier.domain.proposals import proposals
from notifier.domain.reasons import Detail, Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.store.reads.latencies import (
    LATENCIES,
    Latencies,
    Sample,
    first_id,
    load_latencies,
)
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, receipt
from tests.db.rig import Rig

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    return make_rig(reports=True)


@pytest.fixture
def began(clock: Clock) -> datetime:
    """Ids are made on the machine's clock, so the test's begins there."""
    return clock.freeze()


def send(rig: Rig, clock: Clock, reference: str, queue: float, answer: float) -> None:
    """One email that waits, is called for, and is taken."""
    rig.admit()
    clock.advance(queue)
    claim = rig.start(reference, provider=POSTMARK)
    clock.advance(answer)
    rig.record(claim, Accepted(f"id-{reference}"), reference)


def report(rig: Rig, reference: str, status: ReceiptStatus, **more: Any) -> None:
    rig.tell(receipt(status, reference, **more))


def look(rig: Rig, began: datetime, most: int = 1000) -> Latencies:
    with rig.database.connection() as connection:
        return load_latencies(connection, began - HOUR, began + HOUR, most)


def test_each_step_takes_as_long_as_it_took(rig: Rig, clock: Clock, began: datetime) -> None:
    send(rig, clock, "ref-1", queue=2, answer=0.5)
    clock.advance(40)
    report(rig, "ref-1", ReceiptStatus.DELIVERED, occurred_at=clock.now() - timedelta(seconds=10))
    clock.advance(600)

    seen = look(rig, began)
    email = {
        name: getattr(seen.measured, name)[Channel.EMAIL]
        for name in ("queue", "provider", "carrier", "news")
    }
    assert {name: list(waits.ended) for name, waits in email.items()} == {
        "queue": [2.0],
        "provider": [0.5],
        "carrier": [30.0],
        "news": [40.0],
    }
    assert (seen.attempts, seen.all_read) == (1, True)
    assert seen.measured.carrier[Channel.SMS].number == 0


def test_what_never_reported_is_a_wait_that_never_ended_once_its_request_is_over(
    rig: Rig, clock: Clock, began: datetime
) -> None:
    send(rig, clock, "ref-1", queue=1, answer=1)
    assert look(rig, began).measured.carrier[Channel.EMAIL].number == 0, "it may still report"
    clock.advance(600)
    carrier = look(rig, began).measured.carrier[Channel.EMAIL]
    assert (list(carrier.ended), carrier.never_ended) == ([], 1)


def test_a_report_after_expiry_counts_with_its_true_length(
    rig: Rig, clock: Clock, began: datetime
) -> None:
    send(rig, clock, "ref-1", queue=1, answer=1)
    clock.advance(700)
    report(rig, "ref-1", ReceiptStatus.DELIVERED)
    carrier = look(rig, began).measured.carrier[Channel.EMAIL]
    assert (list(carrier.ended), carrier.never_ended) == ([700.0], 0)


def test_a_bounce_is_neither_an_arrival_nor_a_wait_without_end(
    rig: Rig, clock: Clock, began: datetime
) -> None:
    send(rig, clock, "ref-1", queue=1, answer=1)
    report(rig, "ref-1", ReceiptStatus.FAILED)
    clock.advance(700)
    assert look(rig, began).measured.carrier[Channel.EMAIL].number == 0


def test_a_provider_whose_clock_is_wrong_makes_no_wait_negative_or_longer_than_the_news(
    rig: Rig, clock: Clock, began: datetime
) -> None:
    for reference, off in (("ref-1", -HOUR), ("ref-2", HOUR)):
        send(rig, clock, reference, queue=0, answer=0)
        at = clock.advance(7)
        report(rig, reference, ReceiptStatus.DELIVERED, occurred_at=at + off)
    clock.advance(700)
    assert list(look(rig, began).measured.carrier[Channel.EMAIL].ended) == [0.0, 7.0]


def test_a_call_that_timed_out_is_an_answer_that_never_came(
    rig: Rig, clock: Clock, began: datetime
) -> None:
    claim = rig.start_new()
    clock.advance(20)
    rig.record(claim, Unknown(Reason.TIMEOUT))
    provider = look(rig, began).measured.provider[Channel.EMAIL]
    assert (list(provider.ended), provider.never_ended) == ([], 1)


def test_a_retry_has_no_wait_in_the_queue_of_its_own(
    rig: Rig, clock: Clock, began: datetime
) -> None:
    claim = rig.start_new()
    clock.advance(1)
    rig.record(claim, NotAccepted(Detail.UNREACHABLE))
    clock.advance(60)
    again = rig.start("ref-2")
    clock.advance(2)
    rig.record(again, Accepted("id-2"), "ref-2")

    measured = look(rig, began).measured
    assert list(measured.queue[Channel.EMAIL].ended) == [0.0]
    assert list(measured.provider[Channel.EMAIL].ended) == [1.0, 2.0]


def test_only_the_newest_are_read_and_it_is_said(rig: Rig, clock: Clock, began: datetime) -> None:
    for number in range(4):
        send(rig, clock, f"ref-{number}", queue=number, answer=0)
    seen = look(rig, began, most=2)
    assert (seen.attempts, seen.all_read) == (2, False)
    assert seen.samples == {Channel.EMAIL: Sample(2, began + 3 * SECOND, began + 6 * SECOND)}
    assert list(seen.measured.queue[Channel.EMAIL].ended) == [2.0, 3.0]


def test_outside_the_window_nothing_is_read(rig: Rig, clock: Clock, began: datetime) -> None:
    send(rig, clock, "ref-1", queue=0, answer=0)
    with rig.database.connection() as connection:
        before = load_latencies(connection, began - 2 * HOUR, began - HOUR)
    assert (before.attempts, before.all_read, before.samples) == (0, True, {})


def test_the_window_is_a_stretch_of_the_key_and_never_the_whole_table(
    rig: Rig, began: datetime
) -> None:
    values = {
        "first": first_id(began - HOUR),
        "last": first_id(began),
        "since": began - HOUR,
        "until": began,
        "most": 1000,
        "scanned": 1000,
    }
    with rig.database.connection() as connection, connection.transaction():
        connection.execute("SET LOCAL enable_seqscan = off")
        rows = connection.execute("EXPLAIN " + LATENCIES, values).fetchall()
    plan = "\n".join(row["QUERY PLAN"] for row in rows)
    assert "attempt_pkey" in plan
    assert "Index Cond: ((notice_id >=" in plan
    assert "Seq Scan" not in plan
    assert "receipt_by_notice" in plan


def test_real_rows_lead_to_a_proposal_with_their_own_number(
    rig: Rig, clock: Clock, began: datetime
) -> None:
    send(rig, clock, "ref-1", queue=1, answer=0.25)
    clock.advance(41)
    report(rig, "ref-1", ReceiptStatus.DELIVERED)
    clock.advance(700)
    rig.run(
        """INSERT INTO notice SELECT (n).* FROM (
             SELECT jsonb_populate_record(o, jsonb_build_object(
                      'notice_id', overlay(o.notice_id::text placing lpad(g::text, 12, '0')
                                           from 25),
                      'event_id', 'copy-' || g)) AS n
               FROM notice o, generate_series(1, 400) g) copies"""
    )
    rig.run(
        """INSERT INTO delivery SELECT (d).* FROM (
             SELECT jsonb_populate_record(o, jsonb_build_object(
                      'notice_id', overlay(o.notice_id::text placing lpad(g::text, 12, '0')
                                           from 25), 'state', 'queued',
                      'reason', 'primary_selected')) AS d
               FROM delivery o, generate_series(1, 400) g) copies"""
    )
    rig.run(
        """INSERT INTO attempt SELECT (a).* FROM (
             SELECT jsonb_populate_record(o, jsonb_build_object(
                      'notice_id', overlay(o.notice_id::text placing lpad(g::text, 12, '0')
                                           from 25),
                      'key', 'copy-' || g, 'reference', 'copy-' || g)) AS a
               FROM attempt o, generate_series(1, 400) g) copies"""
    )
    rig.run(
        """INSERT INTO receipt SELECT (r).* FROM (
             SELECT jsonb_populate_record(o, jsonb_build_object(
                      'receipt_id', gen_random_uuid(), 'identity', '\\x' || lpad(to_hex(g), 8, '0'),
                      'notice_id', overlay(o.notice_id::text placing lpad(g::text, 12, '0')
                                           from 25))) AS r
               FROM receipt o, generate_series(1, 400) g) copies"""
    )

    seen = look(rig, began)
    [margin, *_] = proposals(default_policy(), seen.measured)

    assert seen.attempts == 401
    assert margin.arithmetic == (
        "p99 of the carrier 41 s (41 s in 401, 95 % confidence) + call time limit 10 s = 51 s, "
        "rounded up to 55 s"
    )
    assert margin.proposed == 55
