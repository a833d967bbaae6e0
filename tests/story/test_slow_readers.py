"""Whoever takes a file slowly holds up nobody else."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from notifier.accounts.permissions import Role
from notifier.assembly.application import REQUEST_CONNECTIONS
from notifier.store.database import Database
from notifier.store.ledger import exports
from notifier.web.people import downloads
from peers.events import build_event
from tests.bench.pages_visit import Reader, sign_in
from tests.running import RunningApp, Surroundings, until

PART = 256 * 1024
PARTS = 40
"""Ten megabytes, which no two socket buffers hold."""
SMALL_BUFFER = 16 * 1024


Auditors = Callable[[int], list[Reader]]


@dataclass(frozen=True)
class File:
    """A large export that is ready."""

    export_id: UUID
    digest: str

    @property
    def path(self) -> str:
        return f"/exports/{self.export_id}/file"


@pytest.fixture
def database(around: Surroundings) -> Iterator[Database]:
    with closing(Database(around.database_url, size=1)) as own:
        yield own


@pytest.fixture
def file(database: Database) -> File:
    values = {
        "export_id": uuid7(), "requested_by": "somebody", "role": "auditor", "request_id": "r",
        "reason": None, "what": "trail", "parameters": {}, "words": "everything",
        "format": "ndjson", "reader_zone": "UTC", "masked": [],
    }  # fmt: skip
    digest = hashlib.sha256()
    with database.connection() as connection:
        export = exports.begin(connection, values)
        for number in range(PARTS):
            body = f"{number:07d}\n".encode() * (PART // 8)
            digest.update(body)
            assert exports.add_part(connection, export, parts=number, body=body, rows=1, place=None)
        exports.finish(connection, export)
    return File(export.export_id, digest.hexdigest())


@pytest.fixture
def auditors(app: RunningApp, database: Database) -> Iterator[Auditors]:
    """So many people, signed in."""
    with ExitStack() as stack:

        def enter(number: int) -> list[Reader]:
            readers = [sign_in(app.base_url, database, Role.AUDITOR) for _ in range(number)]
            for reader in readers:
                stack.callback(reader.renew)
            return readers

        yield enter


def ask_slowly(stack: ExitStack, app: RunningApp, reader: Reader, file: File) -> socket.socket:
    """Ask for the file and take of the answer what fits into a small buffer."""
    line = stack.enter_context(socket.socket())
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
    line.settimeout(10)
    line.connect(("127.0.0.1", app.port))
    cookies = "; ".join(f"{name}={value}" for name, value in reader.cookies.items())
    head = f"GET {file.path} HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nCookie: {cookies}\r\n\r\n"
    line.sendall(head.encode())
    return line


def status_of(line: socket.socket) -> int:
    return int(line.recv(12).split()[1])


@contextmanager
def slow_readers(app: RunningApp, file: File, readers: list[Reader]) -> Iterator[list[int]]:
    """As many as may be at once; the statuses that they got."""
    with ExitStack() as stack:
        lines = [
            ask_slowly(stack, app, reader, file)
            for reader in readers
            for _ in range(downloads.EACH)
        ]
        yield [status_of(line) for line in lines]


def test_p2_admission_and_pages_answer_beside_more_slow_readers_than_connections(
    app: RunningApp, auditors: Auditors, file: File
) -> None:
    readers = auditors(downloads.IN_ALL // downloads.EACH)
    with slow_readers(app, file, readers) as statuses:
        assert len(statuses) > REQUEST_CONNECTIONS
        assert set(statuses) == {200}
        event = build_event(mode="email_only")
        app.admit(event)
        app.settled(event["event_id"])
        assert app.readiness()[0]
        assert readers[0].ask("GET", "/exports")[0] == 200


def test_a_file_that_is_taken_slowly_comes_whole(
    app: RunningApp, auditors: Auditors, file: File
) -> None:
    (reader,) = auditors(1)
    with ExitStack() as stack:
        line = ask_slowly(stack, app, reader, file)
        assert app.readiness()[0]
        head, _, begun = line.recv(PART).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        digest, left = hashlib.sha256(begun), PART * PARTS - len(begun)
        while left:
            piece = line.recv(PART)
            assert piece, f"{left} bytes are missing"
            digest.update(piece)
            left -= len(piece)
    assert digest.hexdigest() == file.digest


def test_nobody_takes_more_files_at_once_than_a_share_and_an_end_makes_room(
    app: RunningApp, auditors: Auditors, file: File
) -> None:
    first, second = auditors(2)
    with slow_readers(app, file, [first]) as statuses:
        assert set(statuses) == {200}
        status, page, _ = first.ask("GET", file.path)
        assert status == 429
        assert "Too many downloads at once" in page
        with ExitStack() as stack:
            assert status_of(ask_slowly(stack, app, second, file)) == 200
    until(lambda: first.ask("HEAD", file.path)[0] == 200, 10, "a place to be free again")
    for _ in range(downloads.EACH + 1):
        assert first.ask("GET", file.path)[0] == 200
