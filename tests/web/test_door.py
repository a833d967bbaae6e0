"""The door of the real process: odd ids in paths, forwarded addresses, other hosts' names."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from urllib.parse import urlencode, urljoin

import pytest

from notifier.accounts import rate_limits
from notifier.store.embedded import EmbeddedServer
from peers.events import build_event
from tests.database import fresh_database
from tests.running import RunningApp, surroundings

HOST = "notices.example.test"
CLIENT, OTHER = "198.51.100.7", "198.51.100.8"


@pytest.fixture(scope="module")
def app(postgres: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApp]:
    """A process behind one proxy, known to the world by a public name."""
    more = {"NOTIFIER_PUBLIC_URL": f"https://{HOST}", "NOTIFIER_PROXY_HOPS": "1"}
    folder = tmp_path_factory.mktemp("door")
    with (
        fresh_database(postgres) as url,
        surroundings(url, folder, more=more) as around,
        RunningApp(around) as running,
    ):
        yield running


def asked(
    app: RunningApp, method: str, path: str, body: str = "", **headers: str
) -> tuple[int, str, dict[str, str]]:
    """One request whose path goes out as it is written."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        given = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, answer.read().decode(), given
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("event_id", "safe"),
    [(".", "%2E"), ("..", "%2E%2E"), ("..a", "..a"), ("a..", "a.."), (":", ":"), ("-", "-")],
)
def test_an_event_is_found_under_whatever_id_the_contract_allows(
    app: RunningApp, event_id: str, safe: str
) -> None:
    event = build_event()
    event["event_id"] = event_id
    posted = app.post(event)
    assert posted.status == 202

    token = {"authorization": f"Bearer {app.around.secrets.api_token}"}
    for written in (event_id, "".join(f"%{ord(letter):02X}" for letter in event_id)):
        status, body, _ = asked(app, "GET", f"/v1/reset-events/{written}", **token)
        assert (status, json.loads(body)["event_id"]) == (200, event_id)
        status, body, _ = asked(app, "GET", f"/v1/reset-events/{written}/transitions", **token)
        assert (status, json.loads(body)["transitions"][0]["event_id"]) == (200, event_id)
    # A client that resolves the address, as they do, must not be led elsewhere.
    named = json.loads(posted.body)["status_url"]
    assert urljoin(named, named) == named == f"https://{HOST}/v1/reset-events/{safe}"
    assert app.cancel(event_id, "used").status == 200


def test_a_page_under_another_name_is_refused_while_probes_and_machines_are_answered(
    app: RunningApp,
) -> None:
    assert asked(app, "GET", "/login", host=HOST)[0] == 200
    for other in ("evil.example", f"127.0.0.1:{app.port}", f"{HOST}:8000"):
        status, body, _ = asked(app, "GET", "/login", host=other)
        assert (status, other in body) == (400, False)
    assert asked(app, "GET", "/login", host="evil.example", x_forwarded_host=HOST)[0] == 400
    assert asked(app, "GET", "/healthz", host="10.1.2.3:8000")[0] == 200


@pytest.mark.parametrize(
    "path", ["/", "/login", "/nowhere", "/static/site.css", "/healthz", "/v1/x"]
)
def test_under_a_name_that_none_can_have_every_error_is_answered_as_errors_are(
    app: RunningApp, path: str
) -> None:
    for host in ("a" * 64, "a..b", "[", "[::1", "a:b", "-", "", "a/b", "\xe9.example"):
        status, body, headers = asked(app, "GET", path, host=host)
        assert status < 500, host
        assert "default-src 'none'" in headers["content-security-policy"], host
        assert re.fullmatch(r"[0-9a-f]{32}", headers["x-request-id"]), host
        assert host not in body or len(host) < 3


def signed_in_as_nobody(app: RunningApp, forwarded: str) -> int:
    """What a wrong password is answered, coming from an address through the proxy."""
    _, page, headers = asked(app, "GET", "/login", host=HOST, x_forwarded_for=forwarded)
    token = re.search(r'name="csrf_token" value="([0-9a-f]{64})"', page)
    assert token is not None
    form = urlencode({"csrf_token": token[1], "username": "ada", "password": "x"})
    status, _, _ = asked(
        app, "POST", "/login", form, host=HOST, x_forwarded_for=forwarded,
        cookie=headers["set-cookie"].partition(";")[0],
        content_type="application/x-www-form-urlencoded",
    )  # fmt: skip
    return status


def test_the_limit_on_sign_in_counts_by_the_address_that_the_proxy_tells(app: RunningApp) -> None:
    forged = [f"203.0.113.{number}, {CLIENT}" for number in range(rate_limits.SIGN_IN_BY_PAIR.hits)]
    assert {signed_in_as_nobody(app, each) for each in forged} == {422}

    assert signed_in_as_nobody(app, CLIENT) == 429
    assert signed_in_as_nobody(app, OTHER) == 422
