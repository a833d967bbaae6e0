"""Notices of every fate, written straight into the tables: for the pages' tests alone.

The rows obey the schema's own rules (moves, leases, births); the hashes are made up, because
no page reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from uuid_utils.compat import uuid7

from notifier.domain.destinations import check_email, check_number
from tests.people_fates import FATES, Script, Step

if TYPE_CHECKING:
    from notifier.store.database import PooledConnection

FINGERPRINT_KEY: Final = b"a key for fingerprints in tests."


def seed(connection: PooledConnection, scripts: Sequence[Script] = tuple(FATES)) -> dict[str, UUID]:
    """Write these notices as of the database's present time; ids by script name."""
    ensure_policy(connection)
    return {script.name: write(connection, script) for script in scripts}


def seed_many(
    connection: PooledConnection, count: int, script: Script, *, same_instant: bool = True
) -> list[UUID]:
    """`count` copies of one script, with the very same times or a second apart."""
    ensure_policy(connection)
    now = database_now(connection)
    ids = []
    with connection.transaction():
        for place in range(count):
            shift = 0 if same_instant else place
            copy = Script(
                **script.__dict__
                | {"name": f"{script.name}-{place:03}", "ticket": None, "age": script.age + shift}
            )
            ids.append(write(connection, copy, now))
    return ids


def database_now(connection: PooledConnection) -> datetime:
    """The clock that every statement of the product reads."""
    row = connection.execute("SELECT db_now() AS now").fetchone()
    assert row is not None
    now: datetime = row["now"]
    return now


def ensure_policy(connection: PooledConnection) -> None:
    """Policy revision 1, because notices name it."""
    connection.execute(
        """INSERT INTO policy_revision (revision, document, digest, author, reason, created_at)
           VALUES (1, '{}', %s, 'tests', 'seed', db_now()) ON CONFLICT DO NOTHING""",
        [b"\0" * 32],
    )


def insert(connection: PooledConnection, table: str, row: dict[str, Any]) -> None:
    """One row into a table of this file's choice."""
    names = ", ".join(row)
    marks = ", ".join(["%s"] * len(row))
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - our own names
    connection.execute(statement, list(row.values()))


def write(connection: PooledConnection, script: Script, now: datetime | None = None) -> UUID:
    """The notice with all that hangs on it."""
    notice_id = uuid7()
    start = (now or database_now(connection)) - timedelta(seconds=script.age)
    with connection.transaction():
        _write_head(connection, script, notice_id, start)
        receipts = _write_receipts(connection, script, notice_id, start)
        for place, step in enumerate(script.steps, 1):
            receipt = None if step.tells is None else receipts[step.tells]
            _write_step(connection, script, notice_id, start, place, step, receipt)
        if script.ticket:
            insert(connection, "ticket_link", {
                "ticket_id": script.ticket, "notice_id": notice_id, "linked_at": start,
                "linked_by": "auth-service"})  # fmt: skip
    return notice_id


def _ids(script: Script) -> dict[str, str]:
    return {
        "event_id": f"evt-{script.name}",
        "reset_request_id": f"req-{script.name}",
        "account_id": script.account or f"acct-{script.name}",
    }


def _write_head(
    connection: PooledConnection, script: Script, notice_id: UUID, start: datetime
) -> None:
    expires = start + timedelta(seconds=script.life)
    stop = expires - timedelta(seconds=30)
    received = start + timedelta(seconds=0.4)
    insert(connection, "admission", _ids(script) | {
        "notice_id": notice_id, "idempotency_key": f"evt-{script.name}", "requested_at": start,
        "admitted_at": received, "content_digest": b"x", "stop_at": stop,
        "expires_at": expires})  # fmt: skip
    insert(connection, "reset_event", {
        "notice_id": notice_id, "event_id": f"evt-{script.name}", "transport_id": "msg_2KW",
        "signing_key_id": "k-7f3a", "locale": "en", "locale_used": "en", "mode": script.mode,
        "decision_id": "dec-5521", "decision_digest": "sha256:9f86d081884c7d65",
        "email_consent": True, "sms_consent": script.sms is not None, "region": "GB",
        "correlation_id": "4bf92f3577b34da6a3ce929d0e0e4736", "received_at": received})  # fmt: skip
    last = start + timedelta(seconds=max(step.after for step in script.steps))
    insert(connection, "notice", _ids(script) | {
        "notice_id": notice_id, "template_id": "password-reset", "template_revision": "1",
        "correlation_id": "4bf92f3577b34da6a3ce929d0e0e4736", "locale_used": "en",
        "policy_revision": 1, "mode": script.mode, "state": script.state,
        "basis": script.basis, "canceled_reason": script.canceled,
        "canceled_at": last if script.canceled else None, "created_at": received,
        "expires_at": expires, "seq": len(script.steps), "head": b"x",
        "changed_at": last})  # fmt: skip
    for channel, address in (("email", script.email), ("sms", script.sms)):
        checked = address and (check_email if channel == "email" else check_number)(address)
        if checked:
            insert(connection, "contact", {
                "notice_id": notice_id, "channel": channel, "mask": checked.mask,
                "fingerprint": bytes.fromhex(checked.fingerprint(FINGERPRINT_KEY)),
                "source": "event", "learnt_at": received})  # fmt: skip


def _write_step(  # noqa: PLR0917 - a row has as many parts
    connection: PooledConnection,
    script: Script,
    notice_id: UUID,
    start: datetime,
    place: int,
    step: Step,
    receipt: UUID | None,
) -> None:
    at = start + timedelta(seconds=step.after)
    occurred = at if step.occurred is None else start + timedelta(seconds=step.occurred)
    evidence = step.evidence
    if step.tells is not None:
        status = script.receipts[step.tells][2]
        evidence = {"source": "callback", "status": status, **(evidence or {})}
    before = _state_of(connection, notice_id, step.channel)
    expires = start + timedelta(seconds=script.life)
    insert(connection, "transition", {
        "event_id": f"evt-{script.name}", "reset_request_id": f"req-{script.name}",
        "notice_id": notice_id, "seq": place, "recorded_at": at, "occurred_at": occurred,
        "correlation_id": None, "channel": step.channel, "attempt": step.attempt,
        "actor": step.actor, "from_state": before, "to_state": step.to or before,
        "reason": step.reason, "detail": step.detail, "provider": step.provider,
        "provider_ref": step.provider_ref, "receipt_id": receipt,
        "remaining_us": round((expires - at).total_seconds() * 1_000_000),
        "template_revision": "password-reset@1", "policy_revision": 1,
        "evidence": json.dumps(evidence) if evidence else None,
        "prev_hash": b"x", "hash": hashlib.sha256(f"{notice_id}{place}".encode()).digest(),
    })  # fmt: skip
    if step.channel and step.to:
        _move(connection, script, notice_id, at, expires, before, step)
    if step.outcome:
        _finish_attempt(connection, notice_id, at, step)


def _state_of(connection: PooledConnection, notice_id: UUID, channel: str | None) -> str | None:
    row = connection.execute(
        "SELECT state FROM delivery WHERE notice_id = %s AND channel = %s", [notice_id, channel]
    ).fetchone()
    return row["state"] if row else None


def _move(  # noqa: PLR0917 - a row has as many parts
    connection: PooledConnection,
    script: Script,
    notice_id: UUID,
    at: datetime,
    expires: datetime,
    before: str | None,
    step: Step,
) -> None:
    leased = step.to in {"claimed", "attempted"}
    left = step.to in {"accepted", "delivered"}
    row: dict[str, Any] = {
        "state": step.to, "reason": step.reason, "detail": step.detail, "changed_at": at,
        "lease_owner": "host-a:4711" if leased else None,
        "lease_until": at + timedelta(seconds=35) if leased else None,
    }  # fmt: skip
    if step.provider:
        row["provider"] = step.provider
    if step.to == "attempted":
        row |= {"attempts": step.attempt, "may_have_left": True}
        _start_attempt(connection, script, notice_id, at, step)
    if left:
        row |= {"left_at": at, "final_acceptance": script.basis == "accepted"}
    if before is None:
        insert(connection, "delivery", row | {
            "notice_id": notice_id, "channel": step.channel, "is_fallback":
            step.reason == "fallback_reserved", "stop_at": expires - timedelta(seconds=30),
            "expires_at": expires, "due_at": at})  # fmt: skip
        return
    sets = ", ".join(f"{name} = %s" for name in row)
    connection.execute(
        f"UPDATE delivery SET {sets} "  # noqa: S608 - our own names
        "WHERE notice_id = %s AND channel = %s",
        [*row.values(), notice_id, step.channel],
    )


def _start_attempt(
    connection: PooledConnection, script: Script, notice_id: UUID, at: datetime, step: Step
) -> None:
    klass = "first" if step.attempt == 1 else f"retry-{(step.attempt or 1) - 1}"
    insert(connection, "attempt", {
        "notice_id": notice_id, "channel": step.channel, "number": step.attempt, "class": klass,
        "key": f"evt-{script.name}:{step.channel}:{klass}",
        "reference": f"r{notice_id.hex[-14:]}{str(step.channel)[0]}{step.attempt}",
        "provider": step.provider, "template_id": "password-reset", "template_revision": "1",
        "message_digest": "0", "owner": "host-a:4711", "fence": 1, "started_at": at,
        "deadline": at + timedelta(seconds=30)})  # fmt: skip


def _finish_attempt(
    connection: PooledConnection, notice_id: UUID, at: datetime, step: Step
) -> None:
    connection.execute(
        """UPDATE attempt SET outcome = %s, reason = %s, detail = %s, finished_at = %s,
                  call_ended = true, provider_message_id = %s,
                  resolved_at = CASE WHEN %s = 'unknown' THEN NULL ELSE %s END
            WHERE notice_id = %s AND channel = %s AND number = %s""",
        [step.outcome, step.reason, step.detail, at, step.provider_ref, step.outcome, at,
         notice_id, step.channel, step.attempt],
    )  # fmt: skip


def _write_receipts(
    connection: PooledConnection, script: Script, notice_id: UUID, start: datetime
) -> list[UUID]:
    ids = [uuid7() for _ in script.receipts]
    for receipt_id, (occurred, received, status) in zip(ids, script.receipts, strict=True):
        insert(connection, "receipt", {
            "receipt_id": receipt_id, "provider": "postmark", "account": "",
            "identity": receipt_id.bytes, "notice_id": notice_id, "channel": "email",
            "attempt": 1, "source": "callback", "status": status, "final": True,
            "occurred_at": start + timedelta(seconds=occurred),
            "received_at": start + timedelta(seconds=received),
            "applied_at": start + timedelta(seconds=received)})  # fmt: skip
    return ids
