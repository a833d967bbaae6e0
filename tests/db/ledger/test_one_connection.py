"""No flow waits for a second connection while it holds one: a pool could then wait for itself."""

from __future__ import annotations

from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import NotAccepted, ProviderPause, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.flow import cancel, expiry, halts, put_back, rescue, tickets
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.test_admission_once import claim_of
from tests.db.rig import TRANSPORT, Rig


def test_b091_a_process_with_a_single_connection_can_do_everything(
    make_rig: MakeRig, rig: Rig, clock: Clock
) -> None:
    """Each step is done by a process that has just begun and knows no policy revision yet."""
    event = rig.event(email=claim_of("jana.moe@mail.example"))
    notice_id = rig.admit(event)

    def fresh() -> Rig:
        return make_rig(size=1)

    fresh().admission.admit(event, TRANSPORT)
    fresh().admission.admit(rig.event(event_id=event.event_id), TRANSPORT)
    fresh().settle(notice_id)
    claim = fresh().claim_one()
    one = fresh()
    one.contacts.learn(one.desk, claim, claim_of("other@mail.example").destination)
    put_back.hand_back_for_link(fresh().desk, claim, LinkFault.NO_ANSWER_IN_TIME)
    clock.advance(2)
    claim = fresh().start("ref-1")
    pause = ProviderPause(Detail.AUTH_ERROR)
    fresh().record(claim, NotAccepted(Detail.AUTH_ERROR, None, pause), "ref-1")
    clock.advance(100)
    claim = fresh().start("ref-2")
    fresh().record(claim, Unknown(Reason.TIMEOUT), "ref-2")
    one = fresh()
    tickets.link(one.database, one.desk, ticket_id="T-1", notice_id=notice_id, by="desk")
    cancel.cancel(fresh().desk, notice_id, "used")
    halts.engage(fresh().database, scope="all", reason="a drill", by="ops")
    clock.advance(1000)
    for sweep in (rescue.rescue, expiry.expire, expiry.decide_fallbacks):
        one = fresh()
        with one.database.connection() as connection:
            sweep(one.desk, connection)

    assert rig.delivery(notice_id)["reason"] == "unknown_at_expiry"
    assert {"event_conflict", "destination_changed", "ticket_linked"} <= set(rig.reasons(notice_id))
