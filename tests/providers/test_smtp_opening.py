"""Encryption and signing in, all of it before the intent is committed."""

from __future__ import annotations

import base64

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, ProviderPause
from notifier.domain.reasons import Detail
from notifier.domain.values import Secret
from notifier.ports.sending import Envelope
from notifier.providers.probing import Probed
from notifier.providers.smtp import SmtpAccount, probe
from peers.certificates import Certificate, loopback_certificate
from tests.providers.scripted_smtp import Do, Step, scripted
from tests.providers.smtp_sending import PASSWORD, QUICK, opened, send, sender_to

OFFERS_TLS = b"250-peer\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN\r\n"
OFFERS_LOGIN = b"250-peer\r\n250 AUTH=LOGIN CRAM-MD5\r\n"
OFFERS_PLAIN = b"250-peer\r\n250 AUTH CRAM-MD5 PLAIN\r\n"


def about_us(detail: Detail, code: str) -> NotAccepted:
    return NotAccepted(detail, code, ProviderPause(detail))


def test_starttls_encrypts_before_the_credentials_and_the_message(
    certificate: Certificate, envelope: Envelope
) -> None:
    with scripted(tls=certificate.server(), EHLO=OFFERS_TLS) as peer:
        sender = sender_to(peer.port, tls="starttls", context=certificate.client(), user="me")
        outcome = send(sender, envelope)
    assert isinstance(outcome, Accepted)
    assert peer.verbs() == ["EHLO", "STARTTLS", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "QUIT"]
    assert len(peer.held) == 1


def test_implicit_tls_encrypts_from_the_first_byte(
    certificate: Certificate, envelope: Envelope
) -> None:
    with scripted(tls=certificate.server(), tls_at_once=True) as peer:
        sender = sender_to(peer.port, tls="implicit", context=certificate.client())
        assert isinstance(send(sender, envelope), Accepted)
    assert len(peer.held) == 1


@pytest.mark.parametrize("step", [Do.HANG, Do.DRIP, Do.RESET])
def test_p3_no_answer_after_the_dot_is_unknown_under_tls_too(
    step: Step, certificate: Certificate, envelope: Envelope
) -> None:
    with scripted(tls=certificate.server(), tls_at_once=True, END=step) as peer:
        sender = sender_to(
            peer.port,
            tls="implicit",
            context=certificate.client(),
            final_reply_timeout_s=QUICK,
        )
        outcome = send(sender, envelope)
        assert peer.gone.wait(5)
    assert outcome.kind == "unknown"
    assert (peer.connections, len(peer.held)) == (1, 1)


def test_a_server_without_starttls_gets_no_message_in_clear(certificate: Certificate) -> None:
    with scripted(tls=certificate.server()) as peer:
        sender = sender_to(peer.port, tls="starttls", context=certificate.client(), user="me")
        assert sender.connect(2) == about_us(Detail.PROVIDER_ERROR, "tls_missing")
    assert peer.verbs() == ["EHLO", "QUIT"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"454 4.3.0 not now\r\n", NotAccepted(Detail.PROVIDER_ERROR, "454 4.3.0")),
        (b"502 5.5.1 no\r\n", about_us(Detail.PROVIDER_ERROR, "502 5.5.1")),
        (b"220 go\r\n250 injected in clear\r\n", NotAccepted(Detail.PROVIDER_ERROR)),
        (Do.HANG, NotAccepted(Detail.TIMEOUT)),
        (Do.CLOSE, NotAccepted(Detail.UNREACHABLE)),
    ],
)
def test_a_starttls_that_does_not_come_about_is_not_accepted(
    answer: Step, outcome: NotAccepted, certificate: Certificate
) -> None:
    with scripted(tls=certificate.server(), EHLO=OFFERS_TLS, STARTTLS=answer) as peer:
        sender = sender_to(
            peer.port, tls="starttls", context=certificate.client(), call_timeout_s=QUICK
        )
        assert sender.connect(2) == outcome
        assert peer.gone.wait(5)
    assert "AUTH" not in peer.verbs()


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_a_certificate_of_somebody_else_stops_everything(
    tls: str, certificate: Certificate
) -> None:
    stranger = loopback_certificate()
    with scripted(tls=stranger.server(), tls_at_once=tls == "implicit", EHLO=OFFERS_TLS) as peer:
        sender = sender_to(peer.port, tls=tls, context=certificate.client(), user="me")
        assert sender.connect(2) == about_us(Detail.PROVIDER_ERROR, "tls_certificate")
    assert "AUTH" not in peer.verbs()


def test_a_certificate_for_another_name_stops_everything(certificate: Certificate) -> None:
    with scripted(tls=certificate.server(), tls_at_once=True, host="127.0.0.2") as peer:
        sender = sender_to(
            peer.port, tls="implicit", context=certificate.client(), host="127.0.0.2"
        )
        assert sender.connect(2) == about_us(Detail.PROVIDER_ERROR, "tls_certificate")


def test_a_server_that_speaks_no_tls_where_tls_is_due_is_not_accepted(
    certificate: Certificate,
) -> None:
    with scripted() as peer:
        sender = sender_to(peer.port, tls="implicit", context=certificate.client())
        assert sender.connect(2) == about_us(Detail.PROVIDER_ERROR, "tls_failed")


def test_credentials_go_out_by_plain_where_it_is_offered() -> None:
    with scripted(EHLO=OFFERS_PLAIN) as peer:
        opened(sender_to(peer.port, user="me")).close()
    given = base64.b64decode(peer.commands[1].removeprefix("AUTH PLAIN "))
    assert given == f"\0me\0{PASSWORD}".encode()


def test_credentials_go_out_by_login_where_that_is_all_there_is() -> None:
    with scripted(EHLO=OFFERS_LOGIN, AUTH=b"334 VXNlcm5hbWU6\r\n") as peer:
        outcome = sender_to(peer.port, user="me").connect(2)
    assert [base64.b64decode(each).decode() for each in peer.commands[2:4]] == ["me", PASSWORD]
    assert outcome == NotAccepted(Detail.PROVIDER_ERROR, "334")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"535 5.7.8 wrong\r\n", about_us(Detail.AUTH_ERROR, "535 5.7.8")),
        (b"535 wrong\r\n", about_us(Detail.AUTH_ERROR, "535")),
        (b"504 5.5.4 mechanism\r\n", about_us(Detail.AUTH_ERROR, "504 5.5.4")),
        (b"454 4.7.0 not now\r\n", NotAccepted(Detail.PROVIDER_ERROR, "454 4.7.0")),
        (b"421 4.7.0 too often\r\n", NotAccepted(Detail.RATE_LIMITED, "421 4.7.0")),
        (Do.HANG, NotAccepted(Detail.TIMEOUT)),
        (Do.RESET, NotAccepted(Detail.UNREACHABLE)),
        (b"welcome\r\n", NotAccepted(Detail.PROVIDER_ERROR)),
    ],
)
def test_a_refused_sign_in_is_not_accepted(answer: Step, outcome: NotAccepted) -> None:
    with scripted(EHLO=OFFERS_PLAIN, AUTH=answer) as peer:
        assert sender_to(peer.port, user="me", call_timeout_s=QUICK).connect(2) == outcome
    assert peer.held == []


def test_a_server_that_takes_no_credentials_is_not_used_without_them() -> None:
    with scripted() as peer:
        outcome = sender_to(peer.port, user="me").connect(2)
    assert outcome == about_us(Detail.AUTH_ERROR, "auth_missing")


def test_a_name_is_looked_up_and_connected_to(envelope: Envelope) -> None:
    with scripted() as peer:
        assert isinstance(send(sender_to(peer.port, host="localhost"), envelope), Accepted)


def test_an_account_without_encryption_is_for_loopback_alone() -> None:
    with pytest.raises(ValueError, match="only for loopback"):
        SmtpAccount("mail.example.test", 25, "plain")
    with pytest.raises(ValueError, match="both a user and a password"):
        SmtpAccount("127.0.0.1", 25, "plain", user="me")
    assert "me" not in repr(SmtpAccount("127.0.0.1", 25, "plain", "me", Secret("x"))).split("(")[1]


def test_the_probe_signs_in_and_sends_nothing() -> None:
    with scripted(EHLO=OFFERS_PLAIN) as peer:
        assert probe(sender_to(peer.port, user="me"), 2) == Probed(ok=True, what="signed in")
        assert peer.gone.wait(5)
    assert peer.verbs() == ["EHLO", "AUTH", "QUIT"]


def test_the_probe_says_shortly_what_is_wrong() -> None:
    with scripted(EHLO=OFFERS_PLAIN, AUTH=b"535 5.7.8 no, me\r\n") as peer:
        found = probe(sender_to(peer.port, user="me"), 2)
    assert found == Probed(ok=False, what="auth_error 535 5.7.8")
