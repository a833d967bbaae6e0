"""The search itself: whatever is planted on purpose is found, in every disguise."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from notifier.store.embedded import EmbeddedServer
from tests.leaks.canaries import Canaries
from tests.leaks.search import Haystack, files, find
from tests.leaks.stage import connect, dump

DISGUISES: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "other case": lambda text: text.swapcase(),
    "percent": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, one further": lambda text: base64.b64encode(f"x{text}".encode()).decode(),
    "base64, two further": lambda text: base64.urlsafe_b64encode(f"xy{text}?".encode()).decode(),
    "hex": lambda text: text.encode().hex().upper(),
    "SHA-256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "MD5": lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
    "JSON": lambda text: json.dumps({"to": text}),
    "UTF-16": lambda text: text.encode("utf-16-be").decode("latin-1"),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("what", ["address", "link", "token", "number", "name", "password"])
def test_a_planted_canary_is_found(what: str, disguise: str) -> None:
    canaries = Canaries()
    planted = {
        "address": canaries.address(), "link": canaries.link(), "token": canaries.token,
        "number": canaries.number, "name": canaries.name, "password": canaries.account_password,
    }[what]  # fmt: skip
    line = f"... {DISGUISES[disguise](planted)} ...".encode("latin-1")
    assert find(canaries.needles(), [Haystack("a line", line)])


def test_masks_and_keyed_fingerprints_are_no_finds() -> None:
    canaries = Canaries()
    kept = f"q\u2022\u2022\u2022@z\u2022\u2022\u2022.test {canaries.number[-4:]} "
    keyed = hashlib.sha256(b"key" + canaries.address().encode()).hexdigest()
    assert not find(canaries.needles(), [Haystack("a row", (kept + keyed).encode())])


def test_a_canary_in_a_row_is_found_in_the_files_of_the_database_and_in_its_dump(
    postgres: EmbeddedServer, database_url: str
) -> None:
    canaries = Canaries()
    with connect(database_url) as connection:
        connection.execute("CREATE TABLE planted (what text)")
        connection.execute("INSERT INTO planted VALUES (%s)", [canaries.address()])
        row = connection.execute("SELECT pg_relation_filepath('planted') AS path").fetchone()
    with connect(postgres.superuser_url) as connection:
        connection.execute("CHECKPOINT")
        found = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    assert found is not None
    data = Path(found["data_directory"])
    wanted = list(canaries.needles())
    assert find(wanted, [dump(postgres.bin_dir, database_url)])
    assert find(wanted, files((data / row["path"]).parent))
    assert find(wanted, files(data / "pg_wal"))


def test_a_canary_in_a_line_of_the_log_or_in_the_name_of_a_file_is_found(tmp_path: Path) -> None:
    canaries = Canaries()
    handler = logging.FileHandler(tmp_path / "app.log")
    handler.emit(logging.LogRecord("x", 20, "x", 1, "sent to %s", (canaries.address(),), None))
    handler.close()
    (tmp_path / f"core.{canaries.token}").touch()
    where = {each.where for each in find(canaries.needles(), files(tmp_path))}
    assert where == {"app.log", "a file's name"}


def test_what_a_server_logs_of_a_failed_statement_would_be_found(database_url: str) -> None:
    canaries = Canaries()
    with connect(database_url) as connection, pytest.raises(psycopg.Error) as failed:
        connection.execute("SELECT %s::text::integer", [canaries.address()])
    assert find(canaries.needles(), [Haystack("what it said", str(failed.value).encode())])
