"""B095: the call was made, and writing that down fails: only the writing is repeated."""

from __future__ import annotations

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.flow import rescue
from tests.database import Clock
from tests.db.rig import BUDGET, Rig
from tests.db.waiting import begin

# The sequence counts what a rollback would forget.
TROUBLE = """
    CREATE SEQUENCE trials;
    CREATE FUNCTION fail_for_a_while() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.reason = 'provider_accepted' AND nextval('trials') <= {} THEN
            RAISE EXCEPTION 'made up' USING ERRCODE = '{}';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fail_for_a_while BEFORE INSERT ON transition
        FOR EACH ROW EXECUTE FUNCTION fail_for_a_while();
"""
TRIALS = "SELECT last_value FROM trials"


@pytest.mark.parametrize(
    "code", ["40001", "40P01", "57014", "53200"], ids=["serial", "deadlock", "timeout", "memory"]
)
def test_b095_an_answer_that_fails_three_times_is_written_the_fourth(rig: Rig, code: str) -> None:
    claim = rig.start_new()
    rig.run(TROUBLE.format(3, code))

    rig.record(claim, Accepted("id-1"))

    assert rig.one(TRIALS)["last_value"] == 4
    assert rig.state(claim.notice_id) == "accepted"
    assert rig.reasons(claim.notice_id).count("provider_accepted") == 1
    assert len(rig.attempts(claim.notice_id)) == 1
    assert rig.counted == [Accepted("id-1")]


def test_b095_an_answer_that_can_never_be_written_ends_as_unknown(rig: Rig, clock: Clock) -> None:
    claim = rig.start_new()
    rig.run(TROUBLE.format(1_000_000, "40001"))
    writing = begin(lambda: rig.record(claim, Accepted("id-1")))
    while rig.one(TRIALS)["last_value"] < 3:
        assert not writing.done()
    assert rig.recorder.waiting == 1

    rig.give_up.set()
    writing.result(10)
    clock.advance(BUDGET.total_seconds() + 3)
    with rig.database.connection() as connection:
        rescue.rescue(rig.desk, connection)

    assert rig.delivery(claim.notice_id)["reason"] == "worker_lost"
    assert rig.claim(1) == []


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Accepted("id-1"), "accepted"),
        (Refused(Detail.INVALID_DESTINATION), "failed"),
        (NotAccepted(Detail.UNREACHABLE), "queued"),
        (Unknown(Reason.TIMEOUT), "unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_b095_an_answer_written_again_after_its_commit_went_unheard_changes_nothing(
    rig: Rig, outcome: Outcome, state: str
) -> None:
    claim = rig.start_new()
    rig.record(claim, outcome)
    rig.record(claim, outcome)

    assert rig.state(claim.notice_id) == state
    assert rig.reasons(claim.notice_id)[-1] == "late_outcome"
    assert len(rig.attempts(claim.notice_id)) == 1
