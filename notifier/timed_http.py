"""HTTP with one time limit for all of a request: look-up, connect, TLS, send, every read.

Built on the connections under httpx2 rather than on its client: they take a network stream,
which is the one place where a limit for the sum can be kept, and they have no redirects,
cookies, environment proxies or decompression that would have to be switched off.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpcore2

from notifier.domain.values import Unserialised
from notifier.timed_sockets import Deadline, open_tcp

# At DEBUG the library logs what peers say, word for word: they may repeat what they were sent.
logging.getLogger("httpcore2").setLevel(logging.WARNING)

MAX_CONNECTIONS: Final = 64
KEEP_ALIVE_S: Final = 15.0


class HttpTroubleError(Exception):
    """No whole answer came. `what` is a short code; nothing of the exchange is in it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class _TlsFailedError(httpcore2.ConnectError):
    """The peer was reached, and no encrypted line that can be trusted came about."""


class MethodRefusedError(Exception):
    """A client was asked for a method that it does not make requests with."""


@dataclass(frozen=True, slots=True, repr=False)
class HttpAnswer(Unserialised):
    """A status, a whole, uncompressed body, and the headers by small-letter name."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class TimedHttp:
    """A pool of kept-alive connections, shared by threads.

    Makes each request once, follows nothing, and refuses every method but its own.
    """

    def __init__(self, tls_context: ssl.SSLContext, method: str) -> None:
        self._method = method
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls_context,
            max_connections=MAX_CONNECTIONS,
            keepalive_expiry=KEEP_ALIVE_S,
            retries=0,
            network_backend=_TimedBackend(),
        )

    def request(
        self,
        method: str,
        url: httpcore2.URL,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        limit_s: float,
        max_bytes: int,
    ) -> HttpAnswer:
        """Ask once. Raises HttpTroubleError for everything but a whole answer.

        MethodRefusedError, before anything else, for a method that is not this client's.
        """
        if method != self._method:
            raise MethodRefusedError(self._method)
        waits = {"timeout": {"pool": limit_s}}
        with (
            bounded_by(Deadline.after(limit_s)),
            self._pool.stream(
                method,
                url,
                headers=list(headers.items()),
                content=body or None,
                extensions=waits,
            ) as answer,
        ):
            return read_whole(answer, max_bytes)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()


def read_whole(answer: httpcore2.Response, max_bytes: int) -> HttpAnswer:
    """The answer with its whole body; HttpTroubleError where it is encoded or too large."""
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers
    }
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpTroubleError(what="encoded")
    body = bytearray()
    for chunk in answer.iter_stream():
        body += chunk
        if len(body) > max_bytes:
            raise HttpTroubleError(what="too_large")
    return HttpAnswer(answer.status, bytes(body), headers)


class _Current(threading.local):
    """The deadline of the request that this thread is making."""

    deadline: Deadline = Deadline(0)


_current = _Current()


@contextmanager
def bounded_by(deadline: Deadline) -> Iterator[None]:
    """Hold every timed stream that this thread uses to `deadline`, and reduce what it raises.

    Only HttpTroubleError comes out of it, with `timeout`, `no_connection`, `tls_failed`,
    `connection_lost` or `not_http` for what the library raised.
    """
    _current.deadline = deadline
    try:
        yield
    except (httpcore2.TimeoutException, TimeoutError):
        what = "timeout"
    except _TlsFailedError:
        what = "tls_failed"
    except httpcore2.ConnectError:
        what = "no_connection"
    except httpcore2.NetworkError:
        what = "connection_lost"
    except httpcore2.ProtocolError:
        what = "not_http"
    else:
        return
    finally:
        _current.deadline = Deadline(0)
    raise HttpTroubleError(what)


class _TimedBackend(httpcore2.NetworkBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline rules, here and below
        local_address: str | None = None,  # noqa: ARG002 - the base class's signature
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        with _told_as(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            return TimedStream(open_tcp(host, port, _current.deadline))


class TimedStream(httpcore2.NetworkStream):
    """A socket whose every operation gets only what is left of the whole.

    `has_written`: the system took at least one byte. `has_ended`: the peer hung up.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.has_written = False
        self.has_ended = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        """What has come, empty where the peer hung up."""
        with _told_as(httpcore2.ReadTimeout, httpcore2.ReadError):
            self._sock.settimeout(_current.deadline.left())
            data = self._sock.recv(max_bytes)
        self.has_ended = not data
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Hand all of `buffer` to the system."""
        rest = memoryview(buffer)
        with _told_as(httpcore2.WriteTimeout, httpcore2.WriteError):
            while rest:
                self._sock.settimeout(_current.deadline.left())
                rest = rest[self._sock.send(rest) :]
                self.has_written = True

    def close(self) -> None:
        """Hang up."""
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        """The same socket, encrypted; closed where that fails."""
        with _told_as(httpcore2.ConnectTimeout, _TlsFailedError):
            try:
                self._sock.settimeout(_current.deadline.left())
                return TimedStream(
                    ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
                )
            except OSError:
                self._sock.close()
                raise

    def get_extra_info(self, info: str) -> Any:
        """Only what the pool asks: whether an idle connection has been hung up on."""
        return self._has_input() if info == "is_readable" else None

    def is_quiet(self) -> bool:
        """Whether the peer has neither hung up nor spoken; takes what TLS itself had to say."""
        try:
            self._sock.settimeout(0)
            self._sock.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def _has_input(self) -> bool:
        if self._sock.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))


@contextmanager
def _told_as(slow: type[Exception], broken: type[Exception]) -> Iterator[None]:
    """Turn the socket's errors into the pool's, without their texts."""
    try:
        yield
    except TimeoutError:
        raise slow from None
    except OSError:
        raise broken from None
