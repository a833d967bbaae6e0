"""What is posted to Resend, and what its answers come to."""

from __future__ import annotations

import json

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, ProviderPause, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.ports.sending import Sender
from tests.providers import http_sending as ways
from tests.providers.http_sending import email, send
from tests.providers.scripted_api import api, reply


def error(status: int, name: str, message: str = "no", **headers: str) -> bytes:
    lines = [f"{key.replace('_', '-')}: {value}" for key, value in headers.items()]
    return reply(status, {"statusCode": status, "name": name, "message": message}, *lines)


def test_it_says_that_it_knows_a_key_for_a_day() -> None:
    sender: Sender = ways.resend("https://api.example.test")
    assert (sender.name, sender.channel, sender.reports_deliveries) == ("resend", "email", True)
    assert sender.key_lifetime_s == 86_400


def test_the_post_carries_the_attempts_key_and_the_reference_as_a_tag() -> None:
    with api(ways.RESEND_OK) as peer:
        assert send(ways.resend(peer.url)) == Accepted(ways.MESSAGE_ID)
    [request] = peer.requests
    assert request.line == "POST /emails HTTP/1.1"
    assert request.headers["idempotency-key"] == "event-1:email:first"
    assert request.headers["authorization"] == f"Bearer {ways.TOKEN}"
    assert json.loads(request.body) == {
        "from": ways.FROM_ADDRESS,
        "to": [ways.ADDRESS],
        "subject": ways.SUBJECT,
        "text": f"Open {ways.LINK}\n",
        "html": f"<a href='{ways.LINK}'>Open</a>",
        "headers": {
            "Auto-Submitted": "auto-generated",
            "X-Auto-Response-Suppress": "DR, RN, NRN, OOF, AutoReply",
        },
        "tags": [{"name": "notice_ref", "value": ways.REFERENCE}],
    }


def test_the_same_envelope_makes_the_same_bytes_whatever_time_is_left() -> None:
    sender = ways.resend("https://api.example.test")
    assert sender.body(email(budget_s=5)) == sender.body(email(budget_s=1))


@pytest.mark.parametrize("address", ["a@x.test, b@x.test", "A <a@x.test>", "a@x.test\r\nBcc: b"])
def test_what_could_be_read_as_more_than_one_address_is_not_posted(address: str) -> None:
    with api(ways.RESEND_OK) as peer:
        outcome = send(ways.resend(peer.url), email(address=address))
    assert outcome == Refused(Detail.INVALID_DESTINATION, "unbuildable")
    assert peer.posts() == 0


def about_us(detail: Detail, code: str, wait: float | None = None) -> NotAccepted:
    return NotAccepted(detail, code, ProviderPause(detail, wait))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (error(401, "missing_api_key"), about_us(Detail.AUTH_ERROR, "missing_api_key")),
        (error(403, "invalid_api_key"), about_us(Detail.AUTH_ERROR, "invalid_api_key")),
        (error(403, "something_new"), about_us(Detail.AUTH_ERROR, "something_new")),
        (error(403, "validation_error"), about_us(Detail.SENDER_REJECTED, "validation_error")),
        (
            error(422, "validation_error", "Invalid `from` field."),
            about_us(Detail.SENDER_REJECTED, "validation_error"),
        ),
        (
            error(422, "validation_error", "Invalid `to` field. Use an address of the form x@y"),
            Refused(Detail.INVALID_DESTINATION, "validation_error"),
        ),
        (
            error(422, "validation_error", "Missing `html` or `text`."),
            Refused(Detail.CONTENT_REJECTED, "validation_error"),
        ),
        (error(422, "something_new"), Refused(Detail.UNCLASSIFIED, "something_new")),
        (error(451, "security_error"), Refused(Detail.BLOCKED, "security_error")),
        (
            error(429, "rate_limit_exceeded", Retry_After="7"),
            about_us(Detail.RATE_LIMITED, "rate_limit_exceeded", 7.0),
        ),
        (
            error(429, "daily_quota_exceeded"),
            about_us(Detail.ACCOUNT_SUSPENDED, "daily_quota_exceeded"),
        ),
        (error(404, "not_found"), about_us(Detail.PROVIDER_ERROR, "not_found")),
        (
            error(400, "invalid_idempotency_key"),
            Refused(Detail.PROVIDER_ERROR, "invalid_idempotency_key"),
        ),
    ],
)
def test_a_refusal_in_resends_words_is_about_the_message_or_about_us(
    answer: bytes, outcome: Outcome
) -> None:
    with api(answer) as peer:
        assert send(ways.resend(peer.url)) == outcome
    assert peer.posts() == 1


@pytest.mark.parametrize(
    "answer",
    [
        error(409, "concurrent_idempotent_requests"),
        reply(409, b"<html>Conflict</html>"),
        reply(409, {"statusCode": 409}),
    ],
)
def test_p3_a_key_that_is_in_use_proves_nothing(answer: bytes) -> None:
    with api(answer) as peer:
        assert send(ways.resend(peer.url)) == Unknown(Reason.GATEWAY_ERROR, "http_409")


def test_a_key_that_was_used_with_other_content_proves_that_a_message_was_taken() -> None:
    with api(error(409, "invalid_idempotent_request")) as peer:
        assert send(ways.resend(peer.url)) == Accepted(None, "invalid_idempotent_request")


@pytest.mark.parametrize("status", [500, 502])
def test_p3_an_error_of_resends_own_servers_is_unknown(status: int) -> None:
    with api(error(status, "application_error")) as peer:
        assert send(ways.resend(peer.url)) == Unknown(Reason.GATEWAY_ERROR, f"http_{status}")


def test_p3_an_error_whose_status_is_not_the_answers_own_is_not_resends() -> None:
    other = reply(403, {"statusCode": 422, "name": "validation_error", "message": "no"})
    with api(other) as peer:
        assert send(ways.resend(peer.url)) == Unknown(Reason.GATEWAY_ERROR, "http_403")


@pytest.mark.parametrize("message_id", [None, "", 7, "a b", "x" * 65])
def test_p3_a_yes_without_an_id_is_unreadable(message_id: object) -> None:
    with api(reply(200, {"id": message_id})) as peer:
        assert send(ways.resend(peer.url)) == Unknown(Reason.UNREADABLE_ANSWER, "http_200")
