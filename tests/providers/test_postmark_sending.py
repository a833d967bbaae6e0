"""What goes to Postmark, and what each of its answers proves."""

from __future__ import annotations

import json

import pytest

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, ProviderPause, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel
from notifier.ports.sending import Sender
from tests.providers import http_sending as ways
from tests.providers.http_sending import email, postmark, send
from tests.providers.scripted_api import api, reply


def refused(detail: Detail, code: int) -> Refused:
    return Refused(detail, str(code))


def stopped(detail: Detail, code: int) -> NotAccepted:
    return NotAccepted(detail, str(code), ProviderPause(detail))


def answered(status: int, body: object) -> Outcome:
    with api(reply(status, body)) as peer:
        outcome = send(postmark(peer.url))
    assert (peer.posts(), peer.connections) == (1, 1)
    return outcome


def test_the_message_goes_out_as_postmark_wants_it_and_carries_our_reference() -> None:
    with api(ways.POSTMARK_OK) as peer:
        sender: Sender = postmark(peer.url)
        outcome = send(sender)
    assert outcome == Accepted(ways.MESSAGE_ID, "0")
    assert (sender.name, sender.channel, sender.reports_deliveries) == (
        "postmark",
        Channel.EMAIL,
        True,
    )
    (request,) = peer.requests
    assert request.line == "POST /email HTTP/1.1"
    assert request.headers["x-postmark-server-token"] == ways.TOKEN
    assert request.headers["content-type"] == "application/json"
    document = json.loads(request.body)
    headers = {each["Name"]: each["Value"] for each in document.pop("Headers")}
    assert headers["Auto-Submitted"] == "auto-generated"
    assert set(headers) == {"Auto-Submitted", "X-Auto-Response-Suppress"}
    assert document == {
        "From": ways.FROM_ADDRESS,
        "To": ways.ADDRESS,
        "Subject": ways.SUBJECT,
        "TextBody": f"Open {ways.LINK}\n",
        "HtmlBody": f"<a href='{ways.LINK}'>Open</a>",
        "MessageStream": "outbound",
        "TrackOpens": False,
        "TrackLinks": "None",
        "Metadata": {"notice_ref": ways.REFERENCE},
    }


def test_the_same_envelope_gives_the_same_bytes() -> None:
    sender = postmark("https://api.example.test")
    assert sender.body(email()) == sender.body(email())


@pytest.mark.parametrize(
    "address",
    ["a@example.test,b@example.test", "a,b@example.test", "a;b@example.test", "A <a@b.test>", ""],
)
def test_an_address_that_reads_as_a_list_is_refused_and_nothing_is_posted(address: str) -> None:
    with api(ways.POSTMARK_OK) as peer:
        outcome = send(postmark(peer.url), email(address=address))
    assert outcome == Refused(Detail.INVALID_DESTINATION, "unbuildable")
    assert peer.posts() == 0


def test_a_quoted_address_goes_out_as_it_is() -> None:
    with api(ways.POSTMARK_OK) as peer:
        outcome = send(postmark(peer.url), email(address='"a,b"@example.test'))
    assert isinstance(outcome, Accepted)


@pytest.mark.parametrize(
    ("status", "error", "message", "outcome"),
    [
        (401, 10, "Bad token", stopped(Detail.AUTH_ERROR, 10)),
        (401, 77, "Who are you", stopped(Detail.AUTH_ERROR, 77)),
        (403, 77, "Not for you", stopped(Detail.AUTH_ERROR, 77)),
        (422, 100, "Maintenance", stopped(Detail.PROVIDER_ERROR, 100)),
        (422, 300, "Invalid 'To' address: 'x'.", refused(Detail.INVALID_DESTINATION, 300)),
        (422, 300, "Zero recipients specified", refused(Detail.INVALID_DESTINATION, 300)),
        (422, 300, "Invalid 'From' address.", stopped(Detail.SENDER_REJECTED, 300)),
        (422, 300, "The text is too long", refused(Detail.CONTENT_REJECTED, 300)),
        (422, 400, "No signature", stopped(Detail.SENDER_REJECTED, 400)),
        (422, 401, "Not confirmed", stopped(Detail.SENDER_REJECTED, 401)),
        (422, 402, "Invalid JSON", refused(Detail.CONTENT_REJECTED, 402)),
        (422, 405, "No credits", stopped(Detail.ACCOUNT_SUSPENDED, 405)),
        (422, 406, "Inactive recipient", refused(Detail.BLOCKED, 406)),
        (422, 412, "Pending", stopped(Detail.ACCOUNT_SUSPENDED, 412)),
        (422, 413, "May not send", stopped(Detail.ACCOUNT_SUSPENDED, 413)),
        (422, 429, "Slow down", stopped(Detail.RATE_LIMITED, 429)),
        (422, 1235, "No such stream", stopped(Detail.SENDER_REJECTED, 1235)),
        (422, 9999, "New", refused(Detail.UNCLASSIFIED, 9999)),
        (200, 406, "Inactive recipient", refused(Detail.BLOCKED, 406)),
        (200, 10, "Bad token", stopped(Detail.AUTH_ERROR, 10)),
        (500, 300, "Invalid 'To'", Unknown(Reason.GATEWAY_ERROR, "http_500")),
        (503, 100, "Maintenance", Unknown(Reason.GATEWAY_ERROR, "http_503")),
    ],
)
def test_a_refusal_in_postmarks_words_is_sorted_by_whom_it_is_about(
    status: int, error: int, message: str, outcome: Outcome
) -> None:
    assert answered(status, {"ErrorCode": error, "Message": message}) == outcome


@pytest.mark.parametrize(
    "body",
    [
        {"ErrorCode": 0, "Message": "OK"},
        {"ErrorCode": 0, "MessageID": ""},
        {"ErrorCode": 0, "MessageID": 7},
        {"ErrorCode": 0, "MessageID": "a b"},
        {"ErrorCode": False, "MessageID": ways.MESSAGE_ID},
        {"ErrorCode": "0", "MessageID": ways.MESSAGE_ID},
        {"MessageID": ways.MESSAGE_ID},
    ],
)
def test_p3_a_200_that_is_not_postmarks_yes_is_unknown(body: object) -> None:
    assert answered(200, body) == Unknown(Reason.UNREADABLE_ANSWER, "http_200")


@pytest.mark.parametrize("body", [{"ErrorCode": 0}, {"ErrorCode": "10"}, {"ErrorCode": True}, {}])
def test_p3_a_422_that_is_not_in_postmarks_words_is_unknown(body: object) -> None:
    assert answered(422, body) == Unknown(Reason.GATEWAY_ERROR, "http_422")
