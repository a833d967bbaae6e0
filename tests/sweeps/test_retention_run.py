"""B140: retention that cannot erase something says so where every sweep's health is read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from notifier.clock import DatabaseClock
from notifier.flow.retention import retain
from notifier.store.database import Database
from notifier.store.reads.sweeps import SweepAge, sweep_ages
from notifier.sweeps.leader import Leader
from notifier.sweeps.runner import SweepRunner
from tests.db.rig import Rig
from tests.sweeps.conftest import LeaderThread
from tests.sweeps.waiting import until

REFUSE = """
    CREATE FUNCTION notifier.refuse_here() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'query_canceled'; END $$;
    CREATE TRIGGER refuse_here BEFORE DELETE ON notifier.reset_event
        FOR EACH STATEMENT EXECUTE FUNCTION notifier.refuse_here();
"""


def test_b140_a_retention_that_fails_grows_old_and_names_its_error(
    database: Database, take_part: Callable[..., LeaderThread]
) -> None:
    rig = Rig(database)
    leader = take_part(Leader(database, "here")).leader
    until(leader.is_leader)
    body = {"retention": partial(retain, rig.shelf)}
    sweeps = SweepRunner(database, leader, DatabaseClock(), body, lambda _: 600.0)

    def age() -> SweepAge:
        with database.connection() as connection:
            return {each.name: each for each in sweep_ages(connection)}["retention"]

    sweeps.tick("retention")
    good = age().finished_at
    rig.run(REFUSE)
    rig.run("INSERT INTO rate_window VALUES ('x', db_now() - interval '2 days', 1)")
    sweeps.tick("retention")
    assert (age().error, age().failures, age().finished_at) == ("QueryCanceled 57014", 1, good)
    assert rig.count("rate_window") == 0

    rig.run("DROP FUNCTION notifier.refuse_here() CASCADE")
    sweeps.tick("retention")
    assert (age().error, age().failures) == ("QueryCanceled 57014", 1)
    assert age().finished_at != good
