"""P8: what is kept beside the trail is what the trail tells, and what was changed is found."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from notifier.domain.outcome import Accepted
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import tickets
from notifier.store.ledger import retention
from notifier.store.reads import trail, trail_beside
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.telling import POSTMARK, receipt
from tests.db.rig import BOTH, Rig
from tests.trail.tampering import Intruder, export_of, in_database, in_export
from tests.trail.test_commands import run
from tests.trail.test_rebuild import live_all_lives


def found(rig: Rig) -> list[tuple[UUID, str, object, object]]:
    with rig.database.connection() as connection, trail.snapshot(connection):
        return [
            (each.notice_id, each.what, each.stored, each.rebuilt)
            for each in trail_beside.differences(connection)
        ]


@pytest.fixture
def told(make_rig: MakeRig) -> tuple[Rig, UUID]:
    """A notice with everything that may stand beside its trail."""
    rig = make_rig(reports=True)
    notice_id = rig.admit(
        ticket_id="HD-1", correlation_id="corr-1", decision_id="dec-1", decision_digest="d",
        reason_code="because", email_consent=True, region="GB",
    )  # fmt: skip
    claim = rig.start("ref-1", provider=POSTMARK)
    rig.record(claim, Accepted("id-1"))
    rig.tell(receipt(ReceiptStatus.DELIVERED))
    tickets.link(rig.database, rig.desk, ticket_id="HD-2", notice_id=notice_id, by="ada")
    assert found(rig) == []
    return rig, notice_id


def test_p8_all_that_is_kept_beside_the_trail_is_what_the_trail_tells(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    live_all_lives(rig, clock)
    assert found(rig) == []
    with rig.database.connection() as connection:
        assert list(trail_beside.altered_policies(connection)) == []


ADMISSION = {
    "event_id": ("'evt-x'", {"admission's event_id", "admission's seal"}),
    "idempotency_key": ("'key-x'", {"admission's seal"}),
    "reset_request_id": ("'req-x'", {"admission's reset_request_id", "admission's seal"}),
    "account_id": ("'acc-x'", {"admission's seal", "notice's account_id"}),
    "requested_at": ("requested_at + '1us'::interval", {"admission's seal"}),
    "supersedes": ("NOT supersedes", {"admission's seal"}),
    "content_digest": ("sha256('x')", {"admission's seal"}),
    "admitted_at": ("admitted_at + '1us'::interval", {"admission's admitted_at"}),
    "expires_at": ("expires_at + '1us'::interval", {"admission's expires_at"}),
}
NOTICE = {
    "event_id": "'x'",
    "reset_request_id": "'x'",
    "account_id": "'x'",
    "correlation_id": "NULL",
    "template_id": "'x'",
    "template_revision": "'2'",
    "locale_used": "'de'",
    "policy_revision": "2",
    "mode": "'parallel'",
    "created_at": "created_at + '1us'::interval",
    "expires_at": "expires_at + '1us'::interval",
}
EVENT = {
    "event_id": "'x'",
    "signing_key_id": "'x'",
    "locale_used": "'de'",
    "mode": "'parallel'",
    "reason_code": "NULL",
    "decision_id": "'x'",
    "decision_digest": "'x'",
    "email_consent": "false",
    "sms_consent": "true",
    "region": "'DE'",
    "correlation_id": "'x'",
    "received_at": "received_at + '1us'::interval",
}
ATTEMPT = {
    "class": "'retry-1'",
    "key": "'x'",
    "reference": "'x'",
    "provider": "'x'",
    "template_revision": "'2'",
    "started_at": "started_at + '1us'::interval",
    "number": "2",
}
RECEIPT = {
    "channel": "'sms'",
    "attempt": "2",
    "provider": "'x'",
    "source": "'poll'",
    "status": "'failed'",
    "provider_code": "'x'",
}


SECOND_ATTEMPT = """
    INSERT INTO attempt
    SELECT notice_id, channel, 2, class, 'k', 'r', provider, template_id, template_revision,
           message_digest, owner, fence, started_at, deadline FROM attempt
"""


@pytest.mark.parametrize("column", ADMISSION)
def test_p8_a_changed_key_is_found(told: tuple[Rig, UUID], intruder: Intruder, column: str) -> None:
    rig, notice_id = told
    value, seen = ADMISSION[column]
    intruder.run(f"UPDATE admission SET {column} = {value}")  # noqa: S608 - constants of this file
    assert {each[:2] for each in found(rig)} == {(notice_id, what) for what in seen}


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (table, column, value)
        for table, columns in {
            "notice": NOTICE, "reset_event": EVENT, "attempt": ATTEMPT, "receipt": RECEIPT,
        }.items()
        for column, value in columns.items()
    ],
)  # fmt: skip
def test_p8_what_was_changed_beside_the_trail_is_found_and_named(
    told: tuple[Rig, UUID], intruder: Intruder, table: str, column: str, value: str
) -> None:
    rig, notice_id = told
    intruder.run(f"UPDATE {table} SET {column} = {value}")  # noqa: S608 - constants of this file
    differences = found(rig)
    assert {each[0] for each in differences} == {notice_id}
    whose = {"notice": "notice's ", "reset_event": "event's ", "attempt": "email attempt "}
    assert all(each[1].startswith(whose.get(table, "receipt of row ")) for each in differences)
    assert in_database(rig)[1] == in_export(export_of(rig))[1] == []


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM reset_event", "event"),
        ("DELETE FROM receipt", "receipt of row 7"),
        ("DELETE FROM attempt", "email attempt 1"),
        ("DELETE FROM ticket_link WHERE ticket_id = 'HD-1'", "ticket HD-1"),
        ("DELETE FROM ticket_link WHERE ticket_id = 'HD-2'", "ticket HD-2"),
        ("UPDATE ticket_link SET ticket_id = 'HD-3' WHERE ticket_id = 'HD-2'", "ticket HD-3"),
        ("UPDATE notice SET details_erased_at = db_now()", "details erased in time"),
        (SECOND_ATTEMPT, "email attempt 2"),
    ],
)
def test_p8_what_is_gone_or_was_put_in_is_found(
    told: tuple[Rig, UUID], intruder: Intruder, statement: str, what: str
) -> None:
    rig, notice_id = told
    intruder.run(statement)
    assert (notice_id, what) in {each[:2] for each in found(rig)}


def test_p8_what_went_after_its_retention_is_not_missed(
    told: tuple[Rig, UUID], clock: Clock
) -> None:
    rig, _ = told
    clock.advance(timedelta(days=91).total_seconds())
    with rig.database.connection() as connection:
        assert retention.erase_receipts(connection, days=90) == 1
        assert retention.erase_events(connection, days=90) == 1
    assert found(rig) == []


def test_p8_a_policy_whose_values_were_changed_is_found(
    told: tuple[Rig, UUID], intruder: Intruder
) -> None:
    rig, _ = told
    intruder.run("UPDATE policy_revision SET document = document || '{\"lease_s\": 31}'")
    with rig.database.connection() as connection:
        assert list(trail_beside.altered_policies(connection)) == [1]


def test_p8_verify_and_rebuild_tell_both_and_end_with_status_1(
    told: tuple[Rig, UUID], intruder: Intruder
) -> None:
    rig, notice_id = told
    sound = run(rig, "verify")
    assert (sound.exit_code, "beside the trail: no difference" in sound.output) == (0, True)
    intruder.run("UPDATE admission SET event_id = 'evt-x', account_id = 'acc-x'")
    intruder.run("UPDATE policy_revision SET document = document || '{\"lease_s\": 31}'")
    for command in ("verify", "rebuild"):
        done = run(rig, command)
        assert done.exit_code == 1
        assert f"notice {notice_id} admission's event_id: stored evt-x, by the trail evt-" in (
            done.output
        )
        assert "policy revision 1: its values are not those of its digest" in done.output
    assert "beside the trail: 4 differences" in run(rig, "verify").output
