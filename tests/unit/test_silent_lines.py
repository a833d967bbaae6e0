"""Connections on which nothing moves are cut, on real sockets; all others are left alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from notifier.silent_lines import cut_silent, silent_for
from tests.running import until


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@contextmanager
def taken(server: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection to `server`: the caller's, the one who was called."""
    with socket.create_connection(server.getsockname(), 5) as caller:
        called, _ = server.accept()
        with called:
            called.settimeout(5)
            yield caller, called


@pytest.mark.parametrize("who_moves", ["caller", "called"])
def test_a_silent_connection_is_cut_and_one_on_which_something_moves_is_not(who_moves: str) -> None:
    silent_s = 0.3
    with listening() as server, taken(server) as (still, _), taken(server) as (caller, called):
        port = server.getsockname()[1]
        mover = caller if who_moves == "caller" else called

        def cut() -> int:
            mover.send(b"x")
            return cut_silent(port, silent_s)

        until(lambda: cut() == 1, 10, "the silent one to be cut")
        assert still.recv(1) == b""
        mover.send(b"y")
        assert (called if mover is caller else caller).recv(1)


def test_only_connections_that_were_taken_at_the_port_are_cut() -> None:
    with listening() as server, listening() as other, taken(other) as (caller, called):
        until(lambda: silent_for(called) > 0.05, 10, "it to be silent for a moment")
        assert cut_silent(server.getsockname()[1], 0.05) == 0
        called.send(b"x")
        assert caller.recv(1) == b"x"
        # Nor is a line of ours to somebody at a port of this number, nor the door itself.
        assert cut_silent(caller.getsockname()[1], 3600) == 0
        with taken(other) as (_, late):
            assert cut_silent(other.getsockname()[1], 3600) == 0
            late.send(b"x")
