"""P8: what stands on the trail cannot be altered, by the owner, the application or a reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from notifier.store import schema
from notifier.store.database import Database
from notifier.store.embedded import EmbeddedServer
from tests import database as databases
from tests.db.rig import Rig

FIRST_READ = """
    INSERT INTO read_audit (read_id, at, person, role, action, object_kind)
    VALUES (gen_random_uuid(), db_now(), 'p', 'auditor', 'read', 'notice')
"""
FIRST_CHECKPOINT = """
    INSERT INTO checkpoint VALUES (1, db_now(), '', 1, '', 'key', '', '', '0', true);
    INSERT INTO checkpoint_head VALUES (gen_random_uuid(), 1, 1, '')
"""
ALTERATIONS = {
    "transition": ["UPDATE transition SET provider_ref = 'x'", "DELETE FROM transition"],
    "policy_revision": ["UPDATE policy_revision SET author = 'x'", "DELETE FROM policy_revision"],
    "read_audit": ["UPDATE read_audit SET person = 'x'", "DELETE FROM read_audit"],
    "admission": ["DELETE FROM admission"],
    "checkpoint": ["UPDATE checkpoint SET key_id = 'x'", "DELETE FROM checkpoint"],
    "checkpoint_head": ["UPDATE checkpoint_head SET seq = 2", "DELETE FROM checkpoint_head"],
}
REFUSED = [
    statement
    for table, statements in ALTERATIONS.items()
    for statement in [*statements, f"TRUNCATE {table}"]
]


def test_p8_not_even_the_owner_can_alter_or_remove_what_was_written(rig: Rig) -> None:
    rig.admit()
    rig.run(FIRST_READ)
    rig.run(FIRST_CHECKPOINT)
    before = {table: rig.rows(f"SELECT * FROM {table}") for table in ALTERATIONS}  # noqa: S608

    for statement in REFUSED:
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            rig.run(statement)

    after = {table: rig.rows(f"SELECT * FROM {table}") for table in ALTERATIONS}  # noqa: S608
    assert after == before
    assert all(before.values())


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
            for table in ALTERATIONS:
                owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield url


@contextmanager
def acting_as(url: str, role: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(url, options="-c search_path=notifier", autocommit=True) as connection:
        connection.execute(f"SET ROLE {role}")
        yield connection


@pytest.mark.parametrize("statement", REFUSED)
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
