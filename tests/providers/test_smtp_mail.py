"""What the recipient gets, read back by an independent parser and an independent server."""

from __future__ import annotations

import email
import logging
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from notifier.domain.outcome import Accepted, Refused
from notifier.domain.reasons import Detail
from tests.providers.conftest import make_envelope
from tests.providers.scripted_smtp import Do, Step, scripted, text_lines
from tests.providers.smtp_sending import PASSWORD, QUICK, send, sender_to

LINK = "https://accounts.example.test/reset?token=planted-token-5519&x=1"
ADDRESS = "planted.person.7261@example.test"


def read(held: bytes) -> EmailMessage:
    mail = email.message_from_bytes(text_lines(held), policy=default)
    assert isinstance(mail, EmailMessage)
    return mail


def part(mail: EmailMessage, kind: str) -> str:
    found = mail.get_body((kind,))
    assert found is not None
    return str(found.get_content()).replace("\r\n", "\n")


class Kept(Message):
    """An aiosmtpd handler that keeps what came."""

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[email.message.Message] = []

    def handle_message(self, message: email.message.Message) -> None:
        self.mails.append(message)


@contextmanager
def independent_server() -> Iterator[tuple[int, Kept]]:
    kept = Kept()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(kept, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield port, kept
    finally:
        controller.stop()


def test_an_independent_server_takes_the_message_and_reads_what_we_wrote() -> None:
    text = f"Grüße\n\n{LINK}\n.\n..\n. dot\nFrom here\n"
    envelope = make_envelope(address=ADDRESS, subject="Passwort zurücksetzen", text=text)
    with independent_server() as (port, kept):
        outcome = send(sender_to(port), envelope)
    assert isinstance(outcome, Accepted)
    (mail,) = kept.mails
    assert mail["X-RcptTo"] == ADDRESS
    assert mail["X-MailFrom"] == "noreply@reset.example"
    assert mail["Message-ID"] == outcome.provider_message_id
    plain = mail.get_payload(0)
    assert isinstance(plain, email.message.Message)
    content = plain.get_payload(decode=True)
    assert isinstance(content, bytes)
    assert content.decode().replace("\r\n", "\n") == text


def test_the_headers_name_us_and_ask_for_no_automatic_answer() -> None:
    with scripted() as peer:
        send(sender_to(peer.port), make_envelope(address=ADDRESS, subject="Zurücksetzen ✓"))
    mail = read(peer.held[0])
    assert (mail["From"], mail["To"]) == ("noreply@reset.example", ADDRESS)
    assert mail["Subject"] == "Zurücksetzen ✓"
    assert mail["Message-ID"] == "<ref7Kx2.notice@reset.example>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "OOF" in mail["X-Auto-Response-Suppress"]
    assert mail["Date"].datetime.tzinfo is not None
    assert mail.get_content_type() == "multipart/alternative"
    assert [each.get_content_type() for each in mail.iter_parts()] == ["text/plain", "text/html"]


def test_a_text_without_html_is_a_plain_message() -> None:
    with scripted() as peer:
        send(sender_to(peer.port), make_envelope(html=None))
    assert read(peer.held[0]).get_content_type() == "text/plain"


@settings(max_examples=30)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.just("\n")))
def test_any_text_arrives_as_it_was_written_in_short_ascii_lines(text: str) -> None:
    written = f".{text}\n.\n{LINK}\n"
    with scripted() as peer:
        outcome = send(sender_to(peer.port), make_envelope(text=written))
    assert isinstance(outcome, Accepted)
    (held,) = peer.held
    assert held.isascii()
    assert max(map(len, text_lines(held).split(b"\r\n"))) <= 76
    assert b"\n" not in held.replace(b"\r\n", b"")
    assert part(read(held), "plain").splitlines() == written.splitlines()


@pytest.mark.parametrize(
    "envelope",
    [
        make_envelope(address="a@example.test>\r\nRCPT TO:<b@example.test"),
        make_envelope(address="a@example.test\r\nBcc: b@example.test"),
        make_envelope(address="a@example.test\n"),
        make_envelope(address="a b@example.test"),
        make_envelope(address="jörg@example.test"),
        make_envelope(subject="Reset\r\nBcc: b@example.test"),
        make_envelope(subject="Reset\nBcc: b@example.test"),
        make_envelope(reference="r>\r\nBcc: b"),
        make_envelope(text="lone \ud800 surrogate\n"),
    ],
)
def test_nothing_that_could_split_a_header_or_a_command_goes_out(envelope: object) -> None:
    with scripted() as peer:
        outcome = send(sender_to(peer.port), envelope)  # type: ignore[arg-type]
    assert outcome == Refused(Detail.CONTENT_REJECTED, "unbuildable")
    assert peer.verbs() == ["EHLO", "QUIT"]


@pytest.mark.parametrize(
    "address",
    [
        "a+reset@example.test",
        '"john doe"@example.test',
        "o'neill&sons@example.test",
        f"{'l' * 64}@{'.'.join(['d' * 60] * 3)}.test",
    ],
)
def test_an_odd_but_valid_address_goes_out_as_given(address: str) -> None:
    with scripted() as peer:
        assert isinstance(send(sender_to(peer.port), make_envelope(address=address)), Accepted)
    assert peer.commands[2] == f"RCPT TO:<{address}>"
    assert read(peer.held[0])["To"] == address


def test_p7_a_server_that_can_is_told_not_to_quote_the_link_in_a_bounce() -> None:
    with scripted(EHLO=b"250-peer\r\n250 DSN\r\n") as peer:
        send(sender_to(peer.port), make_envelope())
    assert peer.commands[1] == "MAIL FROM:<noreply@reset.example> RET=HDRS ENVID=ref7Kx2"


@pytest.mark.parametrize("phase", ["BANNER", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "END"])
@pytest.mark.parametrize("kind", ["4", "5", "garbage", "hang"])
def test_p7_no_outcome_log_or_representation_holds_a_secret(
    phase: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    planted = f"{ADDRESS} {LINK} {PASSWORD}"
    says = {"4": f"450 4.2.1 {planted}\r\n", "5": f"550 5.1.1 {planted}\r\n"}
    step = Do.HANG if kind == "hang" else says.get(kind, f"{planted}\r\n").encode()
    script: dict[str, Step] = {"EHLO": b"250-peer\r\n250 AUTH PLAIN\r\n", phase: step}
    envelope = make_envelope(address=ADDRESS, text=LINK, html=LINK)
    with scripted(script) as peer:
        sender = sender_to(
            peer.port, user=ADDRESS, call_timeout_s=QUICK, final_reply_timeout_s=QUICK
        )
        line = sender.connect(2)
        outcome = line if not hasattr(line, "send") else line.send(envelope)
        shown = f"{outcome!r} {outcome} {sender!r} {line!r} {envelope!r} {caplog.text}"
        shown += traceback.format_exc()
        if hasattr(line, "close"):
            line.close()
    assert outcome.kind != "accepted"
    for secret in ("planted", "5519", "7261", "81723"):
        assert secret not in shown
