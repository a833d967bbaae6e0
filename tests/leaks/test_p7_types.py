"""Whatever is done to a value that carries a secret, it shows its mask or refuses."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import pprint
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from notifier.domain.event import Given, Invalid, ResetEvent
from notifier.domain.event_document import EventRules, parse_event
from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage, ResetLink, Secret
from notifier.flow.dispatch import Granted
from notifier.links.auth_service import AuthService
from notifier.messages.render import render
from notifier.ports.links import LinkGranted
from notifier.ports.sending import Envelope
from notifier.providers.smtp import SmtpAccount, SmtpSender
from notifier.setting_addresses import read_database_url, read_smtp
from notifier.setting_readers import read_api_tokens, read_key_ring, read_signing_secret
from notifier.settings import Settings, SettingsInvalid, load_settings
from notifier.timed_http import HttpAnswer
from peers.events import build_event
from peers.run_settings import Secrets, mail_only
from tests.leaks.canaries import Canaries
from tests.leaks.search import Haystack, find, told

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CANARIES = Canaries()


def transient() -> dict[str, Any]:
    """What lives in a worker's memory between the link answer and the call, and the event."""
    destination = Destination(Channel.EMAIL, CANARIES.address())
    link = ResetLink(CANARIES.link())
    granted = LinkGranted(destination, link, NOW, CANARIES.name)
    message = render(
        "password-reset", "1", "en", Channel.EMAIL, link, NOW, CANARIES.name, b"k" * 32
    )
    return {
        "secret": Secret(CANARIES.token),
        "link": link,
        "destination": destination,
        "number": Destination(Channel.SMS, CANARIES.number),
        "granted": granted,
        "granted with times": Granted(granted, NOW, NOW),
        "message": message,
        "text": text_message(link),
        "envelope": Envelope(destination, message, "ref", "key", 1.0, 60),
        "given": Given(destination, Secret(CANARIES.address())),
        "invalid": Invalid(Secret(CANARIES.address())),
        "event": event(),
    }


def text_message(link: ResetLink) -> RenderedMessage:
    return render("password-reset", "1", "en", Channel.SMS, link, NOW, None, b"k" * 32)


def event() -> ResetEvent:
    document = build_event(tag="t") | {
        "destinations": {"email": CANARIES.address(), "sms": CANARIES.spellings()[2]},
        "locale": f"{CANARIES.address()}!",
    }
    rules = EventRules(86_400, lambda _name, _revision: True)
    return parse_event(document, datetime.now(UTC) + timedelta(minutes=1), rules)


def lasting() -> dict[str, Any]:
    """What carries a secret of the settings for as long as the process runs."""
    password = CANARIES.smtp_password
    CANARIES.config["a key"] = key = f"key{CANARIES.token[::-1]}{CANARIES.smtp_password}"
    login = f"{CANARIES.smtp_user}:{password}"
    account = SmtpAccount("127.0.0.1", 1, "plain", CANARIES.smtp_user, Secret(password))
    return {
        "settings": given_settings(),
        "SMTP server": read_smtp(f"smtps://{login}@mail.example.test"),
        "SMTP account": account,
        "SMTP sender": SmtpSender(account, "no-reply@example.test", 1.0, 1.0),
        "key ring": read_key_ring(f"{key},{key}old"),
        "signing secret": read_signing_secret("whsec_" + key),
        "API token": read_api_tokens("a:status:" + "ab" * 32),
        "database": read_database_url(f"postgresql://{login}@db.example.test/notifier"),
        "link source": AuthService("https://auth.example.test/", key.encode(), lambda _c, _t: None),
        "HTTP answer": HttpAnswer(200, CANARIES.link().encode()),
    }


def environment() -> dict[str, str]:
    names = [each.name for each in dataclasses.fields(Secrets)]
    signing = {"ingest": "whsec_" + CANARIES.token * 4, "link": "whsec_" + CANARIES.token * 4}
    known = Secrets(**dict.fromkeys(names, CANARIES.token * 2) | signing | {"checkpoint_key": ""})
    login = f"{CANARIES.smtp_user}:{CANARIES.smtp_password}"
    return mail_only(
        known, data_dir=Path(), port=1, link_url="http://127.0.0.1:1/", smtp_port=1
    ) | {
        "NOTIFIER_SMTP_URL": f"smtp://{login}@127.0.0.1:1",
        "NOTIFIER_DATABASE_URL": f"postgresql://{login}@db.example.test/notifier",
    }


def given_settings() -> Settings:
    return load_settings(environment())


def with_locals(value: Any) -> str:
    """A traceback as a careless tool writes it, with the values of every frame."""
    held = value
    try:
        raise ValueError(held)  # noqa: TRY301
    except ValueError as error:
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        return "".join(told.format())


PRINTED: dict[str, Callable[[Any], object]] = {
    "repr": repr,
    "str": str,
    "format": lambda value: f"{value} {value!r} {value!s:>90}",
    "percent": lambda value: "%s %r" % (value, value),  # noqa: UP031
    "pprint": pprint.pformat,
    "in a list": lambda value: repr([value, {"key": value}]),
    "traceback with locals": with_locals,
    "JSON with str": lambda value: json.dumps(value, default=str),
    "exception": lambda value: repr(RuntimeError(value)),
}
TAKEN_AS_TEXT = {"NOTIFIER_DATA_DIR", "NOTIFIER_SECRET_KEY", "NOTIFIER_FINGERPRINT_KEY",
                 "NOTIFIER_CHECKPOINT_KEY"}  # fmt: skip
KEPT_HERE = ("settings", "SMTP server", "SMTP account", "key ring", "signing secret",
                         "HTTP answer")  # fmt: skip
SERIALISED: dict[str, Callable[[Any], object]] = {
    "pickle": pickle.dumps,
    "JSON": json.dumps,
    "JSON of vars": lambda value: json.dumps(value, default=vars),
    "copy": lambda value: pickle.dumps(copy.copy(value)),
    "deepcopy": lambda value: pickle.dumps(copy.deepcopy(value)),
    "vars": vars,
    "asdict": lambda value: json.dumps(dataclasses.asdict(value)),
    "model": lambda value: value.model_dump_json(),
}


@pytest.mark.parametrize("name", [*transient(), *lasting()])
def test_p7_a_secret_bearing_value_prints_its_mask(name: str) -> None:
    value = (transient() | lasting())[name]
    shown = [Haystack(way, attempt(show, value)) for way, show in PRINTED.items()]
    assert not (found := find(CANARIES.needles(), shown)), told(found)


@pytest.mark.parametrize("name", [*transient(), *KEPT_HERE])
def test_p7_a_secret_bearing_value_cannot_be_serialised(name: str) -> None:
    value = (transient() | lasting())[name]
    shown = [Haystack(way, attempt(send, value)) for way, send in SERIALISED.items()]
    assert not (found := find(CANARIES.needles(), shown)), told(found)
    with pytest.raises(TypeError):
        pickle.dumps(value)


def attempt(way: Callable[[Any], object], value: Any) -> bytes:
    """What comes of it, the text of a refusal included."""
    try:
        came = way(value)
    except (TypeError, AttributeError, ValueError) as refusal:
        came = f"{refusal!r} {refusal}"
    return came if isinstance(came, bytes) else str(came).encode()


def test_p7_the_content_itself_is_one_call_away_and_nothing_else_gives_it() -> None:
    assert ResetLink(CANARIES.link()).reveal() == CANARIES.link()
    found = find(CANARIES.needles(), [Haystack("it", CANARIES.link().encode())])
    assert "reset token" in told(found)


@pytest.mark.parametrize("variable", sorted(environment()))
def test_p7_a_setting_that_is_refused_is_named_and_not_quoted(variable: str) -> None:
    spoilt = f"{CANARIES.smtp_password} {CANARIES.link()} {CANARIES.address()}"
    try:
        load_settings(environment() | {variable: spoilt})
    except SettingsInvalid as error:
        refused = error
    else:
        assert variable in TAKEN_AS_TEXT
        return
    assert variable in str(refused)
    shown = "".join(traceback.format_exception(refused)) + repr(refused)
    assert not find(CANARIES.needles(), [Haystack(variable, shown.encode())])
