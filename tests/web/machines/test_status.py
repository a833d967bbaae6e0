"""Status, trail, cancel and tickets: who may ask, for what, and what an odd path finds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from notifier.web.services import CancelReason
from tests.web.machines.edge import NOTICE, RETIRED_SECRET, Edge
from tests.web.machines.test_admission import faults, problem

STATUS = "/v1/reset-events/evt-1"
TRAIL = f"{STATUS}/transitions"
CANCEL = f"{STATUS}/cancel"
TICKET = "/v1/tickets/T-1"
LINK = f"{TICKET}/notices/{NOTICE}"

READS = [("GET", STATUS), ("GET", TRAIL), ("GET", TICKET), ("PUT", LINK)]


@pytest.mark.parametrize(("method", "path"), READS)
def test_without_a_known_token_nothing_is_looked_up(edge: Edge, method: str, path: str) -> None:
    for token in (None, "wrong", "status-token ", "x" * 600, "\u00e9"):
        answer = edge.ask(method, path, token)
        problem(answer, 401, "token_invalid")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert edge.behind.looked_up == []
    assert edge.behind.linked == []


@pytest.mark.parametrize(
    "value", ["", "Basic c3RhdHVzLXRva2Vu", "Bearer", "Bearer ", "status-token"]
)
def test_only_a_bearer_token_counts(edge: Edge, value: str) -> None:
    client = edge.app.test_client()
    problem(client.get(STATUS, headers={"Authorization": value}), 401, "token_invalid")


@pytest.mark.parametrize(("method", "path"), READS)
def test_a_token_of_another_scope_is_not_enough(edge: Edge, method: str, path: str) -> None:
    problem(edge.ask(method, path, "metrics-token"), 403, "scope_missing")


def test_the_status_is_the_whole_story_of_an_event(edge: Edge) -> None:
    answer = edge.ask("GET", STATUS, "status-token")
    body = json.loads(answer.text)
    assert answer.status_code == 200
    assert body["state"] == "email_pending"
    assert body["deliveries"][0]["attempts"][0]["class"] == "first"
    assert datetime.fromisoformat(body["expires_at"]).tzinfo is not None
    assert answer.headers["Cache-Control"] == "no-store"


def test_an_unknown_event_is_not_found(edge: Edge) -> None:
    for path in ("/v1/reset-events/none", "/v1/reset-events/none/transitions"):
        problem(edge.ask("GET", path, "status-token"), 404, "not_found")


ODD = ["a%00b", "evt-1%0A", "%20evt-1", "evt-1%20", "a%2Fb", "%C3%A9", "%FF", "a%0D%0Ab", "x" * 129]


@pytest.mark.parametrize("odd", [*ODD, "%ED%A0%80", "e%CC%81", "a+b", "a@b"])
def test_an_id_outside_the_alphabet_is_not_found_without_a_look_up(edge: Edge, odd: str) -> None:
    paths = [f"/v1/reset-events/{odd}", f"/v1/reset-events/{odd}/transitions", f"/v1/tickets/{odd}"]
    for path in paths:
        problem(edge.ask("GET", path, "status-token"), 404, "not_found")
    problem(edge.post({"reason": "used"}, f"/v1/reset-events/{odd}/cancel"), 404, "not_found")
    problem(
        edge.ask("PUT", f"/v1/tickets/{odd}/notices/{NOTICE}", "tickets-token"), 404, "not_found"
    )
    assert edge.behind.looked_up == []
    assert edge.behind.canceled == []
    assert edge.behind.linked == []


@pytest.mark.parametrize("odd", [NOTICE.upper(), NOTICE[:-1], f"{NOTICE}%0A", "evt-1", "0" * 36])
def test_a_notice_id_is_a_lower_case_uuid(edge: Edge, odd: str) -> None:
    problem(edge.ask("PUT", f"{TICKET}/notices/{odd}", "tickets-token"), 404, "not_found")
    assert edge.behind.linked == []


def test_the_trail_is_paged_by_sequence(edge: Edge) -> None:
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        answer = edge.ask("GET", f"{TRAIL}?after={after}&limit=4", "status-token")
        page = json.loads(answer.text)
        seen += [row["seq"] for row in page["transitions"]]
        after = page["next"]
    assert seen == list(range(1, 10))


@pytest.mark.parametrize(
    "query", ["after=x", "after=-1", "limit=1e9", "after=%00", "after=", "after=٣"]
)
def test_a_page_is_asked_for_in_plain_numbers(edge: Edge, query: str) -> None:
    body = problem(edge.ask("GET", f"{TRAIL}?{query}", "status-token"), 422, "validation_failed")
    assert faults(body) == [("", f"{query.partition('=')[0]}_not_a_number")]


@pytest.mark.parametrize("reason", ["used", "superseded", "revoked"])
def test_a_signed_cancel_says_what_was_stopped_and_what_may_have_left(
    edge: Edge, reason: str
) -> None:
    answer = edge.post({"reason": reason}, CANCEL)
    assert answer.status_code == 200
    assert json.loads(answer.text) == {
        "state": "canceled",
        "canceled": ["email"],
        "may_have_left": [],
    }
    assert edge.behind.canceled == [("evt-1", CancelReason(reason))]


def test_a_cancel_is_signed_like_an_admission(edge: Edge) -> None:
    late = datetime.now(UTC) - timedelta(minutes=6)
    problem(edge.post({"reason": "used"}, CANCEL, secret=RETIRED_SECRET), 401, "signature_invalid")
    problem(edge.post({"reason": "used"}, CANCEL, at=late), 401, "timestamp_out_of_range")
    problem(edge.ask("POST", CANCEL, "status-token"), 401, "signature_invalid")
    assert edge.behind.canceled == []
    assert edge.counted("signature_refusals", edge="cancel", reason="signature") == 2


def test_a_cancel_has_one_field_and_three_reasons(edge: Edge) -> None:
    for document in ({}, {"reason": "gone"}, {"reason": None}, {"reason": "used", "by": "x"}):
        problem(edge.post(document, CANCEL), 422, "validation_failed")
    problem(edge.post({"reason": "used"}, "/v1/reset-events/none/cancel"), 404, "not_found")


def test_a_cancel_may_name_its_event_under_the_signature(edge: Edge) -> None:
    assert edge.post({"reason": "used", "event_id": "evt-1"}, CANCEL).status_code == 200
    body = problem(
        edge.post({"reason": "used", "event_id": "evt-2"}, CANCEL), 422, "validation_failed"
    )
    assert faults(body) == [("/event_id", "not_the_event_of_the_path")]
    assert len(edge.behind.canceled) == 1


def test_a_signed_cancel_is_good_for_one_event_and_any_number_of_repeats(edge: Edge) -> None:
    signed_at = datetime.now(UTC)
    another = CANCEL.replace("evt-1", "evt-2")
    for _ in range(2):
        assert edge.post({"reason": "used"}, CANCEL, at=signed_at).status_code == 200
    problem(edge.post({"reason": "used"}, another, at=signed_at), 409, "signature_reused")
    later = signed_at + timedelta(seconds=1)
    assert edge.post({"reason": "used"}, another, at=later).status_code == 200


def test_a_store_in_trouble_is_worth_a_new_try(edge: Edge) -> None:
    edge.behind.fault = psycopg.OperationalError("canary")
    for answer in (
        edge.ask("GET", STATUS, "status-token"),
        edge.post({"reason": "used"}, CANCEL),
    ):
        problem(answer, 503, "unavailable")
        assert answer.headers["Retry-After"]


def test_a_ticket_is_linked_by_name_of_the_token_and_lists_its_notices(edge: Edge) -> None:
    assert edge.ask("PUT", LINK, "tickets-token").status_code == 200
    assert edge.behind.linked == [("T-1", NOTICE, "tickets desk")]
    other = LINK.replace("0001", "0002")
    problem(edge.ask("PUT", other, "tickets-token"), 404, "not_found")
    body = json.loads(edge.ask("GET", TICKET, "tickets-token").text)
    assert body["ticket_id"] == "T-1"
    assert body["notices"][0]["notification_id"] == NOTICE


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/", 404, "not_found"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("POST", "/v1//reset-events", 404, "not_found"),
        ("POST", "/v1/reset-events/", 401, "signature_invalid"),
        ("POST", "/callbacks/nobody", 404, "not_found"),
        ("GET", "/v1/reset-events", 405, "method_not_allowed"),
        ("DELETE", STATUS, 405, "method_not_allowed"),
        ("POST", LINK, 405, "method_not_allowed"),
        ("BREW", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_every_wrong_turn_is_a_problem(
    edge: Edge, method: str, path: str, status: int, code: str
) -> None:
    answer = edge.ask(method, path)
    problem(answer, status, code)
    assert ("Allow" in answer.headers) is (status == 405)
