"""P8: what stands on the trail cannot be altered, by the owner, the application or a reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from notifier.accounts import people
from notifier.accounts.permissions import Role
from notifier.domain.policy import Policy
from notifier.domain.receipts import ReceiptStatus
from notifier.flow import halts, policies
from notifier.store import schema
from notifier.store.database import Database
from notifier.store.embedded import EmbeddedServer
from notifier.store.ledger import contacts, retention
from tests import database as databases
from tests.database import Clock
from tests.db.ledger.telling import receipt
from tests.db.rig import BOTH, Rig
from tests.trail.test_rebuild import live_all_lives

FIRST_READ = """
    INSERT INTO read_audit (read_id, at, person, role, action, object_kind)
    VALUES (gen_random_uuid(), db_now(), 'p', 'auditor', 'read', 'notice')
"""
FIRST_LINK = "INSERT INTO ticket_link VALUES ('HD-1', gen_random_uuid(), db_now(), 'ada')"
FIRST_TEMPLATE = "INSERT INTO template_revision VALUES ('reset', '9', '\\x00', db_now())"
FIRST_CHECKPOINT = """
    INSERT INTO checkpoint VALUES (1, db_now(), '', 1, '', 'key', '', '', '0', true);
    INSERT INTO checkpoint_head VALUES (gen_random_uuid(), 1, 1, '')
"""
ALTERATIONS = {
    "transition": ["UPDATE transition SET provider_ref = 'x'", "DELETE FROM transition"],
    "policy_revision": ["UPDATE policy_revision SET author = 'x'", "DELETE FROM policy_revision"],
    "read_audit": ["UPDATE read_audit SET person = 'x'", "DELETE FROM read_audit"],
    "admission": [
        "UPDATE admission SET event_id = 'x', idempotency_key = 'x', reset_request_id = 'x'",
        "UPDATE admission SET stop_at = NULL",
        "DELETE FROM admission",
    ],
    "ticket_link": ["UPDATE ticket_link SET linked_by = 'x'", "DELETE FROM ticket_link"],
    "template_revision": [
        "UPDATE template_revision SET source_digest = ''",
        "DELETE FROM template_revision",
    ],
    "checkpoint": ["UPDATE checkpoint SET key_id = 'x'", "DELETE FROM checkpoint"],
    "checkpoint_head": ["UPDATE checkpoint_head SET seq = 2", "DELETE FROM checkpoint_head"],
}
NEVER_REWRITTEN = {
    "reset_event": (
        "notice_id event_id transport_id signing_key_id locale locale_used mode reason_code"
        " decision_id decision_digest email_consent sms_consent region correlation_id received_at"
    ),
    "notice": (
        "notice_id event_id reset_request_id account_id correlation_id template_id"
        " template_revision locale_used policy_revision mode created_at"
    ),
    "delivery": "notice_id channel is_fallback",
    "attempt": (
        "notice_id channel number class key reference provider template_id template_revision"
        " message_digest owner fence started_at"
    ),
    "receipt": (
        "receipt_id provider account identity reference provider_message_id source status detail"
        " provider_code final occurred_at received_at"
    ),
    "halt": "halt_id scope reason engaged_by engaged_at",
    "alert_note": "episode_id at by text",
    "person": "person_id name source issuer subject created_at",
}
REWRITES = [
    f"UPDATE {table} SET {column} = {column}"  # noqa: S608 - constants of this file
    for table, columns in NEVER_REWRITTEN.items()
    for column in columns.split()
]
REMOVALS = [f"DELETE FROM {table}" for table in ("notice", "delivery", "attempt", "halt", "person")]  # noqa: S608
REFUSED = [
    statement
    for table, statements in ALTERATIONS.items()
    for statement in [*statements, f"TRUNCATE {table}"]
]


def test_p8_not_even_the_owner_can_alter_or_remove_what_was_written(rig: Rig) -> None:
    rig.admit()
    rig.run(FIRST_READ)
    rig.run(FIRST_CHECKPOINT)
    rig.run(FIRST_LINK)
    rig.run(FIRST_TEMPLATE)
    before = {table: rig.rows(f"SELECT * FROM {table}") for table in ALTERATIONS}  # noqa: S608

    for statement in REFUSED:
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            rig.run(statement)

    after = {table: rig.rows(f"SELECT * FROM {table}") for table in ALTERATIONS}  # noqa: S608
    assert after == before
    assert all(before.values())


def test_p8_not_even_the_owner_rewrites_what_is_written_once(rig: Rig) -> None:
    rig.start_new()

    for statement in REWRITES:
        with pytest.raises(psycopg.errors.RestrictViolation, match="never rewritten"):
            rig.run(statement)


@contextmanager
def migrated_by_a_superuser(server: EmbeddedServer) -> Iterator[str]:
    """A database whose owner may create roles, so that the application is not the owner."""
    with databases.fresh_database(server) as own:
        name = databases.database_name(own)
        url = server.superuser_url.replace("/postgres?", f"/{name}?", 1)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA notifier CASCADE")
            connection.execute("DROP SCHEMA scheduler CASCADE")
        schema.upgrade(Database(url).sqlalchemy_url)
        yield url


@pytest.fixture(scope="module")
def guarded_url(postgres: EmbeddedServer) -> Iterator[str]:
    with migrated_by_a_superuser(postgres) as url:
        database = Database(url)
        Rig(database).admit()
        database.close()
        with psycopg.connect(url, options="-c search_path=notifier", autocommit=True) as owner:
            owner.execute(FIRST_READ)
            owner.execute(FIRST_CHECKPOINT)
            for table in {*ALTERATIONS, *NEVER_REWRITTEN}:
                owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield url


@contextmanager
def acting_as(url: str, role: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(url, options="-c search_path=notifier", autocommit=True) as connection:
        connection.execute(f"SET ROLE {role}")
        yield connection


@pytest.mark.parametrize("statement", [*REFUSED, *REWRITES, *REMOVALS])
def test_p8_the_application_cannot_alter_the_trail_even_without_triggers(
    guarded_url: str, statement: str
) -> None:
    with (
        acting_as(guarded_url, "notifier_app") as application,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        application.execute(statement)


def test_the_application_can_do_its_work(guarded_url: str) -> None:
    with (
        acting_as(guarded_url, "notifier_app") as application,
        application.transaction(force_rollback=True),
    ):
        for statement in (
            "UPDATE delivery SET looks = 1",
            "INSERT INTO ticket_link VALUES ('T', gen_random_uuid(), db_now(), 'x')",
            "INSERT INTO transition SELECT * FROM transition WHERE false",
            "DELETE FROM session",
            "CREATE TABLE scheduler.job (id text)",
        ):
            application.execute(statement)


def test_the_application_lives_through_everything_with_what_it_is_granted(
    guarded_url: str,
) -> None:
    with psycopg.connect(guarded_url, autocommit=True) as owner:
        for table in NEVER_REWRITTEN:
            owner.execute(f"ALTER TABLE notifier.{table} ENABLE TRIGGER USER")
        owner.execute("GRANT USAGE ON SCHEMA test_clock TO notifier_app")
        owner.execute("GRANT SELECT ON test_clock.setting TO notifier_app")
    clock = Clock(guarded_url)
    database = Database(
        guarded_url, search_path="test_clock,notifier", extra_options="-c role=notifier_app"
    )
    rig = Rig(database, channels=BOTH)
    live_all_lives(rig, clock)
    rig.tell(receipt(ReceiptStatus.DELIVERED))
    with database.connection() as connection:
        contacts.keep(connection, notice_id=rig.admit(), channel="email", mask="m", fingerprint=b"")
    halts.engage(database, scope="all", reason="a drill", by="ops")
    assert halts.release(database, scope="all", reason="over", by="ops")
    draft = Policy.from_document({"lease_s": 40})
    assert policies.keep(database, draft, base=1, author="ada", reason="was slow") == 2
    clock.advance(100 * 86400)
    with database.connection() as connection:
        for erase in (retention.erase_contacts, retention.erase_receipts, retention.erase_events):
            erase(connection, days=30)
        person = people.add(connection, "ada", Role.ADMIN, None)
        people.set_password(connection, person.person_id, "correct horse battery")
        people.disable(connection, "ada")
    assert rig.count("reset_event") < rig.count("admission")
    database.close()
    clock.close()


PRIVILEGES = """
    SELECT tablename, has_table_privilege('notifier_reader', 'notifier.' || tablename, 'SELECT'),
           has_table_privilege('notifier_reader', 'notifier.' || tablename,
                               'INSERT, UPDATE, DELETE, TRUNCATE')
      FROM pg_tables WHERE schemaname = 'notifier' AND tablename <> 'alembic_version'
"""
PRIVATE = {"person", "sign_in_link", "sign_in_start", "session", "search_token"}


def test_p7_a_reader_writes_nothing_and_sees_no_session(guarded_url: str) -> None:
    with psycopg.connect(guarded_url) as connection:
        rows = connection.execute(PRIVILEGES).fetchall()

    assert {table for table, reads, _ in rows if not reads} == PRIVATE
    assert {table for table, _, writes in rows if writes} == set()

    with acting_as(guarded_url, "notifier_reader") as reader:
        for statement in ("SELECT FROM session", "DELETE FROM notice"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(statement)
