"""A new policy revision: every process learns of it, and no admitted notice ever does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from notifier.assembly.application import period_of
from notifier.domain.policy import Policy
from notifier.domain.states import Channel
from notifier.flow import expiry, policies
from notifier.flow.policies import RULES_WITHIN_S, PolicyRefused, PolicyShelf, StalePolicy
from tests.db.rig import BOTH, Rig
from tests.running import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from notifier.flow.desk import Desk
    from notifier.store.database import Database, PooledConnection
    from tests.database import Clock

SHORTER = {"observation_window": {"share": 0.2}}
"""The text is decided on at minute two instead of five."""


def keep(database: Database, base: int, **different: Any) -> int:
    draft = Policy.from_document(different)
    return policies.keep(database, draft, base=base, author="ada", reason="a slow carrier")


def sweep(rig: Rig, body: Callable[[Desk, PooledConnection], int]) -> None:
    with rig.database.connection() as connection:
        body(rig.desk, connection)


def revisions_on_the_trail(database: Database, notice_id: UUID) -> list[int]:
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT policy_revision FROM transition WHERE notice_id = %s ORDER BY seq", [notice_id]
        )
        return [row["policy_revision"] for row in rows]


def current(shelf: PolicyShelf) -> int:
    return shelf.current()[0]


def test_every_process_admits_by_a_new_revision_within_the_stated_time(database: Database) -> None:
    processes = [Rig(database, BOTH) for _ in range(3)]
    assert [current(each.shelf) for each in processes] == [1, 1, 1]
    keep(database, 1, sweep_every_s=2, **SHORTER)
    until(lambda: all(current(each.shelf) == 2 for each in processes), within_s=RULES_WITHIN_S + 10)
    assert [period_of(each.shelf, "expiry") for each in processes] == [2, 2, 2]
    notices = [each.admit_for_both() for each in processes]
    assert [revisions_on_the_trail(database, each)[0] for each in notices] == [2, 2, 2]


def test_an_admitted_notice_keeps_its_revision_through_all_later_decisions(
    database: Database, clock: Clock
) -> None:
    clock.freeze()
    rig = Rig(database, BOTH)
    old = rig.admit_for_both()
    keep(database, 1, on_unknown="hold", on_unconfirmed="hold", **SHORTER)
    later = Rig(database, BOTH)
    new = later.admit_for_both()
    clock.advance(125)
    sweep(later, expiry.decide_fallbacks)
    assert later.state(new, Channel.SMS) == "queued"
    assert later.state(old, Channel.SMS) == "standby", "its email is watched for five minutes"
    clock.advance(180)
    sweep(later, expiry.decide_fallbacks)
    assert later.state(old, Channel.SMS) == "queued"
    clock.advance(600)
    sweep(later, expiry.expire)
    for notice, revision in ((old, 1), (new, 2)):
        assert set(revisions_on_the_trail(database, notice)) == {revision}
        assert len(revisions_on_the_trail(database, notice)) > 2


def test_of_two_who_keep_at_once_on_the_same_revision_one_is_late(database: Database) -> None:
    PolicyShelf(database).begin(Policy.from_document({}), "start")

    def one(number: int) -> str:
        draft = Policy.from_document({"lease_s": 31 + number})
        try:
            policies.keep(database, draft, base=1, author=f"p{number}", reason="at once")
        except StalePolicy:
            return "late"
        return "kept"

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(one, range(6))) == ["kept", *["late"] * 5]


@pytest.mark.parametrize("base", [0, 2, 99])
def test_a_revision_on_one_that_is_not_in_force_is_late(database: Database, base: int) -> None:
    PolicyShelf(database).begin(Policy.from_document({}), "start")
    with pytest.raises(StalePolicy):
        keep(database, base, lease_s=40)


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\nb", "see example.com/reset"])
def test_a_revision_needs_a_reason(database: Database, reason: str) -> None:
    with pytest.raises(PolicyRefused):
        policies.keep(
            database, Policy.from_document({"lease_s": 40}), base=1, author="ada", reason=reason
        )
