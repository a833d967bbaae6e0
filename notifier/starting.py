"""What has to be in order before a process may start, and what to say where it is not."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from sqlalchemy.exc import OperationalError

from notifier.domain.policy import Policy, PolicyInvalid, default_policy, parse_policy
from notifier.logs import fault_fields, log
from notifier.messages import revisions
from notifier.settings import Settings, problem_of
from notifier.store import schema
from notifier.store.database import Database, sqlalchemy_spelling
from notifier.store.embedded import EmbeddedPostgresError, EmbeddedServer, ensure_running
from notifier.store.embedded_watch import EmbeddedWatch
from notifier.store.ledger import templates


class CannotStart(Exception):
    """Something outside the code forbids the start; the text says what, and what to do."""


def dump_no_memory() -> None:
    """Keep a crash, here and in our children, from writing memory to a file: links live in it.

    One byte, because a limit of nought still lets a dump be piped to a program (core(5)); the
    kernel takes this one as a wish for neither.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    limit = 1 if most == resource.RLIM_INFINITY else min(1, most)
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


@contextmanager
def told_briefly(event: str) -> Iterator[None]:
    """End the process on an exception, said by type and place: its text may quote a value.

    For what runs in the serving process under somebody else's code, which would print it whole.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, its text stays here
        log.critical(event, **fault_fields(error))
        sys.exit(1)


@dataclass(frozen=True, slots=True)
class AtHand:
    """The database's URL; `embedded` is the server where it is ours, and `watch` over it."""

    url: str
    embedded: EmbeddedServer | None = None
    watch: EmbeddedWatch | None = None


@contextmanager
def database_at_hand(settings: Settings) -> Iterator[AtHand]:
    """The database that is set, else the embedded server, for as long; it is not watched yet.

    The embedded database is brought to the newest schema; any other one is only looked at by
    `require_schema`.
    """
    if settings.database_url is not None:
        yield AtHand(settings.database_url.get_secret_value())
        return
    try:
        server = ensure_running(settings.data_dir)
    except EmbeddedPostgresError as error:
        raise CannotStart(str(error)) from None
    except OSError as error:
        wrong = f"cannot be used ({error.strerror or type(error).__name__})"
        raise CannotStart(str(problem_of("data_dir", wrong))) from None
    watch = EmbeddedWatch(server)
    try:
        schema.upgrade(sqlalchemy_url(server.url))
        yield AtHand(server.url, server, watch)
    finally:
        watch.stop()
        server.stop()


def sqlalchemy_url(url: str) -> str:
    """The same database as SQLAlchemy spells it, with psycopg 3 as the driver."""
    return sqlalchemy_spelling(url)


def require_schema(url: str) -> None:
    """Raise `CannotStart` unless the database can be reached and is on this code's schema."""
    try:
        schema.require(sqlalchemy_url(url))
    except schema.SchemaOutdated as error:
        raise CannotStart(str(error)) from None
    except (OperationalError, psycopg.OperationalError) as error:
        # The driver's own text may quote the address, and with it a password.
        message = (
            f"the database cannot be reached ({type(error).__name__}): see NOTIFIER_DATABASE_URL"
        )
        raise CannotStart(message) from None


def first_policy(settings: Settings) -> Policy:
    """The policy that an empty database begins with."""
    if settings.policy_file is None:
        return default_policy()
    try:
        return parse_policy(settings.policy_file.read_bytes())
    except PolicyInvalid as error:
        raise CannotStart(f"NOTIFIER_POLICY_FILE is refused:\n{error}") from None


def check_templates(database: Database) -> None:
    """Refuse templates that changed under a revision that was used; remember new ones."""
    with database.connection() as connection:
        if problems := revisions.check_revisions(templates.stored(connection)):
            raise CannotStart("\n".join(problems))
        present = {each: revisions.source_digest(*each) for each in revisions.list_revisions()}
        templates.keep(connection, present)
