"""Runs migrations over one connection, with lock and statement timeouts on."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, pool, text

from notifier.store.schema import MIGRATION_LOCK, VERSION_SCHEMA


def run() -> None:
    """Upgrade under an advisory lock, so that two processes starting together do it once."""
    url = context.config.get_main_option("sqlalchemy.url")
    if not url:
        from flask import current_app  # noqa: PLC0415 - only under `flask db`, where an app exists

        url = current_app.config["SQLALCHEMY_DATABASE_URI"]
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        connection.execute(text("SET lock_timeout = '10s'"))
        connection.execute(text("SET statement_timeout = '5min'"))
        connection.execute(text("SET search_path = notifier, pg_catalog"))
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {VERSION_SCHEMA}"))
        connection.commit()
        context.configure(
            connection=connection,
            version_table_schema=VERSION_SCHEMA,
            transaction_per_migration=True,
        )
        with context.begin_transaction():
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            context.run_migrations()
    engine.dispose()


run()
