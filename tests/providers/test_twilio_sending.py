"""What goes to Twilio, and what each of its answers proves."""

from __future__ import annotations

import base64
from urllib.parse import parse_qsl

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, ProviderPause, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.domain.values import Secret
from notifier.ports.sending import Sender
from notifier.providers.twilio import TwilioAccount
from tests.providers import http_sending as ways
from tests.providers.http_sending import send, text, twilio
from tests.providers.scripted_api import api, reply


def refused(detail: Detail, code: int) -> Refused:
    return Refused(detail, str(code))


def stopped(detail: Detail, code: int) -> NotAccepted:
    return NotAccepted(detail, str(code), ProviderPause(detail))


def later(detail: Detail, code: int) -> NotAccepted:
    return NotAccepted(detail, str(code))


def error(code: object, status: int = 400) -> bytes:
    return reply(status, {"code": code, "message": f"for {ways.NUMBER}", "status": status})


def answered(answer: bytes) -> Outcome:
    with api(answer) as peer:
        outcome = send(twilio(peer.url))
    assert (peer.posts(), peer.connections) == (1, 1)
    return outcome


def form(sender: Sender, envelope_validity_s: int = 600) -> dict[str, str]:
    return dict(parse_qsl(sender.form(text(validity_s=envelope_validity_s)).decode()))  # type: ignore[attr-defined]


def test_the_text_goes_out_as_twilio_wants_it_and_is_called_back_under_our_reference() -> None:
    with api(ways.TWILIO_OK) as peer:
        sender: Sender = twilio(peer.url)
        outcome = send(sender)
    assert outcome == Accepted(ways.MESSAGE_SID, "queued")
    assert (sender.name, sender.channel, sender.reports_deliveries) == (
        "twilio",
        Channel.SMS,
        True,
    )
    (request,) = peer.requests
    assert request.line == f"POST /2010-04-01/Accounts/{ways.SID}/Messages.json HTTP/1.1"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    scheme, _, pair = request.headers["authorization"].partition(" ")
    assert (scheme, base64.b64decode(pair).decode()) == ("Basic", f"{ways.SID}:{ways.TOKEN}")
    assert dict(parse_qsl(request.body.decode(), strict_parsing=True)) == {
        "To": ways.NUMBER,
        "From": ways.FROM_NUMBER,
        "Body": f"Open {ways.LINK}",
        "ValidityPeriod": "600",
        "StatusCallback": f"{ways.PUBLIC_URL}/callbacks/twilio/{ways.REFERENCE}",
    }


def test_a_messaging_service_stands_in_for_a_number() -> None:
    service = "MG" + "2c" * 16
    fields = form(twilio("https://api.example.test", sender=service))
    assert fields["MessagingServiceSid"] == service
    assert "From" not in fields


@pytest.mark.parametrize(
    ("left_s", "validity"), [(1, "1"), (20, "20"), (90, "90"), (36_000, "36000"), (99_999, "36000")]
)
def test_p5_twilio_is_given_the_life_that_is_left_within_its_bounds(
    left_s: int, validity: str
) -> None:
    assert form(twilio("https://api.example.test"), left_s)["ValidityPeriod"] == validity


@pytest.mark.parametrize("left_s", [0, -5])
def test_p5_below_the_shortest_validity_nothing_is_posted(left_s: int) -> None:
    with api(ways.TWILIO_OK) as peer:
        outcome = send(twilio(peer.url), text(validity_s=left_s))
    assert outcome == NotAccepted(Detail.TIMEOUT, "no_validity_left")
    assert peer.posts() == 0


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (21211, refused(Detail.INVALID_DESTINATION, 21211)),
        (21614, refused(Detail.INVALID_DESTINATION, 21614)),
        (21635, refused(Detail.INVALID_DESTINATION, 21635)),
        (21610, refused(Detail.UNSUBSCRIBED, 21610)),
        (21612, refused(Detail.CARRIER_REJECTED, 21612)),
        (21408, refused(Detail.SENDER_REJECTED, 21408)),
        (21617, refused(Detail.CONTENT_REJECTED, 21617)),
        (21606, stopped(Detail.SENDER_REJECTED, 21606)),
        (21212, stopped(Detail.SENDER_REJECTED, 21212)),
        (30034, stopped(Detail.SENDER_REJECTED, 30034)),
        (21611, stopped(Detail.RATE_LIMITED, 21611)),
        (30001, stopped(Detail.RATE_LIMITED, 30001)),
        (30002, stopped(Detail.ACCOUNT_SUSPENDED, 30002)),
        (21609, stopped(Detail.PROVIDER_ERROR, 21609)),
        (21624, later(Detail.PROVIDER_ERROR, 21624)),
        (90007, later(Detail.PROVIDER_ERROR, 90007)),
        (29999, refused(Detail.UNCLASSIFIED, 29999)),
    ],
)
def test_a_refusal_in_twilios_words_is_sorted_by_whom_it_is_about(
    code: int, outcome: Outcome
) -> None:
    assert answered(error(code)) == outcome


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (401, 20003, stopped(Detail.AUTH_ERROR, 20003)),
        (403, 20003, stopped(Detail.AUTH_ERROR, 20003)),
        (404, 20404, stopped(Detail.AUTH_ERROR, 20404)),
        (401, 29999, stopped(Detail.AUTH_ERROR, 29999)),
        (402, 29999, stopped(Detail.ACCOUNT_SUSPENDED, 29999)),
        (429, 20429, stopped(Detail.RATE_LIMITED, 20429)),
        (429, 29999, stopped(Detail.RATE_LIMITED, 29999)),
        (500, 20500, Unknown(Reason.GATEWAY_ERROR, "http_500")),
        (503, 20503, Unknown(Reason.GATEWAY_ERROR, "http_503")),
    ],
)
def test_the_status_beside_the_code_counts(status: int, code: int, outcome: Outcome) -> None:
    assert answered(error(code, status)) == outcome


@pytest.mark.parametrize("code", [400, 0, True, "21211", None, 212110])
def test_p3_a_400_that_is_not_in_twilios_words_is_unknown(code: object) -> None:
    assert answered(error(code)) == Unknown(Reason.GATEWAY_ERROR, "http_400")


@pytest.mark.parametrize("sid", [None, "", 7, "SM 1", "SM\x00"])
def test_p3_a_201_without_an_id_is_unknown(sid: object) -> None:
    answer = reply(201, {"sid": sid, "status": "queued"})
    assert answered(answer) == Unknown(Reason.UNREADABLE_ANSWER, "http_201")


def test_a_message_that_failed_while_it_was_made_is_a_refusal() -> None:
    made = {"sid": ways.MESSAGE_SID, "status": "failed", "error_code": 21610}
    assert answered(reply(201, made)) == Refused(Detail.UNSUBSCRIBED, "21610")
    made = {"sid": ways.MESSAGE_SID, "status": "failed", "error_code": None}
    assert answered(reply(201, made)) == Refused(Detail.UNCLASSIFIED, "failed")


@pytest.mark.parametrize(("sid", "token"), [("", "t"), ("AC/../x", "t"), ("AC1", ""), ("AC1", " ")])
def test_an_account_without_its_proof_is_refused_at_start(sid: str, token: str) -> None:
    with pytest.raises(ValueError, match="an account SID and an auth token"):
        TwilioAccount(sid, Secret(token))
