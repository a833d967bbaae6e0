"""Which adapters the settings give: the first one named sends, all of them are asked and heard."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from svix.webhooks import Webhook

from notifier.domain.policy import default_policy
from notifier.domain.states import Channel
from notifier.ports.asking import Callback
from notifier.providers import registry
from notifier.providers.twilio import TwilioSender
from notifier.settings import Settings, load_settings
from tests.providers import http_sending as ways
from tests.providers.http_sending import text
from tests.providers.scripted_api import api, reply

NOON = datetime(2033, 5, 1, 12, 0, tzinfo=UTC)
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BASE = {
    "NOTIFIER_INGEST_SECRETS": WHSEC,
    "NOTIFIER_SECRET_KEY": "k" * 40,
    "NOTIFIER_FINGERPRINT_KEY": "f" * 40,
    "NOTIFIER_LINK_URL": "http://127.0.0.1:1/links",
    "NOTIFIER_LINK_SECRET": WHSEC,
    "NOTIFIER_EMAIL_FROM": ways.FROM_ADDRESS,
    "NOTIFIER_SMTP_URL": "smtp://127.0.0.1:25",
    "NOTIFIER_POSTMARK_TOKEN": ways.TOKEN,
    "NOTIFIER_POSTMARK_CALLBACK_PASSWORD": ways.CALLBACK_PASSWORD,
    "NOTIFIER_RESEND_API_KEY": ways.TOKEN,
    "NOTIFIER_RESEND_WEBHOOK_SECRET": WHSEC,
    "NOTIFIER_TWILIO_ACCOUNT_SID": ways.SID,
    "NOTIFIER_TWILIO_AUTH_TOKEN": ways.TOKEN,
    "NOTIFIER_TWILIO_FROM": ways.FROM_NUMBER,
    "NOTIFIER_PUBLIC_URL": f"{ways.PUBLIC_URL}/",
}


def settings(email: str, sms: str = "", **more: str) -> Settings:
    names = {"NOTIFIER_EMAIL_PROVIDERS": email, "NOTIFIER_SMS_PROVIDERS": sms}
    return load_settings(BASE | names | more)


@pytest.mark.parametrize(
    ("email", "sms", "sending", "asked"),
    [
        ("smtp", "", {Channel.EMAIL: "smtp"}, set()),
        ("postmark", "", {Channel.EMAIL: "postmark"}, {"postmark"}),
        ("resend,postmark", "", {Channel.EMAIL: "resend"}, {"postmark", "resend"}),
        (
            "smtp,postmark",
            "twilio",
            {Channel.EMAIL: "smtp", Channel.SMS: "twilio"},
            {"postmark", "twilio"},
        ),
    ],
)
def test_the_first_one_named_sends_and_every_one_is_asked_and_heard(
    email: str, sms: str, sending: dict[Channel, str], asked: set[str]
) -> None:
    given = settings(email, sms)
    chosen = registry.senders(given, default_policy())
    assert {channel: sender.name for channel, sender in chosen.items()} == sending
    assert {channel: sender.channel for channel, sender in chosen.items()} == {
        channel: channel for channel in sending
    }
    assert {name: each.name for name, each in registry.lookups(given).items()} == {
        name: name for name in asked
    }
    assert set(registry.parsers(given)) == asked


def test_a_text_is_called_back_below_the_public_address() -> None:
    sender = registry.senders(settings("smtp", "twilio"), default_policy())[Channel.SMS]
    assert isinstance(sender, TwilioSender)
    wanted = "StatusCallback=https%3A%2F%2Fnotices.example.test%2Fcallbacks%2Ftwilio%2F"
    assert wanted + ways.REFERENCE in sender.form(text()).decode()


def test_a_provider_without_an_adapter_is_named_at_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(registry.ADAPTERS, "resend")
    with pytest.raises(registry.NoAdapter, match="cannot send through resend"):
        registry.senders(settings("resend"), default_policy())


def test_a_webhook_of_resends_is_measured_by_the_clock_that_is_handed_in() -> None:
    parser = registry.parsers(settings("resend"), lambda: NOON)["resend"]
    secret = Webhook(WHSEC)
    body = b'{"type":"domain.created","data":{}}'
    headers = {
        "svix-id": "msg_1",
        "svix-timestamp": str(int(NOON.timestamp())),
        "svix-signature": secret.sign("msg_1", NOON, body.decode()),
    }
    assert parser.parse(Callback("http://127.0.0.1/callbacks/resend/", headers, body)) == []


def test_the_probe_of_each_channel_only_reads() -> None:
    with api(reply(200, {})) as peer:
        given = settings(
            "postmark",
            "twilio",
            NOTIFIER_POSTMARK_BASE_URL=peer.url,
            NOTIFIER_TWILIO_BASE_URL=peer.url,
        )
        found = list(registry.probe_all(given, default_policy()))
    assert found == [("postmark", True, "answered 200"), ("twilio", True, "answered 200")]
    assert [line.partition(" ")[0] for line in peer.lines] == ["GET", "GET"]
