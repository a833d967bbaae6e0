"""What is kept beside the trail, compared with what the trail says of it.

Keys, the event as it was sent, the notice's own terms, attempts, receipts and ticket links each
have a row that tells of them. Who changed one of these alone changed no row, so the chain holds
and nothing but this comparison shows it. What was erased after its retention is not missed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from notifier.domain.admission_seal import admission_seal
from notifier.domain.policy_retention import LEAST_DETAIL_DAYS
from notifier.domain.reasons import Reason
from notifier.store.reads import trail
from notifier.store.reads.trail_rebuild import Difference

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

Row = dict[str, Any]
Facts = Mapping[str, object]

# The rows that tell of something beside them; the first one of each notice is always there.
TELLING: Final = """
SELECT t.notice_id, t.seq, t.recorded_at, t.event_id, t.reset_request_id, t.correlation_id,
       t.channel, t.attempt, t.reason, t.provider, t.provider_ref, t.receipt_id, t.remaining_us,
       t.template_revision, t.policy_revision, t.evidence
  FROM transition t
 WHERE t.seq = 1 OR t.receipt_id IS NOT NULL
    OR t.reason IN ('attempt_started', 'ticket_linked', 'life_shortened')
 ORDER BY t.notice_id, t.seq
"""
KEPT: Final = """
SELECT notice_id, n.head IS NOT NULL AS has_notice, e.received_at IS NOT NULL AS has_event,
       a.event_id, a.idempotency_key, a.reset_request_id, a.account_id, a.requested_at,
       a.admitted_at, a.supersedes, a.content_digest, a.expires_at,
       n.event_id AS n_event_id, n.reset_request_id AS n_reset_request_id,
       n.account_id AS n_account_id, n.correlation_id AS n_correlation_id,
       n.template_id || '@' || n.template_revision AS n_template, n.locale_used AS n_locale,
       n.policy_revision AS n_policy_revision, n.mode AS n_mode, n.created_at AS n_created_at,
       n.expires_at AS n_expires_at, n.details_erased_at,
       e.event_id AS e_event_id, e.signing_key_id AS e_signing_key, e.locale_used AS e_locale,
       e.mode AS e_mode, e.reason_code AS e_reason_code, e.decision_id AS e_decision_id,
       e.decision_digest AS e_decision_digest, e.email_consent AS e_email_consent,
       e.sms_consent AS e_sms_consent, e.region AS e_region,
       e.correlation_id AS e_correlation_id, e.received_at AS e_received_at
  FROM admission a FULL JOIN notice n USING (notice_id) FULL JOIN reset_event e USING (notice_id)
 ORDER BY notice_id
"""
ATTEMPTS: Final = """
SELECT notice_id, channel, number, class, key, reference, provider,
       template_id || '@' || template_revision AS template, started_at
  FROM attempt ORDER BY notice_id, channel, number
"""
RECEIPTS: Final = """
SELECT notice_id, receipt_id, channel, attempt, provider, source, status, provider_code
  FROM receipt WHERE notice_id IS NOT NULL ORDER BY notice_id, receipt_id
"""
TICKETS: Final = "SELECT notice_id, ticket_id FROM ticket_link ORDER BY notice_id, ticket_id"
POLICIES: Final = "SELECT revision, document, digest FROM policy_revision ORDER BY revision"

OF_THE_DECISION: Final = (
    "mode", "reason_code", "decision_id", "decision_digest", "email_consent", "sms_consent",
    "region", "signing_key", "locale",
)  # fmt: skip
LEAST_AGE: Final = timedelta(days=LEAST_DETAIL_DAYS)


def differences(connection: PooledConnection) -> Iterator[Difference]:
    """Every difference, in the order of the notices; use it inside `trail.snapshot`."""
    queries = (TELLING, KEPT, ATTEMPTS, RECEIPTS, TICKETS)
    streams = [
        trail.stream(connection, f"beside_{place}", query) for place, query in enumerate(queries)
    ]
    for notice_id, rows in trail.by_notice(*streams):
        for what, (stored, told) in _compared(*rows).items():
            if stored != told:
                yield Difference(notice_id, what, stored, told)


def altered_policies(connection: PooledConnection) -> Iterator[int]:
    """The revisions whose values do not give the digest that was stored with them."""
    for row in connection.execute(POLICIES):
        form = json.dumps(row["document"], sort_keys=True, separators=(",", ":"))
        if hashlib.sha256(form.encode()).digest() != row["digest"]:
            yield row["revision"]


def _compared(
    telling: Sequence[Row],
    kept: Sequence[Row],
    attempts: Sequence[Row],
    receipts: Sequence[Row],
    tickets: Sequence[Row],
) -> dict[str, tuple[object, object]]:
    """What is stored of one notice and what the trail tells, by name.

    A chain that is gone, or a notice without keys, is the verifier's to tell.
    """
    if not telling or telling[0]["seq"] != 1 or not kept:
        return {}
    first, [row] = telling[0], kept
    pairs = _paired(_attempts_kept(attempts), _attempts_told(telling))
    pairs |= _paired({f"ticket {each['ticket_id']}": True for each in tickets}, _tickets(telling))
    pairs |= _receipts(telling, receipts, erased=row["details_erased_at"] is not None)
    if row["event_id"] is not None:
        pairs |= _paired(_keys_kept(row), _keys_told(first))
    if row["has_notice"]:
        pairs |= _paired(_terms_kept(row), _terms_told(telling, row))
        pairs |= _erasure(row)
    if row["has_event"]:
        pairs |= _paired(_event_kept(row), _event_told(first))
    return pairs


def _paired(stored: Facts, told: Facts) -> dict[str, tuple[object, object]]:
    return {name: (stored.get(name), told.get(name)) for name in sorted({*stored, *told})}


# --- the keys


def _keys_kept(row: Row) -> Facts:
    names = ("event_id", "reset_request_id", "admitted_at", "expires_at")
    keys = {f"admission's {name}": row[name] for name in names}
    return keys | {"admission's seal": admission_seal(row)}


def _keys_told(first: Row) -> Facts:
    return {
        "admission's event_id": first["event_id"],
        "admission's reset_request_id": first["reset_request_id"],
        "admission's admitted_at": first["recorded_at"],
        "admission's expires_at": _expiry(first),
        "admission's seal": _evidence(first).get("admission_sha256"),
    }


def _expiry(row: Row) -> datetime:
    expires_at: datetime = row["recorded_at"] + timedelta(microseconds=row["remaining_us"])
    return expires_at


# --- the notice's terms


def _terms_kept(row: Row) -> Facts:
    names = (
        "event_id", "reset_request_id", "account_id", "correlation_id", "template", "locale",
        "policy_revision", "mode", "created_at", "expires_at",
    )  # fmt: skip
    return {f"notice's {name}": row[f"n_{name}"] for name in names}


def _terms_told(telling: Sequence[Row], row: Row) -> Facts:
    first = telling[0]
    evidence = _evidence(first)
    return {
        "notice's event_id": first["event_id"],
        "notice's reset_request_id": first["reset_request_id"],
        "notice's account_id": row["account_id"],
        "notice's correlation_id": first["correlation_id"],
        "notice's template": first["template_revision"],
        "notice's locale": evidence.get("locale"),
        "notice's policy_revision": first["policy_revision"],
        "notice's mode": evidence.get("mode"),
        "notice's created_at": first["recorded_at"],
        "notice's expires_at": _shortened(telling) or _expiry(first),
    }


def _shortened(telling: Sequence[Row]) -> datetime | None:
    for row in reversed(telling):
        if row["reason"] == Reason.LIFE_SHORTENED:
            return datetime.fromisoformat(str(_evidence(row)["expires_at"]))
    return None


# --- the event, and what goes with it after its retention


def _event_kept(row: Row) -> Facts:
    names = (*OF_THE_DECISION, "event_id", "correlation_id", "received_at")
    return {f"event's {name}": row[f"e_{name}"] for name in names}


def _event_told(first: Row) -> Facts:
    evidence = _evidence(first)
    return {
        **{f"event's {name}": evidence.get(name) for name in OF_THE_DECISION},
        "event's event_id": first["event_id"],
        "event's correlation_id": first["correlation_id"],
        "event's received_at": first["recorded_at"],
    }


def _erasure(row: Row) -> dict[str, tuple[object, object]]:
    """Details go after their retention alone, and then the notice says so."""
    erased_at = row["details_erased_at"]
    if erased_at is None:
        return {"event": (row["has_event"], True)}
    return {"details erased in time": (erased_at - row["n_created_at"] >= LEAST_AGE, True)}


def _receipts(
    telling: Sequence[Row], receipts: Sequence[Row], *, erased: bool
) -> dict[str, tuple[object, object]]:
    kept = {each["receipt_id"]: each for each in receipts}
    return {
        f"receipt of row {row['seq']}": (_receipt(kept.get(row["receipt_id"])), _receipt_told(row))
        for row in telling
        if row["receipt_id"] is not None and (row["receipt_id"] in kept or not erased)
    }


def _receipt(kept: Row | None) -> tuple[object, ...] | None:
    if kept is None:
        return None
    names = ("channel", "attempt", "provider", "source", "status")
    return (*(kept[name] for name in names), kept["provider_code"] or None)


def _receipt_told(row: Row) -> tuple[object, ...]:
    evidence = _evidence(row)
    told = (evidence.get(name) for name in ("source", "status", "code"))
    return (row["channel"], row["attempt"], row["provider"], *told)


# --- attempts and tickets


def _attempts_kept(attempts: Sequence[Row]) -> Facts:
    names = ("class", "reference", "provider", "template", "started_at", "key")
    return {
        f"{each['channel']} attempt {each['number']}": tuple(each[name] for name in names)
        for each in attempts
    }


def _attempts_told(telling: Sequence[Row]) -> Facts:
    told = {}
    for row in telling:
        if row["reason"] == Reason.ATTEMPT_STARTED:
            order = _evidence(row).get("class")
            told[f"{row['channel']} attempt {row['attempt']}"] = (
                order, row["provider_ref"], row["provider"], row["template_revision"],
                row["recorded_at"], f"{row['event_id']}:{row['channel']}:{order}",
            )  # fmt: skip
    return told


def _tickets(telling: Sequence[Row]) -> Facts:
    tickets = (_evidence(row).get("ticket") for row in telling)
    return {f"ticket {each}": True for each in tickets if each is not None}


def _evidence(row: Row) -> Mapping[str, Any]:
    return row["evidence"] or {}
