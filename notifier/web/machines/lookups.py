"""Status, trail and ticket answers, made from the same reads as the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from notifier.domain.states import NoticeState
from notifier.domain.support_words import next_permitted
from notifier.store.database import Database
from notifier.store.reads.look_up import Key, look_up, notice_of_event
from notifier.store.reads.notice import AttemptRow, DeliveryRow, NoticePage, load_notice
from notifier.store.reads.notice_story import wording_of, wording_of_row
from notifier.web.services import (
    AttemptView,
    Basis,
    DeliveryView,
    LinkedNotice,
    NoticeStatus,
    TransitionPage,
)

TRAIL: Final = """
SELECT seq, recorded_at, occurred_at, event_id, notice_id, reset_request_id, correlation_id,
       channel, attempt, actor, from_state, to_state, reason, detail, provider, provider_ref,
       receipt_id, remaining_us, template_revision, policy_revision, evidence::text AS evidence,
       encode(prev_hash, 'hex') AS prev_hash, encode(hash, 'hex') AS hash
  FROM transition WHERE notice_id = %(notice_id)s AND seq > %(after)s
 ORDER BY seq LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class LookUps:
    """What programs may ask; local state only, and asking changes nothing."""

    database: Database

    def notice_status(self, event_id: str) -> NoticeStatus | None:
        """The status of an event's notice, None where there is no such event."""
        with self.database.connection() as connection:
            notice_id = notice_of_event(connection, event_id)
            page = load_notice(connection, notice_id) if notice_id else None
        return _status(page) if page else None

    def transitions(self, event_id: str, after: int, limit: int) -> TransitionPage | None:
        """Rows of the trail behind sequence `after`, at most `limit` of them.

        `evidence` is the text under the hash, so that a reader can compute it again.
        """
        with self.database.connection() as connection:
            notice_id = notice_of_event(connection, event_id)
            if notice_id is None:
                return None
            values = {"notice_id": notice_id, "after": after, "limit": limit + 1}
            rows = connection.execute(TRAIL, values).fetchall()
        more = rows[limit - 1]["seq"] if len(rows) > limit else None
        return TransitionPage(rows[:limit], more)

    def ticket_notices(self, ticket_id: str) -> Sequence[LinkedNotice]:
        """The notices that a ticket is linked to, newest first."""
        with self.database.connection() as connection:
            found = look_up(connection, Key.TICKET, ticket_id)
        return [
            LinkedNotice(
                notification_id=str(row.notice_id),
                event_id=row.event_id,
                state=NoticeState(row.state),
                support_word=wording_of_row(row, found.as_of).support_word,
                expires_at=row.expires_at,
            )
            for row in found.rows
        ]


def _status(page: NoticePage) -> NoticeStatus:
    words = wording_of(page)
    return NoticeStatus(
        notification_id=str(page.notice_id),
        event_id=page.event_id,
        reset_request_id=page.reset_request_id,
        state=page.state,
        support_word=words.support_word,
        headline=words.headline,
        customer_action=words.customer_action,
        expires_at=page.expires_at,
        stop_at=page.stop_at,
        remaining_s=max(round(page.remaining.total_seconds(), 3), 0.0),
        on_hold=page.on_hold,
        policy_revision=page.policy_revision,
        template={"id": page.template_id, "revision": page.template_revision},
        basis=_basis(page),
        deliveries=[_delivery(row) for row in page.deliveries],
    )


def _basis(page: NoticePage) -> Basis:
    decision = page.decision
    inputs: Mapping[str, Any] = {}
    if decision:
        inputs = {
            "email_consent": decision.email_consent,
            "sms_consent": decision.sms_consent,
            "region": decision.region,
        }
    return Basis(
        mode=decision.mode if decision else "",
        decision_id=decision.decision_id if decision else None,
        digest=decision.decision_digest if decision else None,
        inputs=inputs,
        reasons=decision.reasons if decision else (),
    )


def _delivery(row: DeliveryRow) -> DeliveryView:
    known = [each.provider_message_id for each in row.attempts if each.provider_message_id]
    return DeliveryView(
        channel=row.channel,
        state=row.state,
        reason=row.reason,
        next_permitted=next_permitted(row.state),
        provider=row.provider,
        provider_message_id=known[-1] if known else None,
        destination_mask=row.mask,
        attempts=[_attempt(each) for each in row.attempts],
    )


def _attempt(row: AttemptRow) -> AttemptView:
    return AttemptView(
        {
            "number": row.number,
            "class": row.klass,
            "reference": row.reference,
            "provider": row.provider,
            "started_at": row.started_at,
            "finished_at": row.finished_at,
            "outcome": row.outcome,  # type: ignore[typeddict-item] # the column's CHECK says so
            "reason": row.reason,
        }
    )
