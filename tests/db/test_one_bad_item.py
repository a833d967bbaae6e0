"""One notice that breaks whatever touches it stands alone; those claimed with it are sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from notifier.clock import DatabaseClock
from notifier.domain.states import Channel
from notifier.domain.values import RenderedMessage
from notifier.ports.links import LinkGranted
from notifier.store.ledger.claim import Claim
from notifier.sweeps.claim_loop import ClaimLoop
from notifier.sweeps.wakeup import Wakeup
from tests.db.ledger.test_dispatch_guards import MESSAGE, Line, dispatch_of
from tests.db.rig import Rig
from tests.running import until

BAD = "evt-bad"


def render(claim: Claim, _granted: LinkGranted, _expires_at: datetime) -> RenderedMessage:
    if claim.event_id == BAD:
        raise ZeroDivisionError
    return MESSAGE


def test_b011_one_that_raises_while_it_is_rendered_fails_alone_and_no_other_is_sent_twice(
    rig: Rig,
) -> None:
    before = [rig.admit() for _ in range(3)]
    bad = rig.admit(event_id=BAD)
    after = [rig.admit() for _ in range(6)]
    clock, line = DatabaseClock(), Line()
    with rig.database.connection() as connection:
        clock.refresh(connection)
    dispatch = replace(dispatch_of(rig, line, clock), message=render)
    loop = ClaimLoop(
        dispatch=dispatch,
        desk=rig.desk,
        channels=[Channel.EMAIL],
        workers=4,
        bell=Wakeup(rig.database),
    )

    loop.start()
    until(lambda: rig.state(bad) == "failed", 30, "the bad one to fail")
    until(lambda: {rig.state(each) for each in before + after} == {"accepted"}, 30, "the others")
    loop.stop()

    assert len(line.sent) == 9
    delivery = rig.delivery(bad)
    assert (delivery["reason"], delivery["attempts"]) == ("internal_fault", 0)
    assert rig.reasons(bad).count("claimed") == 1
    assert [len(rig.attempts(each)) for each in before + after] == [1] * 9
