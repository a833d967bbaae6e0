"""The start of a call: an attempt's intent, or in its place a replay's own start.

Both ask every guard again and commit; whoever is forbidden to start stands back, each in the
way of its kind.
"""

from __future__ import annotations

from datetime import timedelta

from notifier.domain.reasons import Reason
from notifier.domain.states import DeliveryState
from notifier.flow import put_back, replays
from notifier.flow.desk import Desk
from notifier.store.database import Database
from notifier.store.ledger import intent, replay
from notifier.store.ledger.claim import Claim
from notifier.store.ledger.intent import Intent, StartValues, Verdict
from notifier.store.ledger.replay import ReplayStart, ReplayVerdict
from notifier.store.trail import TrailEntry, remaining_seconds

Start = Intent | ReplayStart


def commit(
    database: Database, claim: Claim, values: StartValues, *, key_lifetime_s: float
) -> Start:
    """Ask every guard and, where all agree, commit that the call begins.

    `key_lifetime_s` is how long the provider knows a key (seconds); it bounds a replay.
    """
    with database.connection() as connection:
        if claim.repeats:
            return replay.start(
                connection, key_lifetime=timedelta(seconds=key_lifetime_s), **values
            )
        return intent.intent(connection, **values)


def is_permitted(start: Start) -> bool:
    """Whether the call may be made."""
    return start.verdict in (Verdict.STARTED, ReplayVerdict.STARTED)


def stand_back(desk: Desk, claim: Claim, start: Start) -> None:
    """Put a claim where the guards want it that forbade its start."""
    if isinstance(start, ReplayStart):
        replays.stand_back(desk, claim, start.verdict)
    else:
        put_back.stand_back(desk, claim, start.verdict)


def entry_of(claim: Claim, start: Start) -> TrailEntry:
    """The trail row that a permitted start wrote."""
    again = claim.repeats is not None
    return TrailEntry(
        notice_id=claim.notice_id,
        reset_request_id=claim.reset_request_id,
        channel=claim.channel,
        from_state=DeliveryState.UNKNOWN if again else DeliveryState.CLAIMED,
        to_state=DeliveryState.ATTEMPTED,
        reason=Reason.REPLAY_STARTED if again else Reason.ATTEMPT_STARTED,
        receipt_id=None,
        remaining_s=remaining_seconds(start.expires_at, start.now),
    )
