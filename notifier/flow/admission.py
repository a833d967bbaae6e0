"""Admits a reset event: once, durably, with everything that is decided on arrival."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import uuid_utils

from notifier.domain.admission_plan import (
    AdmissionTerms,
    Inputs,
    admission_terms,
    fact_of,
)
from notifier.domain.admission_seal import admission_seal
from notifier.domain.event import (
    AdmissionResult,
    Admitted,
    Conflict,
    DestinationClaim,
    Given,
    PolicyMode,
    ResetEvent,
    Transport,
)
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, NoticeState
from notifier.domain.values import Destination
from notifier.flow.cancel import write_cancel
from notifier.flow.contacts import Contacts
from notifier.flow.desk import Desk
from notifier.flow.policies import PolicyShelf
from notifier.store.database import Database
from notifier.store.ledger import admission as ledger
from notifier.store.ledger.book import SERVICE
from notifier.store.trail import Announce

PickLocale = Callable[[str | None, str, str], tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Admission:
    """The admission use case with what it needs.

    `digest_keys`: newest first; a repeat is recognised under any of them. `channels` names the
    provider of each channel that has one, so that a halt of it counts from the start. `wake` tells
    the claim loops that there is work. `pick_locale` gives the locale that a template has and
    whether it fell back.
    """

    database: Database
    desk: Desk
    shelf: PolicyShelf
    contacts: Contacts
    digest_keys: tuple[bytes, ...]
    channels: Mapping[Channel, str]
    pick_locale: PickLocale
    announce: Announce
    wake: Callable[[], None]

    def admit(self, event: ResetEvent, transport: Transport) -> AdmissionResult:
        """Store the event, or find what it came to before.

        Raises `StoreUnavailable` or a psycopg error where it could not be made durable.
        """
        digests = self._digests(event)
        values = self._values(event, transport, digests[0])
        with self.database.connection() as connection:
            stored, entries = ledger.admit(connection, values, digests)
        if isinstance(stored, ledger.Clash):
            self._note_conflict(stored.notice_id)
            return Conflict(stored.keys)
        if stored.created:
            self.announce(entries)
            self.wake()
            if event.supersedes_earlier:
                self._supersede(values)
        return _told(event, stored)

    def find(self, event: ResetEvent) -> AdmissionResult | None:
        """What the event came to if it was admitted before; None otherwise. Writes nothing."""
        keys = {
            "event_id": event.event_id,
            "idempotency_key": event.idempotency_key,
            "reset_request_id": event.reset_request_id,
        }
        with self.database.connection() as connection:
            stored = ledger.find(connection, keys, self._digests(event))
        return _told(event, stored) if isinstance(stored, ledger.Stored) else None

    def _supersede(self, values: dict[str, Any]) -> None:
        """Cancel what this event supersedes; each intent asks again, should this not get there."""
        with self.database.connection() as connection:
            for notice_id in ledger.earlier_open(connection, values):
                with self.desk.open_on(connection, notice_id) as book:
                    write_cancel(book, "superseded")

    def _note_conflict(self, notice_id: UUID) -> None:
        with self.desk.open(notice_id) as book:
            book.note(None, Reason.EVENT_CONFLICT, origin=SERVICE)

    def _digests(self, event: ResetEvent) -> list[bytes]:
        content = event.canonical()
        return [hmac.new(key, content, hashlib.sha256).digest() for key in self.digest_keys]

    def _values(self, event: ResetEvent, transport: Transport, digest: bytes) -> dict[str, Any]:
        revision, policy = self.shelf.current()
        terms = admission_terms(
            policy,
            mode=event.mode,
            inputs=Inputs(event.email_consent, event.sms_consent, event.region),
            destinations={
                Channel.EMAIL: fact_of(event.email),
                Channel.SMS: fact_of(event.sms),
            },
            requested_at=event.requested_at,
            expires_at=event.expires_at,
            channels_available=self.channels,
        )
        locale, fell_back = self.pick_locale(
            event.locale, event.template_id, event.template_revision
        )
        return {
            "notice_id": UUID(bytes=uuid_utils.uuid7().bytes),
            "policy_revision": revision,
            "content_digest": digest,
            "transport_id": transport.message_id,
            "signing_key_id": transport.key_id,
            "locale_used": locale,
            "cap": policy.account_cap_per_hour,
            "email_provider": self.channels.get(Channel.EMAIL),
            "sms_provider": self.channels.get(Channel.SMS),
            "evidence": _evidence(event, transport, digest, locale, fell_back=fell_back),
            **_event_columns(event),
            **_term_columns(terms),
            **self.contacts.columns(Channel.EMAIL, _given(event.email)),
            **self.contacts.columns(Channel.SMS, _given(event.sms)),
        }


def _event_columns(event: ResetEvent) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "idempotency_key": event.idempotency_key,
        "reset_request_id": event.reset_request_id,
        "account_id": event.account_id,
        "ticket_id": event.ticket_id,
        "requested_at": event.requested_at,
        "expires_at": event.expires_at,
        "template_id": event.template_id,
        "template_revision": event.template_revision,
        "locale": event.locale,
        "mode": str(event.mode),
        "reason_code": event.reason_code,
        "decision_id": event.decision_id,
        "decision_digest": event.decision_digest,
        "email_consent": event.email_consent,
        "sms_consent": event.sms_consent,
        "region": event.region,
        "correlation_id": event.correlation_id,
        "supersedes": event.supersedes_earlier,
    }


def _term_columns(terms: AdmissionTerms) -> dict[str, Any]:
    return {
        "email_suppression": terms.email_suppression,
        "sms_suppression": terms.sms_suppression,
        "email_stop_at": terms.email_stop_at,
        "sms_stop_at": terms.sms_stop_at,
        "window": timedelta(seconds=terms.window_s),
        "reserve": timedelta(seconds=terms.reserve_s),
        "min_wait": timedelta(seconds=terms.min_wait_s),
        "sms_room": timedelta(seconds=terms.sms_room_s),
        "sms_is_fallback": terms.mode is PolicyMode.EMAIL_THEN_SMS,
    }


def _evidence(
    event: ResetEvent, transport: Transport, digest: bytes, locale: str, *, fell_back: bool
) -> str:
    """What decided the channels, as it stands on the trail: ids and inputs, no addresses.

    With it the seal of the keys, which stand beside the trail.
    """
    facts: dict[str, Any] = {
        "mode": str(event.mode),
        "reason_code": event.reason_code,
        "decision_id": event.decision_id,
        "decision_digest": event.decision_digest,
        "email_consent": event.email_consent,
        "sms_consent": event.sms_consent,
        "region": event.region,
        "signing_key": transport.key_id,
        "locale": locale,
        "ticket": event.ticket_id,
        "admission_sha256": admission_seal({**_event_columns(event), "content_digest": digest}),
        "locale_fell_back": fell_back or event.malformed_locale is not None or None,
    }
    return json.dumps({name: fact for name, fact in facts.items() if fact is not None})


def _given(claim: DestinationClaim) -> Destination | None:
    return claim.destination if isinstance(claim, Given) else None


def _told(event: ResetEvent, stored: ledger.Stored) -> Admitted:
    return Admitted(
        notification_id=str(stored.notice_id),
        event_id=event.event_id,
        status=NoticeState(stored.state),
        expires_at=stored.expires_at,
        stop_at=stored.stop_at,
        replayed=not stored.created,
    )
