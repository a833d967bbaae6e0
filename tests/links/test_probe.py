"""What `flask doctor` says of the auth service, asked in a way that changes nothing there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from notifier.doctor import Finding, examine
from notifier.domain.destinations import check_destination
from notifier.links.auth_service import AuthService
from notifier.links.probe import probe, probe_auth_service
from notifier.settings import load_settings
from notifier.signatures import parse_secret
from peers.auth_service import AuthService as StandIn
from peers.run_settings import Secrets, mail_only
from tests.links.scripted_http import Answer, ScriptedHttp, answering, granted, http
from tests.links.test_auth_service import SECRET_TEXT
from tests.providers.scripted_smtp import Do

NOBODY = "00000000-0000-0000-0000-000000000000"


def asked(url: str, secret: str = SECRET_TEXT) -> tuple[bool, str]:
    source = AuthService(url, parse_secret(secret), check_destination)
    try:
        return probe(source)
    finally:
        source.close()


def test_the_question_is_a_signed_look_up_for_an_id_that_nobody_is_given() -> None:
    with answering(http(404, {})) as peer:
        asked(peer.url)
    ((_, headers, body),) = peer.requests
    assert json.loads(body) == {
        "reset_request_id": NOBODY,
        "event_id": NOBODY,
        "channel": "email",
        "purpose": "look_up",
    }
    Webhook(SECRET_TEXT).verify(body, headers, json_parse=False)


@pytest.mark.parametrize(
    "answer",
    [
        granted(),
        http(404, {"reason": "no_destination"}),
        http(410, {"reason": "expired"}),
    ],
)
def test_an_answer_of_the_contract_is_well(answer: Answer) -> None:
    with answering(answer) as peer:
        assert asked(peer.url) == (True, "answers, and takes our signature")


@pytest.mark.parametrize("status", [400, 404, 409, 410, 422])
def test_a_refusal_of_the_id_is_well_and_said_to_prove_no_path(status: int) -> None:
    with answering(http(status, {})) as peer:
        assert asked(peer.url) == (
            True,
            f"answers; {status} to an id that does not exist, as a wrong path may too",
        )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http(401, {}), "NOTIFIER_LINK_URL or NOTIFIER_LINK_SECRET: the auth service answered 401"),
        (http(403, {}), "NOTIFIER_LINK_URL or NOTIFIER_LINK_SECRET: the auth service answered 403"),
        (http(302, {}), "NOTIFIER_LINK_URL: the auth service answered with a redirect"),
        (http(405, {}), "NOTIFIER_LINK_URL: the auth service answered 405"),
        (http(503, {}), "NOTIFIER_LINK_URL: the auth service answered 503"),
        (http(200, b"<html>"), "NOTIFIER_LINK_URL: the auth service's answer about the link"),
        (Do.CLOSE, "NOTIFIER_LINK_URL: the auth service gave no whole HTTP answer"),
    ],
)
def test_anything_else_is_a_fault_that_names_its_settings(answer: Answer, words: str) -> None:
    with answering(answer) as peer:
        well, told = asked(peer.url)
    assert not well
    assert told.startswith(words)


def test_the_stand_in_refuses_another_secret_and_takes_ours() -> None:
    service = StandIn([SECRET_TEXT])
    service.start()
    try:
        assert asked(service.link_url)[0]
        well, told = asked(service.link_url, "whsec_" + "A" * 32)
        assert (well, told.endswith("(http_401)")) == (False, True)
    finally:
        service.close()


@pytest.fixture
def peer() -> Iterator[ScriptedHttp]:
    with answering(http(404, {})) as scripted:
        yield scripted


def finding(folder: Path, link_url: str) -> Finding:
    """What the doctor says of links, with no database to be reached."""
    known = Secrets.load(folder / "secrets.json")
    given = mail_only(known, data_dir=folder, port=1, link_url=link_url, smtp_port=1)
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    settings = load_settings(given)
    links = partial(probe_auth_service, settings)
    found = examine(settings, nowhere, lambda _: (), probe_links=links)
    [told] = [each for each in found if each.part == "auth service"]
    return told


def test_the_doctor_tells_of_the_auth_service_without_a_database(
    tmp_path: Path, peer: ScriptedHttp
) -> None:
    assert finding(tmp_path, peer.url.partition("?")[0]).ok
    told = finding(tmp_path, "http://127.0.0.1:1/none")
    assert (told.ok, told.detail) == (
        False,
        "NOTIFIER_LINK_URL: the auth service could not be reached for the link (no_connection)",
    )
