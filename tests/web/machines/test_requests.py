"""Request ids and log lines: what a caller sends never forges an entry (P7)."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.machines.edge import Edge


def request_id_for(edge: Edge, offered: str) -> str:
    answer = edge.app.test_client().get("/healthz", headers={"X-Request-Id": offered})
    return str(answer.headers["X-Request-Id"])


@pytest.mark.parametrize("sound", ["a", "req-1", "A.b_c:d-e", "0" * 64])
def test_a_sound_request_id_is_kept(edge: Edge, sound: str) -> None:
    assert request_id_for(edge, sound) == sound


@pytest.mark.parametrize(
    "odd",
    ["", " a", "a b", "a\x85b", "\x1b[31mred", "0" * 65, "x" * 1_000_000, "\u00e9", "a/b", "<b>"],
)
def test_an_odd_request_id_is_replaced(edge: Edge, odd: str) -> None:
    given_back = request_id_for(edge, odd)
    assert given_back != odd
    assert len(given_back) == 32
    assert all(json.loads(line)["request_id"] == given_back for line in lines(edge))


def lines(edge: Edge) -> list[str]:
    return edge.log.getvalue().splitlines()


def test_two_requests_have_two_ids(edge: Edge) -> None:
    assert request_id_for(edge, "") != request_id_for(edge, "")


def test_one_request_is_one_line_without_its_path(edge: Edge) -> None:
    edge.ask("GET", "/v1/reset-events/canary-1/transitions?after=canary", "status-token")
    (line,) = lines(edge)
    entry = json.loads(line)
    assert "canary" not in line
    assert entry["endpoint"] == "status.event_transitions"
    assert (entry["method"], entry["http_status"]) == ("GET", 422)


@given(text=st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=90))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_header_makes_a_second_line(edge: Edge, text: str) -> None:
    before = len(edge.log.getvalue().split("\n"))
    headers = {"X-Request-Id": text, "X-Forwarded-For": text, "traceparent": text, "Host": text}
    edge.app.test_client().open("/v1/reset-events", method="PUT", headers=headers)
    assert len(edge.log.getvalue().split("\n")) == before + 1
    assert edge.log.getvalue().isascii()


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/openapi.json", "/v1/nope", "/nope"])
def test_no_answer_to_a_program_is_a_page_to_a_browser(edge: Edge, path: str) -> None:
    headers = edge.ask("GET", path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["Referrer-Policy"] == "no-referrer"
