"""One Postgres, as every part of the product reaches it.

Decides how a connection behaves: autocommit (one statement is one transaction unless the
caller opens one), rows as dicts, UTC, a search path, and time limits on statements, on locks
and on idle transactions. A connection that died while it lay in the pool is replaced before
anybody is given it, so that a restart of Postgres costs at worst a retriable refusal.
"""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg.abc import PQGen

PooledConnection = psycopg.Connection[DictRow]
T = TypeVar("T")

CONNECT_TIMEOUT_S = 3
RECONNECT_FOR_S = 1.0
"""How long the pool's own thread keeps trying before the next caller's wish starts it again.

Short on purpose: its pauses double, so that after a long outage a patient thread would sleep
for minutes beside a healthy database.
"""

SESSION_LIMITS = {
    "timezone": "UTC",
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
}
WAIT_SLICE_S = 0.1
"""How soon a thread that waits for an answer notices that it is told to stop."""
ANSWER_LIMIT_S = 15.0
"""How long the server may leave anything unanswered before its connection is given up.

The server ends a statement after `statement_timeout` and TCP ends a silent peer; neither helps
where something in between keeps the line open and forwards nothing, or where a commit waits
for a standby that is gone.
"""
DEAD_PEER_LIMITS = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


class StoreUnavailable(Exception):
    """The database gave no connection in time; nothing was asked of it, so asking again is safe."""


class StoreConnectionLost(StoreUnavailable):
    """The connection broke while in use: whether the last statement took effect is unknown."""


class BoundedConnection(psycopg.Connection[DictRow]):
    """A connection that waits for no answer for ever, and knows what stands behind it."""

    pooled = False
    """A pooler hands each transaction to another server session: nothing outlives one."""
    unconfirmed = False
    """A commit was answered although the standby that must have it has not confirmed it."""

    def wait(
        self, gen: PQGen[T], interval: float = WAIT_SLICE_S, timeout: float | None = None
    ) -> T:
        """As psycopg's; an answer that does not come in time costs the connection."""
        began = time.monotonic()
        try:
            return super().wait(gen, interval, ANSWER_LIMIT_S if timeout is None else timeout)
        except psycopg.OperationalError:
            if timeout is None and time.monotonic() - began >= ANSWER_LIMIT_S:
                self.pgconn.finish()
            raise

    def look_behind(self) -> None:
        """Find out once, right after connecting, whom this connection leads to."""
        self.add_notice_handler(self._take_note)
        row = self.execute("SELECT pg_backend_pid() AS pid").fetchone()
        # A pooler makes up the process that it names at the start.
        self.pooled = row is not None and row["pid"] != self.info.backend_pid
        if self.pooled:
            self.prepare_threshold = None

    def _take_note(self, said: psycopg.errors.Diagnostic) -> None:
        # Its SQLSTATE is that of any warning and its text may be translated.
        if said.source_function == "SyncRepWaitForLSN":
            self.unconfirmed = True


class Database:
    """A pool of at most `size` connections to one database, opened at first use.

    `url` is a libpq URL (`postgresql://...`, several hosts allowed; with several, the writable
    one is used unless the URL says otherwise). `search_path` is a comma-separated list of
    schemas, `extra_options` further server options such as `-c jit=off`, `acquire_timeout_s`
    how long a caller waits for a connection when none is free.

    The pool belongs to the process that first used it. A forked child builds its own Database.
    """

    def __init__(
        self,
        url: str,
        *,
        size: int = 8,
        application_name: str = "notifier",
        search_path: str = "notifier",
        acquire_timeout_s: float = 2.0,
        extra_options: str = "",
    ) -> None:
        self.url = plain_url(url)
        self._size = size
        self._acquire_timeout_s = acquire_timeout_s
        self._keywords = connection_keywords(self.url, application_name, search_path, extra_options)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[BoundedConnection] | None = None
        self._pool_pid = 0

    @property
    def sqlalchemy_url(self) -> str:
        """The same database as SQLAlchemy spells it, with psycopg 3 as the driver."""
        return sqlalchemy_spelling(self.url)

    @contextmanager
    def connection(self, timeout: float | None = None) -> Iterator[BoundedConnection]:
        """A live autocommit connection, given back at the end.

        `timeout` (seconds) replaces the acquire timeout. Raises `StoreUnavailable` when no
        connection could be had in time, `StoreConnectionLost` when it broke under the caller.
        A transaction left open is rolled back.
        """
        pool = self._own_pool()
        given = self._acquire_timeout_s if timeout is None else timeout
        connection = live_connection(pool, time.monotonic() + given)
        try:
            yield connection
            confirmed(connection)
        except psycopg.errors.ReadOnlySqlTransaction:
            forget_all(pool, connection)
            raise
        except psycopg.OperationalError as error:
            if not connection.broken:
                raise
            forget_all(pool, connection)
            raise StoreConnectionLost(type(error).__name__) from error
        finally:
            pool.putconn(connection)

    def close(self) -> None:
        """Close every connection; the next use opens the pool anew."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._pool_pid == os.getpid():
            pool.close()

    def _own_pool(self) -> ConnectionPool[BoundedConnection]:
        with self._lock:
            if self._pool is None:
                self._pool = self._open_pool()
                self._pool_pid = os.getpid()
            elif self._pool_pid != os.getpid():
                message = (
                    "this Database was first used in another process; build one after the fork"
                )
                raise RuntimeError(message)
            return self._pool

    def _open_pool(self) -> ConnectionPool[BoundedConnection]:
        return ConnectionPool(
            self.url,
            connection_class=BoundedConnection,
            kwargs=self._keywords,
            configure=BoundedConnection.look_behind,
            min_size=1,
            max_size=self._size,
            timeout=self._acquire_timeout_s,
            reconnect_timeout=RECONNECT_FOR_S,
            name=str(self._keywords["application_name"]),
            open=True,
        )


def live_connection(pool: ConnectionPool[BoundedConnection], deadline: float) -> BoundedConnection:
    """A connection whose server end still stood a moment ago; `deadline` is monotonic.

    The pool's own check pauses a second after each dead connection it meets; after a restart
    of Postgres all of them are dead, so here the first one found clears out the rest.
    """
    while True:
        try:
            connection = pool.getconn(max(deadline - time.monotonic(), 0.001))
        except (PoolTimeout, PoolClosed, psycopg.OperationalError) as error:
            raise StoreUnavailable(type(error).__name__) from error
        if stands(connection):
            return connection
        connection.close()
        pool.putconn(connection)
        pool.drain()


def forget_all(pool: ConnectionPool[BoundedConnection], connection: BoundedConnection) -> None:
    """Use neither this connection again nor those that lie in the pool.

    What one of them met, the others will: a server that became read-only, or a line that
    forwards nothing. The next ones lead to whoever takes writes by then.
    """
    connection.close()
    pool.drain()


def confirmed(connection: BoundedConnection) -> None:
    """Raise where a commit was answered that a failover could still lose."""
    if connection.unconfirmed:
        connection.close()
        raise StoreConnectionLost("no standby has confirmed the commit")


def stands(connection: PooledConnection) -> bool:
    """Whether the server end is still there, without a round trip.

    An idle connection has nothing to read. Where there is something, it is the server's
    farewell or a harmless notice; only then the server is asked.
    """
    if connection.pgconn.transaction_status != TransactionStatus.IDLE:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    try:
        connection.execute("")
    except psycopg.OperationalError:
        return False
    return True


def plain_url(url: str) -> str:
    """The URL as libpq takes it: SQLAlchemy's driver suffix is dropped."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.partition("+")[0] not in {"postgresql", "postgres"}:
        message = "a database URL starts with postgresql://"
        raise ValueError(message)
    return f"postgresql://{rest}"


def sqlalchemy_spelling(url: str) -> str:
    """The URL as SQLAlchemy takes it, with psycopg 3 as the driver.

    It reads no `host:port,host:port`; several hosts go into the query, where libpq finds them.
    """
    plain = plain_url(url)
    given = conninfo_to_dict(plain)
    if "," not in str(given.get("host", "")):
        return "postgresql+psycopg://" + plain.partition("://")[2]
    password = given.pop("password", None)
    who = quote(str(given.pop("user", "")), safe="")
    if password is not None:
        who += ":" + quote(str(password), safe="")
    name = quote(str(given.pop("dbname", "")), safe="")
    where = urlencode({"target_session_attrs": "read-write", **given}, quote_via=quote)
    return f"postgresql+psycopg://{who}@/{name}?{where}"


def connection_keywords(
    url: str, application_name: str, search_path: str, extra_options: str
) -> dict[str, Any]:
    """Keyword arguments of `psycopg.connect` that make a connection ours.

    Network limits in the URL win over the defaults; server options in it come last, so they
    win too.
    """
    given = conninfo_to_dict(url)
    options = [f"-c {name}={value}" for name, value in SESSION_LIMITS.items()]
    options.append(f"-c search_path={search_path.replace(' ', '')}")
    options.extend(str(part) for part in (extra_options, given.get("options")) if part)
    keywords: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, **DEAD_PEER_LIMITS}
    if "," in str(given.get("host", "")):
        keywords["target_session_attrs"] = "read-write"
    keywords = {name: value for name, value in keywords.items() if name not in given}
    return keywords | {
        "autocommit": True,
        "row_factory": dict_row,
        "application_name": application_name,
        "options": " ".join(options),
    }
