"""The Twilio stand-in: refusals in its words, texts that can be found, signed callbacks."""

from __future__ import annotations

import base64
import http.client
import importlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from peers.auth_service import made_up_person
from peers.testing import TwilioHandle, running_inbox, running_twilio
from peers.twilio_words import BY_DIGITS, COURSES, fate_of_number, number_for, signature
from tests.peers.wire import Answer, CallbackAddress, a_callback_address, call, with_query

SENDER = "+447700900001"
RequestValidator = importlib.import_module("twilio.request_validator").RequestValidator
"""Twilio's own check of a signature; the package brings no types."""


@pytest.fixture(scope="module")
def account() -> Iterator[TwilioHandle]:
    with running_twilio() as running:
        yield running


@pytest.fixture
def twilio() -> Iterator[TwilioHandle]:
    """One of the test's own, for what changes more than its own recipient."""
    with running_twilio() as running:
        yield running


@pytest.fixture
def app() -> Iterator[CallbackAddress]:
    with a_callback_address() as address:
        yield address


def collection(twilio: TwilioHandle) -> str:
    return f"{twilio.base_url}/2010-04-01/Accounts/{twilio.account_sid}/Messages.json"


def proof(twilio: TwilioHandle, token: str | None = None) -> dict[str, str]:
    both = f"{twilio.account_sid}:{token or twilio.auth_token}"
    return {"Authorization": "Basic " + base64.b64encode(both.encode()).decode()}


def send(
    twilio: TwilioHandle,
    to: str,
    *,
    timeout_s: float = 5.0,
    token: str | None = None,
    **more: object,
) -> Answer:
    fields = {"To": to, "From": SENDER, "Body": "Open the link.", **more}
    form = urlencode({name: value for name, value in fields.items() if value is not None})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return call(collection(twilio), "POST", form.encode(), proof(twilio, token) | kind, timeout_s)


def listed(twilio: TwilioHandle, **query: object) -> list[dict[str, Any]]:
    answer = call(with_query(collection(twilio), query), headers=proof(twilio))
    found: list[dict[str, Any]] = answer.json()["messages"]
    return found


def fetched(twilio: TwilioHandle, sid: object) -> dict[str, Any]:
    url = collection(twilio).replace(".json", f"/{sid}.json")
    found: dict[str, Any] = call(url, headers=proof(twilio)).json()
    return found


def callback_url(app: CallbackAddress, reference: str = "ref-1") -> str:
    return f"{app.url}/callbacks/twilio/{reference}"


def next_fields(app: CallbackAddress) -> dict[str, str]:
    return app.next().form()


def test_a_text_is_queued_sent_delivered_and_each_step_but_the_first_is_told(
    twilio: TwilioHandle, app: CallbackAddress
) -> None:
    answer = send(twilio, "+447700900010", StatusCallback=callback_url(app))
    made = answer.json()
    told = [next_fields(app) for _ in range(2)]
    assert (answer.status, made["status"], made["date_sent"]) == (201, "queued", None)
    assert [each["MessageStatus"] for each in told] == ["sent", "delivered"]
    assert {each["MessageSid"] for each in told} == {made["sid"]}
    now = fetched(twilio, made["sid"])
    assert (now["status"], now["error_code"]) == ("delivered", None)
    assert parsedate_to_datetime(now["date_sent"]) <= datetime.now(UTC)
    assert twilio.stored(reference="ref-1")[0]["recipient"] == "+447700900010"


def test_the_signature_is_the_one_that_twilio_s_own_package_expects(
    twilio: TwilioHandle, app: CallbackAddress
) -> None:
    url = callback_url(app) + "?a=1&b=%20"
    send(twilio, "+447700900050", StatusCallback=url)
    validator = RequestValidator(twilio.auth_token)
    for word in ("sent", "undelivered"):
        came = app.next()
        assert came.form()["MessageStatus"] == word
        assert validator.validate(url, came.form(), came.headers["x-twilio-signature"])
        assert not validator.validate(f"{url}1", came.form(), came.headers["x-twilio-signature"])


def test_the_signature_agrees_for_any_fields() -> None:
    fields = {"To": "+44", "body": "é ü 😀", "Empty": "", "A": "b c&d=e"}
    url = "https://notices.example.test/callbacks/twilio/ref-1?x=%41"
    expected = RequestValidator("token").compute_signature(url, fields)
    assert signature("token", url, fields) == expected


def test_a_wrong_token_learns_nothing_and_leaves_nothing(account: TwilioHandle) -> None:
    answer = send(account, "+447700900011", token="another")
    looked = call(collection(account), headers=proof(account, "another"))
    assert [answer.status, looked.status] == [401, 401]
    assert [answer.json()["code"], looked.json()["code"]] == [20003, 20003]
    assert account.stored(recipient="+447700900011") == []


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"To": ""}, 21604),
        ({"To": "07700 900001"}, 21211),
        ({"From": None}, 21603),
        ({"Body": ""}, 21602),
        ({"Body": "x" * 1601}, 21617),
        ({"ValidityPeriod": 0}, 21624),
        ({"ValidityPeriod": 36_001}, 21624),
        ({"StatusCallback": "not an address"}, 21609),
    ],
)
def test_a_faulty_text_is_refused_in_its_words(
    account: TwilioHandle, wrong: dict[str, object], code: int
) -> None:
    fields: dict[str, Any] = {"To": "+447700900012", **wrong}
    answer = send(account, fields.pop("To"), **fields)
    assert (answer.status, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [
        ("+447700900152", 400, 21211),
        ("+447700900153", 400, 21610),
        ("+447700900154", 429, 20429),
        ("+447700900162", 401, 20003),
        ("+447700900174", 400, 21606),
        ("+447700900176", 400, 21408),
    ],
)
def test_a_number_can_ask_for_a_refusal(
    account: TwilioHandle, number: str, status: int, code: int
) -> None:
    answer = send(account, number)
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert (account.posts(recipient=number), account.stored(recipient=number)) == (1, [])


@pytest.mark.parametrize(
    ("number", "count"),
    [
        ("+447700900155", 1),
        ("+447700900156", 1),
        ("+447700900164", 1),
        ("+447700900177", 1),
        ("+447700900178", 0),
    ],
)
def test_no_whole_answer_tells_nothing_of_whether_a_text_was_kept(
    account: TwilioHandle, number: str, count: int
) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        send(account, number, timeout_s=0.3)
    assert len(listed(account, To=number)) == count
    assert account.journal(phase="final", recipient=number)[0]["accepted"] is None


@pytest.mark.parametrize(("digits", "status", "count"), [(57, 500, 1), (63, 503, 0), (65, 200, 1)])
def test_an_answer_that_is_not_in_its_words_tells_as_little(
    account: TwilioHandle, digits: int, status: int, count: int
) -> None:
    answer = send(account, f"+4477009001{digits}")
    assert answer.status // 100 == status // 100
    with pytest.raises(ValueError, match="Expecting value"):
        answer.json()
    assert len(listed(account, To=f"+4477009001{digits}")) == count


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        (50, [("sent", None), ("undelivered", "30003")]),
        (51, [("sent", None), ("failed", "30007")]),
        (67, [("sent", None)] * 3 + [("delivered", None)] * 3),
        (68, [("delivered", None), ("sent", None)]),
        (73, [("sent", None), ("undelivered", "30004")]),
    ],
)
def test_a_number_can_ask_for_what_the_callbacks_tell(
    account: TwilioHandle,
    app: CallbackAddress,
    digits: int,
    words: list[tuple[str, str | None]],
) -> None:
    send(account, f"+4477009002{digits}", StatusCallback=callback_url(app))
    told = [next_fields(app) for _ in words]
    assert [(each["MessageStatus"], each.get("ErrorCode")) for each in told] == words


def test_a_text_that_waits_longer_than_its_validity_is_dropped(
    account: TwilioHandle, app: CallbackAddress
) -> None:
    url = callback_url(app)
    made = send(account, "+447700900358", StatusCallback=url, ValidityPeriod=1).json()
    told = next_fields(app)
    assert (told["MessageStatus"], told["ErrorCode"]) == ("failed", "30036")
    found = fetched(account, made["sid"])
    assert (found["status"], found["error_code"], found["date_sent"]) == ("failed", 30036, None)


def test_the_callback_can_come_before_the_answer(
    twilio: TwilioHandle, app: CallbackAddress
) -> None:
    made = send(twilio, "+447700900066", StatusCallback=callback_url(app)).json()
    assert [next_fields(app)["MessageStatus"] for _ in range(2)] == ["sent", "delivered"]
    phases = [entry["phase"] for entry in twilio.journal()]
    assert phases.index("callback") < phases.index("final")
    assert made["status"] == "queued"


def test_a_stranger_s_callback_is_genuine_and_about_nothing_of_ours(
    twilio: TwilioHandle, app: CallbackAddress
) -> None:
    made = send(twilio, "+447700900070", StatusCallback=callback_url(app)).json()
    came = app.next()
    url = f"{app.url}{came.path}"
    validator = RequestValidator(twilio.auth_token)
    assert came.path == "/callbacks/twilio/xxxxx"
    assert came.form()["MessageSid"] != made["sid"]
    assert validator.validate(url, came.form(), came.headers["x-twilio-signature"])


@pytest.mark.parametrize(("digits", "status"), [(59, "queued"), (71, "delivered")])
def test_some_texts_are_never_told_of(
    account: TwilioHandle, app: CallbackAddress, digits: int, status: str
) -> None:
    number = f"+4477009004{digits}"
    made = send(account, number, StatusCallback=callback_url(app)).json()
    if status == "delivered":
        account.wait_for(phase="event", word="delivered", recipient=number)
    assert fetched(account, made["sid"])["status"] == status
    assert account.journal(phase="callback", recipient=number) == []


def test_a_callback_is_posted_again_only_where_no_answer_came(
    twilio: TwilioHandle, app: CallbackAddress
) -> None:
    app.statuses = [500]
    url = callback_url(app)
    made = send(twilio, "+447700900020", StatusCallback=url).json()
    [sent, delivered] = twilio.wait_for(count=2, phase="callback")
    assert [(e["status"], e["attempt"]) for e in (sent, delivered)] == [(500, 1), (204, 1)]
    app.close()
    twilio.tell(made["sid"], "read")
    tries = twilio.wait_for(count=2, phase="callback", word="read")
    assert [(e["status"], e["attempt"]) for e in tries] == [(None, 1), (None, 2)]


def test_a_list_filters_by_number_sender_and_day_and_pages(twilio: TwilioHandle) -> None:
    for _ in range(3):
        send(twilio, "+447700900030")
    send(twilio, "+447700900031")
    twilio.wait_for(count=4, phase="event", word="sent")
    now = datetime.now(UTC)
    today, tomorrow = f"{now:%Y-%m-%d}", f"{now + timedelta(days=1):%Y-%m-%d}"
    number = "+447700900030"
    assert len(listed(twilio, To=number)) == 3
    assert len(listed(twilio, To=number, From=SENDER, DateSent=today)) == 3
    assert len(listed(twilio, To=number, **{"DateSent<": tomorrow, "DateSent>": today})) == 3
    assert listed(twilio, To=number, **{"DateSent>": tomorrow}) == []
    assert listed(twilio, To=number, From="+447700900002") == []
    query = {"To": number, "PageSize": 2}
    page = call(with_query(collection(twilio), query), headers=proof(twilio)).json()
    following = call(twilio.base_url + page["next_page_uri"], headers=proof(twilio)).json()
    assert [len(page["messages"]), len(following["messages"])] == [2, 1]
    assert following["next_page_uri"] is None


def test_a_queued_text_has_no_date_and_no_date_filter_finds_it(account: TwilioHandle) -> None:
    number = "+447700900379"
    send(account, number)
    assert [found["date_sent"] for found in listed(account, To=number)] == [None]
    assert listed(account, To=number, DateSent=f"{datetime.now(UTC):%Y-%m-%d}") == []


def test_a_message_that_is_not_there_is_not_found(account: TwilioHandle) -> None:
    assert fetched(account, "SM" + "0" * 32)["code"] == 20404


def test_a_held_text_is_kept_and_answered_when_released(twilio: TwilioHandle) -> None:
    answers: list[int] = []
    caller = threading.Thread(target=lambda: answers.append(send(twilio, "+447700900061").status))
    caller.start()
    twilio.wait_for(phase="held", recipient="+447700900061")
    assert (len(twilio.stored()), answers) == (1, [])
    assert twilio.release() == 1
    caller.join(5)
    assert answers == [201]


def test_a_messaging_service_accepts_and_calls_back_to_its_own_address(
    twilio: TwilioHandle, app: CallbackAddress
) -> None:
    twilio.callback_to(callback_url(app))
    service = "MG" + "1" * 32
    made = send(twilio, "+447700900021", From=None, MessagingServiceSid=service).json()
    assert made["status"] == "accepted"
    assert next_fields(app)["MessagingServiceSid"] == service


def test_what_is_delivered_can_be_read_in_the_inbox() -> None:
    with running_inbox() as inbox, running_twilio(inbox_url=inbox.url) as twilio:
        send(twilio, "+447700900022")
        [text] = inbox.wait_for(phase="text")
    assert text["recipient"] == "+447700900022"


def test_it_runs_as_a_process_of_its_own() -> None:
    with running_twilio(process=True) as twilio:
        assert send(twilio, "+447700900023").status == 201
        assert len(twilio.stored(recipient="+447700900023")) == 1


def test_every_number_s_fate_has_a_course_and_every_fate_a_number() -> None:
    assert set(BY_DIGITS.values()) <= set(COURSES)
    for fate in {*BY_DIGITS.values(), "deliver"}:
        assert {fate_of_number(number_for(fate, choice)) for choice in range(500)} == {fate}


def test_made_up_people_have_numbers_that_are_delivered_unless_they_ask_for_another_fate() -> None:
    plain = [made_up_person(f"rr-{number}").sms for number in range(200)]
    asking = made_up_person("text:filtered:mail:bounce-hard:rr-1")
    assert {fate_of_number(str(number)) for number in plain} == {"deliver"}
    assert fate_of_number(str(asking.sms)) == "filtered"
    assert str(asking.email).startswith("bounce-hard+")


def test_the_path_of_an_account_is_the_account_s_own(account: TwilioHandle) -> None:
    url = collection(account).replace(account.account_sid, "AC" + "0" * 32)
    assert urlsplit(url).path != urlsplit(collection(account)).path
    assert call(url, headers=proof(account)).json()["code"] == 20404
