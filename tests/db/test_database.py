"""The pool through restarts, lost sessions, forks and crowds."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import make_url

from notifier.store.database import (
    Database,
    StoreConnectionLost,
    StoreUnavailable,
    connection_keywords,
)
from notifier.store.embedded import ensure_running
from tests.db.embedded_ground import kill_postmaster

if TYPE_CHECKING:
    from pathlib import Path


def one(database: Database, statement: str) -> dict[str, object]:
    with database.connection() as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return dict(row)


def fill(database: Database, connections: int) -> None:
    """Let the pool hold so many connections, all idle afterwards."""
    together = threading.Barrier(connections)

    def hold() -> None:
        with database.connection(timeout=10) as connection:
            connection.execute("SELECT 1")
            together.wait(timeout=10)

    crowd = [threading.Thread(target=hold) for _ in range(connections)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()


def test_a_session_is_in_utc_with_time_limits_and_our_search_path(database_url: str) -> None:
    database = Database(database_url, application_name="teller")
    names = ("timezone", "statement_timeout", "lock_timeout", "search_path", "application_name",
             "idle_in_transaction_session_timeout")  # fmt: skip

    found = [one(database, f"SHOW {name}")[name.replace("timezone", "TimeZone")] for name in names]

    database.close()
    assert found == ["UTC", "10s", "5s", "notifier", "teller", "10s"]


def test_the_first_use_after_a_restart_of_the_server_succeeds(tmp_path: Path) -> None:
    before = ensure_running(tmp_path, settings={"fsync": "off"})
    database = Database(before.url, acquire_timeout_s=10)
    fill(database, 4)
    kill_postmaster(before.pid)
    after = ensure_running(tmp_path, settings={"fsync": "off"})

    began = time.monotonic()
    assert one(database, "SELECT 1 AS n") == {"n": 1}

    assert time.monotonic() - began < 4  # a second for each dead one would be longer
    database.close()
    after.stop()
    before.stop()


def test_while_the_server_is_down_callers_get_one_plain_error_in_time(tmp_path: Path) -> None:
    server = ensure_running(tmp_path, settings={"fsync": "off"})
    database = Database(server.url, acquire_timeout_s=0.5)
    fill(database, 2)
    server.stop()

    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            one(database, "SELECT 1 AS n")
    assert time.monotonic() - began < 10

    again = ensure_running(tmp_path, settings={"fsync": "off"})
    deadline = time.monotonic() + 15
    while True:
        try:
            one(database, "SELECT 1 AS n")
            break
        except StoreUnavailable:
            assert time.monotonic() < deadline, "the pool did not notice that the server is back"
    database.close()
    again.stop()


def test_a_session_that_was_ended_while_idle_is_replaced_unnoticed(
    database: Database, postgres_url: str
) -> None:
    pid = one(database, "SELECT pg_backend_pid() AS pid")["pid"]
    with psycopg.connect(postgres_url) as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    assert one(database, "SELECT pg_backend_pid() AS pid")["pid"] != pid


def test_a_session_that_breaks_in_use_says_that_the_outcome_is_unknown(
    database: Database, postgres_url: str
) -> None:
    def break_in_use() -> None:
        with database.connection() as connection:
            row = connection.execute("SELECT pg_backend_pid() AS pid").fetchone()
            assert row is not None
            with psycopg.connect(postgres_url) as superuser:
                superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [row["pid"]])
            connection.execute("SELECT 1")

    with pytest.raises(StoreConnectionLost):
        break_in_use()

    assert one(database, "SELECT 1 AS n") == {"n": 1}


def test_an_error_of_a_statement_keeps_its_own_type(database_url: str) -> None:
    database = Database(database_url, extra_options="-c statement_timeout=10ms")

    with pytest.raises(psycopg.errors.QueryCanceled):
        one(database, "SELECT pg_sleep(5)")

    database.close()


def test_a_used_up_pool_refuses_within_the_acquire_timeout(database_url: str) -> None:
    database = Database(database_url, size=1, acquire_timeout_s=0.2)
    with database.connection():
        began = time.monotonic()
        with pytest.raises(StoreUnavailable), database.connection():
            pass
        assert 0.1 < time.monotonic() - began < 10
    assert one(database, "SELECT 1 AS n") == {"n": 1}
    database.close()


def test_a_transaction_that_a_caller_left_open_is_rolled_back(database_url: str) -> None:
    database = Database(database_url, size=1)
    with database.connection() as connection:
        connection.execute("CREATE TABLE public.left_open (n int)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO public.left_open VALUES (1)")

    assert one(database, "SELECT count(*) AS n FROM public.left_open") == {"n": 0}
    database.close()


def test_a_pool_from_before_a_fork_is_not_used_after_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one(database, "SELECT 1 AS n")
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(RuntimeError, match="after the fork"), database.connection():
            pass


def test_sqlalchemy_is_given_the_same_place_with_our_driver() -> None:
    spelled = "postgresql+psycopg://a@/b?host=%2Ftmp"

    assert Database("postgresql://a@/b?host=%2Ftmp").sqlalchemy_url == spelled
    assert Database(spelled).url == "postgresql://a@/b?host=%2Ftmp"


def test_of_several_hosts_the_writable_one_is_used_unless_the_url_chooses() -> None:
    several = "postgresql://a@one:5432,two:5432/b"

    assert connection_keywords(several, "n", "s", "")["target_session_attrs"] == "read-write"
    chosen = connection_keywords(f"{several}?target_session_attrs=any", "n", "s", "")
    assert "target_session_attrs" not in chosen


def test_sqlalchemy_is_given_several_hosts_as_it_can_read_them() -> None:
    url = Database("postgresql://a:p%40@one:5432,two:5433/b?sslmode=require").sqlalchemy_url

    _, keywords = make_url(url).get_dialect()().create_connect_args(make_url(url))
    assert keywords == {
        "host": "one,two",
        "port": "5432,5433",
        "user": "a",
        "password": "p@",
        "dbname": "b",
        "sslmode": "require",
        "target_session_attrs": "read-write",
    }


def test_another_kind_of_database_is_refused_without_repeating_the_url() -> None:
    with pytest.raises(ValueError, match="starts with postgresql://") as refused:
        Database("mysql://user:password@host/name")

    assert "password" not in str(refused.value)
