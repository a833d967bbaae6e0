"""The inbox speaks SMTP as an independent client understands it, and follows its fates."""

from __future__ import annotations

import smtplib
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from urllib.request import urlopen

import pytest

from peers.certificates import loopback_certificate
from peers.testing import InboxHandle, running_inbox

SENDER = "no-reply@example.test"


def a_mail(recipient: str, reference: str = "ref-1") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = SENDER, recipient, "Reset <your> password"
    message["Message-ID"] = f"<{reference}.notice@notices.example.test>"
    message.set_content("Open the link.\n.A line with a dot before it.\n")
    message.add_alternative("<p>Open the <b>link</b>.</p>", subtype="html")
    return message


def send(inbox: InboxHandle, recipient: str, timeout: float = 5.0) -> None:
    with smtplib.SMTP("127.0.0.1", inbox.smtp_port, timeout=timeout) as client:
        client.send_message(a_mail(recipient))


@pytest.fixture
def inbox() -> Iterator[InboxHandle]:
    with running_inbox() as running:
        yield running


def stored(inbox: InboxHandle, recipient: str) -> int:
    return len(inbox.journal(phase="stored", recipient=recipient))


def test_a_mail_arrives_whole_and_is_journaled_with_its_reference(inbox: InboxHandle) -> None:
    send(inbox, "ada@example.test")
    [entry] = inbox.journal(phase="stored")
    [final] = inbox.wait_for(phase="final")
    [mail] = inbox.messages("ada@example.test")
    assert entry["message_id"] == "ref-1.notice@notices.example.test"
    assert (entry["reference"], final["accepted"]) == ("ref-1", True)
    assert mail["text"] == "Open the link.\n.A line with a dot before it.\n"
    assert mail["html"] == "<p>Open the <b>link</b>.</p>\n"


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        ("refuse-rcpt", 550),
        ("blocked", 554),
        ("mailbox-full", 452),
        ("quota-exceeded", 552),
        ("rate-limited", 450),
        ("sender-rejected", 550),
    ],
)
def test_a_refused_recipient_is_told_why_and_nothing_is_kept(
    inbox: InboxHandle, fate: str, code: int
) -> None:
    recipient = f"{fate}+1@example.test"
    with pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        send(inbox, recipient)
    assert caught.value.recipients[recipient][0] == code
    assert inbox.journal(phase="stored") == []


@pytest.mark.parametrize(("fate", "code"), [("refuse-content", 554), ("busy-after-dot", 451)])
def test_a_message_refused_after_the_dot_is_not_kept(
    inbox: InboxHandle, fate: str, code: int
) -> None:
    with pytest.raises(smtplib.SMTPDataError) as caught:
        send(inbox, f"{fate}@example.test")
    assert caught.value.smtp_code == code
    assert inbox.journal(phase="stored") == []
    assert inbox.wait_for(phase="final")[0]["accepted"] is False


def test_a_greylisted_recipient_is_taken_the_second_time(inbox: InboxHandle) -> None:
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        send(inbox, "greylist+7@example.test")
    send(inbox, "greylist+7@example.test")
    assert stored(inbox, "greylist+7@example.test") == 1


@pytest.mark.parametrize("fate", ["drop-after-dot", "reset-after-dot", "hang-after-dot"])
def test_silence_after_the_dot_leaves_a_message_that_did_arrive(
    inbox: InboxHandle, fate: str
) -> None:
    with pytest.raises(smtplib.SMTPServerDisconnected):
        send(inbox, f"{fate}+1@example.test", timeout=0.3)
    assert stored(inbox, f"{fate}+1@example.test") == 1
    assert inbox.wait_for(phase="final")[0]["accepted"] is None


def test_garbage_after_the_dot_is_no_reply_and_the_message_did_arrive(inbox: InboxHandle) -> None:
    with pytest.raises(smtplib.SMTPDataError) as caught:
        send(inbox, "garbage-after-dot@example.test")
    assert caught.value.smtp_code == -1
    assert stored(inbox, "garbage-after-dot@example.test") == 1


@pytest.mark.parametrize("fate", ["lost-after-dot", "drop-at-rcpt", "drop-at-data", "drop-in-body"])
def test_a_connection_lost_before_the_message_was_kept_leaves_none(
    inbox: InboxHandle, fate: str
) -> None:
    with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionError)):
        send(inbox, f"{fate}@example.test")
    assert inbox.journal(phase="stored") == []


@pytest.mark.parametrize(("fate", "kept"), [("hold", 1), ("hold-at-rcpt", 0), ("hold-at-data", 0)])
def test_a_held_client_stands_still_until_it_is_released(
    inbox: InboxHandle, fate: str, kept: int
) -> None:
    recipient = f"{fate}@example.test"
    client = threading.Thread(target=send, args=(inbox, recipient))
    client.start()
    [entry] = inbox.wait_for(phase="held")
    assert stored(inbox, recipient) == kept
    assert [held["id"] for held in inbox.held()] == [entry["id"]]
    assert inbox.release() == 1
    client.join(5)
    assert stored(inbox, recipient) == 1
    assert inbox.held() == []


def test_a_held_client_can_be_cut_instead(inbox: InboxHandle) -> None:
    caught: list[Exception] = []

    def try_to_send() -> None:
        try:
            send(inbox, "hold@example.test")
        except smtplib.SMTPServerDisconnected as error:
            caught.append(error)

    client = threading.Thread(target=try_to_send)
    client.start()
    inbox.wait_for(phase="held")
    inbox.release(drop=True)
    client.join(5)
    assert len(caught) == 1
    assert stored(inbox, "hold@example.test") == 1


def test_a_script_rules_phases_that_have_no_recipient_and_runs_out(inbox: InboxHandle) -> None:
    inbox.script("connect", reply="421 4.3.2 Closing", times=1)
    inbox.script("mail", reply="451 4.3.0 Later", times=1)
    with pytest.raises(smtplib.SMTPConnectError):
        send(inbox, "ada@example.test")
    with pytest.raises(smtplib.SMTPSenderRefused):
        send(inbox, "ada@example.test")
    send(inbox, "ada@example.test")
    assert stored(inbox, "ada@example.test") == 1


def test_a_script_can_single_out_one_recipient(inbox: InboxHandle) -> None:
    inbox.script("rcpt", reply="550 5.1.1 Gone", recipient="bo@example.test")
    send(inbox, "ada@example.test")
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        send(inbox, "bo@example.test")
    inbox.clear()
    send(inbox, "bo@example.test")


def test_a_client_without_the_right_credentials_is_refused() -> None:
    with running_inbox(credentials=("app", "secret")) as inbox:
        with smtplib.SMTP("127.0.0.1", inbox.smtp_port) as client:
            with pytest.raises(smtplib.SMTPSenderRefused):
                client.send_message(a_mail("ada@example.test"))
            with pytest.raises(smtplib.SMTPAuthenticationError):
                client.login("app", "wrong")
            client.login("app", "secret")
            client.send_message(a_mail("ada@example.test"))
        assert stored(inbox, "ada@example.test") == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_mail_is_taken_over_tls(at_once: bool) -> None:
    certificate = loopback_certificate()
    with running_inbox(tls=certificate.server(), tls_at_once=at_once) as inbox:
        trust = certificate.client()
        if at_once:
            with smtplib.SMTP_SSL("localhost", inbox.smtp_port, context=trust) as client:
                client.send_message(a_mail("ada@example.test"))
        else:
            with smtplib.SMTP("localhost", inbox.smtp_port) as client:
                client.starttls(context=trust)
                client.send_message(a_mail("ada@example.test"))
        assert stored(inbox, "ada@example.test") == 1


def test_an_envelope_id_is_taken_where_reports_are_offered() -> None:
    with running_inbox(offers=("DSN",)) as inbox:
        with smtplib.SMTP("127.0.0.1", inbox.smtp_port) as client:
            client.ehlo()
            assert client.has_extn("dsn")
            options = ["RET=HDRS", "ENVID=envelope-7"]
            client.sendmail(SENDER, ["ada@example.test"], b"Subject: x\r\n\r\nx", options)
        assert inbox.journal(phase="stored")[0]["reference"] == "envelope-7"


def test_an_inbox_that_was_closed_cuts_open_connections() -> None:
    with running_inbox() as inbox:
        client = smtplib.SMTP("127.0.0.1", inbox.smtp_port, timeout=5)
    with pytest.raises(smtplib.SMTPServerDisconnected):
        client.ehlo()
    client.close()
    with pytest.raises(ConnectionRefusedError):
        smtplib.SMTP("127.0.0.1", inbox.smtp_port, timeout=5)


def test_the_page_shows_mails_and_texts_newest_first_and_escapes_them(inbox: InboxHandle) -> None:
    send(inbox, "ada@example.test")
    send(inbox, "bo@example.test")
    inbox.text("RESET", "+447700900123", "Your <link>")
    with urlopen(inbox.url) as answer:  # noqa: S310 - loopback
        page = answer.read().decode()
    assert page.index("bo@example.test") < page.index("ada@example.test")
    assert "Reset &lt;your&gt; password" in page
    assert "Your &lt;link&gt;" in page
    assert '<iframe sandbox title="HTML body"' in page


def test_an_html_body_is_served_where_it_can_run_and_load_nothing(inbox: InboxHandle) -> None:
    send(inbox, "ada@example.test")
    with urlopen(f"{inbox.url}/mail?number=1") as answer:  # noqa: S310 - loopback
        assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
        assert answer.read().decode().startswith("<p>Open the <b>link</b>")


def test_an_inbox_in_a_process_of_its_own_works_the_same() -> None:
    with running_inbox(process=True) as inbox:
        send(inbox, "ada@example.test")
        assert stored(inbox, "ada@example.test") == 1
