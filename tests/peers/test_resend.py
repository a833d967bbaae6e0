"""The Resend stand-in: keys as it keeps them, refusals in its words, signed webhooks."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping

import pytest
from svix.webhooks import Webhook

from peers.resend import SENDING_KEY
from peers.resend_words import COURSES, EVENT_WORDS
from peers.testing import ResendHandle, running_inbox, running_resend
from tests.peers.wire import Answer, CallbackAddress, a_callback_address, call

SECRET = "whsec_" + base64.b64encode(b"a secret of a stand-in").decode()


@pytest.fixture(scope="module")
def server() -> Iterator[ResendHandle]:
    with running_resend() as running:
        yield running


@pytest.fixture
def telling() -> Iterator[ResendHandle]:
    """One of the test's own: what it tells is about that test's messages alone."""
    with running_resend() as running:
        yield running


@pytest.fixture
def app(telling: ResendHandle) -> Iterator[CallbackAddress]:
    with a_callback_address() as address:
        telling.callback_to(f"{address.url}/callbacks/resend/", SECRET)
        yield address


def a_mail(to: str, reference: str = "ref-1", **more: object) -> dict[str, object]:
    return {
        "from": "no-reply@example.test",
        "to": [to],
        "subject": "Reset your password",
        "text": "Open the link.",
        "html": "<p>Open the <b>link</b>.</p>",
        "tags": [{"name": "notice_ref", "value": reference}],
        **more,
    }


def send(
    server: ResendHandle,
    mail: Mapping[str, object],
    key: str | None = None,
    *,
    api_key: str | None = None,
    timeout_s: float = 5.0,
) -> Answer:
    headers = {"authorization": f"Bearer {api_key or server.api_key}"}
    headers |= {} if key is None else {"idempotency-key": key}
    body = json.dumps(mail).encode()
    return call(f"{server.url}/emails", "POST", body, headers, timeout_s)


def name_of(answer: Answer) -> tuple[int, str]:
    told = answer.json()
    assert told["statusCode"] == answer.status
    return answer.status, told["name"]


def test_the_same_request_under_the_same_key_gets_the_first_answer_and_makes_no_second(
    server: ResendHandle,
) -> None:
    mail = a_mail("twice@example.test")
    first, again = send(server, mail, "key-1"), send(server, mail, "key-1")

    assert first.status == again.status == 200
    assert first.json() == again.json()
    assert server.posts(recipient="twice@example.test") == 2
    assert len(server.stored(recipient="twice@example.test")) == 1


def test_without_a_key_each_request_makes_a_message(server: ResendHandle) -> None:
    mail = a_mail("keyless@example.test")
    assert send(server, mail).json() != send(server, mail).json()
    assert len(server.stored(recipient="keyless@example.test")) == 2


def test_other_content_under_a_used_key_is_refused(server: ResendHandle) -> None:
    send(server, a_mail("other@example.test"), "key-2")
    answer = send(server, a_mail("other@example.test", subject="Another"), "key-2")

    assert name_of(answer) == (409, "invalid_idempotent_request")
    assert len(server.stored(recipient="other@example.test")) == 1


def test_a_key_whose_first_request_still_runs_is_refused(server: ResendHandle) -> None:
    mail = a_mail("hold+running@example.test")
    first = threading.Thread(target=send, args=(server, mail, "key-3"), daemon=True)
    first.start()
    [held] = server.wait_for(phase="held", recipient="hold+running@example.test")

    assert name_of(send(server, mail, "key-3")) == (409, "concurrent_idempotent_requests")
    server.release(int(str(held["id"])))
    first.join(5)

    assert send(server, mail, "key-3").status == 200
    assert len(server.stored(recipient="hold+running@example.test")) == 1


def test_a_request_that_never_arrived_leaves_its_key_free(server: ResendHandle) -> None:
    address = "lost-once@example.test"
    server.script("lost-after-accept", recipient=address, times=1)
    with pytest.raises(OSError, match=r"Remote end|reset"):
        send(server, a_mail(address), "key-4")
    assert send(server, a_mail(address), "key-4").status == 200
    assert len(server.stored(recipient=address)) == 1


def test_a_refused_request_leaves_its_key_free(server: ResendHandle) -> None:
    mail = a_mail("greylist+key@example.test")
    assert name_of(send(server, mail, "key-5")) == (429, "rate_limit_exceeded")
    assert send(server, mail, "key-5").status == 200


def test_how_repetitions_are_answered_is_scripted_apart(server: ResendHandle) -> None:
    mail = a_mail("again@example.test")
    first = send(server, mail, "key-6")
    server.script_replays("unavailable", recipient="again@example.test", times=1)

    assert send(server, mail, "key-6").status == 503
    assert send(server, mail, "key-6").json() == first.json()


@pytest.mark.parametrize("key", ["", "k" * 257])
def test_a_key_of_no_use_is_refused(server: ResendHandle, key: str) -> None:
    answer = send(server, a_mail("bad-key@example.test"), key)
    assert name_of(answer) == (400, "invalid_idempotency_key")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"from": "nobody"}, 422),
        ({"to": []}, 422),
        ({"subject": ""}, 422),
        ({"text": None, "html": None}, 422),
        ({"tags": [{"name": "a b", "value": "x"}]}, 422),
    ],
)
def test_a_mail_that_is_not_whole_is_refused(
    server: ResendHandle, change: dict[str, object], status: int
) -> None:
    answer = send(server, {**a_mail("faulty@example.test"), **change})
    assert name_of(answer) == (status, "validation_error")


def test_a_key_that_may_only_send_cannot_read(server: ResendHandle) -> None:
    sent = send(server, a_mail("only@example.test"), api_key=SENDING_KEY).json()
    for key, told in ((SENDING_KEY, "restricted_api_key"), ("re_wrong", "invalid_api_key")):
        answer = call(
            f"{server.url}/emails/{sent['id']}", headers={"authorization": f"Bearer {key}"}
        )
        assert name_of(answer)[1] == told
    assert name_of(send(server, a_mail("x@example.test"), api_key="re_wrong"))[0] == 403


def test_a_message_is_read_by_its_id_with_its_last_event(server: ResendHandle) -> None:
    sent = send(server, a_mail("silent+read@example.test")).json()
    server.wait_for(phase="event", message_id=sent["id"], word="delivered")
    headers = {"authorization": f"Bearer {server.api_key}"}

    told = call(f"{server.url}/emails/{sent['id']}", headers=headers).json()
    unknown = call(f"{server.url}/emails/none", headers=headers)

    assert (told["id"], told["last_event"]) == (sent["id"], "delivered")
    assert "tags" not in told
    assert name_of(unknown) == (404, "not_found")


def test_webhooks_are_signed_as_the_vendors_library_verifies_them(
    telling: ResendHandle, app: CallbackAddress
) -> None:
    sent = send(telling, a_mail("bounce-hard+hook@example.test", "ref-9")).json()
    came = app.next()

    Webhook(SECRET).verify(came.body, came.headers)  # raises where it is not genuine
    told = json.loads(came.body)

    assert told["type"] == "email.bounced"
    assert told["data"]["email_id"] == sent["id"]
    assert told["data"]["tags"] == {"notice_ref": "ref-9"}
    assert told["data"]["bounce"]["subType"] == "NoEmail"


def test_an_event_that_is_told_again_has_the_same_id(
    telling: ResendHandle, app: CallbackAddress
) -> None:
    send(telling, a_mail("duplicate+hook@example.test"))
    came = [app.next() for _ in range(3)]
    assert len({each.headers["svix-id"] for each in came}) == 1


def test_what_was_delivered_can_be_read_in_the_inbox() -> None:
    with running_inbox() as inbox, running_resend(inbox_url=inbox.url) as server:
        send(server, a_mail("reader@example.test"))
        inbox.wait_for(phase="mail", via="Resend")
        [mail] = inbox.messages("reader@example.test")
    assert (mail["subject"], mail["via"]) == ("Reset your password", "Resend")


def test_it_runs_in_a_process_of_its_own() -> None:
    with running_resend("re_of_a_test", process=True) as server:
        assert send(server, a_mail("alone@example.test")).status == 200


def test_every_event_of_every_course_is_a_word_of_resends() -> None:
    words = {step.word for course in COURSES.values() for step in course.steps}
    assert words - EVENT_WORDS == {"brewing"}
