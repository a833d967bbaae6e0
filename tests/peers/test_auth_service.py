"""The auth service answers what the contract says, and only to callers that sign."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from peers.auth_service import fates_of
from peers.events import Posted, body_of, signed_headers
from peers.testing import AuthHandle, running_auth_service

SECRET = "whsec_" + "c3RhbmQtaW4tc2VjcmV0LWZvci10ZXN0cw=="
OTHER = "whsec_" + "YW5vdGhlci1zZWNyZXQtZm9yLXRlc3Rz"


@pytest.fixture
def auth() -> Iterator[AuthHandle]:
    with running_auth_service(SECRET, OTHER) as running:
        yield running


def ask(
    auth: AuthHandle,
    reset_request_id: str,
    *,
    secret: str = SECRET,
    channel: str = "email",
    timeout: float = 5.0,
) -> Posted:
    question = {"reset_request_id": reset_request_id, "event_id": "evt-1"}
    body = body_of(question | {"channel": channel, "purpose": "send"})
    address = urlsplit(auth.link_url)
    caller = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=timeout)
    try:
        caller.request("POST", address.path, body, signed_headers(secret, body))
        answer = caller.getresponse()
        return Posted(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        caller.close()


def test_the_same_request_gets_the_same_link_and_another_another(auth: AuthHandle) -> None:
    first, again, other = (ask(auth, name).json() for name in ("rr-1", "rr-1", "rr-2"))
    assert first == again
    assert first["reset_url"].startswith("https://")
    assert first["destination"].endswith("@example.test")
    assert other["reset_url"] != first["reset_url"]


def test_a_text_goes_to_a_number_kept_for_fiction(auth: AuthHandle) -> None:
    assert ask(auth, "rr-1", channel="sms").json()["destination"].startswith("+447700900")


def test_any_of_several_secrets_may_sign_and_no_other(auth: AuthHandle) -> None:
    assert ask(auth, "rr-1", secret=OTHER).status == 200
    assert ask(auth, "rr-1", secret="whsec_d3Jvbmc=").status == 401
    assert [entry["why"] for entry in auth.journal(phase="refused")] == [
        "No matching signature found"
    ]


@pytest.mark.parametrize(
    ("fate", "status", "reason"),
    [
        ("no-destination", 404, "no_destination"),
        ("not-permitted", 404, "not_permitted"),
        ("bare-404", 404, None),
        ("used", 410, "used"),
        ("superseded", 410, "superseded"),
        ("revoked", 410, "revoked"),
        ("expired", 410, "expired"),
        ("error", 500, None),
        ("unavailable", 503, None),
    ],
)
def test_an_id_asks_for_its_answer(
    auth: AuthHandle, fate: str, status: int, reason: str | None
) -> None:
    answer = ask(auth, f"link:{fate}:rr-1")
    assert (answer.status, answer.json().get("reason")) == (status, reason)


def test_an_id_asks_for_the_fate_of_its_mail_too(auth: AuthHandle) -> None:
    answer = ask(auth, "mail:hang-after-dot:rr-1")
    assert answer.json()["destination"].startswith("hang-after-dot+")
    assert fates_of("link:slow:mail:hold:rr:1") == {"link": "slow", "mail": "hold"}
    assert fates_of("mail:rr-1") == {}


def test_answers_that_are_none(auth: AuthHandle) -> None:
    with pytest.raises(json.JSONDecodeError):
        ask(auth, "link:malformed:rr-1").json()
    with pytest.raises(http.client.RemoteDisconnected):
        ask(auth, "link:drop:rr-1")
    with pytest.raises(http.client.IncompleteRead):
        ask(auth, "link:truncate:rr-1")
    with pytest.raises(TimeoutError):
        ask(auth, "link:hang:rr-1", timeout=0.2)


def test_a_held_answer_comes_when_it_is_released(auth: AuthHandle) -> None:
    got: list[Posted] = []
    caller = threading.Thread(target=lambda: got.append(ask(auth, "link:hold:rr-1")))
    caller.start()
    [entry] = auth.wait_for(phase="held")
    assert got == []
    auth.release(int(str(entry["id"])))
    caller.join(5)
    assert got[0].status == 200
    assert auth.held() == []


def test_people_and_answers_can_be_told_from_outside(auth: AuthHandle) -> None:
    auth.person("rr-1", email="ada@example.test", name="Ada", expires_at="2030-01-01T00:00:00Z")
    auth.script(reset_request_id="rr-1", status=503, body={}, times=1)
    assert ask(auth, "rr-1").status == 503
    answer = ask(auth, "rr-1").json()
    assert answer["destination"] == "ada@example.test"
    assert answer["expires_at"] == "2030-01-01T00:00:00Z"
    assert ask(auth, "rr-1", channel="sms").json() == {"reason": "no_destination"}


def test_every_question_is_in_the_journal(auth: AuthHandle) -> None:
    ask(auth, "link:used:rr-1")
    [entry] = auth.journal(phase="asked")
    assert (entry["reset_request_id"], entry["purpose"]) == ("link:used:rr-1", "send")
    assert (entry["channel"], entry["status"]) == ("email", 410)


def test_a_service_in_a_process_of_its_own_works_the_same() -> None:
    with running_auth_service(SECRET, process=True) as auth:
        assert ask(auth, "rr-1").status == 200
