"""Which providers this version can send through, built from the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Final, Literal

from pydantic import SecretStr

from notifier.domain.policy import Policy
from notifier.domain.states import Channel
from notifier.domain.values import Secret
from notifier.ports.asking import OutcomeLookup, ReceiptParser
from notifier.ports.sending import Sender
from notifier.providers.postmark import PostmarkAsking, PostmarkSender
from notifier.providers.resend import ResendAsking, ResendSender
from notifier.providers.smtp import SmtpAccount, SmtpSender, probe
from notifier.providers.twilio import TwilioAccount, TwilioAsking, TwilioSender
from notifier.settings import Settings

Build = Callable[[Settings, Policy], Sender]
Now = Callable[[], datetime]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class NoAdapter(ValueError):
    """A provider is named that this version cannot send through."""


def _smtp(settings: Settings, policy: Policy) -> Sender:
    server, sender = settings.smtp_url, settings.email_from
    if server is None or sender is None:
        message = "smtp needs NOTIFIER_SMTP_URL and NOTIFIER_EMAIL_FROM"
        raise NoAdapter(message)
    tls: Literal["plain", "starttls", "implicit"] = "starttls" if server.starttls else "plain"
    account = SmtpAccount(
        server.host,
        server.port,
        "implicit" if server.implicit_tls else tls,
        server.user,
        Secret(server.password.get_secret_value()) if server.password else None,
    )
    return SmtpSender(
        account=account,
        email_from=sender,
        call_timeout_s=policy.call_timeout_s.email,
        final_reply_timeout_s=policy.final_reply_timeout_s.email,
    )


def _postmark(settings: Settings, policy: Policy) -> Sender:  # noqa: ARG001 - limits come with each call
    return PostmarkSender(
        _secret(settings.postmark_token), _given(settings.email_from), settings.postmark_base_url
    )


def _resend(settings: Settings, policy: Policy) -> Sender:  # noqa: ARG001 - as above
    return ResendSender(
        _secret(settings.resend_api_key), _given(settings.email_from), settings.resend_base_url
    )


def _twilio(settings: Settings, policy: Policy) -> Sender:  # noqa: ARG001 - as above
    return TwilioSender(
        _twilio_account(settings),
        _given(settings.twilio_from),
        settings.twilio_base_url,
        settings.public_base,
    )


def _postmark_asking(settings: Settings) -> PostmarkAsking:
    password, *old = _rotated(settings.postmark_callback_password)
    return PostmarkAsking(
        _secret(settings.postmark_token), password, settings.postmark_base_url, old_passwords=old
    )


def _resend_asking(settings: Settings, now: Now = _utc_now) -> ResendAsking:
    secret = settings.resend_webhook_secret
    if secret is None:
        message = "a provider is named without its settings"
        raise NoAdapter(message)
    return ResendAsking(
        _secret(settings.resend_api_key), [secret.key], settings.resend_base_url, now=now
    )


def _twilio_asking(settings: Settings) -> TwilioAsking:
    return TwilioAsking(
        _twilio_account(settings), _given(settings.twilio_from), settings.twilio_base_url
    )


def _twilio_account(settings: Settings) -> TwilioAccount:
    token, *old = _rotated(settings.twilio_auth_token)
    return TwilioAccount(_given(settings.twilio_account_sid), token, old)


def _given(value: str | None) -> str:
    if value is None:
        message = "a provider is named without its settings"
        raise NoAdapter(message)
    return value


def _secret(value: SecretStr | None) -> Secret:
    return Secret(_given(value.get_secret_value() if value else None))


def _rotated(value: SecretStr | None) -> list[Secret]:
    """The secret in use, then old ones: behind a comma each, still good for callbacks."""
    given = _given(value.get_secret_value() if value else None)
    return [Secret(each.strip()) for each in given.split(",") if each.strip()] or [Secret("")]


ADAPTERS: Final[Mapping[str, Build]] = {
    "smtp": _smtp,
    "postmark": _postmark,
    "resend": _resend,
    "twilio": _twilio,
}
ASKING: Final[Mapping[str, Callable[[Settings], OutcomeLookup]]] = {
    "postmark": _postmark_asking,
    "resend": _resend_asking,
    "twilio": _twilio_asking,
}
PARSING: Final[Mapping[str, Callable[[Settings, Now], ReceiptParser]]] = {
    "postmark": lambda settings, _: _postmark_asking(settings),
    "resend": _resend_asking,
    "twilio": lambda settings, _: _twilio_asking(settings),
}
PROBING: Final[Mapping[str, Callable[[Settings], PostmarkAsking | ResendAsking | TwilioAsking]]] = {
    "postmark": _postmark_asking,
    "resend": _resend_asking,
    "twilio": _twilio_asking,
}


def senders(settings: Settings, policy: Policy) -> dict[Channel, Sender]:
    """The sender of each channel that has a provider: the first one named sends."""
    named = {Channel.EMAIL: settings.email_providers, Channel.SMS: settings.sms_providers}
    return {
        channel: _adapter(names[0])(settings, policy) for channel, names in named.items() if names
    }


def _adapter(name: str) -> Build:
    if name not in ADAPTERS:
        message = f"this version cannot send through {name}; it has: {', '.join(ADAPTERS)}"
        raise NoAdapter(message)
    return ADAPTERS[name]


def lookups(settings: Settings) -> dict[str, OutcomeLookup]:
    """The asking side of every named provider that can be asked; plain SMTP cannot."""
    named = (*settings.email_providers, *settings.sms_providers)
    return {name: ASKING[name](settings) for name in named if name in ASKING}


def parsers(settings: Settings, now: Now = _utc_now) -> dict[str, ReceiptParser]:
    """The callbacks of every named provider: the ones that do not send are read as well.

    `now` is the clock that the age of a signature is measured by.
    """
    named = (*settings.email_providers, *settings.sms_providers)
    return {name: PARSING[name](settings, now) for name in named if name in PARSING}


def probe_all(settings: Settings, policy: Policy) -> Iterator[tuple[str, bool, str]]:
    """Look at each channel's provider without sending: its name, whether it is well, and how."""
    chosen = senders(settings, policy)
    for channel in Channel:
        sender = chosen.get(channel)
        if sender is None:
            yield str(channel), True, "no provider: this channel is not used"
        elif isinstance(sender, SmtpSender):
            result = probe(sender)
            yield sender.name, result.ok, result.what
        else:
            with closing(PROBING[sender.name](settings)) as asking:
                found = asking.probe()
            yield sender.name, found.ok, found.what
