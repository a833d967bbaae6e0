"""Standard Webhooks, both directions, against an independent implementation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from notifier.signatures import (
    SignatureInvalid,
    TimestampOutOfRange,
    key_id,
    parse_secret,
    sign,
    signed_headers,
    verify,
)

SECRET_TEXT = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SECRET = parse_secret(SECRET_TEXT)
OLD, RETIRED = b"o" * 24, b"r" * 24
NOW = datetime(2026, 3, 14, 12, 0, tzinfo=UTC)
STAMP = int(NOW.timestamp())
BODY = b'{"event_id": "e-1"}\r\n'


def headers(secret: bytes = SECRET, timestamp: int = STAMP, body: bytes = BODY) -> dict[str, str]:
    return signed_headers(secret, "msg_1", timestamp, body)


def test_the_independent_implementation_accepts_what_we_sign() -> None:
    stamp = int(datetime.now(UTC).timestamp())
    webhook = Webhook(SECRET_TEXT)
    webhook.verify(BODY, headers(timestamp=stamp), json_parse=False)
    with pytest.raises(WebhookVerificationError):
        webhook.verify(BODY + b" ", headers(timestamp=stamp), json_parse=False)


@given(st.text(st.characters(codec="utf-8")))
def test_we_accept_what_the_independent_implementation_signs(body: str) -> None:
    signature = Webhook(SECRET_TEXT).sign("msg_1", NOW, body)
    given_headers = headers() | {"webhook-signature": signature}
    assert verify([SECRET], given_headers, body.encode(), NOW) == key_id(SECRET)


@given(st.binary(min_size=1), st.integers(min_value=0), st.integers(0, 7))
def test_one_changed_bit_anywhere_in_the_body_is_refused(
    body: bytes, position: int, bit: int
) -> None:
    changed = bytearray(body)
    changed[position % len(body)] ^= 1 << bit
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers(body=body), bytes(changed), NOW)


def test_the_last_line_break_is_part_of_what_was_signed() -> None:
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers(), BODY.rstrip(), NOW)


@pytest.mark.parametrize("seconds", [-300, -240, 0, 240, 300])
def test_a_clock_within_five_minutes_either_way_is_accepted(seconds: int) -> None:
    there = NOW + timedelta(seconds=seconds)
    assert verify([SECRET], headers(), BODY, there) == key_id(SECRET)


@pytest.mark.parametrize("seconds", [-(10**8), -360, -300.5, 300.5, 360, 10**8])
def test_beyond_that_a_good_signature_is_out_of_range_and_not_invalid(seconds: float) -> None:
    with pytest.raises(TimestampOutOfRange):
        verify([SECRET], headers(), BODY, NOW + timedelta(seconds=seconds))


def test_a_bad_signature_outranks_a_bad_time_so_that_strangers_learn_no_time() -> None:
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers(RETIRED), BODY, NOW + timedelta(days=1))


@pytest.mark.parametrize("timestamp", ["-1", "-99999999999", "0", "9" * 32])
def test_an_absurd_time_that_was_really_signed_is_out_of_range(timestamp: str) -> None:
    given_headers = headers(timestamp=int(timestamp))
    with pytest.raises(TimestampOutOfRange):
        verify([SECRET], given_headers, BODY, NOW)


@pytest.mark.parametrize(
    "timestamp",
    ["", " ", "soon", "1e9", "1.5", "+5", "\u0663\u0663", "\uff11\uff17", "1" * 33, "1\n", " 1"],
)
def test_a_time_that_is_no_number_is_invalid(timestamp: str) -> None:
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers() | {"webhook-timestamp": timestamp}, BODY, NOW)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", [None, "", "   ", "\u00e9"])
def test_a_missing_or_blank_header_is_invalid(name: str, value: str | None) -> None:
    given_headers = headers()
    del given_headers[name]
    if value is not None:
        given_headers[name] = value
    with pytest.raises(SignatureInvalid):
        verify([SECRET], given_headers, BODY, NOW)


def test_any_one_of_several_signatures_will_do() -> None:
    several = f"v1a,{'A' * 86}== v1,nonsense {sign(RETIRED, 'msg_1', STAMP, BODY)} "
    given_headers = headers()
    given_headers["webhook-signature"] = several + given_headers["webhook-signature"]
    assert verify([SECRET], given_headers, BODY, NOW) == key_id(SECRET)


@pytest.mark.parametrize("signature", ["v1,", "v1", ",", "v2,AAAA", "v1,AAAA"])
def test_other_versions_and_empty_signatures_are_invalid(signature: str) -> None:
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers() | {"webhook-signature": signature}, BODY, NOW)


def test_a_right_digest_under_another_version_is_invalid() -> None:
    renamed = headers()["webhook-signature"].replace("v1,", "v2,")
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers() | {"webhook-signature": renamed}, BODY, NOW)


def test_a_flood_of_signatures_is_refused_unread() -> None:
    flood = " ".join(["v1,AAAA"] * 100 + [headers()["webhook-signature"]])
    with pytest.raises(SignatureInvalid):
        verify([SECRET], headers() | {"webhook-signature": flood}, BODY, NOW)


def test_old_and_new_secret_are_both_active_and_the_retired_one_is_not() -> None:
    assert verify([SECRET, OLD], headers(OLD), BODY, NOW) == key_id(OLD)
    assert verify([SECRET, OLD], headers(SECRET), BODY, NOW) == key_id(SECRET)
    with pytest.raises(SignatureInvalid):
        verify([SECRET, OLD], headers(RETIRED), BODY, NOW)


@pytest.mark.parametrize("secrets", [[], [b""]])
def test_without_a_secret_nobody_is_let_in(secrets: list[bytes]) -> None:
    with pytest.raises(SignatureInvalid):
        verify(secrets, headers(b""), BODY, NOW)


@pytest.mark.parametrize("text", [SECRET_TEXT, f"  {SECRET_TEXT}\n", "whsec_AAAA", "whsec_AAA="])
def test_a_secret_is_whsec_and_base64(text: str) -> None:
    assert parse_secret(text) == Webhook(text.strip())._whsecret


@pytest.mark.parametrize(
    "text", ["", "  ", "whsec_", "whsec_ ", "MfKQ9r8GKYqrTwjU", "whsec_planted!", "whsec_é"]
)
def test_p7_anything_else_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="whsec_ followed by base64") as refused:
        parse_secret(text)
    assert "planted" not in f"{refused.value!r}"


def test_a_key_id_is_short_and_stable_and_not_the_key() -> None:
    assert key_id(SECRET) == key_id(bytes(SECRET))
    assert len(key_id(SECRET)) == 8
    assert key_id(SECRET) != key_id(OLD)
