"""What lies in an embedded Postgres: the cluster, its settings, its roles, its addresses."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from notifier.store.embedded_ground import EmbeddedPostgresError, Ground, share_ownership

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLE = DATABASE = "notifier"
SUPERUSER = "postgres"
START_LIMIT_S = 60.0
LOOK_AGAIN_S = 0.05

SETTINGS = {
    "shared_buffers": "128MB",
    "max_connections": "100",
    "autovacuum_naptime": "10s",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_checkpoints": "off",
    # Details of an error can quote a whole row; rows hold masks and fingerprints.
    "log_error_verbosity": "terse",
    "log_parameter_max_length_on_error": "0",
}


def make_cluster(ground: Ground, *, durable: bool) -> None:
    """Run initdb beside the final place and move it there, so that half a cluster never counts."""
    for left in ground.server.glob("data.new-*"):
        shutil.rmtree(left)
    passwords = {role: secrets.token_urlsafe(24) for role in (SUPERUSER, ROLE)}
    write_private(
        ground.passwords, "".join(f"*:*:*:{role}:{word}\n" for role, word in passwords.items())
    )
    share_ownership(ground.passwords, ground.home)
    new = ground.server / f"data.new-{secrets.token_hex(4)}"
    first_password = ground.server / "first-password"
    write_private(first_password, passwords[SUPERUSER])
    os.chown(first_password, ground.user.uid, ground.user.gid)
    done = ground.user.run(
        ground.bin_dir / "initdb",
        "-D",
        new,
        "-U",
        SUPERUSER,
        "--auth=scram-sha-256",
        f"--pwfile={first_password}",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
        *([] if durable else ["--no-sync"]),
    )
    first_password.unlink()
    if done.returncode != 0:
        raise EmbeddedPostgresError(f"initdb failed: {done.stderr.strip()}")
    new.rename(ground.data)


def check_version(ground: Ground) -> None:
    """Refuse a folder that another major version of Postgres wrote."""
    found = (ground.data / "PG_VERSION").read_text().strip()
    says = ground.user.run(ground.bin_dir / "postgres", "--version").stdout.split()
    ours = says[-1].partition(".")[0] if says else ""
    if found != ours:
        raise EmbeddedPostgresError(
            f"{ground.data} was written by PostgreSQL {found}, this is PostgreSQL {ours}; "
            "move the data with pg_dump of the old version"
        )


def write_settings(path: Path, settings: Mapping[str, str]) -> None:
    """Write the server's whole configuration, every value quoted."""
    quoted = {name: value.replace("'", "''") for name, value in settings.items()}
    path.write_text("".join(f"{name} = '{value}'\n" for name, value in quoted.items()))


def make_database(ground: Ground, port: int) -> None:
    """The role and the database of the product, where they are missing. Waits for recovery."""
    with connect_patiently(server_url(ground, port, SUPERUSER, "postgres")) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone():
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                    sql.Identifier(ROLE), sql.Literal(password_of(ground, ROLE))
                )
            )
        if not connection.execute(
            "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
        ).fetchone():
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(
                    sql.Identifier(DATABASE), sql.Identifier(ROLE)
                )
            )


def connect_patiently(url: str) -> psycopg.Connection:
    """Connect, waiting while the server still recovers."""
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            return psycopg.connect(url, autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as error:
            if "starting up" not in str(error) or time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"the running Postgres refuses us: {error}") from error
        time.sleep(LOOK_AGAIN_S)


def password_of(ground: Ground, role: str) -> str:
    """The role's password, from the password file."""
    for line in ground.passwords.read_text().splitlines():
        *_, name, word = line.split(":")
        if name == role:
            return word
    raise EmbeddedPostgresError(f"{ground.passwords} has no line for {role}")


def server_url(ground: Ground, port: int, role: str, database: str) -> str:
    """A URL over the socket; the password stays in its file."""
    where = {"host": ground.sockets, "port": port, "passfile": ground.passwords}
    return f"postgresql://{quote(role)}@/{quote(database)}?{urlencode(where, quote_via=quote)}"


def tcp_url(ground: Ground, port: int) -> str:
    """A URL over loopback; the password stays in its file."""
    where = urlencode({"passfile": ground.passwords}, quote_via=quote)
    return f"postgresql://{ROLE}@127.0.0.1:{port}/{DATABASE}?{where}"


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read, whatever the umask."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
