"""One notice for programs: JSON with everything that the page says, CSV and NDJSON of its steps.

The twins obey the same choice of sources, hold the same masks and leave out the same raw codes
and fingerprints as the page does for the same reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from flask import Response

from notifier.domain import tables
from notifier.web.people import rows
from notifier.web.people.rows import Cell
from notifier.web.people.timeline import Source, source_of
from notifier.web.people.visit import Form, services

if TYPE_CHECKING:
    from notifier.domain.support_words import Wording
    from notifier.store.reads.notice_facts import AttemptRow, DeliveryRow, NoticePage, ReceiptRow
    from notifier.store.reads.notice_related import Related
    from notifier.web.people.timeline import Line

COLUMNS: Final = (
    "seq", "occurred_at", "recorded_at", "placed_at", "after_request_ms", "remaining_ms", "source",
    "actor", "channel", "attempt", "from_state", "to_state", "reason", "detail", "provider",
    "provider_reference", "provider_code", "template", "sentence", "late",
    "clock_skew", "delivered_dead",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page of one notice shows to one reader."""

    page: NoticePage
    words: Wording
    lines: Sequence[Line]
    source: Source
    related: Related


def for_programs(form: Form, shown: Shown | None) -> Response | None:
    """The notice in the form that is asked for; None where that is a form for people.

    A notice that is not there is null, or a list of steps without any.
    """
    if form is Form.JSON:
        text = tables.json_text(document(shown) if shown else None)
        return Response(text, content_type=rows.TYPES[form])
    if form not in {Form.CSV, Form.NDJSON}:
        return None
    as_of = shown.page.as_of if shown else services().now()
    cells = [step_cells(shown.page, line) for line in shown.lines] if shown else []
    return rows.for_programs(form, "notice-steps", COLUMNS, cells, as_of, {})


def step_cells(page: NoticePage, line: Line) -> dict[str, Cell]:
    """One line of the timeline. Of steps told as one, the last."""
    row = line.row
    return {
        "seq": row.seq, "occurred_at": row.occurred_at, "recorded_at": row.recorded_at,
        "placed_at": line.at, "after_request_ms": _ms(line.at - page.requested_at),
        "remaining_ms": _ms(line.remaining), "source": source_of(row).value, "actor": row.actor,
        "channel": row.channel, "attempt": row.attempt, "from_state": row.from_state,
        "to_state": row.to_state, "reason": row.reason, "detail": row.detail,
        "provider": row.provider, "provider_reference": row.provider_ref,
        "provider_code": (row.evidence or {}).get("code"),
        "template": row.template_revision, "sentence": line.sentence, "late": bool(line.late),
        "clock_skew": line.skewed, "delivered_dead": line.dead_on_arrival,
    }  # fmt: skip


def document(shown: Shown) -> dict[str, Any]:
    """Everything about the notice that its page says."""
    page, words = shown.page, shown.words
    head: dict[str, Cell] = {
        "as_of": page.as_of, "notification_id": str(page.notice_id), "event_id": page.event_id,
        "reset_request_id": page.reset_request_id, "account_id": page.account_id,
        "state": page.state.value, "basis": page.basis, "support_word": words.support_word.value,
        "headline": words.headline, "customer_action": words.customer_action,
        "requested_at": page.requested_at, "expires_at": page.expires_at,
        "original_expires_at": page.original_expires_at, "stop_at": page.stop_at,
        "remaining_ms": _ms(page.remaining), "on_hold": page.on_hold,
        "template": f"{page.template_id}@{page.template_revision}",
        "policy_revision": page.policy_revision, "correlation_id": page.correlation_id,
        "details_erased_at": page.details_erased_at,
    }  # fmt: skip
    return tables.plain(head) | {
        "decision": _decision(page),
        "deliveries": [_delivery(each) for each in page.deliveries],
        "receipts": [_receipt(each) for each in page.receipts],
        "source": shown.source.value,
        "steps": [tables.plain(step_cells(page, each)) for each in shown.lines],
        "steps_are_all": not page.more_transitions,
        "tickets": [
            tables.plain({
                "ticket_id": each.ticket_id, "linked_by": each.linked_by,
                "linked_at": each.linked_at})
            for each in page.tickets
        ],
        "related": [
            tables.plain({
                "notification_id": str(each.notice_id), "event_id": each.event_id,
                "reset_request_id": each.reset_request_id, "state": each.state.value,
                "requested_at": each.requested_at})
            for each in shown.related.rows
        ],
    }  # fmt: skip


def _decision(page: NoticePage) -> dict[str, Any] | None:
    known = page.decision
    if known is None:
        return None
    facts: dict[str, Cell] = {
        "mode": known.mode, "reason_code": known.reason_code, "decision_id": known.decision_id,
        "decision_digest": known.decision_digest, "email_consent": known.email_consent,
        "sms_consent": known.sms_consent, "region": known.region,
        "signing_key_id": known.signing_key_id, "received_at": known.received_at,
        "locale": known.locale, "locale_used": known.locale_used,
    }  # fmt: skip
    return tables.plain(facts) | {"channels": list(known.reasons)}


def _delivery(row: DeliveryRow) -> dict[str, Any]:
    facts: dict[str, Cell] = {
        "channel": row.channel.value, "state": row.state.value, "reason": row.reason,
        "detail": row.detail, "is_fallback": row.is_fallback, "provider": row.provider,
        "mask": row.mask, "fingerprint": row.fingerprint, "changed_at": row.changed_at,
        "left_at": row.left_at, "arrived_at": row.arrived_at, "stop_at": row.stop_at,
    }  # fmt: skip
    return tables.plain(facts) | {"attempts": [_attempt(each) for each in row.attempts]}


def _attempt(row: AttemptRow) -> Mapping[str, Cell]:
    return tables.plain({
        "number": row.number, "class": row.klass, "reference": row.reference,
        "provider": row.provider, "template": row.template_revision,
        "started_at": row.started_at, "finished_at": row.finished_at, "outcome": row.outcome,
        "reason": row.reason, "detail": row.detail, "provider_code": row.provider_code,
        "provider_message_id": row.provider_message_id})  # fmt: skip


def _receipt(row: ReceiptRow) -> Mapping[str, Cell]:
    return tables.plain({
        "channel": row.channel, "attempt": row.attempt, "provider": row.provider,
        "source": row.source, "status": row.status, "detail": row.detail,
        "provider_code": row.provider_code, "occurred_at": row.occurred_at,
        "received_at": row.received_at, "applied_at": row.applied_at})  # fmt: skip


def _ms(length: timedelta) -> int:
    return round(length.total_seconds() * 1000)
