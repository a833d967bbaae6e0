"""Wrong answers of HTTP providers, byte by byte, counted on the wire.

Whatever a peer does after the first byte of the request: one POST, one connection, and an
outcome that claims no more than was read. A maker joins by one line in `OK`.
"""

from __future__ import annotations

import itertools
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, Unknown, about_us
from notifier.domain.reasons import Detail, Reason
from peers.certificates import loopback_certificate
from tests.providers import http_sending as ways
from tests.providers.http_sending import Make, envelope_for, send
from tests.providers.scripted_api import Answer, api, reply
from tests.providers.scripted_smtp import RESET_ON_CLOSE, Do

QUICK = 0.25
OK = {
    ways.postmark: ways.POSTMARK_OK,
    ways.twilio: ways.TWILIO_OK,
    ways.resend: ways.RESEND_OK,
}
EACH = pytest.mark.parametrize("make", OK)
LOST = Unknown(Reason.CONNECTION_LOST)
LATE = Unknown(Reason.TIMEOUT)
GARBLED = Unknown(Reason.UNREADABLE_ANSWER)


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def chunked(body: bytes, size: int = 40) -> bytes:
    """A 200 whose body comes in chunks."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    coded = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\n\r\n"


def to_the_end(body: bytes) -> bytes:
    """A 200 whose body ends where the connection does."""
    return b"HTTP/1.1 200 X\r\n\r\n" + body


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "length": lambda body: reply(200, body),
    "chunked": chunked,
    "to the end": to_the_end,
}


@EACH
@pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET])
@pytest.mark.parametrize("form", FORMS)
def test_p3_an_answer_cut_at_any_byte_is_unknown_and_posted_once(
    make: Make, end: Do, form: str
) -> None:
    whole = FORMS[form](body_of(OK[make]))
    cuts = iter(range(len(whole)))
    with api(lambda _line: (whole[: next(cuts)], end)) as peer:
        found = [send(make(peer.url)) for _ in range(len(whole))]
    assert {each.kind for each in found} == {"unknown"}
    assert (peer.posts(), len(peer.requests), peer.connections) == (len(whole),) * 3


@EACH
@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_is_whole_counts_in_whatever_pieces_it_comes(make: Make, form: str) -> None:
    whole = FORMS[form](body_of(OK[make]))
    pieces = tuple(bytes([byte]) for byte in whole)
    with api((*pieces, Do.CLOSE)) as peer:
        assert isinstance(send(make(peer.url)), Accepted)
    assert (peer.posts(), peer.connections) == (1, 1)


@EACH
@pytest.mark.parametrize("share", [0, 1, 17, 50, 83, 99, 100])
@pytest.mark.parametrize("end", [Do.HANG, Do.DRIP])
def test_p3_an_answer_that_stalls_anywhere_is_unknown_when_its_time_is_up(
    make: Make, share: int, end: Do
) -> None:
    whole = OK[make]
    cut = whole[: (len(whole) - 1) * share // 100]
    dripping_into_the_body = end is Do.DRIP and b"\r\n\r\n" in cut
    with api((cut, end)) as peer:
        outcome = send(make(peer.url), budget_s=QUICK)
    # One that drips on comes to an end of its length, with a body that is no document.
    assert outcome == LATE or (dripping_into_the_body and outcome.kind == "unknown")
    assert (peer.posts(), len(peer.requests), peer.connections) == (1, 1, 1)


# --- the request, read in part


@dataclass
class Reader:
    """A peer that reads so many bytes of a request and then breaks off; counts connections."""

    bytes_read: int
    end: Do
    connections: int = 0
    heard: list[bytes] = field(default_factory=list)
    url: str = ""


@contextmanager
def reading(bytes_read: int, end: Do) -> Iterator[Reader]:
    peer = Reader(bytes_read, end)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            peer.connections += 1
            heard = b""
            with suppress(OSError):
                while len(heard) < peer.bytes_read:
                    data = self.request.recv(peer.bytes_read - len(heard))
                    if not data:
                        break
                    heard += data
            peer.heard.append(heard)
            if peer.end is Do.RESET:
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            with suppress(OSError):
                self.request.close()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        peer.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield peer
        server.shutdown()
        thread.join()


@EACH
@pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET])
@pytest.mark.parametrize("bytes_read", [1, 4, 5, 40, 100, 200, 400])
def test_p3_a_peer_that_breaks_off_after_some_bytes_of_the_request_leaves_it_unknown(
    make: Make, bytes_read: int, end: Do
) -> None:
    with reading(bytes_read, end) as peer:
        assert send(make(peer.url)) == LOST
    assert peer.connections == 1
    [heard] = peer.heard
    assert heard == b"POST /"[: len(heard)] + heard[6:]
    assert 0 < len(heard) <= bytes_read


# --- whole answers that are wrong


HUGE = b"x" * 400_000
WRONG: dict[str, tuple[Answer, Outcome]] = {
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", LOST),
    "http/0.9": (b"<html>fine</html>", LOST),
    "http/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", GARBLED),
    "a status of two digits": (b"HTTP/1.1 20 OK\r\n\r\n", GARBLED),
    "a status of four digits": (b"HTTP/1.1 2000 OK\r\n\r\n", GARBLED),
    "a negative length": (b"HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\n{}", GARBLED),
    "two lengths": (
        b"HTTP/1.1 200 X\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        GARBLED,
    ),
    "a length in words": (b"HTTP/1.1 200 X\r\nContent-Length: two\r\n\r\n{}", GARBLED),
    "a chunk without a size": (
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        GARBLED,
    ),
    "a coding that nobody asked for": (
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        GARBLED,
    ),
    "a header without a colon": (b"HTTP/1.1 200 X\r\nnonsense\r\n\r\n", GARBLED),
    "a nul in a header": (b"HTTP/1.1 200 X\r\nX-A: a\x00b\r\n\r\n", GARBLED),
    "a header of ages": (b"HTTP/1.1 200 X\r\nX-Long: " + HUGE + b"\r\n\r\n", GARBLED),
    "a body of ages": (b"HTTP/1.1 200 X\r\n\r\n" + HUGE, GARBLED),
    "one chunk of ages": (
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n61a80\r\n" + HUGE,
        GARBLED,
    ),
    "informed without an end": ((b"HTTP/1.1 103 Early\r\n\r\n" * 2000, Do.HANG), LATE),
    "informed and hung up": ((b"HTTP/1.1 102 Wait\r\n\r\n", Do.CLOSE), LOST),
    "another protocol agreed to": (
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", Do.HANG),
        GARBLED,
    ),
}


@EACH
@pytest.mark.parametrize("name", WRONG)
def test_p3_what_is_no_answer_of_http_is_unknown_and_posted_once(make: Make, name: str) -> None:
    answer, expected = WRONG[name]
    given = answer if isinstance(answer, tuple) else (answer, Do.CLOSE)
    with api(given) as peer:
        outcome = send(make(peer.url), budget_s=QUICK if expected == LATE else 5)
    assert outcome.kind == "unknown"
    assert (outcome, name) == (expected, name)
    assert (peer.posts(), len(peer.requests), peer.connections) == (1, 1, 1)


@EACH
@pytest.mark.parametrize("status", [102, 103, 199])
def test_an_answer_behind_many_informations_is_the_answer(make: Make, status: int) -> None:
    flood = b"HTTP/1.1 %d Soon\r\nX-A: b\r\n\r\n" % status * 500
    with api((flood, OK[make])) as peer:
        assert isinstance(send(make(peer.url)), Accepted)
    assert (peer.posts(), peer.connections) == (1, 1)


@EACH
@pytest.mark.parametrize("kind", ["text/html", "application/octet-stream", "", "a b; c"])
def test_what_an_answer_calls_itself_neither_makes_nor_unmakes_it(make: Make, kind: str) -> None:
    with api(reply(200, body_of(OK[make]), f"Content-Type: {kind}")) as peer:
        assert isinstance(send(make(peer.url)), Accepted)
    page = reply(200, b"<html>fine</html>", "Content-Type: application/json")
    with api(page) as peer:
        assert send(make(peer.url)) == Unknown(Reason.UNREADABLE_ANSWER, "http_200")
    assert (peer.posts(), peer.connections) == (1, 1)


@EACH
@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037"])
def test_p3_an_answer_in_another_charset_is_unknown(make: Make, charset: str) -> None:
    body = body_of(OK[make]).decode().encode(charset)
    named = f"Content-Type: application/json; charset={charset}"
    with api(reply(200, body, named)) as peer:
        assert send(make(peer.url)) == Unknown(Reason.UNREADABLE_ANSWER, "http_200")
    assert (peer.posts(), peer.connections) == (1, 1)


@EACH
def test_p3_a_second_answer_on_the_line_changes_nothing(make: Make) -> None:
    refusal = reply(422, {"ErrorCode": 406, "code": 21610, "Message": "no", "message": "no"})
    for first, second, kind in (
        (OK[make], refusal, "accepted"),
        (reply(502, b"<html>"), OK[make], "unknown"),
    ):
        with api((first + second, Do.CLOSE)) as peer:
            assert send(make(peer.url)).kind == kind
        assert (peer.posts(), peer.connections) == (1, 1)


SERVER_SAYS = (b"", b"<html>busy</html>", b'{"ErrorCode": 10}', b'{"code": 20003}')


@EACH
@pytest.mark.parametrize("when", ["LINE", "HEADERS", "MID_BODY", "BODY"])
def test_p3_an_error_of_a_server_is_unknown_before_the_request_was_read_as_well(
    make: Make, when: str
) -> None:
    for body in SERVER_SAYS:
        with api(OK[make], tls=None, **{when: reply(500, body)}) as peer:
            assert send(make(peer.url)) == Unknown(Reason.GATEWAY_ERROR, "http_500")
        assert (peer.posts(), peer.connections) == (1, 1)


@EACH
@pytest.mark.parametrize("status", [500, 501, 503, 599])
def test_p3_an_error_of_a_server_is_unknown_whatever_it_says(make: Make, status: int) -> None:
    for body in (*SERVER_SAYS, body_of(OK[make])):
        with api(reply(status, body)) as peer:
            assert send(make(peer.url)) == Unknown(Reason.GATEWAY_ERROR, f"http_{status}")
        assert (peer.posts(), len(peer.requests), peer.connections) == (1, 1, 1)


@EACH
@pytest.mark.parametrize("status", [301, 303, 308])
@pytest.mark.parametrize("to", ["/elsewhere", "//127.0.0.1:1/x", "https://{host}/", "", "\x01"])
def test_p3_no_redirect_is_followed_wherever_it_leads(make: Make, status: int, to: str) -> None:
    with api(OK[make]) as other:
        host = other.url.partition("//")[2]
        location = f"Location: {to.format(host=host)}"
        with api(reply(status, b"", location)) as peer:
            assert send(make(peer.url)).kind == "unknown"
    assert (peer.posts(), peer.connections, other.connections) == (1, 1, 0)


# --- before a byte of the request


BAD_CERTIFICATES = {
    "for another name": {"address": "127.0.0.9", "name": "other.example.test"},
    "that has expired": {"valid_s": -60},
}


@EACH
@pytest.mark.parametrize("fault", BAD_CERTIFICATES)
def test_a_certificate_that_is_not_good_stops_the_provider_before_a_byte(
    make: Make, fault: str
) -> None:
    bad = loopback_certificate(**BAD_CERTIFICATES[fault])  # type: ignore[arg-type]
    with api(OK[make], tls=bad.server()) as peer:
        outcome = make(peer.url, bad.client()).connect(3.0)
    assert outcome == about_us(Detail.PROVIDER_ERROR, "tls_certificate")
    assert (peer.posts(), peer.connections) == (0, 1)


@EACH
@pytest.mark.parametrize("end", [Do.CLOSE, Do.RESET])
@pytest.mark.parametrize(
    "said", [b"", b"\x16", b"\x16\x03\x03\x00\x7a\x02", b"\x15\x03\x03\x00\x02"]
)
def test_a_handshake_that_is_cut_is_not_accepted(make: Make, end: Do, said: bytes) -> None:
    with api(ACCEPT=(said, end) if said else end) as peer:
        sender = make(peer.url.replace("http:", "https:"), loopback_certificate().client())
        outcome = sender.connect(3.0)
    assert isinstance(outcome, NotAccepted)
    assert (peer.posts(), peer.connections) == (0, 1)


@EACH
def test_a_line_that_dies_while_it_is_idle_is_not_opened_again(make: Make) -> None:
    """The keep-alive race: the peer hangs up between connecting and the intent."""
    for end in (Do.CLOSE, Do.RESET):
        with api(OK[make], GREETED=end) as peer:
            sender = make(peer.url)
            line = sender.connect(3.0)
            assert peer.gone.wait(5)
            if not isinstance(line, NotAccepted):
                with closing(line):
                    assert line.send(envelope_for(sender)) == NotAccepted(Detail.UNREACHABLE)
        assert (peer.posts(), peer.connections) == (0, 1)


def test_every_form_of_a_whole_answer_is_cut_in_its_head_and_in_its_body() -> None:
    for form, whole in itertools.product(FORMS.values(), OK.values()):
        head, _, body = form(body_of(whole)).partition(b"\r\n\r\n")
        assert len(head) > 10
        assert len(body) > 40
