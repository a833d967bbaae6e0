"""Which schema the code needs, which one the database has, and how to get from one to the other."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, pool

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
VERSION_SCHEMA = "notifier"
MIGRATION_LOCK = 7205759403792793600
"""Key of the advisory lock under which migrations run."""


class SchemaOutdated(Exception):
    """The database is on an older (or newer) schema than this code."""


def _config(sqlalchemy_url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", sqlalchemy_url.replace("%", "%%"))
    return config


def upgrade(sqlalchemy_url: str) -> None:
    """Bring the database to the newest schema; safe to run from several processes at once."""
    command.upgrade(_config(sqlalchemy_url), "head")


def head() -> str:
    """The revision that this code needs."""
    revision = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    if revision is None:
        message = "no migrations found"
        raise SchemaOutdated(message)
    return revision


def current(sqlalchemy_url: str) -> str | None:
    """The revision that the database is on; None where it was never migrated."""
    engine = create_engine(sqlalchemy_url, poolclass=pool.NullPool)
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(
                connection, opts={"version_table_schema": VERSION_SCHEMA}
            )
            return context.get_current_revision()
    finally:
        engine.dispose()


def require(sqlalchemy_url: str) -> None:
    """Raise `SchemaOutdated`, naming the command, unless code and database agree."""
    found, needed = current(sqlalchemy_url), head()
    if found != needed:
        message = (
            f"the database is on schema {found or 'none'} and this version needs {needed}: "
            "run `flask db upgrade`"
        )
        raise SchemaOutdated(message)
