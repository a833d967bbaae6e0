"""What a refusal tells its sender to do: in words of ours, never with a value of the request."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from notifier.domain.event import Conflict
from notifier.web.documents import BodyFault
from notifier.web.problem_details import DETAILS, FAULTS
from notifier.web.problems import CODES
from tests.web.machines import edge as edges
from tests.web.machines.edge import NOTICE, RETIRED_SECRET, Edge, event_document
from tests.web.machines.test_admission import CANARY, problem

NOT_AGAIN = "Do not send it again as it is"
CANCEL = "/v1/reset-events/evt-1/cancel"


def test_every_code_says_what_to_do() -> None:
    assert DETAILS.keys() == set(CODES)
    assert set(BodyFault) <= FAULTS.keys()
    for sentence in (*DETAILS.values(), *FAULTS.values()):
        assert sentence[0].isupper()
        assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (("event_id",), "event_id is known"),
        (("idempotency_key",), "idempotency_key is known"),
        (("event_id", "reset_request_id"), "event_id and reset_request_id are known"),
    ],
)
def test_a_conflict_names_the_keys_that_are_known(
    edge: Edge, keys: tuple[str, ...], told: str
) -> None:
    edge.behind.result = Conflict(keys)
    detail = problem(edge.post(event_document()), 409, "event_conflict")["detail"]
    assert told in detail
    assert NOT_AGAIN in detail
    assert "evt-1" not in detail


def test_a_life_that_is_too_long_is_told_the_longest_one_in_seconds(edge: Edge) -> None:
    late = datetime.now(UTC) + timedelta(days=3)
    body = problem(edge.post(event_document(expires_at=late.isoformat())), 422, "validation_failed")
    [fault] = body["errors"]
    assert (fault["pointer"], fault["code"], fault["limit"]) == (
        "/expires_at",
        "life_too_long",
        86_400,
    )
    assert "86400 seconds" in fault["detail"]
    assert NOT_AGAIN in body["detail"]


def test_a_large_body_is_told_the_largest_one_in_bytes(edge: Edge) -> None:
    body = problem(edge.post(b"x" * 70_000), 413, "body_too_large")
    assert "65536 bytes" in body["detail"]
    assert NOT_AGAIN in body["detail"]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("webhook-id", " "),
        ("webhook-id", "x" * 257),
        ("webhook-timestamp", ""),
        ("webhook-timestamp", "soon"),
        ("webhook-timestamp", CANARY),
        ("webhook-signature", ""),
        ("webhook-signature", CANARY),
        ("webhook-signature", "v2,AAAA"),
    ],
)
def test_a_header_that_cannot_be_read_is_named_whoever_signed(
    edge: Edge, header: str, value: str
) -> None:
    told = []
    for secret in (edges.SECRET, RETIRED_SECRET):
        answer = edge.post(event_document(), secret=secret, headers={header: value})
        told.append(problem(answer, 401, "signature_invalid")["detail"])
    assert f"The header {header} is missing or cannot be read" in told[0]
    assert told[0] == told[1]
    assert CANARY not in told[0]


def test_headers_that_can_be_read_under_a_wrong_key_are_told_another_word(edge: Edge) -> None:
    wrong = edge.post(event_document(), secret=RETIRED_SECRET)
    detail = problem(wrong, 401, "signature_invalid")["detail"]
    assert "missing" not in detail
    assert NOT_AGAIN in detail


def test_a_stale_signature_is_told_the_tolerance(edge: Edge) -> None:
    late = datetime.now(UTC) - timedelta(minutes=6)
    body = problem(edge.post(event_document(), at=late), 401, "timestamp_out_of_range")
    assert "300 seconds" in body["detail"]


@pytest.mark.parametrize("name", ["after", "limit"])
def test_a_fault_of_the_address_names_its_parameter_and_is_not_said_of_a_body(
    edge: Edge, name: str
) -> None:
    asked = edge.ask("GET", f"/v1/reset-events/evt-1/transitions?{name}={CANARY}", "status-token")
    body = problem(asked, 422, "validation_failed")
    [fault] = body["errors"]
    assert (fault["pointer"], fault["parameter"], fault["code"]) == (
        "",
        name,
        f"{name}_not_a_number",
    )
    assert "body" not in body["title"]
    assert "whole number" in fault["detail"]


def test_a_key_in_the_header_that_differs_is_told_of_the_header(edge: Edge) -> None:
    answer = edge.post(event_document(), headers={"Idempotency-Key": CANARY})
    [fault] = problem(answer, 422, "validation_failed")["errors"]
    assert (fault["pointer"], fault["header"]) == ("/idempotency_key", "Idempotency-Key")
    assert "event_id where the body has none" in fault["detail"]
    assert CANARY not in answer.text


def test_a_token_of_another_scope_is_told_the_scope_that_is_needed(edge: Edge) -> None:
    body = problem(edge.ask("GET", "/v1/reset-events/evt-1", "metrics-token"), 403, "scope_missing")
    assert "`status`" in body["detail"]


def test_a_cancel_of_an_unknown_event_is_told_to_come_again(edge: Edge) -> None:
    answer = edge.post({"reason": "used"}, "/v1/reset-events/none/cancel")
    detail = problem(answer, 404, "not_found")["detail"]
    assert "send this cancel again" in detail
    assert "nothing is canceled" in detail


FAULTY: list[dict[str, Any]] = [
    {"event_id": 1, "account_id": "a b", "surprise": 1, "requested_at": "now"},
    {"requested_at": "1999-01-01T00:00:00Z", "template": 1},
    {"requested_at": "2999-01-01T00:00:00Z", "supersedes_earlier": 1, "destinations": {"sms": 1}},
    {"policy": {"mode": "x", "digest": "", "inputs": {"region": "x"}}},
    {"template": {"id": "x", "revision": "9"}, "policy": {"mode": "parallel"}},
    {"template": {}, "event_id": "evt-2", "expires_at": "2001-01-01T00:00:00Z"},
]
BODIES = [
    b"{",
    b"[]",
    b"\xff",
    b"\xef\xbb\xbf{}",
    b'{"a": 1, "a": 1}',
    b'{"a": "\\u0000"}',
    b'{"a": "\\ud800"}',
    b'{"a": 1e999}',
    b"[" * 40,
]


def test_each_fault_says_what_would_be_taken(edge: Edge) -> None:
    answers = [edge.post(event_document(**changes)) for changes in FAULTY]
    answers += [edge.post(body) for body in BODIES]
    answers += [edge.post({"reason": "gone", "event_id": "evt-2"}, CANCEL)]
    seen = set()
    for answer in answers:
        for fault in problem(answer, 422, "validation_failed")["errors"]:
            assert fault["detail"], fault
            seen.add(fault["code"])
    of_addresses = {"after_not_a_number", "limit_not_a_number", "differs_from_header"}
    assert seen == FAULTS.keys() - of_addresses - {"life_too_long"}


def test_every_refusal_has_a_detail(edge: Edge) -> None:
    edge.behind.fault = ValueError(CANARY)
    asked = [
        edge.ask("GET", "/v1/nothing"),
        edge.ask("DELETE", "/v1/reset-events/evt-1"),
        edge.ask("GET", "/v1/reset-events/evt-1"),
        edge.ask("GET", "/v1/reset-events/evt-1", "status-token"),
        edge.ask("PUT", f"/v1/tickets/T-1/notices/{NOTICE[:-1]}2", "tickets-token"),
        edge.post(b"{}", headers={"Content-Type": "text/x"}),
    ]
    for answer in asked:
        body = json.loads(answer.text)
        assert len(body["detail"]) > 20, body
        assert CANARY not in answer.text
