"""Whom a request came from, behind proxies; and under which name a page is answered."""

from __future__ import annotations

import pytest
from flask import Blueprint, Flask, request
from werkzeug.test import TestResponse

from notifier.web.security import behind_proxies, only_on_host

FORGED = "203.0.113.66"
CLIENT = "198.51.100.7"
INNER = "10.0.0.2"


def app_behind(hops: int) -> Flask:
    app = Flask("echo")
    behind_proxies(app, hops)

    @app.get("/who")
    def who() -> str:
        return f"{request.remote_addr} {request.scheme} {request.host}"

    return app


def asked(app: Flask, **headers: str) -> list[str]:
    named = {f"X-Forwarded-{name}": value for name, value in headers.items()}
    return app.test_client().get("/who", headers=named).text.split()


@pytest.mark.parametrize(
    ("hops", "told", "address", "scheme"),
    [
        (0, {"For": FORGED, "Proto": "https"}, "127.0.0.1", "http"),
        (1, {}, "127.0.0.1", "http"),
        (1, {"For": CLIENT, "Proto": "https"}, CLIENT, "https"),
        (1, {"For": f"{FORGED}, {CLIENT}", "Proto": "gopher, https"}, CLIENT, "https"),
        (2, {"For": f"{FORGED}, {CLIENT}, {INNER}", "Proto": "x, https, http"}, CLIENT, "https"),
        (2, {"For": FORGED, "Proto": "https"}, "127.0.0.1", "http"),
    ],
)
def test_exactly_as_many_proxies_are_believed_as_there_are(
    hops: int, told: dict[str, str], address: str, scheme: str
) -> None:
    assert asked(app_behind(hops), **told) == [address, scheme, "localhost"]


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_no_proxy_is_believed_about_the_host(hops: int) -> None:
    forged = {"Host": "evil.example", "Port": "444", "Prefix": "/evil"}
    assert asked(app_behind(hops), **forged) == ["127.0.0.1", "http", "localhost"]


def pages(public_url: str) -> Flask:
    app = Flask("pages")
    only_on_host(app, public_url, "people")
    people, machines = Blueprint("people", "people"), Blueprint("machines", "machines")
    people.add_url_rule("/login", view_func=lambda: "page")
    machines.add_url_rule("/healthz", view_func=lambda: "well")
    app.register_blueprint(people)
    app.register_blueprint(machines)
    return app


def under(host: str, path: str = "/login", public_url: str = "https://notices.example") -> int:
    answer: TestResponse = pages(public_url).test_client().get(path, headers={"Host": host})
    return answer.status_code


@pytest.mark.parametrize("host", ["notices.example", "NOTICES.example", "notices.example:443"])
def test_a_page_is_answered_under_its_public_name(host: str) -> None:
    assert under(host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "notices.example.evil.example",
        "notices.example:80",
        "notices.example:x",
        "127.0.0.1",
        "localhost:8000",
        "[::1",
        "",
    ],
)
def test_a_page_under_another_name_is_refused_and_a_probe_is_not(host: str) -> None:
    assert under(host) == 400
    assert under(host, "/healthz") == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8000", 200), ("localhost:8000", 200), ("[::1]:8000", 200), ("evil:8000", 400)],
)
def test_names_of_this_machine_stand_for_one_another(host: str, status: int) -> None:
    assert under(host, public_url="http://127.0.0.1:8000") == status
