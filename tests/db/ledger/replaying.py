"""A provider that knows a key again, and short words for what is done about a replay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from notifier.domain.event import PolicyMode
from notifier.domain.outcome import Unknown
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.flow import turns
from notifier.flow.desk import Asks
from notifier.ports.asking import Capability
from notifier.store.ledger import replay
from notifier.store.ledger.claim import Claim, Take
from notifier.store.ledger.replay import ReplayStart, ReplayVerdict
from tests.db.ledger.telling import Asked, reconciler
from tests.db.rig import BUDGET, LEASE, TURN, WORKER, Rig

RESEND = "resend"
ASKS = {RESEND: Asks(can_find=True, can_poll=True)}
KEY_LIFETIME = timedelta(hours=24)
DIGEST = "00"


def unknown(rig: Rig, reference: str = "ref-1", **changes: Any) -> Claim:
    """A notice whose email's call ended without an answer."""
    wishes: dict[str, Any] = {"mode": PolicyMode.EMAIL_ONLY}
    if Channel.SMS in rig.channels:
        wishes = {"mode": PolicyMode.EMAIL_THEN_SMS, "sms_consent": True}
    rig.admit(**{**wishes, **changes})
    claim = rig.start(reference, provider=RESEND)
    rig.record(claim, Unknown(Reason.TIMEOUT), reference)
    return claim


def look(rig: Rig) -> int:
    """The reconciling sweep at a provider that cannot be asked; how many looks fell due."""
    with rig.database.connection() as connection:
        return reconciler(rig, Asked(RESEND, can_find=Capability.REPLAY)).reconcile(connection)


def authorise(rig: Rig) -> None:
    """Let the first look fall due now, and have it."""
    rig.run("UPDATE delivery SET next_check_at = db_now() WHERE state = 'unknown'")
    assert look(rig) >= 1


def claim_marked(rig: Rig, slots: int = 5, **changes: Any) -> list[Claim]:
    values: dict[str, Any] = {
        "channel": Channel.EMAIL,
        "provider": RESEND,
        "key_lifetime": KEY_LIFETIME,
        **changes,
    }
    with rig.database.connection() as connection:

        def take(take: Take) -> list[Claim]:
            return replay.claim(connection, **values, take=take)

        return take(Take(slots, LEASE)) or turns.claim_in_turn(
            connection, RESEND, TURN, lambda until: take(Take(1, LEASE, until))
        )


def marked(rig: Rig, **changes: Any) -> Claim:
    """An unknown email whose replay was authorised and is claimed now."""
    unknown(rig, **changes)
    authorise(rig)
    [claim] = claim_marked(rig)
    return claim


def start(rig: Rig, claim: Claim, **changes: Any) -> ReplayStart:
    assert claim.repeats is not None
    values: dict[str, Any] = {
        "notice_id": claim.notice_id,
        "channel": claim.channel,
        "fence": claim.fence,
        "owner": WORKER,
        "provider": RESEND,
        "reference": claim.repeats.reference,
        "message_digest": DIGEST,
        "key_lifetime": KEY_LIFETIME,
        "budget": BUDGET,
        "not_after": claim.stop_at,
        "turn_until": claim.turn_until,
    }
    with rig.database.connection() as connection:
        return replay.start(connection, **{**values, **changes})


def replaying(rig: Rig, **changes: Any) -> Claim:
    """A replay whose call has just begun."""
    claim = marked(rig, **changes)
    assert start(rig, claim).verdict is ReplayVerdict.STARTED
    return claim


def is_needed(rig: Rig, claim: Claim) -> bool:
    """The last look before the call."""
    assert claim.repeats is not None
    with rig.database.connection() as connection:
        return replay.is_unresolved(
            connection,
            notice_id=claim.notice_id,
            channel=claim.channel,
            fence=claim.fence,
            number=claim.repeats.number,
        )
