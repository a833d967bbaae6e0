"""The relay between two processes passes on, refuses, and cuts."""

from __future__ import annotations

import http.client
import socket

import pytest

from peers.web import Manner, Reply, Request, WebServer
from tests.chaos_run.relay import Relay
from tests.ports import port_to_bind


def hello(_: Request) -> Reply:
    return Reply(200, b"hello")


def hang(_: Request) -> Reply:
    return Reply(manner=Manner.HANG)


def ask(port: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/hello")
        return connection.getresponse().read()
    finally:
        connection.close()


def test_it_passes_on_to_whoever_takes_it() -> None:
    web = WebServer({("GET", "/hello"): hello})
    web.start()
    backend = int(web.url.rpartition(":")[2])
    with Relay([port_to_bind(), backend]) as relay:
        assert [ask(relay.port) for _ in range(4)] == [b"hello"] * 4
    web.close()


def test_it_refuses_while_it_is_down_and_not_afterwards() -> None:
    web = WebServer({("GET", "/hello"): hello})
    web.start()
    with Relay([int(web.url.rpartition(":")[2])]) as relay:
        relay.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", relay.port), 10)
        relay.reopen()
        assert ask(relay.port) == b"hello"
    web.close()


def test_a_cut_resets_what_is_open() -> None:
    web = WebServer({("GET", "/hang"): hang, ("GET", "/hello"): hello})
    web.start()
    with (
        Relay([int(web.url.rpartition(":")[2])]) as relay,
        socket.create_connection(("127.0.0.1", relay.port), 10) as line,
    ):
        line.sendall(b"GET /hang HTTP/1.1\r\nhost: x\r\n\r\n")
        assert ask(relay.port) == b"hello"
        assert relay.cut()
        with pytest.raises(ConnectionResetError):
            line.recv(1)
    web.close()
