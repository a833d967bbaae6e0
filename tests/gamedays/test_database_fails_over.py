"""The primary dies: told once by whoever watches, its end too, and nothing else."""

from __future__ import annotations

from notifier.signals.judgements import RuleName
from notifier.signals.judging import Judge
from notifier.signals.outage import Outage
from notifier.signals.paging import Outbox
from notifier.signals.watch import Watch, watch_database
from notifier.store.database import Database
from tests.chaos.replicas import running_pair
from tests.db.rig import Rig
from tests.running import until
from tests.signals.receivers import webhook

BASE = "https://notices.example.com"
LIFE_S = 20.0
WITHIN_S = 90.0
GONE, BACK = "The database cannot be reached", "Over: The database cannot be reached"


def test_p11_a_database_that_fails_over() -> None:
    with running_pair() as pair, webhook() as hook:
        database = Database(pair.url)
        rig = Rig(database, policy={"alert": {"life_s": LIFE_S}})
        receivers = [hook.receiver]
        judge = Judge(rig.shelf, "judge", lambda _: 5.0, receivers=[hook.receiver.name])
        watch = Watch(
            watch_database(pair.url),
            judge,
            Outbox(database, receivers, BASE),
            unreachable=Outage(RuleName.DATABASE_UNREACHABLE, receivers, BASE, "this process"),
            unjudged=Outage(RuleName.RULES_NOT_JUDGED, receivers, BASE, "this process"),
        )

        def titles() -> list[str]:
            watch.pass_once()
            return hook.titles

        try:
            assert titles() == []
            pair.kill_primary()
            until(lambda: titles() == [GONE], WITHIN_S)
            pair.promote()
            until(lambda: titles() == [GONE, BACK], WITHIN_S)
            assert titles() == [GONE, BACK]
        finally:
            watch.stop()
            database.close()
