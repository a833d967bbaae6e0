"""Who may use the embedded server, and what it says where it cannot run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from notifier.store import embedded_ground
from notifier.store.embedded import EmbeddedPostgresError, EmbeddedServer, ensure_running
from tests.db.embedded_ground import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedServer]:
    monkeypatch.setenv("NOTIFIER_SECRET_KEY", "planted-secret")
    running = ensure_running(tmp_path, settings={"fsync": "off"})
    yield running
    running.stop()


def test_p7_no_url_holds_a_password_and_the_file_that_does_is_private(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    passwords = tmp_path / "postgres" / "passwords"
    words = [line.split(":")[-1] for line in passwords.read_text().splitlines()]

    assert len(words) == 2
    assert not any(word in server.url + server.superuser_url for word in words)
    assert passwords.stat().st_mode & 0o777 == 0o600


def test_p7_none_of_our_settings_reach_the_server_process(server: EmbeddedServer) -> None:
    environment = Path(f"/proc/{server.pid}/environ").read_bytes()

    assert b"planted-secret" not in environment


def test_nobody_gets_in_without_the_password(server: EmbeddedServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(server.url, passfile=os.devnull)


def test_the_product_owns_its_database_and_nothing_more(server: EmbeddedServer) -> None:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, datdba = pg_roles.oid "
            "FROM pg_roles, pg_database "
            "WHERE rolname = current_user AND datname = current_database()"
        ).fetchone()

    assert row is not None
    assert row[:5] == (False, False, False, False, True)


def test_no_network_socket_is_opened(server: EmbeddedServer) -> None:
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_a_folder_of_another_version_is_left_alone(server: EmbeddedServer, tmp_path: Path) -> None:
    server.stop()
    (tmp_path / "postgres" / "server" / "data" / "PG_VERSION").write_text("14\n")

    with pytest.raises(EmbeddedPostgresError, match="written by PostgreSQL 14"):
        ensure_running(tmp_path)


def test_a_missing_wheel_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(EmbeddedPostgresError, match=r"make setup.*NOTIFIER_DATABASE_URL"):
        ensure_running(tmp_path)


def test_another_platform_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(EmbeddedPostgresError, match=r"runs on Linux.*NOTIFIER_DATABASE_URL"):
        ensure_running(tmp_path)


def test_a_user_who_reaches_nothing_is_told_where_the_project_may_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr(embedded_ground, "wheel_binaries", lambda: tmp_path / "nowhere")

    with pytest.raises(EmbeddedPostgresError, match="cannot reach"):
        ensure_running(tmp_path / "var")


def test_a_folder_of_somebody_else_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY - 1)

    with pytest.raises(EmbeddedPostgresError, match=f"this process runs as uid {NOBODY - 1}"):
        ensure_running(tmp_path)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="shared_buffers"):
        ensure_running(tmp_path, settings={"shared_buffers": "a lot"})
