"""Settings: read whole, refused by name, never shown by value."""

from __future__ import annotations

import base64
import hashlib
import traceback
from pathlib import Path

import pytest

from notifier.settings import Settings, SettingsInvalid, load_settings

CANARY = "canary-7f3a"
SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()
TOKEN_HASH = hashlib.sha256(b"token").hexdigest()

LEAST = {
    "NOTIFIER_INGEST_SECRETS": SECRET,
    "NOTIFIER_SECRET_KEY": "s" * 32,
    "NOTIFIER_FINGERPRINT_KEY": "f" * 32,
    "NOTIFIER_LINK_URL": "http://127.0.0.1:9001/links/",
    "NOTIFIER_LINK_SECRET": SECRET,
    "NOTIFIER_EMAIL_PROVIDERS": "smtp",
    "NOTIFIER_SMTP_URL": "smtp://127.0.0.1:1025",
    "NOTIFIER_EMAIL_FROM": "no-reply@example.test",
}
REQUIRED = sorted(LEAST)


def loaded(**changes: str) -> Settings:
    return load_settings({**LEAST, **{f"NOTIFIER_{key}": text for key, text in changes.items()}})


def refused(**changes: str) -> dict[str, str]:
    with pytest.raises(SettingsInvalid) as caught:
        loaded(**changes)
    return {each.variable.removeprefix("NOTIFIER_"): str(each) for each in caught.value.problems}


def test_the_least_that_must_be_set_is_enough() -> None:
    found = load_settings(LEAST)
    assert (found.bind.host, found.bind.port, found.workers) == ("127.0.0.1", 8000, 16)
    assert found.public_base == "http://127.0.0.1:8000"
    assert found.sms_providers == ()
    assert found.database_url is None
    assert found.data_dir == Path("var")
    assert found.admission_rate_per_s is None
    assert found.link_url == "http://127.0.0.1:9001/links/"


@pytest.mark.parametrize("blank", [None, "", "   ", "\t\n"])
@pytest.mark.parametrize("variable", REQUIRED)
def test_a_required_variable_that_is_unset_or_blank_refuses_the_start(
    variable: str, blank: str | None
) -> None:
    environ = {key: text for key, text in LEAST.items() if key != variable}
    if blank is not None:
        environ[variable] = blank
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(environ)
    assert [each.variable for each in caught.value.problems] == [variable]
    assert "it wants" in str(caught.value)


@pytest.mark.parametrize("text", [",", f"{SECRET},", f"{SECRET}, ,{OTHER}", "whsec_", "whsec_ "])
def test_a_blank_secret_among_others_refuses_the_start(text: str) -> None:
    assert "INGEST_SECRETS" in refused(INGEST_SECRETS=text)


def test_all_faults_are_named_at_once() -> None:
    faults = refused(INGEST_SECRETS=" ", WORKERS="many", BIND="nowhere", SMS_PROVIDERS="twilio")
    assert set(faults) == {
        "INGEST_SECRETS",
        "WORKERS",
        "BIND",
        "TWILIO_ACCOUNT_SID",
        "TWILIO_AUTH_TOKEN",
        "TWILIO_FROM",
    }


BROKEN = {
    "DATABASE_URL": f"mysql://user:{CANARY}@host/db",
    "BIND": f"[{CANARY}",
    "PUBLIC_URL": f"ftp://{CANARY}",
    "PROXY_HOPS": CANARY,
    "INGEST_SECRETS": f"whsec_{CANARY}!",
    "ADMISSION_RATE_PER_S": CANARY,
    "API_TOKENS": f"help-desk:status:{CANARY}",
    "SECRET_KEY": CANARY,
    "FINGERPRINT_KEY": CANARY,
    "CHECKPOINT_KEY": CANARY,
    "LINK_URL": f"http://user:{CANARY}@links.example.test/",
    "LINK_SECRET": CANARY,
    "EMAIL_PROVIDERS": f"smtp,{CANARY}",
    "SMS_PROVIDERS": CANARY,
    "SMTP_URL": f"smtp://user:{CANARY}@mail.example.test:25",
    "EMAIL_FROM": f"{CANARY} <a@example.test>",
    "TWILIO_ACCOUNT_SID": CANARY,
    "TWILIO_FROM": CANARY,
    "TWILIO_BASE_URL": f"http://{CANARY}.example.test",
    "POSTMARK_BASE_URL": CANARY,
    "RESEND_BASE_URL": f"https://[{CANARY}]",
    "RESEND_WEBHOOK_SECRET": CANARY,
    "POLICY_FILE": f"/nowhere/{CANARY}.toml",
    "OIDC_ISSUER": f"http://{CANARY}.example.test",
    "LOCAL_ACCOUNTS": CANARY,
    "ALERT_URLS": f"mailto://{CANARY}@example.test,,",
    "DKIM_SELECTORS": f"{CANARY},,",
    "DNS_RESOLVER": CANARY,
    "WORKERS": f"-1{CANARY}",
}


@pytest.mark.parametrize("variable", sorted(BROKEN))
def test_p7_a_refusal_names_the_variable_and_never_its_value(variable: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        loaded(**{variable: BROKEN[variable]})
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.problems)
    assert f"NOTIFIER_{variable} " in shown
    assert CANARY not in shown


def test_p7_nothing_secret_shows_in_the_settings_themselves() -> None:
    found = loaded(
        DATABASE_URL=f"postgresql://app:{CANARY}@db1,db2/notices",
        SECRET_KEY=CANARY * 3,
        FINGERPRINT_KEY=CANARY * 4,
        SMTP_URL=f"smtps://{CANARY}:{CANARY}@mail.example.test",
        INGEST_SECRETS="whsec_" + base64.b64encode(CANARY.encode() * 3).decode(),
        POSTMARK_TOKEN=CANARY,
        ALERT_URLS=f"json://{CANARY}",
        DEADMAN_URL=f"https://example.test/{CANARY}",
    )
    shown = repr(found) + str(found)
    assert CANARY not in shown
    assert base64.b64encode(CANARY.encode()).decode()[:12] not in shown


def test_several_ingest_secrets_are_told_apart_by_a_short_id() -> None:
    found = loaded(INGEST_SECRETS=f"{SECRET}, {OTHER}").ingest_secrets
    assert [each.key for each in found] == [b"k" * 24, b"o" * 32]
    assert len({each.key_id for each in found}) == 2
    assert "INGEST_SECRETS" in refused(INGEST_SECRETS=f"{SECRET},{SECRET}")


def test_an_old_key_after_a_comma_still_verifies() -> None:
    ring = loaded(FINGERPRINT_KEY="n" * 32 + "," + "o" * 40).fingerprint_key
    assert ring.current == b"n" * 32
    assert ring.all == (b"n" * 32, b"o" * 40)
    assert "FINGERPRINT_KEY" in refused(FINGERPRINT_KEY="n" * 32 + ",short")


def test_a_checkpoint_seed_is_hex_or_base64_of_32_bytes() -> None:
    seed = bytes(range(32))
    text = f"{seed.hex()},{base64.b64encode(seed[::-1]).decode()}"
    ring = loaded(CHECKPOINT_KEY=text).checkpoint_key
    assert ring is not None
    assert ring.all == (seed, seed[::-1])
    assert "CHECKPOINT_KEY" in refused(CHECKPOINT_KEY=base64.b64encode(b"x" * 31).decode())


def test_api_tokens_are_names_scopes_and_hashes() -> None:
    (token,) = loaded(API_TOKENS=f"help-desk:status+tickets:{TOKEN_HASH.upper()}").api_tokens
    assert token.name == "help-desk"
    assert token.scopes == {"status", "tickets"}
    assert token.sha256 == hashlib.sha256(b"token").digest()


@pytest.mark.parametrize(
    "text",
    [
        "help-desk",
        f"help-desk:everything:{TOKEN_HASH}",
        f"help-desk::{TOKEN_HASH}",
        f":status:{TOKEN_HASH}",
        f"help-desk:status:{TOKEN_HASH}00",
        f"a:status:{TOKEN_HASH},a:metrics:{TOKEN_HASH}",
    ],
)
def test_a_token_entry_of_another_shape_is_refused(text: str) -> None:
    assert "API_TOKENS" in refused(API_TOKENS=text)


def test_an_smtp_address_is_taken_apart() -> None:
    server = loaded(SMTP_URL="smtp://us%40er:p%3Ass@mail.example.test:2525?starttls=1").smtp_url
    assert server is not None
    assert (server.host, server.port, server.starttls) == ("mail.example.test", 2525, True)
    assert server.user == "us@er"
    assert server.password is not None
    assert server.password.get_secret_value() == "p:ss"
    implicit = loaded(SMTP_URL="smtps://mail.example.test").smtp_url
    assert implicit is not None
    assert (implicit.port, implicit.implicit_tls, implicit.user) == (465, True, None)


@pytest.mark.parametrize(
    "text",
    [
        "smtp://mail.example.test",
        "smtp://mail.example.test?starttls=0",
        "smtp://localhost.example.test:25",
        "smtps://mail.example.test?starttls=1",
        "smtp://127.0.0.1?tls=1",
        "smtp://127.0.0.1:70000",
        "smtp://",
        "http://127.0.0.1:25",
    ],
)
def test_an_smtp_line_in_the_clear_is_for_loopback_only(text: str) -> None:
    assert "SMTP_URL" in refused(SMTP_URL=text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_may_be_spoken_to_in_the_clear(host: str) -> None:
    assert loaded(SMTP_URL=f"smtp://{host}:25", LINK_URL=f"http://{host}:80/x").smtp_url


@pytest.mark.parametrize(
    "text",
    [
        "http://auth.example.test/links",
        "http://127.0.0.1.example.test/",
        "https://user@auth.example.test/",
        "https://auth.example.test/?a=b",
        "https://",
        "auth.example.test",
        "https://auth.example.test/a b",
    ],
)
def test_the_link_address_is_https_outside_loopback(text: str) -> None:
    assert "LINK_URL" in refused(LINK_URL=text)


@pytest.mark.parametrize(
    ("bind", "base"),
    [
        ("0.0.0.0:9000", "http://127.0.0.1:9000"),
        ("[::1]:9000", "http://[::1]:9000"),
        ("10.1.2.3:80", "http://10.1.2.3:80"),
    ],
)
def test_the_public_address_follows_the_bind(bind: str, base: str) -> None:
    assert loaded(BIND=bind).public_base == base
    assert loaded(BIND=bind, PUBLIC_URL="https://x.example/n/").public_base == "https://x.example/n"


@pytest.mark.parametrize("bind", ["127.0.0.1", ":8000", "127.0.0.1:port", "127.0.0.1:8000/x"])
def test_a_bind_of_another_shape_is_refused(bind: str) -> None:
    assert "BIND" in refused(BIND=bind)


@pytest.mark.parametrize(
    ("provider", "needed"),
    [
        ("postmark", {"POSTMARK_TOKEN", "POSTMARK_CALLBACK_PASSWORD"}),
        ("resend", {"RESEND_API_KEY", "RESEND_WEBHOOK_SECRET"}),
    ],
)
def test_a_named_provider_needs_its_own_settings(provider: str, needed: set[str]) -> None:
    assert set(refused(EMAIL_PROVIDERS=f"smtp, {provider}")) == needed


def test_providers_keep_their_order_and_stand_there_once() -> None:
    found = loaded(
        EMAIL_PROVIDERS="postmark, smtp", POSTMARK_TOKEN="t", POSTMARK_CALLBACK_PASSWORD="p"
    )
    assert found.email_providers == ("postmark", "smtp")
    assert "EMAIL_PROVIDERS" in refused(EMAIL_PROVIDERS="smtp,smtp")


def test_single_sign_on_needs_its_client() -> None:
    assert set(refused(OIDC_ISSUER="https://id.example.test")) == {
        "OIDC_CLIENT_ID",
        "OIDC_CLIENT_SECRET",
        "OIDC_ROLE_CLAIM",
    }


@pytest.mark.parametrize(("text", "rate"), [("off", None), ("50", 50.0), ("0.5", 0.5)])
def test_the_admission_rate_is_a_number_or_off(text: str, rate: float | None) -> None:
    assert loaded(ADMISSION_RATE_PER_S=text).admission_rate_per_s == rate


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e9"])
def test_a_rate_that_is_no_plain_number_is_refused(text: str) -> None:
    assert "ADMISSION_RATE_PER_S" in refused(ADMISSION_RATE_PER_S=text)


def test_no_workers_means_to_serve_only() -> None:
    assert loaded(WORKERS="0").workers == 0


def test_the_policy_file_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("")
    assert loaded(POLICY_FILE=str(file)).policy_file == file
    assert "POLICY_FILE" in refused(POLICY_FILE=str(tmp_path))


def test_only_the_environment_handed_in_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFIER_WORKERS", "3")
    assert loaded().workers == 16


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        loaded().workers = 1


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("192.0.2.53", "192.0.2.53", 53), ("127.0.0.1:5353", "127.0.0.1", 5353),
        ("2001:db8::53", "2001:db8::53", 53), ("[2001:db8::53]:5353", "2001:db8::53", 5353),
    ],
)  # fmt: skip
def test_a_resolver_is_an_address_in_numbers_with_a_port_or_without(
    text: str, host: str, port: int
) -> None:
    found = loaded(DNS_RESOLVER=text).dns_resolver
    assert found is not None
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize("text", ["dns.example", "localhost:53", "192.0.2.53:99999", "1.2.3.4/x"])
def test_a_resolver_that_would_have_to_be_looked_up_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid, match="NOTIFIER_DNS_RESOLVER"):
        loaded(DNS_RESOLVER=text)


@pytest.mark.parametrize("text", ["a b", "s1,S1", "s1,,s2", "s1..x", "x" * 64, "s1;p="])
def test_a_selector_that_dns_cannot_carry_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid, match="NOTIFIER_DKIM_SELECTORS"):
        loaded(DKIM_SELECTORS=text)
