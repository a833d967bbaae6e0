"""Ways in which others' endpoints failed, tried on ours; the numbers are those of the page."""

from __future__ import annotations

import pytest

from notifier.store.database import Database, StoreUnavailable
from tests.people_pages import build_app
from tests.web.machines.edge import Edge, event_document
from tests.web.machines.test_admission import faults, problem

AGAIN = ("resend", "retry", "replay", "requeue", "repeat", "again", "force", "send-now")


def test_b013_no_address_sends_a_message_again(edge: Edge, database: Database) -> None:
    pages = build_app(database)
    rules = [*edge.app.url_map.iter_rules(), *pages.url_map.iter_rules()]
    assert len(rules) > 25
    offered = [each.rule for each in rules if any(word in each.rule for word in AGAIN)]
    assert offered == []
    for word in ("resend", "retry"):
        answer = edge.post({}, f"/v1/reset-events/evt-1/{word}")
        problem(answer, 404, "not_found")
    assert edge.behind.admitted == []


def test_b019_neither_a_refused_body_nor_a_fault_of_ours_is_remembered_under_its_ids(
    edge: Edge,
) -> None:
    wrong = event_document(expires_at="tomorrow")
    problem(edge.post(wrong), 422, "validation_failed")
    assert edge.behind.admitted == []

    edge.behind.fault = StoreUnavailable("away")
    problem(edge.post(event_document()), 503, "not_admitted")
    edge.behind.fault = None

    answer = edge.post(event_document())
    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer.headers


@pytest.mark.parametrize("name", ["IDEMPOTENCY-KEY", "idempotency-key", "Idempotency-Key"])
def test_b021_a_headers_name_has_no_case_and_its_value_has_one(edge: Edge, name: str) -> None:
    body = event_document(idempotency_key="Key-1")
    assert edge.post(body, headers={name: "Key-1"}).status_code == 202
    for other in ("key-1", " Key-1 x", "Key-1\t."):
        told = problem(edge.post(body, headers={name: other}), 422, "validation_failed")
        assert faults(told) == [("/idempotency_key", "differs_from_header")]


def test_b021_two_ids_that_differ_by_case_are_two(edge: Edge) -> None:
    for event_id in ("Evt-1", "evt-1"):
        assert edge.post(event_document(event_id=event_id)).status_code == 202
    assert [event.event_id for event, _ in edge.behind.admitted] == ["Evt-1", "evt-1"]
