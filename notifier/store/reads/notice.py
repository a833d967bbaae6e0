"""Everything that is known about one notice, read at one instant.

The page and the status answer are both made from this, so they cannot disagree.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.store.reads.halts import halt_row
from notifier.store.reads.notice_facts import (
    AttemptRow,
    Decision,
    DeliveryRow,
    NoticePage,
    ReceiptRow,
    TicketRow,
    TransitionRow,
)
from notifier.store.reads.outside_text import shown

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

__all__ = ["AttemptRow", "DeliveryRow", "NoticePage", "TransitionRow", "load_notice"]

MOST_STEPS: Final = 1_000
"""Rows of the trail that are read; a notice beyond that says so."""

_NOTICE: Final = """
    SELECT n.notice_id, n.event_id, a.idempotency_key, n.reset_request_id, n.account_id,
           n.template_id, n.template_revision, n.policy_revision, n.state, n.basis,
           n.canceled_reason, n.canceled_at, a.requested_at, n.created_at,
           a.expires_at AS original_expires_at, n.expires_at, a.stop_at, n.fallback_at,
           n.changed_at, n.details_erased_at, n.correlation_id, db_now() AS as_of
      FROM notice AS n JOIN admission AS a USING (notice_id)
     WHERE n.notice_id = %s
"""
_EVENT: Final = """
    SELECT mode, reason_code, decision_id, decision_digest, email_consent, sms_consent, region,
           signing_key_id, transport_id, locale, locale_used, received_at
      FROM reset_event WHERE notice_id = %s
"""
_DELIVERIES: Final = """
    SELECT d.channel, d.state, d.reason, d.detail, d.is_fallback, d.provider, d.final_acceptance,
           d.stop_at, d.due_at, d.link_tries, d.may_have_left, d.left_at,
           d.arrived_at, d.next_check_at, d.looks, d.changed_at, c.mask,
           c.source AS mask_source, c.fingerprint
      FROM delivery AS d LEFT JOIN contact AS c USING (notice_id, channel)
     WHERE d.notice_id = %s ORDER BY d.channel
"""
_ATTEMPTS: Final = """
    SELECT channel, number, class AS klass, key, reference, provider,
           template_id || '@' || template_revision AS template_revision, started_at, deadline,
           finished_at, outcome, reason, detail, provider_code, provider_message_id,
           replay_started_at, resolved_at
      FROM attempt WHERE notice_id = %s ORDER BY channel, number
"""
_RECEIPTS: Final = """
    SELECT receipt_id, channel, attempt, provider, source, status, detail, provider_code,
           occurred_at, received_at, applied_at
      FROM receipt WHERE notice_id = %s ORDER BY received_at, receipt_id LIMIT 200
"""
_TRANSITIONS: Final = """
    SELECT seq, recorded_at, occurred_at, channel, attempt, actor, from_state, to_state, reason,
           detail, provider, provider_ref, receipt_id, remaining_us, template_revision,
           policy_revision, evidence, hash
      FROM transition WHERE notice_id = %s ORDER BY seq LIMIT %s
"""
_TICKETS: Final = """
    SELECT ticket_id, linked_at, linked_by FROM ticket_link WHERE notice_id = %s
     ORDER BY linked_at, ticket_id
"""
_HALTS: Final = """
    SELECT h.* FROM halt AS h
      JOIN notice AS n ON n.notice_id = %s
     WHERE h.released_at IS NULL
       AND (h.scope IN ('all', 'account:' || n.account_id, 'event:' || n.event_id,
                        'template:' || n.template_id || '@' || n.template_revision)
            OR EXISTS (SELECT FROM delivery AS d WHERE d.notice_id = n.notice_id
                          AND d.state IN ('standby', 'queued', 'claimed')
                          AND h.scope IN ('channel:' || d.channel, 'provider:' || d.provider)))
     ORDER BY h.engaged_at
"""

_CODE: Final = "code"
"""Where a step's evidence holds the raw word of a provider."""
_REMEMBERED: Final = (
    "mode", "reason_code", "decision_id", "decision_digest", "email_consent", "sms_consent",
    "region",
)  # fmt: skip
_CONSENTS: Final = {"True": True, "False": False}


def load_notice(
    connection: PooledConnection,
    notice_id: UUID,
    *,
    with_fingerprints: bool = False,
    with_codes: bool = False,
) -> NoticePage | None:
    """The notice, or None. Wants a connection in autocommit: it reads in one snapshot.

    Provider texts are made safe to show here; no fingerprint and no raw code of a provider
    leaves unless asked for, be it from an attempt, a receipt or the evidence of a step.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = connection.execute(_NOTICE, [notice_id]).fetchone()
        if row is None:
            return None
        attempts = connection.execute(_ATTEMPTS, [notice_id]).fetchall()
        deliveries = tuple(
            _delivery(each, attempts, with_fingerprints=with_fingerprints, with_codes=with_codes)
            for each in connection.execute(_DELIVERIES, [notice_id])
        )
        steps = connection.execute(_TRANSITIONS, [notice_id, MOST_STEPS + 1]).fetchall()
        transitions = tuple(_transition(each, with_codes=with_codes) for each in steps[:MOST_STEPS])
        return NoticePage(
            **row | {"state": NoticeState(row["state"])},
            decision=_decision(connection, notice_id, transitions),
            deliveries=deliveries,
            receipts=tuple(
                _receipt(each, with_codes=with_codes)
                for each in connection.execute(_RECEIPTS, [notice_id])
            ),
            transitions=transitions,
            more_transitions=len(steps) > MOST_STEPS,
            tickets=tuple(TicketRow(**each) for each in connection.execute(_TICKETS, [notice_id])),
            halts=tuple(halt_row(each) for each in connection.execute(_HALTS, [notice_id])),
        )


def _decision(
    connection: PooledConnection, notice_id: UUID, transitions: tuple[TransitionRow, ...]
) -> Decision | None:
    row = connection.execute(_EVENT, [notice_id]).fetchone()
    facts = row or _remembered(transitions)
    if facts is None:
        return None
    reasons = tuple(
        f"{each.channel}: {each.reason}"
        for each in transitions
        if each.channel is not None and each.from_state is None and each.to_state is not None
    )
    return Decision(**facts, reasons=reasons)


def _remembered(transitions: tuple[TransitionRow, ...]) -> dict[str, Any] | None:
    """The decision as the trail keeps it, when the event itself is past its retention."""
    admitted = (each for each in transitions if each.reason == Reason.EVENT_ADMITTED)
    step = next(admitted, None)
    if step is None or not step.evidence or "signing_key" not in step.evidence:
        return None
    facts: dict[str, Any] = {name: step.evidence.get(name) for name in _REMEMBERED}
    facts |= dict.fromkeys(("transport_id", "locale"))
    for name in ("email_consent", "sms_consent"):
        facts[name] = _CONSENTS.get(facts[name])
    facts["signing_key_id"] = step.evidence["signing_key"]
    facts["locale_used"] = step.evidence.get("locale", "not kept")
    facts["received_at"] = step.recorded_at
    return facts


def _delivery(
    row: dict[str, Any],
    attempts: list[dict[str, Any]],
    *,
    with_fingerprints: bool,
    with_codes: bool,
) -> DeliveryRow:
    fingerprint = row["fingerprint"]
    fields = row | {
        "channel": Channel(row["channel"]),
        "state": DeliveryState(row["state"]),
        "fingerprint": fingerprint.hex()[:8] if fingerprint and with_fingerprints else None,
    }
    mine = tuple(
        _attempt(each, with_codes=with_codes)
        for each in attempts
        if each["channel"] == row["channel"]
    )
    return DeliveryRow(**fields, attempts=mine)


def _attempt(row: dict[str, Any], *, with_codes: bool) -> AttemptRow:
    texts = {"provider_message_id": shown(row["provider_message_id"])}
    texts["provider_code"] = shown(row["provider_code"]) if with_codes else None
    return AttemptRow(**row | texts | {"channel": Channel(row["channel"])})


def _receipt(row: dict[str, Any], *, with_codes: bool) -> ReceiptRow:
    texts = {name: shown(row[name]) for name in ("provider", "status", "detail", "provider_code")}
    if not with_codes:
        texts["provider_code"] = None
    return ReceiptRow(**row | texts)


def _transition(row: dict[str, Any], *, with_codes: bool) -> TransitionRow:
    texts = {name: shown(row[name]) for name in ("actor", "detail", "provider", "provider_ref")}
    fields = {name: value for name, value in row.items() if name != "remaining_us"}
    found = row["evidence"]
    fields["evidence"] = found and {
        name: shown(str(value)) for name, value in found.items() if with_codes or name != _CODE
    }
    remaining = timedelta(microseconds=row["remaining_us"])
    return TransitionRow(**fields | texts, remaining=remaining)
