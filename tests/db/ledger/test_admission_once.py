"""P1: one event, one notice, whoever asks and however often."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from notifier.domain.destinations import check_email
from notifier.domain.event import Admitted, Conflict, Given, ResetEvent
from notifier.domain.states import NoticeState
from notifier.domain.values import Destination, Secret
from notifier.flow.retention import retain
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.rig import TRANSPORT, Rig
from tests.db.waiting import together

THREADS = 20
KEYS = ("event_id", "idempotency_key", "reset_request_id")


def claim_of(address: str) -> Given:
    destination = check_email(address)
    assert isinstance(destination, Destination)
    return Given(destination, Secret(address))


def race(rigs: list[Rig], event: ResetEvent) -> list[Admitted | Conflict]:
    jobs = [
        partial(rigs[number % len(rigs)].admission.admit, event, TRANSPORT)
        for number in range(THREADS)
    ]
    return together(*jobs)


@pytest.mark.parametrize("processes", [1, 2])
def test_p1_twenty_at_once_make_one_notice_and_one_created(
    make_rig: MakeRig, processes: int
) -> None:
    rigs = [make_rig(size=THREADS) for _ in range(processes)]
    event = rigs[0].event()

    answers = race(rigs, event)

    admitted = [answer for answer in answers if isinstance(answer, Admitted)]
    assert len(admitted) == THREADS
    assert sum(not answer.replayed for answer in admitted) == 1
    assert len({answer.notification_id for answer in admitted}) == 1
    rig = rigs[0]
    counts = {name: rig.count(name) for name in ("admission", "notice", "delivery", "transition")}
    assert counts == {"admission": 1, "notice": 1, "delivery": 2, "transition": 3}
    assert rig.count("reset_event") == 1


@pytest.mark.parametrize("shared", KEYS)
def test_p1_each_of_the_three_keys_is_given_once_among_racing_strangers(
    make_rig: MakeRig, shared: str
) -> None:
    rigs = [make_rig(size=10), make_rig(size=10)]
    jobs = [
        partial(rigs[number % 2].admission.admit, rigs[0].event(**{shared: "the-same"}), TRANSPORT)
        for number in range(THREADS)
    ]

    answers = together(*jobs)

    created = [answer for answer in answers if isinstance(answer, Admitted)]
    assert [answer.replayed for answer in created] == [False]
    assert answers.count(Conflict()) == THREADS - 1
    assert rigs[0].count("notice") == 1
    reasons = rigs[0].reasons(rigs[0].one("SELECT notice_id FROM notice")["notice_id"])
    assert reasons.count("event_conflict") == THREADS - 1


@pytest.mark.parametrize(
    "changes",
    [
        {"expires_at": timedelta(seconds=1)},
        {"account_id": "somebody-else"},
        {"email": claim_of("other@mail.example")},
    ],
    ids=["other expiry", "other account", "other address"],
)
def test_p1_other_content_is_a_conflict_on_the_trail_and_changes_nothing(
    rig: Rig, changes: dict[str, object]
) -> None:
    event = rig.event(email=claim_of("jana.moe@mail.example"))
    notice_id = rig.admit(event)
    stored = rig.rows("SELECT * FROM admission")
    if isinstance(shift := changes.get("expires_at"), timedelta):
        changes = {"expires_at": event.expires_at + shift}

    answer = rig.admission.admit(replace(event, **changes), TRANSPORT)  # type: ignore[arg-type]

    assert answer == Conflict()
    assert rig.rows("SELECT * FROM admission") == stored
    last = rig.trail(notice_id)[-1]
    assert (last["reason"], last["from_state"], last["to_state"]) == ("event_conflict", None, None)
    assert last["evidence"] is None
    assert last["detail"] is None
    assert "other" not in str(last)


@pytest.mark.parametrize(
    ("other", "keys"),
    [
        ({"idempotency_key": "k-2", "reset_request_id": "r-2"}, ("event_id",)),
        ({"event_id": "e-2", "reset_request_id": "r-2"}, ("idempotency_key",)),
        ({"event_id": "e-2", "idempotency_key": "k-2"}, ("reset_request_id",)),
        ({"account_id": "a-2"}, ("event_id", "idempotency_key", "reset_request_id")),
    ],
)
def test_p1_a_conflict_names_the_keys_that_are_known(
    rig: Rig, other: dict[str, str], keys: tuple[str, ...]
) -> None:
    event = replace(rig.event(), idempotency_key="k-1")
    rig.admit(event)

    answer = rig.admission.admit(replace(event, **other), TRANSPORT)  # type: ignore[arg-type]

    assert isinstance(answer, Conflict)
    assert answer.keys == keys


def test_p1_a_key_that_only_repeats_the_event_id_is_not_named_beside_it(rig: Rig) -> None:
    event = rig.event()
    event = replace(event, idempotency_key=event.event_id)
    rig.admit(event)

    answer = rig.admission.admit(replace(event, reset_request_id="r-2"), TRANSPORT)

    assert isinstance(answer, Conflict)
    assert answer.keys == ("event_id",)


def test_p1_an_event_that_joins_two_notices_is_a_conflict(rig: Rig) -> None:
    one, two = rig.event(), rig.event()
    rig.admit(one)
    rig.admit(two)

    mixed = replace(one, idempotency_key=two.idempotency_key)

    assert rig.admission.admit(mixed, TRANSPORT) == Conflict()
    assert rig.count("notice") == 2


def admit_long_ago(rig: Rig, clock: Clock) -> tuple[ResetEvent, Admitted]:
    """An event of years ago and what it came to, with all erased that is ever erased."""
    clock.freeze()
    event = rig.event(email=claim_of("jana.moe@mail.example"))
    first = rig.admission.admit(event, TRANSPORT)
    assert isinstance(first, Admitted)
    clock.advance(timedelta(days=3_000).total_seconds())
    rig.settle(UUID(first.notification_id))
    with rig.database.connection() as connection:
        while retain(rig.shelf, connection):
            pass
    assert rig.count("contact") == 0
    return event, first


def test_p1_a_repeat_after_years_is_answered_as_it_was_and_makes_nothing(
    rig: Rig, clock: Clock
) -> None:
    event, first = admit_long_ago(rig, clock)
    stored = rig.rows("SELECT * FROM admission")

    again = rig.admission.admit(event, TRANSPORT)

    assert again == replace(first, replayed=True, status=NoticeState.EXPIRED)
    assert rig.admission.find(event) == again
    assert (rig.rows("SELECT * FROM admission"), rig.count("notice")) == (stored, 1)


@pytest.mark.parametrize("shared", KEYS)
def test_p1_a_key_of_years_ago_with_another_body_is_a_conflict(
    rig: Rig, clock: Clock, shared: str
) -> None:
    event, first = admit_long_ago(rig, clock)
    other = rig.event(**{shared: getattr(event, shared)})

    assert rig.admission.find(other) is None
    assert rig.admission.admit(other, TRANSPORT) == Conflict()

    assert rig.count("notice") == 1
    assert rig.reasons(UUID(first.notification_id)).count("event_conflict") == 1


@pytest.mark.parametrize("changed", KEYS)
def test_p1_a_repeat_under_one_other_key_is_a_conflict(rig: Rig, changed: str) -> None:
    event = rig.event()
    notice_id = rig.admit(event)

    fields: dict[str, Any] = {changed: "another"}
    other = replace(event, **fields)

    assert rig.admission.admit(other, TRANSPORT) == Conflict()
    assert rig.count("notice") == 1
    assert rig.reasons(notice_id).count("event_conflict") == 1


def test_p1_a_repeat_is_recognised_after_the_digest_key_was_rotated(make_rig: MakeRig) -> None:
    before = make_rig(digest_keys=(b"old",))
    event = before.event()
    first = before.admission.admit(event, TRANSPORT)
    after = make_rig(digest_keys=(b"new", b"old"))

    again = after.admission.admit(event, TRANSPORT)

    assert isinstance(first, Admitted)
    assert again == replace(first, replayed=True)
    other = replace(event, account_id="somebody-else")
    assert after.admission.admit(other, TRANSPORT) == Conflict()


def test_p1_a_repeat_gives_the_same_answer_with_the_status_of_now(rig: Rig) -> None:
    event = rig.event()
    first = rig.admission.admit(event, TRANSPORT)
    assert isinstance(first, Admitted)
    rig.run("UPDATE notice SET state = 'failed'")

    again = rig.admission.admit(event, TRANSPORT)

    assert again == replace(first, replayed=True, status=NoticeState.FAILED)
    assert rig.admission.find(event) == again


def test_p1_the_correlation_id_and_the_transport_do_not_make_it_another_event(rig: Rig) -> None:
    event = rig.event(correlation_id="trace-1")
    rig.admit(event)

    again = rig.admission.admit(
        replace(event, correlation_id="trace-2"), replace(TRANSPORT, message_id="msg-2")
    )

    assert isinstance(again, Admitted)
    assert again.replayed


def test_p1_keys_are_compared_byte_for_byte(rig: Rig) -> None:
    event = rig.event(event_id="Evt-1", idempotency_key="K", reset_request_id="R")
    rig.admit(event)

    other = rig.admission.admit(
        replace(event, event_id="evt-1", idempotency_key="k", reset_request_id="r"), TRANSPORT
    )

    assert isinstance(other, Admitted)
    assert not other.replayed


def test_finding_an_event_that_never_came_writes_nothing(rig: Rig) -> None:
    assert rig.admission.find(rig.event()) is None
    assert rig.count("transition") == 0
