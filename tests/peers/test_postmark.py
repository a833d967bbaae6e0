"""The Postmark stand-in: refusals in its words, messages that can be found, webhooks."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from peers.postmark_words import BOUNCES, COURSES
from peers.testing import PostmarkHandle, running_inbox, running_postmark
from tests.peers.wire import Answer, CallbackAddress, a_callback_address, call, with_query

PASSWORD = "callback-password"
LIST = {"count": 50, "offset": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[PostmarkHandle]:
    with running_postmark() as running:
        yield running


@pytest.fixture
def postmark() -> Iterator[PostmarkHandle]:
    """One of the test's own, for what changes more than its own recipient."""
    with running_postmark() as running:
        yield running


@pytest.fixture
def app(postmark: PostmarkHandle) -> Iterator[CallbackAddress]:
    with a_callback_address() as address:
        postmark.callback_to(f"{address.url}/callbacks/postmark/", PASSWORD)
        yield address


def a_mail(to: str, reference: str = "ref-1", **more: object) -> dict[str, object]:
    return {
        "From": "no-reply@example.test",
        "To": to,
        "Subject": "Reset your password",
        "TextBody": "Open the link.",
        "HtmlBody": "<p>Open the <b>link</b>.</p>",
        "Metadata": {"reference": reference},
        **more,
    }


def send(
    server: PostmarkHandle,
    to: str,
    reference: str = "ref-1",
    timeout_s: float = 5.0,
    token: str | None = None,
    **more: object,
) -> Answer:
    headers = {"X-Postmark-Server-Token": token or server.token, "Content-Type": "application/json"}
    body = json.dumps(a_mail(to, reference, **more)).encode()
    return call(f"{server.base_url}/email", "POST", body, headers, timeout_s)


def ask(server: PostmarkHandle, path: str, **query: object) -> Answer:
    url = with_query(f"{server.base_url}{path}", query)
    return call(url, headers={"X-Postmark-Server-Token": server.token})


def search(server: PostmarkHandle, **query: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(server, "/messages/outbound", **LIST, **query).json()[
        "Messages"
    ]
    return found


def details(server: PostmarkHandle, message_id: object) -> dict[str, Any]:
    found: dict[str, Any] = ask(server, f"/messages/outbound/{message_id}/details").json()
    return found


def events(server: PostmarkHandle, message_id: object) -> list[str]:
    return [event["Type"] for event in details(server, message_id)["MessageEvents"]]


def kept(server: PostmarkHandle, recipient: str) -> int:
    return len(server.stored(recipient=recipient))


def test_a_message_is_taken_delivered_told_and_found_again(
    postmark: PostmarkHandle, app: CallbackAddress
) -> None:
    answer = send(postmark, "Ada <ada@example.test>", "ref-ada")
    taken = answer.json()
    came = app.next()
    told = came.json()
    password = base64.b64decode(came.headers["authorization"].removeprefix("Basic ")).decode()
    assert (answer.status, taken["ErrorCode"]) == (200, 0)
    assert password == f"postmark:{PASSWORD}"
    assert (told["RecordType"], told["MessageID"]) == ("Delivery", taken["MessageID"])
    assert told["Metadata"] == {"reference": "ref-ada"}
    [found] = search(postmark, metadata_reference="ref-ada")
    assert found["MessageID"] == taken["MessageID"]
    assert events(postmark, taken["MessageID"]) == ["Delivered"]
    assert postmark.stored(reference="ref-ada")[0]["recipient"] == "ada@example.test"


def test_a_wrong_token_learns_nothing_and_leaves_nothing(server: PostmarkHandle) -> None:
    answer = send(server, "denied-token@example.test", token="another")
    looked = call(
        with_query(f"{server.base_url}/messages/outbound", LIST),
        headers={"X-Postmark-Server-Token": "another"},
    )
    assert [answer.status, looked.status] == [401, 401]
    assert [answer.json()["ErrorCode"], looked.json()["ErrorCode"]] == [10, 10]
    assert kept(server, "denied-token@example.test") == 0


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"To": "nobody at home"}, 300),
        ({"To": "a@example.test, b@example.test"}, 300),
        ({"From": ""}, 300),
        ({"TextBody": "", "HtmlBody": None}, 300),
        ({"Metadata": {"k" * 21: "v"}}, 300),
        ({"Metadata": {"k": "v" * 81}}, 300),
        ({"MessageStream": "no-such"}, 1235),
    ],
)
def test_a_faulty_message_is_refused_in_its_words(
    server: PostmarkHandle, wrong: dict[str, object], code: int
) -> None:
    answer = send(server, **{"to": "ada@example.test", **wrong})  # type: ignore[arg-type]
    assert (answer.status, answer.json()["ErrorCode"]) == (422, code)


@pytest.mark.parametrize(
    ("fate", "status", "code"),
    [
        ("inactive", 422, 406),
        ("bad-address", 422, 300),
        ("refuse-rcpt", 422, 300),
        ("sender-rejected", 422, 400),
        ("suspended", 422, 405),
        ("denied", 401, 10),
        ("rate-limited", 429, 429),
    ],
)
def test_a_recipient_can_ask_for_a_refusal(
    server: PostmarkHandle, fate: str, status: int, code: int
) -> None:
    recipient = f"{fate}+1@example.test"
    answer = send(server, recipient)
    assert (answer.status, answer.json()["ErrorCode"]) == (status, code)
    assert (server.posts(recipient=recipient), kept(server, recipient)) == (1, 0)
    assert server.journal(phase="final", recipient=recipient)[0]["accepted"] is False


def test_the_rate_limit_says_for_how_long(server: PostmarkHandle) -> None:
    assert send(server, "rate-limited+2@example.test").headers["retry-after"] == "2"


def test_the_second_attempt_is_taken_where_only_the_first_is_put_off(
    server: PostmarkHandle,
) -> None:
    statuses = [send(server, "greylist+1@example.test").status for _ in range(3)]
    assert statuses == [429, 200, 200]


@pytest.mark.parametrize(("fate", "status"), [("unavailable", 503), ("proxy-page", 403)])
def test_a_page_of_somebody_in_between_is_not_in_its_words_and_nothing_is_kept(
    server: PostmarkHandle, fate: str, status: int
) -> None:
    answer = send(server, f"{fate}@example.test")
    assert (answer.status, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert kept(server, f"{fate}@example.test") == 0


@pytest.mark.parametrize(
    ("fate", "number"),
    [
        ("hang-after-accept", 1),
        ("drop-after-accept", 1),
        ("reset-after-accept", 1),
        ("hang-after-dot", 1),
        ("lost-after-accept", 0),
        ("truncate", 1),
    ],
)
def test_no_whole_answer_tells_nothing_of_whether_a_message_was_kept(
    server: PostmarkHandle, fate: str, number: int
) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        send(server, f"{fate}+1@example.test", fate, timeout_s=0.3)
    assert len(search(server, metadata_reference=fate)) == number
    assert server.journal(phase="final", reference=fate)[0]["accepted"] is None


def test_a_reset_is_a_reset(server: PostmarkHandle) -> None:
    with pytest.raises(ConnectionResetError):
        send(server, "reset-after-accept+2@example.test")


@pytest.mark.parametrize(("fate", "status"), [("error-after-accept", 500), ("junk", 200)])
def test_an_answer_that_nobody_can_read_leaves_a_message_that_was_kept(
    server: PostmarkHandle, fate: str, status: int
) -> None:
    answer = send(server, f"{fate}@example.test")
    with pytest.raises(ValueError, match="Expecting value"):
        answer.json()
    assert (answer.status, kept(server, f"{fate}@example.test")) == (status, 1)


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        ("bounce-hard", [("Bounce", "HardBounce")]),
        ("bounce-soft", [("Bounce", "Transient"), ("Delivery", None)]),
        ("mailbox-full", [("Bounce", "SoftBounce")]),
        ("blocked", [("Bounce", "Blocked")]),
        ("complaint", [("Delivery", None), ("SpamComplaint", "SpamComplaint")]),
        ("reordered", [("Delivery", None), ("Bounce", "Transient")]),
        ("duplicate", [("Delivery", None)] * 3),
        ("unsubscribe", [("Delivery", None), ("SubscriptionChange", None)]),
    ],
)
def test_a_recipient_can_ask_for_what_the_webhooks_tell(
    postmark: PostmarkHandle, app: CallbackAddress, fate: str, words: list[tuple[str, str | None]]
) -> None:
    send(postmark, f"{fate}@example.test")
    came = [app.next().json() for _ in words]
    assert [(told["RecordType"], told.get("Type")) for told in came] == words


def test_callbacks_can_come_at_once(postmark: PostmarkHandle, app: CallbackAddress) -> None:
    send(postmark, "batched@example.test")
    assert {app.next().json()["RecordType"] for _ in range(3)} == {"Bounce", "Delivery", "Open"}
    times = [str(entry["at"]) for entry in postmark.wait_for(count=3, phase="callback")]
    first, last = (datetime.fromisoformat(at) for at in (min(times), max(times)))
    assert last - first < timedelta(seconds=0.3)


def test_the_callback_can_come_before_the_answer(
    postmark: PostmarkHandle, app: CallbackAddress
) -> None:
    send(postmark, "callback-first@example.test")
    assert app.next().json()["RecordType"] == "Delivery"
    phases = [entry["phase"] for entry in postmark.journal()]
    assert phases.index("callback") < phases.index("final")


def test_a_callback_can_come_late_while_a_poll_already_knows(
    postmark: PostmarkHandle, app: CallbackAddress
) -> None:
    taken = send(postmark, "late-1+x@example.test").json()
    postmark.wait_for(phase="event", word="Delivered")
    assert events(postmark, taken["MessageID"]) == ["Delivered"]
    assert postmark.journal(phase="callback") == []
    assert app.next().json()["MessageID"] == taken["MessageID"]


def test_a_stranger_s_callback_names_no_message_of_ours(
    postmark: PostmarkHandle, app: CallbackAddress
) -> None:
    taken = send(postmark, "stranger@example.test").json()
    stranger, ours = app.next().json(), app.next().json()
    assert (stranger["Metadata"], ours["MessageID"]) == ({}, taken["MessageID"])
    assert stranger["MessageID"] != taken["MessageID"]
    assert events(postmark, taken["MessageID"]) == ["Delivered"]


@pytest.mark.parametrize(("fate", "status"), [("lost", "Queued"), ("accept", "Sent")])
def test_some_messages_are_never_heard_of_again(
    server: PostmarkHandle, fate: str, status: str
) -> None:
    taken = send(server, f"{fate}@example.test").json()
    server.wait_for(phase="final", recipient=f"{fate}@example.test")
    if status == "Sent":
        server.wait_for(phase="event", word="Sent", recipient=f"{fate}@example.test")
    found = details(server, taken["MessageID"])
    assert (found["Status"], found["MessageEvents"]) == (status, [])


def test_a_webhook_that_is_not_taken_comes_again_but_not_after_403(
    postmark: PostmarkHandle, app: CallbackAddress
) -> None:
    app.statuses = [503, 403]
    send(postmark, "ada@example.test")
    tries = postmark.wait_for(count=2, phase="callback")
    assert [(entry["attempt"], entry["status"]) for entry in tries] == [(1, 503), (2, 403)]
    assert app.next().body == app.next().body


def test_an_address_that_bounced_hard_is_inactive(postmark: PostmarkHandle) -> None:
    send(postmark, "bounce-hard+9@example.test")
    postmark.wait_for(phase="event", word="HardBounce")
    again = send(postmark, "bounce-hard+9@example.test")
    assert (again.status, again.json()["ErrorCode"]) == (422, 406)
    [bounce] = ask(postmark, "/bounces", **LIST).json()["Bounces"]
    assert (bounce["Type"], bounce["Inactive"]) == ("HardBounce", True)
    assert ask(postmark, f"/bounces/{bounce['ID']}").json() == bounce


def test_a_search_filters_pages_and_wants_its_parameters(postmark: PostmarkHandle) -> None:
    for number in range(3):
        send(postmark, f"p{number}@example.test", f"ref-{number}")
    [one] = search(postmark, recipient="P1@example.test")
    page = ask(postmark, "/messages/outbound", count=1, offset=1).json()
    assert one["Metadata"] == {"reference": "ref-1"}
    assert (page["TotalCount"], page["Messages"][0]["Recipients"]) == (3, ["p1@example.test"])
    assert search(postmark, metadata_reference="ref-9") == []
    assert ask(postmark, "/messages/outbound").status == 422
    assert ask(postmark, "/messages/outbound", count=501, offset=0).status == 422
    two = ask(postmark, "/messages/outbound", **LIST, metadata_a="1", metadata_b="2")
    assert two.status == 422


def test_times_in_a_search_are_eastern_and_inclusive(postmark: PostmarkHandle) -> None:
    send(postmark, "ada@example.test")
    eastern = datetime.now(UTC).astimezone(ZoneInfo("America/New_York"))
    earlier, later = eastern - timedelta(minutes=5), eastern + timedelta(minutes=5)
    assert len(search(postmark, fromdate=f"{earlier:%Y-%m-%dT%H:%M:%S}")) == 1
    assert len(search(postmark, todate=f"{later:%Y-%m-%dT%H:%M:%S}")) == 1
    assert search(postmark, fromdate=f"{later:%Y-%m-%dT%H:%M:%S}") == []
    assert search(postmark, todate=f"{earlier:%Y-%m-%dT%H:%M:%S}") == []


def test_a_message_can_be_invisible_to_looks_for_a_while(postmark: PostmarkHandle) -> None:
    with pytest.raises(TimeoutError):
        send(postmark, "unseen-1@example.test", timeout_s=0.2)
    assert len(postmark.stored()) == 1
    assert search(postmark, metadata_reference="ref-1") == []
    deadline = time.monotonic() + 5
    while not search(postmark, metadata_reference="ref-1"):
        assert time.monotonic() < deadline


def test_a_held_message_is_kept_and_answered_when_released(postmark: PostmarkHandle) -> None:
    answers: list[int] = []
    caller = threading.Thread(
        target=lambda: answers.append(send(postmark, "hold@example.test").status)
    )
    caller.start()
    [held] = postmark.wait_for(phase="held")
    assert (held["recipient"], len(postmark.stored()), answers) == ("hold@example.test", 1, [])
    assert postmark.release() == 1
    caller.join(5)
    assert answers == [200]


def test_looks_can_be_scripted(postmark: PostmarkHandle) -> None:
    send(postmark, "ada@example.test")
    for fate in ("unavailable", "empty", "denied", "limited"):
        postmark.script_looks(fate, times=1)
    statuses = [ask(postmark, "/messages/outbound", **LIST).status for _ in range(4)]
    assert (statuses, len(search(postmark))) == ([503, 200, 401, 429], 1)


def test_courses_can_be_scripted_for_anybody_and_forgotten(postmark: PostmarkHandle) -> None:
    postmark.script("inactive", recipient="ada@example.test")
    postmark.script("denied", times=1)
    whom = ["bo@example.test", "bo@example.test", "ada@example.test"]
    assert [send(postmark, to).status for to in whom] == [401, 200, 422]
    postmark.clear()
    assert send(postmark, "ada@example.test").status == 200


def test_a_test_can_tell_of_anything_and_learns_what_the_app_answered(
    postmark: PostmarkHandle, app: CallbackAddress
) -> None:
    taken = send(postmark, "accept@example.test").json()
    app.statuses = [401]
    assert postmark.tell(taken["MessageID"], "SpamComplaint") == [401]
    assert postmark.tell(taken["MessageID"], "Delivered", told=2) == [204, 204]
    assert events(postmark, taken["MessageID"]) == ["SpamComplaint", "Delivered"]


def test_its_own_test_token_takes_a_message_that_cannot_be_found(server: PostmarkHandle) -> None:
    answer = send(server, "nobody@example.test", "ref-test", token="POSTMARK_API_TEST")
    assert (answer.status, answer.json()["ErrorCode"]) == (200, 0)
    assert search(server, metadata_reference="ref-test") == []


def test_what_is_delivered_can_be_read_in_the_inbox() -> None:
    with running_inbox() as inbox, running_postmark(inbox_url=inbox.url) as postmark:
        send(postmark, "ada@example.test")
        inbox.wait_for(phase="mail", via="Postmark")
        [mail] = inbox.messages("ada@example.test")
    assert (mail["subject"], mail["via"]) == ("Reset your password", "Postmark")
    assert mail["text"] == "Open the link.\n"
    assert mail["html"] == "<p>Open the <b>link</b>.</p>\n"


def test_it_runs_as_a_process_of_its_own() -> None:
    with running_postmark(process=True) as postmark:
        assert send(postmark, "ada@example.test").status == 200
        assert len(postmark.stored(recipient="ada@example.test")) == 1


def test_every_bounce_that_a_course_can_meet_has_its_type_code() -> None:
    known = {"Sent", "Delivered", "Open", "SubscriptionChange", *BOUNCES}
    assert {step.word for course in COURSES.values() for step in course.steps} <= known
