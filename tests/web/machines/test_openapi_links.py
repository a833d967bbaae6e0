"""What is described of link requests is what we send, and what we take for an answer."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator

from notifier.domain.destinations import check_destination
from notifier.domain.link_faults import LinkFault
from notifier.domain.states import Channel
from notifier.links.auth_service import AuthService
from notifier.ports.links import LinkAnswer, LinkGranted, LinkRequest, LinkUnavailable
from notifier.signatures import parse_secret
from notifier.web.machines.openapi import build_document
from peers.auth_service import FATES
from peers.events import body_of, signed_headers
from peers.testing import AuthHandle, running_auth_service
from tests.links.scripted_http import ADDRESS, LINK, answering, granted
from tests.links.scripted_http import http as scripted
from tests.links.test_auth_service import SECRET_TEXT

SEND = LinkRequest("rr-1", "evt-1", Channel.EMAIL)
LOOK_UP = LinkRequest("rr-1", "evt-1", Channel.SMS, "look_up")
DOCUMENT = build_document()
HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "answer-links.md"
NO_JSON = frozenset({"drop", "hang", "hold", "slow", "too-slow", "malformed", "truncate"})


@pytest.fixture(scope="module")
def auth() -> Iterator[AuthHandle]:
    with running_auth_service(SECRET_TEXT) as running:
        yield running


def described(purpose: str) -> dict[str, Any]:
    name = {"send": "link", "look_up": "destination"}[purpose]
    operation: dict[str, Any] = DOCUMENT["webhooks"][name]["post"]
    return operation


def fits(part: dict[str, Any], document: object) -> bool:
    schema = part["content"]["application/json"]["schema"]
    whole = {**schema, "components": DOCUMENT["components"]}
    return bool(Draft202012Validator(whole).is_valid(document))


def is_described(purpose: str, status: int, document: object) -> bool:
    """Whether an answer has a form that the description gives an effect to."""
    answer = described(purpose)["responses"].get(str(status))
    return answer is not None and fits(answer, document)


def understood(url: str, request: LinkRequest) -> LinkAnswer:
    with closing(AuthService(url, parse_secret(SECRET_TEXT), check_destination)) as source:
        return source.ask(request, 3)


def plainly(auth: AuthHandle, request: LinkRequest) -> tuple[int, Any]:
    """The stand-in's answer as it came."""
    body = body_of(
        {
            "reset_request_id": request.reset_request_id,
            "event_id": request.event_id,
            "channel": request.channel,
            "purpose": request.purpose,
        }
    )
    address = urlsplit(auth.link_url)
    with closing(http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=5)) as line:
        line.request("POST", address.path, body, signed_headers(SECRET_TEXT, body))
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.mark.parametrize("request_", [SEND, LOOK_UP])
def test_what_we_send_is_what_is_described(request_: LinkRequest) -> None:
    with answering(granted()) as peer:
        understood(peer.url, request_)
    ((_, headers, body),) = peer.requests
    operation = described(request_.purpose)
    assert fits(operation["requestBody"], json.loads(body))
    other = described("look_up" if request_.purpose == "send" else "send")
    assert not fits(other["requestBody"], json.loads(body))
    for parameter in operation["parameters"]:
        Draft202012Validator(parameter["schema"]).validate(headers[parameter["name"]])
    assert operation["security"] == [{"signature": []}]


@pytest.mark.parametrize("request_", [SEND, LOOK_UP])
@pytest.mark.parametrize("fate", ["", *sorted(set(FATES) - NO_JSON)])
def test_the_stand_in_s_answers_have_the_described_form_where_we_understand_them(
    auth: AuthHandle, fate: str, request_: LinkRequest
) -> None:
    name = f"link:{fate}:rr-1" if fate else "rr-1"
    asked = LinkRequest(name, request_.event_id, request_.channel, request_.purpose)
    status, document = plainly(auth, asked)
    taken = not isinstance(understood(auth.link_url, asked), LinkUnavailable)
    assert is_described(asked.purpose, status, document) == taken


GRANT = {"reset_url": LINK, "destination": ADDRESS}


@pytest.mark.parametrize(
    "document",
    [
        GRANT,
        GRANT | {"name": None, "expires_at": None, "more": [1]},
        GRANT | {"name": "Mara", "expires_at": "2026-03-14T12:00:00.5+01:00"},
        {"destination": ADDRESS},
        {"reset_url": LINK},
        GRANT | {"destination": None},
        GRANT | {"reset_url": None},
        GRANT | {"reset_url": ""},
        GRANT | {"reset_url": "http://accounts.example.test/r"},
        GRANT | {"reset_url": f"{LINK} x"},
        GRANT | {"reset_url": "https://bank.test@evil.test/r"},
        GRANT | {"reset_url": LINK + "a" * 2048},
        GRANT | {"expires_at": "2026-03-14T12:00:00"},
        GRANT | {"expires_at": 1773489600},
        {},
        [],
    ],
)
def test_a_grant_is_taken_where_it_has_the_described_form_and_only_there(document: object) -> None:
    with answering(scripted(200, document)) as peer:
        for request in (SEND, LinkRequest("rr-1", "evt-1", Channel.EMAIL, "look_up")):
            taken = isinstance(understood(peer.url, request), LinkGranted)
            assert is_described(request.purpose, 200, document) == taken


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize(
    "reason",
    ["no_destination", "not_permitted", "used", "superseded", "revoked", "expired", "gone", None],
)
def test_each_reason_has_its_effect_under_its_own_status_alone(
    status: int, reason: str | None
) -> None:
    document = {"reason": reason}
    with answering(scripted(status, document)) as peer:
        taken = not isinstance(understood(peer.url, SEND), LinkUnavailable)
    assert is_described("send", status, document) == taken


def test_any_other_status_is_described_as_asked_again() -> None:
    for purpose in ("send", "look_up"):
        answers = described(purpose)["responses"]
        assert set(answers) == {"200", "404", "410", "default"}
        assert "again" in answers["default"]["description"]


def reasons(schema: str) -> list[str]:
    found: list[str] = DOCUMENT["components"]["schemas"][schema]["properties"]["reason"]["enum"]
    return found


def test_the_how_to_names_every_fault_and_every_reason() -> None:
    page = HOW_TO.read_text(encoding="utf-8")
    told = page.partition("## What each fault means")[2]
    assert [fault for fault in LinkFault if f"`{fault}`" not in told] == []
    known = reasons("LinkWithheld") + reasons("LinkGone")
    assert [word for word in known if f'"{word}"' not in page] == []
