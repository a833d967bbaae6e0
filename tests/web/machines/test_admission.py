"""Admission at the edge: in what order a request is looked at, and what is answered."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from notifier.domain.event import Conflict
from notifier.domain.event_document import EventRules
from notifier.store.database import StoreUnavailable
from tests.web.machines import edge as edges
from tests.web.machines.edge import OLD_SECRET, RETIRED_SECRET, Edge, answer_to, event_document

CANARY = "canary-token-5f1e"


def problem(answer: TestResponse, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.content_type == "application/problem+json"
    body: dict[str, Any] = json.loads(answer.text)
    assert body["code"] == code
    assert body["status"] == status
    assert body["request_id"] == answer.headers["X-Request-Id"]
    assert body["type"]
    assert body["title"]
    assert body["detail"]
    assert ("errors" in body) is (status == 422)
    return body


def faults(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Where and what, of each fault of a refused request."""
    return [(each["pointer"], each["code"]) for each in body["errors"]]


def test_a_signed_event_is_admitted_and_answered_in_full(edge: Edge) -> None:
    document = event_document()
    answer = edge.post(document)
    assert answer.status_code == 202
    body = json.loads(answer.text)
    assert datetime.fromisoformat(body.pop("expires_at")) == datetime.fromisoformat(
        document["expires_at"]
    )
    assert body == {
        "notification_id": edges.NOTICE,
        "event_id": "evt-1",
        "status": "email_pending",
        "status_url": "https://notices.example.test/v1/reset-events/evt-1",
        "stop_at": None,
    }
    assert "Idempotent-Replayed" not in answer.headers
    assert answer.headers["X-Request-Id"]
    assert edge.counted("admissions", result="admitted") == 1


def test_p1_a_repeat_says_so(edge: Edge) -> None:
    edge.post(event_document())
    edge.behind.result = answer_to(edge.behind.admitted[0][0], replayed=True)
    answer = edge.post(event_document())
    assert (answer.status_code, answer.headers["Idempotent-Replayed"]) == (202, "true")
    assert edge.counted("admissions", result="replayed") == 1


def test_p1_other_content_under_a_known_id_is_a_conflict(edge: Edge) -> None:
    edge.behind.result = Conflict()
    problem(edge.post(event_document()), 409, "event_conflict")


def test_p1_a_repeat_is_answered_although_todays_rules_would_refuse_it(edge: Edge) -> None:
    edge.post(event_document())
    edge.behind.rules = EventRules(1.0, lambda _id, _revision: False)
    problem(edge.post(event_document()), 422, "validation_failed")
    edge.behind.earlier = answer_to(edge.behind.admitted[0][0], replayed=True)
    answer = edge.post(event_document())
    assert (answer.status_code, answer.headers["Idempotent-Replayed"]) == (202, "true")
    assert len(edge.behind.admitted) == 1


def test_the_transport_names_the_key_that_signed_and_never_the_secret(edge: Edge) -> None:
    edge.post(event_document())
    edge.post(event_document(), secret=OLD_SECRET)
    (_, new), (_, old) = edge.behind.admitted
    assert new.key_id != old.key_id
    assert new.message_id == "msg_1"
    assert OLD_SECRET[6:] not in repr(old)


@pytest.mark.parametrize(
    ("minutes", "status"), [(-4, 202), (4, 202), (-6, 401), (6, 401), (-60 * 24 * 365, 401)]
)
def test_the_clock_tolerance_is_two_sided_and_has_its_own_reason(
    edge: Edge, minutes: int, status: int
) -> None:
    answer = edge.post(event_document(), at=datetime.now(UTC) + timedelta(minutes=minutes))
    assert answer.status_code == status
    if status == 401:
        problem(answer, 401, "timestamp_out_of_range")
    refused = edge.counted("signature_refusals", edge="admission", reason="timestamp")
    assert refused == (status == 401)


def test_a_retired_secret_and_a_flipped_byte_are_refused(edge: Edge) -> None:
    problem(edge.post(event_document(), secret=RETIRED_SECRET), 401, "signature_invalid")
    raw = json.dumps(event_document()).encode()
    signed = edges.sign(raw, edges.SECRET, datetime.now(UTC))
    problem(edge.post(raw + b"\n", headers=signed), 401, "signature_invalid")
    assert edge.behind.admitted == []
    assert edge.counted("signature_refusals", edge="admission", reason="signature") == 2


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", ["", " ", "v1,", "\u00e9", "9" * 40])
def test_a_missing_or_odd_signature_header_is_a_bad_signature(
    edge: Edge, header: str, value: str
) -> None:
    problem(edge.post(event_document(), headers={header: value}), 401, "signature_invalid")


def test_the_signature_is_looked_at_before_anything_but_the_size(edge: Edge) -> None:
    edge.behind.wait_s = 1.0
    unsigned = edge.app.test_client().post("/v1/reset-events", data=b"<x>", content_type="text/x")
    problem(unsigned, 401, "signature_invalid")
    edge.behind.wait_s = None
    problem(edge.post(b"{", headers={"Content-Type": "text/x"}), 415, "media_type_unsupported")
    problem(edge.post(b"{"), 422, "validation_failed")


@pytest.mark.parametrize("size", [65_537, 1_000_000])
def test_a_large_body_is_refused_by_its_announced_size_without_being_read(
    edge: Edge, size: int
) -> None:
    stream = io.BytesIO(b"x" * 10)
    answer = edge.app.test_client().post(
        "/v1/reset-events",
        input_stream=stream,
        environ_overrides={"CONTENT_LENGTH": str(size)},
    )
    problem(answer, 413, "body_too_large")
    assert stream.tell() == 0


def test_a_large_body_of_unknown_size_is_read_no_further_than_the_limit(edge: Edge) -> None:
    stream = io.BytesIO(b"x" * 10_000_000)
    answer = edge.app.test_client().post(
        "/v1/reset-events",
        input_stream=stream,
        environ_overrides={"CONTENT_LENGTH": "", "wsgi.input_terminated": True},
    )
    problem(answer, 413, "body_too_large")
    assert stream.tell() <= 65_536 * 2


def test_a_body_of_exactly_the_limit_is_read(edge: Edge) -> None:
    raw = json.dumps(event_document()).encode()
    assert edge.post(raw + b" " * (65_536 - len(raw))).status_code == 202
    problem(edge.post(raw + b" " * (65_537 - len(raw))), 413, "body_too_large")


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/json", 202),
        ("application/json; charset=utf-8", 202),
        ('Application/JSON;charset="UTF-8"', 202),
        ("application/json; charset=latin-1", 415),
        ("text/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
def test_only_json_in_utf8_is_taken(edge: Edge, media_type: str, status: int) -> None:
    answer = edge.post(event_document(), headers={"Content-Type": media_type})
    assert answer.status_code == status


def test_an_encoded_body_is_not_unpacked(edge: Edge) -> None:
    answer = edge.post(event_document(), headers={"Content-Encoding": "gzip"})
    problem(answer, 415, "media_type_unsupported")


def test_the_idempotency_header_may_agree_but_not_differ(edge: Edge) -> None:
    keyed = event_document(idempotency_key="key-1")
    assert edge.post(keyed, headers={"Idempotency-Key": "key-1"}).status_code == 202
    assert edge.post(event_document(), headers={"Idempotency-Key": "evt-1"}).status_code == 202
    for document in (keyed, event_document()):
        body = problem(
            edge.post(document, headers={"Idempotency-Key": "key-2"}), 422, "validation_failed"
        )
        assert faults(body) == [("/idempotency_key", "differs_from_header")]


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("header", "trace"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"cc-{TRACE}-00f067aa0ba902b7-01-more", TRACE),
        (f"00-{TRACE}-00f067aa0ba902b7-01-more", None),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        ("nonsense", None),
    ],
)
def test_a_sound_traceparent_gives_the_correlation_id(
    edge: Edge, header: str, trace: str | None
) -> None:
    edge.post(event_document(), headers={"traceparent": header})
    assert edge.behind.admitted[0][0].correlation_id == trace


def test_above_the_rate_the_caller_is_told_how_long_to_wait(edge: Edge) -> None:
    edge.behind.wait_s = 1.2
    answer = edge.post(event_document())
    problem(answer, 429, "rate_limited")
    assert answer.headers["Retry-After"] == "2"
    assert edge.behind.admitted == []


@pytest.mark.parametrize(
    "fault",
    [
        StoreUnavailable("PoolTimeout"),
        psycopg.OperationalError(f"INSERT ... DETAIL: ({CANARY})"),
        psycopg.InterfaceError(CANARY),
        psycopg.errors.SerializationFailure(CANARY),
        psycopg.errors.ReadOnlySqlTransaction(CANARY),
    ],
)
def test_p2_what_could_not_be_made_durable_is_not_acknowledged(
    edge: Edge, fault: Exception
) -> None:
    edge.behind.fault = fault
    answer = edge.post(event_document())
    problem(answer, 503, "not_admitted")
    assert int(answer.headers["Retry-After"]) >= 1
    edge.behind.fault = None
    assert edge.post(event_document()).status_code == 202
    assert CANARY not in answer.text + edge.log.getvalue()


@pytest.mark.parametrize(
    "fault",
    [
        psycopg.errors.UniqueViolation(f"Key (email)=({CANARY}) already exists."),
        psycopg.errors.StringDataRightTruncation(CANARY),
        ValueError(CANARY),
    ],
)
def test_p7_a_fault_of_ours_says_neither_statement_nor_value(edge: Edge, fault: Exception) -> None:
    edge.behind.fault = fault
    answer = edge.post(event_document())
    problem(answer, 500, "internal_error")
    assert CANARY not in answer.text + edge.log.getvalue()
    entry = json.loads(edge.log.getvalue().splitlines()[0])
    assert entry["exc_type"] == type(fault).__name__
    assert entry["request_id"] == answer.headers["X-Request-Id"]


def test_p7_a_refusal_names_fields_and_never_what_stood_in_them(edge: Edge) -> None:
    document = event_document(
        event_id=f"{CANARY} !",
        requested_at=CANARY,
        destinations={"email": [CANARY]},
        policy={"mode": CANARY, "inputs": {"region": CANARY}},
        template={"id": {CANARY: CANARY}, "revision": "1"},
        **{f"{CANARY}@example.test": 1},
    )
    answer = edge.post(document, headers={"Idempotency-Key": CANARY, "webhook-id": "msg_1"})
    body = problem(answer, 422, "validation_failed")
    assert len(body["errors"]) == 7
    assert CANARY not in answer.text + str(answer.headers) + edge.log.getvalue()


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner)
)
hostile = (
    st.binary(max_size=300)
    | trees.map(lambda tree: json.dumps(tree).encode())
    | st.dictionaries(st.sampled_from(sorted(event_document())), trees).map(
        lambda changes: json.dumps(event_document(**changes)).encode()
    )
)


@given(
    raw=hostile, headers=st.dictionaries(st.sampled_from(["Idempotency-Key"]), st.text("a\u00e9"))
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_p7_no_signed_body_makes_a_fault_of_ours_or_comes_back(
    edge: Edge, raw: bytes, headers: dict[str, str]
) -> None:
    marked = raw.replace(b"0", b"canary")
    answer = edge.post(marked, headers=headers)
    assert answer.status_code in {202, 422}
    if answer.status_code == 422:
        assert "canary" not in answer.text
    assert len(edge.log.getvalue().splitlines()) == len(edge.log.getvalue().split("\n")) - 1
