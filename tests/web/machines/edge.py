"""The machine-facing pages on a Flask app of the test's own, over plain functions."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from flask import Flask
from standardwebhooks import Webhook
from werkzeug.test import TestResponse

from notifier.domain.event import AdmissionResult, Admitted, ResetEvent, Transport
from notifier.domain.event_document import EventRules
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.flow.cancel import Canceled, SignedForAnother
from notifier.logs import configure_logs
from notifier.metrics import Metrics
from notifier.signatures import parse_secret
from notifier.signatures import sign as our_sign
from notifier.web.machines.blueprints import install_machine_pages
from notifier.web.services import (
    CancelReason,
    LinkedNotice,
    MachineServices,
    NoticeStatus,
    PartReport,
    TransitionPage,
)

SECRET = "whsec_" + base64.b64encode(b"s" * 24).decode()
OLD_SECRET = "whsec_" + base64.b64encode(b"o" * 24).decode()
RETIRED_SECRET = "whsec_" + base64.b64encode(b"r" * 24).decode()
NOTICE = "0195a1b2-0000-7000-8000-000000000001"
TOKENS = {
    "status-token": "status",
    "tickets-token": "tickets",
    "metrics-token": "metrics",
}


def event_document(**changes: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "event_id": "evt-1",
        "reset_request_id": "req-1",
        "account_id": "acc-1",
        "requested_at": now.isoformat(),
        "expires_at": (now + timedelta(minutes=10)).isoformat(),
        "template": {"id": "password-reset", "revision": "1"},
        **changes,
    }


@dataclass(frozen=True)
class Token:
    name: str
    scopes: frozenset[str]
    sha256: bytes


def _tokens() -> list[Token]:
    return [
        Token(f"{scope} desk", frozenset({scope}), hashlib.sha256(text.encode()).digest())
        for text, scope in TOKENS.items()
    ]


RULES = EventRules(86_400.0, lambda _id, revision: revision == "1")


@dataclass
class Backstage:
    """What stands in for the rest of the product: it keeps what it was asked, and may fail."""

    admitted: list[tuple[ResetEvent, Transport]] = field(default_factory=list)
    canceled: list[tuple[str, CancelReason]] = field(default_factory=list)
    ended: dict[bytes, str] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    linked: list[tuple[str, str, str]] = field(default_factory=list)
    parts: list[PartReport] = field(default_factory=lambda: [PartReport("database", True, "")])
    fault: Exception | None = None
    result: AdmissionResult | None = None
    earlier: AdmissionResult | None = None
    wait_s: float | None = None
    rows: int = 9
    rules: EventRules = RULES

    def _trouble(self) -> None:
        if self.fault is not None:
            raise self.fault

    def admit(self, event: ResetEvent, transport: Transport) -> AdmissionResult:
        self.admitted.append((event, transport))
        self._trouble()
        return self.result or answer_to(event)

    def notice_status(self, event_id: str) -> NoticeStatus | None:
        self.looked_up.append(event_id)
        self._trouble()
        return status_of(event_id) if event_id.startswith("evt-") else None

    def transitions(self, event_id: str, after: int, limit: int) -> TransitionPage | None:
        self.looked_up.append(event_id)
        last = min(after + limit, self.rows)
        rows = [transition(event_id, seq) for seq in range(after + 1, last + 1)]
        following = last if rows and last < self.rows else None
        return TransitionPage(rows, following) if event_id.startswith("evt-") else None

    def cancel(
        self, event_id: str, reason: CancelReason, _transport: Transport, digest: bytes
    ) -> Canceled | None:
        self._trouble()
        if self.ended.setdefault(digest, event_id) != event_id:
            raise SignedForAnother
        self.canceled.append((event_id, reason))
        known = event_id.startswith("evt-")
        return Canceled(NoticeState.CANCELED, [Channel.EMAIL], []) if known else None

    def link_ticket(self, ticket_id: str, notification_id: str, name: str) -> bool:
        self.linked.append((ticket_id, notification_id, name))
        return notification_id == NOTICE

    def ticket_notices(self, ticket_id: str) -> Sequence[LinkedNotice]:
        self.looked_up.append(ticket_id)
        state = NoticeState.EMAIL_PENDING
        notice = LinkedNotice(
            notification_id=NOTICE,
            event_id="evt-1",
            state=state,
            support_word="queued",
            expires_at=datetime.now(UTC),
        )
        return [notice]

    def readiness(self) -> Sequence[PartReport]:
        self._trouble()
        return self.parts


def answer_to(event: ResetEvent, *, replayed: bool = False) -> Admitted:
    return Admitted(
        NOTICE, event.event_id, NoticeState.EMAIL_PENDING, event.expires_at, None, replayed
    )


def transition(event_id: str, seq: int) -> dict[str, object]:
    now = datetime.now(UTC)
    return {
        "seq": seq,
        "recorded_at": now,
        "occurred_at": now,
        "event_id": event_id,
        "notice_id": UUID(NOTICE),
        "reset_request_id": "req-1",
        "correlation_id": None,
        "channel": "email",
        "attempt": 1,
        "actor": "service",
        "from_state": "queued",
        "to_state": "claimed",
        "reason": "claimed",
        "detail": None,
        "provider": "smtp",
        "provider_ref": None,
        "receipt_id": None,
        "remaining_us": -1,
        "template_revision": "password-reset@1",
        "policy_revision": 1,
        "evidence": '{"region": "GB"}',
        "prev_hash": "00" * 32,
        "hash": "11" * 32,
    }


def status_of(event_id: str) -> NoticeStatus:
    now = datetime.now(UTC)
    return {
        "notification_id": NOTICE,
        "event_id": event_id,
        "reset_request_id": "req-1",
        "state": NoticeState.EMAIL_PENDING,
        "support_word": "accepted",
        "headline": "The mail system has it.",
        "customer_action": "Look in spam.",
        "expires_at": now,
        "stop_at": None,
        "remaining_s": 1.5,
        "on_hold": False,
        "policy_revision": 1,
        "template": {"id": "password-reset", "revision": "1"},
        "basis": {
            "mode": "email_then_sms",
            "decision_id": None,
            "digest": None,
            "inputs": {"region": "GB"},
            "reasons": ["primary_selected"],
        },
        "deliveries": [
            {
                "channel": Channel.EMAIL,
                "state": DeliveryState.ACCEPTED,
                "reason": "provider_accepted",
                "next_permitted": "poll",
                "provider": "smtp",
                "provider_message_id": None,
                "destination_mask": "a***@e***.test",
                "attempts": [
                    {
                        "number": 1,
                        "class": "first",
                        "reference": "r1",
                        "provider": "smtp",
                        "started_at": now,
                        "finished_at": None,
                        "outcome": None,
                        "reason": None,
                    }
                ],
            }
        ],
    }


@dataclass
class Edge:
    """An app with the machine-facing pages, what stands behind it, and what it logged."""

    app: Flask
    behind: Backstage
    metrics: Metrics
    log: io.StringIO

    def post(
        self,
        body: bytes | dict[str, Any],
        path: str = "/v1/reset-events",
        *,
        secret: str = SECRET,
        at: datetime | None = None,
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> TestResponse:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        signed = sign(raw, secret, at or datetime.now(UTC))
        all_headers = {"Content-Type": "application/json", **signed, **(headers or {})}
        return self.app.test_client().post(path, data=raw, headers=all_headers, **options)

    def ask(self, method: str, path: str, token: str | None = None, **headers: str) -> TestResponse:
        """`x_real_ip` is the header X-Real-IP."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            given["Authorization"] = f"Bearer {token}"
        return self.app.test_client().open(path, method=method, headers=given)

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"notifier_{name}_total", labels) or 0.0


def sign(raw: bytes, secret: str, at: datetime, message_id: str = "msg_1") -> dict[str, str]:
    """By the independent package; it signs texts only, so other bytes are signed by our own."""
    whole = at.replace(microsecond=0)
    try:
        signature = Webhook(secret).sign(message_id, whole, raw.decode())
    except UnicodeDecodeError:
        signature = our_sign(parse_secret(secret), message_id, int(whole.timestamp()), raw)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(whole.timestamp())),
        "webhook-signature": signature,
    }


@contextmanager
def edge(*, asked_from_here_alone: bool = True, readiness_limit_s: float = 2.0) -> Iterator[Edge]:
    behind = Backstage()
    metrics = Metrics()
    log = io.StringIO()
    services = MachineServices(
        public_url="https://notices.example.test",
        asked_from_here_alone=asked_from_here_alone,
        metrics=metrics,
        now=lambda: datetime.now(UTC),
        ingest_secrets=[parse_secret(SECRET), parse_secret(OLD_SECRET)],
        api_tokens=_tokens(),
        event_rules=lambda: behind.rules,
        admit=lambda event, transport: behind.admit(event, transport),  # noqa: PLW0108 - tests replace it
        find_admitted=lambda _event: behind.earlier,
        admission_wait_s=lambda: behind.wait_s,
        notice_status=behind.notice_status,
        transitions=behind.transitions,
        cancel=behind.cancel,
        link_ticket=behind.link_ticket,
        ticket_notices=behind.ticket_notices,
        readiness=lambda: behind.readiness(),  # noqa: PLW0108 - the same
        readiness_limit_s=readiness_limit_s,
    )
    app = Flask("edge")
    install_machine_pages(app, services)
    configure_logs(log, as_json=True)
    yield Edge(app, behind, metrics, log)
