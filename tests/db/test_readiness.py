"""What a process says of its database: only the schema that it was made for will do."""

from __future__ import annotations

from notifier.readiness import Readiness
from notifier.store.database import Database
from notifier.store.schema import head
from notifier.web.services import PartReport


def reported(database: Database) -> PartReport:
    (part,) = Readiness(database, list, None, lambda: 0).parts()
    return part


def test_p9_another_versions_schema_is_not_ready_and_both_are_named(database: Database) -> None:
    assert reported(database) == PartReport("database", True, f"schema {head()}, needs {head()}")

    with database.connection() as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'later'")

    assert reported(database) == PartReport("database", False, f"schema later, needs {head()}")


def test_a_database_that_takes_no_writes_is_not_ready(database_url: str) -> None:
    replica = Database(database_url, extra_options="-c default_transaction_read_only=on")

    assert reported(replica) == PartReport("database", False, "takes no writes")

    replica.close()
