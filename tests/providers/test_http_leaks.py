"""No log line, exception, repr or value of an adapter shows what it was trusted with (P7)."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from notifier.domain.outcome import NotAccepted
from notifier.domain.states import Channel
from notifier.domain.values import Destination
from notifier.ports.asking import Callback, CallbackRefused, Question, ReceiptParser
from notifier.ports.sending import Sender
from notifier.providers.http import BaseUrl, basic
from notifier.timed_http import HttpAnswer
from peers.certificates import Certificate
from tests.providers import http_sending as ways
from tests.providers.http_sending import (
    PLANTED,
    Make,
    asking_postmark,
    asking_resend,
    asking_twilio,
    envelope_for,
)
from tests.providers.scripted_api import Answer, api, reply
from tests.providers.scripted_smtp import Do

ECHO = " ".join(PLANTED)
STARTED = datetime(2033, 5, 1, 12, 0, tzinfo=UTC)
ANSWERS: list[Answer] = [
    ways.POSTMARK_OK,
    ways.RESEND_OK,
    ways.TWILIO_OK,
    Do.CLOSE,
    Do.RESET,
    reply(200, b'{"x":' + ECHO.encode()),
    reply(422, {"ErrorCode": 300, "Message": f"Invalid 'To' address: {ECHO}"}),
    reply(400, {"code": 21211, "message": ECHO, "status": 400}),
    reply(422, {"statusCode": 422, "name": "validation_error", "message": ECHO}),
    reply(422, {"statusCode": 422, "name": ECHO, "message": ECHO}),
    reply(200, {"ErrorCode": 0, "MessageID": ECHO, "sid": ECHO, "status": ECHO}),
    reply(302, ECHO.encode(), f"Location: http://127.0.0.1:1/{ECHO}"),
    reply(500, ECHO.encode(), f"X-Echo: {ECHO}"),
    f"HTTP/1.1 200 {ECHO}\r\nBad Header {ECHO}\r\n\r\n".encode(),
    f"{ECHO}\r\n\r\n".encode(),
]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


def search(*shown: object, logs: pytest.LogCaptureFixture) -> None:
    text = logs.text + "".join(f"{each!r}{each}" for each in shown)
    text += "".join(str(each.__dict__) for each in logs.records)
    assert [each for each in PLANTED if each in text] == []


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("make", [ways.postmark, ways.resend, ways.twilio])
def test_p7_a_send_shows_nothing_of_what_it_carried(
    make: Make, answer: Answer, logged: pytest.LogCaptureFixture
) -> None:
    with api(answer) as peer:
        sender: Sender = make(peer.url)
        line = sender.connect(3.0)
        assert not isinstance(line, NotAccepted)
        envelope = envelope_for(sender, budget_s=3)
        with closing(line):
            outcome = line.send(envelope)
    assert peer.posts() == 1
    search(sender, line, envelope, outcome, logs=logged)


@pytest.mark.parametrize("make", [ways.postmark, ways.resend, ways.twilio])
def test_p7_a_line_that_cannot_be_opened_shows_nothing(
    make: Make, logged: pytest.LogCaptureFixture, certificate: Certificate
) -> None:
    with api(tls=certificate.server()) as peer:
        sender = make(peer.url)
        search(sender.connect(3.0), logs=logged)


@pytest.mark.parametrize("answer", ANSWERS)
def test_p7_a_question_shows_nothing_of_whom_it_was_about(
    answer: Answer, logged: pytest.LogCaptureFixture
) -> None:
    to = Destination(Channel.SMS, ways.NUMBER)
    question = Question(
        Channel.SMS, ways.REFERENCE, STARTED, STARTED + timedelta(seconds=9), destination=to
    )
    shown: list[object] = [question]
    for make in (asking_postmark, asking_resend, asking_twilio):
        with api(answer) as peer, closing(make(peer.url)) as asking:
            shown += [asking, asking.find(question, 3), asking.poll(ways.MESSAGE_ID, 3)]
        assert all(line.startswith("GET ") for line in peer.lines)
    search(*shown, logs=logged)


@pytest.mark.parametrize("make", [asking_postmark, asking_resend, asking_twilio])
def test_p7_a_refused_callback_says_nothing_of_itself(
    make: type, logged: pytest.LogCaptureFixture
) -> None:
    parser: ReceiptParser = make()
    svix = dict.fromkeys(("svix-id", "svix-timestamp", "svix-signature"), ECHO)
    headers = {"Authorization": f"Basic {ECHO}", "X-Twilio-Signature": ECHO, **svix}
    with pytest.raises(CallbackRefused) as refused:
        parser.parse(Callback("http://127.0.0.1/callbacks/x/", headers, ECHO.encode()))
    chain = traceback.TracebackException.from_exception(refused.value)
    search(refused.value, "".join(chain.format()), logs=logged)


def test_p7_nothing_that_holds_a_secret_shows_or_gives_it_away() -> None:
    account = ways.twilio_account()
    shown = [
        account,
        ways.twilio("https://api.example.test"),
        ways.postmark("https://api.example.test"),
        ways.resend("https://api.example.test"),
        asking_resend(),
        HttpAnswer(200, ECHO.encode(), {"x": ECHO}),
        BaseUrl.parse("https://api.example.test"),
    ]
    assert [each for each in PLANTED if each in f"{shown!r}"] == []
    assert basic("u", account.auth_token).startswith("Basic ")
    with pytest.raises(TypeError, match="cannot be serialised"):
        pickle.dumps(account)
